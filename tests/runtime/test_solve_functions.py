"""`grv.solve`: plain functions, protocol objects, ledgers by path."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

import grv
from grv.backends.protocols import Draft, Problem
from grv.core.errors import GeneratorError, LedgerError, UsageError
from grv.ledger.ledger import MemoryLedger
from grv.ledger.sqlite import SqliteLedger
from grv.policies import DEFAULT
from grv.runtime.options import Calls
from grv.runtime.progress import Progress
from grv.testing.drivers import run
from grv.testing.fakes import ScriptedGenerator, TableScorer, TableVerifier
from grv.testing.worlds import World, labelled

pytestmark = pytest.mark.anyio


class Counter:
    """A guesser that counts up, and how often it and its friends were asked."""

    def __init__(self) -> None:
        self.made = 0
        self.verified = 0

    def guess(self, problem: Problem) -> str:
        self.made += 1
        return str(self.made)

    def score(self, problem: Problem, text: str) -> float:
        return -float(text)  # or a policy might for ever prefer what comes after the five

    def is_five(self, problem: Problem, text: str) -> bool:
        self.verified += 1
        return text == "5"


async def ask(counter: Counter, **options: object) -> grv.Solution:
    return await grv.solve(
        "Count to five",
        generator=counter.guess,
        scorer=counter.score,
        verifier=counter.is_five,
        **options,  # type: ignore[arg-type]
    )


async def test_three_plain_functions_are_enough() -> None:
    counter = Counter()

    solution = await ask(counter, costs=grv.Costs(1, 10))

    assert solution.outcome == "solved"
    assert solution.verified
    assert solution.draft is not None
    assert solution.draft.text == "5"
    assert (solution.bill.generated, solution.bill.verified) == (counter.made, counter.verified)
    assert solution.problem == "Count to five"


async def test_where_nobody_says_the_default_policy_decides() -> None:
    bills = [
        (await ask(Counter(), costs=grv.Costs(1, 3), policy=policy)).bill
        for policy in (None, "default", DEFAULT)
    ]

    assert bills[0] == bills[1] == bills[2]
    counted = labelled(400, lambda i: (-i, i == 4))
    assert bills[0] == run(DEFAULT, grv.Costs(1, 3), counted).bill


async def test_coroutines_and_a_policy_by_its_specification() -> None:
    async def guess(problem: Problem) -> str:
        return problem.prompt

    async def score(problem: Problem, text: str) -> float:
        return 0.0

    async def verify(problem: Problem, text: str) -> bool:
        return text == "a"

    solution = await grv.solve(
        Problem("p", "a"), generator=guess, scorer=score, verifier=verify, policy="fixed(2, 1)"
    )

    assert (solution.outcome, solution.bill.generated) == ("solved", 2)


async def test_protocol_objects_are_taken_as_they_are() -> None:
    world = World.of("1- 3+ 2-")

    solution = await grv.solve(
        Problem("p"),
        generator=ScriptedGenerator(world),
        scorer=TableScorer(world),
        verifier=TableVerifier(world),
        policy=grv.policies.Fixed(3, 1),
    )

    assert solution.draft is not None
    assert solution.draft.text == "1"


async def test_a_ledger_by_its_path_is_not_paid_for_twice(tmp_path: Path) -> None:
    place = tmp_path / "ledger.db"
    first, second = Counter(), Counter()

    poor = await ask(first, policy="adaptive", budget=18, ledger=place)
    rich = await ask(second, policy="adaptive", ledger=str(place))

    assert (poor.outcome, poor.verified) == ("out of budget", False)
    assert (first.made, first.verified) == (8, 1)
    assert rich.verified
    assert rich.draft is not None
    assert rich.draft.text == "5"
    assert second.made == 0
    assert second.verified == rich.bill.verified - 1
    with pytest.raises(LedgerError, match="closed"):
        await ask(Counter(), ledger=_closed(place))


def _closed(place: Path) -> SqliteLedger:
    ledger = SqliteLedger(place)
    ledger.close()
    return ledger


async def test_what_it_is_about_tells_searches_apart() -> None:
    ledger, one, two = MemoryLedger(), Counter(), Counter()

    await ask(one, policy="fixed(8, 8)", ledger=ledger, about={"model": "a"})
    await ask(two, policy="fixed(8, 8)", ledger=ledger, about={"model": "b"})

    assert one.made == two.made == 8


async def test_a_generator_that_fails_for_good_is_an_outcome_not_an_exception() -> None:
    def fail(problem: Problem) -> str:
        raise GeneratorError("the model is gone", final=True)

    solution = await grv.solve(
        "p", generator=fail, scorer=lambda p, t: 0.0, verifier=lambda p, t: True, calls=Calls()
    )

    assert (solution.outcome, solution.draft) == ("failed", None)
    assert "the model is gone" in solution.message


async def test_what_is_neither_callable_nor_a_backend_is_refused() -> None:
    with pytest.raises(UsageError, match="a generator must be callable, not str"):
        await grv.solve("p", generator="gpt", scorer=len, verifier=len)  # type: ignore[arg-type]


async def test_a_long_prompt_has_a_short_name() -> None:
    solution = await grv.solve(
        "word " * 40 + "\nsecond line",
        generator=lambda p: "x",
        scorer=lambda p, t: 0.0,
        verifier=lambda p, t: True,
    )

    assert len(solution.problem) == 60
    assert solution.problem.endswith("...")


def test_now_is_the_same_without_an_event_loop_and_closes_connections() -> None:
    closed = []

    class Closing(Counter):
        async def generate(self, problem: Problem, n: int, *, first: int = 0) -> list[Draft]:
            return [Draft("5")] * n

        async def aclose(self) -> None:
            closed.append(True)

    counter = Closing()
    solution = grv.solve_now("p", generator=counter, scorer=counter.score, verifier=counter.is_five)

    assert solution.verified
    assert closed == [True]


def test_importing_grv_loads_none_of_it() -> None:
    heavy = ("anyio", "asyncio", "numpy", "openai", "sqlite3")
    code = f"import sys, grv; print([name for name in {heavy} if name in sys.modules])"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


def test_a_module_of_grv_is_imported_without_the_doors() -> None:
    code = "import sys; from grv import html; print([n for n in sys.modules if 'runtime' in n])"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


def test_many_problems_are_solved_without_an_event_loop() -> None:
    world = World.of("1- 2- 3+")
    options = {
        **{"generator": ScriptedGenerator(world), "scorer": TableScorer(world)},
        **{"verifier": TableVerifier(world), "policy": "verify-all"},
    }
    seen: list[Progress] = []
    problems = [Problem(f"p{i}", "prompt") for i in range(5)]
    found = list(grv.solve_many_now(problems, progress=seen.append, **options))  # type: ignore[arg-type]
    assert sorted(solution.problem for solution in found) == [f"p{i}" for i in range(5)]
    assert all(solution.outcome == "solved" for solution in found)
    assert seen[0] == Progress(5, 0, 0, 0.0, 0)
    assert (seen[-1].done, seen[-1].solved) == (5, 5)
    assert seen[-1].spent == sum(solution.bill.total for solution in found)


def test_a_total_budget_is_for_all_problems_together() -> None:
    world = World.of("1- " * 50)
    options = {
        **{"generator": ScriptedGenerator(world), "scorer": TableScorer(world)},
        **{"verifier": TableVerifier(world), "policy": "verify-all"},
    }
    problems = [Problem(f"p{i}", "prompt") for i in range(5)]
    found = list(grv.solve_many_now(problems, total_budget=100, **options))  # type: ignore[arg-type]
    assert {solution.outcome for solution in found} == {"out of budget"}
    assert sum(solution.bill.total for solution in found) <= 100


def test_who_stops_reading_stops_the_run() -> None:
    world = World.of("1+")
    options = {
        **{"generator": ScriptedGenerator(world), "scorer": TableScorer(world)},
        **{"verifier": TableVerifier(world), "at_once": 1},
    }
    problems = [Problem(f"p{i}", "prompt") for i in range(1000)]
    found = grv.solve_many_now(problems, **options)  # type: ignore[arg-type]
    assert next(iter(found)).outcome == "solved"
    found.close()
    assert len(options["generator"].made) < 1000  # type: ignore[attr-defined]


def test_a_mistake_is_raised_where_the_solutions_are_read() -> None:
    world = World.of("1+")
    backends = {"generator": ScriptedGenerator(world), "scorer": TableScorer(world)}
    with pytest.raises(UsageError, match="width"):
        list(grv.solve_many_now(["p"], verifier=TableVerifier(world), width=0, **backends))  # type: ignore[arg-type]


def test_solve_now_works_where_an_event_loop_is_running() -> None:
    world = World.of("1- 2+")

    async def notebook() -> grv.Solution:
        return grv.solve_now(
            "prompt",
            generator=ScriptedGenerator(world),
            scorer=TableScorer(world),
            verifier=TableVerifier(world),
        )

    assert anyio.run(notebook).outcome == "solved"


def test_the_keys_of_a_verifier_are_used_unless_told_otherwise() -> None:
    class Keyed(TableVerifier):
        def key(self, problem: Problem, draft: Draft) -> str:
            return "all alike"

    for keys, verified in ((True, [0]), (False, [0, 1, 2])):
        world = World.of("1- 1- 1-")
        verifier = Keyed(world)
        solution = grv.solve_now(
            "prompt",
            generator=ScriptedGenerator(world),
            scorer=TableScorer(world),
            verifier=verifier,
            policy="verify-all",
            keys=keys,
        )
        assert solution.outcome == "exhausted"
        assert verifier.verified == verified


@pytest.mark.parametrize("policy", [grv.policies.Balanced, 7], ids=["a class", "a number"])
def test_what_is_no_policy_is_refused_before_any_call(policy: Any) -> None:
    calls: list[str] = []

    def generate(problem: grv.Problem) -> str:
        calls.append(problem.id)
        return "a text"

    def score(problem: grv.Problem, text: str) -> float:
        return 0.0

    def verify(problem: grv.Problem, text: str) -> bool:
        return True

    with pytest.raises(grv.UsageError, match=r"give a policy, as in Balanced\(\), or its name"):
        grv.solve_now("p", generator=generate, scorer=score, verifier=verify, policy=policy)
    assert not calls
