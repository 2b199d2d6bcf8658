"""Logs of candidates with their scores and labels, and their files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import loader

if TYPE_CHECKING:
    from .log import LoggedProblem as LoggedProblem
    from .readers import read_log as read_log

_HOMES = {
    "LoggedProblem": "log",
    "read_log": "readers",
}

__all__ = [
    "LoggedProblem",
    "read_log",
]

__getattr__ = loader(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
