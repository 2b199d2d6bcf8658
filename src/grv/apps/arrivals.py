"""What verifying each candidate as it came would have cost, on the candidates of a live search."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..core.search import Search
from ..core.values import Bill, Costs, Generate, Generated, Stop, Verdict, Verified, Verify
from ..ledger.entries import Entry, Found, Made, Scored
from ..policies import VerifyAll


@dataclass(frozen=True)
class Arrivals:
    """How the policy `verify-all` fares on the candidates that a search has generated.

    Attributes:
        bill: what it pays until its first pass; until the last candidate, where none passes.
        solved: whether one passes. If not, the bill is a lower bound: nobody knows what else would
            have been generated.
        asked: verdicts that are not in the search's own bill, and were asked for to know this.
    """

    bill: Bill
    solved: bool
    asked: int


def arrivals(entries: Sequence[Entry], costs: Costs, verdict: Callable[[str], Verdict]) -> Arrivals:
    """Drive `verify-all` over what a search has on record, one candidate after the other.

    Equivalent candidates are verified once, as in the search itself. `verdict` is asked about texts
    that the search did not verify.
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
