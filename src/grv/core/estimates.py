"""What candidates and verifications cost, estimated from what was paid for them so far."""

from __future__ import annotations

from .values import Costs, What

GUESS_WEIGHT = 1  # how many observations the first guess is worth


class Estimates:
    """Running means, which begin with a price list, and the dearest of each kind.

    A mean is that of what was paid and of `GUESS_WEIGHT` more at the price list. So it is positive
    whatever is paid, also if that is nothing; it takes both into account after the first; and after
    a few more it is what was paid. What was not measured does not move it.
    """

    def __init__(self, guess: Costs) -> None:
        self._guess = guess
        self._paid: dict[What, float] = {"generate": 0.0, "verify": 0.0}
        self._seen: dict[What, int] = {"generate": 0, "verify": 0}
        self._dearest: dict[What, float] = {"generate": 0.0, "verify": 0.0}
        self.mean = guess
        self.dearest = guess

    def see(self, what: What, number: int, paid: float) -> None:
        """Take in what so many of one kind were paid for together."""
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
        known = GUESS_WEIGHT * self._guess.price(what) + self._paid[what]
        return known / (GUESS_WEIGHT + self._seen[what])

    def _priced(self, prices: dict[What, float]) -> Costs:
        """A price list; what a score is of a candidate's cost, it stays."""
        scale = prices["generate"] / self._guess.candidate
        return Costs(self._guess.generate * scale, prices["verify"], self._guess.score * scale)
