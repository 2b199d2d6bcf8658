"""Many processes on one ledger in PostgreSQL, whose clients and server are killed."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from support.commands import Ran, ended, grv, start
from support.counting import CountingServer
from support.money import Chance, World, hold, idle, interrupt, right
from support.postgres import PASSWORD, Server

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("postgres")]


@pytest.fixture
def world(postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    address = postgres.new_database().replace(f":{PASSWORD}", "")
    return World(tmp_path, seconds=0.02, ledger=address)


def test_eight_processes_share_one_total_budget(world: World) -> None:
    total = 150.0
    with CountingServer(right=right, late=lambda _: 0.1) as server:
        processes = []
        for at in range(8):
            problems = world.problems([f"p{6 * at + i}" for i in range(3)], f"problems{at}")
            command = world.command(server, problems, "--total-budget", total, out=f"out{at}")
            processes.append(start(*command, "--workers", 2))
        runs = [ended(process) for process in processes]
        assert {ran.code for ran in runs} <= {0, 1}, runs
        assert {ran.err for ran in runs} == {""}
        hold("8 processes on PostgreSQL", world, server, total)
    assert set(server.served.values()) == {1}, "generated twice"


def faults_and_kills(
    world: World, postgres: Server, problems: int, kills: int, seed: int = 3
) -> None:
    """Two processes on one ledger; clients are killed, or the server, or its postmaster only."""
    chance, faults = random.Random(seed), Chance(seed)
    names = [f"p{i}" for i in range(problems)]
    files = [world.problems(names[at::2], f"problems{at}") for at in range(2)]
    total = 60.0 * problems
    with CountingServer(faults.fault, right=right, late=faults.late) as server:
        more = ("--call-timeout", 1, "--budget", 60, "--total-budget", total, "--workers", 2)
        commands = [
            world.command(server, file, *more, "--concurrency", 4, out=f"out{at}")
            for at, file in enumerate(files)
        ]
        for at in range(kills):
            processes = [start(*command) for command in commands]
            seen = len(server.received)
            while len(server.received) < seen + 2 and processes[0].poll() is None:
                time.sleep(0.01)
            time.sleep(chance.uniform(0, 0.6))
            if at % 2:
                postgres.kill_postmaster() if at % 4 == 1 else postgres.kill()
                for process in processes:
                    gone(ended(process))
                postgres.start()
            else:
                for process in processes:
                    interrupt(process, chance, 0)
        for command in commands * 2:
            ran = grv(*command, within=900)
            assert ran.code in (0, 1), ran
        idle(server)
        hold(f"15 % faults, {kills} kills of clients and server", world, server, total)


def gone(ran: Ran) -> None:
    """A run whose ledger is gone says so in one line; it may also have been finished."""
    assert "Traceback" not in ran.err
    if ran.code == 2:
        assert ran.err.splitlines()[-1].startswith("grv: postgresql://")
    else:
        assert ran.code in (0, 1), ran


def test_after_kills_of_clients_and_server_nothing_is_lost(world: World, postgres: Server) -> None:
    faults_and_kills(world, postgres, problems=8, kills=4)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_after_fifty_kills_of_clients_and_server_nothing_is_lost(
    world: World, postgres: Server
) -> None:
    faults_and_kills(world, postgres, problems=200, kills=50)
