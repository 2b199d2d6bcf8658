"""Writes `docs/reference.md` from what the commands say of themselves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
    for command in COMMANDS:
        words = ["grv", *command.split(), "--help"]
        grv = Path(sys.executable).with_name("grv")
        environment = {**os.environ, "COLUMNS": "100", "TERM": "dumb"}
        call = [str(grv), *words[1:]]
        shown = subprocess.run(call, check=True, capture_output=True, text=True, env=environment)
        parts.append(f"## {' '.join(words[:-1])}\n\n```\n{shown.stdout.rstrip()}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    (Path(__file__).parent / "reference.md").write_text(reference(), encoding="utf-8")
