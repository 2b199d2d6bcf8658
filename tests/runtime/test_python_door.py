"""The Python door: signatures that teach, and the natural forms of each value."""

from __future__ import annotations

import inspect
import itertools
import pydoc
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

import grv
from grv.comparing import ComparisonSettings
from grv.core import Cascade, Outcome, Pace
from grv.options import options_of
from grv.policies import Pool, VerifyAll
from grv.runtime import SolveOptions
from grv.scorers import Score
from grv.verifiers import Finding

ROOT = Path(__file__).parents[2]
LOG = Path(grv.__file__).parent / "data" / "sample.csv"
SOLVING = [grv.solve, grv.solve_many, grv.solve_now, grv.solve_many_now]


def keywords(function: Any) -> dict[str, inspect.Parameter]:
    found = inspect.signature(function).parameters
    return {name: each for name, each in found.items() if each.kind is each.KEYWORD_ONLY}


def test_the_four_ways_to_solve_have_the_same_options() -> None:
    shown = [keywords(function) for function in SOLVING]

    assert shown[0] == shown[1] == shown[2] == shown[3]
    assert [*shown[0]] == [*SolveOptions.__annotations__]
    assert shown[0]["budget"].default == float("inf")
    assert shown[0]["width"].default == 1


@pytest.mark.parametrize("function", [*SOLVING, grv.compare], ids=lambda each: each.__name__)
def test_the_help_lists_every_option_and_what_it_means(function: Any) -> None:
    text = pydoc.plain(pydoc.render_doc(function))
    for name in keywords(function):
        assert re.search(rf"\b{name}: '", text), name  # in the signature
        assert re.search(rf"^ +{name}: [a-z]", text, re.MULTILINE), name  # in the list


def test_a_comparison_takes_the_options_of_its_settings() -> None:
    settings = ComparisonSettings()
    shown = keywords(grv.compare)

    assert {*shown} == {*options_of(ComparisonSettings), "cascade", "progress"}
    for name in options_of(ComparisonSettings):
        assert shown[name].default == getattr(settings, name)


def solve(**options: Any) -> grv.Solution:
    """Count to seven."""
    numbers = itertools.count(1)
    given = {
        "generator": lambda problem: str(next(numbers)),
        "scorer": lambda problem, text: -float(text),
        "verifier": lambda problem, text: text == "7",
        "policy": "verify-all",
        "budget": 500,
    }
    return grv.solve_now("count to seven", **{**given, **options})


@pytest.mark.slow
@pytest.mark.parametrize("costs", [(1, 3), [1, 3], "1,3", "1, 3", grv.Costs(1, 3), (1, 3, 3.0)])
def test_costs_are_a_price_list_two_numbers_or_a_text(costs: Any) -> None:
    assert solve(costs=costs).bill.total == 7 + 7 * 3


@pytest.mark.parametrize("budget", ["22", 22, 22.9, " 22 "])
def test_a_number_may_be_a_text(budget: Any) -> None:
    solution = solve(budget=budget, costs=(1, 10))
    assert (solution.outcome, solution.bill.total) == ("out of budget", 22)


def test_a_width_and_a_number_of_answers_may_be_texts() -> None:
    assert solve(width="2", answers="1", at_once="3").verified
    assert solve(width="all").verified


def test_what_differs_from_the_limits_takes_precedence() -> None:
    limits = grv.Limits(budget=11, pace=Pace(deadline=60))
    assert solve(limits=limits, budget=500).verified
    assert not solve(limits=limits, budget=float("inf"), policy="fixed(1, 1)").verified


def test_a_class_that_needs_no_arguments_is_called() -> None:
    class Seven:
        async def verify(self, problem: grv.Problem, draft: grv.Draft) -> Finding:
            right = draft.text == "7"
            return Finding(grv.Verdict.PASSED if right else grv.Verdict.FAILED, "compared")

    solution = solve(verifier=Seven)
    assert solution.finding is not None
    assert solution.finding.reason == "compared"


class PlainModel:
    """Methods that are not asynchronous, with plain results."""

    batch = 2

    def __init__(self) -> None:
        self.firsts: list[int] = []
        self.closed = False

    def generate(self, problem: grv.Problem, n: int, *, first: int = 0) -> list[str]:
        self.firsts.append(first)
        return [str(first + number) for number in range(n)]

    def score(self, problem: grv.Problem, drafts: list[grv.Draft]) -> list[float | None]:
        return [None if draft.text == "3" else -float(draft.text) for draft in drafts]

    def verify(self, problem: grv.Problem, draft: grv.Draft) -> bool:
        return draft.text == "7"

    def key(self, problem: grv.Problem, draft: grv.Draft) -> str:
        return "small" if int(draft.text) < 5 else draft.text

    async def aclose(self) -> None:
        self.closed = True


def test_methods_need_not_be_asynchronous() -> None:
    model = PlainModel()
    solution = solve(generator=model, scorer=model, verifier=model, policy="fixed(8, 8)")

    assert solution.text == "7"
    assert max(model.firsts) == 6
    assert solution.bill.verified == 4  # one of the small ones, then 5, 6, 7
    assert solution.unscored == 1
    assert model.closed


def test_asynchronous_methods_may_return_plain_results() -> None:
    class Model:
        async def generate(self, problem: grv.Problem, n: int, *, first: int = 0) -> list[str]:
            return [str(first + number) for number in range(n)]

        async def score(self, problem: grv.Problem, drafts: list[grv.Draft]) -> list[Any]:
            return [Score(1.0) if draft.text == "7" else 0 for draft in drafts]

        async def verify(self, problem: grv.Problem, draft: grv.Draft) -> bool:
            return draft.text == "7"

    model = Model()
    solution = solve(generator=model, scorer=model, verifier=model, policy="fixed(8, 1)")
    assert (solution.text, solution.verified) == ("7", True)


def test_a_second_scorer_may_be_a_function_and_a_cascade_a_number() -> None:
    def exact(problem: grv.Problem, text: str) -> float:
        return float(text == "7")

    for cascade in (8, Cascade(top=8, cost=0.5)):
        solution = solve(second_scorer=exact, cascade=cascade, policy="fixed(8, 1)")
        assert solution.text == "7"
        assert solution.bill.rescored == 8


def test_a_key_gets_the_problem_and_a_text_like_a_scorer() -> None:
    def parity(problem: grv.Problem, text: str) -> str | None:
        assert problem.prompt == "count to seven"
        return "even" if int(text) % 2 == 0 else None

    solution = solve(key=parity)
    assert solution.bill.verified == 5  # 1, 2, 3, 5, 7


class Mine:
    """A policy without a name of its own."""

    def plan(self, pool: Pool, costs: grv.Costs) -> Any:
        while True:
            yield grv.Generate(2, "two more")
            yield grv.Verify(pool.best(1), "the best")


@pytest.mark.slow
def test_a_comparison_takes_policies_and_their_names_together() -> None:
    found = grv.compare(["default", Mine(), VerifyAll()], str(LOG), "1,10", orders=2)
    assert [row.policy for row in found.rows] == ["varied", "Mine", "verify-all"]
    assert grv.compare(VerifyAll(), LOG, orders=2)["verify-all"].cost == found["verify-all"].cost
    assert grv.compare({"mine": Mine(), "all": "verify-all"}, LOG, orders=2)["mine"].solved == 1


@pytest.mark.slow
def test_a_comparison_takes_a_path_or_a_frame() -> None:
    logs = [grv.Log.load(LOG), LOG, str(LOG), pd.read_csv(LOG), pl.read_csv(LOG)]
    costs = {grv.compare(["default"], log, (1, 10), orders=2)["default"].cost for log in logs}
    assert len(costs) == 1


def test_a_comparison_takes_one_price_list_or_several() -> None:
    one = grv.compare("default", LOG, (1, 100), orders=2)
    several = grv.compare("default", LOG, ["1,10", (1, 100), grv.Costs(1, 1000)], orders=2)
    assert [row.prices for row in several.rows] == ["1,10", "1,100", "1,1000"]
    assert several["default", "1,100"].cost == one["default"].cost


def test_a_comparison_prints_its_table() -> None:
    found = grv.compare("default", LOG, orders=2)
    assert str(found) == found.table()
    assert "varied" in str(found)


def test_a_solution_has_the_text_of_its_draft() -> None:
    assert solve().text == "7"
    assert solve(budget=0).text == ""


def test_an_outcome_of_the_core_is_at_its_door() -> None:
    search = grv.Search(grv.policies.Fixed(1, 1), grv.Costs())
    search.ask()
    search.tell(grv.Generated(()))
    assert isinstance(search.ask(), grv.Stop)
    assert isinstance(search.outcome, Outcome)


@pytest.mark.slow
def test_the_example_of_the_readme_has_strict_types(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    unknown = 'grv.solve_now("p", generator=str, scorer=max, verifier=max, buget=20)'
    files = {"readme": example, "wrong": f"import grv\n\n{unknown}\n"}
    for name, content in files.items():
        (tmp_path / f"{name}.py").write_text(content)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file=",
        "--cache-dir=.mypy_cache",
    ]
    shown = {
        name: subprocess.run(
            [*command, str(tmp_path / f"{name}.py")], cwd=ROOT, capture_output=True, text=True
        ).stdout
        for name in files
    }
    assert shown["readme"].startswith("Success"), shown["readme"]
    assert 'Unexpected keyword argument "buget"' in shown["wrong"]
