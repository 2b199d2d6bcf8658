"""Decide by what earlier problems of the same run have shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ..core.errors import UsageError
from ..core.pool import Pool
from ..core.search import Policy
from ..core.values import Costs, Step
from ..theory.guard import FACTOR
from .learned import Learned
from .learned.prior import Prior
from .promises import promises_of, sentence
from .varied import Varied


@dataclass(frozen=True)
class Learning:
    """Start like the default, then verify what earlier problems say is worth it; guarded.

    It needs no preparation. Each search is decided by one of two policies. The first six problems
    are searched by `varied(factor=5)`, the default policy inside a guard. Then grv fits a prior to
    the verdicts in the ledger, and `learned` decides by it, inside its two guards. The prior is
    fitted again after 10, 15, 22, 33, 50, 75 ... problems, to the last 400 with the same generator
    and score. If the scores of a problem differ from the history, the default policy decides,
    inside the same guards.

    If many problems share one budget, a problem that has waited may take a newer prior; then it is
    proven to cost at most 15 times verify-all.

    Choose it for a file of similar problems. A single search without history is that of
    `varied(factor=5)`. `grv compare` takes the problems of a log in random order and learns as it
    goes.

    Attributes:
        history: ledgers of earlier runs with the same score. Their problems count as finished
            before the first one.

    Examples:
        >>> import grv
        >>> grv.policies.Learning(history=("old.ledger",))
        Learning(history=('old.ledger',))
    """

    history: tuple[str, ...] = ()
    for_guests: ClassVar[bool] = True
    rank_only: ClassVar[bool] = False
    any_score: ClassVar[bool] = True
    relies_on: ClassVar[str] = "nothing for its bounds; it is cheap if problems are alike"
    proven: ClassVar[str] = sentence(promises_of("learning"))

    def __post_init__(self) -> None:
        given: object = self.history  # a specification may give one name
        history = tuple(given) if isinstance(given, tuple | list) else (given,)
        if not all(isinstance(each, str) and each for each in history):
            raise UsageError(
                f"learning: the history must be names of ledgers, not {self.history!r}"
            )
        object.__setattr__(self, "history", history)

    def chosen(self, prior: Prior | None) -> Policy:
        """The policy of the next search: by a prior, or the default without one; guarded."""
        return Varied(FACTOR) if prior is None else Learned(prior)

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        """Yield the steps of a search without history."""
        return self.chosen(None).plan(pool, costs)
