"""`grv solve` under tight limits, and ended by signals."""

from __future__ import annotations

import os
import pty
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from grv.ledger.sqlite import SqliteLedger
from support.commands import as_from_a_terminal, ended, grv, here, kill, start, write_problems
from support.servers import FaultyServer, Received, Status


def text(request: Received, seed: int) -> str:
    return f"{request.prompt} {seed} right"


def command(folder: Path, url: str, *more: object, seconds: float = 0) -> list[object]:
    names = [f"p{i}" for i in range(6)]
    write_problems(folder / "problems", names, seen=folder / "seen", seconds=seconds)
    basic = ["solve", folder / "problems", "--allow-commands", "--generator", "openai:m"]
    return [*basic, "--base-url", url, "--out", folder / "out", "--budget", 10**6, *more]


def open_files(soft: int, hard: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "concurrency"), [(32, 16), (1024, 1024)])
def test_too_few_open_files_are_refused_before_the_first_call(
    tmp_path: Path, limit: int, concurrency: int
) -> None:
    with FaultyServer(text=text) as server:
        given = command(tmp_path, server.url, "--concurrency", concurrency, "--workers", 2)
        ran = grv(*given, before=open_files(limit, limit))
        assert server.received == []
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    assert f"the limit is {limit}: raise it with ulimit -n" in ran.err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_soft_limit_is_raised(tmp_path: Path) -> None:
    with FaultyServer(text=text) as server:
        given = command(tmp_path, server.url, "--concurrency", 200, "--workers", 2)
        ran = grv(*given, before=open_files(64, 1024))
    assert (ran.code, ran.err) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_every_signal_lets_calls_in_flight_end(tmp_path: Path, number: signal.Signals) -> None:
    with FaultyServer(text=text, seconds=1.5) as server:
        process = start(*command(tmp_path, server.url))
        while len(server.received) < 6:
            time.sleep(0.02)
        process.send_signal(number)
        ran = ended(process)
        assert len(server.received) == 6
    assert ran.code == 130
    assert ran.err.splitlines()[0].startswith("waiting up to 10 s for 6 calls in flight")
    assert ran.err.splitlines()[1:] == ["grv: interrupted"]
    ledger = SqliteLedger(tmp_path / "out.ledger")
    kinds = [type(entry).__name__ for each in ledger.searches() for entry in ledger.read(each.id)]
    ledger.close()
    assert kinds.count("Made") >= 6


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_end_other_commands_with_the_same_exit_code(number: signal.Signals) -> None:
    process = start("simulate", "--problems", 100_000, "--orders", 100)
    time.sleep(3)
    process.send_signal(number)
    ran = ended(process)
    assert (ran.code, ran.err) == (130, "grv: interrupted\n")


@pytest.mark.slow
def test_nohup_keeps_a_run_going(tmp_path: Path) -> None:
    def ignored() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    with FaultyServer(text=text, seconds=0.5) as server:
        process = start(*command(tmp_path, server.url), before=ignored)
        while not server.received:
            time.sleep(0.02)
        process.send_signal(signal.SIGHUP)
        assert ended(process).code == 0


@pytest.mark.slow
def test_a_killed_run_leaves_no_folders_of_checks_behind(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    env = {"TMPDIR": str(temporary)}
    with FaultyServer(text=text) as server:
        process = start(*command(tmp_path, server.url, seconds=3), env=env)
        while not (tmp_path / "seen").exists():
            time.sleep(0.02)
        kill(process)
        left = list(temporary.glob("grv-*"))
        assert left
        for folder in left:
            os.utime(folder, (0, 0))
        assert grv(*command(tmp_path, server.url), env=env).code == 0
    assert list(temporary.iterdir()) == []


def test_too_little_space_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = os.statvfs_result((4096, 4096, 9, 9, 9, 9, 9, 9, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda path: usage)
    ran = here(*command(tmp_path, "http://127.0.0.1:1/v1"))
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "0 MB are free, and the run may need 80 MB" in ran.err


@pytest.mark.slow
def test_a_terminal_shows_an_outage_and_its_end_ends_the_run_like_an_interrupt(
    tmp_path: Path,
) -> None:
    with FaultyServer(lambda _: Status(503), text=text) as server:
        given = [str(part) for part in command(tmp_path, server.url)]
        process, terminal = pty.fork()
        if not process:
            as_from_a_terminal()
            os.execv(sys.executable, [sys.executable, "-m", "grv", *given])
        shown = b""
        while b" s, up to 300 s" not in shown:
            shown += os.read(terminal, 1 << 16)
        os.close(terminal)
        _, status = os.waitpid(process, 0)
    place = server.root.removeprefix("http://").encode()
    assert b"waiting for " + place + b": status 503: not now, since " in shown
    assert os.waitstatus_to_exitcode(status) == 130
