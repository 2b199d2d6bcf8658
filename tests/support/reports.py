"""Logs and reports that several tests of `grv.report` look at."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np

from grv.core.values import Costs
from grv.logs.log import Log
from grv.report.build import make_report
from grv.report.inputs import ReportSource
from grv.report.report import Report
from grv.report.request import ReportRequest
from grv.testing import World, all_wrong, population

PRICES = (Costs(1, 10), Costs(1, 3))
REQUEST = ReportRequest(costs=PRICES, orders=4, many_orders=20)
FEW = ("hindsight", "adaptive", "verify-all", "uniform-matched")
LOG = Log(
    (
        all_wrong(20).logged("a hopeless one"),
        *population("coding", problems=8, candidates=60, seed=4).problems,
    )
)
OTHER = population("math", problems=8, candidates=60, seed=5)

# Three problems small enough to count by hand, best score first: + passes, - fails.
WORLDS = ("9- 8+ 7- 6- 5+ 4-", "9+ 8- 7- 6- 5- 4-", "9- 8- 7- 6+ 5+ 4+")
PASSED = [[word[-1] == "+" for word in text.split()] for text in WORLDS]


@cache
def two_logs() -> Report:
    """A report on `LOG` (named first) and `OTHER` (named second)."""
    return make_report([ReportSource("first", log=LOG), ReportSource("second", log=OTHER)], REQUEST)


@cache
def by_hand() -> Report:
    """A report on `WORLDS`."""
    log = Log(tuple(World.of(text).logged(name) for name, text in zip("abc", WORLDS, strict=True)))
    return make_report(
        [ReportSource("x", log=log)], ReportRequest(orders=1, many_orders=1, policies=FEW)
    )


def with_columns(log: Log) -> Log:
    """The log with measured costs and second scores."""
    rng = np.random.default_rng(1)
    problems = [
        dataclasses.replace(
            problem,
            generate_costs=rng.uniform(0.001, 0.003, len(problem)),
            verify_costs=rng.uniform(0.01, 0.05, len(problem)),
            second=problem.scores + 2 * problem.passed,
        )
        for problem in log.problems
    ]
    return dataclasses.replace(log, problems=tuple(problems), second="second")
