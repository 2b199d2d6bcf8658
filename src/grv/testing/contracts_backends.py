"""The contracts of every generator and scorer, as tests to inherit. Needs the extra `testing`.

A subclass defines `make`::

    class TestMyGenerator(GeneratorContract):
        def make(self):
            return MyGenerator()
"""

# ruff: noqa: D102 (the names of the tests are sentences)

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Sequence
from typing import ClassVar, TypeVar

import pytest

from ..backends.protocols import Draft, Generator, Problem, Score, Scorer, Usage
from ..core.errors import BackendError, GeneratorError, ScorerError

PROBLEM = Problem("two-and-two", "What is two and two?\n")
OTHER = Problem("three-and-three", "What is three and three?\n")
_Backend = TypeVar("_Backend", Generator, Scorer)


class _Contract:
    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"


class GeneratorContract(_Contract):
    """Properties of every generator. Inherit, and define `make`.

    Set `seeded = True` if the generator gives the same candidates again, however they are divided
    into calls; a test then checks it.
    """

    seeded: ClassVar[bool] = False

    def make(self) -> Generator:
        """A generator that works."""
        raise NotImplementedError

    def make_failing(self) -> Generator | None:
        """One that cannot work because an outside service is down; None if it uses none."""
        return None

    @pytest.mark.anyio
    @pytest.mark.parametrize("n", [1, 3])
    async def test_a_call_gives_some_drafts_and_never_more_than_asked(self, n: int) -> None:
        async with _open(self.make()) as generator:
            drafts = await generator.generate(PROBLEM, n)

        assert 1 <= len(drafts) <= n
        for draft in drafts:
            _check_draft(draft)

    @pytest.mark.anyio
    async def test_asking_again_gives_the_rest(self) -> None:
        async with _open(self.make()) as generator:
            assert len(await _all(generator, PROBLEM, 3)) == 3

    @pytest.mark.anyio
    async def test_several_problems_at_once_are_not_mixed_up(self) -> None:
        async with _open(self.make()) as generator:
            calls = [_all(generator, problem, 2) for problem in (PROBLEM, OTHER) * 2]
            one, two, one_again, two_again = await asyncio.gather(*calls)
            assert len(one) == len(two) == 2
            if self.seeded:
                assert _texts(one) == _texts(one_again)
                assert _texts(two) == _texts(two_again)

    @pytest.mark.anyio
    async def test_a_seeded_one_gives_the_same_candidates_however_they_are_asked_for(self) -> None:
        if not self.seeded:
            pytest.skip("not seeded")
        async with _open(self.make()) as generator:
            whole = await _all(generator, PROBLEM, 4)
        async with _open(self.make()) as generator:
            late = await _all(generator, PROBLEM, 2, first=2)
            early = await _all(generator, PROBLEM, 2)
            single = await generator.generate(PROBLEM, 1, first=3)

        assert _texts(whole) == [*_texts(early), *_texts(late)]
        assert _texts(single) == _texts(whole[3:])

    def test_it_works_in_one_event_loop_after_another(self) -> None:
        generator = self.make()

        async def once() -> int:
            async with _open(generator):
                return len(await generator.generate(PROBLEM, 1))

        assert asyncio.run(once()) == asyncio.run(once()) == 1

    @pytest.mark.anyio
    async def test_a_failure_says_who_and_at_what(self) -> None:
        failing = self.make_failing()
        if failing is None:
            pytest.skip("it has nothing to fail at")
        async with _open(failing) as generator:
            with pytest.raises(GeneratorError) as caught:
                await generator.generate(PROBLEM, 2)

        _check_error(caught.value)


class ScorerContract(_Contract):
    """Properties of every scorer. Inherit, and define `make`."""

    def make(self) -> Scorer:
        """A scorer that works."""
        raise NotImplementedError

    def make_failing(self) -> Scorer | None:
        """One that cannot work because an outside service is down; None if it uses none."""
        return None

    @pytest.mark.anyio
    async def test_there_is_one_score_per_draft(self) -> None:
        drafts = [Draft(f"It is {n}.", (-0.1 * n, -0.2)) for n in range(1, 6)]
        async with _open(self.make()) as scorer:
            scores = await scorer.score(PROBLEM, drafts)

        assert len(scores) == len(drafts)
        for score in scores:
            _check_score(score)
            assert score.value is not None

    @pytest.mark.anyio
    async def test_scores_come_in_the_order_of_the_drafts(self) -> None:
        drafts = [Draft(f"It is {'so ' * n}{n}.", (-0.1 * n, -0.2)) for n in range(1, 5)]
        async with _open(self.make()) as scorer:
            forth = [score.value for score in await scorer.score(PROBLEM, drafts)]
            back = [score.value for score in await scorer.score(PROBLEM, drafts[::-1])]

        assert forth == back[::-1]

    @pytest.mark.anyio
    async def test_no_drafts_have_no_scores(self) -> None:
        async with _open(self.make()) as scorer:
            assert list(await scorer.score(PROBLEM, [])) == []

    @pytest.mark.anyio
    async def test_a_strange_draft_has_a_number_or_a_reason_and_spoils_no_other(self) -> None:
        good = Draft("It is four.", (-0.5, -0.2, -0.1))
        strange = [
            Draft(""),
            Draft(" \n"),
            Draft("It is", ()),
            Draft("\x00\u2028 {answer} \U0001f600"),
        ]
        async with _open(self.make()) as scorer:
            alone = await scorer.score(PROBLEM, [good])
            scores = await scorer.score(PROBLEM, [good, *strange, good])

        assert len(scores) == 6
        for score in scores:
            _check_score(score)
        assert scores[0].value == scores[-1].value == alone[0].value

    @pytest.mark.anyio
    async def test_a_failure_says_who_and_at_what(self) -> None:
        failing = self.make_failing()
        if failing is None:
            pytest.skip("it has nothing to fail at")
        async with _open(failing) as scorer:
            with pytest.raises(ScorerError) as caught:
                await scorer.score(PROBLEM, [Draft("It is four.", (-0.5,))])

        _check_error(caught.value)


@contextlib.asynccontextmanager
async def _open(backend: _Backend) -> AsyncIterator[_Backend]:
    """The backend, closed at the end if it has `aclose`."""
    try:
        yield backend
    finally:
        aclose = getattr(backend, "aclose", None)
        if aclose is not None:
            await aclose()


async def _all(generator: Generator, problem: Problem, n: int, *, first: int = 0) -> list[Draft]:
    """`n` drafts, requested until all have arrived."""
    drafts: list[Draft] = []
    while len(drafts) < n:
        some = await generator.generate(problem, n - len(drafts), first=first + len(drafts))
        assert some, "the generator ended early"
        drafts += some
    return drafts


def _texts(drafts: Sequence[Draft]) -> list[str]:
    return [draft.text for draft in drafts]


def _check_draft(draft: Draft) -> None:
    draft.text.encode()  # a text that cannot be encoded cannot be recorded
    assert draft.logprobs is None or (draft.logprobs and all(map(math.isfinite, draft.logprobs)))
    _check_usage(draft.usage)


def _check_score(score: Score) -> None:
    if score.value is None:
        assert score.reason
    else:
        assert math.isfinite(score.value)
    _check_usage(score.usage)


def _check_usage(usage: Usage) -> None:
    for name, value in usage.as_data().items():
        assert isinstance(value, int) or not name.endswith("_tokens")
        assert value is None or value >= 0
    assert usage.cached_tokens + usage.cache_write_tokens <= usage.prompt_tokens
    assert usage.reasoning_tokens <= usage.completion_tokens


def _check_error(error: BackendError) -> None:
    assert error.backend
    assert error.problem_id == PROBLEM.id
    assert str(error)
    assert "\n" not in str(error)
    assert error.retry_after is None or error.retry_after >= 0
