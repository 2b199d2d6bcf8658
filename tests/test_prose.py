"""The prose of the source: words and phrases that a reader should not have to decode."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "grv"

# Rooms whose prose is plain already. Add a room when its prose is done.
ROOMS = (
    *("core", "theory", "policies", "replay", "learning", "experiments", "ledger", "logs"),
    *("backends/generators", "backends/http", "backends/problems", "backends/scorers"),
    *("backends/verifiers", "backends/callables.py", "backends/protocols.py", "backends/specs.py"),
    *("files.py", "parquet.py", "text.py"),
)

# A phrase, and how often it may occur in all rooms together.
PHRASES = {
    "so many": 0,
    "whoever": 0,
    "somebody": 0,
    "nobody": 1,  # a word that backends/verifiers/math/prose.py looks for in answers
    "anybody": 0,
    "everybody": 0,
    "one a": 0,  # "one a candidate": say "one per candidate"
    "what is not": 0,
    "asked for again": 0,
    "as it stands": 0,
    "makes way": 0,
    "likewise": 0,
    "by then": 0,
    "in vain": 0,
    "told apart": 0,
    "no matter who": 0,
    "without more ado": 0,
    "now and then": 0,
    "all the same": 0,
}


def text_of(room: str) -> str:
    """All files of a room, with line breaks inside sentences replaced by spaces."""
    path = SOURCE / room
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    assert files, f"there is no room {room}"
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    return re.sub(r"\s+(#\s+)?", " ", text)


@pytest.mark.parametrize(("phrase", "most"), PHRASES.items())
def test_the_prose_avoids_private_phrases(phrase: str, most: int) -> None:
    pattern = re.compile(rf"\b{re.escape(phrase)}\b", re.IGNORECASE)
    found = {room: len(pattern.findall(text_of(room))) for room in ROOMS}

    assert sum(found.values()) <= most, {room: n for room, n in found.items() if n}
