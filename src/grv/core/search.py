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
   `width=None` a whole step is paid for, even if its first candidate passes. Between these, the
   search looks ahead: an action has the next verifications of the course with width 1, if nothing
   passes. Its answer is the first pass of that course. All that was asked for is billed. Two
   candidates with the same key are never both answers: after a pass, its key is not offered again.
   A search for several answers does not look ahead.
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
9. A search that looks ahead tells its plan that open verifications have failed. If one is broken
   instead, the plan runs again from the start over what is known: nothing is generated or verified
   twice. Candidates that are generated ahead wait in the stock, and the pool has only those that
   the plan has asked for. Open verifications count as spent, for the budget and for the value. They
   are asked for before the action is as wide as it may be, if that would take too many candidates.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence

from .checks import check_event, check_limits, check_new
from .errors import EventError, PolicyError
from .estimates import Account
from .look_ahead import LookAhead
from .pace import Clock, Pace
from .policy import Policy as Policy
from .pool import Pool
from .stock import Stock
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
        width: the most verifications in flight at once; `None` means a whole step of the plan.
        pace: how far to look ahead if the width is above 1, and the deadline.
        answers: how many answers to find; with more than one, the search does not look ahead.
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
        pace: Pace = Pace(),  # noqa: B008 (a frozen value)
        answers: int = 1,
    ) -> None:
        check_limits(budget, value, width, answers)
        self.costs = costs
        self._account = Account(costs, most)
        self._budget, self._value, self._cascade = budget, value, cascade
        self._width = width if width is None else 1
        self._policy, self._deadline = policy, pace.deadline
        self._asked: Action | None = None
        self._open: list[CandidateId] = []  # collected ahead, or in flight
        self._stock = Stock()
        self._clock = Clock(pace.latency)
        self._fill(Pool(costs))
        self._why = ""
        self._wanted = answers
        self._answers: list[CandidateId] = []
        self.elsewhere = 0.0  # what other searches for the same problem have spent
        self._verified, self._rescored = 0, 0
        self._cancelled = 0  # candidates ahead that never arrived
        self._trace: list[Turn] = []
        self._error: BaseException | None = None
        is_wide = width is not None and width > 1 and answers == 1
        self._ahead = LookAhead(self, width or 1, pace) if is_wide else None

    def _fill(self, pool: Pool) -> None:
        """Begin the plan with an empty pool."""
        pool.costs = self._account.estimates.mean
        self.pool = pool
        self._plan = self._policy.plan(pool, self.costs)
        self._queue: deque[CandidateId] = deque()  # the rest of the step being verified
        self._best = 0  # how many of the pool's best to verify after the queue
        self._cut: Step | None = None  # the step that a limit did not cover
        self._is_short = False  # whether a limit shortened the last generation

    @property
    def arrived(self) -> int:
        """The number of candidates generated so far; the next one gets this number."""
        return len(self.pool) + len(self._stock)

    @property
    def bill(self) -> Bill:
        """The cost so far."""
        refuted = self.pool.refuted + self._stock.hopeless
        counts = (self._rescored, refuted, len(self._stock) + self._cancelled)
        return Bill(self.arrived, self._verified, self._account.spent(), *counts)

    @property
    def outcome(self) -> Outcome | None:
        """How the search ended; None while it runs."""
        if isinstance(self._asked, Stop):
            return Outcome(self._asked.reason, self._asked.answer, self.bill, self._asked.why)
        return None

    @property
    def seconds(self) -> float:
        """How long the search has waited, as measured or as given by its pace."""
        return self._clock.elapsed

    @property
    def answers(self) -> Sequence[CandidateId]:
        """The candidates that passed so far, as many as were asked for, in the order found."""
        return self._answers[: self._wanted]

    @property
    def rounds(self) -> Rounds:
        """How often the search has waited for results so far."""
        return Rounds.of(self._trace)

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
            check_event(self._asked, event)
        except EventError as error:
            self._error = error
            raise
        match self._asked, event:
            case Generate(n), Generated(scores):
                if self._ahead is None:
                    self.pool._add_generated(event, exhausted=len(scores) < n)
                self._pay("generate", len(scores), event.paid)
            case Verify(ids), Verified(verdicts):
                self._answers += [i for i in ids if verdicts.get(i) is Verdict.PASSED]
                if self._ahead is None:
                    self.pool._add_verified(event)
                self._verified += len(ids)
                self._pay("verify", len(ids), event.paid)
                self._pay_meanwhile(self._asked.meanwhile, event)
            case Rescore(ids), Rescored():
                if self._ahead is None:
                    self.pool._add_rescored(event)
                self._rescored += len(ids)
                listed = len(ids) * self._second_cost
                self._account.paid += listed if event.paid is None else event.paid
        assert not isinstance(self._asked, Stop | None)
        self._trace.append(Turn(self._asked, event))
        self._clock.see(event)
        if self._ahead is not None:
            self._ahead.told(event)
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
            case Generate() as step:
                self._asked = self._generate_some(step)
            case Verify(ids):
                self._queue.extendleft(reversed(ids))
                self._asked = None
            case Rescore():
                self._asked = None

    def _total(self, generate: int = 0, verify: int = 0) -> float:
        """The bill's total after the open verifications and those that are given."""
        return self._account.spent(generate, verify + len(self._open))

    def _pay(self, what: What, number: int, paid: float | None) -> None:
        self._account.pay(what, number, paid)
        self.pool.costs = self._account.estimates.mean

    def _pay_meanwhile(self, n: int, event: Verified) -> None:
        """Bill the candidates generated during a verification; all, if a pass cancelled them."""
        if event.meanwhile is not None:
            self._pay("generate", len(event.meanwhile.scores), event.meanwhile.paid)
        elif n:
            self._cancelled, paid = n, n * self.pool.costs.candidate
            self._pay("generate", n, None if event.paid is None else paid)

    def _choose(self) -> Action:
        if len(self._answers) >= self._wanted:
            return Stop(Reason.SOLVED, self._answers[0])
        if late := self._clock.too_late(self._deadline):
            return Stop(Reason.FINISHED, why=late)
        return self._follow() if self._ahead is None else self._ahead.choose()

    def _follow(self) -> Action:
        """The next action of the plan, one verification at a time unless the width is None."""
        cut, self._cut = self._cut, None
        if isinstance(cut, Generate):
            return self._generate_some(cut)
        if cut is not None:
            self._queue.extendleft(reversed(cut.ids))
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
                case Generate(int(n)) as step if n > 0:
                    if not self.pool.exhausted:
                        return self._generate_some(step)
                case Verify(ids, why):
                    check_new(self.pool, ids)
                    self._why = why
                    if self._is_best(ids):
                        self._best = len(ids)
                    else:
                        self._queue.extend(ids)
                case step:
                    raise PolicyError(f"not a legal step: {step}")
        raise PolicyError(f"the plan took {_IDLE_LIMIT} steps in a row that change nothing")

    def _generate_some(self, step: Generate) -> Action:
        """Generate as many candidates of a step as the budget and the answer's value cover."""
        there = len(self._stock)
        worth = there + self._affordable("generate", self._value, spare=1)
        n = min(step.n, worth, there + self._affordable("generate", self._budget))
        self._is_short = n < step.n
        if n:
            return Generate(n, step.why, step.ahead)
        self._cut = step
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
        if self._queue[0] in self._stock.verdicts:
            limit = 1  # it is paid for
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
        self._cut = Verify(tuple(now))
        return Stop(Reason.OUT_OF_BUDGET) if worth else self._give_up(0)

    def _affordable(self, what: What, limit: float, *, spare: int = 0) -> int:
        """How many more candidates or verifications fit into a limit on the bill.

        The limit must also cover `spare` more verifications.
        """
        if math.isinf(limit):
            return 2**62
        limit -= self.elsewhere
        left = (limit - self._total(verify=spare)) / self._account.reserve.price(what)
        n = math.floor(min(left, 2.0**62))
        n = max(0, n + 1)  # the quotient may be rounded up or down, so test the bill itself
        while n and self._total(*((n, spare) if what == "generate" else (0, n + spare))) > limit:
            n -= 1
        return n
