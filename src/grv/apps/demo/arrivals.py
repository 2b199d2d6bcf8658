"""What verifying candidates in order of arrival would have cost, for a live search."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...core.search import Search
from ...core.values import Bill, Costs, Generate, Generated, Stop, Verdict, Verified, Verify
from ...ledger.entries import Entry, Found, Made, Scored
from ...policies import VerifyAll


@dataclass(frozen=True)
class Arrivals:
    """The result of the policy `verify-all` on the candidates of a search.

    Attributes:
        bill: the payments until the first pass, or until the last candidate if none passes.
        solved: whether one passes. If not, the bill is a lower bound, because the candidates that
            verify-all would generate next are unknown.
        asked: the number of verdicts that are not on the search's own bill.
    """

    bill: Bill
    solved: bool
    asked: int


def arrivals(entries: Sequence[Entry], costs: Costs, verdict: Callable[[str], Verdict]) -> Arrivals:
    """Run `verify-all` on the recorded candidates of a search, one after the other.

    Equivalent candidates are verified once, as in the search itself. `verdict` gives the verdict of
    a text that the search did not verify.
    """
    texts = {entry.candidate: entry.text for entry in entries if isinstance(entry, Made)}
    scored = {entry.candidate: entry for entry in entries if isinstance(entry, Scored)}
    known = {entry.candidate: entry.verdict for entry in entries if isinstance(entry, Found)}
    search, asked = Search(VerifyAll(), costs, width=1), 0
    while not isinstance(action := search.ask(), Stop):
        match action:
            case Generate(n):
                seen = len(search.pool)
                search.tell(_generated(scored, range(seen, seen + n)))
            case Verify(ids):
                for id in ids:
                    if id not in known:
                        known[id] = verdict(texts[id])
                        asked += 1
                search.tell(Verified({id: known[id] for id in ids}))
    return Arrivals(search.bill, action.answer is not None, asked)


def _generated(scored: Mapping[int, Scored], ids: range) -> Generated:
    there = [scored[id] for id in ids if id in scored]
    scores = tuple(-math.inf if each.score is None else each.score for each in there)
    keys = tuple(each.key for each in there)
    return Generated(scores, keys if any(key is not None for key in keys) else ())
