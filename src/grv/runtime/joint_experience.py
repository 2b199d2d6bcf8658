"""What a learned portfolio knows: the finished problems of a ledger with the same generators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from ..learning.online import SEVERAL_GENERATORS, FitSchedule
from .experience import Experience, HistoryKind, history_of

if TYPE_CHECKING:
    from ..learning.joint import PastAttempts
    from ..ledger.entries import Data, Entry
    from ..ledger.ledger import Ledger
    from ..policies.portfolio import JointPrior
    from .config import SearchConfig
    from .ledger_writer import LedgerWriter
    from .record import SearchRecord


class JointExperience(Experience):
    """The finished problems of the same generators, each with its score."""

    schedule: ClassVar[FitSchedule] = SEVERAL_GENERATORS

    @classmethod
    def of_all(cls, config: SearchConfig, writer: LedgerWriter) -> Experience:
        """That of a configuration with several generators, which learns."""
        kinds = {name: HistoryKind.of(each.about) for name, each in config.generators.items()}
        history = history_of(config)
        name = (cls, tuple(kinds.items()), history, id(config.past), config.waits)
        if name not in writer.shared:
            made = cls(writer.ledger, kinds, config.past, history, waits=config.waits)
            writer.shared[name] = made
        experience: JointExperience = writer.shared[name]
        return experience

    def __init__(
        self,
        ledger: Ledger,
        kinds: Mapping[str, HistoryKind],
        past: Sequence[PastAttempts],
        history: tuple[str, ...] = (),
        *,
        waits: bool = False,
    ) -> None:
        super().__init__(ledger, history=history, waits=waits)
        self._kinds = dict(kinds)
        self._earlier = past

    @property
    def _scores(self) -> dict[str, str]:
        return {name: kind.score for name, kind in self._kinds.items()}

    def _read_given(self) -> list[PastAttempts]:
        from ..learning.joint_history import read_attempts

        read = [each for path in self._history for each in read_attempts(path, self._scores)]
        return [*read, *self._earlier]

    def _is_kind(self, about: Data) -> bool:
        generators = about.get("generators")
        if not isinstance(generators, Mapping):
            return False
        return {name: HistoryKind.of(own) for name, own in generators.items()} == self._kinds

    def _remember(self, record: SearchRecord) -> None:
        self._known.pop(record.search, None)  # its entries are read when they are needed

    def _past_of(self, search: str, entries: Sequence[Entry]) -> PastAttempts:
        from ..learning.joint_history import attempts_of_entries

        return attempts_of_entries(entries, self._scores)

    def _prior_of(self, past: Sequence[PastAttempts]) -> JointPrior | None:
        from ..learning.joint import prior_of

        return prior_of(past, list(self._kinds))
