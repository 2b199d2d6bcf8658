"""Live searches that are interrupted in every way, with backends that count what they do."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel

from grv.backends.protocols import Draft, Finding, Problem, Score, Usage
from grv.core.errors import BackendError, GeneratorError, RunStopped, ScorerError, VerifierError
from grv.core.pace import Pace
from grv.core.values import Cascade, Costs, Measured, Verdict
from grv.ledger.sqlite import SqliteLedger
from grv.runtime.budget import RunBudget
from grv.runtime.calls import Caller
from grv.runtime.config import config_of
from grv.runtime.ledger_writer import LedgerWriter
from grv.runtime.live_search import LiveSearch
from grv.runtime.options import Calls
from grv.runtime.prices import Meter, Prices
from grv.runtime.solution import Solution
from grv.testing.fakes import Crash

PROBLEM = Problem("p", "prompt")
COSTS = Costs(generate=1, verify=10, score=0.25)
CHEAP_FAILURES = Costs(generate=1, verify=10, failure=2.5, score=0.25)
SECOND = 0.5
POLICIES = ("varied", "verify-all", "alternate", "fixed(9, 2)")

# What each kind of interruption changes; the rest is drawn by chance.
KINDS: dict[str, dict[str, Any]] = {
    "budget of the problem": {"faults": ("late", "late", "paid")},
    "budget of the account": {"faults": ("late",), "account": True},
    "total budget": {"faults": ("late",), "total": True},
    "value": {"value": True},
    "deadline": {"deadline": True, "faults": ("late",)},
    "timeouts": {"faults": ("late",)},
    "retries": {"faults": ("paid",)},
    "refused calls": {"faults": ("refused",)},
    "fewer drafts": {"faults": ("fewer",)},
    "more drafts": {"faults": ("more",)},
    "cancelled verifications": {"width": 4, "right": 0.3, "slow": True},
    "cancelled generation": {
        "width": 3,
        "right": 0.1,
        "ahead": True,
        "hang": True,
        "slow": True,
        "rich": True,
        "policy": "verify-all",
    },
    "cancelled run": {"cancel": True, "faults": ("late",)},
    "dead process": {"die": True, "faults": ("paid",)},
    "dead process, other options": {"die": True, "other": True, "width": 3},
    "broken verdicts": {"broken": 0.5, "other": True, "die": True},
    "scorer failures": {"faults": ("unscored",), "cancel": True},
    "several generators": {"generators": 2, "faults": ("late", "fewer"), "die": True},
    "cascade": {"cascade": True, "faults": ("paid", "unscored"), "die": True},
    "second scores that are lost": {
        "faults": ("late", "unscored"),
        "cascade": True,
        "failure": True,
        "total": True,
        "cancel": True,
    },
    "measured costs": {"measured": True, "faults": ("late", "fewer"), "cancel": True},
    "measured costs, dead process": {
        "measured": True,
        "faults": ("paid", "fewer", "more"),
        "broken": 0.3,
        "die": True,
    },
    "failures with a price": {"failure": True, "faults": ("late", "paid"), "die": True},
    "failures with a price, in blocks": {
        "failure": True,
        "width": 4,
        "right": 0.2,
        "slow": True,
        "broken": 0.1,
        "total": True,
        "cancel": True,
    },
    "everything": {
        "faults": ("late", "paid", "refused", "fewer", "more", "unscored"),
        "cancel": True,
        "die": True,
        "other": True,
        "broken": 0.1,
        "width": 3,
        "ahead": True,
        "total": True,
    },
}


@dataclass
class Counts:
    """What the backends did, whether or not the result arrived: calls per kind of call."""

    chance: random.Random
    kind: Mapping[str, Any]
    served: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    stop_at: int = 10**9  # the call at which the run is interrupted
    scope: anyio.CancelScope | None = None

    async def fault(self, call: str, n: int, error: type[BackendError]) -> str:
        """Count a call of n items, and return its fault, if it has a result at all."""
        self.calls += 1
        if self.calls == self.stop_at:
            self.served[call] += n
            if self.scope is None:
                raise Crash
            self.scope.cancel()
            await anyio.sleep_forever()
        fault = ""
        if self.chance.random() < 0.3 and self.kind.get("faults"):
            fault = self.chance.choice(self.kind["faults"])
        if fault == "refused":
            raise error("refused", unpaid=True)
        self.served[call] += n
        await anyio.lowlevel.checkpoint()
        if fault == "late":
            await anyio.sleep_forever()
        if fault == "paid":
            raise error("lost on the way")
        return fault


@dataclass
class CountingGenerator:
    """Counts the candidates that it generates."""

    counts: Counts
    batch: int | None
    name: str = ""

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> Sequence[Draft]:
        """Drafts with their numbers; sometimes fewer or more than asked for."""
        fault = await self.counts.fault("generate", n, GeneratorError)
        if self.counts.kind.get("hang") and first > 4:
            await anyio.sleep(0.03)
        number = n
        if fault == "fewer" and n > 1:
            number = n - 1
            self.counts.served["generate"] -= 1
        if fault == "more":
            number = n + 1  # nobody asked for it, and nobody pays for it
        return [
            Draft(f"{self.name}{first + at}", usage=Usage(completion_tokens=1))
            for at in range(number)
        ]


@dataclass
class CountingScorer:
    """Counts the scores that it gives."""

    counts: Counts
    call: str = "score"

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        """A score that says nothing."""
        fault = await self.counts.fault(self.call, len(drafts), ScorerError)
        if fault == "unscored":
            raise ScorerError("no score")
        return [Score(self.counts.chance.random()) for _ in drafts]


@dataclass
class CountingChecker:
    """Counts the candidates that it checks."""

    counts: Counts

    async def verify(self, problem: Problem, draft: Draft) -> Finding:
        """A verdict by chance."""
        await self.counts.fault("verify", 1, VerifierError)
        chance, kind = self.counts.chance, self.counts.kind
        if chance.random() < kind.get("broken", 0.0):
            return Finding(Verdict.BROKEN, "could not tell", usage=Usage(seconds=1))
        passed = chance.random() < kind.get("right", 0.03)
        if kind.get("slow") and not passed:
            await anyio.sleep(0.01)  # a pass cancels it
        verdict = Verdict.PASSED if passed else Verdict.FAILED
        return Finding(verdict, usage=Usage(seconds=1))


@dataclass
class Interrupted:
    """What a search left behind after its last run."""

    solution: Solution | None
    counts: Counts
    ledger: SqliteLedger
    search: str
    limit: float


def prices_of(kind: Mapping[str, Any]) -> Costs:
    """The price list of a kind of interruption."""
    return CHEAP_FAILURES if kind.get("failure") else COSTS


async def interrupted(name: str, seed: int, ledger: SqliteLedger) -> Interrupted:
    """Run a search several times, interrupted in one way, and at last to its end."""
    kind, chance = KINDS[name], random.Random(f"{name} {seed}")
    counts = Counts(chance, kind)
    budget = 2000.0 if kind.get("rich") else float(chance.randint(15, 160))
    sessions = 3 if kind.get("cancel") or kind.get("die") else 1
    search, solution = "", None
    for number in range(sessions + 1):
        is_last = number == sessions
        options = _options(kind, counts, chance, budget, number if kind.get("other") else 0)
        config = config_of(options)
        search = config.search_id(PROBLEM)
        writer = LedgerWriter(ledger)
        total = budget if kind.get("total") else float("inf")
        run_budget = RunBudget(total, writer)
        if kind.get("account"):
            run_budget = run_budget.of_account("a", budget)
        calls = Calls(attempts=3, call_timeout=0.05, concurrency=4)
        caller = Caller(calls, sleep=_no_sleep)
        counts.stop_at = 10**9 if is_last else counts.calls + chance.randint(1, 12)
        cancels = kind.get("cancel") and (not kind.get("die") or chance.random() < 0.5)
        try:
            with anyio.CancelScope() as scope:
                counts.scope = scope if cancels else None
                solution = None
                live = LiveSearch(PROBLEM, config, writer, caller, run_budget)
                solution = await live.find()
        except (Crash, RunStopped):
            pass
        except BaseExceptionGroup as errors:
            if errors.split((Crash, RunStopped))[1] is not None:
                raise
    return Interrupted(solution, counts, ledger, search, budget)


def _options(
    kind: Mapping[str, Any], counts: Counts, chance: random.Random, budget: float, number: int
) -> Any:
    batch = chance.choice([1, 3, None])
    names = ("small", "large")[: kind.get("generators", 1)]
    generators = {name: CountingGenerator(counts, batch, name) for name in names}
    checker = CountingChecker(counts)
    is_shared = kind.get("total") or kind.get("account") or kind.get("value")
    options: dict[str, Any] = {
        "generator": generators if len(names) > 1 else generators["small"],
        "scorer": CountingScorer(counts),
        "verifier": checker,
        "costs": dict.fromkeys(names, COSTS) if len(names) > 1 else prices_of(kind),
        "budget": float("inf") if is_shared else budget,
        "policy": kind.get("policy") or POLICIES[number % len(POLICIES)],
        "width": kind.get("width", 1),
        "identity": {"generators": {name: {} for name in names}} if len(names) > 1 else {},
    }
    if kind.get("value"):
        options["value"] = budget
    if kind.get("deadline"):
        options["pace"] = Pace(deadline=0.2, overlap=False)
    if kind.get("ahead"):
        options["pace"] = Pace(ramp=False)
    if kind.get("cascade"):
        options["cascade"] = Cascade(3, SECOND)
        options["second_scorer"] = CountingScorer(counts, "rescore")
    if kind.get("measured"):
        prices = Prices({"m": {"completion": 1e6}}, {"verify_second": 8.0, "score_call": 0.25})
        options["costs"] = Measured(COSTS.generate, COSTS.verify, score=COSTS.score)
        options |= {"meter": Meter(prices, "m"), "most": Costs(2, 12, score=0.5)}
    return options


async def _no_sleep(_: float) -> None:
    await anyio.lowlevel.checkpoint()
