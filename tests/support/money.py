"""A world in which every candidate and every verification is counted, and what must hold there."""

from __future__ import annotations

import math
import os
import random
import signal
import subprocess
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from grv.ledger.opening import is_address, open_ledger

from .commands import kill, write_problems
from .counting import Accounts, CountingServer
from .servers import (
    Cut,
    Drop,
    Empty,
    Fault,
    Fewer,
    Hang,
    NoLogprobs,
    NotNumbers,
    Received,
    Say,
    Status,
)

FAULTS: tuple[Fault, ...] = (
    Status(429, retry_after="0.05"),
    Status(500),
    Status(503, retry_after="0"),
    Hang(),
    Drop(),
    Drop(midway=True),
    Cut(),
    Say(),
    Say("{}"),
    Fewer(1),
    Empty(),
    NoLogprobs(),
    NotNumbers(),
)
GENERATE, VERIFY = 1.0, 2.0


@dataclass
class World:
    """A folder with problems, a ledger, and a counting checker."""

    folder: Path
    names: list[str] = field(default_factory=list)
    seconds: float = 0.0
    ledger: str = ""  # a file in the folder, or an address

    def __post_init__(self) -> None:
        self.ledger = self.ledger or str(self.folder / "ledger")

    def problems(self, names: list[str], file: str = "problems") -> Path:
        self.names += names
        seen = self.folder / "seen"
        return write_problems(self.folder / file, names, seen=seen, seconds=self.seconds)

    def command(
        self, server: CountingServer, problems: Path, *more: object, out: str = "out"
    ) -> list[object]:
        return [
            "solve",
            problems,
            "--allow-commands",
            "--generator",
            "openai:m",
            "--base-url",
            server.url,
            "--ledger",
            self.ledger,
            "--out",
            self.folder / out,
            "--costs",
            f"{GENERATE:g},{VERIFY:g}",
            "--first-pause",
            0.02,
            *more,
        ]

    def checked(self) -> int:
        """How many candidates the checker saw."""
        seen = self.folder / "seen"
        return len(seen.read_text().splitlines()) if seen.exists() else 0

    def paid(self) -> float:
        """Possibly paid so far, as another process sees it."""
        if not is_address(self.ledger) and not Path(self.ledger).exists():
            return 0.0
        with closing(open_ledger(self.ledger, read_only=True)) as ledger:
            return ledger.possibly_paid()


def right(name: str) -> int | None:
    """Every third problem has no right candidate."""
    number = int(name[1:])
    return None if number % 3 == 2 else 3 + 5 * number % 23


def idle(server: CountingServer, within: float = 20) -> None:
    """Wait until every late response is generated."""
    until = time.monotonic() + within
    while server.in_flight and time.monotonic() < until:
        time.sleep(0.05)


def hold(fault: str, world: World, server: CountingServer, total: float = math.inf) -> Accounts:
    """Check what must hold after any fault, and print a row of the table."""
    accounts = Accounts.of(world.ledger)
    assert accounts.wrong_bills == []
    served, made = server.served.total(), accounts.made.total()
    paid = accounts.possibly_paid
    print(
        f"\n| {fault} | {served} served, {world.checked()} checked"
        f" | {made} drafts, {accounts.found.total()} verdicts; lost {dict(accounts.lost)}"
        f" | {accounts.billed:g} | {paid:g} of {total:g} |"
    )
    assert sum(accounts.paid.values()) == pytest.approx(paid)
    assert served * GENERATE <= accounts.paid.get("generate", 0.0) * (1 + 1e-9)
    assert world.checked() * VERIFY <= accounts.paid.get("verify", 0.0) * (1 + 1e-9)
    assert paid <= total * (1 + 1e-9)
    assert accounts.billed <= paid * (1 + 1e-9)
    assert set(accounts.made.values()) <= {1}, "a draft was recorded twice"
    assert set(accounts.found.values()) <= {1}, "a verdict was recorded twice"
    assert served <= made + accounts.lost["generate"]
    unrecorded = server.delivered.keys() - accounts.made.keys()
    assert len(unrecorded) <= accounts.lost["generate"]
    return accounts


class Chance:
    """Faults and late responses, 15 % of all, of every kind."""

    def __init__(self, seed: int, share: float = 0.15) -> None:
        self._random, self._share = random.Random(seed), share

    def fault(self, _: Received) -> Fault | None:
        """The fault of a request."""
        return self._random.choice(FAULTS) if self._random.random() < self._share else None

    def late(self, _: Received) -> float:
        """How long a response takes: sometimes longer than its caller waits."""
        return 1.5 if self._random.random() < self._share / len(FAULTS) else 0.1


def interrupt(process: subprocess.Popen[str], chance: random.Random, pause: float) -> None:
    """Kill a process, or pause it first for longer than its calls may take."""
    if pause and chance.random() < 0.1:
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(pause)
        os.kill(process.pid, signal.SIGCONT)
        time.sleep(chance.uniform(0, 1))
    kill(process)
