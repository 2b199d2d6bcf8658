"""What a learned portfolio knows: the finished problems of a ledger with the same generators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from ...learning.online import SEVERAL_GENERATORS, Schedule
from ...policies import Learning
from ..experience import NOTHING, Experience, Kind

if TYPE_CHECKING:
    from ...learning.joint import PastAttempts
    from ...ledger.entries import Data, Entry
    from ...ledger.ledger import Ledger
    from ...policies.portfolio import JointPrior
    from ..ledger_writer import LedgerWriter
    from ..search_record import SearchRecord
    from .config import PortfolioConfig


class JointExperience(Experience):
    """The finished problems of the same generators, each with its score."""

    schedule: ClassVar[Schedule] = SEVERAL_GENERATORS

    @classmethod
    def of_all(cls, config: PortfolioConfig, writer: LedgerWriter) -> Experience:
        """That of a configuration; it knows nothing if the portfolio does not learn."""
        if not config.learns:
            return NOTHING
        kinds = {name: Kind.of(each.about) for name, each in config.members.items()}
        policies = [each.policy for each in config.members.values()]
        listed = [each.history for each in policies if isinstance(each, Learning)]
        history = tuple(dict.fromkeys(path for paths in listed for path in paths))
        name = (cls, tuple(kinds.items()), history, id(config.past))
        if name not in writer.shared:
            writer.shared[name] = cls(writer.ledger, kinds, config.past, history)
        found: JointExperience = writer.shared[name]
        return found

    def __init__(
        self,
        ledger: Ledger,
        kinds: Mapping[str, Kind],
        past: Sequence[PastAttempts],
        history: tuple[str, ...] = (),
    ) -> None:
        super().__init__(ledger, history=history)
        self._kinds, self._earlier = dict(kinds), past

    @property
    def _scores(self) -> dict[str, str]:
        return {name: kind.score for name, kind in self._kinds.items()}

    def _read_given(self) -> list[PastAttempts]:
        from ...learning.joint_history import read_attempts

        read = [each for path in self._history for each in read_attempts(path, self._scores)]
        return [*read, *self._earlier]

    def _is_kind(self, about: Data) -> bool:
        each = about.get("generators")
        if not isinstance(each, Mapping):
            return False
        return {name: Kind.of(own) for name, own in each.items()} == self._kinds

    def _remember(self, record: SearchRecord) -> None:
        self._known.pop(record.search, None)  # its entries are read when they are needed

    def _past_of(self, search: str, entries: Sequence[Entry]) -> PastAttempts:
        from ...learning.joint_history import attempts_of_entries

        return attempts_of_entries(entries, self._scores)

    def _prior_of(self, past: Sequence[PastAttempts]) -> JointPrior | None:
        from ...learning.joint import prior_of

        return prior_of(past, list(self._kinds))
