"""What the policy `learning` knows: the finished problems of a ledger, and a prior fitted to them.

Searches of one generator and score share it. A search takes the prior that is there when it
starts. After the search that makes a new fit due, the prior is fitted in a thread; other searches
continue meanwhile. The order of the ends in the ledger decides which problems a prior is fitted to.
So a run that is interrupted and continued, one problem at a time, takes the same course.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import anyio.to_thread

from ..core.errors import LedgerError
from ..learning.ledger_history import entries_past, ledger_past, score_of, search_past
from ..learning.online import LEARNING, Schedule, fitted_prior, last_refit, window
from ..ledger.entries import Data, Entry
from ..policies import Learning
from .config import SearchConfig
from .ledger_writer import LedgerWriter
from .search_record import SearchRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..ledger.ledger import Ledger
    from .portfolio.config import AnyConfig


class Kind(NamedTuple):
    """What the searches of one history have in common."""

    generator: str
    scorer: str
    score: str
    alike: str = ""

    @classmethod
    def of(cls, about: Data) -> Kind:
        """That of a search, by its settings."""
        generator, scorer = (str(about.get(name, "")) for name in ("generator", "scorer"))
        return cls(generator, scorer, score_of(about), str(about.get("alike") or ""))


_NO_KIND = Kind("", "", "")


Past = Any  # what is known of a problem: a `PastProblem`, or one for each of several generators


class Experience:
    """The finished problems of one generator and score, as far as searches of this writer need."""

    schedule: ClassVar[Schedule] = LEARNING

    @classmethod
    def of(cls, config: AnyConfig, writer: LedgerWriter) -> Experience:
        """That of a configuration; it knows nothing if the policy is another one."""
        if not isinstance(config, SearchConfig):
            from .portfolio.experience import JointExperience

            return JointExperience.of_all(config, writer)
        if not isinstance(config.policy, Learning):
            return NOTHING
        kind, history = Kind.of(config.about), config.policy.history
        name = (cls, kind, history)
        if name not in writer.shared:
            writer.shared[name] = Experience(writer.ledger, kind, history)
        found: Experience = writer.shared[name]
        return found

    def __init__(
        self, ledger: Ledger | None, kind: Kind = _NO_KIND, history: tuple[str, ...] = ()
    ) -> None:
        self._ledger, self._kind, self._history = ledger, kind, history
        self._given: list[Past] | None = None  # of the history that was given
        self._known: dict[str, Past] = {}  # by search
        self._finished: dict[str, None] = {}  # searches in the order of their ends
        self._fitted = 0  # the number of finished problems at the last fit
        self._prior: Any = None
        self._lock = threading.Lock()

    async def prior(self) -> Any:
        """The prior for a search that starts now; None if it is too early for one."""
        if self._ledger is not None and self._given is None:
            await anyio.to_thread.run_sync(self._load)
        return self._prior

    async def add(self, record: SearchRecord) -> None:
        """Take account of a search, if it has ended."""
        if self._ledger is not None and record.ended is not None:
            await anyio.to_thread.run_sync(self._add, record)

    def _load(self) -> None:
        with self._lock:
            if self._given is None:
                given = self._read_given()
                self._fit(given)
                self._given = given

    def _add(self, record: SearchRecord) -> None:
        with self._lock:
            self._remember(record)
            self._finished[record.search] = None
            if self._given is None:
                return  # the first search that needs a prior loads all
            finished = len(self._given) + len(self._finished)
            if last_refit(finished, self.schedule) > self._fitted:
                self._fit(self._given)

    def _fit(self, given: list[Past]) -> None:
        """Fit the prior to what the ledger shows now, also of other processes."""
        assert self._ledger is not None
        ended = [id for id, about in self._ledger.ended_searches() if self._is_kind(about)]
        self._finished = dict.fromkeys(ended)
        every: list[Past | str] = [*given, *ended]
        wanted = window(len(every), self.schedule)
        if wanted.stop > self._fitted:
            used = [self._past(x) if isinstance(x, str) else x for x in every[wanted]]
            self._prior, self._fitted = self._prior_of(used), wanted.stop

    def _past(self, search: str) -> Past:
        if search not in self._known:
            assert self._ledger is not None
            try:
                entries = self._ledger.read(search)
            except LedgerError:
                entries = ()  # damaged: nothing is learned from it
            self._known[search] = self._past_of(search, entries)
        return self._known[search]

    # What differs with several generators:

    def _read_given(self) -> list[Past]:
        score = self._kind.score
        return [each for path in self._history for each in ledger_past(path, score)[0]]

    def _is_kind(self, about: Data) -> bool:
        return Kind.of(about) == self._kind

    def _remember(self, record: SearchRecord) -> None:
        past = search_past(record.search, record.scored, record.found)
        self._known[record.search] = past

    def _past_of(self, search: str, entries: Sequence[Entry]) -> Past:
        return entries_past(search, entries)

    def _prior_of(self, past: Sequence[Past]) -> Any:
        return fitted_prior(past, self._kind.score)


NOTHING = Experience(None)
