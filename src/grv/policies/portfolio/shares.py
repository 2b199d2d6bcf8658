"""Shares of spending per generator, and the bound that they give.

If generator i alone would pay S to find its first pass, a portfolio with shares w pays at most
S / w_i. See docs/theory/portfolio.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ...core.errors import UsageError
from ...core.values import Costs


def attempt(costs: Costs) -> float:
    """The cost to generate one candidate and to verify it, if it fails."""
    return costs.candidate + costs.failure


def equal_shares(names: Sequence[str]) -> dict[str, float]:
    """The same share for each generator. No other shares have a lower largest bound.

    >>> equal_shares(["small", "large"])
    {'small': 0.5, 'large': 0.5}
    """
    return dict.fromkeys(names, 1 / len(names))


def root_shares(costs: Mapping[str, Costs]) -> dict[str, float]:
    """Shares in proportion to the square root of the cost of an attempt.

    They minimise the mean bound if each generator may be the best one, and needs equally many
    attempts if it is.

    >>> root_shares({"small": Costs(1, 3), "large": Costs(26, 10)})
    {'small': 0.25, 'large': 0.75}
    """
    roots = {name: math.sqrt(attempt(each)) for name, each in costs.items()}
    return {name: root / sum(roots.values()) for name, root in roots.items()}


def constants(shares: Mapping[str, float]) -> dict[str, float]:
    """What a portfolio costs at most, in units of what each generator alone would cost."""
    return {name: 1 / share for name, share in shares.items()}


def check_shares(shares: Mapping[str, float]) -> None:
    """Raise a UsageError unless each generator has a positive share, and the sum is 1."""
    if not all(0 < share <= 1 for share in shares.values()):
        raise UsageError("every generator needs a share above 0 and of at most 1")
    if not math.isclose(sum(shares.values()), 1, rel_tol=1e-9):
        raise UsageError(f"the shares add up to {sum(shares.values()):g}, not to 1")
