"""The tree of errors. Each name says where the fault lies.

GrvError
├── UsageError
├── PolicyError
├── EventError
├── BackendError
│   ├── GeneratorError
│   ├── ScorerError
│   └── VerifierError
├── RunStopped
├── LedgerError
│   └── LedgerFormatError
└── LogError

These are results, not errors: no answer found, budget spent, generator exhausted
(`Outcome.reason`), and a verifier that could not decide (`Verdict.BROKEN`).
"""

from __future__ import annotations

from typing import Literal

Fault = Literal["wait", "stop", "call"]
CALLS_AT_ONCE = "calls"  # the limit of a server that has too many calls in flight
DISTRIBUTION = "generate-rank-verify"  # what pip installs; the package and the command are grv


def installing(extra: str) -> str:
    """The command that installs an extra. Messages about a missing package end with it."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"


class GrvError(Exception):
    """Base class of all errors that grv raises."""


class UsageError(GrvError, ValueError):
    """The caller made a mistake: a bad argument, an unknown policy name."""


class PolicyError(GrvError):
    """A policy yielded an illegal step. This is a bug in the policy."""


class EventError(GrvError):
    """An event does not match the action that was asked. This is a bug in the driver."""


class BackendError(GrvError):
    """A generator, scorer or verifier failed.

    Attributes:
        backend: the backend's name.
        problem_id: the problem it was working on, if known.
        retry_after: seconds to wait before the next attempt, if known.
        fault: what the error concerns. "wait": the server is out of service or busy for now, so try
            again while that lasts. "stop": no call of the run can succeed, e.g. after a wrong API
            key. "call": this attempt only.
        final: whether a fault "call" concerns every attempt of the call, e.g. a prompt that is too
            long. Then there is no retry.
        unpaid: True if the attempt was certainly not charged.
        at_most: how many of the attempt's candidates may have been charged in vain; None is all.
        place: the host and port of the server, if there is one.
        hint: what the user can do about it.
        limit: the limit for which a server refused the call: "calls" at once, or what it counts per
            minute, such as "requests" or "tokens"; empty if it was not refused for a limit.
    """

    def __init__(
        self,
        message: str,
        *,
        backend: str = "",
        problem_id: str | None = None,
        retry_after: float | None = None,
        fault: Fault = "call",
        final: bool = False,
        unpaid: bool = False,
        place: str = "",
        hint: str = "",
        limit: str = "",
    ) -> None:
        super().__init__(message)
        self.limit = limit
        self.backend = backend
        self.problem_id = problem_id
        self.retry_after = retry_after
        self.fault: Fault = fault
        self.final = final
        self.unpaid = unpaid
        self.place = place
        self.hint = hint
        self.at_most: int | None = None


class GeneratorError(BackendError):
    """The generator failed."""


class ScorerError(BackendError):
    """The scorer failed."""


class VerifierError(BackendError):
    """The verifier failed. This says nothing about the candidate."""


class RunStopped(GrvError):
    """No call of the run can succeed until the user acts. The same run continues afterwards."""


class LedgerError(GrvError):
    """The ledger cannot be read or written.

    Attributes:
        path: the ledger's file.
        entry: the number of the faulty entry, if known.
    """

    def __init__(self, message: str, *, path: str = "", entry: int | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.entry = entry


class LedgerFormatError(LedgerError):
    """A newer version of grv wrote the ledger."""


class LogError(GrvError):
    """Logged data is invalid.

    The message starts with the file and the line, as a compiler's message does.

    Attributes:
        path: the file.
        line: the line of a text file, or the row of a table, counted from 1, if known.
        problem_id: the problem, if known.
    """

    def __init__(
        self,
        message: str,
        *,
        path: str = "",
        line: int | None = None,
        problem_id: str | None = None,
    ) -> None:
        place = path if line is None else f"{path}:{line}"
        super().__init__(f"{place}: {message}" if place else message)
        self.path = path
        self.line = line
        self.problem_id = problem_id
