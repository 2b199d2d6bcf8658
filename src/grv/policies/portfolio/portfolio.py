"""Searches for one problem, one per generator, as one state machine. No I/O.

Theory of operation
-------------------
Each generator has its own `Search`: its pool, its score, its costs, its policy. The *chooser* says
which of them acts next. The driver asks the portfolio for a request, carries it out with that
generator, and tells the result, exactly as for one search. A chooser that *steers* also sets the
step: its searches have the policy `Steered`.

Invariants:

1. `ask` is idempotent: it returns the same request until its result is told.
2. One request is in flight at a time. The searches that do not act are told what was spent, and
   how long it took: the deadline is that of all searches together.
3. Budget and value are limits on the bill of all searches together. A generator's candidates are
   generated only if they also cover one verification of its own; the last money verifies its best
   open candidate, as in one search.
4. A pass in any search counts for all. The portfolio stops when `answers` candidates have passed.
5. A key that is refuted in one pool is refuted in all; a key that passed is not offered again.
6. A search that has ended leaves its share to the others. The portfolio ends with the last one.
7. A steered search is asked only after its step was set, so no step is older than the last event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from ...core.errors import UsageError
from ...core.pool import Pool
from ...core.search import Search
from ...core.values import (
    REFUTED,
    Action,
    Bill,
    CandidateId,
    Costs,
    Event,
    Generate,
    Outcome,
    Reason,
    Rescore,
    Step,
    Stop,
    Verdict,
    Verified,
    Verify,
)


class Steered:
    """The policy of a search whose steps a chooser sets, one at a time.

    Attributes:
        step: the next step.
        memory: what the chooser remembers of this search from step to step. It follows from the
            pool, so a resumed search has the same.
    """

    step: Step = Generate(1)
    memory: object = None

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        """Yield the step that was set last."""
        while True:
            yield self.step


@dataclass(frozen=True)
class Member:
    """A generator and its search; and its policy, if that is steered."""

    name: str
    search: Search
    steered: Steered | None = None

    @property
    def spent(self) -> float:
        """What this search has cost so far."""
        return self.search.spent

    @property
    def over(self) -> bool:
        """Whether the search has ended. A steered one is not asked: its step may be old."""
        if self.steered is None:
            self.search.ask()
            return self.search.outcome is not None
        pool = self.search.pool
        return self.search.outcome is not None or (pool.exhausted and not pool.waiting)

    @property
    def to_verdict(self) -> float:
        """The cost until the next verdict at least: the next action, and one verification."""
        costs = self.search.pool.costs
        match self.search.ask():
            case Generate(n):
                return n * costs.candidate + costs.verify
            case Verify(ids):
                return len(ids) * costs.verify
            case Rescore():
                return costs.verify
            case Stop():
                return 0.0

    def steer(self, step: Step) -> None:
        """Set the next step of a steered search."""
        assert self.steered is not None, "the searches of a chooser that steers are steered"
        self.steered.step = step


@dataclass(frozen=True)
class MemberAction:
    """What the driver has to do next, and with which generator; the last action is a `Stop`."""

    name: str
    action: Action


class Chooser(Protocol):
    """Decides which search acts next. A frozen dataclass: its fields are its parameters.

    Attributes:
        steers: whether it sets the steps of the searches too.
    """

    steers: ClassVar[bool]

    def choose(self, members: Sequence[Member]) -> Member:
        """One of these searches; none of them is over."""
        ...


def steered_by(chooser: Chooser, names: Iterable[str]) -> dict[str, Steered]:
    """A policy per search for the chooser to steer; none if it does not steer."""
    return {name: Steered() for name in names} if chooser.steers else {}


class Portfolio:
    """One or several searches for one problem.

    Args:
        searches: by the name of their generator. Each has the budget, the value and the number of
            answers of the whole.
        chooser: decides which search acts next.
        steered: the policies of the searches, by name, if the chooser steers them.
    """

    def __init__(
        self,
        searches: Mapping[str, Search],
        chooser: Chooser,
        *,
        steered: Mapping[str, Steered] | None = None,
    ) -> None:
        if not searches:
            raise UsageError("a portfolio needs at least one generator")
        own = steered or {}
        self.members = [Member(name, search, own.get(name)) for name, search in searches.items()]
        self._chooser = chooser
        self._wanted = self.members[0].search.limits.answers
        self._asked: MemberAction | None = None
        self._answers: list[tuple[str, CandidateId]] = []

    @property
    def answers(self) -> Sequence[tuple[str, CandidateId]]:
        """The candidates that passed, as many as were asked for, each with its generator's name."""
        return self._answers[: self._wanted]

    @property
    def bills(self) -> dict[str, Bill]:
        """The bill of each generator."""
        return {member.name: member.search.bill for member in self.members}

    @property
    def bill(self) -> Bill:
        """The bill of all generators together."""
        return sum_of(self.bills)

    @property
    def outcome(self) -> Outcome | None:
        """How the portfolio ended; None while it runs. The answer is an id of its own pool."""
        if self._asked is None or not isinstance(self._asked.action, Stop):
            return None
        end = self._asked.action
        return Outcome(end.reason, end.answer, self.bill, end.why)

    @property
    def seconds(self) -> float:
        """How long the portfolio has waited. The clocks of all searches say the same."""
        return self.members[0].search.seconds

    def ask(self) -> MemberAction:
        """Return the next request; the same one until its result is told."""
        if self._asked is None:
            self._asked = self._choose()
        return self._asked

    @property
    def to_verdict(self) -> float:
        """The cost until the next verdict at least; 0 if the portfolio ends."""
        asked = self.ask()
        if isinstance(asked.action, Stop):
            return 0.0
        return next(member.to_verdict for member in self.members if member.name == asked.name)

    def tell(self, event: Event) -> None:
        """Add the result of the last request."""
        asked = self.ask()
        acting = next(member for member in self.members if member.name == asked.name)
        acting.search.tell(event)
        self._asked = None
        closed: list[str] = []
        if isinstance(event, Verified):
            closed = self._closed(acting, asked.action, event)
        spent = [member.spent for member in self.members]
        for member, own in zip(self.members, spent, strict=True):
            if member is not acting:
                member.search.change(sum(spent) - own, closed, event)

    def restrict(self, budget: float) -> None:
        """Replace the budget of all searches together; see `Search.restrict`."""
        for member in self.members:
            member.search.restrict(budget)
        self._asked = None

    def _closed(self, acting: Member, action: Action, event: Verified) -> list[str]:
        """Count the answers; return the keys that other searches need not verify any more."""
        pool = acting.search.pool
        for id in action.ids if isinstance(action, Verify) else ():
            if event.verdicts.get(id) is Verdict.PASSED:
                self._answers.append((acting.name, id))
        keys = [pool.key(id) for id, v in event.verdicts.items() if v is not Verdict.BROKEN]
        return [key for key in keys if key is not None and key != REFUTED]

    def _choose(self) -> MemberAction:
        if len(self._answers) >= self._wanted:
            name, id = self._answers[0]
            return MemberAction(name, Stop(Reason.SOLVED, id))
        while running := [member for member in self.members if not member.over]:
            is_only = len(running) == 1 and not self._chooser.steers
            chosen = running[0] if is_only else self._chooser.choose(running)
            if not isinstance(action := chosen.search.ask(), Stop):
                return MemberAction(chosen.name, action)
        return MemberAction(*self._end())

    def _end(self) -> tuple[str, Stop]:
        """Why nothing is left to do: the most specific reason of the searches."""
        stops = [(member.name, member.search.ask()) for member in self.members]
        for reason in (Reason.OUT_OF_BUDGET, Reason.FINISHED, Reason.EXHAUSTED):
            for name, stop in stops:
                if isinstance(stop, Stop) and stop.reason is reason:
                    return name, Stop(reason, why=stop.why)
        raise AssertionError("every search has ended")


def sum_of(bills: Mapping[str, Bill]) -> Bill:
    """The bill of several searches together."""
    if len(bills) == 1:
        return next(iter(bills.values()))
    return Bill(
        sum(bill.generated for bill in bills.values()),
        sum(bill.verified for bill in bills.values()),
        sum(bill.total for bill in bills.values()),
        sum(bill.rescored for bill in bills.values()),
        sum(bill.refuted for bill in bills.values()),
        sum(bill.unneeded for bill in bills.values()),
        shared=sum(bill.shared for bill in bills.values()),
        repeated=sum(bill.repeated for bill in bills.values()),
    )
