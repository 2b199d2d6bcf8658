"""The result of a live search."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import html
from ..backends.protocols import NOTHING, Draft, Finding, Problem, Usage
from ..conditions import Conditions
from ..core.values import Bill, Generated, Verified
from ..ledger.entries import Call, Ended
from ..ledger.pending import Tally
from ..ledger.view import SearchView
from ..usage import UNUSED
from .executor import Executor, finding_of
from .prices import Meter, meters_of

# outcomes besides those of `Reason`
FAILED = "failed"
UNFINISHED = "unfinished"
_NO_PRICES = Meter()


@dataclass(frozen=True)
class Solution:
    """The result of a live search.

    Attributes:
        problem: the problem's id.
        outcome: solved, finished, exhausted, out of budget or failed; or unfinished, if it was
            read before its end.
        draft: the verified answer; if there is none, the best unverified candidate, or None.
        verified: whether `draft` passed a check that does not err.
        bill: the amount spent, in the unit of the costs.
        usage: tokens, seconds and dollars used, by kind of call. Unknown dollars are None.
        unneeded: verifications in flight when another one passed; they are paid for. Candidates
            generated ahead and not used are in `bill.unneeded`.
        seconds: how long the search has waited for results.
        lost: candidates per call whose attempt may have been paid for and has no result.
        unscored: the number of candidates without a score.
        search: the id of the search in the ledger.
        message: the reason, if the search failed or gave up.
        finding: the verifier's finding on a verified answer.
        policy: the policy that decided, as the ledger names it.
        score: what the score `auto` has stood for: logprob, trained, or none (no log-probabilities,
            and no model yet). Empty if another score was given. Several generators may differ.
        answers: all verified answers; several if several were asked for.
        answer_programs: for each of them the program that passed, as read from its text; None if
            its check runs no programs.
        conditions: those under which the answer was verified, if they are known.
        generator: the name of the generator of `draft`, if there are several generators.
        bills: the bill of each generator, if there are several.

    Examples:
        >>> import grv
        >>> solution = grv.solve_now(
        ...     "four",
        ...     generator=lambda p: "4",
        ...     scorer=lambda p, t: 0.0,
        ...     verifier=lambda p, t: True,
        ...     budget=50,
        ... )
        >>> solution.outcome, solution.status, solution.text, solution.bill.total
        ('solved', 'verified', '4', 11.0)
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
    answer_programs: tuple[str | None, ...] = ()
    generator: str = ""
    bills: Mapping[str, Bill] = field(default_factory=dict)
    policy: str = ""
    seconds: float = field(default=0.0, compare=False)
    conditions: Conditions | None = None
    score: str = ""

    @property
    def text(self) -> str:
        """The text of `draft`; empty if there is none. Look at `verified`, too."""
        return "" if self.draft is None else self.draft.text

    @property
    def wrong_probability(self) -> float | None:
        """The probability of a wrong answer, if a check that errs has passed it."""
        return None if self.finding is None else self.finding.wrong_probability

    @property
    def status(self) -> str:
        """`verified`, `judged` if a check that errs has passed it, or `unverified`."""
        if self.verified:
            return "verified"
        return "unverified" if self.wrong_probability is None else "judged"

    def traced(self) -> dict[str, Any]:
        """What the span of its search says at the end."""
        dollars = [each.dollars for each in self.usage.values()]
        return {
            "grv.outcome": self.outcome,
            "grv.verified": self.verified,
            "grv.policy": self.policy or None,
            "grv.generated": self.bill.generated,
            "grv.verifications": self.bill.verified,
            "grv.cost": self.bill.total,
            "grv.cost.dollars": None if None in dollars else sum(map(float, filter(None, dollars))),
        }

    @property
    def answer_program(self) -> str | None:
        """The program that passed. The verdict is on this program, not on the text around it."""
        return next(iter(self.answer_programs), None)

    def _repr_html_(self) -> str:
        facts = [
            ("outcome", self.outcome),
            ("verified", "yes" if self.verified else "no"),
            ("generated", self.bill.generated),
            ("verifications", self.bill.verified),
            *([("shared verdicts", self.bill.shared)] if self.bill.shared else []),
            *([("repeated calls", self.bill.repeated)] if self.bill.repeated else []),
            ("cost", f"{self.bill.total:g}"),
            ("seconds", f"{self.seconds:.1f}"),
        ]
        kinds = {"verified": "Verified answer", "judged": "Answer that a judge has passed"}
        what = kinds.get(self.status, "Best candidate, not verified")
        return html.whole(
            html.title(self.problem),
            html.table([name for name, _ in facts], [[value for _, value in facts]], left=2),
            html.paragraph(self.message) if self.message else "",
            "" if self.draft is None else html.paragraph(f"{what}:"),
            "" if self.draft is None else html.preformatted(self.draft.text),
            "" if self.answer_program is None else html.paragraph("Program that passed:"),
            "" if self.answer_program is None else html.preformatted(self.answer_program),
        )


def bill_of(bill: Bill, tally: Tally, used: int, *, is_reserved: bool = True) -> Bill:
    """The bill of a search: everything on its record, also what the search was not told.

    A limit, a failure or a pass may end a step before it is complete, and a search that is resumed
    in another way may not need all that was paid before.

    Args:
        bill: what the search was told.
        tally: what the record adds up to.
        used: the candidates that the plan has used.
        is_reserved: whether the ledger knows what calls without a result may cost.
    """
    total = bill.total
    if not tally.charged and not math.isclose(total, tally.billed, rel_tol=1e-9, abs_tol=1e-9):
        total = tally.billed if is_reserved else max(total, tally.billed)
    return Bill(
        len(tally.made),
        tally.verifications,
        total,
        tally.rescored,
        len(tally.refuted),
        len(tally.made) - used + tally.cancelled_drafts,
        shared=tally.shared,
        repeated=bill.repeated,
    )


def recorded_bill(record: SearchView, ended: Ended) -> Bill | None:
    """The bill of a search as its end has it; None if it takes the course of the search to know it.

    That is so if candidates were generated ahead, or if more was recorded after the end.
    """
    tally = record.tally
    used = 0
    repeated = 0
    for told in record.told:
        match told.event:
            case Generated(scores):
                used += len(scores)
            case Verified(meanwhile=None):
                repeated += told.event.repeated
            case Verified():
                return None
    counts = (len(tally.made), tally.verifications, tally.shared)
    if counts != (ended.generated, ended.verified, ended.shared):
        return None
    if not tally.charged and not math.isclose(
        ended.total, tally.billed, rel_tol=1e-9, abs_tol=1e-9
    ):
        return None
    return Bill(
        ended.generated,
        ended.verified,
        ended.total,
        tally.rescored,
        len(tally.refuted),
        ended.generated - used + tally.cancelled_drafts,
        shared=ended.shared,
        repeated=repeated,
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
    best: int | None = None,
    answers: Sequence[int] = (),
    message: str = "",
    bills: Mapping[str, Bill] | None = None,
    meters: Mapping[str, Meter] | None = None,
    seconds: float = 0.0,
    score: str = "",
) -> Solution:
    """The solution, from the bill of a search and its record.

    `answers` are the candidates that passed. Without any, `best` is the best open candidate.
    `meters` compute the dollars, by the name of the generator.
    """
    record = executor.record
    answer = next(iter(answers), None)
    chosen = best if answer is None else answer
    usage = usage_by_call(record, meters or {})
    finding = None if answer is None else finding_of(record.found[answer])
    return Solution(
        problem.id,
        outcome,
        None if chosen is None else executor.draft(chosen),
        finding is not None and finding.wrong_probability is None,
        bill,
        usage,
        record.tally.cancelled,
        record.tally.lost,
        len([entry for entry in record.scored.values() if entry.score is None]),
        record.search,
        message,
        finding,
        tuple(executor.draft(id) for id in answers),
        tuple(finding_of(record.found[id]).answer_program for id in answers),
        "" if chosen is None else record.made[chosen].generator,
        bills or {},
        seconds=seconds,
        conditions=None if answer is None else record.found[answer].conditions,
        score=score,
    )


def dollars_of(record: SearchView) -> float | None:
    """What the results of a recorded search cost in dollars; None if that is unknown."""
    return sum(usage_by_call(record, meters_of(record.about)).values(), NOTHING).dollars


def usage_by_call(record: SearchView, meters: Mapping[str, Meter]) -> dict[Call, Usage]:
    """What a search used, by kind of call, with the dollars if they are known.

    Args:
        record: what the ledger has of the search.
        meters: by the name of the generator.
    """
    totals: dict[Call, Usage] = {"generate": NOTHING, "score": NOTHING, "verify": NOTHING}
    results: dict[Call, Mapping[int, Any]] = {
        "generate": record.made,
        "score": record.scored,
        "verify": record.found,
        "rescore": record.scored_again,
    }
    for call, entries in results.items():
        usages = []
        dollars: list[float | None] = []
        unused = {name: meter.price(call, UNUSED) for name, meter in meters.items()}
        for id, entry in entries.items():
            used = entry.usage
            usages.append(used)
            if call == "verify" and entry.shared:
                dollars.append(0.0)
                continue
            name = record.made[id].generator if id in record.made else ""
            if used is UNUSED and name in unused:  # most scores
                dollars.append(unused[name])
            else:
                dollars.append(meters.get(name, _NO_PRICES).price(call, used))
        if usages:
            totals[call] = Usage.total(usages, dollars)
    return totals
