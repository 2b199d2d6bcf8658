"""`make test` runs pytest twice, and says at the end how both ended."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from suite import read, summary

RUN = Path(__file__).parent / "suite.py"
FIRST = """\
....F [100%]
=================== short test summary info ====================
FAILED test_a.py::test_one - assert 0
ERROR test_a.py::test_two
\x1b[31m== \x1b[1m1 failed\x1b[0m, 3 passed, 1 error, 2 warnings in 61.20s (0:01:01) ==\x1b[0m
"""
SECOND = "3 failures that are no failures in 2 tests\n2 passed, 5 deselected in 1.00s\n"


def test_the_last_lines_are_those_of_both_parts() -> None:
    parts = [read(1, FIRST), read(0, SECOND)]
    assert summary(parts, 63.4).splitlines() == [
        "",
        "FAILED test_a.py::test_one - assert 0",
        "ERROR test_a.py::test_two",
        "==== 1 failed, 1 error, 5 passed, 2 warning in 1 min 3 s ====",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("beside", "alone", "code", "counts"),
    [
        ("True", "True", 0, "3 passed"),
        ("False", "True", 1, "1 failed, 2 passed"),
        ("True", "False", 1, "1 failed, 2 passed"),
    ],
)
def test_the_second_part_runs_whatever_the_first_did(
    beside: str, alone: str, code: int, counts: str, tmp_path: Path
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  alone: a\n  soak: b\n")
    (tmp_path / "test_it.py").write_text(
        "import os, pytest\n"
        f"def test_beside():\n    assert 'PYTEST_XDIST_WORKER' in os.environ and {beside}\n"
        "@pytest.mark.xdist_group('server')\n"
        "def test_groups_hold(request):\n    assert request.node.nodeid.endswith('@server')\n"
        "@pytest.mark.alone\n"
        f"def test_alone():\n    assert 'PYTEST_XDIST_WORKER' not in os.environ and {alone}\n"
        "@pytest.mark.soak\ndef test_soak():\n    assert False\n"
    )
    call = [sys.executable, str(RUN), "-p", "no:randomly"]
    without = {"PATH": "/usr/bin:/bin"}  # these tests may run in a worker themselves
    ran = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, env=without)
    assert ran.returncode == code, ran.stdout + ran.stderr
    assert f"==== {counts} in " in ran.stdout.splitlines()[-1]
