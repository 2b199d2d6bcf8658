"""What a collection needs: candidates, servers, verifications, hours, disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..backends.verifiers.checks import Check

_BYTES_A_TOKEN = 5  # of text; a rough figure for English and for programs
_BYTES_A_LOGPROB = 20
_BYTES_A_CANDIDATE = 1500  # its entries in the ledger, and its row in the log
_TEST_SECONDS = 10.0  # that a user's test may take on top of the candidate's own time


@dataclass(frozen=True)
class Resources:
    """What one collection needs at most.

    Attributes:
        problems: how many there are.
        candidates: generated and scored, in all.
        tokens: generated, in all; None where candidates are not cut.
        verifications: at most; equivalent candidates are verified once.
        program_seconds: what verifying takes on one worker if every test takes as long as it may.
        workers: programs run at once.
        servers: what has to be served, and where.
        disk_bytes: the ledger and the log; None where candidates are not cut.
    """

    problems: int
    candidates: int
    tokens: int | None
    verifications: int
    program_seconds: float
    workers: int
    servers: tuple[str, ...]
    disk_bytes: int | None

    def lines(self) -> list[str]:
        """The same in plain words."""
        cut = "" if self.tokens is None else f", at most {self.tokens:,} tokens"
        lines = [f"{self.problems:,} problems: {self.candidates:,} candidates{cut}"]
        lines += [f"needs {server}" for server in self.servers]
        verify = f"at most {self.verifications:,} verifications"
        if self.program_seconds:
            hours = self.program_seconds / self.workers / 3600
            verify += f": {hours:,.1f} hours on {self.workers} workers if every test took its time"
            verify += " to the last second, and as a rule a small part of that"
        else:
            verify += ", which compare answers and take moments"
        lines.append(verify)
        if self.disk_bytes is None:
            lines.append("disk: cannot be told without --max-tokens")
        else:
            lines.append(f"disk: at most {_size(self.disk_bytes)} for the ledger and log")
        return lines


def _size(count: int) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e8 else f"{count / 1e6:,.1f} MB"


def worst_seconds(check: Check) -> float:
    """How long verifying one candidate takes if every test takes as long as it may."""
    from ..backends.verifiers.programs.checks import AssertsCheck, FunctionCheck, StdinCheck

    match check.how:
        case StdinCheck(tests, limits):
            seconds = len(tests) * limits.seconds
        case FunctionCheck(_, tests, limits):
            seconds = (len(tests) + 1) * limits.seconds
        case AssertsCheck(limits=limits):
            seconds = limits.seconds + _TEST_SECONDS
        case _:
            seconds = 0.0
    return seconds * check.repeat


def needed(
    seconds: Sequence[float],
    *,
    n: int,
    sample: int | None,
    max_tokens: int | None,
    logprobs: bool,
    workers: int,
    servers: Sequence[str],
) -> Resources:
    """What it takes to collect `n` candidates a problem.

    Args:
        seconds: what one verification takes at worst; one a problem.
        n: candidates a problem.
        sample: how many of them are verified; None is all.
        max_tokens: where a candidate is cut.
        logprobs: whether the log-probabilities of tokens are kept.
        workers: programs run at once.
        servers: what has to be served.
    """
    candidates, each = n * len(seconds), n if sample is None else min(n, sample)
    tokens = None if max_tokens is None else candidates * max_tokens
    token_bytes = _BYTES_A_TOKEN + (_BYTES_A_LOGPROB if logprobs else 0)
    disk = None if tokens is None else tokens * token_bytes + candidates * _BYTES_A_CANDIDATE
    return Resources(
        problems=len(seconds),
        candidates=candidates,
        tokens=tokens,
        verifications=each * len(seconds),
        program_seconds=each * sum(seconds),
        workers=workers,
        servers=tuple(servers),
        disk_bytes=disk,
    )
