"""`grv solve`, killed at any moment: nothing on record is paid for again."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from grv.backends.generators.completions import seed_of
from grv.ledger.entries import Found, Made
from grv.ledger.sqlite import SqliteLedger
from support.commands import grv, here, kill, records, start, write_problems
from support.servers import FaultyServer, Received

pytestmark = pytest.mark.soak

NAMES = [f"p{i:02}" for i in range(12)]
RIGHT = {name: 6 + 5 * i % 29 for i, name in enumerate(NAMES)}
KILLS, CONCURRENCY = 10, 4


def name_of(request: Received) -> str:
    return request.prompt.removeprefix("Solve ").removesuffix(".")


def text(request: Received, seed: int) -> str:
    name = name_of(request)
    number = seed - seed_of(0, name, 0)
    return f"{name} {number} {'right' if number == RIGHT[name] else 'wrong'}"


def asked(requests: list[Received]) -> Iterator[tuple[str, int]]:
    """The candidates that a server was asked for."""
    for request in requests:
        name = name_of(request)
        first = request.body["seed"] - seed_of(0, name, 0)
        for number in range(first, first + request.body.get("n", 1)):
            yield name, number


def shown(seen: Path) -> list[tuple[str, int]]:
    """The candidates that the verifier was asked about."""
    lines = seen.read_text().splitlines() if seen.exists() else []
    return [(line.split()[0], int(line.split()[1])) for line in lines]


def on_record(path: Path) -> tuple[set[tuple[str, int]], set[tuple[str, int]]]:
    """The drafts and the verdicts that a ledger holds."""
    made, found = set(), set()
    if path.exists() and path.stat().st_size:
        ledger = SqliteLedger(path)
        for search in ledger.searches():
            for entry in ledger.read(search.id):
                match entry:
                    case Made(candidate):
                        made.add((search.problem, candidate))
                    case Found(candidate):
                        found.add((search.problem, candidate))
        ledger.close()
    return made, found


def test_killed_at_random_moments_it_pays_for_nothing_twice(tmp_path: Path) -> None:
    seen, ledger, out = tmp_path / "seen", tmp_path / "ledger", tmp_path / "out"
    problems = write_problems(tmp_path / "problems", NAMES, seen=seen, seconds=0.05)
    chance = random.Random(4)
    made_before: set[tuple[str, int]] = set()
    found_before: set[tuple[str, int]] = set()
    with FaultyServer(text=text, seconds=0.15) as server:
        command = [
            "solve",
            problems,
            "--allow-commands",
            "--generator",
            "openai:m",
            "--base-url",
            server.url,
        ]
        command += ["--policy", "adaptive"]  # comes to every candidate in the end
        command += [
            "--budget",
            10**6,
            "--costs",
            "1,2",
            "--concurrency",
            CONCURRENCY,
            "--workers",
            CONCURRENCY,
        ]
        killed = 0
        while killed < KILLS:
            requests, verifications = len(server.received), len(shown(seen))
            process = start(*command, "--ledger", ledger, "--out", out)
            if chance.random() < 0.8:  # else while it is starting
                while len(server.received) == requests and process.poll() is None:
                    time.sleep(0.01)
            time.sleep(chance.uniform(0, 0.5))
            if process.poll() is not None:
                break  # it was faster
            kill(process)
            killed += 1
            made, found = on_record(ledger)
            new = set(asked(server.received[requests:]))
            assert not new & made_before, "a draft on record was asked for again"
            assert not set(shown(seen)[verifications:]) & found_before
            unrecorded = [r for r in server.received if not set(asked([r])) & made]
            assert len(unrecorded) <= 2 * CONCURRENCY * killed
            made_before, found_before = made, found
        assert killed >= 10, "too fast to be killed"
        requests, verifications = len(server.received), len(shown(seen))
        last = grv(*command, "--ledger", ledger, "--out", out)
        assert (last.code, last.err) == (0, "")
        assert not set(asked(server.received[requests:])) & made_before
        assert not set(shown(seen)[verifications:]) & found_before
        generated, verified = Counter(asked(server.received)), Counter(shown(seen))

        whole = tmp_path / "whole"
        assert here(*command, "--out", whole).code == 0

    answers = {record["problem"]: record for record in records(out)}
    assert len(records(out)) == len(answers) == len(NAMES)
    lost: Counter[str] = Counter()
    for record in answers.values():
        lost.update(record["lost"])
    assert generated.total() - len(generated) <= lost["generate"]
    assert verified.total() - len(verified) <= lost["verify"]
    for record in records(whole):
        mine = answers[record["problem"]]
        for name in ("outcome", "answer", "answer_verified", "generated", "verified", "cost"):
            assert mine[name] == record[name]
    assert here("runs", "check", ledger).out.startswith("all is well\n")
