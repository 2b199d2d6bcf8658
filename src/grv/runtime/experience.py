"""What the policy `learning` knows: the finished problems of a ledger, and a prior fitted to them.

Searches of one generator and score share it; those of a server only if they are of one client,
unless the operator joins their histories. A search takes the prior that is there when it
starts. After the search that makes a new fit due, the prior is fitted in a thread; other searches
continue meanwhile. The order of the ends in the ledger decides which problems a prior is fitted to.
So a run that is interrupted and continued, one problem at a time, takes the same course.

If searches wait for each other (`turns.py`), the easy problems end first. Then a fit also has the
problems that were open at the last end that counts, as far as they were then. A search that has
waited takes the newest prior, if it has spent twice as much as when it took its last one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import anyio
import anyio.to_thread

from ..core.errors import LedgerError
from ..learning.ledger_history import RecordedPast, entries_past, score_of, search_past
from ..learning.online import LEARNING, FitSchedule, fitted_prior, last_refit, window
from ..ledger.entries import Data, Entry
from ..policies import Learning
from .config import SearchConfig
from .ledger_writer import LedgerWriter
from .record import SearchRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..ledger.ledger import Ledger


class HistoryKind(NamedTuple):
    """What the searches of one history have in common."""

    generator: str
    scorer: str
    score: str
    alike: str = ""
    client: str = ""

    @classmethod
    def of(cls, about: Data, *, joined: bool = False) -> HistoryKind:
        """That of a search, by its settings; `joined` is whether clients share a history."""
        generator, scorer = (str(about.get(name, "")) for name in ("generator", "scorer"))
        alike = str(about.get("alike") or "")
        client = "" if joined else str(about.get("client", ""))
        return cls(generator, scorer, score_of(about), alike, client)


_OPEN = 4  # open searches in a fit, for each of the most finished ones
_NO_KIND = HistoryKind("", "", "")


Past = Any  # what is known of a problem: a `PastProblem`, or one for each of several generators


def history_of(config: SearchConfig) -> tuple[str, ...]:
    """The files that the policies name which learn."""
    policies = [each.policy for each in config.generators.values()]
    listed = [policy.history for policy in policies if isinstance(policy, Learning)]
    return tuple(dict.fromkeys(path for paths in listed for path in paths))


class Experience:
    """The finished problems of one generator and score, as far as searches of this writer need."""

    schedule: ClassVar[FitSchedule] = LEARNING

    @classmethod
    def of(cls, config: SearchConfig, writer: LedgerWriter) -> Experience:
        """That of a configuration; it knows nothing if the search does not learn."""
        if not config.learns:
            return NOTHING
        if config.is_named:
            from .joint_experience import JointExperience

            return JointExperience.of_all(config, writer)
        kind = HistoryKind.of(config.about, joined=config.joined)
        history = history_of(config)
        name = (cls, kind, history, config.joined, config.waits)
        if name not in writer.shared:
            joined = config.joined
            made = Experience(writer.ledger, kind, history, joined=joined, waits=config.waits)
            writer.shared[name] = made
        experience: Experience = writer.shared[name]
        return experience

    def __init__(
        self,
        ledger: Ledger | None,
        kind: HistoryKind = _NO_KIND,
        history: tuple[str, ...] = (),
        *,
        joined: bool = False,
        waits: bool = False,
    ) -> None:
        self._ledger = ledger
        self._waits = waits
        self._kind = kind
        self._history = history
        self._joined = joined
        self._given: Sequence[Past] | None = None  # of the history that was given
        self._known: dict[str, Past] = {}  # by search
        self._finished: dict[str, None] = {}  # searches in the order of their ends
        self._fitted = 0  # the number of finished problems at the last fit
        self._prior: Any = None
        self._lock = threading.Lock()
        self._thread: anyio.CapacityLimiter | None = None

    async def prior(self) -> Any:
        """The prior for a search that starts now; None if it is too early for one."""
        if self._ledger is not None and self._given is None:
            await self._in_own_thread(self._load)
        return self._prior

    async def add(self, record: SearchRecord) -> None:
        """Take account of a search, if it has ended."""
        if self._ledger is not None and record.ended is not None:
            await self._in_own_thread(partial(self._add, record))

    async def _in_own_thread(self, work: Callable[[], None]) -> None:
        """Work in the one thread of this history.

        A history that does not answer, or is slow to fit, takes no thread of other searches.
        """
        if self._thread is None:
            self._thread = anyio.CapacityLimiter(1)
        await anyio.to_thread.run_sync(work, limiter=self._thread)

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

    def _fit(self, given: Sequence[Past]) -> None:
        """Fit the prior to what the ledger shows now, also of other processes."""
        assert self._ledger is not None
        ended = [id for id, about in self._ledger.ended_searches() if self._is_kind(about)]
        self._finished = dict.fromkeys(ended)
        wanted = window(len(given) + len(ended), self.schedule)
        if wanted.stop > self._fitted:
            first = max(0, wanted.start - len(given))
            own = ended[first : max(0, wanted.stop - len(given))]
            used = [*given[wanted], *map(self._past, own)]
            if self._waits and own:
                used += self._open_at_end(own[-1])
            self._prior = self._prior_of(used)
            self._fitted = wanted.stop

    def _open_at_end(self, search: str) -> list[Past]:
        """The problems that were open when a search ended, as far as they were then.

        They are censored: the ones that are easy have ended, so to leave the others out would
        promise too much.
        """
        assert self._ledger is not None
        past = []
        for other, about, number in self._ledger.open_at_end(search, _OPEN * self.schedule.most):
            if self._is_kind(about):
                with suppress(LedgerError):  # damaged: nothing is learned from it
                    past.append(self._past_of(other, self._ledger.read(other)[:number]))
        return past

    def _past(self, search: str) -> Past:
        if search not in self._known:
            assert self._ledger is not None
            try:
                entries = self._ledger.read(search)
            except LedgerError:
                entries = ()  # damaged: nothing is learned from it
            self._keep(search, self._past_of(search, entries))
        return self._known[search]

    def _keep(self, search: str, past: Past) -> None:
        """Remember the newest problems, as many as a fit takes; the ledger has the others."""
        self._known[search] = past
        if len(self._known) > self.schedule.most:
            del self._known[next(iter(self._known))]

    # What differs with several generators:

    def _read_given(self) -> Sequence[Past]:
        return RecordedPast(self._history, self._kind.score)

    def _is_kind(self, about: Data) -> bool:
        return HistoryKind.of(about, joined=self._joined) == self._kind

    def _remember(self, record: SearchRecord) -> None:
        self._keep(record.search, search_past(record.search, record))

    def _past_of(self, search: str, entries: Sequence[Entry]) -> Past:
        return entries_past(search, entries)

    def _prior_of(self, past: Sequence[Past]) -> Any:
        return fitted_prior(past, self._kind.score)


NOTHING = Experience(None)
