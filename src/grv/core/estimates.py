"""Estimates the cost of a candidate and of a verification from the payments so far."""

from __future__ import annotations

from .values import Costs, What


class Estimates:
    """The running mean and the maximum of the cost of each kind, starting from a price list.

    The price list counts until the first payment that is not zero; then the mean is that of the
    payments. So it is positive even if every payment is zero, and a wrong price list is forgotten
    after one payment of each kind: the bounds with measured costs rely on this. Items without a
    measured payment do not change it.
    """

    def __init__(self, guess: Costs) -> None:
        self._guess = guess
        self._paid: dict[What, float] = {"generate": 0.0, "verify": 0.0}
        self._seen: dict[What, int] = {"generate": 0, "verify": 0}
        self._dearest: dict[What, float] = {"generate": 0.0, "verify": 0.0}
        self.mean = guess
        self.dearest = guess

    def see(self, what: What, number: int, paid: float) -> None:
        """Add `number` items of one kind, for which `paid` was paid in total."""
        if not number:
            return
        self._paid[what] += paid
        self._seen[what] += number
        self._dearest[what] = max(self._dearest[what], paid / number)
        self.mean = self._priced({kind: self._mean(kind) for kind in self._paid})
        self.dearest = self._priced(
            {kind: max(self._guess.price(kind), most) for kind, most in self._dearest.items()}
        )

    def _mean(self, what: What) -> float:
        paid, seen = self._paid[what], self._seen[what]
        return paid / seen if paid else self._guess.price(what) / (1 + seen)

    def _priced(self, prices: dict[What, float]) -> Costs:
        """A price list, in which scoring keeps its share of a candidate's cost."""
        scale = prices["generate"] / self._guess.candidate
        return Costs(self._guess.generate * scale, prices["verify"], self._guess.score * scale)
