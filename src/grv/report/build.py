"""Makes a report: all parts for each log, then the parts that relate logs to each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..comparing.comparison import Comparison
from ..core.errors import LogError, UsageError
from .conclusions import conclusions
from .dataset import Dataset, Progress, Stages
from .inputs import ReportSource
from .parts import PARTS, TABLES
from .report import Report
from .request import ReportRequest, price_name
from .rows import RowCollector

_STAGES = 2 + sum(part.stages for part in PARTS)  # `Dataset.main` and `Dataset.wide` are two more


def make_report(
    sources: Sequence[ReportSource],
    request: ReportRequest | None = None,
    *,
    progress: Progress | None = None,
) -> Report:
    """All tables of some logs, and the conclusions from them.

    Args:
        sources: logs with candidates, or saved comparisons; others are compared with the first.
        request: what to compare, and how.
        progress: called with the amount of work done and the amount in all.
    """
    request = request or ReportRequest()
    names = [source.name for source in sources]
    if not names or len(set(names)) < len(names):
        raise UsageError(f"a report needs at least one log, and different names for logs: {names}")
    rows = RowCollector()
    stages = Stages(_STAGES * sum(source.log is not None for source in sources), progress)
    datasets = []
    for source in sources:
        rows.warnings += source.warnings
        if source.comparison is not None:
            _add_comparison(rows, source.name, source.comparison)
        if source.log is not None:
            more = (source.cascade, source.bounded)
            datasets.append(Dataset(source.name, source.log, request, stages, *more))
            _add_log(rows, datasets[-1])
    for part in PARTS:
        if part.of_logs is not None:
            part.of_logs(rows, datasets)
    _note_singles(rows, sources, request)
    tables = rows.tables(TABLES.values())
    facts = tuple(source.facts() for source in sources)
    advised = {each.name: each.advice for each in datasets if each.log.solvable}
    found = conclusions({table.name: table for table in tables}, facts, advised)
    warnings = tuple(dict.fromkeys(rows.warnings))
    return Report(_settings(request, names), facts, found, warnings, tables)


def _settings(request: ReportRequest, names: Sequence[str]) -> dict[str, Any]:
    return {
        "logs": list(names),
        "costs": [price_name(costs) for costs in request.costs],
        "policies": list(request.rows),
        **request.to_json(),
        "many_orders": request.many_orders,
    }


def _add_comparison(rows: RowCollector, name: str, comparison: Comparison) -> None:
    """The tables of a saved comparison, and a note on those that need candidates."""
    for part in PARTS:
        if part.of_comparison is not None:
            part.of_comparison(rows, name, comparison)
        else:
            text = f"{name} is a saved comparison without candidates, so it is not included here."
            rows.note(part.tables, text)


def _add_log(rows: RowCollector, dataset: Dataset) -> None:
    name = dataset.name
    log = dataset.log
    keys = dataset.request.keys
    if keys and not log.has_keys:
        raise LogError("there are no keys in this log (column 'key')", path=log.path)
    unsolvable = f"{name}: no problem has a candidate that passes, so there is nothing to compare."
    if not log.solvable:
        rows.warnings.append(unsolvable)
    for part in PARTS:
        if part.needs_pass and not log.solvable:
            rows.note(part.tables, unsolvable)
            continue
        if part.of_comparison is not None:
            part.of_comparison(rows, name, dataset.main)
        if part.of_log is not None:
            part.of_log(rows, dataset)
    for part in PARTS:
        if part.describes_score:
            for text in _score_notes(dataset):
                rows.note(part.tables, text)
    both = sum(len(problem.contradictory) for problem in log.problems)
    if keys and both:
        text = f"{name}: {both} keys have candidates of both verdicts. These keys are ignored."
        rows.warnings.append(text)


def _score_notes(dataset: Dataset) -> Iterator[str]:
    """Why the tables about the score say little, if they do."""
    name = dataset.name
    problems = dataset.log.problems
    scores = np.concatenate([problem.scores for problem in problems])
    unscored = int(np.isneginf(scores).sum())
    if unscored == len(scores):
        yield f"{name}: no candidate has a score, so the ranking is random."
    elif unscored:
        yield f"{name}: {unscored} of {len(scores)} candidates have no score. They rank last."
    elif len(np.unique(scores)) == 1:
        yield f"{name}: all scores are equal, so the ranking is random."
    if all(len(problem) == 1 for problem in problems):
        yield f"{name}: each problem has one candidate, so there is nothing to rank."
    passed = np.concatenate([problem.passed for problem in problems])
    if passed.all():
        yield f"{name}: all candidates passed."
    elif not passed.any():
        yield f"{name}: no candidate passed."
    if dataset.cascade_note:
        yield dataset.cascade_note


def _note_singles(
    rows: RowCollector, sources: Sequence[ReportSource], request: ReportRequest
) -> None:
    """Note under tables that compare logs or price lists that there is only one."""
    saved = [source.comparison.rows for source in sources if source.comparison is not None]
    prices = max(len(request.costs), *(len({row.costs for row in each}) for each in saved), 1)
    for table in TABLES.values():
        if table.compares == "log" and len(sources) < 2:
            rows.note(table, "There is only one log.")
        if table.compares == "costs" and prices < 2:
            rows.note(table, "There is only one price list.")
