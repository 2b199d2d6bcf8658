"""The prose of the source: words and phrases that a reader should not have to decode."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "grv"

# A phrase, and how often it may occur in all files together.
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
    "to verify unseen": 0,
    "within 3 of": 0,
    "one row a": 0,
    "what out": 0,
    "knew its law": 0,
}


def text_of(path: Path) -> str:
    """The text of a file, with line breaks inside sentences replaced by spaces."""
    return re.sub(r"\s+(#\s+)?", " ", path.read_text(encoding="utf-8"))


KINDS = {".py", ".js", ".css", ".html"}  # code, and the page of a report
PATHS = sorted(path for path in SOURCE.rglob("*") if path.suffix in KINDS)
TEXTS = {str(path.relative_to(SOURCE)): text_of(path) for path in PATHS}


@pytest.mark.parametrize(("phrase", "most"), PHRASES.items())
def test_the_prose_avoids_private_phrases(phrase: str, most: int) -> None:
    pattern = re.compile(rf"\b{re.escape(phrase)}\b", re.IGNORECASE)
    found = {name: len(pattern.findall(text)) for name, text in TEXTS.items()}

    assert sum(found.values()) <= most, {name: n for name, n in found.items() if n}
