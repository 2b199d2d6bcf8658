"""Comparisons of portfolios, single generators and orders of them."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from grv.comparing.portfolio import GeneratorComparison, compare_generators
from grv.comparing.settings import ComparisonSettings
from grv.core.limits import Limits
from grv.core.values import Costs
from grv.learning.history import PastProblem
from grv.learning.joint import fit_joint
from grv.learning.joint_history import attempts_of_log, attempts_of_pools, read_attempts
from grv.logs.generators import read_generators
from grv.logs.log import Log, LoggedProblem
from grv.policies import Adaptive, Varied, VerifyAll
from grv.policies.portfolio import BySpending, JointPrior, equal_shares
from grv.policies.portfolio.joint import GeneratorEvidence
from grv.replay.engine import replay
from grv.replay.portfolio import Entrant, orders_of, replayed_portfolio
from support.commands import here, refuses

PRICES = {"small": 1.0, "large": 20.0}


def tried(
    labels: list[bool], scores: list[float] | None = None, known: list[bool] | None = None
) -> PastProblem:
    """The candidates of one generator on a past problem."""
    passed = np.array(labels, dtype=np.bool_)
    labelled = np.ones_like(passed) if known is None else np.array(known, dtype=np.bool_)
    values = np.zeros(len(passed)) if scores is None else np.array(scores, dtype=np.float64)
    return PastProblem("p", values, passed & labelled, labelled)


def chances(
    prior: JointPrior, failed: int, names: Sequence[str] = tuple(PRICES)
) -> dict[str, float]:
    """The chances of the next candidates after some failures of the first generator; no scores."""
    shown = {name: GeneratorEvidence([0], [0]) for name in names} | {
        names[0]: GeneratorEvidence([0], [failed])
    }
    return {name: each.chances[0] for name, each in prior.outlook(shown).items()}


SETTINGS = ComparisonSettings(orders=3, keys=True)


def write_log(path: Path, problems: int = 40) -> Path:
    """Two generators that share the difficulty of the problems."""
    chance = random.Random(3)
    rows = ["problem,candidate,passed,score,key,generator"]
    for problem in range(problems):
        easy = chance.random()
        rates = {"small": easy**3, "large": easy**0.3 if problem % 13 else 0.0}
        for name, rate in rates.items():
            for candidate in range(12):
                passed = chance.random() < rate
                key = f"{'right' if passed else 'wrong'}{chance.randrange(6)}"
                score = chance.gauss(passed, 1)
                rows.append(f"p{problem:02},{candidate},{int(passed)},{score:.3f},{key},{name}")
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_log(tmp_path_factory.mktemp("log") / "log.csv")


@pytest.fixture(scope="module")
def log(path: Path) -> Log:
    return read_generators(str(path), list(PRICES))


@pytest.fixture(scope="module")
def found(log: Log) -> GeneratorComparison:
    costs = {name: Costs(price, 10) for name, price in PRICES.items()}
    return compare_generators(log, costs, SETTINGS, policy=VerifyAll())


class TestTheRows:
    @pytest.mark.slow
    def test_are_all_there(self, found: GeneratorComparison) -> None:
        assert [row.name for row in found.rows] == [
            "portfolio",
            "portfolio-learned",
            "only(small)",
            "only(large)",
            "in-order(small, large)",
            "in-order(large, small)",
            "oracle-generator",
        ]

    def test_are_on_the_problems_that_any_generator_solves(
        self, found: GeneratorComparison, log: Log
    ) -> None:
        assert found.problems == tuple(problem.id for problem in log.solvable)
        assert {*found.problems, *found.left_out} == {problem.id for problem in log.problems}
        for name in ("portfolio", "portfolio-learned", "in-order(small, large)"):
            assert found[name].solved == 1

    @pytest.mark.slow
    def test_keep_the_bound_on_every_problem_and_order(self, found: GeneratorComparison) -> None:
        """Without shared keys; they are shared here, and refuted keys only save money."""
        cold = found.trials["portfolio"].spent.sum(axis=2)
        for at, name in enumerate(PRICES):
            alone = found.trials[f"only({name})"]
            costs = np.where(alone.solved, alone.spent[:, :, at], np.inf)
            share = np.sqrt(PRICES[name] + 10) / (np.sqrt(11) + np.sqrt(30))
            assert (cold <= costs / share * (1 + 1e-9)).all()

    def test_the_oracle_costs_least(self, found: GeneratorComparison) -> None:
        assert found["oracle-generator"].cost == min(
            row.cost for row in found.rows if row.solved == 1
        )

    @pytest.mark.slow
    def test_learning_pays(self, found: GeneratorComparison) -> None:
        assert found["portfolio-learned"].cost < found["in-order(small, large)"].cost

    def test_say_who_contributes_what(self, found: GeneratorComparison) -> None:
        for row in found.rows:
            assert sum(row.spent.values()) == pytest.approx(row.cost)
            assert sum(row.answers.values()) == pytest.approx(1)
        only_small = {
            id
            for id, small, large in zip(
                found.problems,
                found.trials["only(small)"].answered.sum(axis=(1, 2)).tolist(),
                found.trials["only(large)"].answered.sum(axis=(1, 2)).tolist(),
                strict=True,
            )
            if small and not large
        }
        assert set(found.needed["small"]) == only_small
        assert any(line.startswith("large: alone it solves") for line in found.advice())


class TestReplay:
    @pytest.mark.parametrize("policy", [VerifyAll(), Varied(), Adaptive()])
    @pytest.mark.parametrize("keys", [False, True])
    def test_of_one_generator_is_that_of_the_engine(
        self, log: Log, policy: VerifyAll | Varied | Adaptive, keys: bool
    ) -> None:
        costs = Costs(1, 10)
        for problem in log.problems[:15]:
            assert problem.generators is not None
            rows = np.flatnonzero(problem.generators == 0)
            alone = LoggedProblem(
                problem.id,
                problem.scores[rows],
                problem.passed[rows],
                None if problem.keys is None else problem.keys[rows],
            )
            order = orders_of(problem, log.generators, 0)["small"]
            expected = replay(policy, alone, costs, order=order, keys=keys)
            done = replayed_portfolio(
                {"small": Entrant(costs, policy)},
                BySpending(equal_shares(["small"])),
                problem,
                {"small": order},
                keys=keys,
            )
            assert done.outcome == expected

    def test_finds_several_answers_of_different_keys(self, log: Log) -> None:
        entrants = {name: Entrant(Costs(price, 10), VerifyAll()) for name, price in PRICES.items()}
        for problem in log.solvable[:10]:
            orders = orders_of(problem, log.generators, 0)
            chooser = BySpending(equal_shares(list(PRICES)))
            done = replayed_portfolio(entrants, chooser, problem, orders, Limits(answers=3))
            assert problem.keys is not None
            keys = [int(problem.keys[orders[name][id]]) for name, id in done.answers]
            assert len(keys) == len(set(keys))
            right = {int(key) for key in problem.keys[problem.passed]}
            assert len(keys) == min(3, len(right))


class TestLearning:
    def test_finds_that_difficulty_is_shared(self, log: Log) -> None:
        prior = fit_joint(attempts_of_log(log, scored=False), list(PRICES))
        before, after = chances(prior, 0), chances(prior, 8)
        assert after["large"] < before["large"]
        rate = np.mean([p.passed[p.generators == 0].mean() for p in log.problems])
        assert before["small"] == pytest.approx(float(rate), abs=0.05)

    def test_finds_that_a_generator_may_fail_where_the_other_passes(self) -> None:
        chance = random.Random(5)
        past = []
        for number in range(40):
            rates = [0.9 if number & 1 else 0.02, 0.9 if number & 2 else 0.02]
            labels = [[chance.random() < rate for _ in range(4)] for rate in rates]
            past.append({n: tried(own) for n, own in zip(PRICES, labels, strict=True)})
        found = chances(fit_joint(past, list(PRICES)), 6)
        assert found["small"] < 0.1
        assert found["large"] > 0.35

    def test_does_not_stay_with_what_passed_at_once_on_few_problems(self) -> None:
        past = [{"small": tried([False] * 4), "large": tried([True])}] * 3
        prior = fit_joint(past, list(PRICES))
        nothing = GeneratorEvidence([0], [0])
        shown = {"small": nothing, "large": GeneratorEvidence([4], [4])}
        assert prior.outlook(dict.fromkeys(PRICES, nothing))["large"].chances[0] > 0.7
        assert prior.outlook(shown)["large"].chances[0] < 0.25

    @pytest.mark.slow
    def test_from_censored_counts_is_like_that_from_all(self, log: Log) -> None:
        """A search that stops at its first pass leaves a fair sample of each type."""
        chance = random.Random(1)
        whole, censored = [], []
        for _ in range(600):
            hard = chance.random() < 0.5
            rates = {"small": 0.05 if hard else 0.6, "large": 0.4 if hard else 0.95}
            labels = {n: [chance.random() < r for _ in range(12)] for n, r in rates.items()}
            whole.append({n: tried(x) for n, x in labels.items()})
            first = labels["small"].index(True) if True in labels["small"] else 12
            cut = {"small": tried(labels["small"][: min(first + 1, 4)])}
            if first >= 4:
                then = labels["large"].index(True) if True in labels["large"] else 12
                cut["large"] = tried(labels["large"][: then + 1])
            censored.append(cut)
        names = list(PRICES)
        full, part = fit_joint(whole, names), fit_joint(censored, names)
        for failed in (0, 3):
            expected = chances(full, failed)["small"]
            assert chances(part, failed)["small"] == pytest.approx(expected, abs=0.08)

    def test_finds_what_each_score_is_worth(self) -> None:
        """The score of one generator is good, that of another misleads, the third says nothing."""
        chance = random.Random(8)
        slopes = {"good": 2.0, "bad": -2.0, "none": 0.0}
        past = []
        for _ in range(80):
            level = chance.gauss(-1, 1)
            problem = {}
            for name, slope in slopes.items():
                scores = [chance.gauss(0, 1) for _ in range(8)]
                rates = [1 / (1 + np.exp(-(level + slope * score))) for score in scores]
                labels = [chance.random() < rate for rate in rates]
                problem[name] = tried(labels, scores)
            past.append(problem)
        prior = fit_joint(past, list(slopes))
        nothing = {name: GeneratorEvidence([0] * 5, [0] * 5) for name in slopes}
        found = {name: each.chances for name, each in prior.outlook(nothing).items()}
        assert found["good"][4] > 4 * found["good"][0]
        assert found["bad"][0] > 4 * found["bad"][4]
        assert found["none"][4] == pytest.approx(found["none"][0], abs=0.1)

    def test_trusts_scores_that_show_how_hard_a_problem_is(self) -> None:
        chance = random.Random(9)
        past = []
        for number in range(120):
            hard = number % 2
            labels = [chance.random() < (0.1 if hard else 0.8) for _ in range(6)]
            past.append({"a": tried(labels, [chance.gauss(-hard * 3, 1) for _ in labels])})
        prior = fit_joint(past, ["a"])
        assert prior.trust >= 0.5
        low, high = (
            prior.outlook({"a": GeneratorEvidence(seen, [0] * 5)})["a"].chances[2]
            for seen in ([6, 0, 0, 0, 0], [0, 0, 0, 0, 6])
        )
        assert low < 0.3 < high
        same = [{"a": tried(each["a"].passed.tolist(), [1.0, 2, 3, 4, 5, 6])} for each in past]
        assert fit_joint(same, ["a"]).trust == 0  # scores have the same law on all problems

    def test_takes_candidates_without_a_label_for_their_scores_only(self) -> None:
        """A label that is missing is no failure."""
        chance = random.Random(10)
        whole, part = [], []
        for _ in range(150):
            scores = [chance.gauss(0, 1) for _ in range(10)]
            labels = [chance.random() < 0.5 for _ in scores]
            known = [score > 0.3 for score in scores]  # only these were verified
            whole.append({"a": tried(labels, scores)})
            part.append({"a": tried(labels, scores, known)})
        nothing = {"a": GeneratorEvidence([0] * 5, [0] * 5)}
        full, cut = (fit_joint(each, ["a"]).outlook(nothing)["a"] for each in (whole, part))
        assert cut.chances[4] == pytest.approx(full.chances[4], abs=0.1)
        assert cut.shares == pytest.approx(full.shares)

    def test_takes_a_score_with_one_value_for_none(self) -> None:
        past = [{"a": tried([True, False], [3.0, 3.0])}] * 4
        prior = fit_joint(past, ["a"])
        assert prior.edges == {"a": ()}
        # A level is raised by half a standard error, which is large after four problems.
        assert 0.5 <= chances(prior, 0, ("a",))["a"] < 0.6

    def test_reads_logs_without_their_scores(self, path: Path, log: Log) -> None:
        found = read_attempts(str(path), dict.fromkeys(PRICES, "score"))
        for got, expected in zip(found, attempts_of_log(log), strict=True):
            for name in PRICES:
                assert (got[name].passed == expected[name].passed).all()
                assert not got[name].scores.any()

    def test_learns_of_a_pool_what_was_verified_and_what_shares_its_key(self, log: Log) -> None:
        entrants = {name: Entrant(Costs(price, 10), VerifyAll()) for name, price in PRICES.items()}
        for problem in log.solvable[:12]:
            orders = orders_of(problem, log.generators, 0)
            done = replayed_portfolio(
                entrants, BySpending(equal_shares(list(PRICES))), problem, orders
            )
            pools = {member.name: member.search.pool for member in done.members}
            assert problem.keys is not None
            for name, past in attempts_of_pools(problem.id, pools).items():
                rows = orders[name][: len(pools[name])]
                assert (past.scores == problem.scores[rows]).all()
                assert (problem.passed[rows] == past.passed)[past.labelled].all()
                verified = [id in pools[name].verdicts for id in range(len(rows))]
                assert past.labelled[verified].all()


class TestTheCommand:
    @pytest.mark.slow
    def test_prints_the_table_and_saves_it(self, path: Path, tmp_path: Path) -> None:
        flags = ("--generator", "small=1", "--generator", "large=20", "--costs", "1,10", "--keys")
        saved = ("--json", tmp_path / "t.json", "--csv", tmp_path / "t.csv", "--orders", 1)
        ran = here("compare", path, *flags, *saved, "--answers", 2)
        assert ran.code == 0
        assert "portfolio-learned" in ran.out
        assert "2 different answers" in ran.out
        rows = json.loads((tmp_path / "t.json").read_text())["rows"]
        assert len((tmp_path / "t.csv").read_text().splitlines()) == len(rows) + 1 == 8

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("flags", "words"),
        [
            (["--generator", "small"], "--generator small: give a generator of the log"),
            (["--generator", "none=1"], "no generator 'none'; there are large, small"),
            (
                ["--generator", "small=1", "--generator", "small=2"],
                "--generator small: given twice",
            ),
            (["--generator", "small=1", "--costs", "measured"], "give one --costs G,V"),
            (["--generator", "small=1", "--pairs"], "--pairs, --rewards and cascades"),
            (["--generator", "small=1", "--width", "2"], "--width must be 1"),
            (["--generator", "small=1", "--baseline", "x"], "baseline 'x' is not a row"),
            (
                ["--generator", "small=1", "--policy", "adaptive", "--policy", "verify-all"],
                "give one --policy for all generators",
            ),
        ],
    )
    def test_refuses_mistakes_in_one_line(self, path: Path, flags: list[str], words: str) -> None:
        assert words in refuses(["compare", path, *flags])

    @pytest.mark.slow
    def test_takes_a_policy_for_each_generator(self, path: Path, tmp_path: Path) -> None:
        flags = ("--generator", "small=1", "--generator", "large=20", "--orders", 1)
        policies = ("--policy", "verify-all", "--policy", "small=adaptive")
        saved = tmp_path / "t.json"
        assert here("compare", path, *flags, *policies, "--json", saved).code == 0
        used = json.loads(saved.read_text())["settings"]["policy"]
        assert used["small"].startswith("Adaptive(")
        assert used["large"] == "VerifyAll()"

    def test_answers_need_policies(self, path: Path, tmp_path: Path) -> None:
        log = tmp_path / "log.csv"
        log.write_text("problem,candidate,passed,score\np,0,1,.5\np,1,1,.4\n")
        flags = ["--answers", "2", "--policy", "hindsight"]
        assert "only policies find several answers" in refuses(["compare", log, *flags])
        assert here("compare", log, "--answers", 2).code == 0
        log.write_text("problem,candidate,passed,score\np,0,1,.5\np,1,,.4\n")
        flags = ["--answers", "2", "--unlabelled", "bound"]
        assert "this needs all labels" in refuses(["compare", log, *flags])
