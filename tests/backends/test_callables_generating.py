from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from grv.backends.callables import CallableGenerator, CallableScorer
from grv.backends.protocols import Draft, Problem, Score, Usage
from grv.backends.scorers.length import LengthScorer
from grv.core.errors import GeneratorError, ScorerError, UsageError
from grv.testing.contracts_backends import GeneratorContract, ScorerContract
from support.selection import short

PROBLEM = Problem("p", "Say something")


def echo(problem: Problem) -> str:
    return f"to {problem.prompt}"


async def echo_later(problem: Problem) -> str:
    await asyncio.sleep(0)
    return f"to {problem.prompt}"


class Echo:
    async def __call__(self, problem: Problem) -> str:
        return await echo_later(problem)


def fail(*_: object) -> Any:
    raise LookupError("nothing\nto be found")


def unreachable(*_: object) -> Any:
    raise ConnectionResetError("gone")


class TestFunction(GeneratorContract):
    seeded = True

    def make(self) -> CallableGenerator:
        return CallableGenerator(echo)

    def make_failing(self) -> CallableGenerator:
        return CallableGenerator(unreachable)


class TestCoroutine(GeneratorContract):
    def make(self) -> CallableGenerator:
        return CallableGenerator(echo_later)


class TestScoring(ScorerContract):
    def make(self) -> CallableScorer:
        return CallableScorer(lambda problem, text: len(text) / len(problem.prompt))

    def make_failing(self) -> CallableScorer:
        return CallableScorer(unreachable)


class TestLength(ScorerContract):
    def make(self) -> LengthScorer:
        return LengthScorer()


@pytest.mark.anyio
@pytest.mark.parametrize(
    "function",
    [
        echo,
        echo_later,
        Echo(),
        functools.partial(echo),
        functools.partial(echo_later),
        lambda problem: echo_later(problem),
        lambda problem: Draft(echo(problem)),
    ],
)
async def test_any_kind_of_function_will_do(function: Callable[[Problem], Any]) -> None:
    drafts = await CallableGenerator(function).generate(PROBLEM, 2)

    assert [draft.text for draft in drafts] == ["to Say something"] * 2


@pytest.mark.anyio
async def test_none_means_that_there_are_no_more() -> None:
    texts = iter(["one", "two"])
    generator = CallableGenerator(lambda _: next(texts, None))

    assert [draft.text for draft in await generator.generate(PROBLEM, 5)] == ["one", "two"]
    assert await generator.generate(PROBLEM, 3, first=2) == []


@pytest.mark.anyio
async def test_what_was_made_before_a_failure_is_kept() -> None:
    texts = iter(["one", "two"])
    generator = CallableGenerator(lambda _: next(texts))

    assert len(await generator.generate(PROBLEM, 5)) == 2
    with pytest.raises(GeneratorError, match=r"raised StopIteration"):
        await generator.generate(PROBLEM, 3, first=2)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (fail, "fail raised LookupError: nothing"),
        (lambda _: 5, r"<lambda> returned int, not a text"),
        (lambda: "", "raised TypeError"),
        (lambda _: exit(3), "raised SystemExit: 3"),
    ],
)
async def test_whatever_goes_wrong_is_an_error_of_the_generator(
    function: Callable[..., Any], message: str
) -> None:
    with pytest.raises(GeneratorError, match=message) as caught:
        await CallableGenerator(function).generate(PROBLEM, 1)

    assert caught.value.problem_id == "p"
    assert caught.value.backend


@pytest.mark.anyio
async def test_an_error_of_the_generator_is_left_as_it_is() -> None:
    error = GeneratorError("too many", retry_after=3.0)

    def refuse(_: Problem) -> str:
        raise error

    with pytest.raises(GeneratorError) as caught:
        await CallableGenerator(refuse).generate(PROBLEM, 1)
    assert caught.value is error


@pytest.mark.anyio
async def test_plain_functions_do_not_stand_in_one_anothers_way() -> None:
    together = threading.Barrier(40, timeout=20)

    def wait(_: Problem) -> str:
        together.wait()  # until all forty are here
        return "met"

    generator = CallableGenerator(wait)
    drafts = await asyncio.gather(*(generator.generate(PROBLEM, 1) for _ in range(40)))

    assert [draft.text for (draft,) in drafts] == ["met"] * 40


@pytest.mark.anyio
async def test_a_function_that_hangs_can_be_left_alone() -> None:
    ending = threading.Event()

    def hang(_: Problem) -> str:
        ending.wait(60)
        return "at last"

    started = time.monotonic()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(CallableGenerator(hang).generate(PROBLEM, 1), 0.1)

    assert time.monotonic() - started < 30
    ending.set()


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("said", "value", "reason"),
    [
        (2, 2.0, ""),
        (True, 1.0, ""),
        (None, None, "the score is None"),
        (float("nan"), None, "the score is nan"),
        (float("inf"), None, "the score is inf"),
        (10**400, None, "the score is 1000"),
        ("0.5", None, "the score is '0.5'"),
        (Score(None, reason="too dull"), None, "too dull"),
    ],
    ids=short,
)
async def test_anything_but_a_finite_number_is_no_score(
    said: Any, value: float | None, reason: str
) -> None:
    (score,) = await CallableScorer(lambda problem, text: said).score(PROBLEM, [Draft("x")])

    assert score.value == value
    assert score.reason.startswith(reason)


@pytest.mark.anyio
async def test_a_draft_that_the_function_raises_at_has_no_score_and_the_others_have() -> None:
    async def invert(problem: Problem, text: str) -> float:
        return 1 / len(text)

    scores = await CallableScorer(invert).score(PROBLEM, [Draft("x"), Draft(""), Draft("ab")])

    assert [score.value for score in scores] == [1.0, None, 0.5]
    said = "raised ZeroDivisionError: division by zero (test_callables_generating.py:"
    assert scores[1].reason.startswith(said)
    assert scores[0].usage.seconds >= 0


@pytest.mark.anyio
async def test_a_scorer_that_asks_to_be_tried_again_is() -> None:
    def refuse(problem: Problem, text: str) -> float:
        raise ScorerError("busy", retry_after=2.0)

    with pytest.raises(ScorerError) as caught:
        await CallableScorer(refuse).score(PROBLEM, [Draft("x")])
    assert caught.value.retry_after == 2.0


@pytest.mark.anyio
async def test_shorter_is_better_unless_longer_is() -> None:
    drafts = [Draft("ab"), Draft("abcd"), Draft(" ")]
    short, long = [
        await LengthScorer(longer=longer).score(PROBLEM, drafts) for longer in (False, True)
    ]

    assert [score.value for score in short] == [-2.0, -4.0, None]
    assert [score.value for score in long] == [2.0, 4.0, None]
    assert short[2] == Score(None, Usage(), "the text is empty")


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(UsageError, match="a generator must be callable, not str"):
        CallableGenerator("echo")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="a scorer must be callable, not int"):
        CallableScorer(3)  # type: ignore[arg-type]


def test_their_reprs_name_the_function() -> None:
    assert repr(CallableGenerator(echo)) == "CallableGenerator(echo)"
    assert repr(CallableScorer(fail)) == "CallableScorer(fail)"
    assert repr(LengthScorer()) == "LengthScorer(longer=False)"
