"""Options for reading a log."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from ..options import Family, option


class Unlabelled(enum.StrEnum):
    """What to do with candidates without a label: refuse them, count them as failed, drop them."""

    ERROR = "error"
    FAIL = "fail"
    DROP = "drop"


@dataclass(frozen=True)
class Reading(Family):
    """How a log is read."""

    rewards: str | None = option(
        None,
        "The rewards.jsonl that belongs to a published generations.jsonl or verified.jsonl.",
        metavar="FILE",
    )
    unlabelled: Unlabelled = option(Unlabelled.ERROR, "What to do with candidates without a label.")
