"""Real processes against a counting server: what was possibly paid covers all that was served.

`pytest -s` prints a table: fault, served, recorded, billed, possibly paid.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import time
from pathlib import Path

import pytest

from support.commands import ended, grv, limited, start
from support.counting import CountingServer
from support.money import GENERATE, VERIFY, Chance, World, hold, idle, interrupt, right

pytestmark = pytest.mark.slow


def test_calls_that_time_out_are_possibly_paid(tmp_path: Path) -> None:
    """The server answers too late, and charges for it, in three runs of one command."""
    world, total = World(tmp_path), 60.0
    problems = world.problems([f"p{i}" for i in range(6)])
    with CountingServer(late=lambda _: 0.8) as server:
        more = ("--call-timeout", 0.3, "--attempts", 4, "--total-budget", total)
        for _ in range(3):
            ran = grv(*world.command(server, problems, *more))
            assert ran.code == 1
            assert "Traceback" not in ran.err
            idle(server)
            accounts = hold("answers after 0.8 s, timeout 0.3 s", world, server, total)
            assert accounts.made.total() == 0
    assert server.served.total() > 0


@pytest.mark.parametrize("same", [True, False], ids=["same problems", "other problems"])
def test_eight_processes_share_one_total_budget(tmp_path: Path, same: bool) -> None:
    world, total = World(tmp_path), 150.0
    names = [f"p{i}" for i in range(8)]
    with CountingServer(right=right, late=lambda _: 0.1) as server:
        processes = []
        for at in range(8):
            mine = names if same else [f"p{8 * at + i}" for i in range(3)]
            problems = world.problems(mine, f"problems{at}")
            command = world.command(server, problems, "--total-budget", total, out=f"out{at}")
            processes.append(start(*command, "--workers", 2))
        while any(process.poll() is None for process in processes):
            assert world.paid() <= total
            time.sleep(0.2)
        runs = [ended(process) for process in processes]
        assert {ran.code for ran in runs} <= {0, 1}, runs
        assert {ran.err for ran in runs} == {""}
        accounts = hold(f"8 processes, same problems: {same}", world, server, total)
    assert set(server.served.values()) == {1}, "generated twice"
    assert server.delivered.keys() == accounts.made.keys()
    assert accounts.lost["generate"] == 0
    if not same:
        assert accounts.possibly_paid > total - 8 * (GENERATE + VERIFY)


def test_two_problem_files_share_one_total_budget(tmp_path: Path) -> None:
    world, total = World(tmp_path), 70.0
    with CountingServer(right=lambda _: None) as server:
        for at in range(2):
            names = [f"p{3 * at + i}" for i in range(3)]
            problems = world.problems(names, f"problems{at}")
            command = world.command(server, problems, "--total-budget", total, out=f"out{at}")
            assert grv(*command).code == 1
            hold(f"problem file {at + 1} of 2", world, server, total)
    assert set(server.served.values()) == {1}


def faults_and_kills(folder: Path, problems: int, kills: int, pause: float, seed: int) -> None:
    world = World(folder, seconds=0.02)
    chance, faults = random.Random(seed), Chance(seed)
    file = world.problems([f"p{i}" for i in range(problems)])
    total = 60.0 * problems
    with CountingServer(faults.fault, right=right, late=faults.late) as server:
        more = ("--call-timeout", 1, "--budget", 60, "--total-budget", total)
        command = world.command(server, file, *more, "--workers", 4, "--concurrency", 6)
        killed = 0
        while killed < kills:
            process, requests = start(*command), len(server.received)
            while len(server.received) == requests and process.poll() is None:
                time.sleep(0.01)
            time.sleep(chance.uniform(0, 0.6))
            if process.poll() is not None:
                ended(process)
                break
            interrupt(process, chance, pause)
            killed += 1
        for _ in range(2):
            ran = grv(*command, within=900)
            assert ran.code in (0, 1), ran
            assert "Traceback" not in ran.err
        idle(server)
        print(f"\n{killed} kills")
        assert killed >= kills * 0.8, "too fast to be killed"
        hold(f"15 % faults, {killed} kills", world, server, total)


def test_after_faults_and_kills_every_candidate_is_accounted_for(tmp_path: Path) -> None:
    faults_and_kills(tmp_path, problems=4, kills=2, pause=0, seed=7)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_after_a_hundred_kills_and_pauses_every_candidate_is_accounted_for(tmp_path: Path) -> None:
    faults_and_kills(tmp_path, problems=250, kills=100, pause=12, seed=8)


def test_a_process_that_was_paused_counts_what_was_served(tmp_path: Path) -> None:
    """Its calls time out as soon as it continues."""
    world = World(tmp_path)
    file = world.problems([f"p{i}" for i in range(4)])
    with CountingServer(right=right, late=lambda _: 0.3) as server:
        command = world.command(server, file, "--call-timeout", 1, "--budget", 40)
        process = start(*command)
        while not server.received and process.poll() is None:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(3)
        os.kill(process.pid, signal.SIGCONT)
        assert ended(process).code in (0, 1)
        idle(server)
        hold("paused for 3 s, timeout 1 s", world, server)


@pytest.mark.parametrize(
    ("what", "limits"),
    [(resource.RLIMIT_FSIZE, (30_000, 90_000, 150_000)), (resource.RLIMIT_NOFILE, (40, 56, 72))],
    ids=["full disk", "few open files"],
)
def test_limits_of_the_machine_lose_nothing(
    tmp_path: Path, what: int, limits: tuple[int, ...]
) -> None:
    """The run ends under each limit in turn; without it, the same command goes on."""
    world, total = World(tmp_path), 400.0
    file = world.problems([f"p{i}" for i in range(9)])
    with CountingServer(right=right) as server:
        command = world.command(server, file, "--budget", 40, "--total-budget", total)
        for most in limits:
            ran = grv(*command, "--concurrency", 8, before=limited(what, most))
            assert (ran.code, ran.err.count("\n")) in ((0, 0), (1, 0), (2, 1)), ran
            idle(server)
        assert grv(*command).code == 1
        accounts = hold(f"limits {limits}", world, server, total)
    assert accounts.found.total() > 9


def test_a_process_without_memory_loses_nothing(tmp_path: Path) -> None:
    """The run ends under each limit in turn; without it, the same command goes on."""
    world, total = World(tmp_path), 400.0
    file = world.problems([f"p{i}" for i in range(9)])
    said = ""
    with CountingServer(right=right) as server:
        command = world.command(server, file, "--budget", 40, "--total-budget", total)
        for most in (300, 400, 600):
            ran = grv(*command, before=limited(resource.RLIMIT_AS, most << 20))
            assert ran.code in (0, 1, 2), ran
            assert "Traceback" not in ran.err
            assert "bug in grv" not in ran.err
            said += ran.err
            idle(server)
        assert "grv: out of memory: lower --workers" in said
        assert grv(*command).code == 1
        accounts = hold("little memory", world, server, total)
    assert accounts.found.total() > 9
