"""The models of the score `auto`: fitted to the verdicts of the run's own ledger.

A search takes the model that is there when it starts, and its first entry has it. The model depends
on the ledger alone: after 6, 10, 15, 22 ... finished searches it is fitted to the first 6, 10, 15,
22 ... of them. Searches of a server count only for the client that paid for them, unless the
operator joins their histories.

The policy `learning` needs a prior that says what scores of this model mean. The scores on record
are those of older models, or none at all. So the finished problems are scored again, each by a
model that was fitted to others, and the prior is fitted to these scores.
"""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ..backends.callables import in_thread
from ..backends.scorers.auto import AUTO
from ..core.errors import LedgerError
from ..learning.online import fitted_prior, last_refit, next_refit
from ..ledger.entries import Data, Made
from ..ledger.ledger import Ledger
from .config import SearchConfig
from .ledger_writer import LedgerWriter

if TYPE_CHECKING:
    from ..backends.scorers.trained.model import TrainedModel
    from ..learning.trained.refits import Refits
    from ..policies.learned.prior import Prior


class OwnModel(NamedTuple):
    """A model, and the prior that says what its scores mean."""

    model: TrainedModel
    prior: Prior | None = None


class OwnModels:
    """The models of one ledger, for the searches of one client.

    Args:
        ledger: has the verdicts.
        given: the name of another score that the models use.
        client: whose searches count; None counts all.
    """

    @classmethod
    def of(cls, config: SearchConfig, writer: LedgerWriter) -> OwnModels:
        """Those that the searches of a configuration share."""
        given = str(config.about.get("alike") or "")
        client = None if config.joined else _client(config.about)
        name = (cls, given, client)
        if name not in writer.shared:
            writer.shared[name] = cls(writer.ledger, given, client)
        models: OwnModels = writer.shared[name]
        return models

    def __init__(self, ledger: Ledger, given: str = "", client: str | None = None) -> None:
        self._ledger = ledger
        self._given = given
        self._client = client
        self._refits: Refits | None = None  # its libraries are loaded when they are needed
        self._lock = threading.Lock()
        self._ended = 0  # searches of this process that have ended
        self._due = 0  # the number of them at which the ledger is read again
        self._newest: OwnModel | None = None

    def ended(self) -> None:
        """Count a search that has ended. This does not wait for a fit."""
        self._ended += 1

    async def newest(self, *, learns: bool = False) -> OwnModel | None:
        """The newest model; None if there is none yet, or none is needed.

        With `learns`, it has a prior. A fit takes a while, in a thread of its own.
        """
        known = self._newest
        lacks_prior = learns and known is not None and known.prior is None
        if self._ended < self._due and not lacks_prior:
            return known
        return await in_thread(partial(self._fit, learns=learns))

    def _fit(self, *, learns: bool) -> OwnModel | None:
        """The newest model, fitted if that is due."""
        with self._lock:
            now = self._ended
            if now >= self._due:
                ended = [id for id, about in self._ledger.ended_searches() if self._counts(about)]
                is_needed = last_refit(len(ended)) > 0 and self._lacks_logprobs(ended[-1])
                self._newest = self._fitted() if is_needed else None
                self._due = now + next_refit(len(ended)) - len(ended)  # others wait until here
            if learns and self._newest is not None and self._newest.prior is None:
                assert self._refits is not None
                prior = fitted_prior(self._refits.history(), AUTO)
                self._newest = OwnModel(self._newest.model, prior)
            return self._newest

    def _fitted(self) -> OwnModel | None:
        if self._refits is None:
            from ..learning.trained.refits import Refits

            self._refits = Refits(lambda: self._ledger, self._given, counts=self._counts)
        model = self._refits.latest()
        known = self._newest
        if known is not None and known.model is model:
            return known
        return None if model is None else OwnModel(model)

    def _counts(self, about: Data) -> bool:
        return self._client is None or _client(about) == self._client

    def _lacks_logprobs(self, search: str) -> bool:
        """Whether a candidate of the newest search has none. Otherwise no model would be used."""
        try:
            entries = self._ledger.read(search)
        except LedgerError:
            return True  # damaged: it says nothing
        made = [entry for entry in entries if isinstance(entry, Made) and entry.text.strip()]
        return any(not entry.logprobs for entry in made)


def _client(about: Data) -> str:
    return str(about.get("client", ""))
