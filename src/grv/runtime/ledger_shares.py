"""What earlier problems of a ledger say about the share of right candidates.

A check that errs decides by it under the rule `bayes` (theory/confirmations.py). The shares are
fitted to the calls on the candidates of ended searches: with the same generators, of the same
client, and with a check that was taken to err as often. A search takes the shares that are there
when it starts, and its first entry has them, so that it takes the same course after a kill.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import partial

import anyio.to_thread

from ..core.errors import LedgerError
from ..learning.online import RIGHT_SHARES, window
from ..ledger.entries import Data
from ..ledger.ledger import Ledger
from ..ledger.view import SearchView
from ..theory.confirmations import CallCounts, Errors, RightShares
from .config import SearchConfig
from .executor import finding_of
from .ledger_writer import LedgerWriter

_Generators = frozenset[str]
# the calls on the candidates of one search, by the errors they were taken to have
_Candidates = Mapping[Errors, tuple[CallCounts, ...]]


class LedgerShares:
    """The shares of right candidates that the ended searches of a ledger show.

    Args:
        ledger: has the verdicts.
        generators: whose candidates count.
        client: whose searches count; None counts all.
    """

    @classmethod
    def of(cls, config: SearchConfig, writer: LedgerWriter) -> LedgerShares:
        """Those that the searches of a configuration share."""
        generators = _generators(config.identity)
        client = None if config.joined else _client(config.about)
        name = (cls, generators, client)
        if name not in writer.shared:
            writer.shared[name] = cls(writer.ledger, generators, client)
        shares: LedgerShares = writer.shared[name]
        return shares

    def __init__(self, ledger: Ledger, generators: _Generators, client: str | None) -> None:
        self._ledger = ledger
        self._generators = generators
        self._client = client
        self._known: dict[str, _Candidates] = {}  # by search
        self._fitted: dict[Errors, tuple[int, RightShares | None]] = {}
        self._lock = threading.Lock()

    async def fitted(self, errors: Errors) -> RightShares | None:
        """The shares for a search that starts now; None if it is too early for a fit."""
        return await anyio.to_thread.run_sync(partial(self._fit, errors))

    def _fit(self, errors: Errors) -> RightShares | None:
        with self._lock:
            ended = [id for id, about in self._ledger.ended_searches() if self._counts(about)]
            wanted = window(len(ended), RIGHT_SHARES)
            last, shares = self._fitted.get(errors, (0, None))
            if wanted.stop > last:
                past = [self._candidates(id).get(errors, ()) for id in ended[wanted]]
                self._known = {id: self._known[id] for id in ended[wanted]}
                problems = [counts for counts in past if counts]
                shares = RightShares.fitted(problems, errors) if problems else None
                self._fitted[errors] = (wanted.stop, shares)
            return shares

    def _counts(self, about: Data) -> bool:
        is_own = self._client is None or _client(about) == self._client
        return is_own and _generators(about) == self._generators

    def _candidates(self, search: str) -> _Candidates:
        if search not in self._known:
            try:
                found = SearchView(self._ledger.read(search)).found
            except LedgerError:
                found = {}  # damaged: nothing is learned from it
            by_errors: dict[Errors, tuple[CallCounts, ...]] = {}
            for id in sorted(found):
                counted = finding_of(found[id]).call_counts
                if counted is not None:
                    counts, errors = counted
                    by_errors[errors] = (*by_errors.get(errors, ()), counts)
            self._known[search] = by_errors
        return self._known[search]


def _generators(about: Data) -> _Generators:
    """The generators of a search, by its settings."""
    own = about.get("generators")
    if isinstance(own, Mapping):
        return frozenset(str(each.get("generator", name)) for name, each in own.items())
    return frozenset([str(about.get("generator", ""))])


def _client(about: Data) -> str:
    return str(about.get("client", ""))
