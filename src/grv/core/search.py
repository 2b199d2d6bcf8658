"""One search as a state machine: ask what to do, tell what happened. No I/O.

Theory of operation
-------------------
A *policy* proposes: its plan is a generator of steps. The *search* disposes: it checks each step,
cuts it to `width` and `budget`, and asks the driver for it. The *driver* (live or replay) carries
the action out and tells the result; only then does the plan go on.

Invariants:

1. `ask` is idempotent: the same action until its result is told.
2. `tell` is checked completely before anything changes. After an error the search is dead.
3. What is asked is billed, at the price list or at what the event says was really paid.
4. The planned cost of an action never takes the bill above the budget. Where the budget does not
   cover a step, the affordable part of it is asked; where there is no such part, the search stops.
   Where what is really paid differs, an action is planned to cost the most it can: as given, or
   else as much as the dearest so far. If the most is given rightly, no bill passes its budget.
5. The search stops at the first action in which a candidate passed; the answer is the best-ranked
   one of them. With `width=1` that is the first pass; with `width=None` a whole step is paid for,
   even if its first candidate passes.
6. The search gives up when the expected cost to go exceeds the value of an answer. After spending S
   in vain, passes come at an estimated rate of one for S more, so it spends no more than the value;
   and it generates nothing that it could not afford to verify one of. What it would have solved for
   no more than the value, it solves all the same. See docs/theory/giving-up.md.
7. With a cascade, a plan that verifies the best of the pool gets the best by their second scores:
   those that could be next are given one first, as far as there is money for it and a choice to
   make. One that verifies others gets those; the newest candidate alone is always such another one,
   for policies that verify without looking at the score.
8. Candidates whose key is refuted are never verified, whatever the plan says, and two of one key
   are never in flight together.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Protocol

from .errors import EventError, PolicyError, UsageError
from .estimates import Estimates
from .pool import Pool
from .values import (
    Action,
    Bill,
    CandidateId,
    Cascade,
    Costs,
    Event,
    Generate,
    Generated,
    Outcome,
    Reason,
    Rescore,
    Rescored,
    Rounds,
    Step,
    Stop,
    Turn,
    Verdict,
    Verified,
    Verify,
    What,
)

_FINISHED = Stop(Reason.FINISHED)  # what a plan that has come to its end stands for
_IDLE_LIMIT = 1000  # steps in a row that change nothing before it is called a bug


class Policy(Protocol):
    """Decides what to do next. A frozen dataclass: its fields are its parameters."""

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        """Yield steps. When resumed, the last step's result is already in `pool`.

        `costs` is the price list at the start; `pool.costs` is what it has become since.

        Deterministic given the events. Success and budget are not the plan's business; a plan that
        ends has given up.
        """
        ...


class Search:
    """A search for one verified answer.

    Args:
        policy: what decides.
        costs: the price list it plans with; a first guess, where events tell what was paid.
        budget: the planned cost of all actions together is at most this.
        value: what an answer is worth, in the unit of the costs; without end, it never gives up.
        most: what one candidate and one verification can cost at most, where the price list does
            not say: a budget reserves that for what it has not paid yet.
        cascade: how second scores are used, if there are any.
        width: how many verifications are in flight at once; `None` is a whole step of the plan.
    """

    def __init__(
        self,
        policy: Policy,
        costs: Costs,
        *,
        budget: float = math.inf,
        value: float = math.inf,
        most: Costs | None = None,
        cascade: Cascade | None = None,
        width: int | None = None,
    ) -> None:
        if math.isnan(budget) or budget < 0:
            raise UsageError(f"the budget cannot be {budget}")
        if math.isnan(value) or value < 0:
            raise UsageError(f"what an answer is worth cannot be {value}")
        if width is not None and width < 1:
            raise UsageError(f"the width must be at least 1, not {width}")
        self.pool = Pool(costs)
        self.costs = costs
        self._estimates = Estimates(costs)
        self._budget = budget
        self._value = value
        self._most = most
        self._cascade = cascade
        self._width = width
        self._plan = policy.plan(self.pool, costs)
        self._asked: Action | None = None
        self._queue: deque[CandidateId] = deque()  # what is left of the step being verified
        self._best = 0  # how many of the best are to be verified after those
        self._why = ""
        self._answer: CandidateId | None = None
        self._listed: dict[What, int] = {"generate": 0, "verify": 0}  # billed at the price list
        self._verified, self._rescored = 0, 0
        self._paid = 0.0
        self._trace: list[Turn] = []
        self._error: BaseException | None = None

    @property
    def bill(self) -> Bill:
        """What was spent so far."""
        return Bill(len(self.pool), self._verified, self._total(), self._rescored)

    @property
    def outcome(self) -> Outcome | None:
        """How it ended, once it has."""
        if isinstance(self._asked, Stop):
            return Outcome(self._asked.reason, self._asked.answer, self.bill, self._asked.why)
        return None

    @property
    def rounds(self) -> Rounds:
        """How often it has waited for results so far."""
        kinds = [type(turn.action) for turn in self._trace]
        return Rounds(kinds.count(Generate), kinds.count(Verify), kinds.count(Rescore))

    @property
    def trace(self) -> Sequence[Turn]:
        """What was asked and told, from the start. Each action carries the policy's reason."""
        return self._trace

    def ask(self) -> Action:
        """The next action. The same one, until its result is told."""
        if self._error is not None:
            raise self._error
        if self._asked is None:
            try:
                self._asked = self._choose()
            except BaseException as error:  # a plan may raise anything; it cannot go on after that
                self._error = error
                raise
        return self._asked

    def tell(self, event: Event) -> None:
        """Take in the result of the action last asked for."""
        if self._error is not None:
            raise self._error
        try:
            self._check_event(event)
        except EventError as error:
            self._error = error
            raise
        match self._asked, event:
            case Generate(n), Generated(scores):
                self.pool._add_generated(event, exhausted=len(scores) < n)
                self._pay("generate", len(scores), event.paid)
            case Verify(ids), Verified(verdicts):
                self._answer = next((i for i in ids if verdicts.get(i) is Verdict.PASSED), None)
                self.pool._add_verified(event)
                self._verified += len(ids)
                self._pay("verify", len(ids), event.paid)
            case Rescore(ids), Rescored():
                self.pool._add_rescored(event)
                self._rescored += len(ids)
                listed = len(ids) * self._second_cost
                self._paid += listed if event.paid is None else event.paid
        assert not isinstance(self._asked, Stop | None)
        self._trace.append(Turn(self._asked, event))
        self._asked = None

    def _total(self, generate: int = 0, verify: int = 0) -> float:
        """The bill's total, after so many more."""
        listed = self._listed
        if self._reserve is self.costs:  # one sum, which is the later bill to the last bit
            total = self.costs.of(listed["generate"] + generate, listed["verify"] + verify)
            return total + self._paid
        spent = self.costs.of(listed["generate"], listed["verify"]) + self._paid
        return spent + self._reserve.of(generate, verify)

    @property
    def _reserve(self) -> Costs:
        """What is set aside for each candidate and verification that is asked for."""
        return self._most if self._most is not None else self._estimates.dearest

    def _pay(self, what: What, number: int, paid: float | None) -> None:
        if paid is None:
            self._listed[what] += number
        else:
            self._paid += paid
            self._estimates.see(what, number, paid)
            self.pool.costs = self._estimates.mean

    def _check_event(self, event: Event) -> None:
        match self._asked, event:
            case Generate(n), Generated(scores, keys):
                if len(scores) > n:
                    raise EventError(f"asked for {n} candidates, told of {len(scores)}")
                if any(math.isnan(score) for score in scores):
                    raise EventError("a score is NaN; score it -inf or leave it out")
                if keys and len(keys) != len(scores):
                    raise EventError(f"{len(scores)} candidates have {len(keys)} keys")
            case Rescore(ids), Rescored(rescored):
                if set(rescored) != set(ids):
                    raise EventError(f"asked about {ids}, told about {tuple(rescored)}")
                if any(math.isnan(score) for score in rescored.values()):
                    raise EventError("a second score is NaN; score it -inf")
            case Verify(ids), Verified(verdicts):
                passed = any(verdict is Verdict.PASSED for verdict in verdicts.values())
                told = set(verdicts)
                if not told <= set(ids) or not (passed or len(told) == len(ids)):
                    raise EventError(f"asked about {ids}, told about {tuple(verdicts)}")
            case _:
                raise EventError(f"asked {self._asked}, told {event}")
        if event.paid is not None and not (math.isfinite(event.paid) and event.paid >= 0):
            raise EventError(f"what was paid must be finite and not negative, not {event.paid}")

    def _choose(self) -> Action:
        if self._answer is not None:
            return Stop(Reason.SOLVED, self._answer)
        for _ in range(_IDLE_LIMIT):
            if self._queue and (action := self._verify_some()):
                return action
            if self.pool.exhausted and not self.pool.waiting:
                return Stop(Reason.EXHAUSTED)
            if self._best:
                if rescore := self._rescore_some():
                    return rescore
                self._queue.extend(self.pool.best(self._next_best))
                self._best -= self._next_best
                continue
            match next(self._plan, _FINISHED):
                case Stop() as stop if stop is _FINISHED:
                    return stop
                case Generate(int(n), why) if n > 0:
                    if not self.pool.exhausted:
                        return self._generate_some(n, why)
                case Verify(ids, why):
                    self._check_new(ids)
                    self._why = why
                    if self._is_best(ids):
                        self._best = len(ids)
                    else:
                        self._queue.extend(ids)
                case step:
                    raise PolicyError(f"not a legal step: {step}")
        raise PolicyError(f"the plan took {_IDLE_LIMIT} steps that change nothing")

    def _generate_some(self, n: int, why: str) -> Action:
        """As many of `n` candidates as the budget allows and the value of an answer is worth."""
        worth = self._affordable("generate", self._value, spare=1)
        n = min(n, worth, self._affordable("generate", self._budget))
        if n:
            return Generate(n, why)
        return Stop(Reason.OUT_OF_BUDGET) if worth else self._give_up(1)

    def _give_up(self, generate: int) -> Stop:
        cost = self._total(generate, 1)
        why = f"an answer is worth {self._value:g}; the next attempt would bring the cost to"
        return Stop(Reason.FINISHED, why=f"{why} {cost:g}")

    def _is_best(self, ids: tuple[CandidateId, ...]) -> bool:
        """Whether a step verifies the best of the pool, and a cascade has a say in who that is."""
        newest = (CandidateId(len(self.pool) - 1),)
        return self._cascade is not None and ids != newest and ids == self.pool.best(len(ids))

    @property
    def _next_best(self) -> int:
        """How many of the best are verified together next."""
        return self._best if self._width is None else min(self._best, self._width)

    @property
    def _second_cost(self) -> float:
        return 0.0 if self._cascade is None else self._cascade.cost

    def _rescore_some(self) -> Rescore | None:
        """Second scores for those that could be verified next, where there is a choice."""
        assert self._cascade is not None
        shortlist = self.pool.shortlist(max(self._cascade.top, self._next_best))
        lacking = [id for id in shortlist if not self.pool.rescored(id)]
        if len(shortlist) <= self._next_best or not lacking:
            return None
        limit = min(self._budget, self._value)
        while lacking and self._total(verify=1) + len(lacking) * self._second_cost > limit:
            lacking.pop()
        return Rescore(tuple(lacking), self._why) if lacking else None

    def _verify_some(self) -> Action | None:
        """The next verifications of the queue, as width and budget allow; None at its end."""
        width = len(self._queue) if self._width is None else self._width
        worth = self._affordable("verify", self._value)
        limit = min(width, worth, self._affordable("verify", self._budget))
        now: list[CandidateId] = []
        later: list[CandidateId] = []
        keys: set[str] = set()
        while self._queue and len(now) < max(limit, 1):
            id = self._queue.popleft()
            if not self.pool.is_open(id):
                continue
            key = self.pool.key(id)
            if key is not None and key in keys:
                later.append(id)
                continue
            now.append(id)
            if key is not None:
                keys.add(key)
        self._queue.extendleft(reversed(later))
        if not now:
            return None
        if limit:
            return Verify(tuple(now), self._why)
        return Stop(Reason.OUT_OF_BUDGET) if worth else self._give_up(0)

    def _check_new(self, ids: tuple[CandidateId, ...]) -> None:
        known = range(len(self.pool))
        if len(set(ids)) < len(ids) or any(i not in known or i in self.pool.verdicts for i in ids):
            raise PolicyError(f"cannot verify {ids}: unknown, repeated or already verified")

    def _affordable(self, what: What, limit: float, *, spare: int = 0) -> int:
        """How many more candidates, or verifications, a limit to the bill covers.

        Beside them it must cover so many more verifications.
        """
        if math.isinf(limit):
            return 2**62
        left = (limit - self._total(verify=spare)) / self._reserve.price(what)
        n = math.floor(min(left, 2.0**62))
        n = max(0, n + 1)  # the quotient may be rounded down, or up; the bill decides
        while n and self._total(*((n, spare) if what == "generate" else (0, n + spare))) > limit:
            n -= 1
        return n
