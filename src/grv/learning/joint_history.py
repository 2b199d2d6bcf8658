"""Reads what each of several generators did on past problems, from logs and ledgers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing

import numpy as np

from ..core.errors import LogError, UsageError
from ..core.pool import Pool
from ..core.values import REFUTED, CandidateId, Verdict
from ..ledger.address import OperatorAddress
from ..ledger.entries import Entry, Started
from ..ledger.opening import is_ledger, open_ledger
from ..ledger.view import SearchView
from ..logs.generators import COLUMN, by_generator
from ..logs.log import Log
from ..logs.reading_options import Unlabelled
from ..logs.tables import read_table
from .history import PastProblem
from .joint import PastAttempts
from .ledger_history import score_of

Scores = Mapping[str, str]  # by generator, the name of its score


def read_attempts(path: str, scores: Scores) -> list[PastAttempts]:
    """What these generators did on each problem of a log or a ledger.

    Scores count only if they have the same name as now: those of a ledger. Those of a log do not.
    """
    if is_ledger(path):
        with closing(
            open_ledger(path, read_only=True, named=isinstance(path, OperatorAddress))
        ) as ledger:
            each = [ledger.read(summary.id) for summary in ledger.searches()]
        found = [attempts_of_entries(entries, scores) for entries in each]
    else:
        table = read_table(path)
        if COLUMN not in table.columns:
            raise LogError(f"no column {COLUMN!r}: this history has no names", path=path)
        found = attempts_of_log(by_generator(table, unlabelled=Unlabelled.DROP), scored=False)
    kept = [{name: one[name] for name in scores if name in one} for one in found]
    missing = [name for name in scores if not any(name in one for one in kept)]
    if missing:
        raise UsageError(f"{path}: nothing about the generator {missing[0]!r}")
    return list(kept)


def attempts_of_log(log: Log, *, scored: bool = True) -> list[PastAttempts]:
    """What the generators did in a log that was read by generator; all labels are known."""
    found: list[PastAttempts] = []
    for problem in log.problems:
        assert problem.generators is not None
        rows = {n: problem.generators == at for at, n in enumerate(log.generators)}
        found.append(
            {
                name: PastProblem(
                    problem.id,
                    problem.scores[own] if scored else np.zeros(int(own.sum())),
                    problem.passed[own],
                    np.ones(int(own.sum()), dtype=np.bool_),
                )
                for name, own in rows.items()
                if own.any()
            }
        )
    return found


def attempts_of_pools(id: str, pools: Mapping[str, Pool]) -> PastAttempts:
    """What the searches of one problem have shown."""
    return {
        name: _attempts(
            id,
            pool.scores,
            {n: v for n in range(len(pool)) if (v := pool.verdicts.get(CandidateId(n)))},
            {n: key for n in range(len(pool)) if (key := pool.key(CandidateId(n))) is not None},
            _refuted(pools),
        )
        for name, pool in pools.items()
        if len(pool)
    }


def _refuted(pools: Mapping[str, Pool]) -> set[str]:
    """The keys that failed in any of these searches."""
    return {
        key
        for pool in pools.values()
        for id, verdict in pool.verdicts.items()
        if verdict is Verdict.FAILED and (key := pool.key(id)) is not None
    }


def attempts_of_entries(entries: Sequence[Entry], scores: Scores) -> PastAttempts:
    """What the entries of one search show of these generators."""
    view = SearchView(entries)
    scored = view.scored
    found = {id: each.verdict for id, each in view.found.items()}
    keys = {id: each.key for id, each in scored.items() if each.key is not None}
    refuted = {keys[id] for id, v in found.items() if v is Verdict.FAILED and id in keys}
    started = next((each for each in entries if isinstance(each, Started)), None)
    about = started.about.get("generators", {}) if started else {}
    attempts: dict[str, PastProblem] = {}
    for name, score in scores.items():
        ids = [id for id in scored if id in view.made and view.made[id].generator == name]
        used = isinstance(about, Mapping) and score_of(about.get(name, {})) == score
        values = [scored[id].score if used else 0.0 for id in ids]
        if ids:
            attempts[name] = _attempts(
                started.problem if started else "",
                [-np.inf if value is None else value for value in values],
                {at: found[id] for at, id in enumerate(ids) if id in found},
                {at: keys[id] for at, id in enumerate(ids) if id in keys},
                refuted,
            )
    return attempts


def _attempts(
    id: str,
    scores: Sequence[float],
    verdicts: Mapping[int, Verdict],
    keys: Mapping[int, str],
    refuted: set[str],
) -> PastProblem:
    """The candidates of one generator. One with a key that failed has failed too."""
    passed = np.array([verdicts.get(n) is Verdict.PASSED for n in range(len(scores))], np.bool_)
    failed = [
        verdicts.get(n) is Verdict.FAILED or keys.get(n) in refuted or keys.get(n) == REFUTED
        for n in range(len(scores))
    ]
    known = passed | np.array(failed, dtype=np.bool_)
    return PastProblem(id, np.array(scores, dtype=np.float64), passed & known, known)
