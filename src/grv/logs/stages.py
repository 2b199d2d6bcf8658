"""The stages of verifications in a log: what ran, what each cost, which one failed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..files import is_number, parse_json
from ..parsing import LARGEST_COST
from .columns import is_absent

_WANTED = 'a JSON list of costs, or of pairs such as ["test 0", 0.5]'
_MOST = 10_000  # stages of one verification


class LoggedStage(NamedTuple):
    """A stage that ran: its name, what it cost, and whether it failed the candidate."""

    name: str
    cost: float
    failed: bool


def read_stages(value: Any, failed: Any) -> tuple[LoggedStage, ...] | None:
    """The stages of one verification, in the order in which they ran; None if there are none.

    Args:
        value: a list of costs, or of pairs of a name and a cost; or such a list as JSON.
        failed: the name of the stage that failed the candidate; empty or null if it passed.

    >>> read_stages('[["test 1", 0.5], ["test 0", 0.25]]', "test 0")[1]
    LoggedStage(name='test 0', cost=0.25, failed=True)
    """
    if is_absent(value) or value == "":
        return None
    listed = value
    if isinstance(value, str):
        try:
            listed = parse_json(value)
        except ValueError:
            raise ValueError(_WANTED) from None
    if not isinstance(listed, list | tuple) or len(listed) > _MOST:
        raise ValueError(_WANTED)
    last = "" if is_absent(failed) else str(failed)
    found = []
    for number, item in enumerate(listed):
        pair = (f"stage {number}", item) if is_number(item) else item
        match pair:
            case (str(name), int() | float() as cost) | [str(name), int() | float() as cost]:
                if not is_number(cost) or not 0 <= cost <= LARGEST_COST:
                    raise ValueError(_WANTED)
                found.append(LoggedStage(name, float(cost), name == last))
            case _:
                raise ValueError(_WANTED)
    return tuple(found)


@dataclass(frozen=True, eq=False)
class StageCosts:
    """The stages of all rows of a log: `[rows]`, None where there are none."""

    rows: NDArray[np.object_]

    @classmethod
    def of(cls, found: Sequence[tuple[LoggedStage, ...] | None]) -> StageCosts:
        """The stages of these rows."""
        rows = np.empty(len(found), dtype=object)
        for place, stages in enumerate(found):
            rows[place] = stages
        return cls(rows)

    @property
    def sums(self) -> NDArray[np.float64]:
        """What each verification cost; NaN where it has no stages."""
        totals = [math.nan if each is None else _total(each) for each in self.rows]
        return np.array(totals, dtype=np.float64)


def _total(stages: Sequence[LoggedStage]) -> float:
    return math.fsum(stage.cost for stage in stages)
