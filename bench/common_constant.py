"""What paths with the common constant of Theorem 5 cost on real logs, beside `alternate`.

    python bench/common_constant.py --data FOLDER [--orders N]

First the two constants of each path on a grid of laws; then mean costs on the same orders of the
same problems, over those of `alternate`, with 95 % intervals; problems are resampled. No parameter
is chosen here.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from grv.core.limits import Limits
from grv.core.values import Costs
from grv.learning.score_combination import read_scored
from grv.policies import Alternate
from grv.replay.kernels.dispatch import many_trials
from grv.replay.kernels.paths import path
from grv.replay.orders import Orders
from grv.replay.trials import stacked
from grv.theory.constants import least_common_constant
from grv.theory.proofs.common_path import against_verify_all, mixed_path
from grv.theory.proofs.steps import step_ratio
from grv.theory.rounds import StepLaw
from grv.theory.slots import SlotSchedule

LOGS = {
    "humaneval_codegen16b.parquet": ("score_codet", "score_text_lr", "score_neglen"),
    "otis_aime_pool.parquet": ("score_text_lr", "score_votes_loro", "score_neglen"),
}
RATIOS = (3.0, 10.0, 30.0, 100.0)
SHARES = (*np.geomspace(1e-6, 0.1, 8).tolist(), *np.linspace(0.13, 1, 8).tolist())
RATES = (*np.geomspace(1e-6, 0.1, 20).tolist(), *np.linspace(0.11, 0.999, 20).tolist())
RESAMPLES = 1000


@dataclass(frozen=True)
class Mixed:
    """The path as a policy."""

    def slots(self, costs: Costs) -> SlotSchedule:
        """Its slots."""
        return mixed_path(costs.ratio)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--orders", type=int, default=10)
    given = parser.parse_args()
    for rho in (3.0, 5.0, 10.0, 20.0, 30.0, 100.0):
        print(rho, f"least {least_common_constant(rho):.4f}", *constants(rho), flush=True)
    for file, scores in LOGS.items():
        for score in scores:
            log = read_scored(str(given.data / file), score)
            orders = Orders([each for each in log.problems if each.solvable], given.orders)
            print(file, score, *(compared(orders, rho) for rho in RATIOS), sep="  ", flush=True)


def constants(rho: float) -> tuple[str, str]:
    """The largest ratios to J* and to verify-all on the grid."""
    slots = mixed_path(rho)
    laws = [StepLaw(q, p) for q in SHARES for p in (1.0, 0.7, 0.3, 0.05)]
    first = max(step_ratio(slots, law, rho, most=40).high for law in laws)
    second = max(against_verify_all(slots, rho, rate) for rate in RATES)
    return f"J* {first:.4f}", f"verify-all {second:.4f}"


def compared(orders: Orders, rho: float) -> str:
    """The cost over that of `alternate`."""
    costs = Costs(1, rho)
    batches = list(orders.batches())
    ours = stacked([path(Mixed(), batch, costs, Limits()) for batch in batches])
    theirs = stacked(many_trials(Alternate(), batches, costs))
    return ratio(ours.costs(costs).mean(axis=1), theirs.costs(costs).mean(axis=1))


def ratio(top: NDArray[np.float64], bottom: NDArray[np.float64]) -> str:
    """The ratio of the means with its interval."""
    sample = np.random.default_rng(0).integers(len(top), size=(RESAMPLES, len(top)))
    again = top[sample].mean(axis=1) / bottom[sample].mean(axis=1)
    low, high = np.quantile(again, [0.025, 0.975])
    return f"{top.mean() / bottom.mean():.3f} [{low:.3f}, {high:.3f}]"


if __name__ == "__main__":
    main()
