"""The pure core: actions and events, the ranking of candidates, the state machine of a search.

Here are the parts of limits and costs that few programs need (`Pace`, `Cascade`, `Measured`), and
what a search says about itself (`Outcome`, `Bill`, `Turn`).

    >>> import grv
    >>> limits = grv.Limits(budget=500, pace=grv.core.Pace(deadline=60))
    >>> limits.pace.deadline
    60
"""

from .errors import BackendError, EventError, PolicyError
from .pace import Pace
from .values import (
    Bill,
    CandidateId,
    Cascade,
    Latency,
    Measured,
    Outcome,
    Reason,
    Rescore,
    Rescored,
    Rounds,
    Turn,
)

__all__ = [
    "BackendError",
    "Bill",
    "CandidateId",
    "Cascade",
    "EventError",
    "Latency",
    "Measured",
    "Outcome",
    "Pace",
    "PolicyError",
    "Reason",
    "Rescore",
    "Rescored",
    "Rounds",
    "Turn",
]
