"""What a terminal shows: progress before the work begins, and a little colour in tables."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.commands import grv

pytestmark = pytest.mark.slow

LIVE = ["--generator", "openai:m", "--base-url", "http://localhost:1/v1", "--out"]
ESCAPE = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]")
COLOUR = b"\x1b[1m"  # bold: the head of a table


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    Path("log.csv").write_text("problem,candidate,passed,score\na,0,1,0.5\na,1,0,0.7\nb,0,1,0.2\n")
    return tmp_path


def on_a_terminal(*words: str, until: bytes = b"", within: float = 60) -> bytes:
    """What a command shows on a terminal, to its end or until a text appears."""
    main, other = pty.openpty()
    command = [sys.executable, "-m", "grv", *words]
    process = subprocess.Popen(command, stdout=other, stderr=other, stdin=subprocess.DEVNULL)
    os.close(other)
    seen, end = b"", time.monotonic() + within
    try:
        while not (until and until in ESCAPE.sub(b"", seen)):
            assert time.monotonic() < end, seen
            seen += os.read(main, 1 << 16)
    except OSError:  # the command has ended
        pass
    process.kill()
    process.wait()
    os.close(main)
    return seen


@pytest.mark.parametrize(
    ("words", "bar"),
    [
        (["solve", "pipe.jsonl", *LIVE, "answers.jsonl"], b"reading the problems"),
        (["collect", "pipe.jsonl", *LIVE, "new.csv", "-n", "2"], b"reading the problems"),
        (["verify", "pipe.jsonl", "--out", "verdicts.jsonl"], b"reading"),
        (["compare", "pipe.csv"], b"comparing"),
        (["learn", "pipe.csv", "-o", "prior.json"], b"learning"),
        (["report", "pipe.csv"], b"making the tables"),
        (["oracle", "pipe.csv"], b"pricing"),
        (["simulate"], b"simulating"),
    ],
    ids=lambda each: each[0] if isinstance(each, list) else "",
)
def test_progress_is_shown_before_the_data_are_read(words: list[str], bar: bytes) -> None:
    """The input is a pipe that nothing is written to, so it is never read to its end."""
    for name in ("pipe.jsonl", "pipe.csv"):
        os.mkfifo(name)
    assert bar in ESCAPE.sub(b"", on_a_terminal(*words, until=bar))


def test_a_table_has_colour_on_a_terminal_and_none_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command = ("compare", "log.csv", "--policy", "verify-all", "--policy", "adaptive")
    shown, piped = on_a_terminal(*command), grv(*command)
    assert COLOUR + b"policy " in shown
    assert "\x1b" not in piped.out + piped.err
    plain = ESCAPE.sub(b"", shown).replace(b"\r\n", b"\n").decode()
    assert piped.out in plain  # the same text but for the colours

    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            assert COLOUR not in on_a_terminal(*command)
