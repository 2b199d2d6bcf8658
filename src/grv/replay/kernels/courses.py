"""The courses of searches of `learned` that look ahead.

The searches advance together, as with width 1, but run on beyond their first pass, as if it had
failed: to the end of its block and one verification more, because what comes after a block decides
what is generated meanwhile. Then `Blocks` counts what each search requests.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...core.limits import Limits
from ...core.values import Costs
from .blocks import Blocks, Solved
from .stacked_orders import Flags, Places, StackedOrders

_NEVER = np.iinfo(np.int32).max


class Courses:
    """The verifications of each search in order; arrays are `[searches, verifications]`.

    Attributes:
        ranks: the rank of the candidate.
        asked: how many candidates the search had asked for, one at a time.
    """

    def __init__(self, searches: int, longest: int, costs: Costs, limits: Limits) -> None:
        self.ranks, self.asked = np.zeros((2, searches, longest), dtype=np.int32)
        self._ends = np.full(searches, _NEVER)  # the verification after which a course is known
        self._known = _known(longest, limits)
        self._costs = costs
        self._limits = limits

    def add(
        self, who: Places, number: Places, ranks: Places, asked: Places, passes: Flags
    ) -> Flags:
        """Add verification `number` of each of these searches; return whether it was the last."""
        self.ranks[who, number - 1] = ranks
        self.asked[who, number - 1] = asked
        ends = np.minimum(self._ends[who], np.where(passes, self._known[number], _NEVER))
        self._ends[who] = ends
        over: Flags = number >= ends
        return over

    def counted(
        self, stack: StackedOrders, of: Places, verified: Places, asked: Places
    ) -> tuple[NDArray[np.int32], Flags]:
        """What the searches have requested, and `[searches, ranks]`: what they have verified.

        Args:
            stack: the orders.
            of: the order of each search.
            verified: the length of its course.
            asked: how many candidates it has asked for, in all.

        Returns:
            `[searches, 6]`: whether it is solved, and `Blocks.counts`.
        """
        counts = np.zeros((len(of), 6), dtype=np.int32)
        checked = np.zeros((len(of), stack.ranks.shape[1]), dtype=np.bool_)
        lengths = verified.tolist()
        candidates = stack.sizes[of].tolist()
        problems = [batch.problem.id for batch in stack.batches for _ in range(batch.size)]
        for at, (length, last) in enumerate(zip(lengths, asked.tolist(), strict=True)):
            ranks = self.ranks[at, :length]
            limits = self._limits.of(problems[of[at]])
            blocks = Blocks(self._costs, limits, candidates[at])
            passes = stack.passed[of[at], ranks].tolist()
            solved = _run(blocks, self.asked[at, :length].tolist(), passes, last)
            counts[at] = solved, *blocks.counts
            checked[at, ranks[: blocks.verified]] = True
        return counts, checked


def _run(blocks: Blocks, asked: list[int], passes: list[bool], last: int) -> bool:
    """Follow one course; return whether the search is solved."""
    before = 0
    try:
        for now, passed in zip(asked, passes, strict=True):
            blocks.draw(now - before)
            blocks.verify(passed)
            before = now
        blocks.draw(last - before)
        blocks.finish()
    except Solved:
        return True
    return False


def _known(longest: int, limits: Limits) -> NDArray[np.int32]:
    """How many verifications have to be known if the first pass has a number: `[numbers]`.

    The block of the first pass ends at most `width - 1` later; with the ramp, at twice its number.
    """
    pace = limits.pace
    numbers = np.arange(longest + 1, dtype=np.int32)
    most = numbers + (limits.width or 1) - 1
    return 1 + (np.minimum(2 * numbers, most) if pace.ramp and not pace.wait_price else most)
