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
        paid = self._paid[what]
        seen = self._seen[what]
        return paid / seen if paid else self._guess.price(what) / (1 + seen)

    def _priced(self, prices: dict[What, float]) -> Costs:
        """A price list, in which scoring keeps its share of a candidate's cost."""
        scale = prices["generate"] / self._guess.candidate
        return Costs(self._guess.generate * scale, prices["verify"], self._guess.score * scale)


class Account:
    """What a search has spent, and what more would cost.

    Attributes:
        costs: the price list.
        estimates: of the costs, from the payments so far.
        paid: the sum of all payments that events reported.
        reserve: the amount that the budget reserves for each candidate and each verification.
    """

    def __init__(self, costs: Costs, most: Costs | None) -> None:
        self.costs = costs
        self.estimates = Estimates(costs)
        self.paid = 0.0
        self._most = most
        self.reserve = costs if most is None else most
        self._listed: dict[What, int] = {"generate": 0, "verify": 0}  # billed at the price list

    def pay(self, what: What, number: int, paid: float | None) -> None:
        """Bill candidates or verifications, at the price list if the payment is None."""
        if paid is None:
            self._listed[what] += number
        else:
            self.paid += paid
            self.estimates.see(what, number, paid)
            if self._most is None:
                self.reserve = self.estimates.dearest

    def spent(self, generate: int = 0, verify: int = 0) -> float:
        """The bill's total after `generate` more candidates and `verify` more verifications."""
        listed = self._listed
        # Added in the same order as the bill, so that rounding cannot make them differ.
        if self.reserve is self.costs:
            total = self.costs.of(listed["generate"] + generate, listed["verify"] + verify)
            return total + self.paid
        spent = self.costs.of(listed["generate"], listed["verify"]) + self.paid
        return spent + self.reserve.of(generate, verify)
