"""Orders: drawn for each problem on its own, or as the published experiment draws them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.core.errors import UsageError
from grv.logs.log import LoggedProblem
from grv.replay.orders import batches
from grv.replay.scheme import Scheme
from grv.testing import World, all_wrong, tied


def problem(id: str, candidates: int = 7, *, solvable: bool = True) -> LoggedProblem:
    world = World.of("1+") + all_wrong(candidates - 1) if solvable else all_wrong(candidates)
    return world.logged(id)


def drawn(
    problems: Sequence[LoggedProblem],
    *,
    scheme: Scheme | str = Scheme.STABLE,
    orders: int = 3,
    seed: int = 0,
) -> dict[str, list[list[int]]]:
    made = batches(problems, orders, seed=seed, scheme=scheme)
    return {batch.problem.id: batch.orders.tolist() for batch in made}


A, B, C = problem("a"), problem("b", 5), problem("c")


@pytest.mark.parametrize("scheme", ["stable", "paper"])
def test_an_order_brings_every_candidate_once(scheme: Scheme) -> None:
    for id, orders in drawn([A, B, C], scheme=scheme).items():
        assert all(sorted(order) == list(range(5 if id == "b" else 7)) for order in orders)


def test_stable_orders_do_not_change_when_other_problems_come_or_go() -> None:
    alone, among_others = drawn([B]), drawn([A, B, C])

    assert alone["b"] == among_others["b"] == drawn([C, B])["b"]


def test_stable_orders_do_not_change_when_more_are_drawn() -> None:
    assert drawn([A], orders=9)["a"][:3] == drawn([A], orders=3)["a"]


def test_stable_orders_differ_between_problems_numbers_and_seeds() -> None:
    found = drawn([A, C])

    assert found["a"] != found["c"]  # of the same size
    assert len({tuple(order) for order in found["a"]}) == 3
    assert drawn([A], seed=1)["a"] != found["a"]


@given(st.text(min_size=1).filter(lambda id: id.isprintable()), st.integers(0, 2**70))
def test_any_name_and_any_seed_give_the_same_orders_again(id: str, seed: int) -> None:
    assert drawn([problem(id)], seed=seed) == drawn([problem(id)], seed=seed)


def test_paper_orders_are_one_sequence_of_numpys_permutations() -> None:
    sequence = np.random.default_rng(5)
    expected = {
        "a": [sequence.permutation(7).tolist() for _ in range(3)],
        "b": [sequence.permutation(5).tolist() for _ in range(3)],
        "c": [sequence.permutation(7).tolist() for _ in range(3)],
    }

    assert drawn([A, B, C], scheme="paper", seed=5) == expected


def test_unsolvable_problems_do_not_disturb_the_papers_orders() -> None:
    hopeless = problem("aa", solvable=False)

    among = drawn([A, hopeless, B, C], scheme="paper")

    assert "aa" in among
    assert {id: among[id] for id in "abc"} == drawn([A, B, C], scheme="paper")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"orders": 0}, "at least 1 order, not 0"),
        ({"seed": -1}, "must not be negative, not -1"),
        ({"scheme": "random"}, "stable, paper, logged, not 'random'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        drawn([A], **arguments)  # type: ignore[arg-type]


def test_a_batch_tells_of_its_candidates_in_order_of_arrival() -> None:
    logged = World.of("1-x 3+y 2-x 3-").logged()

    (batch,) = batches([logged], 2, keyed=True)

    for row, order in enumerate(batch.orders.tolist()):
        assert batch.passed[row].tolist() == [logged.passed[i] for i in order]
        assert batch.levels[row].tolist() == [[2, 0, 1, 0][i] for i in order]
        assert batch.keys is not None
        assert batch.keys[row].tolist() == [[0, 1, 0, -1][i] for i in order]


def test_a_batch_has_no_keys_unless_they_count() -> None:
    logged = World.of("1-x 3+y").logged()

    assert next(batches([logged], 1)).keys is None
    assert next(batches([tied(5).logged()], 1, keyed=True)).keys is None


def test_ranks_are_by_score_then_by_arrival() -> None:
    logged = World.of("1- 3- 1- 3+ -inf-").logged()

    for batch in batches([logged], 5):
        for order, ranked in zip(batch.orders, batch.ranked, strict=True):
            arrived = logged.scores[order]
            assert ranked.tolist() == sorted(range(5), key=lambda at: (-arrived[at], at))
