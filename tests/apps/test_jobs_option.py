"""`--jobs`: Ctrl-C and a worker that dies, with real processes."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from support.commands import ended, grv, refuses, start

SLOW = """
import os, pathlib, time
from grv import Generate

class Slow:
    def plan(self, pool, costs):
        pathlib.Path({folder!r}, str(os.getpid())).touch()
        time.sleep(60)
        yield Generate(1)
"""
DYING = """
import os
from grv import Generate

class Dying:
    def plan(self, pool, costs):
        os.kill(os.getpid(), 9)
        yield Generate(1)
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log that is large enough for two processes."""
    path = tmp_path / "log.csv"
    with path.open("w") as file:
        file.write("problem,candidate,passed,score\n")
        for problem in range(60):
            for candidate in range(400):
                passed = "true" if candidate == 7 else "false"
                file.write(f"p{problem},{candidate},{passed},{candidate * 7919 % 1009}\n")
    return path


def policy(tmp_path: Path, name: str, code: str) -> str:
    (tmp_path / "mine.py").write_text(code)
    return f"{tmp_path / 'mine.py'}:{name}"


@pytest.mark.slow
def test_ctrl_c_ends_the_workers_with_exit_code_130(tmp_path: Path, log: Path) -> None:
    seen = tmp_path / "seen"
    seen.mkdir()
    slow = policy(tmp_path, "Slow", SLOW.format(folder=str(seen)))
    running = start("compare", log, "--policy", slow, "--jobs", 2)
    deadline = time.monotonic() + 60
    while len(list(seen.iterdir())) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)

    running.send_signal(signal.SIGINT)
    ran = ended(running)

    assert (ran.code, ran.out, ran.err) == (130, "", "grv: interrupted\n")
    workers = [int(path.name) for path in seen.iterdir()]
    assert len(workers) == 2
    assert running.pid not in workers
    for worker in workers:
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)


@pytest.mark.slow
def test_a_worker_that_dies_is_one_line(tmp_path: Path, log: Path) -> None:
    ran = grv("compare", log, "--policy", policy(tmp_path, "Dying", DYING), "--jobs", 2)

    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "grv: a worker process was killed by signal 9; if memory was short, use fewer processes:"
        " --jobs 1\n"
    )


def test_the_number_of_processes_must_be_a_number_from_1(log: Path) -> None:
    refuses(["compare", log, "--jobs", "0"], "--jobs 0", "whole number")
    refuses(["oracle", log, "--jobs", "many"], "--jobs many", "whole number")
