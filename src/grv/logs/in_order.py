"""What `verify-all` costs on the candidates of a live search.

This is the one definition for the dashboard and the demo. It is also what `grv compare` says about
the exported log with `--keys --order-scheme logged`: candidates arrive in the order in which they
were generated, refuted ones are never verified, a key that has failed is not verified again, and
the first pass ends it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..core.search import Search
from ..core.values import Bill, Costs, Generate, Generated, Stop, Verdict, Verified, Verify
from ..ledger.entries import Made, Scored
from ..ledger.view import SearchView
from ..policies import VerifyAll


@dataclass(frozen=True)
class VerifyAllResult:
    """The result of the policy `verify-all` on the candidates of a search.

    Attributes:
        bill: the payments until the first pass, or until the last candidate if none passes.
        solved: whether one passes. If not, the bill is a lower bound, because the candidates that
            verify-all would generate next are unknown.
        asked: the number of verdicts that are not on record.
    """

    bill: Bill
    solved: bool
    asked: int


def arrivals(view: SearchView, costs: Costs, verdict: Callable[[str], Verdict]) -> VerifyAllResult:
    """Run `verify-all` on the recorded candidates of a search, one after the other.

    Equivalent candidates are verified once, as in the search itself. `verdict` gives the verdict of
    a text that the record does not label.
    """
    made = view.made
    scored = view.scored
    known = {id: view.found[other].verdict for id, other in view.verdicts_from().items()}
    search = Search(VerifyAll(), costs)
    asked = 0
    while not isinstance(action := search.ask(), Stop):
        match action:
            case Generate(n):
                seen = len(search.pool)
                search.tell(_generated(made, scored, range(seen, seen + n)))
            case Verify(ids):
                for id in ids:
                    if id not in known:
                        known[id] = verdict(made[id].text)
                        asked += 1
                search.tell(Verified({id: known[id] for id in ids}))
    return VerifyAllResult(search.bill, action.answer is not None, asked)


def bounds(view: SearchView, costs: Costs) -> tuple[VerifyAllResult, VerifyAllResult]:
    """The least and the most that `verify-all` costs, whatever the missing verdicts are.

    It costs least if every candidate without a verdict passes, and most if all of them fail: this
    is how `grv compare` treats a censored log too.
    """
    least = arrivals(view, costs, lambda text: Verdict.PASSED)
    return least, arrivals(view, costs, lambda text: Verdict.FAILED)


def _generated(made: Mapping[int, Made], scored: Mapping[int, Scored], ids: range) -> Generated:
    there = [scored.get(id) for id in ids if id in made]
    scores = [None if each is None else each.score for each in there]
    ranked = tuple(-math.inf if score is None else score for score in scores)
    keys = tuple(None if each is None else each.key for each in there)
    return Generated(ranked, keys if any(key is not None for key in keys) else ())
