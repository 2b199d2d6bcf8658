"""Options for reading a log."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import ClassVar

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
class Labels(Family):
    """Where the scores of a published log are, and what missing labels mean."""

    TITLE: ClassVar[str] = "Reading the log"

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


@dataclass(frozen=True)
class Reading(Labels):
    """How a log is read."""

    alike: str | None = option(
        None,
        "A column of numbers. If a candidate fails, varied and learned expect others with the same"
        " number to fail too; --score still ranks them. Default: the score itself, or what a prior"
        " says.",
        metavar="COLUMN",
    )
    refute: bool = option(
        True,
        "No row verifies candidates that were refuted without verification. The paper verifies and"
        " charges them: --no-refute.",
    )
