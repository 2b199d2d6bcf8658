r"""Sets of real numbers: intervals, inequalities in one variable, and what is made of them.

A region is compared by its normal form: the disjoint intervals that it consists of, in their order.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence as Several
from dataclasses import dataclass
from fractions import Fraction

from .equality import AnswerComparison, substituted
from .exact import Undecided
from .scalars import negative
from .tree import (
    Call,
    Infinity,
    Name,
    Number,
    Power,
    Product,
    Quantity,
    RelationChain,
    Scalar,
    Sequence,
    Shape,
    Sum,
    names,
)
from .words import NO_UNIT

End = Quantity | Infinity
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!="}
_LEAST = Infinity(False)
_MOST = Infinity(True)
_MOST_INTERVALS = 40
ALL = Shape("or", (Sequence("(", (_LEAST, _MOST), ")"),))


@dataclass(frozen=True, slots=True)
class RealInterval:
    """The numbers between two ends, with or without each of them."""

    low: End
    with_low: bool
    high: End
    with_high: bool


def is_interval(answer: object) -> bool:
    """Whether an answer is written as an interval."""
    return (
        isinstance(answer, Sequence)
        and answer.opening in {"(", "["}
        and answer.closing in {")", "]"}
        and len(answer.members) == 2
    )


class Line:
    """Computes with sets of real numbers."""

    def __init__(self, comparison: AnswerComparison) -> None:
        self._comparison = comparison

    def intervals(self, shape: Shape | Sequence | RelationChain) -> list[RealInterval]:
        """The disjoint intervals of a set in their order.

        Raises:
            Undecided: the set is not known, or its conditions contradict each other.
        """
        match shape:
            case Sequence():
                return self._union([_interval(shape)])
            case RelationChain():
                return self._solved(shape)
            case Shape("or", parts):
                return self._union([x for part in parts for x in self.intervals(part)])
            case Shape("and", parts):
                common = functools.reduce(self._intersection, map(self.intervals, parts))
                if not common:
                    raise Undecided("conditions that contradict each other")
                return common
            case Shape(_, (whole, *others)):
                left = self.intervals(whole)
                for other in others:
                    left = self._intersection(left, self._complement(self.intervals(other)))
                return left
            case _:
                raise Undecided("an empty set")

    def same(self, these: Several[RealInterval], those: Several[RealInterval]) -> bool:
        """Whether two lists of disjoint intervals are the same set."""
        return len(these) == len(those) and all(
            a.with_low == b.with_low
            and a.with_high == b.with_high
            and self._order(a.low, b.low) == 0
            and self._order(a.high, b.high) == 0
            for a, b in zip(these, those, strict=True)
        )

    def _order(self, a: End, b: End) -> int:
        """-1, 0 or 1."""
        if isinstance(a, Infinity) or isinstance(b, Infinity):
            ranks = [(1 if x.positive else -1) if isinstance(x, Infinity) else 0 for x in (a, b)]
            return (ranks[0] > ranks[1]) - (ranks[0] < ranks[1])
        if a == b:
            return 0
        if a.unit != NO_UNIT or b.unit != NO_UNIT:
            raise Undecided("an interval with units")
        return self._comparison.sign(Sum((a.scalar, negative(b.scalar))))

    def _union(self, intervals: list[RealInterval]) -> list[RealInterval]:
        if len(intervals) > _MOST_INTERVALS:
            raise Undecided("too many intervals")
        kept = [x for x in intervals if not self._is_empty(x)]
        ordered = sorted(kept, key=functools.cmp_to_key(self._by_low))
        union: list[RealInterval] = []
        for interval in ordered:
            if union and self._touch(union[-1], interval):
                union[-1] = self._hull(union[-1], interval)
            else:
                union.append(interval)
        return union

    def _is_empty(self, interval: RealInterval) -> bool:
        order = self._order(interval.low, interval.high)
        return order > 0 or (order == 0 and not (interval.with_low and interval.with_high))

    def _by_low(self, a: RealInterval, b: RealInterval) -> int:
        return self._order(a.low, b.low) or b.with_low - a.with_low

    def _touch(self, a: RealInterval, b: RealInterval) -> bool:
        order = self._order(a.high, b.low)
        return order > 0 or (order == 0 and (a.with_high or b.with_low))

    def _hull(self, a: RealInterval, b: RealInterval) -> RealInterval:
        order = self._order(a.high, b.high)
        if order > 0:
            return a
        with_high = a.with_high or b.with_high if order == 0 else b.with_high
        return RealInterval(a.low, a.with_low, b.high, with_high)

    def _complement(self, intervals: list[RealInterval]) -> list[RealInterval]:
        ends: list[tuple[End, bool]] = [(_LEAST, False)]
        for interval in intervals:
            ends += [(interval.low, not interval.with_low), (interval.high, not interval.with_high)]
        ends.append((_MOST, False))
        pairs = zip(ends[::2], ends[1::2], strict=True)
        gaps = [
            RealInterval(low, with_low, high, with_high)
            for (low, with_low), (high, with_high) in pairs
        ]
        return [gap for gap in gaps if not self._is_empty(gap)]

    def _intersection(
        self, these: list[RealInterval], those: list[RealInterval]
    ) -> list[RealInterval]:
        outside = [*self._complement(these), *self._complement(those)]
        return self._complement(self._union(outside))

    # Inequalities -------------------------------------------------------------------------------

    def _solved(self, chain: RelationChain) -> list[RealInterval]:
        """The solutions of inequalities that are linear in a variable or its absolute value."""
        solutions = [
            self._solution(left, sign, right)
            for (left, right), sign in zip(
                itertools.pairwise(chain.sides), chain.signs, strict=True
            )
        ]
        return functools.reduce(self._intersection, solutions)

    def _solution(self, left: End, sign: str, right: End) -> list[RealInterval]:
        if isinstance(right, Quantity) and names(right.scalar):
            if isinstance(left, Quantity) and names(left.scalar):
                difference = Quantity(Sum((left.scalar, negative(right.scalar))))
                return self._solution(difference, sign, Quantity(Number(Fraction(0))))
            return self._solution(right, _FLIPPED[sign], left)
        if isinstance(left, Infinity) or not names(left.scalar):
            raise Undecided("an inequality without a variable")
        match left.scalar:
            case Call("abs", (inside,)) if isinstance(right, Quantity):
                return self._around_zero(inside, sign, right)
            case scalar:
                return self._linear_solution(scalar, sign, right)

    def _linear_solution(self, scalar: Scalar, sign: str, bound: End) -> list[RealInterval]:
        """The solutions of a linear expression compared with a constant."""
        if not isinstance(scalar, Name):
            variables = names(scalar)
            if len(variables) != 1:
                raise Undecided("an inequality in several variables")
            (name,) = variables
            constant = substituted(scalar, {name: Fraction(0)})
            slope = Sum((substituted(scalar, {name: Fraction(1)}), negative(constant)))
            line = Sum((constant, Product((slope, Name(name)))))
            if not self._comparison.equal(scalar, line):
                raise Undecided("an inequality that is not linear")
            direction = self._comparison.sign(slope)
            if direction == 0:
                raise Undecided("an inequality without a variable")
            sign = sign if direction > 0 else _FLIPPED[sign]
            if isinstance(bound, Infinity):
                bound = bound if direction > 0 else Infinity(not bound.positive)
            else:
                above = Sum((bound.scalar, negative(constant)))
                bound = Quantity(Product((above, Power(slope, Number(Fraction(-1))))))
        match sign:
            case "<" | "<=":
                return self._union([RealInterval(_LEAST, False, bound, sign == "<=")])
            case ">" | ">=":
                return self._union([RealInterval(bound, sign == ">=", _MOST, False)])
            case _:
                return self._complement([RealInterval(bound, True, bound, True)])

    def _around_zero(self, inside: Scalar, sign: str, bound: Quantity) -> list[RealInterval]:
        """The solutions of |u| compared with a constant."""
        opposite = Quantity(negative(bound.scalar))
        if self._comparison.sign(bound.scalar) <= 0:
            raise Undecided("an absolute value compared with a number that is not positive")
        above = self._linear_solution(inside, sign, bound)
        below = self._linear_solution(inside, _FLIPPED[sign], opposite)
        if sign[0] == ">":
            return self._union([*above, *below])
        return self._intersection(above, below)


def _interval(sequence: Sequence) -> RealInterval:
    low, high = sequence.members
    if not isinstance(low, Quantity | Infinity) or not isinstance(high, Quantity | Infinity):
        raise Undecided("an interval of other things than numbers")
    return RealInterval(low, sequence.opening == "[", high, sequence.closing == "]")
