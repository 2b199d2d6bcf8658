"""What `grv collect` needs: candidates, servers, verifications, hours, disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..backends.verifiers.checks import Check

_BYTES_A_TOKEN = 5  # of text; a rough figure for English and for programs
_BYTES_A_LOGPROB = 20
_BYTES_A_CANDIDATE = 1500  # its entries in the ledger, and its row in the log
_TEST_SECONDS = 10.0  # allowed for the user's test on top of the candidate's own time


@dataclass(frozen=True)
class Resources:
    """What one run needs at most.

    Attributes:
        problems: the number of problems.
        candidates: the number of candidates, generated and scored.
        tokens: the number of tokens generated; None without a limit per candidate.
        verifications: the number of verifications; equivalent candidates are verified once.
        program_seconds: the time of verifying on one worker if every test takes its full limit.
        workers: the number of programs run at once.
        servers: the models that must be served, and where.
        disk_bytes: the size of ledger and log; None without a limit per candidate.
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
        """The needs as text."""
        cut = "" if self.tokens is None else f", at most {self.tokens:,} tokens"
        lines = [f"{self.problems:,} problems: {self.candidates:,} candidates{cut}"]
        lines += [f"needs {server}" for server in self.servers]
        verify = f"at most {self.verifications:,} verifications"
        if self.program_seconds:
            hours = self.program_seconds / self.workers / 3600
            verify += f": {hours:,.1f} hours on {self.workers} workers if every test took its"
            verify += " full limit; usually much less"
        else:
            verify += ", which compare answers and take moments"
        lines.append(verify)
        if self.disk_bytes is None:
            lines.append("disk: unknown without --max-tokens")
        else:
            lines.append(f"disk: at most {_size(self.disk_bytes)} for the ledger and log")
        return lines


def _size(count: int) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e8 else f"{count / 1e6:,.1f} MB"


def worst_seconds(check: Check) -> float:
    """The time of verifying one candidate if every test takes its full limit."""
    from ..backends.verifiers.checks import WholeTextCheck
    from ..backends.verifiers.groups import GroupCheck
    from ..backends.verifiers.languages.building import BUILDING
    from ..backends.verifiers.programs.checks import AssertsCheck, FunctionCheck, StdinCheck
    from ..backends.verifiers.programs.published import PublishedCheck
    from ..backends.verifiers.run import RunCheck

    match check.how:
        case StdinCheck(tests, limits):
            seconds = len(tests) * limits.seconds
        case FunctionCheck(_, tests, limits):
            seconds = (len(tests) + 1) * limits.seconds
        case RunCheck(_, tests, limits):
            seconds = BUILDING.seconds + len(tests) * limits.seconds
        case PublishedCheck(limits=limits):
            seconds = limits.seconds
        case AssertsCheck(limits=limits):
            seconds = limits.seconds + _TEST_SECONDS
        case GroupCheck(members):
            seconds = sum(worst_seconds(member.check) for member in members)
        case WholeTextCheck() as how:
            seconds = how.worst_seconds()
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
    """What it takes to collect `n` candidates per problem.

    Args:
        seconds: for each problem, the longest time of one verification.
        n: the number of candidates per problem.
        sample: the number of them that are verified; None means all.
        max_tokens: the most tokens per candidate.
        logprobs: whether the log-probabilities of tokens are kept.
        workers: the number of programs run at once.
        servers: the models that must be served.
    """
    candidates = n * len(seconds)
    verified = n if sample is None else min(n, sample)
    tokens = None if max_tokens is None else candidates * max_tokens
    token_bytes = _BYTES_A_TOKEN + (_BYTES_A_LOGPROB if logprobs else 0)
    disk = None if tokens is None else tokens * token_bytes + candidates * _BYTES_A_CANDIDATE
    return Resources(
        problems=len(seconds),
        candidates=candidates,
        tokens=tokens,
        verifications=verified * len(seconds),
        program_seconds=verified * sum(seconds),
        workers=workers,
        servers=tuple(servers),
        disk_bytes=disk,
    )
