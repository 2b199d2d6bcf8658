"""Estimates the cost of a candidate and of a verification from the payments so far."""

from __future__ import annotations

from .values import Costs, What


class Estimates:
    """The running mean and the maximum of the cost of each kind, starting from a price list.

    The price list counts until the first payment that is not zero; then the mean is that of the
    payments. So it is positive even if every payment is zero, and a wrong price list is forgotten
    after one payment of each kind: the bounds with measured costs rely on this. Items without a
    measured payment do not change it.

    Attributes:
        mean: the price list to plan with: what a candidate costs, and what a verification costs
            that does not pass. What a pass costs does not decide anything; see `Costs.planning`.
        dearest: the highest payments.
    """

    def __init__(self, guess: Costs) -> None:
        self._guess = guess
        self._planning = guess.planning
        self._paid: dict[What, float] = {"generate": 0.0, "verify": 0.0}
        self._seen: dict[What, int] = {"generate": 0, "verify": 0}
        self._dearest: dict[What, float] = {"generate": 0.0, "verify": 0.0}
        self._means = {kind: self._planning.price(kind) for kind in self._paid}
        self.mean = self._planning
        self.dearest = guess

    def see(self, what: What, number: int, paid: float, *, passed: bool = False) -> None:
        """Add `number` items of one kind, for which `paid` was paid in total.

        If one of them is a verification that `passed`, the payment says nothing about failures.
        """
        if not number:
            return
        if paid / number > self._dearest[what] or self.dearest is self._guess:
            self._dearest[what] = max(self._dearest[what], paid / number)
            self.dearest = self._priced(
                {kind: max(self._guess.price(kind), most) for kind, most in self._dearest.items()}
            )
        if passed:
            return
        self._paid[what] += paid
        self._seen[what] += number
        if self._mean(what) != self._means[what]:
            self._means[what] = self._mean(what)
            self.mean = self._priced(self._means)

    def _mean(self, what: What) -> float:
        paid = self._paid[what]
        seen = self._seen[what]
        return paid / seen if paid else self._planning.price(what) / (1 + seen)

    def _priced(self, prices: dict[What, float]) -> Costs:
        """A price list, in which scoring keeps its share of a candidate's cost."""
        scale = prices["generate"] / self._guess.candidate
        return Costs(
            self._guess.generate * scale, prices["verify"], score=self._guess.score * scale
        )


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
        # Billed at the price list:
        self._generated = 0
        self._verified = 0
        self._failed = 0  # of these

    def pay_candidates(self, number: int, paid: float | None) -> None:
        """Bill candidates, at the price list if the payment is None."""
        if paid is None:
            self._generated += number
        else:
            self._see("generate", number, paid)

    def pay_verifications(
        self, number: int, paid: float | None, *, failed: int, passed: bool, repeated: int = 0
    ) -> None:
        """Bill verifications, at the price list if the payment is None.

        Args:
            number: of all of them; those that were cancelled are billed too.
            paid: the payment.
            failed: how many of them failed.
            passed: whether one of them passed.
            repeated: how many more calls a verifier that errs was asked for.
        """
        if paid is None:
            self._verified += number + repeated
            self._failed += failed
        else:
            self._see("verify", number, paid, passed=passed)

    def _see(self, what: What, number: int, paid: float, *, passed: bool = False) -> None:
        self.paid += paid
        self.estimates.see(what, number, paid, passed=passed)
        if self._most is None:
            self.reserve = self.estimates.dearest

    def spent(self, generate: int = 0, verify: int = 0, failing: int = 0) -> float:
        """The bill's total after `generate` more candidates and `verify` more verifications.

        `failing` of these verifications are taken to fail; the others cost the most that they may.
        """
        # Added in the same order as the bill, so that rounding cannot make them differ.
        if self.reserve is self.costs:
            generated = self._generated + generate
            total = self.costs.of(generated, self._verified + verify, self._failed + failing)
            return total + self.paid
        spent = self.costs.of(self._generated, self._verified, self._failed) + self.paid
        return spent + self.reserve.of(generate, verify, failing)
