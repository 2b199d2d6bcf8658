"""Mistakes in Python: each is one line that says what to do, before anything is paid for.

A mistake that only a call can show stops the run before the second call.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import grv
from grv.core import Cascade, Pace
from grv.policies import Balanced
from grv.schedules import LeastSpent
from grv.verifiers import Finding

LOG = str(Path(grv.__file__).parent / "data" / "sample.csv")


class Spy:
    """Backends that count their calls."""

    def __init__(self) -> None:
        self.generated = 0
        self.scored = 0
        self.verified = 0

    def generate(self, problem: grv.Problem) -> str:
        self.generated += 1
        return str(self.generated)

    def score(self, problem: grv.Problem, text: str) -> float:
        self.scored += 1
        return 0.0

    def verify(self, problem: grv.Problem, text: str) -> bool:
        self.verified += 1
        return text == "7"

    def solve(self, **options: Any) -> grv.Solution:
        """Solve with these backends, unless the options have others."""
        given = {
            "generator": self.generate,
            "scorer": self.score,
            "verifier": self.verify,
            "budget": 200,
        }
        kept = {name: value for name, value in {**given, **options}.items() if value != "leave out"}
        return grv.solve_now("seven", **kept)


class NeedsArguments:
    def __init__(self, model: str) -> None:
        self.model = model

    async def verify(self, problem: grv.Problem, draft: grv.Draft) -> Finding:
        return Finding(grv.Verdict.PASSED)


class WrongMethod:
    def verify(self, draft: grv.Draft) -> bool:
        return True


BEFORE_ANY_CALL: list[tuple[str, dict[str, Any], str]] = [
    ("misspelt", {"buget": 20}, "solve_now has no option buget; did you mean budget?"),
    ("no such option", {"colour": 1}, "solve_now has no option colour; help(grv.solve_now) lists"),
    ("of the calls", {"concurrency": 4}, "write calls=grv.runtime.Calls(concurrency=...)"),
    ("of the pace", {"deadline": 4}, "write pace=grv.core.Pace(deadline=...)"),
    ("of the prices", {"prices": "p.toml"}, "write meter=grv.prices.Meter("),
    (
        "a score by name",
        {"scorer": "length"},
        "scorer='length': give 'auto', grv.scorers.Logprob()",
    ),
    ("no verifier", {"verifier": "leave out"}, "solve_now needs verifier=: a function of the"),
    ("costs: a number", {"costs": 10}, "costs=10: give grv.Costs(1, 10), (1, 10) or '1,10'"),
    ("costs: four texts", {"costs": "1,2,2,3"}, "costs='1,2,2,3': give two numbers"),
    ("costs: dear failures", {"costs": "1,2,3"}, "costs='1,2,3': a verification that fails cannot"),
    ("costs: free failures", {"costs": (1, 2, 0)}, "costs=(1, 2, 0): the cost of a verification"),
    ("costs: negative", {"costs": (1, -1)}, "costs=(1, -1): the cost to verify must be positive"),
    ("budget: text", {"budget": "much"}, "budget='much': give a number, as in budget=100"),
    ("budget: negative", {"budget": -1}, "budget=-1: give a number that is not negative"),
    ("budget: None", {"budget": None}, "budget=None: give a number"),
    ("budget: True", {"budget": True}, "budget=True: give a number"),
    ("value: nan", {"value": float("nan")}, "value=nan: give a number"),
    ("width: 0", {"width": 0}, "width=0: give a whole number from 1 to 1,000,000, or None"),
    ("answers: 1.5", {"answers": 1.5}, "answers=1.5: give a whole number from 1"),
    ("schedule: unknown", {"schedule": "cheapest"}, "unknown schedule 'cheapest'"),
    ("schedule: a number", {"schedule": 3}, "schedule=3: give 'least-spent', or grv.schedules"),
    ("schedule: a class", {"schedule": LeastSpent}, "(a class: call it): give 'least-spent'"),
    ("schedule: no money", {"schedule": "stream"}, "the schedule stream needs a total budget"),
    ("run_deadline: negative", {"run_deadline": -1}, "run_deadline=-1: give a number"),
    ("pace: seconds", {"pace": 60}, "pace=60: give grv.core.Pace(deadline=60)"),
    ("pace: a class", {"pace": Pace}, "(a class: call it): give grv.core.Pace(deadline=60)"),
    ("limits: a record", {"limits": {"budget": 5}}, "give grv.Limits(budget=500)"),
    ("ledger: a number", {"ledger": 5}, "ledger=5: give a path, or grv.ledger.open_ledger(...)"),
    ("calls: a number", {"calls": 8}, "calls=8: give grv.runtime.Calls(concurrency=8)"),
    ("keys: a function", {"keys": len}, "give True or False; a function is key="),
    ("about: text", {"about": "gpt"}, "about='gpt': give a mapping"),
    ("skip: one id", {"skip": "p1"}, "skip='p1': give a list of the ids of problems"),
    ("progress", {"progress": "bar"}, "progress='bar': give a function"),
    (
        "policy: misspelt",
        {"policy": "balancd"},
        "unknown policy 'balancd'; did you mean 'balanced'?",
    ),
    ("policy: a class", {"policy": Balanced}, "give a policy, as in Balanced(), or its name"),
    ("policy: a number", {"policy": 3}, "give a policy, as in Balanced(), or its name"),
    ("a model's name", {"generator": "gpt"}, "a generator must be callable, not str"),
    ("a list of generators", {"generator": [len]}, "give several generators by name, as in {"),
    ("no costs by generator", {"generator": {"a": len}}, "generator 'a' has no costs: give costs"),
    ("verifier: a bool", {"verifier": True}, "a verifier must be callable, not bool"),
    ("a class with arguments", {"verifier": NeedsArguments}, "verifier=NeedsArguments is a class:"),
    ("a method's signature", {"verifier": WrongMethod()}, "WrongMethod.verify takes (draft"),
    ("verifier's signature", {"verifier": lambda text: True}, "it must take (problem, text)"),
    ("scorer's signature", {"scorer": lambda p, t, n: 0.0}, "it must take (problem, text)"),
    ("generator's signature", {"generator": lambda: ""}, "takes (); it must take (problem)"),
    ("key's signature", {"key": lambda text: text}, "it must take (problem, text)"),
    ("key: text", {"key": "text"}, "key='text': give a function of the problem and a text"),
    ("no cascade", {"second_scorer": lambda p, t: 0.0}, "cascade=grv.core.Cascade(top=4)"),
    ("no second scorer", {"cascade": Cascade(4)}, "give second_scorer="),
    ("cascade: text", {"cascade": "best"}, "cascade='best': give grv.core.Cascade(top=4"),
    ("meter", {"meter": {"model": 1}}, "give grv.prices.Meter(prices, model)"),
]


@pytest.mark.parametrize(
    ("options", "said"), [case[1:] for case in BEFORE_ANY_CALL], ids=[c[0] for c in BEFORE_ANY_CALL]
)
def test_a_mistake_is_one_line_before_any_call(options: dict[str, Any], said: str) -> None:
    spy = Spy()
    with pytest.raises(grv.UsageError) as caught:
        spy.solve(**options)

    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert (spy.generated, spy.scored, spy.verified) == (0, 0, 0)


PROBLEMS: list[tuple[str, Callable[..., Any], Any, str]] = [
    ("a prompt for many", grv.solve_many_now, "abc", "give a list of problems, as in [problem]"),
    ("a problem for many", grv.solve_many_now, grv.Problem("p"), "give a list of problems"),
    ("a number for many", grv.solve_many_now, 5, "give a list of prompts or of grv.Problem, not 5"),
    ("a list with a number", grv.solve_many_now, ["a", 5], "give a prompt or a grv.Problem, not 5"),
    ("a list for one", grv.solve_now, ["a"], "give a prompt or a grv.Problem, not ['a']"),
    (
        "a check that is a text",
        grv.solve_now,
        grv.Problem("p", "x", "4"),  # type: ignore[arg-type]
        "problem p: check must be a mapping, as in {'kind': 'math'",
    ),
    ("no text", grv.solve_now, " ", "the prompt is empty: give a text or a grv.Problem"),
    ("many, awaited", grv.solve_many, "abc", "give a list of problems"),
    ("one, awaited", grv.solve, None, "give a prompt or a grv.Problem, not None"),
]


@pytest.mark.parametrize(
    ("solve", "problem", "said"), [case[1:] for case in PROBLEMS], ids=[c[0] for c in PROBLEMS]
)
def test_what_is_no_problem_is_one_line_at_the_call(
    solve: Callable[..., Any], problem: Any, said: str
) -> None:
    spy = Spy()
    with pytest.raises(grv.UsageError) as caught:
        solve(problem, generator=spy.generate, scorer=spy.score, verifier=spy.verify, budget=9)

    assert said in str(caught.value)
    assert spy.generated == 0


def test_the_checks_of_all_problems_are_looked_at_before_the_first_call() -> None:
    spy = Spy()
    problems = [grv.Problem("a", "x", {"kind": "math", "answer": "4"}), grv.Problem("b", "x")]
    with (
        grv.verifiers.Checks(workers=1) as verifier,
        pytest.raises(grv.UsageError, match=r"problem b, check\.kind: is missing"),
    ):
        grv.solve_many_now(
            problems, generator=spy.generate, scorer=spy.score, verifier=verifier, budget=99
        )
    assert spy.generated == 0


def test_an_error_shows_no_frames_of_the_event_loop() -> None:
    with pytest.raises(grv.RunStopped) as caught:
        Spy().solve(scorer=lambda problem, text: "good")

    files = {entry.path.name for entry in caught.traceback if hasattr(entry.path, "name")}
    assert files <= {"test_python_mistakes.py", "options.py", "solve.py"}
    assert caught.value.__cause__ is None


COMPARED: list[tuple[str, tuple[Any, ...], dict[str, Any], str]] = [
    ("misspelt", (["default"], LOG), {"ordrs": 3}, "compare has no option ordrs; did you mean"),
    ("a class", ([Balanced], LOG), {}, "give a policy, as in grv.policies.Balanced(), or its name"),
    ("no policy", ([], LOG), {}, "a comparison needs at least one policy and one price list"),
    ("a policy's name", (["balancd"], LOG), {}, "did you mean 'balanced'?"),
    ("no log", (["default"], 5), {}, "give a pandas or polars data frame"),
    ("no file", (["default"], "none.csv"), {}, "none.csv: cannot be read"),
    ("a number as costs", (["default"], LOG, 3), {}, "costs=3: give grv.Costs(1, 10), (1, 10)"),
    ("a text as orders", (["default"], LOG), {"orders": "x"}, "orders x: give a whole number"),
    ("a scheme", (["default"], LOG), {"order_scheme": "x"}, "give one of stable, paper, logged"),
]


@pytest.mark.parametrize(
    ("given", "options", "said"), [case[1:] for case in COMPARED], ids=[c[0] for c in COMPARED]
)
def test_a_mistake_in_a_comparison_is_one_line(
    given: tuple[Any, ...], options: dict[str, Any], said: str
) -> None:
    with pytest.raises(grv.GrvError) as caught:
        grv.compare(*given, **options)

    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def misspelt_name(*given: Any) -> Any:
    return undefined_name  # type: ignore[name-defined]  # noqa: F821


def missing_module(*given: Any) -> Any:
    import no_such_module_anywhere  # type: ignore[import-not-found]  # noqa: F401


def wrong_call(problem: grv.Problem) -> str:
    return len(5)  # type: ignore[arg-type, return-value]


def wrong_score(problem: grv.Problem, text: str) -> float:
    return len(5)  # type: ignore[arg-type]


class WrongDrafts:
    async def generate(self, problem: grv.Problem, n: int, *, first: int = 0) -> Any:
        return "one text"


class WrongScores:
    async def score(self, problem: grv.Problem, drafts: Any) -> Any:
        return ["good"] * len(drafts)


class WrongFinding:
    async def verify(self, problem: grv.Problem, draft: grv.Draft) -> Any:
        return "right"


AT_THE_FIRST_CALL: list[tuple[str, dict[str, Any], str]] = [
    ("generator: NameError", {"generator": misspelt_name}, "misspelt_name raised NameError"),
    ("generator: ImportError", {"generator": missing_module}, "raised ModuleNotFoundError"),
    ("generator: TypeError", {"generator": wrong_call}, "wrong_call raised TypeError: object of"),
    ("generator: a number", {"generator": lambda p: 5}, "returned 5 of type int; expected a text"),
    (
        "generate: one text",
        {"generator": WrongDrafts()},
        "WrongDrafts.generate returned 'one text'",
    ),
    ("scorer: a text", {"scorer": lambda p, t: "good"}, "returned 'good' of type str; expected a"),
    ("scorer: a list", {"scorer": lambda p, t: [1.0]}, "returned [1.0] of type list; expected a"),
    ("scorer: NameError", {"scorer": misspelt_name}, "misspelt_name raised NameError"),
    (
        "scorer: TypeError",
        {"scorer": wrong_score},
        "raised TypeError: object of type 'int'",
    ),
    ("scorer: no field", {"scorer": lambda p, t: p.answer}, "raised AttributeError: 'Problem'"),
    ("score: texts", {"scorer": WrongScores()}, "WrongScores.score returned ['good'"),
    ("verifier: a number", {"verifier": lambda p, t: 1.0}, "returned 1.0 of type float; expected"),
    ("verifier: nothing", {"verifier": lambda p, t: None}, "returned None of type NoneType;"),
    ("verifier: NameError", {"verifier": misspelt_name}, "misspelt_name raised NameError"),
    (
        "verify: a text",
        {"verifier": WrongFinding()},
        "WrongFinding.verify returned 'right' of type",
    ),
    ("key: a number", {"key": lambda p, t: 5}, "key returned 5 of type int; expected a text or"),
    (
        "key: a draft",
        {"key": lambda p, t: t.text},
        "key raised AttributeError: 'str' object has no",
    ),
]


@pytest.mark.parametrize(
    ("options", "said"),
    [case[1:] for case in AT_THE_FIRST_CALL],
    ids=[case[0] for case in AT_THE_FIRST_CALL],
)
def test_a_mistake_that_a_call_shows_stops_at_once(options: dict[str, Any], said: str) -> None:
    spy = Spy()
    started = time.monotonic()
    with pytest.raises(grv.GrvError) as caught:
        spy.solve(policy="verify-all", **options)

    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert spy.generated <= 1
    assert spy.verified == 0
    assert time.monotonic() - started < 5


def test_a_verifier_that_raises_is_shown_with_its_message_and_its_line() -> None:
    def verify(problem: grv.Problem, text: str) -> bool:
        raise LookupError("no such answer")

    solution = Spy().solve(verifier=verify)

    assert solution.outcome == "failed"
    line = verify.__code__.co_firstlineno + 1
    assert (
        f"raised LookupError: no such answer (test_python_mistakes.py:{line})" in solution.message
    )


def test_a_generator_that_cannot_connect_is_tried_again() -> None:
    calls: list[int] = []

    def generate(problem: grv.Problem) -> str:
        calls.append(1)
        if len(calls) < 3:
            raise ConnectionError("refused")
        return "7"

    calling = grv.runtime.Calls(first_pause=0.01)
    assert Spy().solve(generator=generate, calls=calling).verified
    assert len(calls) == 3


def test_a_search_without_any_limit_warns() -> None:
    with pytest.warns(UserWarning, match="a search without a limit pays until") as caught:
        assert grv.solve_now(
            "seven", generator=lambda p: "7", scorer=lambda p, t: 0.0, verifier=lambda p, t: True
        ).verified
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "limit",
    [
        {"budget": 50},
        {"value": 50},
        {"limits": grv.Limits(budget=50)},
        {"total_budget": 50},
        {"pace": Pace(deadline=60)},
        {"policy": "fixed(2, 1)"},
    ],
    ids=["budget", "value", "limits", "total budget", "deadline", "a plan that ends"],
)
def test_any_limit_is_enough(limit: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grv.solve_now(
            "seven",
            generator=lambda problem: "7",
            scorer=lambda problem, text: 0.0,
            verifier=lambda problem, text: True,
            **limit,
        )
