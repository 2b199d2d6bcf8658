"""From logs to a report: all tables, one log after the other, then those that set logs together."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import LogError, UsageError
from ..experiments.comparison import Resampled
from ..experiments.rows import PolicyRow, parse_row
from ..replay.kernels.dispatch import trials
from ..replay.orders import batches
from .advice_tables import CHANGES, advice_tables
from .contents import FIGURES
from .cost_tables import cost_tables, side_by_side
from .dataset import Progress, Request, Stages, Study, Tried, price_name
from .findings import findings
from .monotone_tables import MONOTONE_TABLES, distrust_table, monotone_tables
from .report import Report
from .rows import Sheets
from .score_tables import SCORE_TABLES, score_tables
from .source import Source
from .trial_tables import trial_tables

_STAGES = 4 + len(CHANGES)  # of a log with candidates


def make_report(
    sources: Sequence[Source], request: Request | None = None, *, progress: Progress | None = None
) -> Report:
    """All tables of some logs, and what is to be said first.

    Args:
        sources: logs with candidates, or saved comparisons; the first is what others are set
            beside.
        request: what to compare, and how.
        progress: called with how much is done and how much there is to do.
    """
    asked = request or Request()
    names = [source.name for source in sources]
    if not names or len(set(names)) < len(names):
        raise UsageError(f"a report needs logs with names of their own, not {names}")
    sheets = Sheets()
    stages = Stages(_STAGES * sum(source.log is not None for source in sources), progress)
    studies = []
    for source in sources:
        sheets.warnings += source.warnings
        if source.log is None:
            _saved(sheets, source)
            continue
        study = Study(source.name, source.log, asked, stages, source.cascade)
        _one_log(sheets, study)
        studies.append(study)
    prices = max(len(asked.costs), *(_prices(source) for source in sources))
    side_by_side(sheets, len(sources), prices)
    _paired(sheets, studies)
    tables = sheets.tables()
    return Report(
        _settings(asked, names),
        tuple(source.facts() for source in sources),
        findings({table.name: table for table in tables}, names),
        tuple(dict.fromkeys(sheets.warnings)),
        tables,
    )


def _settings(asked: Request, names: Sequence[str]) -> dict[str, Any]:
    return {
        "logs": list(names),
        "costs": [price_name(costs) for costs in asked.costs],
        "policies": list(asked.rows),
        "orders": asked.orders,
        "seed": asked.seed,
        "order_scheme": asked.order_scheme,
        "width": "all" if asked.width is None else asked.width,
        "keys": asked.keys,
        "unsolvable": asked.unsolvable,
        "value": None if math.isinf(asked.value) else asked.value,
        "latency": None if asked.latency is None else dataclasses.astuple(asked.latency),
        "many_orders": asked.many_orders,
    }


def _prices(source: Source) -> int:
    return len({row.costs for row in source.comparison.rows}) if source.comparison else 1


def _saved(sheets: Sheets, source: Source) -> None:
    assert source.comparison is not None
    cost_tables(sheets, source.name, source.comparison)
    for figure in FIGURES:
        if figure.needs_candidates:
            text = f"{source.name} is a saved comparison without candidates: it is left out here."
            sheets.note(figure.name, text)


def _one_log(sheets: Sheets, study: Study) -> None:
    log, seed = study.log, study.request.seed
    if log.solvable:
        cost_tables(sheets, study.name, study.main)
        advice_tables(sheets, study)
        trial_tables(sheets, study)
    else:
        _unsolvable_log(sheets, study)
    score_tables(sheets, study.name, log, seed)
    _say_of_options(sheets, study)
    falls = monotone_tables(sheets, study.name, log, seed)
    if log.solvable:
        distrust_table(sheets, study, falls)
    _unsolved(sheets, study)


def _say_of_options(sheets: Sheets, study: Study) -> None:
    """What options do to a log's numbers."""
    log, asked = study.log, study.request
    if study.cascade is not None:
        text = f"{study.name}: this is about {log.score}; what {log.second} adds for the best"
        text += f" {study.cascade.top} shows in the costs of policies that verify the best."
        sheets.note((*SCORE_TABLES, *MONOTONE_TABLES, "better_score"), text)
    if None in asked.costs:
        means = f"{log.measured.generate:.3g} to generate and {log.measured.verify:.3g} to verify"
        sheets.note("summary", f"{study.name}: a candidate cost {means} on average, as measured.")
    both = sum(len(problem.contradictory) for problem in log.problems)
    if asked.keys and both:
        text = f"{study.name}: {both} keys have candidates of both verdicts and are no classes."
        sheets.warnings.append(text)


def _unsolvable_log(sheets: Sheets, study: Study) -> None:
    """There is nothing to compare: no policy can find what is not there."""
    if study.request.keys and not study.log.has_keys:
        raise LogError("there are no keys in this log (column 'key')", path=study.log.path)
    text = f"{study.name}: no problem has a candidate that passed, so there is nothing to compare."
    kept = {*SCORE_TABLES, *MONOTONE_TABLES, "unsolved"}
    sheets.note([figure.name for figure in FIGURES if figure.name not in kept], text)
    sheets.warnings.append(text)


def _unsolved(sheets: Sheets, study: Study) -> None:
    """What searches spend on problems without any pass."""
    log, asked = study.log, study.request
    if not log.unsolvable:
        sheets.note("unsolved", f"{study.name}: every problem with candidates is solvable.")
        return
    spent: dict[tuple[int, str], list[float]] = {}
    made = batches(
        log.unsolvable, asked.orders, seed=asked.seed, scheme=asked.order_scheme, keyed=asked.keys
    )
    for batch in made:
        for at, costs in enumerate(study.costs):
            for name in asked.live:
                kind = parse_row(name)
                assert isinstance(kind, PolicyRow)
                tried = trials(
                    *(kind.policy, batch, costs),
                    width=asked.width,
                    value=asked.value,
                    cascade=study.cascade,
                )
                spent.setdefault((at, name), []).append(float(tried.costs(costs).mean()))
    solvable = np.array([problem.solvable for problem in study.problems])
    for (at, name), amounts in spent.items():
        costs = study.costs[at]
        row = _spending(study.tried[costs, name], solvable, amounts) if log.solvable else None
        numbers = row or (float(np.mean(amounts)), None, 1.0, None)
        sheets.add("unsolved", [(study.name, price_name(costs), name, len(amounts), *numbers)])
    text = f"{study.name}: {len(log.unsolvable)} of {len(log.problems)} problems have no candidate"
    sheets.note(
        "unsolved",
        f"{text} that passes. What they cost grows with how many candidates were logged; live, a"
        " budget or a limit decides.",
    )


def _spending(
    tried: Tried, solvable: np.ndarray[Any, np.dtype[np.bool_]], amounts: Sequence[float]
) -> tuple[float, float, float, float | None]:
    """The mean on unsolvable and on solvable problems, the share of the former, and per answer."""
    on_solvable = tried.by_problem[solvable]
    lost, total = sum(amounts), sum(amounts) + float(on_solvable.sum())
    answers = float(tried.trials.solved[solvable].mean(axis=1).sum())
    return (
        lost / len(amounts),
        float(on_solvable.mean()),
        lost / total,
        total / answers if answers else None,
    )


def _paired(sheets: Sheets, studies: Sequence[Study]) -> None:
    """Each log beside the first, on the problems that both have."""
    first = next((study for study in studies if study.log.solvable), None)
    if first is None:
        return
    for study in studies:
        if study is first or not study.log.solvable:
            continue
        own = {problem.id for problem in study.log.solvable}
        shared = [problem.id for problem in first.log.solvable if problem.id in own]
        if not shared:
            text = f"{study.name} and {first.name} have no solvable problem of one name in common."
            sheets.note("paired", text)
            continue
        _pair_up(sheets, first, study, shared)


def _pair_up(sheets: Sheets, first: Study, study: Study, shared: Sequence[str]) -> None:
    resampled = Resampled(len(shared), study.request.seed)
    places = [[each.main.problems.index(id) for id in shared] for each in (study, first)]
    for row in study.main.rows:
        here, there = study.tried[row.costs, row.policy], first.tried[row.costs, row.policy]
        costs = here.by_problem[places[0]], there.by_problem[places[1]]
        mean, base = float(costs[0].mean()), float(costs[1].mean())
        ends = resampled.ratio(*costs) or (None, None)
        head = (study.name, price_name(row.costs), row.policy, len(shared))
        sheets.add("paired", [(*head, mean, base, mean / base, *ends)])
