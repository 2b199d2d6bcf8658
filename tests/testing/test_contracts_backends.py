"""The contracts catch what they are there to catch."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from grv.backends.protocols import Draft, Generator, Problem, Score, Scorer, Usage
from grv.testing.contracts_backends import GeneratorContract, ScorerContract

pytestmark = pytest.mark.anyio


class Wrong:
    """A generator of these drafts, whatever it is asked for."""

    def __init__(self, *drafts: Draft) -> None:
        self.drafts = drafts

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> Sequence[Draft]:
        return self.drafts


class Counting:
    """Says it is seeded and never says the same twice."""

    def __init__(self) -> None:
        self.count = itertools.count()

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> Sequence[Draft]:
        return [Draft(str(next(self.count))) for _ in range(n)]


class WrongScorer:
    def __init__(self, *scores: Score) -> None:
        self.scores = scores

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        return self.scores


def contract(generator: Generator, *, seeded: bool = False) -> GeneratorContract:
    made = GeneratorContract()
    made.make = lambda: generator  # type: ignore[method-assign]
    made.make_failing = lambda: generator  # type: ignore[method-assign]
    made.seeded = seeded  # type: ignore[misc]
    return made


def score_contract(scorer: Scorer) -> ScorerContract:
    made = ScorerContract()
    made.make = lambda: scorer  # type: ignore[method-assign]
    made.make_failing = lambda: scorer  # type: ignore[method-assign]
    return made


@pytest.mark.parametrize(
    "drafts",
    [
        (),
        (Draft("a"), Draft("b")),
        (Draft("half \ud83d"),),
        (Draft("a", ()),),
        (Draft("a", (float("nan"),)),),
        (Draft("a", usage=Usage(completion_tokens=-1)),),
    ],
    ids=["none", "too many", "half a character", "no tokens", "nan", "negative"],
)
async def test_wrong_drafts_are_noticed(drafts: tuple[Draft, ...]) -> None:
    with pytest.raises((AssertionError, UnicodeEncodeError)):
        await contract(Wrong(*drafts)).test_a_call_gives_some_drafts_and_never_more_than_asked(1)


async def test_seeds_that_make_no_difference_are_noticed() -> None:
    promises = contract(Counting(), seeded=True)
    with pytest.raises(AssertionError):
        await promises.test_a_seeded_one_gives_the_same_candidates_however_they_are_asked_for()
    with pytest.raises(AssertionError):
        await promises.test_several_problems_at_once_are_not_mixed_up()


async def test_a_failure_that_does_not_fail_is_noticed() -> None:
    with pytest.raises(pytest.fail.Exception):
        await contract(Wrong(Draft("a"))).test_a_failure_says_who_and_at_what()
    with pytest.raises(pytest.fail.Exception):
        await score_contract(WrongScorer(Score(1.0))).test_a_failure_says_who_and_at_what()


@pytest.mark.parametrize("score", [Score(None), Score(float("nan")), Score(float("inf"))], ids=str)
async def test_wrong_scores_are_noticed(score: Score) -> None:
    with pytest.raises(AssertionError):
        await score_contract(WrongScorer(*[score] * 5)).test_there_is_one_score_per_draft()


async def test_a_wrong_number_of_scores_is_noticed() -> None:
    with pytest.raises(AssertionError):
        await score_contract(WrongScorer(Score(1.0))).test_there_is_one_score_per_draft()
    with pytest.raises(AssertionError):
        await score_contract(WrongScorer(Score(1.0))).test_no_drafts_have_no_scores()
