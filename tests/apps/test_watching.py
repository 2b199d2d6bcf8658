"""`grv runs watch`: what a look at a ledger shows, and what fits on a screen."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from rich.console import Console

from grv import Costs, Problem
from grv.apps.watching import Watched, table
from grv.ledger.entries import Ended, Made, Started
from grv.ledger.sqlite import SqliteLedger
from grv.runtime.solve import solve_many_now

LONG = "a-name-that-is-much-longer-than-any-terminal-is-wide-" * 4


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    """Two searches that ended; then one that was stopped in the middle, and one that runs."""
    problems = [Problem(name, name) for name in ("right", f"wrong \x1b[2J{LONG}")]
    with closing(SqliteLedger(tmp_path / "some.ledger")) as made:
        for _ in solve_many_now(
            problems,
            generator=lambda problem: problem.prompt[:5],
            scorer=lambda problem, text: 0.0,
            verifier=lambda problem, text: text == "right",
            costs=Costs(1, 10),
            budget=33,
            ledger=made,
        ):
            pass
        for search in list(made.searches()):
            entries = [each for each in made.read(search.id) if not isinstance(each, Ended)]
            first = next(at for at, each in enumerate(entries) if isinstance(each, Made))
            if search.problem == "right":
                made.append("0" * 32, entries[: first + 1])
                made.append("1" * 32, entries[: first + 1])
        made.claim("1" * 32)
        yield made


def test_a_look_tells_running_from_stopped(ledger: SqliteLedger) -> None:
    watched = Watched.look(ledger, 10)

    assert watched.states == {"solved": 1, "out of budget": 1, "running": 1, "stopped": 1}
    assert watched.line.startswith("4 searches: 1 ")
    assert {state for _, state in watched.rows[2:]} == {"out of budget", "solved"}
    assert {state for _, state in watched.rows[:2]} == {"running", "stopped"}
    assert [each.generated for each, _ in watched.rows[:2]] == [1, 1]
    assert len(Watched.look(ledger, 3).rows) == 3


@pytest.mark.slow
def test_a_search_that_has_given_way_waits_for_its_turn(tmp_path: Path) -> None:
    seen: list[dict[str, str]] = []
    with closing(SqliteLedger(tmp_path / "some.ledger")) as ledger:

        def verify(problem: Problem, text: str) -> bool:
            rows = Watched.look(ledger, 10).rows
            seen.append({summary.problem: state for summary, state in rows})
            return False

        for _ in solve_many_now(
            [Problem(name, name) for name in "ab"],
            generator=lambda problem: problem.prompt,
            scorer=lambda problem, text: 0.0,
            verifier=verify,
            costs=Costs(1, 10),
            total_budget=66,
            at_once=1,
            ledger=ledger,
        ):
            pass

    others = [set(states.values()) - {"out of budget"} for states in seen if len(states) == 2]
    assert {"running", "waiting for its turn"} in others
    assert "stopped" not in set().union(*others)


@pytest.mark.slow
@pytest.mark.parametrize("width", [80, 140])
def test_a_long_name_is_cut_and_no_number_is(ledger: SqliteLedger, width: int) -> None:
    console = Console(width=width, color_system=None)
    watched = Watched.look(ledger, 10)
    with console.capture() as printed:
        console.print(table(watched, "some.ledger"))
    lines = printed.get().splitlines()

    assert max(map(len, lines)) <= width
    assert "\x1b" not in "".join(lines)
    (row,) = (line for line in lines if line.lstrip().startswith("wrong"))
    assert "…" in row
    (summary,) = (each for each, state in watched.rows if state == "out of budget")
    numbers = [summary.generated, summary.verified, summary.paid]
    assert row.split()[-4:-1] == [f"{number:g}" for number in numbers]
    assert lines[1].split() == [
        *("problem", "outcome", "generated", "verified", "possibly", "paid", "seconds")
    ]


@pytest.mark.slow
def test_elsewhere_than_on_a_terminal_sums_are_lines(ledger: SqliteLedger) -> None:
    command = [sys.executable, "-m", "grv", "runs", "watch", ledger.path, "--every", "0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        assert watching.stdout.readline().startswith("4 searches: ")
        entries = [each for each in ledger.read("1" * 32) if isinstance(each, Started)]
        ledger.append("2" * 32, entries)
        assert watching.stdout.readline().startswith("5 searches: ")
        watching.terminate()
        assert watching.wait(10) == 130
