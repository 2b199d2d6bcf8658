"""Learning from history: fits priors to logs and ledgers, and combines scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import loader

if TYPE_CHECKING:
    from .history import History as History
    from .history import PastProblem as PastProblem
    from .history import past as past
    from .joint_history import read_attempts as read_attempts
    from .prior_file import load_prior as load_prior

_HOMES = {
    "History": "history",
    "PastProblem": "history",
    "load_prior": "prior_file",
    "past": "history",
    "read_attempts": "joint_history",
}

__all__ = [
    "History",
    "PastProblem",
    "load_prior",
    "past",
    "read_attempts",
]

__getattr__ = loader(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
