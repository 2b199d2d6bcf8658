"""Rules as text, such as `cheapest-predicted(k=1)`, for command lines and ledgers."""

from __future__ import annotations

from ..specification import make, write
from .schedule import Rule


def parse(text: str) -> Rule:
    """The rule that a specification names.

    >>> parse("cheapest-predicted(k=1)")
    CheapestPredicted(k=1)
    """
    from . import SCHEDULES

    rule: Rule = make(text, "schedule", SCHEDULES)
    return rule


def written(rule: Rule) -> str:
    """The specification of a rule, without parameters that have their default value.

    >>> written(parse("cheapest-predicted(k=0.5)"))
    'cheapest-predicted'
    """
    from . import SCHEDULES

    return write(rule, "schedule", SCHEDULES)
