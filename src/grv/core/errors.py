"""The tree of errors. Names say whose fault it is.

GrvError
├── UsageError
├── PolicyError
├── EventError
├── BackendError
│   ├── GeneratorError
│   ├── ScorerError
│   └── VerifierError
├── LedgerError
│   └── LedgerFormatError
└── LogError

Not errors: no answer found, budget spent, generator exhausted (`Outcome.reason`), and a verifier
that could not tell (`Verdict.BROKEN`).
"""

from __future__ import annotations


class GrvError(Exception):
    """Anything that grv raises on purpose."""


class UsageError(GrvError, ValueError):
    """The caller's mistake: a bad argument, an unknown policy name."""


class PolicyError(GrvError):
    """A policy asked for something illegal: a bug in the policy."""


class EventError(GrvError):
    """A driver told the search something it was not asked for: a bug in the driver."""


class BackendError(GrvError):
    """The outside world failed.

    Attributes:
        backend: which backend, by name.
        problem_id: the problem it was working on, where known.
        retry_after: seconds after which another attempt may succeed, where known.
        final: whether another attempt cannot succeed: a wrong key, a model that does not exist.
    """

    def __init__(
        self,
        message: str,
        *,
        backend: str = "",
        problem_id: str | None = None,
        retry_after: float | None = None,
        final: bool = False,
    ) -> None:
        super().__init__(message)
        self.backend = backend
        self.problem_id = problem_id
        self.retry_after = retry_after
        self.final = final


class GeneratorError(BackendError):
    """The generator failed."""


class ScorerError(BackendError):
    """The scorer failed."""


class VerifierError(BackendError):
    """The verifier failed, in a way that says nothing about the candidate."""


class LedgerError(GrvError):
    """The ledger cannot be read or written.

    Attributes:
        path: the ledger's file.
        entry: the number of the entry in question, where known.
    """

    def __init__(self, message: str, *, path: str = "", entry: int | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.entry = entry


class LedgerFormatError(LedgerError):
    """The ledger was written by a newer version."""


class LogError(GrvError):
    """Logged data is not what it claims to be.

    The message starts with the file and the line, as compilers write it.

    Attributes:
        path: the file.
        line: the line of a text file, or the row of a table, counted from 1; where known.
        problem_id: the problem in question, where known.
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
