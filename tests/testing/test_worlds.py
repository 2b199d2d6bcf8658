"""Worlds are valid when they exist, read as they are written, and are what they are called."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given

from grv.core.errors import UsageError
from grv.core.values import CandidateId, Generate, Generated, Verdict, Verified, Verify
from grv.testing import (
    World,
    all_wrong,
    empty,
    flat,
    inverted,
    labelled,
    needle,
    population,
    star,
    tied,
)
from grv.testing.strategies import worlds
from grv.testing.worlds import Population

PASSED, FAILED, BROKEN = Verdict.PASSED, Verdict.FAILED, Verdict.BROKEN


class TestAWorld:
    def test_is_written_as_scores_with_marks_and_keys(self) -> None:
        assert World.of("3- 2.5+ -1e-5?a -inf-b7 2-") == World(
            (3, 2.5, -1e-5, -float("inf"), 2),
            (FAILED, PASSED, BROKEN, FAILED, FAILED),
            (None, None, "a", "b7", None),
        )

    def test_has_no_keys_where_none_is_written(self) -> None:
        assert World.of("3- 2+").keys == ()
        assert World.of("") == empty()

    @given(worlds())
    def test_reads_as_it_is_written(self, world: World) -> None:
        assert World.of(str(world)) == world
        assert repr(world) == f"World.of({str(world)!r})"

    @pytest.mark.parametrize("word", ["3", "+", "x+", "3*", "1e+", "nan-"])
    def test_refuses_what_is_no_candidate(self, word: str) -> None:
        with pytest.raises(UsageError, match="not a candidate") as caught:
            World.of(f"1- {word} 2+")
        assert repr(word) in str(caught.value)

    def test_refuses_parts_of_different_lengths(self) -> None:
        with pytest.raises(UsageError, match="2 scores, 1 verdicts, 0 keys"):
            World((1, 2), (FAILED,))
        with pytest.raises(UsageError, match="1 scores, 1 verdicts, 2 keys"):
            World((1,), (FAILED,), (None, None))

    def test_refuses_a_score_that_is_no_number(self) -> None:
        with pytest.raises(UsageError, match="a score cannot be NaN"):
            World((float("nan"),), (FAILED,))

    def test_refuses_a_key_that_both_passes_and_fails(self) -> None:
        assert World.of("1-a 2?a 1-a")
        with pytest.raises(UsageError, match="the key 'a' both passes and fails"):
            World.of("1-a 2?a 1+a")

    @pytest.mark.parametrize("key", ["", "a b"])
    def test_refuses_a_key_that_is_not_one_word(self, key: str) -> None:
        with pytest.raises(UsageError, match=f"a key must be one word, not {key!r}"):
            World((1,), (FAILED,), (key,))

    def test_gives_candidates_in_order_until_there_are_no_more(self) -> None:
        world = World.of("1- 2-a 3+")

        assert world.event(Generate(2), seen=0) == Generated((1, 2), (None, "a"))
        assert world.event(Generate(2), seen=2) == Generated((3,), (None,))
        assert world.event(Generate(2), seen=3) == Generated((), ())

    def test_gives_the_verdict_that_it_has(self) -> None:
        ids = (CandidateId(2), CandidateId(1))

        assert World.of("1- 2? 3+").event(Verify(ids), seen=3) == Verified({2: PASSED, 1: BROKEN})  # type: ignore[dict-item]

    def test_can_be_cut_and_continued(self) -> None:
        world = World.of("1- 2-a 3+")

        assert world.first(2) == World.of("1- 2-a")
        assert world.first(2) + World.of("5+") == World.of("1- 2-a 5+")
        assert World.of("5+") + World.of("1-") == World.of("5+ 1-")
        assert len(world) == 3

    def test_can_be_replayed(self) -> None:
        problem = World.of("1- 2-a 3+ -inf-a").logged("p1")

        assert problem.id == "p1"
        assert problem.scores.tolist() == [1, 2, 3, -float("inf")]
        assert problem.passed.tolist() == [False, False, True, False]
        assert problem.keys is not None
        assert problem.keys.tolist() == [-1, 0, -1, 0]
        assert World.of("1-").logged().keys is None

    def test_can_not_be_replayed_where_a_verdict_is_broken(self) -> None:
        with pytest.raises(UsageError, match="a log has no broken verdicts"):
            World.of("1?").logged()


class TestTheMakers:
    def test_nothing_to_give(self) -> None:
        assert len(empty()) == 0
        assert not empty().solvable

    def test_nothing_passes(self) -> None:
        assert set(all_wrong(40).verdicts) == {FAILED}
        assert len(set(all_wrong(40).scores)) < 40

    def test_one_needle_above_the_hay(self) -> None:
        assert needle(4, at=2) == World.of("0- 0- 1+ 0-")

    def test_ties_abound_and_the_higher_pass_more_often(self) -> None:
        world = tied(900, levels=3, pass_rate=0.3)

        passes = {level: 0 for level in (0.0, 1.0, 2.0)}
        for score, verdict in zip(world.scores, world.verdicts, strict=True):
            passes[score] += verdict is PASSED
        assert passes[0] == 0 < passes[1] < passes[2]

    def test_a_flat_score_says_nothing(self) -> None:
        world = flat(2000, pass_rate=0.3, levels=2)

        rates = [
            np.mean(
                [v is PASSED for s, v in zip(world.scores, world.verdicts, strict=True) if s == x]
            )
            for x in (0, 1)
        ]
        assert rates == pytest.approx([0.3, 0.3], abs=0.05)

    def test_an_inverted_score_misleads(self) -> None:
        world = inverted(200, pass_rate=0.2)

        scored = list(zip(world.scores, world.verdicts, strict=True))
        worst_pass = max(score for score, verdict in scored if verdict is PASSED)
        assert all(score > worst_pass for score, verdict in scored if verdict is FAILED)

    def test_a_star_hides_its_passes_at_one_level(self) -> None:
        world = star(100, levels=5, hidden=3)

        scored = zip(world.scores, world.verdicts, strict=True)
        assert all((verdict is PASSED) == (score == 3) for score, verdict in scored)
        assert world.solvable

    def test_the_same_seed_makes_the_same_world(self) -> None:
        for maker in (tied, flat, inverted):
            assert maker(50, seed=1) == maker(50, seed=1) != maker(50, seed=2)

    def test_any_world_can_be_given_by_a_function(self) -> None:
        assert labelled(3, lambda i: (-i, i == 1)) == World.of("0- -1+ -2-")


def auc(scores: np.ndarray, passed: np.ndarray) -> float:
    """The chance that a pass outscores a failure."""
    return float((scores[passed][:, None] > scores[~passed][None, :]).mean())


class TestThePopulations:
    def test_all_problems_are_solvable_and_of_the_size_asked_for(self) -> None:
        log = population("math", problems=40, candidates=30, seed=3)

        assert len(log.problems) == 40
        assert all(problem.solvable and len(problem) == 30 for problem in log.problems)
        assert log.problems[7].id == "math-0007"

    def test_more_problems_do_not_change_the_first_ones(self) -> None:
        few = population("coding", problems=3, candidates=50, seed=1).problems
        more = population("coding", problems=5, candidates=50, seed=1).problems

        for one, other in zip(few, more, strict=False):
            assert one.id == other.id
            assert np.array_equal(one.scores, other.scores)
            assert np.array_equal(one.passed, other.passed)

    def test_seeds_and_problems_differ(self) -> None:
        first, second = population("coding", problems=2, candidates=50).problems
        other = population("coding", problems=1, candidates=50, seed=1).problems[0]

        assert not np.array_equal(first.scores, second.scores)
        assert not np.array_equal(first.scores, other.scores)

    @pytest.mark.parametrize(
        ("name", "area", "slowest", "fastest"),
        # The paper's AUC figures; the ranges of pass rates are those of the table of parameters.
        [("coding", 0.865, 10**-3.648, 10**-0.153), ("math", 0.610, 10**-2.824, 10**-0.398)],
    )
    def test_scores_separate_as_well_as_the_papers(
        self, name: str, area: float, slowest: float, fastest: float
    ) -> None:
        problems = population(name, problems=300).problems

        areas = [auc(p.scores, p.passed) for p in problems if not p.passed.all()]
        rates = [p.pass_rate for p in problems]
        assert np.mean(areas) == pytest.approx(area, abs=0.03)
        assert max(rates) < fastest + 0.1
        assert min(rates) < 10 * slowest

    def test_a_problem_is_drawn_as_its_law_says(self) -> None:
        # A pass rate of 1 in 10 and a separation of -3 for every problem; all failures deceive.
        law = Population(-1, -1, 2, 2, -3, 0, 0.5, 0.1, deceptive=1)
        liar = law.problem("p", 4000, (0, 0))
        honest = dataclasses.replace(law, deceptive=0).problem("p", 4000, (0, 0))

        assert liar.pass_rate == pytest.approx(0.1, abs=0.02)
        for problem, failures in ((liar, (3, 0.1)), (honest, (0, 1))):
            passes, others = problem.scores[problem.passed], problem.scores[~problem.passed]
            assert (passes.mean(), passes.std()) == pytest.approx((-3, 0.1), abs=0.05)
            assert (others.mean(), others.std()) == pytest.approx(failures, abs=0.05)

    def test_an_unknown_one_is_refused(self) -> None:
        with pytest.raises(
            UsageError, match=r"unknown population 'poetry'; choose one of coding, math"
        ):
            population("poetry")


def test_the_room_can_be_entered_without_numpy_pytest_or_hypothesis() -> None:
    code = "import sys, grv.testing; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert not loaded & {"numpy", "pytest", "hypothesis"}


def test_the_contract_is_there_when_asked_for() -> None:
    import grv.testing
    from grv.testing.contracts import PolicyContract

    assert grv.testing.PolicyContract is PolicyContract
    with pytest.raises(AttributeError, match="no attribute 'PoemContract'"):
        _ = grv.testing.PoemContract
