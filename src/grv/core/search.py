"""One search as a state machine: ask what to do, tell what happened. No I/O.

Theory of operation
-------------------
The *policy* proposes: its plan is a generator of steps. The *search* decides: it checks each step,
cuts it to `width` and `budget`, and asks the driver for an action. The *driver* (live or replay)
carries out the action and tells the search the result. Only then does the plan continue.

Invariants:

1. `ask` is idempotent: it returns the same action until the result is told. There are two
   exceptions, which change what a search may do before its action is carried out. `Portfolio`
   reports what other searches have spent, how long they took and which keys they have refuted. A
   driver lowers the budget (`restrict`) if there is less money than the search knows.
2. `tell` checks an event completely before anything changes. After an error the search is dead.
3. Every action is billed, either from the price list or with the payment that the event reports.
   A verdict that was known, so that nothing was run for it, costs nothing. A verifier that errs
   may be asked several times about a candidate, and every call is billed. A verification that
   failed may have a lower price than others (`Costs.of`). The plan sees this price only; the bill
   has both.
4. An action is requested only if the bill plus its planned cost stays within the budget. The
   planned cost of a verification is the most that it may cost, whatever a failure costs. If the
   budget does not cover a step, the search asks for the affordable part of it; if no part is
   affordable, it stops.
   The last money is for a verification: candidates are generated only if the budget also covers
   one more verification. If it does not, the best open candidate is verified instead, whatever the
   plan says, then the next best, as long as the money lasts. So a search that runs out of budget
   leaves no open candidate that it could have verified.
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
   The last of the value is for a verification, like that of the budget. It still solves every
   problem that would cost at most the value if it never gave up. See docs/theory/giving-up.md.
7. With a cascade, if a step names the best of the pool, the second scores decide which candidates
   are verified. The search first asks for the second scores of the candidates that could be next,
   as far as the budget allows and if there is more than one to choose from. If the plan names other
   candidates, these are verified. A step with only the newest candidate is never changed, even if
   it is the best: some policies verify it whatever its score. Nor is a step with `exactly`.
8. Candidates with a refuted key are never verified, whatever the plan says, and two candidates with
   the same key are never in flight together. The key `REFUTED` is refuted from the start.
9. A search that looks ahead tells its plan that open verifications have failed. If one is broken
   instead, the plan runs again from the start over what is known: nothing is generated or verified
   twice. Candidates that are generated ahead wait in the stock, and the pool has only those that
   the plan has asked for. Open verifications count as spent, for the budget and for the value. A
   block is sent before it is full if filling it needs too many candidates.

Looking ahead
-------------
A policy decides one verification after another. The search asks for them in *blocks*: it tells the
plan that a verification has failed as soon as it is collected, and continues until the block is
full. So a block is the course of the search with width 1, as far as that course is known if nothing
passes. Generation and second scores that the course needs before the block is full come first.

The candidates that a block waits for are needed only if all open verifications fail. With keys
there may be no end of them: if the model always gives the same answer, no other candidate is open.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from .checks import check_event, check_new
from .errors import EventError, PolicyError
from .estimates import Account
from .limits import Limits
from .pace import SearchClock
from .policy import Policy as Policy
from .pool import Pool
from .stock import Stock
from .values import (
    Action,
    Bill,
    CandidateId,
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
    Task,
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
        limits: what the search may do.

    Examples:
        >>> import grv
        >>> search = grv.Search(grv.policies.Fixed(2, k=1), grv.Costs(1, 10), grv.Limits(budget=50))
        >>> search.ask().n
        2
        >>> search.tell(grv.Generated((0.2, 0.9)))
        >>> search.ask().ids
        (1,)
        >>> search.tell(grv.Verified({1: grv.Verdict.PASSED}))
        >>> search.ask().reason
        <Reason.SOLVED: 'solved'>
        >>> search.outcome.bill.total
        12.0
    """

    def __init__(
        self,
        policy: Policy,
        costs: Costs,
        limits: Limits = Limits(),  # noqa: B008 (a frozen value)
    ) -> None:
        self.costs = costs
        self.limits = limits
        self._account = Account(costs, limits.most)
        self._budget = limits.budget  # or less, see `restrict`
        self._value = limits.value
        self._policy = policy
        self._planning = costs.planning
        self._asked: Action | None = None
        self._open: list[CandidateId] = []  # collected ahead, or in flight
        self._stock = Stock()
        self._clock = SearchClock(limits.pace.latency)
        self._fill(Pool())
        self._why = ""
        self._answers: list[CandidateId] = []
        self.elsewhere = 0.0  # what other searches for the same problem have spent
        self._verified = 0
        self._rescored = 0
        self._failed = 0  # of the verified ones, those that failed and were paid for
        self._shared = 0  # of the verified ones, those whose verdict was known
        self._repeated = 0  # calls of a verifier that errs, beyond one for each candidate
        self._cancelled = 0  # candidates ahead that never arrived
        self._trace: list[Turn] = []
        self._error: BaseException | None = None
        self._ahead = _LookAhead(self) if limits.looks_ahead else None

    def _fill(self, pool: Pool) -> None:
        """Begin the plan with an empty pool."""
        pool.costs = self._account.estimates.mean
        self.pool = pool
        self._plan = self._policy.plan(pool, self._planning)
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
        ran = self._verified - self._shared
        return Bill(
            self.arrived, ran, self.spent, *counts, shared=self._shared, repeated=self._repeated
        )

    @property
    def spent(self) -> float:
        """The total of the bill."""
        return self._account.spent()

    @property
    def failed(self) -> int:
        """How many of the bill's verifications failed."""
        return self._failed

    @property
    def outcome(self) -> Outcome | None:
        """How the search ended; None while it runs."""
        if isinstance(self._asked, Stop):
            return Outcome(self._asked.reason, self._asked.answer, self.bill, self._asked.why)
        return None

    @property
    def seconds(self) -> float:
        """How long the search has waited, as measured or as given by its pace.

        If there are other searches for the same problem, this includes their rounds.
        """
        return self._clock.elapsed

    @property
    def answers(self) -> Sequence[CandidateId]:
        """The candidates that passed so far, as many as were asked for, in the order found."""
        return self._answers[: self.limits.answers]

    @property
    def rounds(self) -> Rounds:
        """How often the search has waited for results so far."""
        return Rounds.of(self._trace)

    @property
    def trace(self) -> Sequence[Turn]:
        """All actions and their results, in order. Each action carries the policy's reason."""
        return self._trace

    @property
    def can_generate(self) -> bool:
        """Whether there may be more candidates, and the limits cover one and its verification."""
        limit = min(self._budget, self._value)
        return not self.pool.exhausted and self._affordable("generate", limit, spare=1) > 0

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
            if isinstance(self._asked, Stop):
                self._ahead = None  # the two refer to each other: apart, both are freed at once
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
                self._pay_candidates(len(scores), event.paid)
            case Verify(ids), Verified(verdicts):
                self._answers += [i for i in ids if verdicts.get(i) is Verdict.PASSED]
                if self._ahead is None:
                    self.pool._add_verified(event)
                self._verified += len(ids)
                self._shared += len(event.shared)
                self._repeated += event.repeated
                self._pay_verifications(len(ids), event)
                self._pay_meanwhile(self._asked.meanwhile, event)
            case Rescore(ids), Rescored():
                if self._ahead is None:
                    self.pool._add_rescored(event)
                self._rescored += len(ids)
                listed = len(ids) * self.limits.second_cost
                self._account.paid += listed if event.paid is None else event.paid
        assert not isinstance(self._asked, Stop | None)
        self._trace.append(Turn(self._asked, event))
        self._clock.see(event)
        if self._ahead is not None:
            self._ahead.told(event)
        self._asked = None

    def change(
        self, elsewhere: float, closed: Iterable[str] = (), event: Event | None = None
    ) -> None:
        """Report what other searches for this problem have done.

        Budget, value and deadline then count this too. An action that was asked for and has not
        started is chosen again: ask once more.

        Args:
            elsewhere: what they have spent, all together.
            closed: the keys that they closed.
            event: the result that one of them was told.
        """
        self.elsewhere = elsewhere
        if event is not None:
            self._clock.see(event, own=False)
        for key in closed:
            self.pool._close(key)
        self._choose_again()

    def restrict(self, budget: float) -> None:
        """Replace the budget, because there is less money than the search knows, and ask again.

        The money may be shared with other problems, or paid for calls without a result.
        """
        self._budget = budget
        if self._ahead is not None and not isinstance(self._asked, Stop):
            self._ahead.abandon()
            self._asked = None
        self._choose_again()

    def _choose_again(self) -> None:
        """Forget the action that was asked for and has not started."""
        match self._asked:
            case Generate() as step:
                self._cut = step
                self._asked = None
            case Verify(ids):
                self._queue.extendleft(reversed(ids))
                self._asked = None
            case Rescore():
                self._asked = None

    def _total(self, generate: int = 0, verify: int = 0) -> float:
        """The bill's total after the open verifications and those that are given."""
        return self._account.spent(generate, verify + len(self._open))

    def _pay_candidates(self, number: int, paid: float | None) -> None:
        self._account.pay_candidates(number, paid)
        self.pool.costs = self._account.estimates.mean

    def _pay_verifications(self, number: int, event: Verified) -> None:
        """Bill the verifications of an action, except those whose verdict was known."""
        told = [verdict for id, verdict in event.verdicts.items() if id not in event.shared]
        failed = told.count(Verdict.FAILED)
        self._failed += failed
        self._account.pay_verifications(
            number - len(event.shared),
            event.paid,
            failed=failed,
            passed=Verdict.PASSED in told,
            repeated=event.repeated,
        )
        self.pool.costs = self._account.estimates.mean

    def _pay_meanwhile(self, n: int, event: Verified) -> None:
        """Bill the candidates generated during a verification; all, if a pass cancelled them."""
        if event.meanwhile is not None:
            self._pay_candidates(len(event.meanwhile.scores), event.meanwhile.paid)
        elif n:
            self._cancelled = n
            paid = n * self.pool.costs.candidate
            self._pay_candidates(n, None if event.paid is None else paid)

    def _choose(self) -> Action:
        if len(self._answers) >= self.limits.answers:
            return Stop(Reason.SOLVED, self._answers[0])
        if late := self._clock.too_late(self.limits.pace.deadline):
            return Stop(Reason.FINISHED, why=late)
        return self._follow() if self._ahead is None else self._ahead.choose()

    def _follow(self) -> Action:
        """The next action of the plan, one verification at a time unless the width is None."""
        if isinstance(self._cut, Verify):
            self._queue.extendleft(reversed(self._cut.ids))
            self._cut = None
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
            step = self._cut or next(self._plan, _FINISHED)
            self._cut = None
            match step:
                case Stop() as stop if stop is _FINISHED:
                    return stop
                case Generate(int(n)) as step if n > 0:
                    if not self.pool.exhausted and (action := self._generate_some(step)):
                        return action
                case Verify(ids, why) as step:
                    check_new(self.pool, ids)
                    self._why = why
                    if not step.exactly and self._is_best(ids):
                        self._best = len(ids)
                    else:
                        self._queue.extend(ids)
                case step:
                    raise PolicyError(f"not a legal step: {step}")
        raise PolicyError(f"the plan took {_IDLE_LIMIT} steps in a row that change nothing")

    def _generate_some(self, step: Generate) -> Generate | Stop | None:
        """Generate as many candidates of a step as the limits cover, and one verification.

        None if the limits cover a verification only, and a candidate is open: then it is next.
        """
        there = len(self._stock)
        worth = there + self._affordable("generate", self._value, spare=1)
        n = min(step.n, worth, there + self._affordable("generate", self._budget, spare=1))
        self._is_short = n < step.n
        if n:
            return Generate(n, step.why, step.ahead)
        self._cut = step
        if self.pool.best(1) and self._affordable("verify", min(self._budget, self._value)):
            self._best = 1
            self._why = "the best open candidate, with the last of the money"
            return None
        return Stop(Reason.OUT_OF_BUDGET) if worth else self._give_up(1)

    def _give_up(self, generate: int) -> Stop:
        cost = self.elsewhere + self._total(generate, 1)
        why = f"an answer is worth {self._value:g}; the next attempt would raise the cost to"
        return Stop(Reason.FINISHED, why=f"{why} {cost:g}")

    def _is_best(self, ids: tuple[CandidateId, ...]) -> bool:
        """Whether a step names the pool's best. If so, second scores decide which are verified."""
        newest = (CandidateId(len(self.pool) - 1),)
        return self.limits.cascade is not None and ids != newest and ids == self.pool.best(len(ids))

    @property
    def _next_best(self) -> int:
        """How many of the pool's best are verified together next."""
        return self._best if self.limits.width is None else min(self._best, 1)

    def _rescore_some(self) -> Rescore | None:
        """Ask for second scores of the candidates that could be next, if there is a choice."""
        cascade = self.limits.cascade
        if cascade is None:
            return None
        shortlist = self.pool.shortlist(max(cascade.top, self._next_best))
        lacking = [id for id in shortlist if not self.pool.rescored(id)]
        if len(shortlist) <= self._next_best or not lacking:
            return None
        limit = min(self._budget, self._value) - self.elsewhere
        while lacking and self._total(verify=1) + len(lacking) * cascade.cost > limit:
            lacking.pop()
        return Rescore(tuple(lacking), self._why) if lacking else None

    def _verify_some(self) -> Action | None:
        """Verify the next of the queue, as width and budget allow; None if the queue is empty."""
        width = len(self._queue) if self.limits.width is None else 1
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

        def fits(n: int) -> bool:
            generate, verify = (n, spare) if what == "generate" else (0, n + spare)
            return self._total(generate, verify) <= limit

        left = (limit - self._total(verify=spare)) / self._account.reserve.price(what)
        return _largest(fits, math.floor(min(max(left, 0.0), 2.0**62)))


def _largest(fits: Callable[[int], bool], guess: int) -> int:
    """The largest number that fits, from 0 to 2**62, if all smaller ones fit too.

    The guess is a rounded quotient. Beside a large bill, a small price is lost in rounding, so the
    guess may be wrong by any number. It is mostly right, so numbers near it are tried first.
    """
    most = 2**62
    low = 0
    high = most + 1  # the smallest number that is known not to fit
    width = 1
    if guess == 0 or fits(guess):
        low = guess
        while low < most and fits(min(low + width, most)):
            low = min(low + width, most)
            width *= 2
        high = min(low + width, high)
    else:
        high = guess
        while high > width and not fits(high - width):
            high -= width
            width *= 2
        low = max(high - width, 0)
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low


class _LookAhead:
    """Collects the blocks of one search, whose state it shares."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._width = search.limits.width or 1
        self._pace = search.limits.pace
        self._whys: list[str] = []  # the different reasons of a block
        # What the plan wants next: not yet served, or seen before its turn.
        self._after: Action | Exception | None = None
        self._waited = 0  # candidates requested while verifications of the block are open
        self._block = self._size(0, 0.0)

    def choose(self) -> Action:
        """The next action: a block, or what the course needs first."""
        search = self._search
        while len(search._open) < self._block:
            wanted = self._next()
            if isinstance(wanted, Stop | Exception):
                if search._open:
                    self._after = wanted if isinstance(wanted, Exception) else None
                    break
                if isinstance(wanted, Exception):
                    raise wanted
                return wanted
            if search._open and self._waits_too_long(wanted):
                self._after = wanted
                break
            request = self._served(wanted)
            if request is not None:
                return request
        ids = tuple(search._open)
        self._block = self._size(search._verified + len(ids), search._clock.verify)
        why, *others = self._whys
        self._whys = []
        self._waited = 0
        if others:
            why = f"{why}; and {len(ids) - 1} more, in case it fails"
        return Verify(ids, why, self._meanwhile() if self._pace.overlap else 0)

    def told(self, event: Event) -> None:
        """Take in the result of an action, which is in the trace."""
        search = self._search
        stock = self._search._stock
        match event, search._asked:
            case Generated(scores), Generate(n):
                stock.add(event)
                stock.ended |= len(scores) < n
                self._serve()
            case Verified(verdicts), Verify():
                search._open.clear()
                if event.meanwhile is not None:
                    stock.add(event.meanwhile)
                    stock.ended |= len(event.meanwhile.scores) < search._asked.meanwhile
                if Verdict.PASSED in verdicts.values():
                    self._correct()
                elif Verdict.BROKEN in verdicts.values():
                    self._restart()
            case Rescored(), _:
                search.pool._add_rescored(event)

    def abandon(self) -> None:
        """Take back a block that was not sent, or a request: the limits have changed."""
        self._search._open.clear()
        self._whys = []
        self._waited = 0
        self._restart()

    def _serve(self) -> None:
        """Give the plan the candidates that it waits for."""
        if isinstance(self._after, Generate):
            wanted = self._after
            self._after = None
            self._served(wanted)

    def _next(self) -> Action | Exception:
        """What the plan wants next. An error of the plan waits for the open verifications."""
        if self._after is not None:
            wanted = self._after
            self._after = None
            return wanted
        try:
            return self._search._follow()
        except Exception as error:
            return error

    def _served(self, wanted: Task) -> Task | None:
        """Carry out what the plan wants with what is known; else return what to ask for."""
        pool = self._search.pool
        stock = self._search._stock
        match wanted:
            case Generate(n):
                if n > len(stock) and not stock.ended:
                    self._after = wanted
                    number = self._request(wanted, self._block - len(self._search._open))
                    self._waited += number if self._search._open else 0
                    return Generate(number, wanted.why)
                is_short = n > len(stock)
                pool._add_generated(stock.take(n), exhausted=is_short)
            case Rescore(ids, why):
                pool._add_rescored(Rescored({i: stock.second[i] for i in ids if i in stock.second}))
                unknown = tuple(id for id in ids if id not in stock.second)
                return Rescore(unknown, why) if unknown else None
            case Verify(ids, why):
                for id in ids:
                    self._verify(id, why)
        return None

    def _verify(self, id: CandidateId, why: str) -> None:
        """Add a verification to the block; count it as failed until its verdict arrives."""
        search = self._search
        stock = self._search._stock
        if id in search._open:  # the plan has changed the pool
            raise PolicyError(f"cannot verify {id} twice")
        key = search.pool.key(id)
        verdict = stock.verdicts.pop(id, None)
        if verdict is None and key is not None and key in stock.refuted:
            search.pool._close(key)
            return
        if verdict is None:
            self._whys += [] if why in self._whys else [why]
            search._open.append(id)
            verdict = Verdict.FAILED
        search.pool._add_verified(Verified({id: verdict}))

    def _waits_too_long(self, wanted: Action) -> bool:
        """Whether to send the open verifications rather than to generate more for the block.

        A plan that says how many candidates a block needs has them all, but with keys not all can
        be verified. Then it gets more once, for the price of the verifications that are missing.
        For other plans, waiting may cost as much as the open verifications and one candidate for
        each.
        """
        stock = self._search._stock
        pool = self._search.pool
        if not isinstance(wanted, Generate) or wanted.n <= len(stock) or stock.ended:
            return False
        if wanted.ahead is None:
            return wanted.n - len(stock) > self._room
        return pool.keyed and self._waited > 0

    @property
    def _room(self) -> int:
        """How many more candidates may be requested while verifications are open."""
        costs = self._search.pool.costs
        number = len(self._search._open)
        return number + int(costs.verify * number / costs.candidate) - self._waited

    def _request(self, step: Generate, slots: int) -> int:
        """How many candidates to ask for: those of this step, and those until the block is full.

        Limits on the bill must also cover the verifications for which they are generated.
        """
        search = self._search
        missing = step.n - len(search._stock)
        limit = min(search._budget, search._value)
        if step.ahead is not None and not (search._open and search.pool.keyed):
            while slots > 1 and search._total(self._needed(step, slots), slots) > limit:
                slots -= 1
        affordable = search._affordable("generate", limit, spare=1)
        return max(missing, min(self._needed(step, slots), affordable))

    def _needed(self, step: Generate, slots: int) -> int:
        """The candidates of a step and of the verifications that follow, up to `slots` in all."""
        search = self._search
        missing = step.n - len(search._stock)
        # for open verifications
        costs = search.pool.costs
        waits = slots < self._block
        if step.ahead is not None:
            if waits and search.pool.keyed:
                return max(missing, math.ceil(costs.verify * slots / costs.candidate))
            return missing + (step.ahead(slots) if slots > 1 else 0)
        size = self._pace.batch(self._width, search.arrived, costs.candidate, search._clock)
        return max(missing, min(size, self._room) if waits else size)

    def _meanwhile(self) -> int:
        """How many candidates to generate while the block is verified."""
        search = self._search
        wanted = self._next()
        if isinstance(wanted, Stop):
            return 0
        self._after = wanted
        stock = search._stock
        if not isinstance(wanted, Generate) or wanted.n <= len(stock) or stock.ended:
            return 0
        n = self._needed(wanted, self._block)
        if search._is_short or search._total(n, 1) > min(search._budget, search._value):
            return 0
        price = search._account.reserve.of(n, 0)
        size = len(search._open)
        spent = self._spent
        if self._pace.overlaps(price, spent, size, search._verified, search._clock):
            return n
        return 0

    @property
    def _spent(self) -> float:
        """The bill's total if the open verifications fail."""
        number = len(self._search._open)
        return self._search._account.spent(verify=number, failing=number)

    def _size(self, verified: int, pending: float) -> int:
        """The size of the block after `verified` verifications, in `pending` seconds from now."""
        search = self._search
        cost = self._spent / verified if verified else search.pool.costs.of(1, 1)
        return self._pace.block(self._width, verified, cost, search._clock, pending)

    def _correct(self) -> None:
        """Replace the verdicts that were taken for granted by those that are known."""
        search = self._search
        known = Stock.of(search._trace, ended=search._stock.ended)
        used = len(search.pool)
        exhausted = search.pool.exhausted
        search._fill(Pool())
        search.pool._add_generated(known.take(used), exhausted=exhausted)
        search.pool._add_verified(Verified(known.verdicts))

    def _restart(self) -> None:
        """Run the plan again from the start, over what is known: a verdict was not as expected."""
        search = self._search
        search._stock = Stock.of(search._trace, ended=search._stock.ended)
        self._after = None
        search._fill(Pool())
