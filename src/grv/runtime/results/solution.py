"""The result of a live search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ... import html
from ...backends.protocols import Draft, Finding, Problem, Usage
from ...core.values import Bill, Turn, Verified, Verify
from ...ledger.entries import Call, Found
from ..executor import Executor

FAILED, UNFINISHED = "failed", "unfinished"  # outcomes besides those of `Reason`


@dataclass(frozen=True)
class Solution:
    """The result of a live search.

    Attributes:
        problem: the problem's id.
        outcome: solved, finished, exhausted, out of budget or failed; or unfinished, if it was
            read before its end.
        draft: the verified answer; if there is none, the best unverified candidate, or None.
        verified: whether `draft` passed.
        bill: the amount spent, in the unit of the costs.
        usage: tokens, seconds and dollars used, by kind of call.
        unneeded: verifications in flight when another one passed; they are paid for. Candidates
            generated ahead and not used are in `bill.unneeded`.
        seconds: how long the search has waited for results.
        lost: candidates per call whose attempt may have been paid for and has no result.
        unscored: the number of candidates without a score.
        search: the id of the search in the ledger.
        message: the reason, if the search failed or gave up.
        finding: the verifier's finding on a verified answer.
        policy: the policy that decided, as the ledger names it.
        answers: all verified answers; several if several were asked for.
        generator: the name of the generator of `draft`, if there are several generators.
        bills: the bill of each generator, if there are several.
    """

    problem: str
    outcome: str
    draft: Draft | None
    verified: bool
    bill: Bill
    usage: Mapping[Call, Usage]
    unneeded: int = 0
    lost: Mapping[Call, int] = field(default_factory=dict)
    unscored: int = 0
    search: str = ""
    message: str = ""
    finding: Finding | None = None
    answers: tuple[Draft, ...] = ()
    generator: str = ""
    bills: Mapping[str, Bill] = field(default_factory=dict)
    policy: str = ""
    seconds: float = field(default=0.0, compare=False)

    def _repr_html_(self) -> str:
        facts = [
            ("outcome", self.outcome),
            ("verified", "yes" if self.verified else "no"),
            ("generated", self.bill.generated),
            ("verifications", self.bill.verified),
            ("cost", f"{self.bill.total:g}"),
            ("seconds", f"{self.seconds:.1f}"),
        ]
        what = "Verified answer" if self.verified else "Best candidate, not verified"
        return html.whole(
            html.title(self.problem),
            html.table([name for name, _ in facts], [[value for _, value in facts]], left=2),
            html.paragraph(self.message) if self.message else "",
            "" if self.draft is None else html.paragraph(f"{what}:"),
            "" if self.draft is None else html.preformatted(self.draft.text),
        )


def failed_solution(problem: Problem, search: str, message: str) -> Solution:
    """The solution of a search that cannot run, because its record is damaged."""
    return Solution(
        problem.id, FAILED, None, False, Bill(0, 0, 0.0), {}, search=search, message=message
    )


def solution_of(
    problem: Problem,
    executor: Executor,
    outcome: str,
    bill: Bill,
    *,
    trace: Iterable[Turn] = (),
    best: int | None = None,
    answers: Sequence[int] = (),
    message: str = "",
    bills: Mapping[str, Bill] | None = None,
    seconds: float = 0.0,
) -> Solution:
    """The solution, from the trace of a search and its record.

    `answers` are the candidates that passed. Without any, `best` is the best open candidate.
    """
    record, answer = executor.record, next(iter(answers), None)
    chosen = best if answer is None else answer
    unneeded = sum(
        len(turn.action.ids) - len(turn.event.verdicts)
        for turn in trace
        if isinstance(turn.action, Verify) and isinstance(turn.event, Verified)
    )
    usage: dict[Call, Usage] = {
        "generate": _used(record.made.values()),
        "score": _used(record.scored.values()),
        "verify": _used(record.found.values()),
    }
    if record.scored_again:
        usage["rescore"] = _used(record.scored_again.values())
    return Solution(
        problem.id,
        outcome,
        None if chosen is None else executor.draft(chosen),
        answer is not None,
        bill,
        usage,
        unneeded,
        Counter(record.lost),
        sum(entry.score is None for entry in record.scored.values()),
        record.search,
        message,
        None if answer is None else _finding(record.found[answer]),
        tuple(executor.draft(id) for id in answers),
        "" if chosen is None else record.made[chosen].generator,
        bills or {},
        seconds=seconds,
    )


def _finding(found: Found) -> Finding:
    return Finding(found.verdict, found.reason, found.evidence, Usage.of(found.usage))


def _used(entries: Iterable[Any]) -> Usage:
    total = Usage()
    for entry in entries:
        total += Usage.of(entry.usage)
    return total
