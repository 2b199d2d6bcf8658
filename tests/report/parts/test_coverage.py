"""Whether the k best contain a pass."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from support.reports import PASSED, by_hand


def test_coverage_is_counted_by_hand() -> None:
    for k, row in enumerate(by_hand()["coverage"].records(), 1):
        draws = [list(itertools.combinations(flags, k)) for flags in PASSED]
        at_random = np.mean([np.mean([any(each) for each in sets]) for sets in draws])
        assert row["at_random"] == pytest.approx(at_random, abs=1e-4)
        assert row["by_score"] == pytest.approx(np.mean([any(f[:k]) for f in PASSED]), abs=1e-4)
