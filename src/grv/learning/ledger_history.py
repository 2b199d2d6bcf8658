"""Reads a ledger as history: candidates that were verified have labels, the others have none.

Of the candidates with the same key, only the verified one has a label here: the labels of the
others carry no additional information. A candidate that was refuted without verification failed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.errors import UsageError
from ..core.values import REFUTED, Verdict
from ..ledger.entries import Entry, Found, Scored, Started
from ..ledger.opening import open_ledger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .history import PastProblem


def ledger_past(path: str, score: str | None) -> tuple[list[PastProblem], str]:
    """The problems of a ledger with the score `score`, or its only score; and the score's name."""
    ledger = open_ledger(path, read_only=True)
    searches = [(summary, ledger.read(summary.id)) for summary in ledger.searches()]
    scorers = dict.fromkeys(_scorer(entries) for _, entries in searches)
    if not searches:
        raise UsageError(f"{path}: this ledger has no searches")
    if score is None and len(scorers) > 1:
        raise UsageError(f"{path}: choose one of {_listed(scorers)} with --score")
    wanted = score if score is not None else next(iter(scorers))
    if wanted not in scorers:
        raise UsageError(f"{path}: no score {wanted!r}; there are {_listed(scorers)}")
    found = [
        _problem(f"{summary.problem} ({summary.id})", entries)
        for summary, entries in searches
        if _scorer(entries) == wanted
    ]
    return [problem for problem in found if len(problem.scores)], wanted


def _scorer(entries: Sequence[Entry]) -> str:
    started = next((entry for entry in entries if isinstance(entry, Started)), None)
    return str(started.about.get("score", "score")) if started else "score"


def _problem(id: str, entries: Sequence[Entry]) -> PastProblem:
    import numpy as np

    from .history import PastProblem

    scores: dict[int, float] = {}
    refuted: list[bool] = []
    alike: dict[int, float] = {}
    verdicts: dict[int, Verdict] = {}
    for entry in entries:
        match entry:
            case Scored(candidate, score, key) if candidate not in scores:
                scores[candidate] = -np.inf if score is None else score
                refuted.append(key == REFUTED)
                if entry.alike is not None:
                    alike[candidate] = entry.alike
            case Found(candidate, verdict):
                verdicts[candidate] = verdict
    known = [verdicts.get(candidate) for candidate in scores]
    sure = np.array(refuted, dtype=np.bool_)
    decided = [verdict in (Verdict.PASSED, Verdict.FAILED) for verdict in known]
    return PastProblem(
        id,
        np.array(list(scores.values()), dtype=np.float64),
        np.array([verdict is Verdict.PASSED for verdict in known], dtype=np.bool_),
        np.array(decided, dtype=np.bool_) | sure,
        refuted=sure if sure.any() else None,
        alike=np.array([alike.get(id, score) for id, score in scores.items()]) if alike else None,
    )


def _listed(names: dict[str, None]) -> str:
    return ", ".join(repr(name) for name in names)
