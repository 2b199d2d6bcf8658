"""One search as a state machine: ask what to do, tell what happened. No I/O.

Theory of operation
-------------------
The *policy* proposes: its plan is a generator of steps. The *search* decides: it checks each step,
cuts it to `width` and `budget`, and asks the driver for an action. The *driver* (live or replay)
carries out the action and tells the search the result. Only then does the plan continue.

Invariants:

1. `ask` is idempotent: it returns the same action until the result is told. The one exception is
   `Portfolio`, which may change what a search may do before its action is carried out: it reports
   what other searches have spent and which keys they have refuted.
2. `tell` checks an event completely before anything changes. After an error the search is dead.
3. Every action is billed, either from the price list or with the payment that the event reports.
4. An action is requested only if the bill plus its planned cost stays within the budget. If the
   budget does not cover a step, the search asks for the affordable part of it; if no part is
   affordable, it stops.
   Where payments are measured, the planned cost is the highest possible one: the limit that the
   caller gave, or else the highest payment so far. If the caller's limit is right, no bill exceeds
   its budget.
5. The search stops at the first action after which `answers` candidates have passed; they are
   ordered by action, then by rank. With one answer and `width=1` that is the first pass. With
   `width=None` a whole step is paid for, even if its first candidate passes. Two candidates with
   the same key are never both answers: after a pass, its key is not offered again.
6. The search gives up when the expected cost to continue exceeds the value of an answer. A search
   that has spent S without a pass expects to need S more, so it stops before S exceeds the value.
   It generates only if it can also afford to verify one candidate. It still solves every problem
   that would cost at most the value if it never gave up. See docs/theory/giving-up.md.
7. With a cascade, if a step names the best of the pool, the second scores decide which candidates
   are verified. The search first asks for the second scores of the candidates that could be next,
   as far as the budget allows and if there is more than one to choose from. If the plan names other
   candidates, these are verified. A step with only the newest candidate is never changed, even if
   it is the best: some policies verify it whatever its score.
8. Candidates with a refuted key are never verified, whatever the plan says, and two candidates with
   the same key are never in flight together. The key `REFUTED` is refuted from the start.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
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

_FINISHED = Stop(Reason.FINISHED)  # the action that follows the last step of a plan
_IDLE_LIMIT = 1000  # a plan with this many steps in a row that change nothing has a bug


class Policy(Protocol):
    """Decides what to do next. A frozen dataclass: its fields are its parameters."""

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        """Yield steps. When resumed, the last step's result is already in `pool`.

        `costs` is the price list at the start; `pool.costs` is the current estimate.

        A plan is deterministic, given the events. It does not check for success or for the budget:
        the search does. A plan that ends has given up.
        """
        ...


class Search:
    """A search for one verified answer, or for several that differ.

    The actions, the cost and the end are those of Definition 2.2 of the paper.

    Args:
        policy: decides what to do next.
        costs: the price list; only a first guess if events report payments.
        budget: the limit on the planned cost of all actions together.
        value: what an answer is worth, in the unit of the costs. If infinite, the search never
            gives up.
        most: the highest possible cost of one candidate and of one verification, if that differs
            from the price list. The budget reserves this much for each one that is asked for.
        cascade: how second scores are used; None if there are none.
        width: the number of verifications in flight at once; `None` means a whole step of the plan.
        answers: how many answers to find.
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
        answers: int = 1,
    ) -> None:
        if math.isnan(budget) or budget < 0:
            raise UsageError(f"the budget cannot be {budget}")
        if math.isnan(value) or value < 0:
            raise UsageError(f"what an answer is worth cannot be {value}")
        if width is not None and width < 1:
            raise UsageError(f"the width must be at least 1, not {width}")
        if answers < 1:
            raise UsageError(f"the number of answers must be at least 1, not {answers}")
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
        self._queue: deque[CandidateId] = deque()  # the rest of the step being verified
        self._best = 0  # how many of the pool's best to verify after the queue
        self._why = ""
        self._wanted = answers
        self._answers: list[CandidateId] = []
        self.elsewhere = 0.0  # what other searches for the same problem have spent
        self._listed: dict[What, int] = {"generate": 0, "verify": 0}  # billed at the price list
        self._verified, self._rescored = 0, 0
        self._paid = 0.0
        self._trace: list[Turn] = []
        self._error: BaseException | None = None

    @property
    def bill(self) -> Bill:
        """The cost so far."""
        counts = (len(self.pool), self._verified)
        return Bill(*counts, self._total(), self._rescored, self.pool.refuted)

    @property
    def outcome(self) -> Outcome | None:
        """How the search ended; None while it runs."""
        if isinstance(self._asked, Stop):
            return Outcome(self._asked.reason, self._asked.answer, self.bill, self._asked.why)
        return None

    @property
    def answers(self) -> Sequence[CandidateId]:
        """The candidates that passed so far, as many as were asked for, in the order found."""
        return self._answers[: self._wanted]

    @property
    def rounds(self) -> Rounds:
        """How often the search has waited for results so far."""
        kinds = [type(turn.action) for turn in self._trace]
        return Rounds(kinds.count(Generate), kinds.count(Verify), kinds.count(Rescore))

    @property
    def trace(self) -> Sequence[Turn]:
        """All actions and their results, in order. Each action carries the policy's reason."""
        return self._trace

    def ask(self) -> Action:
        """Return the next action; the same one until its result is told."""
        if self._error is not None:
            raise self._error
        if self._asked is None:
            try:
                self._asked = self._choose()
            except BaseException as error:  # a plan may raise anything, and cannot continue then
                self._error = error
                raise
        return self._asked

    def tell(self, event: Event) -> None:
        """Add the result of the last action."""
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
                self._answers += [i for i in ids if verdicts.get(i) is Verdict.PASSED]
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

    def change(self, elsewhere: float, closed: Iterable[str] = ()) -> None:
        """Report what other searches for this problem have spent, and which keys they closed.

        Budget and value then count this spending too. An action that was asked for and has not
        started is chosen again: ask once more.
        """
        self.elsewhere = elsewhere
        for key in closed:
            self.pool._close(key)
        match self._asked:
            case Generate(n, why):
                self._asked = self._generate_some(n, why)
            case Verify(ids):
                self._queue.extendleft(reversed(ids))
                self._asked = None
            case Rescore():
                self._asked = None

    def _total(self, generate: int = 0, verify: int = 0) -> float:
        """The bill's total after `generate` more candidates and `verify` more verifications."""
        listed = self._listed
        # Added in the same order as the bill, so that rounding cannot make them differ.
        if self._reserve is self.costs:
            total = self.costs.of(listed["generate"] + generate, listed["verify"] + verify)
            return total + self._paid
        spent = self.costs.of(listed["generate"], listed["verify"]) + self._paid
        return spent + self._reserve.of(generate, verify)

    @property
    def _reserve(self) -> Costs:
        """The amount that the budget reserves for each candidate and each verification."""
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
                    raise EventError(f"asked for {n} candidates, got {len(scores)}")
                if any(math.isnan(score) for score in scores):
                    raise EventError("a score is NaN; use -inf or leave the candidate out")
                if keys and len(keys) != len(scores):
                    raise EventError(f"{len(scores)} candidates have {len(keys)} keys")
            case Rescore(ids), Rescored(rescored):
                if set(rescored) != set(ids):
                    raise EventError(f"asked about {ids}, told about {tuple(rescored)}")
                if any(math.isnan(score) for score in rescored.values()):
                    raise EventError("a second score is NaN; use -inf")
            case Verify(ids), Verified(verdicts):
                passed = any(verdict is Verdict.PASSED for verdict in verdicts.values())
                told = set(verdicts)
                if not told <= set(ids) or not (passed or len(told) == len(ids)):
                    raise EventError(f"asked about {ids}, told about {tuple(verdicts)}")
            case _:
                raise EventError(f"asked {self._asked}, told {event}")
        if event.paid is not None and not (math.isfinite(event.paid) and event.paid >= 0):
            raise EventError(f"the payment must be finite and not negative, not {event.paid}")

    def _choose(self) -> Action:
        if len(self._answers) >= self._wanted:
            return Stop(Reason.SOLVED, self._answers[0])
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
        raise PolicyError(f"the plan took {_IDLE_LIMIT} steps in a row that change nothing")

    def _generate_some(self, n: int, why: str) -> Action:
        """Generate at most `n` candidates: as many as the budget and the answer's value cover."""
        worth = self._affordable("generate", self._value, spare=1)
        n = min(n, worth, self._affordable("generate", self._budget))
        if n:
            return Generate(n, why)
        return Stop(Reason.OUT_OF_BUDGET) if worth else self._give_up(1)

    def _give_up(self, generate: int) -> Stop:
        cost = self.elsewhere + self._total(generate, 1)
        why = f"an answer is worth {self._value:g}; the next attempt would raise the cost to"
        return Stop(Reason.FINISHED, why=f"{why} {cost:g}")

    def _is_best(self, ids: tuple[CandidateId, ...]) -> bool:
        """Whether a step names the pool's best. If so, second scores decide which are verified."""
        newest = (CandidateId(len(self.pool) - 1),)
        return self._cascade is not None and ids != newest and ids == self.pool.best(len(ids))

    @property
    def _next_best(self) -> int:
        """How many of the pool's best are verified together next."""
        return self._best if self._width is None else min(self._best, self._width)

    @property
    def _second_cost(self) -> float:
        return 0.0 if self._cascade is None else self._cascade.cost

    def _rescore_some(self) -> Rescore | None:
        """Ask for second scores of the candidates that could be next, if there is a choice."""
        assert self._cascade is not None
        shortlist = self.pool.shortlist(max(self._cascade.top, self._next_best))
        lacking = [id for id in shortlist if not self.pool.rescored(id)]
        if len(shortlist) <= self._next_best or not lacking:
            return None
        limit = min(self._budget, self._value) - self.elsewhere
        while lacking and self._total(verify=1) + len(lacking) * self._second_cost > limit:
            lacking.pop()
        return Rescore(tuple(lacking), self._why) if lacking else None

    def _verify_some(self) -> Action | None:
        """Verify the next of the queue, as width and budget allow; None if the queue is empty."""
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
        """How many more candidates or verifications fit into a limit on the bill.

        The limit must also cover `spare` more verifications.
        """
        if math.isinf(limit):
            return 2**62
        limit -= self.elsewhere
        left = (limit - self._total(verify=spare)) / self._reserve.price(what)
        n = math.floor(min(left, 2.0**62))
        n = max(0, n + 1)  # the quotient may be rounded up or down, so test the bill itself
        while n and self._total(*((n, spare) if what == "generate" else (0, n + spare))) > limit:
            n -= 1
        return n
