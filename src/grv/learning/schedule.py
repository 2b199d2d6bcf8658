"""When what is learned from a ledger is learned again: after 6, 10, 15, 22, 33, 50 ... problems."""

from __future__ import annotations

from itertools import count


def latest(finished: int) -> int:
    """The last number of finished problems at which to learn; 0 before the first.

    Each is about 1.5 times the one before, so that a run of n problems learns about 2.5 ln(n / 4)
    times.

    >>> [latest(n) for n in (0, 5, 6, 9, 10, 14, 15, 22, 40, 100)]
    [0, 0, 6, 6, 10, 10, 15, 22, 33, 75]
    """
    found = 0
    for power in count(-1):
        size = int(10 * 1.5**power)
        if size > finished:
            return found
        found = size
    raise AssertionError("the powers grow without end")


def due(finished: int) -> bool:
    """Whether to learn again after this many finished problems.

    >>> [n for n in range(120) if due(n)]
    [6, 10, 15, 22, 33, 50, 75, 113]
    """
    return finished > 0 and latest(finished) == finished
