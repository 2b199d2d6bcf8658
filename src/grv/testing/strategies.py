"""Hypothesis strategies: worlds full of ties, price lists and limits. Needs the extra `testing`."""

from __future__ import annotations

import functools
import itertools
import math

from hypothesis import strategies as st

from ..core.limits import Limits
from ..core.pace import Pace
from ..core.values import REFUTED, Costs, Latency, Verdict
from .worlds import World

_SCORES = (0.0, 1.0, 2.0, 0.5, -math.inf)
_FAILURES = tuple((Verdict.FAILED, key) for key in (None, "f", "g", REFUTED))
_PASSES = ((Verdict.PASSED, None), (Verdict.PASSED, "p"))
_BROKEN = ((Verdict.BROKEN, None), (Verdict.BROKEN, "f"), (Verdict.BROKEN, "p"))


@st.composite
def worlds(
    draw: st.DrawFn,
    *,
    candidates: int = 16,
    broken: bool = True,
    keys: bool = True,
    most_broken: int | None = None,
) -> World:
    """Small worlds with at most `candidates` candidates, few different scores, and therefore ties.

    Half of them have no pass. Keys agree with the verdicts.

    Args:
        draw: provided by hypothesis.
        candidates: the highest number of candidates.
        broken: whether verdicts may be broken.
        keys: whether candidates may have keys, among them `REFUTED`.
        most_broken: the highest number of broken verdicts; others become failures. A live search
            ends at the third broken verdict in a row.
    """
    drawn = draw(_candidates(candidates, broken, keys, passes=draw(st.booleans())))
    if most_broken is not None:
        at = [i for i, (_, kind) in enumerate(drawn) if kind[0] is Verdict.BROKEN]
        for i in at[most_broken:]:
            drawn[i] = (drawn[i][0], (Verdict.FAILED, None))
    names = tuple(key for _, (_, key) in drawn)
    return World(
        tuple(score for score, _ in drawn),
        tuple(verdict for _, (verdict, _) in drawn),
        names if any(names) else (),
    )


@functools.cache  # building a strategy takes longer than drawing from it
def _candidates(
    most: int, broken: bool, keys: bool, passes: bool
) -> st.SearchStrategy[list[tuple[float, tuple[Verdict, str | None]]]]:
    kinds = _FAILURES + (_BROKEN if broken else ()) + (_PASSES if passes else ())
    kinds = tuple(kind for kind in kinds if keys or kind[1] is None)
    # One choice per candidate: hypothesis draws and shrinks it much faster than three.
    return st.lists(st.sampled_from(list(itertools.product(_SCORES, kinds))), max_size=most)


def price_lists() -> st.SearchStrategy[Costs]:
    """Price lists of very different ratios; some prices have no exact binary form.

    In some of them a verification that fails costs less than one that passes.
    """
    return st.sampled_from(
        [
            Costs(generate=1, verify=10),
            Costs(generate=1, verify=1),
            Costs(generate=0.1, verify=0.7),
            Costs(generate=3, verify=0.1, score=0.3),
            Costs(generate=1, verify=100),
            Costs(generate=1e-9, verify=1e9),
            Costs(generate=1, verify=10, failure=3),
            Costs(generate=0.1, verify=0.7, failure=0.3, score=0.2),
        ]
    )


def widths() -> st.SearchStrategy[int | None]:
    """The number of verifications in flight."""
    return st.sampled_from([None, 1, 2, 5])


def paces() -> st.SearchStrategy[Pace]:
    """How far a search looks ahead, if its width is above 1."""
    timed = Pace(wait_price=1.0, latency=Latency(5, 30))
    return st.sampled_from(
        [Pace(overlap=False), Pace(), Pace(ramp=False), Pace(random_phase=True), timed]
    )


def budgets() -> st.SearchStrategy[float]:
    """Budgets from zero to infinity."""
    return st.one_of(st.just(math.inf), st.sampled_from([0.0, 0.3, 0.7, 11.0]), st.floats(0, 200))


@st.composite
def limits(draw: st.DrawFn) -> Limits:
    """A width, a budget and a pace."""
    return Limits(width=draw(widths()), budget=draw(budgets()), pace=draw(paces()))
