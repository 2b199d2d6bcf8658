"""How many examples a property is tried with, and how many cases of a parametrised test run."""

from __future__ import annotations

import os

USUAL = 25
# `make quick` tries fewer, `make soak` more.
EXAMPLES = int(os.environ.get("GRV_EXAMPLES", str(USUAL)))
# 0 runs all cases. `make quick` runs few (selection.py).
CASES = int(os.environ.get("GRV_CASES", "0"))


def examples(count: int) -> int:
    """The examples of a property that has its own count: no more than `GRV_EXAMPLES` if few."""
    return min(count, EXAMPLES) if EXAMPLES < USUAL else count
