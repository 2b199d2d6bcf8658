"""Schedules: which of many searches takes its next step, if all share one budget.

`LeastSpent` is the default as soon as there is a total budget: the next step goes to the problem
that has cost least so far, so hard and impossible problems do not use up the money.

    >>> import grv
    >>> schedule = grv.schedules.parse("least-spent").begin()
    >>> schedule.add(0, next_cost=11)
    >>> schedule.add(1, next_cost=3)
    >>> schedule.ask()
    1
    >>> schedule.tell(1, spent=3, next_cost=12)
    True
    >>> schedule.ask()
    0

A rule is a frozen dataclass; its fields are its parameters, and `begin` makes the schedule of one
run. To add a rule, write its class, import it below and name it in the table: two lines. The first
line of its docstring is what help texts say about it. docs/theory/batch.md has the theorems.
"""

from __future__ import annotations

from typing import Any

from .by_key import CheapestPredicted as CheapestPredicted
from .by_key import Doubling as Doubling
from .by_key import InOrder as InOrder
from .by_key import LeastSpent as LeastSpent
from .by_key import prediction_weight as prediction_weight
from .schedule import Rule as Rule
from .schedule import Schedule as Schedule
from .spec import parse as parse
from .spec import written as written
from .stream import Stream as Stream

SCHEDULES: dict[str, type[Any]] = {
    "least-spent": LeastSpent,
    "in-order": InOrder,
    "doubling": Doubling,
    "cheapest-predicted": CheapestPredicted,
    "stream": Stream,
}

__all__ = [
    "SCHEDULES",
    "CheapestPredicted",
    "Doubling",
    "InOrder",
    "LeastSpent",
    "Rule",
    "Schedule",
    "Stream",
    "parse",
    "prediction_weight",
    "written",
]
