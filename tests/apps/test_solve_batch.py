"""`grv solve` with one budget for many problems, in several processes that are killed."""

from __future__ import annotations

import random
import subprocess
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from grv.backends.generators.completions import seed_of
from grv.ledger.pending import pending_calls
from grv.ledger.sqlite import SqliteLedger
from support.commands import ended, here, kill, records, refuses, start, without_outages
from support.servers import FaultyServer, Received

TURN = 11  # a candidate and its verification
VERIFIER = """
def is_right(problem, text):
    return text.endswith("right")
"""


def name_of(request: Received) -> str:
    return request.prompt.removeprefix("Solve ").removesuffix(".")


def right(name: str) -> int | None:
    """The number of the first right candidate; a third of the problems have none."""
    number = int(name[1:])
    return None if number % 3 == 0 else (number * 7) % 12


def text(request: Received, seed: int) -> str:
    name = name_of(request)
    number = seed - seed_of(0, name, 0)
    return f"{name} {number} {'right' if number == right(name) else 'wrong'}"


def asked(requests: list[Received]) -> Counter[tuple[str, int]]:
    """How often the server was asked for each candidate."""
    counts: Counter[tuple[str, int]] = Counter()
    for request in requests:
        name = name_of(request)
        first = request.body["seed"] - seed_of(0, name, 0)
        counts.update((name, first + i) for i in range(request.body.get("n", 1)))
    return counts


def write(folder: Path, number: int) -> Path:
    (folder / "my.py").write_text(VERIFIER)
    lines = [f'{{"problem": "p{i}", "prompt": "Solve p{i}."}}\n' for i in range(number)]
    path = folder / "problems.jsonl"
    path.write_text("".join(lines))
    return path


def command(folder: Path, server: FaultyServer, total: float, *more: object) -> list[object]:
    options = {
        "--generator": "openai:m",
        "--base-url": server.url,
        "--verifier": f"{folder}/my.py:is_right",
        "--score": "length",
        "--policy": "verify-all",
        "--costs": "1,10",
        "--total-budget": total,
        "--ledger": folder / "ledger",
    }
    given = [word for option in options.items() for word in option]
    return ["solve", folder / "problems.jsonl", *given, *more]


def paid(path: Path) -> float:
    with closing(SqliteLedger(path)) as ledger:
        return ledger.possibly_paid(None)


def killed_again_and_again(folder: Path, number: int, kills: int, processes: int) -> None:
    write(folder, number)
    total = number * TURN * 5.0
    at_once = 4
    chance = random.Random(7)
    with FaultyServer(text=text, seconds=0.01) as server:
        how = command(folder, server, total, "--concurrency", at_once, "--at-once", at_once)

        def begin(place: int) -> subprocess.Popen[str]:
            return start(*how, "--out", folder / f"out{place}")

        running = [begin(place) for place in range(processes)]
        done = 0
        while done < kills and any(each.poll() is None for each in running):
            time.sleep(chance.uniform(0.3, 1.0))
            place = chance.randrange(processes)
            if running[place].poll() is None and len(server.received) > 2 * done:
                kill(running[place])
                done += 1
                assert paid(folder / "ledger") <= total
                running[place] = begin(place)
        ends = [ended(each, within=600) for each in running]
        assert {each.code for each in ends} == {1}
        said = [line for each in ends for line in without_outages(each.err).splitlines()]
        assert all("problems done" in line for line in said), said  # a line per minute
        counts = asked(server.received)
        # All that was paid for is on record: one more run has nothing to do.
        before = len(server.received)
        assert here(*how, "--out", folder / "out0").code == 1
        assert len(server.received) == before
    assert done == kills
    check_ledger(folder, counts, total, at_once * processes)
    answers = [{r["problem"]: r["outcome"] for r in records(folder / f"out{i}")} for i in (0, 1)]
    assert len(answers[0]) == number


def check_ledger(folder: Path, counts: Counter[Any], total: float, at_once: int) -> None:
    """The ledger has what was served, nothing was paid twice, and spending is even."""
    spent: dict[str, float] = {}
    lost: Counter[str] = Counter()
    made = 0
    with closing(SqliteLedger(folder / "ledger")) as ledger:
        assert ledger.check() == []
        assert total - TURN * at_once <= ledger.possibly_paid(None) <= total
        for search in ledger.searches():
            tally = pending_calls(ledger.read(search.id))
            lost.update(tally.lost)
            made += len(tally.made)
            if search.outcome == "out of budget":
                spent[search.problem] = tally.paid
    assert counts.total() - len(counts) <= lost["generate"]
    assert len(counts) - made <= lost["generate"]
    # Those that are not solved have spent the same, but for a last turn and for what a kill lost.
    assert len(spent) > 5
    assert max(spent.values()) <= min(spent.values()) + 3 * TURN


@pytest.mark.slow
def test_two_processes_and_two_kills(tmp_path: Path) -> None:
    killed_again_and_again(tmp_path, 18, 2, 2)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_four_processes_and_fifty_kills(tmp_path: Path) -> None:
    killed_again_and_again(tmp_path, 2000, 50, 4)


@pytest.mark.slow
def test_a_process_with_another_schedule_is_refused(tmp_path: Path) -> None:
    write(tmp_path, 3)
    with FaultyServer(text=text) as server, closing(SqliteLedger(tmp_path / "ledger")) as other:
        how = command(tmp_path, server, 200, "--out", tmp_path / "out")
        assert other.follow("in-order") is None
        said = refuses(how, "a run on this ledger follows --schedule in-order")
        assert "least-spent" in said
        other.leave("in-order")
        assert here(*how).code == 1
        assert here(*how, "--schedule", "doubling").code == 1


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--schedule", "cheapest"], "unknown schedule 'cheapest'"),
        (["--schedule", "cheapest-predicted(k=-1)"], "k must be finite and not negative"),
        (["--expected-problems", "3"], "--expected-problems is for problems that arrive on -"),
    ],
)
def test_options_that_do_not_fit_are_refused(tmp_path: Path, more: list[str], said: str) -> None:
    write(tmp_path, 1)
    with FaultyServer(text=text) as server:
        refuses([*command(tmp_path, server, 200, "--out", tmp_path / "out"), *more], said)
        assert not server.received


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"problem": "p", "prompt": "", "weight": 0}', "'weight' must be a positive number"),
        ('{"problem": "p", "prompt": "", "weight": "2"}', "'weight' must be a positive number"),
        ('{"problem": "p", "prompt": "", "expected_cost": -1}', "that is not negative, not -1"),
    ],
)
def test_wrong_weights_and_predictions_name_their_line(
    tmp_path: Path, line: str, said: str
) -> None:
    problems = write(tmp_path, 1)
    problems.write_text(f"{line}\n")
    with FaultyServer(text=text) as server:
        how = command(tmp_path, server, 200, "--out", tmp_path / "out")
        refuses(how, f"{problems}:1: ", said)


@pytest.mark.slow
def test_problems_that_arrive_on_standard_input_are_solved_as_they_come(tmp_path: Path) -> None:
    write(tmp_path, 0)
    with FaultyServer(text=text) as server:
        how = command(tmp_path, server, 400, "--out", tmp_path / "out")
        how[1] = "-"
        process = start(*how, stdin=subprocess.PIPE)
        assert process.stdin is not None
        process.stdin.write('{"problem": "p1", "prompt": "Solve p1."}\n')
        process.stdin.flush()
        deadline = time.monotonic() + 60
        while not (tmp_path / "out").exists() or not records(tmp_path / "out"):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.stdin.write('\n{"problem": "p2", "prompt": "Solve p2."}')  # no line break
        process.stdin.flush()
        done = ended(process)
    assert done.code == 0, done.err
    assert done.out.startswith("2 problems: 2 solved\n")
    assert {record["problem"] for record in records(tmp_path / "out")} == {"p1", "p2"}


@pytest.mark.slow
@pytest.mark.parametrize("line", ["no JSON", '{"problem": "p1"}', "[]"])
def test_a_wrong_line_on_standard_input_is_one_line_and_exit_code_2(
    tmp_path: Path, line: str
) -> None:
    write(tmp_path, 0)
    with FaultyServer(text=text) as server:
        how = command(tmp_path, server, 400, "--out", tmp_path / "out")
        how[1] = "-"
        process = start(*how, stdin=subprocess.PIPE)
        out, err = process.communicate(f'{{"problem": "p4", "prompt": "Solve p4."}}\n{line}\n')
    assert process.returncode == 2, out
    assert err.count("\n") == 1
    assert "-:2" in err
