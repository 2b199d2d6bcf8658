"""How much sooner a live search ends that looks ahead: the embedded model and a slow verifier.

    python bench/width_live.py [--first N] [--seeds N] [--sleep SECONDS] [--row NAME]... [--json]

The problems of `grv demo`, one after the other, with SmolLM2-135M on this machine and a verifier
that sleeps before it verifies; a verification costs as much as 4 candidates. A seed makes the same
candidates in every row, so rows are paired. Width 1 tries all problems within the budget; the other
rows search those that it solves, without a budget. The model is real: generation takes as long as
this machine needs, and longer for more candidates. In brackets: 95 % intervals, problems and seeds
being resampled together.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from importlib import resources
from typing import Any

import anyio
import numpy as np
from numpy.typing import NDArray

import grv
from grv.apps.demo import OPTIONS
from grv.apps.options.live import backends_of
from grv.backends.problems.files import read_problems
from grv.core.pace import Pace

COSTS = grv.Costs(1, 4)
BUDGET = 80.0
ROWS: dict[str, tuple[int, Pace]] = {
    "width 1": (1, Pace(overlap=False)),
    **{
        f"width {width}{name}": (width, pace)
        for width in (4, 16)
        for name, pace in {
            ", no ramp, no overlap": Pace(ramp=False, overlap=False),
            ", no ramp": Pace(ramp=False),
            ", no overlap": Pace(overlap=False),
            "": Pace(),
        }.items()
    },
}
RESAMPLES = 1000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=12)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--sleep", type=float, default=3.0)
    parser.add_argument("--row", action="append", choices=list(ROWS), help="and width 1")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with resources.as_file(resources.files("grv") / "data" / "demo.jsonl") as path:
        problems = list(read_problems(str(path)))[: given.first]
    rows = {n: how for n, how in ROWS.items() if n == "width 1" or n in (given.row or ROWS)}
    found = measured(problems, rows, given.seeds, given.sleep)
    print(json.dumps(found, indent=1) if given.json else text(found))


class Slow:
    """A verifier that sleeps first."""

    def __init__(self, verifier: Any, seconds: float) -> None:
        self._verifier = verifier
        self._seconds = seconds

    async def verify(self, problem: grv.Problem, draft: grv.Draft) -> grv.verifiers.Finding:
        """The finding of the other verifier, later."""
        await anyio.sleep(self._seconds)
        finding: grv.verifiers.Finding = await self._verifier.verify(problem, draft)
        return finding


def measured(
    problems: list[grv.Problem], rows: dict[str, tuple[int, Pace]], seeds: int, sleep: float
) -> dict[str, Any]:
    """The rows over the searches that width 1 solves."""
    runs: dict[str, list[grv.Solution]] = {name: [] for name in rows}
    for seed in range(1, seeds + 1):
        sampling = dataclasses.replace(OPTIONS.sampling, seed=seed)
        options = dataclasses.replace(OPTIONS, sampling=sampling)
        with backends_of(options, problems) as backends:
            how: dict[str, Any] = {
                "generator": backends.generator,
                "scorer": backends.scorer,
                "verifier": Slow(backends.verifier, sleep),
                "identity": options.about,
                "keys": False,
                "costs": COSTS,
            }
            grv.solve_now(problems[0], **how)  # loads the model
            solvable = problems
            for name, (width, pace) in rows.items():
                limits: dict[str, Any] = {"width": width, "pace": pace}
                limits |= {"budget": BUDGET} if width == 1 else {}
                found = [grv.solve_now(problem, **how, **limits) for problem in solvable]
                if width == 1:
                    solvable = [p for p, each in zip(problems, found, strict=True) if each.verified]
                    found = [each for each in found if each.verified]
                runs[name] += found
                seconds = sum(each.seconds for each in runs[name])
                print(f"seed {seed}: {name}: {seconds:.0f} s", file=sys.stderr, flush=True)
    solved = len(runs["width 1"])
    return {"searches": seeds * len(problems), "solved": solved, "rows": _ratios(runs)}


def _row(found: list[grv.Solution]) -> dict[str, Any]:
    bills = [each.bill for each in found]
    return {
        "cost": round(float(np.mean([bill.total for bill in bills])), 1),
        "seconds": round(float(np.mean([each.seconds for each in found])), 2),
        "generated": round(float(np.mean([bill.generated for bill in bills])), 1),
        "verified": round(float(np.mean([bill.verified for bill in bills])), 1),
    }


def _ratios(runs: dict[str, list[grv.Solution]]) -> dict[str, Any]:
    """Each row with its ratios to width 1 and their intervals."""
    one = runs["width 1"]
    sample = np.random.default_rng(0).integers(len(one), size=(RESAMPLES, len(one)))

    def ratio(top: list[float], bottom: list[float]) -> list[float]:
        above: NDArray[np.float64] = np.array(top)
        below: NDArray[np.float64] = np.array(bottom)
        again = above[sample].mean(axis=1) / below[sample].mean(axis=1)
        ends = np.quantile(again, [0.025, 0.975])
        return [round(float(x), 2) for x in (above.mean() / below.mean(), *ends)]

    return {
        name: {
            **_row(found),
            "dearer": ratio([x.bill.total for x in found], [x.bill.total for x in one]),
            "sooner": ratio([x.seconds for x in one], [x.seconds for x in found]),
        }
        for name, found in runs.items()
    }


def text(found: dict[str, Any]) -> str:
    """The table as text."""
    lines = [f"{found['solved']} of {found['searches']} searches are solved with width 1"]
    lines.append(f"{'':34}{'cost':>8}{'seconds':>9}  x cost               sooner")
    for name, row in found["rows"].items():
        dearer = "{:.2f} ({:.2f}-{:.2f})".format(*row["dearer"])
        sooner = "{:.2f} ({:.2f}-{:.2f})".format(*row["sooner"])
        lines.append(
            f"  {name:32}{row['cost']:8.1f}{row['seconds']:9.2f}  {dearer:19}  {sooner:19}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
