"""Several searches for one problem: the bound, the keys, the budget."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from grv.core.errors import UsageError
from grv.core.limits import Limits
from grv.core.pace import Pace
from grv.core.search import Policy, Search
from grv.core.values import (
    Costs,
    Generate,
    Generated,
    Latency,
    Reason,
    Stop,
    Verdict,
    Verified,
    Verify,
)
from grv.policies import Adaptive, Balanced, Fixed, Varied, VerifyAll
from grv.policies.portfolio import (
    ByExpectedPasses,
    BySpending,
    Chooser,
    JointPrior,
    Member,
    Portfolio,
    ProblemType,
    equal_shares,
    root_shares,
    steered_by,
)
from grv.policies.portfolio.index import index_to_generate
from grv.policies.portfolio.joint import GeneratorEvidence, Outlook
from grv.policies.portfolio.shares import constants
from grv.policies.portfolio.standing import Standing
from support.joint_priors import KnownType, known


@dataclass(frozen=True)
class Stream:
    """A generator's candidates: scores, labels and keys, in order of arrival."""

    passed: Sequence[bool]
    scores: Sequence[float] = ()
    keys: Sequence[str | None] = ()

    def generated(self, start: int, n: int) -> Generated:
        scores = self.scores or [0.0] * len(self.passed)
        return Generated(tuple(scores[start : start + n]), tuple(self.keys[start : start + n]))


@dataclass
class Ran:
    """A portfolio that has ended, and what it did."""

    portfolio: Portfolio
    verified: list[tuple[str, int]] = field(default_factory=list)

    @property
    def cost(self) -> float:
        return self.portfolio.bill.total

    @property
    def reason(self) -> Reason:
        assert self.portfolio.outcome is not None
        return self.portfolio.outcome.reason


APART = Pace(overlap=False)


def run(
    streams: Mapping[str, Stream],
    costs: Mapping[str, Costs],
    chooser: Chooser,
    policy: Policy = VerifyAll(),  # noqa: B008 (a frozen value)
    *,
    budget: float = math.inf,
    value: float = math.inf,
    width: int | None = 1,
    answers: int = 1,
    pace: Pace = APART,
) -> Ran:
    steered = steered_by(chooser, streams)
    searches = {
        name: Search(
            steered.get(name, policy),
            costs[name],
            Limits(budget=budget, value=value, width=width, answers=answers, pace=pace),
        )
        for name in streams
    }
    done = Ran(Portfolio(searches, chooser, steered=steered))
    while not isinstance(action := (request := done.portfolio.ask()).action, Stop):
        assert done.portfolio.ask() is request
        stream, pool = streams[request.name], searches[request.name].pool
        if isinstance(action, Generate):
            done.portfolio.tell(stream.generated(len(pool), action.n))
        else:
            assert isinstance(action, Verify)
            done.verified += [(request.name, id) for id in action.ids]
            verdicts = {
                id: Verdict.PASSED if stream.passed[id] else Verdict.FAILED for id in action.ids
            }
            done.portfolio.tell(Verified(verdicts))
        assert done.cost <= budget * (1 + 1e-9)
    return done


@pytest.mark.parametrize("names", ["a", "ab", "abcd"])
def test_a_deadline_is_that_of_all_searches_together(names: str) -> None:
    """Two rounds of 5 and 30 seconds end within 100 seconds, a third one does not."""
    pace = Pace(latency=Latency(5, 30), deadline=100)
    streams = dict.fromkeys(names, Stream([False] * 50))
    costs = dict.fromkeys(names, Costs(1, 10))
    done = run(streams, costs, BySpending(equal_shares(names)), pace=pace)
    assert done.portfolio.seconds == 70
    assert {member.search.seconds for member in done.portfolio.members} == {70}
    assert done.portfolio.bill.verified == 2
    assert done.portfolio.outcome is not None
    assert "within the deadline of 100 seconds" in done.portfolio.outcome.why


def alone(stream: Stream, costs: Costs, policy: Policy) -> float:
    """What this generator alone pays for its first pass; infinite if it has none."""
    done = run({"x": stream}, {"x": costs}, BySpending({"x": 1.0}), policy)
    return done.cost if done.reason is Reason.SOLVED else math.inf


REST = [False] * 2100  # no step runs out of candidates: the bound assumes this


def coin(chance: random.Random, rate: float, n: int = 150) -> Stream:
    labels = [chance.random() < rate for _ in range(n)] + REST
    scores = [chance.gauss(1.0 if label else 0.0, 1.0) for label in labels]
    return Stream(labels, scores)


def needle(n: int, at: int) -> Stream:
    return Stream([*(place == at for place in range(n)), *REST])


ONLY_A = {"a": (0.9, 0.999), "b": (1e-6, 1e-5), "c": (1e-5, 1e-6)}
WRONG = known((KnownType(1.0, ONLY_A),), dict.fromkeys("abc", (0.5,)))  # in high scores of a
PRICES = [(1, 1), (1, 10), (3, 50), (1, 1000), (1000, 1), (1000, 1000)]


def adversarial(chance: random.Random) -> dict[str, Stream]:
    """Two or three generators: useless ones, needles, equal ones, and coins."""
    kinds = [
        lambda: Stream([False] * 60),
        lambda: needle(60, chance.randrange(60)),
        lambda: coin(chance, 0.3),
        lambda: coin(chance, 10 ** chance.uniform(-1.5, 0)),
    ]
    names = "abc"[: chance.choice([2, 3])]
    streams = {name: chance.choice(kinds)() for name in names}
    streams[names[0]] = chance.choice(kinds[1:3])()  # at least one is useful
    if chance.random() < 0.2:
        streams = dict.fromkeys(names, streams["a"])  # equal generators
    return streams


Weighted = Sequence[tuple[float, Mapping[str, float]]]  # types: their weights and pass rates


def failing(types: Weighted, tried: Mapping[str, int]) -> float:
    """The probability that all of these attempts fail."""
    left = [w * math.prod((1 - p) ** tried[n] for n, p in rates.items()) for w, rates in types]
    return sum(left) / sum(weight for weight, _ in types)


def greedy_cost(types: Weighted, prices: Mapping[str, float]) -> float:
    """The expected cost of the attempts in the order of their index."""
    prior = known(tuple(KnownType(w, {n: (p,) for n, p in rates.items()}) for w, rates in types))
    tried, cost = dict.fromkeys(prices, 0), 0.0
    while (left := failing(types, tried)) > 1e-6:
        outlook = prior.outlook({n: GeneratorEvidence([k], [k]) for n, k in tried.items()})
        best = max(prices, key=lambda n: index_to_generate(outlook[n], Costs(prices[n] - 0.5, 0.5)))
        cost += prices[best] * left
        tried[best] += 1
    return cost


def least_cost(types: Weighted, prices: Mapping[str, float], most: int = 20) -> float:
    """A lower bound of the cost of any order: what comes after `most` attempts is free."""
    (a, first), (b, second) = prices.items()
    after = dict.fromkeys(((i, most - i) for i in range(most + 1)), 0.0)
    for total in reversed(range(most)):
        for i in range(total + 1):
            left = failing(types, {a: i, b: total - i})
            one, other = after[i + 1, total - i], after[i, total - i + 1]
            after[i, total - i] = min(first * left + one, second * left + other)
    return after[0, 0]


class TestTheBound:
    """The cost is at most that of any single generator, divided by its share."""

    @pytest.mark.slow
    @pytest.mark.parametrize("policy", [VerifyAll(), Varied(), Balanced(), Adaptive()])
    def test_of_the_cold_portfolio_holds_on_every_path(self, policy: Policy) -> None:
        chance = random.Random(repr(policy))
        for _ in range(25):
            streams = adversarial(chance)
            costs = {name: Costs(*chance.choice(PRICES)) for name in streams}
            shares = chance.choice([equal_shares(list(streams)), root_shares(costs)])
            cost = run(streams, costs, BySpending(shares), policy).cost
            for name, stream in streams.items():
                bound = alone(stream, costs[name], policy) * constants(shares)[name]
                assert cost <= bound * (1 + 1e-9)

    @pytest.mark.slow
    @pytest.mark.parametrize("factor", [1.0, 2.0, 5.0])
    def test_of_a_learned_portfolio_is_factor_times_as_high_whatever_the_prior(
        self, factor: float
    ) -> None:
        chance = random.Random(f"learned {factor}")
        reached = 0.0
        for _ in range(25):
            streams = adversarial(chance)
            costs = {name: Costs(*chance.choice(PRICES)) for name in streams}
            shares = chance.choice([equal_shares(list(streams)), root_shares(costs)])
            cost = run(streams, costs, ByExpectedPasses(WRONG, shares, factor), VerifyAll()).cost
            for name, stream in streams.items():
                bound = alone(stream, costs[name], VerifyAll()) * constants(shares)[name]
                assert cost <= factor * bound * (1 + 1e-9)
                if math.isfinite(bound):
                    reached = max(reached, cost / bound)
        assert reached > 0.5  # the test comes near the bound of the cold portfolio

    @pytest.mark.slow
    @pytest.mark.parametrize("factor", [1.0, 2.0])
    def test_of_a_learned_portfolio_holds_with_shared_keys_and_short_pools(
        self, factor: float
    ) -> None:
        """Keys that failed elsewhere only help; a generator may end at any time."""
        chance = random.Random(f"keys {factor}")
        refuted_elsewhere = 0
        for _ in range(60):
            names = "abc"[: chance.choice([2, 3])]
            streams = {}
            for name in names:
                labels = [chance.random() < 0.08 for _ in range(chance.choice([3, 12, 60]))]
                wrong = [chance.choice([None, f"wrong{chance.randrange(9)}"]) for _ in labels]
                keys = ["right" if ok else key for ok, key in zip(labels, wrong, strict=True)]
                streams[name] = Stream(labels, [chance.random() for _ in labels], keys)
            costs = {name: Costs(*chance.choice(PRICES)) for name in names}
            shares = chance.choice([equal_shares(list(names)), root_shares(costs)])
            done = run(streams, costs, ByExpectedPasses(WRONG, shares, factor))
            verified = Counter(name for name, _ in done.verified)
            for name, stream in streams.items():
                bound = alone(stream, costs[name], VerifyAll()) * constants(shares)[name]
                assert done.cost <= factor * bound * (1 + 1e-9)
                refuted_elsewhere += verified[name] < len(set(stream.keys))
        assert refuted_elsewhere

    @pytest.mark.slow
    def test_is_tight_if_only_one_of_equally_dear_generators_is_useful(self) -> None:
        costs = dict.fromkeys("abcd", Costs(1, 9))
        streams = {name: Stream([False] * 500) for name in "abc"} | {"d": needle(500, 299)}
        cost = run(streams, costs, BySpending(equal_shares("abcd"))).cost
        assert cost == pytest.approx(4 * alone(streams["d"], costs["d"], VerifyAll()), rel=0.01)

    def test_a_generator_that_has_ended_leaves_its_share_to_the_others(self) -> None:
        costs = dict.fromkeys("ab", Costs(1, 9))
        streams = {"a": Stream([False] * 3), "b": needle(200, 150)}
        assert run(streams, costs, BySpending(equal_shares("ab"))).cost == 30 + 1510


class TestShares:
    def test_by_roots_have_the_lowest_mean_bound_of_any_shares(self) -> None:
        chance = random.Random(5)
        costs = {"a": Costs(1, 10), "b": Costs(4, 10), "c": Costs(990, 10)}

        def mean(shares: Mapping[str, float]) -> float:
            return sum((costs[n].candidate + costs[n].verify) / shares[n] for n in costs)

        best = mean(root_shares(costs))
        assert best < mean(equal_shares(list(costs)))
        for _ in range(200):
            weights = {name: chance.random() + 1e-3 for name in costs}
            total = sum(weights.values())
            assert best <= mean({n: w / total for n, w in weights.items()}) + 1e-9

    def test_must_fit(self) -> None:
        for shares in ({"a": 0.5}, {"a": 0.0, "b": 1.0}, {"a": 0.6, "b": 0.6}):
            with pytest.raises(UsageError):
                BySpending(shares)
        BySpending({"a": 0.25, "b": 0.75})


class TestKeys:
    def test_refuted_in_one_pool_are_refuted_in_all(self) -> None:
        costs = dict.fromkeys("ab", Costs(1, 9))
        streams = {
            "a": Stream([False, False, True], keys=["x", "y", "z"]),
            "b": Stream([False, False, False], keys=["x", "y", "w"]),
        }
        done = run(streams, costs, BySpending(equal_shares("ab")))
        names = [(streams[name].keys[id]) for name, id in done.verified]
        assert len(names) == len(set(names))
        assert done.reason is Reason.SOLVED

    def test_withdraw_a_verification_that_was_about_to_start(self) -> None:
        search = Search(Fixed(3, 3), Costs(1, 9), Limits(width=None))
        search.ask()
        search.tell(Generated((3.0, 2.0, 1.0), ("x", "y", "x")))
        assert search.ask() == Verify((0, 1))  # type: ignore[arg-type]
        search.change(elsewhere=5.0, closed=["x"])
        assert search.ask() == Verify((1,))  # type: ignore[arg-type]

    def test_a_class_that_passed_is_no_second_answer(self) -> None:
        costs = dict.fromkeys("ab", Costs(1, 9))
        streams = {
            "a": Stream([True, True], keys=["x", "y"]),
            "b": Stream([True, True], keys=["x", "z"]),
        }
        done = run(streams, costs, BySpending(equal_shares("ab")), answers=3)
        keys = {streams[name].keys[id] for name, id in done.portfolio.answers}
        assert (done.reason, keys) == (Reason.SOLVED, {"x", "y", "z"})


class TestLimits:
    def test_the_budget_covers_all_generators_together(self) -> None:
        costs = {"a": Costs(1, 10), "b": Costs(20, 10)}
        streams = {name: Stream([False] * 100) for name in "ab"}
        for budget in (0, 5, 11, 47, 200):
            done = run(streams, costs, BySpending(root_shares(costs)), Varied(), budget=budget)
            assert done.reason is Reason.OUT_OF_BUDGET
            assert budget - done.cost < 11  # another attempt of the cheap one does not fit

    @pytest.mark.parametrize("seed", range(30))
    def test_the_last_money_verifies_what_any_generator_has(self, seed: int) -> None:
        """Out of budget, no open candidate of any generator could have been verified."""
        chance = random.Random(seed)
        streams = adversarial(chance)
        costs = {name: Costs(*chance.choice(PRICES)) for name in streams}
        shares, budget = root_shares(costs), 10 ** chance.uniform(0.5, 4)
        learned = ByExpectedPasses(WRONG, shares)
        cold = BySpending(shares)
        tried: list[tuple[Chooser, Policy]] = [(learned, VerifyAll())]
        tried += [(cold, policy) for policy in (Varied(), Fixed(9, 1), Adaptive())]
        for chooser, policy in tried:
            done = run(streams, costs, chooser, policy, budget=budget)
            assert done.cost <= budget
            if done.reason is Reason.OUT_OF_BUDGET:
                for member in done.portfolio.members:
                    stop = member.search.ask()
                    is_out = isinstance(stop, Stop) and stop.reason is Reason.OUT_OF_BUDGET
                    if is_out and member.search.pool.waiting:
                        assert budget - done.cost < costs[member.name].verify

    def test_it_gives_up_when_the_total_reaches_the_value(self) -> None:
        costs = {"a": Costs(1, 10), "b": Costs(20, 10)}
        streams = {name: Stream([False] * 100) for name in "ab"}
        done = run(streams, costs, BySpending(root_shares(costs)), value=100)
        assert done.reason is Reason.FINISHED
        assert 70 < done.cost <= 100
        assert done.portfolio.outcome is not None
        assert "an answer is worth 100" in done.portfolio.outcome.why

    def test_it_ends_with_the_last_generator(self) -> None:
        costs = dict.fromkeys("ab", Costs(1, 9))
        streams = {"a": Stream([False] * 2), "b": Stream([False] * 5)}
        done = run(streams, costs, BySpending(equal_shares("ab")))
        assert (done.reason, done.cost) == (Reason.EXHAUSTED, 70)


class TestLearned:
    def test_failures_of_one_lower_the_chances_of_all(self) -> None:
        prior = known(
            (
                KnownType(0.5, {"a": (0.9,), "b": (0.9,)}),
                KnownType(0.5, {"a": (0.1,), "b": (0.2,)}),
            )
        )
        nothing = GeneratorEvidence([0], [0])
        before = prior.outlook({"a": nothing, "b": nothing})["b"].chances[0]
        after = prior.outlook({"a": GeneratorEvidence([2], [2]), "b": nothing})["b"].chances[0]
        assert after < before
        weights = 0.5 * 0.1**2, 0.5 * 0.9**2
        assert after == pytest.approx((weights[0] * 0.9 + weights[1] * 0.2) / sum(weights))

    def test_starts_with_the_most_expected_passes_per_cost(self) -> None:
        prior = known((KnownType(1.0, {"a": (0.2,), "b": (0.9,)}),))
        costs = {"a": Costs(1, 10), "b": Costs(20, 10)}
        streams = {"a": Stream([True] * 5), "b": Stream([True] * 5)}
        done = run(streams, costs, ByExpectedPasses(prior, root_shares(costs)))
        assert done.verified == [("b", 0)]  # .9 / 30 is more than .2 / 11

    @pytest.mark.slow
    def test_is_optimal_if_arms_are_independent_and_only_lose(self) -> None:
        """Known rates: the best order is by rate over cost; the index attains its expected cost."""
        rates, costs = {"a": 0.2, "b": 0.5}, {"a": Costs(1, 4), "b": Costs(11, 4)}
        prior = known((KnownType(1.0, {name: (rate,) for name, rate in rates.items()}),))
        chance = random.Random(1)
        spent = []
        for _ in range(400):
            streams = {
                n: Stream([chance.random() < r for _ in range(99)]) for n, r in rates.items()
            }
            spent.append(run(streams, costs, ByExpectedPasses(prior, root_shares(costs), 1e9)).cost)
        best = min((c.candidate + c.verify) / rates[n] for n, c in costs.items())
        assert sum(spent) / len(spent) == pytest.approx(best, rel=0.15)

    def test_costs_at_most_four_times_the_best_order_for_any_types(self) -> None:
        """Without scores; the best order is bounded from below by dynamic programming."""
        chance = random.Random(6)
        worst = 1.0
        for _ in range(40):
            prices = {name: chance.uniform(1, 30) for name in "ab"}
            types = [
                (chance.random(), {name: chance.choice([0.01, 0.2, 0.9]) for name in "ab"})
                for _ in range(3)
            ]
            if any(max(rates.values()) < 0.2 for _, rates in types):
                continue  # too long for this test
            cost = greedy_cost(types, prices)
            worst = max(worst, cost / least_cost(types, prices))
            assert cost <= 4 * least_cost(types, prices)
        assert worst > 1.01  # greedy is not always optimal, so this test says something

    def test_the_index_to_generate_is_that_of_the_best_threshold(self) -> None:
        chance = random.Random(4)
        for _ in range(50):
            chances = [chance.random() for _ in range(4)]
            parts = [chance.random() for _ in range(4)]
            shares = [part / sum(parts) for part in parts]
            costs = Costs(chance.uniform(0.1, 9), chance.uniform(0.1, 9))
            rules = [
                (
                    sum(h * q for h, q in zip(chances, shares, strict=True) if h >= limit),
                    sum(q for h, q in zip(chances, shares, strict=True) if h >= limit),
                )
                for limit in chances
            ]
            best = max(passes / (costs.candidate + costs.verify * part) for passes, part in rules)
            assert index_to_generate(Outlook(chances, shares), costs) == pytest.approx(best)

    @pytest.mark.slow
    def test_costs_what_the_best_threshold_costs_if_the_chances_are_known(self) -> None:
        """One generator, a good score: J* of the paper, which no policy can improve."""
        chances, costs = (0.02, 0.4), Costs(1, 10)
        prior = known((KnownType(1.0, {"a": chances}),), {"a": (0.5,)})
        chance = random.Random(2)
        spent = []
        for _ in range(500):
            scores = [chance.random() for _ in range(200)]
            stream = Stream([chance.random() < chances[s >= 0.5] for s in scores], scores)
            chooser = ByExpectedPasses(prior, {"a": 1.0}, 1e9)
            spent.append(run({"a": stream}, {"a": costs}, chooser).cost)
        best = (1 + 0.5 * 10) / (0.5 * 0.4)
        assert sum(spent) / len(spent) == pytest.approx(best, rel=0.1)

    @pytest.mark.parametrize("chances", [(0.05, 0.6), (0.6, 0.05)])
    def test_a_score_may_be_good_or_mislead(self, chances: tuple[float, float]) -> None:
        prior = known((KnownType(1.0, {"a": chances}),), {"a": (0.5,)})
        good = 1.0 if chances[1] > chances[0] else 0.0
        stream = Stream([False, False, True], [1 - good, good, good])
        done = run({"a": stream}, {"a": Costs(1, 10)}, ByExpectedPasses(prior, {"a": 1.0}, 9.0))
        assert done.verified == [("a", 1), ("a", 2)]

    def test_verifies_the_answer_that_most_generators_gave(self) -> None:
        prior = known(
            (KnownType(1.0, {"a": (1e-3, 0.5), "b": (1e-3, 0.5)}),), {"a": (1,), "b": (1,)}
        )
        streams = {
            "a": Stream([False, False], [0, 0], ["x", "y"]),
            "b": Stream([True], [0], ["y"]),
        }
        costs = dict.fromkeys("ab", Costs(1, 10))
        done = run(streams, costs, ByExpectedPasses(prior, equal_shares("ab"), 1e9))
        assert streams[done.verified[0][0]].keys[done.verified[0][1]] == "y"

    def test_scores_tell_the_type_as_far_as_they_are_trusted(self) -> None:
        easy = KnownType(0.5, {"a": (0.8, 0.8)}, {"a": (0.1, 0.9)})
        hard = KnownType(0.5, {"a": (0.1, 0.1)}, {"a": (0.9, 0.1)})
        shown = {"a": GeneratorEvidence([0, 3], [0, 0])}
        found = [
            known((easy, hard), {"a": (0.5,)}, trust).outlook(shown)["a"].chances[0]
            for trust in (0.0, 0.5, 1.0)
        ]
        assert found[0] == pytest.approx(0.45)
        assert found == sorted(found)
        assert found[2] == pytest.approx((0.8 * 9**3 + 0.1) / (9**3 + 1))

    def test_the_bins_of_a_prior_fit_its_edges(self) -> None:
        with pytest.raises(UsageError, match="needs 2 bins for 'a'"):
            known((KnownType(1.0, {"a": (0.5,)}),), {"a": (0.5,)})

    def test_every_type_has_all_levels(self) -> None:
        types = (ProblemType(1.0, {"a": (0.5,)}),)
        with pytest.raises(UsageError, match="needs 2 levels for 'a'"):
            JointPrior(types, {"a": ((0.5,), (0.9,))})

    def test_a_type_may_leave_the_level_open(self) -> None:
        """Failures lower the chance of the generator that failed, not that of the other."""
        levels = {"a": ((0.1,), (0.9,)), "b": ((0.1,), (0.9,))}
        prior = JointPrior((ProblemType(1.0, dict.fromkeys("ab", (0.5, 0.5))),), levels)
        shown = {"a": GeneratorEvidence([2], [2]), "b": GeneratorEvidence([0], [0])}
        found = {name: each.chances[0] for name, each in prior.outlook(shown).items()}
        assert found["b"] == pytest.approx(0.5)
        assert found["a"] == pytest.approx((0.1 * 0.9**2 + 0.9 * 0.1**2) / (0.9**2 + 0.1**2))

    def test_more_failures_than_floats_can_hold_are_evidence_all_the_same(self) -> None:
        levels = {"a": ((0.5,), (0.999999,))}
        prior = JointPrior((ProblemType(1.0, {"a": (1e-6, 1.0)}),), levels)
        outlook = prior.outlook({"a": GeneratorEvidence([10_000], [10_000])})["a"]
        assert outlook.chances[0] == pytest.approx(0.5)

    def test_what_is_counted_step_by_step_is_what_all_candidates_show(self) -> None:
        """Keys fail in other searches, and candidates are verified out of turn."""
        chance = random.Random(12)
        compared = []

        class Comparing(ByExpectedPasses):
            def choose(self, members: Sequence[Member]) -> Member:
                for member in members:
                    anew = replace(member, steered=None)
                    kept = Standing.of(member, self.prior)
                    assert replace(kept, member=anew) == Standing.of(anew, self.prior)
                    compared.append(len(kept.open))
                return super().choose(members)

        types = (KnownType(1.0, {"a": (0.1, 0.6), "b": (0.2, 0.5)}),)
        prior = known(types, {"a": (0.5,), "b": (0.5,)})
        for _ in range(5):
            streams = {}
            for name in "ab":
                labels = [False] * 30
                scores = [chance.random() for _ in labels]
                streams[name] = Stream(labels, scores, [f"k{chance.randrange(25)}" for _ in labels])
            costs = {"a": Costs(1, 10), "b": Costs(4, 10)}
            run(streams, costs, Comparing(prior, equal_shares("ab"), 3.0))
        assert max(compared) > 3

    def test_the_factor_of_the_guard_is_at_least_one(self) -> None:
        with pytest.raises(UsageError, match="at least 1"):
            ByExpectedPasses(WRONG, {"a": 1.0}, 0.5)
