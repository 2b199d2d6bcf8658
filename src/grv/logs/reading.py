"""Options for reading a log."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from ..options import Family, option


class Unlabelled(enum.StrEnum):
    """What to do with candidates without a label.

    Refuse them, count them as failed, drop them, or compute bounds: costs if all of them passed,
    and if all of them failed.
    """

    ERROR = "error"
    FAIL = "fail"
    DROP = "drop"
    BOUND = "bound"


@dataclass(frozen=True)
class Reading(Family):
    """How a log is read."""

    rewards: str | None = option(
        None,
        "The rewards.jsonl that belongs to a published generations.jsonl or verified.jsonl.",
        metavar="FILE",
    )
    unlabelled: Unlabelled = option(
        Unlabelled.ERROR,
        "What to do with candidates without a label. grv compare takes bound instead of error if"
        " the log is censored, as that of grv runs export.",
    )
