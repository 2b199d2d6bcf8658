"""What a trained score is worth: HumanEval programs of CodeGen-16B, with and without CodeT.

    python bench/trained.py --data FOLDER [--seeds N] [--orders N] [--row NAME]... [--all-labels]
        [--json]

A first run of `varied` leaves a ledger with censored labels: without a score, or ranked by CodeT
for the rows with a given score. From the ledger's problems in the other four fifths come the
trained score (`learning.trained.fit`), and the prior of `learned`, fitted to scores that were
cross-fitted within them by the rule of `learning`. Each problem of the last fifth is then searched
in new random orders; similarity and votes are computed as its candidates arrive. Figures are mean
costs over that of verify-all on the same orders, with 95 % intervals over problems. A seed draws
the first run, the folds and the orders; the lowest and the highest cost of a seed are shown too,
because a model that was fitted to few labels depends on them. With `--all-labels` there is a second
table, in which the prior comes from all labels of the same problems, as `grv learn` makes it from a
log. Problems without a pass are left out.
"""

from __future__ import annotations

import argparse
import dataclasses
import gzip
import json
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from grv.backends.scorers.trained.features import Arrival
from grv.comparing.evaluate import Figure, live_prior, resampled, search_costs
from grv.comparing.tune import learn
from grv.core.values import Costs
from grv.learning.history import History
from grv.learning.trained.cross_fit import (
    Numbers,
    cross_fitted,
    past_problems,
    scores_on_arrival,
    values_of,
)
from grv.learning.trained.fit import fit
from grv.learning.trained.texts import PastTexts
from grv.logs.log import LoggedProblem
from grv.logs.readers import read_log
from grv.policies import Varied
from grv.policies.learned.prior import Prior
from grv.replay.engine import replayed
from grv.text import checksum

PROGRAMS = "humaneval_programs.jsonl.gz"
LOG = "humaneval_codegen16b.parquet"
GIVEN = "score_codet"
RATIOS = (10, 30)
FOLDS = 5
INNER = 4
GOALS = {"trained": 0.72, "given + trained, alike": 0.55}
PRIORS = ("prior from the ledger", "prior from all labels")


@dataclass(frozen=True)
class Row:
    """A row: whether it has a trained score, a given one, and counts failures by the latter."""

    trained: bool = False
    given: bool = False
    alike: bool = False


ROWS = {
    "no score": Row(),
    "trained": Row(trained=True),
    "given": Row(given=True),
    "given + trained, own ties": Row(trained=True, given=True),
    "given + trained, alike": Row(trained=True, given=True, alike=True),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--orders", type=int, default=2)
    parser.add_argument("--row", action="append", choices=ROWS, help="only this row")
    parser.add_argument("--all-labels", action="store_true", help="the second table too")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # problems unlike the history; the rows show what they cost
    rows = given.row or list(ROWS)
    priors = PRIORS if given.all_labels else PRIORS[:1]
    record = measure(list(problems(given.data)), rows, given.seeds, given.orders, priors)
    print(json.dumps(record, indent=1) if given.json else table(record))


def problems(data: Path) -> Iterator[PastTexts]:
    """The solvable problems, with all labels."""
    scores = {p.id: p.scores for p in read_log(str(data / LOG), score=GIVEN).problems}
    with gzip.open(data / PROGRAMS, "rt", encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            passed = np.array(record["passed"], dtype=np.bool_)
            if not passed.any():
                continue
            given = scores[record["problem"]].tolist()
            arrivals = tuple(
                Arrival(text, None, checksum(text), {GIVEN: score})
                for text, score in zip(record["completions"], given, strict=True)
            )
            known = np.ones(len(passed), dtype=np.bool_)
            yield PastTexts(record["problem"], record["prompt"], arrivals, passed, known)


def measure(
    everything: Sequence[PastTexts],
    rows: Sequence[str],
    seeds: int,
    orders: int,
    priors: Sequence[str],
) -> dict[str, Any]:
    """These rows; costs are summed over orders, problem by problem.

    No row depends on another.
    """
    costs: dict[tuple[str, str, int], Numbers] = {}  # [seeds, problems]
    labels = []
    for seed in range(seeds):
        for ratio in RATIOS:
            for row in rows:
                found, count = _search_all(everything, ROWS[row], ratio, seed, orders, priors)
                labels.append(count)
                for prior, each in found.items():
                    total = costs.setdefault((prior, row, ratio), np.zeros((seeds, len(each))))
                    total[seed] = each
                spent = time.process_time()
                print(f"{spent:5.0f} s  seed {seed}, ratio {ratio}, {row}", file=sys.stderr)
    record: dict[str, Any] = {"problems": len(everything), "seeds": seeds, "orders": orders}
    record["labels"] = [min(labels), max(labels)]
    for prior in priors:
        record[prior] = {
            row: {
                str(ratio): _figures(costs[prior, row, ratio], costs["", row, ratio])
                for ratio in RATIOS
            }
            for row in rows
        }
    return record


def _figures(costs: Numbers, verify_all: Numbers) -> dict[str, Any]:
    """The ratio of the means over seeds and problems, and the range over seeds."""
    figure = dataclasses.asdict(resampled(costs.sum(axis=0), verify_all.sum(axis=0)))
    by_seed = costs.sum(axis=1) / verify_all.sum(axis=1)
    return figure | {"seeds": [float(by_seed.min()), float(by_seed.max())]}


def _search_all(
    everything: Sequence[PastTexts],
    kind: Row,
    ratio: int,
    seed: int,
    orders: int,
    wanted: Sequence[str],
) -> tuple[dict[str, Numbers], int]:
    """One row at one ratio: a first run, then all folds.

    Return the costs by prior, "" being verify-all, and the number of labels of the first run.
    """
    costs: dict[str, Numbers] = {}
    chance = np.random.default_rng([seed, ratio])
    shuffled = [p.in_order(chance.permutation(len(p.arrivals))) for p in everything]
    ledger = [_first_run(problem, kind, ratio) for problem in shuffled]
    again = [
        [p.in_order(chance.permutation(len(p.arrivals))) for p in everything] for _ in range(orders)
    ]
    fold = chance.permutation(len(everything)) % FOLDS
    for k in range(FOLDS):
        before = np.flatnonzero(fold != k).tolist()
        here = np.flatnonzero(fold == k).tolist()
        searched = [each[at] for each in again for at in here]
        priors, scores = _learned(
            [ledger[at] for at in before], [shuffled[at] for at in before], searched, kind, wanted
        )
        alike = GIVEN if kind.alike else ""
        for name, prior in {"": None, **priors}.items():
            found = search_costs(prior, searched, scores, ratio, alike)
            total = costs.setdefault(name, np.zeros(len(everything)))
            np.add.at(total, here * orders, found)
    return costs, sum(int(each.verified.sum()) for each in ledger)


def _first_run(problem: PastTexts, kind: Row, ratio: int) -> PastTexts:
    """What `varied` leaves, ranked by the given score if the row has one."""
    size = len(problem.arrivals)
    scores = values_of(problem, GIVEN) if kind.given else np.zeros(size)
    assert scores is not None
    search = replayed(Varied(), LoggedProblem(problem.id, scores, problem.passed), Costs(1, ratio))
    verified = np.zeros(len(search.pool), dtype=np.bool_)
    verified[list(search.pool.verdicts)] = True
    return problem.until(len(search.pool), verified)


def _learned(
    ledger: Sequence[PastTexts],
    labelled: Sequence[PastTexts],
    searched: Sequence[PastTexts],
    kind: Row,
    wanted: Sequence[str],
) -> tuple[dict[str, Prior], list[Numbers]]:
    """The priors that are wanted, and the scores of the problems searched."""
    names = [GIVEN] if kind.given else []
    alike = GIVEN if kind.alike else ""
    if kind.trained:
        model = fit([each.training() for each in ledger], names)
        scores = [scores_on_arrival(model, each) for each in searched]
        past = cross_fitted(ledger, names, INNER)
    else:
        scores, past = (
            [_plain(each, given=kind.given) for each in group] for group in (searched, ledger)
        )
    made = {PRIORS[0]: live_prior(past_problems(ledger, past, alike))}
    if PRIORS[1] in wanted:
        if kind.trained:
            full = _inner_scores(ledger, labelled, names)
        else:
            full = [_plain(each, given=kind.given) for each in labelled]
        history = History.of(past_problems(labelled, full, alike), "trained", [])
        made[PRIORS[1]] = learn(history, jobs=1)
    return made, scores


def _inner_scores(
    ledger: Sequence[PastTexts], labelled: Sequence[PastTexts], names: Sequence[str]
) -> list[Numbers]:
    """Scores of all candidates, by models fitted to the ledgers of other problems."""
    trained = [each.training() for each in ledger]
    fold = np.arange(len(ledger)) % INNER
    found = [np.zeros(0)] * len(ledger)
    for k in range(INNER):
        model = fit([each for each, own in zip(trained, fold, strict=True) if own != k], names)
        for at in np.flatnonzero(fold == k).tolist():
            found[at] = scores_on_arrival(model, labelled[at])
    return found


def _plain(problem: PastTexts, *, given: bool) -> Numbers:
    values = values_of(problem, GIVEN) if given else None
    return np.zeros(len(problem.arrivals)) if values is None else values


def _shown(figure: dict[str, Any]) -> str:
    low, high = figure["seeds"]
    return (
        f"{Figure(figure['mean'], figure['interval'], figure['problems'])}, {low:.2f} to {high:.2f}"
    )


def table(record: dict[str, Any]) -> str:
    """The figures, as text."""
    low, high = record["labels"]
    lines = [
        f"learned over verify-all, {record['problems']} problems, seeds 0 to {record['seeds'] - 1},"
        f" {record['orders']} orders each; {low} to {high} censored labels per first run"
    ]
    for prior in PRIORS:
        if prior not in record:
            continue
        lines.append(
            f"\n{prior:28} " + "".join(f"{f'ratio {ratio}, seeds':36}" for ratio in RATIOS)
        )
        for row, figures in record[prior].items():
            shown = [_shown(figures[str(ratio)]) for ratio in RATIOS]
            mean = np.exp(np.mean([np.log(figures[str(ratio)]["mean"]) for ratio in RATIOS]))
            goal = f" (goal {GOALS[row]:.2f})" if row in GOALS else ""
            lines.append(
                f"  {row:26} " + "".join(f"{each:36}" for each in shown) + f"{mean:.2f}{goal}"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
