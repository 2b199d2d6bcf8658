"""The newest model of a ledger, for the scores `trained:LEDGER` and `auto`.

After 6, 10, 15, 22 ... finished searches (`learning.online`) the model is fitted again, to the
first 6, 10, 15, 22 ... of them. So it depends on the ledger alone, not on when it is asked for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...backends.protocols import Scorer
from ...backends.scorers.trained.model import TrainedModel, load_model
from ...backends.scorers.trained.scorer import TrainedScorer
from ...core.errors import LedgerError, UsageError
from ...ledger.entries import Data
from ...ledger.ledger import Ledger
from ...ledger.opening import is_address, is_ledger, open_ledger
from ...ledger.tables import TableLedger
from ..history import PastProblem
from ..online import last_refit
from .cross_fit import cross_fitted, past_problems
from .fit import ScoredTexts, fit
from .texts import PastTexts, search_texts

MOST_SEARCHES = 400  # the newest finished searches that a model is fitted to


def trained_scorer(
    place: str, given: tuple[str, Scorer] | None = None, *, own: str | None = None
) -> TrainedScorer:
    """The scorer `trained:PLACE`.

    Args:
        place: a ledger, or a file of `grv learn --scorer`.
        given: the name of another score and its scorer, if the model should use it.
        own: the ledger of this run, which need not exist yet.
    """
    name = "" if given is None else given[0]
    return TrainedScorer(_source(place, name, own), given)


def _source(place: str, given: str, own: str | None) -> Callable[[], TrainedModel | None]:
    if place.endswith(".json"):
        model = load_model(place)
        for each in model.needs:
            if each != given:
                raise UsageError(f"{place} uses the score {each!r} too: give --alike {each}")
        return lambda: model
    if place != own and not is_address(place) and not is_ledger(place):
        missing = "not a ledger" if Path(place).exists() else "no such ledger"
        raise UsageError(f"trained:{place}: {missing}; give a ledger, or a file of grv learn")
    return Refits(OpenedLater(place), given, [place]).latest


class OpenedLater:
    """A ledger to read that need not exist yet."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._ledger: TableLedger | None = None

    def __call__(self) -> TableLedger | None:
        """The ledger; None as long as it does not exist."""
        if self._ledger is None and (is_address(self._place) or is_ledger(self._place)):
            self._ledger = open_ledger(self._place, read_only=True)
        return self._ledger


class Refits:
    """Fits the models of one ledger, each once. Any thread may ask for the newest.

    Args:
        ledger: returns the ledger; there is no model as long as it returns None.
        given: the name of a score to use. Only searches that have it count.
        sources: the files, for the record of the model.
        counts: whether a search counts, by its settings.
    """

    def __init__(
        self,
        ledger: Callable[[], Ledger | None],
        given: str = "",
        sources: Sequence[str] = (),
        counts: Callable[[Data], bool] = lambda about: True,
    ) -> None:
        self._ledger = ledger
        self._given = given
        self._sources = sources
        self._counts = counts
        self._lock = threading.Lock()
        # Of the last fit, by search; None if it is of no use.
        self._texts: dict[str, _Texts | None] = {}
        self._size = 0
        self._model: TrainedModel | None = None

    def latest(self) -> TrainedModel | None:
        """The newest model; None before the first, and if the verdicts do not allow one."""
        with self._lock:
            ledger = self._ledger()
            if ledger is None:
                return None
            ended = [id for id, about in ledger.ended_searches() if self._counts(about)]
            size = last_refit(len(ended))
            if size != self._size:
                self._model = self._fitted(ledger, ended[:size][-MOST_SEARCHES:])
                self._size = size
            return self._model

    def history(self) -> list[PastProblem]:
        """The problems of the newest model, each with scores by a model fitted to others."""
        with self._lock:
            texts = self._used
            problems = [each.problem for each in texts]
            given = [self._given] if self._given else []
            scores = cross_fitted(problems, given, trained=[each.training for each in texts])
            return past_problems(problems, scores, self._given)

    @property
    def _used(self) -> list[_Texts]:
        return [each for each in self._texts.values() if each is not None]

    def _fitted(self, ledger: Ledger, ids: list[str]) -> TrainedModel | None:
        old = self._texts
        self._texts = {id: old[id] if id in old else self._read(ledger, id) for id in ids}
        problems = [each.training for each in self._used]
        try:
            return fit(problems, [self._given] if self._given else [], self._sources)
        except UsageError:
            return None  # no problem has both a pass and a failure yet

    def _read(self, ledger: Ledger, id: str) -> _Texts | None:
        try:
            found = search_texts(id, ledger.read(id))
        except LedgerError:
            return None  # damaged; `grv runs check` reports it
        if found is None or (self._given and self._given not in found.given):
            return None
        return _Texts(found.problem, found.problem.training())


@dataclass(frozen=True, eq=False)
class _Texts:
    """One finished search: its problem, and the features to fit a model to."""

    problem: PastTexts
    training: ScoredTexts
