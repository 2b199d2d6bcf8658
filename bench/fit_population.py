"""Fits the population `humaneval` to a real log, by its pass counts and its scores' AUC.

python bench/fit_population.py humaneval_codegen16b.parquet --score score_codet

The pass rate of a problem is 10^(low + (high - low) b), b ~ Beta(alpha, beta): the likelihood of
the counts, given that a problem has a pass, chooses alpha and beta, with low and high fixed. The
separation of a problem is that at which normal scores have its AUC; its spread is what the errors
of the AUC (Hanley and McNeil) do not explain.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from scipy import optimize, stats

from grv.logs.readers import read_log

LOW, HIGH = -2.7, 0.0  # of the logarithm of the pass rate
SURE = 3  # passes and failures that a problem needs for its AUC


def fitted_rates(passes: np.ndarray, sizes: np.ndarray) -> tuple[float, float]:
    """The alpha and beta with the largest likelihood."""
    grid = (np.arange(400) + 0.5) / 400
    rates = np.minimum(10 ** (LOW + (HIGH - LOW) * grid), 0.995)
    likely = stats.binom.pmf(passes[:, None], sizes[:, None], rates[None])
    solvable = 1 - (1 - rates[None]) ** sizes[:, None]

    def loss(logs: np.ndarray) -> float:
        weights = stats.beta.pdf(grid, *np.exp(logs))
        weights /= weights.sum()
        return -float(np.log((likely @ weights) / (solvable @ weights)).sum())

    alpha, beta = np.exp(optimize.minimize(loss, np.zeros(2), method="Nelder-Mead").x)
    return float(alpha), float(beta)


def separation(scores: np.ndarray, passed: np.ndarray) -> tuple[float, float]:
    """The separation of a problem's passes, and the variance of its error."""
    ranks = stats.rankdata(scores)
    passes = int(passed.sum())
    failures = len(passed) - passes
    auc = (ranks[passed].sum() - passes * (passes + 1) / 2) / (passes * failures)
    auc = float(np.clip(auc, 0.5 / (passes * failures), 1 - 0.5 / (passes * failures)))
    auc = min(max(auc, 0.02), 0.98)
    q1, q2 = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    error = auc * (1 - auc) + (passes - 1) * (q1 - auc**2) + (failures - 1) * (q2 - auc**2)
    found = math.sqrt(2) * stats.norm.ppf(auc)
    slope = math.sqrt(2) / stats.norm.pdf(found / math.sqrt(2))
    return found, error / (passes * failures) * slope**2


def main() -> None:
    """Print the parameters of the population."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log")
    parser.add_argument("--score", default="score_codet")
    given = parser.parse_args()
    problems = [each for each in read_log(given.log, score=given.score).problems if each.solvable]
    passes = np.array([int(each.passed.sum()) for each in problems])
    sizes = np.array([len(each) for each in problems])
    alpha, beta = fitted_rates(passes, sizes)
    clear = [i for i in range(len(problems)) if SURE <= passes[i] <= sizes[i] - SURE]
    found = np.array([separation(problems[i].scores, problems[i].passed) for i in clear])
    levels = (np.log10(passes[clear] / sizes[clear]) - LOW) / (HIGH - LOW)
    spread = math.sqrt(max(0.0, float(found[:, 0].var() - found[:, 1].mean())))
    correlation = float(np.corrcoef(levels, found[:, 0])[0, 1]) * found[:, 0].std() / spread
    print(f"{len(problems)} solvable problems, {len(clear)} of them for the separation")
    print(
        f"Binormals({LOW}, {HIGH}, {alpha:.3f}, {beta:.3f}, {found[:, 0].mean():.3f},"
        f" {spread:.3f}, {min(correlation, 0.99):.3f}, 1.0, 0.0)"
    )


if __name__ == "__main__":
    main()
