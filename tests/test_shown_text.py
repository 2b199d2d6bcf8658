"""Text of others, as people see it."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.text import csv_text, unquoted, visible
from support.commands import here

EVIL = "\x1b[2J\x1b]0;title\x07 \x9b31m \u202eright\u2066 \r\nfake: line\x00\x7f\u2028[red]x[/]"


def test_what_a_terminal_would_obey_is_escaped() -> None:
    shown = visible(EVIL)
    assert shown.isprintable()
    assert shown.startswith(r"\x1b[2J\x1b]0;title\x07 \x9b31m \u202eright\u2066 \r\nfake")
    assert visible("a\ud800b") == r"a\ud800b"
    assert visible("naïve 日本語 🙂 a\u00a0b") == "naïve 日本語 🙂 a\u00a0b"


@given(st.text())
def test_whatever_it_is_becomes_one_line_that_can_be_printed(text: str) -> None:
    shown = visible(text)
    assert len(shown.splitlines()) <= 1
    shown.encode()
    if text.isprintable():
        assert shown == text


@given(st.lists(st.text(min_size=1), min_size=1, max_size=4))
def test_cells_come_back_as_they_were_and_none_begins_a_formula(cells: list[str]) -> None:
    text = csv_text([str(at) for at in range(len(cells))], [cells])
    _, row = csv.reader(io.StringIO(text, newline=""))
    assert not any(cell[:1] in "=+-@\t\r" for cell in row)
    assert [unquoted(cell) for cell in row] == cells


def test_numbers_stay_numbers() -> None:
    assert csv_text(["=a", "b"], [(-1.5, None), (-3, True)]) == "'=a,b\n-1.5,\n-3,True\n"


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log of problems with names that are attacks."""
    monkeypatch.chdir(tmp_path)
    names = ["=HYPERLINK(1)", "@SUM(1)", "-1+1", "'=x", EVIL]
    rows = [
        {"problem": name, "candidate": at, "passed": at == 1 and name != EVIL, "score": -at - 0.5}
        for name in names
        for at in range(3)
    ]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.slow
def test_every_csv_that_we_write_is_safe_and_is_read_back(log: Path) -> None:
    assert here("convert", log, "-o", "log.csv").code == 0
    assert here("compare", "log.csv", "--csv", "table.csv", "--policy", "verify-all").code == 0
    assert here("report", "log.csv", "-o", "page.html", "--csv", "tables").code == 0
    files = [Path("log.csv"), Path("table.csv"), *Path("tables").glob("*.csv")]
    assert len(files) > 5
    for path in files:
        with path.open(newline="") as file:
            for row in csv.reader(file):
                for cell in row:
                    is_number = cell.replace(".", "").replace("e-", "").lstrip("-").isdigit()
                    assert is_number or not cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    first = [json.loads(line)["problem"] for line in log.read_text().splitlines()]
    assert here("convert", log, "-o", "again.jsonl").code == 0
    with open("log.csv", newline="") as file:
        assert [unquoted(row[0]) for row in csv.reader(file)][1:] == first


def test_names_on_a_terminal_obey_nobody(log: Path) -> None:
    Path("in.jsonl").write_text(
        json.dumps(
            {
                "problem": EVIL,
                "prompt": "?",
                "check": {"kind": "command", "argv": ["sh", "-c", "exit 7"]},
                "candidates": ["x"],
            }
        )
    )
    commands: list[list[object]] = [
        ["compare", log, "--policy", "verify-all"],
        ["oracle", log],
        ["compare", EVIL.replace("\0", "") + ".csv"],
        ["verify", "in.jsonl", "-o", "out", "--allow-commands"],
        ["verify", "in.jsonl", "-o", "out", "--isolation", EVIL],
        ["runs", "show", log, EVIL],
        ["star", EVIL],
        [EVIL],
        ["compare", log, "--score", EVIL],
    ]
    for command in commands:
        ran = here(*command)
        for line in (ran.out + ran.err).split("\n"):
            assert line.isprintable(), line
            assert not line.startswith("fake")


@pytest.mark.slow
def test_a_terminal_that_knows_no_unicode_is_told_all_the_same(log: Path) -> None:
    name = "é\u20ac.csv"
    Path(name).write_text("problem,candidate,passed,score\n\u00fc,0,1,1\nb,0,1,1\n")
    for encoding in ("ascii", "latin-1", "utf-8"):
        ran = subprocess.run(
            [sys.executable, "-m", "grv", "oracle", name],
            env={**os.environ, "PYTHONIOENCODING": encoding},
            capture_output=True,
            check=False,
            timeout=60,
        )
        assert (ran.returncode, ran.stderr) == (0, b"")


@pytest.mark.slow
def test_markup_in_a_name_is_not_obeyed_by_a_progress_bar(log: Path) -> None:
    """On a real terminal: the class's name is what the bar is called."""
    Path("[red]x[").write_text("0 1\n1 0\n")
    main, other = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "grv", "theory", "lower-bound", "[red]x[", "--runs", "2"],
        stderr=other,
        stdout=subprocess.DEVNULL,
    ) as process:
        os.close(other)
        seen = b""
        try:
            while part := os.read(main, 1 << 16):
                seen += part
        except OSError:
            pass
    os.close(main)
    assert process.returncode == 0, seen
    assert b"bug in grv" not in seen
