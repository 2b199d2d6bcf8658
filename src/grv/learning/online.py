"""Which prior is in force after some problems: what `learning` uses, live and in replay.

The prior is fitted again after 6, 10, 15, 22, 33, 50, 75 ... finished problems, to the last 400 of
them. Labels are censored: a search leaves labels only for the candidates that it verified. So
nothing is tuned by replay. Instead the limit of the merit is fixed, and the weight of equal scores
is the one that predicts the verdicts best.

With several generators the first fit is after 2 problems: the cold portfolio costs more than a
search with one generator, so there is more to gain, and its guard is as strict.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..policies.learned.prior import Prior
    from .history import PastProblem

HISTORY = "history"  # the name of a fitted prior in specifications


class FitSchedule(NamedTuple):
    """When a prior is fitted.

    Attributes:
        first: the number of finished problems at the first fit.
        second: the same at the second fit; later ones have half as many more.
        most: the number of problems that a prior is fitted to.
    """

    first: int
    second: int
    most: int


LEARNING = FitSchedule(6, 10, 400)
SEVERAL_GENERATORS = FitSchedule(2, 4, 100)
RIGHT_SHARES = FitSchedule(6, 10, 100)


def refits(schedule: FitSchedule = LEARNING) -> Iterator[int]:
    """The numbers of finished problems after which a prior is fitted.

    >>> list(itertools.islice(refits(), 8))
    [6, 10, 15, 22, 33, 50, 75, 112]
    >>> list(itertools.islice(refits(SEVERAL_GENERATORS), 8))
    [2, 4, 6, 9, 14, 21, 32, 48]
    """
    yield schedule.first
    at = schedule.second
    while True:
        yield at
        at = round(1.5 * at)


def last_refit(finished: int, schedule: FitSchedule = LEARNING) -> int:
    """The number of finished problems at the last fit; 0 if there was none.

    >>> [last_refit(n) for n in (0, 5, 6, 9, 10, 21, 22)]
    [0, 0, 6, 6, 10, 15, 22]
    """
    return max(itertools.takewhile(lambda at: at <= finished, refits(schedule)), default=0)


def next_refit(finished: int) -> int:
    """The number of finished problems at the next fit.

    >>> [next_refit(n) for n in (0, 5, 6, 9, 10, 21, 22)]
    [6, 6, 10, 10, 15, 22, 33]
    """
    return next(at for at in refits() if at > finished)


def window(finished: int, schedule: FitSchedule = LEARNING) -> slice:
    """Which of the finished problems the prior in force is fitted to, in the order of their ends.

    >>> window(5), window(12), window(600)
    (slice(0, 0, None), slice(0, 10, None), slice(167, 567, None))
    """
    stop = last_refit(finished, schedule)
    return slice(max(0, stop - schedule.most), stop)


def prior_after(finished: Sequence[PastProblem], score: str) -> Prior | None:
    """The prior in force after these problems, in the order in which they finished."""
    return fitted_prior(finished[window(len(finished))], score)


def fitted_prior(problems: Sequence[PastProblem], score: str) -> Prior | None:
    """The prior that fits these problems; None if no candidate of theirs passed.

    A problem whose scores are unlike those of all others is left out: it must not spoil the scale.
    """
    if not any(each.passed.any() for each in problems):
        return None
    from .fit import without_strangers
    from .online_fit import censored_prior

    used = without_strangers([each for each in problems if each.labelled.any()])
    if not any(each.passed.any() for each in used):
        return None
    return dataclasses.replace(censored_prior(used, score), name=HISTORY)
