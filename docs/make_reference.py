"""Writes `docs/reference.md` from what the commands say of themselves."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from unittest.mock import patch

from grv.apps.cli import run

COMMANDS = (
    *("", "demo", "solve", "collect", "runs", "problems", "compare", "learn"),
    *("report", "oracle", "simulate", "shells"),
    *("star", "theory", "theory lower-bound", "theory separation"),
    *("convert", "verify", "doctor"),
)


def reference() -> str:
    """The help of every command, as one page."""
    parts = [
        "# Commands\n\nWritten by `docs/make_reference.py`; a test checks that it is current.\n"
    ]
    with patch.dict("os.environ", {"COLUMNS": "100", "TERM": "dumb"}):
        for command in COMMANDS:
            words = command.split()
            with contextlib.redirect_stdout(io.StringIO()) as out:
                run([*words, "--help"])
            shown = out.getvalue().rstrip()
            parts.append(f"## {' '.join(['grv', *words])}\n\n```\n{shown}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    (Path(__file__).parent / "reference.md").write_text(reference(), encoding="utf-8")
