"""Each promise of the table, tried on instances that are made against it.

Every candidate goes through `Search`, the engine that users run. Promises in the mean are tried
with searches on independent candidates of a law; four standard errors are allowed. Promises on
every sequence are tried on each of these searches. Verify-all gets the same candidates, and the
same keys.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pytest

from grv.core.limits import Limits
from grv.core.pace import Pace
from grv.core.search import Policy, Search
from grv.core.values import (
    REFUTED,
    Cascade,
    Costs,
    Event,
    Generate,
    Generated,
    Rescore,
    Rescored,
    Stop,
    Task,
    Verdict,
    Verified,
    Verify,
)
from grv.learning.prior_file import load_prior
from grv.policies import Alternate, Balanced, Hedged, Learned, Learning, Varied, VerifyAll
from grv.policies.promises import SETTINGS, Promise, promises, promises_of, sentence
from grv.theory.constants import several_answers_excess
from grv.theory.optimum import Law, optimum
from grv.theory.slots import alternate_draws

PRIOR = load_prior(str(Path(__file__).parent.parent / "assets" / "prior-1.json"))
POLICIES: dict[str, Policy] = {
    "alternate": Alternate(),
    "balanced": Balanced(),
    "hedged": Hedged(),
    "learned": Learned(PRIOR),
    "varied": Varied(),
    "varied(factor=5)": Varied(5),
    "verify-all": VerifyAll(),
}
ROWS = [row for row in promises() if row.value is not None]
RATIOS = [0.34, 2.5, 30.0]
MANY_RATIOS = [0.1, 0.34, 1.0, 1.5, 2.5, 10.0, 30.0, 100.0]
POOL = 100
CASCADE = Cascade(top=3, cost=1e-9)

pytestmark = pytest.mark.filterwarnings("ignore::grv.policies.learned.policy.UnlikeHistoryWarning")

Key = Callable[[random.Random, float, bool], str | None]


def no_key(chance: random.Random, score: float, passes: bool) -> str | None:
    return None


def refuted_majority(chance: random.Random, score: float, passes: bool) -> str | None:
    """Of those that fail, 19 in 20 are refuted without a verification."""
    return None if passes or chance.random() < 0.05 else REFUTED


def repeated(chance: random.Random, score: float, passes: bool) -> str | None:
    """Three wrong answers come again and again, others once; the right one is always the same."""
    if passes:
        return "right"
    return f"wrong {chance.choice('aab')}" if chance.random() < 0.9 else f"{chance.random()}"


def mixed(chance: random.Random, score: float, passes: bool) -> str | None:
    """Some have no key, some the same, some are refuted."""
    kind = chance.random()
    if passes or kind < 0.3:
        return None
    return REFUTED if kind < 0.6 else "wrong"


@dataclass(frozen=True)
class Candidates:
    """A law of candidates: levels of the score with their masses and chances of passing."""

    masses: tuple[float, ...]
    passes: tuple[float, ...]  # from the lowest level to the highest
    ties: bool = False
    key: Key = no_key

    @property
    def is_monotone(self) -> bool:
        return list(self.passes) == sorted(self.passes)

    def draw(self, chance: random.Random) -> tuple[float, bool, str | None]:
        level = chance.choices(range(len(self.masses)), self.masses)[0]
        passes = chance.random() < self.passes[level]
        score = level + (0.0 if self.ties else 0.9 * chance.random())
        return score, passes, self.key(chance, score, passes)

    def optimum(self, costs: Costs) -> float:
        levels = tuple(float(level) for level in range(len(self.masses)))
        return optimum(Law(levels, self.masses, self.passes), costs).cost


PLAIN = {
    "needles": Candidates((0.98, 0.02), (0.0, 0.9)),
    "flat": Candidates((1.0,), (0.05,)),
    "flat ties": Candidates((1.0,), (0.05,), ties=True),
    "levels": Candidates((0.5, 0.3, 0.2), (0.01, 0.03, 0.2), ties=True),
    "all pass": Candidates((1.0,), (1.0,)),
    "good": Candidates((0.85, 0.15), (0.0, 0.3)),
    "inverted": Candidates((0.2, 0.3, 0.5), (0.2, 0.03, 0.0)),
    "lowest passes": Candidates((0.05, 0.95), (0.8, 0.0), ties=True),
}
KEYED = {
    "refuted majority": Candidates((1.0,), (0.02,), key=refuted_majority),
    "refuted majority, lowest passes": Candidates((0.03, 0.97), (0.7, 0.0), key=refuted_majority),
    "refuted majority, needles": Candidates((0.98, 0.02), (0.0, 0.7), key=refuted_majority),
    "repeated": Candidates((1.0,), (0.02,), key=repeated),
    "repeated, lowest passes": Candidates((0.03, 0.97), (0.7, 0.0), key=repeated),
    "repeated ties": Candidates((0.97, 0.03), (0.0, 0.7), ties=True, key=repeated),
    "mixed": Candidates((0.5, 0.5), (0.01, 0.05), key=mixed),
    "mixed, inverted ties": Candidates((0.5, 0.5), (0.05, 0.01), ties=True, key=mixed),
}
LAWS = PLAIN | KEYED


class Source:
    """The candidates of one search. Every search that asks gets the same ones."""

    def __init__(self, law: Candidates, seed: str, *, size: int | None = None) -> None:
        self._law = law
        self._size = size
        self._chance = random.Random(seed)
        self._scores: list[float] = []
        self._passes: list[bool] = []
        self._keys: list[str | None] = []
        while size is not None and not any(self._passes):
            self._scores, self._passes, self._keys = [], [], []
            self._draw(size)

    def _draw(self, number: int) -> None:
        for _ in range(number):
            score, passes, key = self._law.draw(self._chance)
            self._scores.append(score)
            self._passes.append(passes)
            self._keys.append(key)

    def event(self, action: Task, seen: int) -> Event:
        match action:
            case Generate(n):
                end = seen + n
                if self._size is None and len(self._scores) < end:
                    self._draw(end - len(self._scores))
                return Generated(tuple(self._scores[seen:end]), tuple(self._keys[seen:end]))
            case Verify(ids):
                verdict = {True: Verdict.PASSED, False: Verdict.FAILED}
                return Verified({id: verdict[self._passes[id]] for id in ids})
            case Rescore(ids):
                return Rescored({id: -self._scores[id] for id in ids})


class OfThePool(Source):
    """A score falls with the number of candidates before it; those that pass are lowest."""

    def event(self, action: Task, seen: int) -> Event:
        event = super().event(action, seen)
        if isinstance(event, Generated):
            moved = (score - 5.0 * (seen + i) for i, score in enumerate(event.scores))
            return dataclasses.replace(event, scores=tuple(moved))
        return event


def searched(
    policy: Policy, source: Source, costs: Costs, limits: Limits, true: Costs | None = None
) -> Search:
    """A search to its end. With true costs, the price list is a guess."""
    search = Search(policy, costs, limits)
    while not isinstance(action := search.ask(), Stop):
        event = source.event(action, search.arrived)
        if true is not None and isinstance(event, Generated):
            event = dataclasses.replace(event, paid=true.candidate * len(event.scores))
        elif true is not None and isinstance(event, Verified):
            event = dataclasses.replace(event, paid=true.verify * len(event.verdicts))
        search.tell(event)
    return search


def first_verdict(search: Search) -> float:
    """The cost up to the first verdict."""
    cost = 0.0
    for turn in search.trace:
        event = turn.event
        cost += (event.paid or 0.0) if isinstance(event, Generated | Verified) else 0.0
        if isinstance(event, Verified):
            break
    return cost


WIDE = Pace(overlap=False)
RANDOM = Pace(overlap=False, random_phase=True)
LIMITS = {
    "width": (Limits(width=4, pace=WIDE), Limits(width=16, pace=WIDE)),
    "random phase": (Limits(width=4, pace=RANDOM), Limits(width=16, pace=RANDOM)),
    "k answers": (Limits(answers=2), Limits(answers=5)),
    "second scores": (Limits(cascade=CASCADE),),
}
GUESSES: tuple[float | None, ...] = (0.1, 10.0)  # of the ratio, relative to the true one


@dataclass(frozen=True)
class Paid:
    """What one search cost, without second scores, and the cost up to its first verdict."""

    total: float
    first: float


def source_of(law: Candidates, setting: str, rho: float, number: int) -> Source:
    """The candidates of a search: the same for every policy."""
    kind = OfThePool if setting == "scores of the pool" else Source
    return _source(kind, law, rho, number, POOL if setting == "a generator that ends" else None)


@lru_cache(maxsize=8)
def _source(
    kind: type[Source], law: Candidates, rho: float, number: int, size: int | None
) -> Source:
    return kind(law, f"{rho} {number}", size=size)


SAME_SEARCH = {"batch": "usual"}  # only the order of the problems differs
SAME_POLICY = {"learning": "varied(factor=5)"}  # before its first fit; then it is `learned`


def prices(setting: str, rho: float) -> Costs:
    """The price list; a failure costs rho in every setting."""
    return Costs(1, 2 * rho, failure=rho) if setting == "failure price" else Costs(1, rho)


@lru_cache(maxsize=2**16)
def paid(
    policy: str,
    law: Candidates,
    setting: str,
    limits: Limits,
    guess: float | None,
    rho: float,
    number: int,
) -> Paid:
    """A search to its end. Several rows of the table are about the same search."""
    costs = prices(setting, rho)
    told = costs if guess is None else Costs(1, rho * guess)
    source = source_of(law, setting, rho, number)
    true = None if guess is None else costs
    search = searched(POLICIES[policy], source, told, limits.of(f"problem {number}"), true)
    assert search.outcome is not None
    assert search.outcome.solved
    total = search.bill.total - search.bill.rescored * limits.second_cost
    return Paid(total, first_verdict(search))


@lru_cache
def lowest(law: Candidates, setting: str, rho: float) -> float:
    """J*."""
    return law.optimum(prices(setting, rho))


def variants(row: Promise) -> list[tuple[Limits, float | None]]:
    """The limits and guesses with which a row is tried."""
    guesses = GUESSES if row.setting == "measured costs" else (None,)
    return list(itertools.product(LIMITS.get(row.setting, (Limits(),)), guesses))


def excess(
    row: Promise, law: Candidates, rho: float, limits: Limits, guess: float | None, number: int
) -> float:
    """The cost of one search less what is promised, over J*."""
    assert row.value is not None
    constant = row.value(rho)
    setting = SAME_SEARCH.get(row.setting, row.setting)
    policy = SAME_POLICY.get(row.policy, row.policy)
    spent = paid(policy, law, setting, limits, guess, rho, number)
    cost = spent.total
    answers = limits.answers
    if row.against == "J*":
        bound = answers * constant * lowest(law, setting, rho)
    else:
        every = Limits(answers=answers)
        own = setting in ("scores of the pool", "a generator that ends", "failure price")
        theirs = paid("verify-all", law, setting if own else "usual", every, None, rho, number)
        bound = constant * theirs.total
    if row.setting == "k answers" and row.policy == "balanced":
        bound += several_answers_excess(rho)
    if row.setting == "a generator that ends" and row.policy == "varied" and law.key is not no_key:
        bound += alternate_draws(rho).later + rho
    if row.constant.endswith("first verdict"):
        bound += spent.first
    return (cost - bound) / lowest(law, setting, rho)


def holds(row: Promise, found: list[float]) -> bool:
    is_guarded = row.policy in ("learned", "learning", "varied(factor=5)")
    if is_guarded and row.against == "verify-all" and row.setting != "random phase":
        return max(found) <= 1e-6
    mean = sum(found) / len(found)
    variance = sum((each - mean) ** 2 for each in found) / max(1, len(found) - 1)
    return mean <= 4 * math.sqrt(variance / len(found)) + 1e-6


def laws_of(row: Promise) -> dict[str, Candidates]:
    laws = dict(PLAIN)
    if row.setting == "keys":
        laws = dict(KEYED)
    elif row.setting == "a generator that ends":
        laws |= KEYED
    if row.against == "J*":
        laws = {name: law for name, law in laws.items() if law.is_monotone}
    return laws


def try_rows(
    rows: list[Promise], name: str, rho: float, searches: Callable[[Promise], int]
) -> None:
    """Try rows on one law: on the same candidates, one search after the other.

    Several rows are about the same search, and all about the same candidates: this spares most of
    the work. The variants of a row take turns.
    """
    tried = {row: [(*variant, list[float]()) for variant in variants(row)] for row in rows}
    for number in range(max(map(searches, rows))):
        for row in rows:
            if number < searches(row):
                limits, guess, found = tried[row][number % len(tried[row])]
                found.append(excess(row, LAWS[name], rho, limits, guess, number))
    for row, turns in tried.items():
        for _, _, found in turns:
            mean = sum(found) / len(found)
            assert holds(row, found), (named(row), name, rho, mean, max(found))


def named(row: Promise) -> str:
    return f"{row.policy}-{row.setting}-{row.against}"


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=named)
def test_the_promise_holds(row: Promise) -> None:
    for rho, name in itertools.product(RATIOS, laws_of(row)):
        try_rows([row], name, rho, lambda row: 8 * len(variants(row)))


@pytest.mark.soak
@pytest.mark.timeout(3600)  # seconds on a quiet machine
@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("rho", MANY_RATIOS)
def test_each_promise_holds_in_two_thousand_searches(name: str, rho: float) -> None:
    """At each ratio, a row has 2,000 searches on all its laws together."""
    rows = [row for row in ROWS if name in laws_of(row)]
    try_rows(rows, name, rho, lambda row: math.ceil(2000 / len(laws_of(row))))


@pytest.mark.slow
def test_the_test_can_fail() -> None:
    """A constant that is too small is refuted, for a promise in the mean and on every sequence."""
    for name, against in (("alternate", "verify-all"), ("learned", "verify-all")):
        row = next(each for each in ROWS if (each.policy, each.against) == (name, against))
        wrong = dataclasses.replace(row, value=lambda _: 1.2)
        assert any(is_refuted(wrong, law) for law in laws_of(wrong))


def is_refuted(row: Promise, law: str) -> bool:
    try:
        try_rows([row], law, 30.0, lambda _: 150)
    except AssertionError:
        return True
    return False


def test_learning_without_history_is_the_default_inside_a_guard() -> None:
    assert Learning().chosen(None) == POLICIES["varied(factor=5)"]


def test_each_policy_has_each_setting_once_for_each_comparison() -> None:
    rows = promises()
    for policy in {row.policy for row in rows}:
        places = [(row.setting, row.against) for row in rows if row.policy == policy]
        assert {(setting, each) for setting in SETTINGS for each in ("J*", "verify-all")} == set(
            places
        )
    assert {row.status for row in rows} == {"proven", "checked", "open"}
    assert all((row.status == "open") == (row.constant == "") for row in rows)


def test_what_is_proven_follows_the_parameters() -> None:
    assert "at most 3 times verify-all on every sequence" in Learned(PRIOR, factor=3).proven
    assert "at most 3 J*" in Learned(PRIOR, factor=3).proven
    assert "at most 2 times verify-all on every sequence" in Varied(2).proven
    assert "at most 7 J*" in Varied(2).proven
    assert "every sequence" not in Varied().proven
    assert Learning.proven == Learned(PRIOR).proven
    assert "1 + 2 (g + rho)" in Hedged(every=2).proven
    assert sentence(promises_of("fixed")) == ""
