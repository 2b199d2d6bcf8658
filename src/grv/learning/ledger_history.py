"""Reads a ledger as history: candidates that were verified have labels, the others have none.

Of the candidates with the same key, only the verified one has a label here: the labels of the
others carry no additional information. A candidate that was refuted without verification failed.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple, overload

from ..backends.scorers.auto import AUTO, BY_LOGPROB
from ..core.errors import UsageError
from ..core.values import REFUTED, Verdict, Verified, arrivals
from ..ledger.address import OperatorAddress
from ..ledger.entries import Data, Entry, Started
from ..ledger.opening import open_ledger
from ..ledger.view import SearchView

if TYPE_CHECKING:
    from .history import PastProblem, Payments


def ledger_past(path: str, score: str | None) -> tuple[list[PastProblem], str]:
    """The problems of a ledger with the score `score`, or its only score; and the score's name."""
    with closing(
        open_ledger(path, read_only=True, named=isinstance(path, OperatorAddress))
    ) as ledger:
        searches = [(summary, ledger.read(summary.id)) for summary in ledger.searches()]
    scorers = dict.fromkeys(_scorer(entries) for _, entries in searches)
    wanted = _chosen(path, score, scorers)
    found = [
        entries_past(f"{summary.problem} ({summary.id})", entries)
        for summary, entries in searches
        if _scorer(entries) == wanted
    ]
    return [problem for problem in found if len(problem.scores)], wanted


class _Recorded(NamedTuple):
    """A search of a ledger."""

    path: str
    search: str


class RecordedPast(Sequence["PastProblem"]):
    """The problems of ledgers, as `ledger_past` lists them. Each is read when it is needed.

    A fit needs the last few hundred problems. To read all of a large ledger takes long.
    """

    def __init__(self, paths: Sequence[str], score: str) -> None:
        self._searches = [each for path in paths for each in _recorded(path, score)]

    def __len__(self) -> int:
        """The number of problems."""
        return len(self._searches)

    @overload
    def __getitem__(self, index: int) -> PastProblem: ...
    @overload
    def __getitem__(self, index: slice) -> list[PastProblem]: ...
    def __getitem__(self, index: int | slice) -> PastProblem | list[PastProblem]:
        """Read one problem, or some."""
        if isinstance(index, int):
            return _read([self._searches[index]])[0]
        return _read(self._searches[index])


def _recorded(path: str, score: str) -> list[_Recorded]:
    """The searches of a ledger that have this score."""
    with closing(
        open_ledger(path, read_only=True, named=isinstance(path, OperatorAddress))
    ) as ledger:
        searches = ledger.oldest_first()
        settings = ledger.settings()
        scored = ledger.scored_searches()
    scorers = {search: score_of(settings.get(search, {})) for search in searches}
    wanted = _chosen(path, score, dict.fromkeys(scorers.values()))
    return [
        _Recorded(path, search)
        for search in searches
        # If its settings cannot be read, the search is damaged: reading it says so.
        if search in scored and (scorers[search] == wanted or search not in settings)
    ]


def _read(searches: Sequence[_Recorded]) -> list[PastProblem]:
    """What these searches say about their problems; each ledger is opened once."""
    problems: list[PastProblem] = []
    for path, own in itertools.groupby(searches, key=lambda each: each.path):
        with closing(
            open_ledger(path, read_only=True, named=isinstance(path, OperatorAddress))
        ) as ledger:
            for _, search in own:
                entries = ledger.read(search)
                started = next((each for each in entries if isinstance(each, Started)), None)
                name = started.problem if started else ""
                problems.append(entries_past(f"{name} ({search})", entries))
    return problems


def check_score(path: str, score: str) -> None:
    """Raise `UsageError` if no search of a ledger has this score."""
    with closing(
        open_ledger(path, read_only=True, named=isinstance(path, OperatorAddress))
    ) as ledger:
        found = ledger.ended_searches()
    _chosen(path, score, dict.fromkeys(score_of(about) for _, about in found))


def score_of(about: Data) -> str:
    """The name of a search's score, by its settings."""
    return str(about.get("score", "score"))


def _chosen(path: str, score: str | None, scorers: dict[str, None]) -> str:
    """The score that is wanted, or the only one."""
    if not scorers:
        raise UsageError(f"{path}: this ledger has no searches")
    if score is None and len(scorers) > 1:
        raise UsageError(f"{path}: choose one of {_listed(scorers)} with --score")
    wanted = score if score is not None else next(iter(scorers))
    if wanted == AUTO and BY_LOGPROB in scorers and AUTO not in scorers:
        wanted = BY_LOGPROB  # a ledger of an older grv, whose default it was
    if wanted not in scorers:
        raise UsageError(f"{path}: no score {wanted!r}; there are {_listed(scorers)}")
    return wanted


def _scorer(entries: Sequence[Entry]) -> str:
    started = next((entry for entry in entries if isinstance(entry, Started)), None)
    return score_of(started.about if started else {})


def entries_past(id: str, entries: Sequence[Entry]) -> PastProblem:
    """What the entries of a search say about its problem."""
    view = SearchView(entries)
    return search_past(id, view)


def search_past(id: str, view: SearchView) -> PastProblem:
    """What a search says about its problem: scores, verdicts, and what was paid."""
    import numpy as np

    from .history import PastProblem

    scored = view.scored
    found = view.found
    known = [found[each].verdict if each in found else None for each in scored]
    sure = np.array([each.key == REFUTED for each in scored.values()], dtype=np.bool_)
    scores = [-np.inf if each.score is None else each.score for each in scored.values()]
    own = [each.alike for each in scored.values()]
    has_alike = any(each is not None for each in own)
    alike = [score if each is None else each for each, score in zip(own, scores, strict=True)]
    decided = [verdict in (Verdict.PASSED, Verdict.FAILED) for verdict in known]
    return PastProblem(
        id,
        np.array(scores, dtype=np.float64),
        np.array([verdict is Verdict.PASSED for verdict in known], dtype=np.bool_),
        np.array(decided, dtype=np.bool_) | sure,
        refuted=sure if sure.any() else None,
        alike=np.array(alike, dtype=np.float64) if has_alike else None,
        payments=_payments(view),
    )


def _payments(view: SearchView) -> Payments | None:
    """What a search with measured costs has paid. A step with a pass says nothing of failures."""
    from .history import Payments

    total = Payments()
    for told in view.told:
        event = told.event
        for batch in arrivals(event):
            if batch.paid is not None:
                total += Payments(generated=len(batch.scores), generating=batch.paid)
        if isinstance(event, Verified) and event.paid is not None:
            number = len(event.verdicts) - len(event.shared)
            total += Payments(verified=number, verifying=event.paid)
            if Verdict.PASSED not in event.verdicts.values():
                total += Payments(failed=number, failing=event.paid)
    return None if total == Payments() else total


def _listed(names: dict[str, None]) -> str:
    return ", ".join(repr(name) for name in names)
