"""Options of searches that trade money for time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .core.pace import Pace
from .core.values import Latency
from .options import Family, option
from .parsing import parse_latency

_LONGEST = 1e9
_DEFAULT = Pace()


@dataclass(frozen=True, kw_only=True)
class PaceOptions(Family):
    """How a search with a width above 1 looks ahead, and what waiting costs."""

    TITLE: ClassVar[str] = "Time and width"

    ramp: bool = option(
        _DEFAULT.ramp,
        "Verify 2, 4, 8 ... candidates at once, up to the width. Without it, as many as the width"
        " from the start: sooner, and dearer.",
        "--ramp/--no-ramp",
    )
    random_phase: bool = option(
        _DEFAULT.random_phase,
        "Begin the ramp with 1 or 2, at a place that is random for each problem. It bounds the mean"
        " cost more closely, and waits longer.",
        "--random-phase/--no-random-phase",
    )
    overlap: bool = option(
        _DEFAULT.overlap,
        "Generate candidates for the next verifications while others run, if they cost at most a"
        " tenth of the bill so far.",
        "--overlap/--no-overlap",
    )
    wait_price: float = option(
        _DEFAULT.wait_price,
        "Cost of one second of waiting, in the unit of the costs. The search then chooses how many"
        " candidates to verify at once, up to the width.",
        metavar="P",
        least=0,
        most=_LONGEST,
    )
    latency: Latency | None = option(
        _DEFAULT.latency,
        "Seconds per generated batch and per round of verification. Without it, grv compare has no"
        " seconds, and a live search measures them.",
        metavar="G,V",
        parse=parse_latency,
    )
    deadline: float = option(
        _DEFAULT.deadline,
        "Seconds after which the search for a problem ends. The last round that ends in time is as"
        " wide as allowed.",
        metavar="S",
        least=1e-9,
    )

    @property
    def pace(self) -> Pace:
        """The value that a search takes."""
        return Pace(
            ramp=self.ramp,
            overlap=self.overlap,
            wait_price=self.wait_price,
            latency=self.latency,
            deadline=self.deadline,
            random_phase=self.random_phase,
        )
