"""The published experiment, written down once more in the plainest way, and our figures beside it.

What is published: for each solvable problem, sorted by id, some permutations of its samples out of
one generator. For each permutation the success of every pair (M, K): do the K best of the first M
hold a correct one? The adaptive search pays for whole shells. From that table come the cheapest
pair of each permutation, the best pair for all within adaptive's mean cost, and the best pairs for
groups of problems of similar pass rate. Nothing here is fast, and nothing here is ours.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from grv.apps import cli
from grv.core.errors import LogError
from grv.logs.log import Log

PAPER = Path(__file__).parents[2] / "paper"
ORDERS = 3
PRICES = [(1, 10), (1, 1), (2, 30), (5, 3)]
CLASSES = range(1, 11)

Floats = NDArray[np.float64]
Problems = dict[str, tuple[Floats, NDArray[np.bool_]]]


@dataclass(frozen=True)
class Figures:
    """Means over trials."""

    cost: float
    generated: float
    verified: float
    solved: float


@dataclass
class Experiment:
    """One run of the published experiment at one price list."""

    problems: Problems
    generate: float
    verify: float
    seed: int

    def __post_init__(self) -> None:
        sequence = np.random.default_rng(self.seed)
        self.ids = sorted(id for id, (_, correct) in self.problems.items() if correct.any())
        self.size = max(len(self.problems[id][0]) for id in self.ids)
        self.success = np.zeros((len(self.ids), ORDERS, self.size + 1, self.size + 1))
        self.adaptive_trials: list[tuple[int, int, bool]] = []
        for at, id in enumerate(self.ids):
            scores, correct = self.problems[id]
            for trial in range(ORDERS):
                order = sequence.permutation(len(scores))
                arrived = scores[order], correct[order]
                self.adaptive_trials.append(self.search(*arrived))
                for m, k in self.successes(*arrived):
                    self.success[at, trial, m, k] = 1

    def price(self, m: float, k: float) -> float:
        return m * self.generate + k * self.verify

    def successes(self, scores: Floats, correct: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
        for m in range(1, len(scores) + 1):
            ranked = sorted(range(m), key=lambda at: -scores[at])
            for k in range(1, m + 1):
                if any(correct[at] for at in ranked[:k]):
                    yield m, k

    def schedule(self) -> Iterator[tuple[int, int]]:
        smallest = min(self.generate, self.verify)
        for s in range(30):
            shell = [
                (b, b - a)
                for b in range(32)
                for a in range(b + 1)
                if 2**s * smallest <= self.price(2**b, 2 ** (b - a)) < 2 ** (s + 1) * smallest
            ]
            if shell:
                yield 2 * 2 ** max(b for b, _ in shell), 6 * 2 ** max(j for _, j in shell)

    def search(self, scores: Floats, correct: NDArray[np.bool_]) -> tuple[int, int, bool]:
        """Generated, verified, solved."""
        drawn, verified = 0, set[int]()
        for m, k in self.schedule():
            drawn = min(len(scores), drawn + m)
            waiting = [at for at in range(drawn) if at not in verified]
            best = sorted(waiting, key=lambda at: -scores[at])[:k]
            verified.update(best)
            if any(correct[at] for at in best):
                return drawn, len(verified), True
            if len(verified) == len(scores):
                break
        return drawn, len(verified), False

    def adaptive(self) -> Figures:
        drawn, verified, solved = (np.array(x) for x in zip(*self.adaptive_trials, strict=True))
        cost = float(np.mean([self.price(m, k) for m, k, _ in self.adaptive_trials]))
        return Figures(cost, float(drawn.mean()), float(verified.mean()), float(solved.mean()))

    def hindsight(self) -> Figures:
        best = []
        for table in self.success.reshape(-1, self.size + 1, self.size + 1):
            solving = [(int(m), int(k)) for m, k in np.argwhere(table)]
            best.append(min((self.price(m, k), m, k) for m, k in solving))
        cost, m, k = np.mean(best, axis=0)
        return Figures(float(cost), float(m), float(k), 1.0)

    def matched(self) -> tuple[int, int, float]:
        """The best pair within adaptive's mean cost, and its success."""
        budget, rates = self.adaptive().cost, self.success.mean(axis=(0, 1))
        chosen = (0, 0)
        for m in range(1, self.size + 1):
            for k in range(1, m + 1):
                if self.price(m, k) <= budget and rates[m, k] > rates[chosen] + 1e-12:
                    chosen = (m, k)
        return *chosen, float(rates[chosen])

    def classes(self) -> dict[int, tuple[float, float]]:
        """For each number of classes, the mean cost and the success of the best partition."""
        rate = {id: float(self.problems[id][1].mean()) for id in self.ids}
        by_rate = sorted(range(len(self.ids)), key=lambda at: rate[self.ids[at]])
        count = len(by_rate)
        runs = {
            (left, right): self.best_of(by_rate[left:right])
            for left in range(count)
            for right in range(left + 1, count + 1)
        }
        best = {0: (0.0, 0.0)}  # problems covered: success lost, cost
        found = {}
        for classes in range(1, max(CLASSES) + 1):
            best = {
                right: min(
                    (lost + runs[left, right][0], cost + runs[left, right][1])
                    for left, (lost, cost) in best.items()
                    if left < right
                )
                for right in range(classes, count + 1)
            }
            lost, cost = best[count]
            found[classes] = (cost / count, 1 - lost / count)
        return found

    def best_of(self, group: list[int]) -> tuple[float, float]:
        """Success lost and cost of a group's best pair, summed over its problems."""
        shortest = min(len(self.problems[self.ids[at]][0]) for at in group)
        rates = self.success[group].mean(axis=(0, 1))
        pairs = [(m, k) for m in range(1, shortest + 1) for k in range(1, m + 1)]
        lost, cost = min((round(1 - float(rates[m, k]), 9), self.price(m, k)) for m, k in pairs)
        return lost * len(group), cost * len(group)


def made_up(seed: int, *, ragged: bool) -> Problems:
    """Twelve solvable problems and a hopeless one; no ties in scores nor in pass rates."""
    chance = np.random.default_rng(seed)
    problems: Problems = {}
    for number in range(13):
        n = int(chance.integers(30, 41)) if ragged else 40
        passes = 0 if number == 12 else 1 + 2 * number
        correct = chance.permutation(np.arange(n) < passes)
        problems[f"task_{number * 7 % 13}"] = (
            chance.permutation(n) / n + 0.4 * correct + chance.random(n) / 1000,
            correct,
        )
    return problems


def write_files(folder: Path, problems: Problems) -> tuple[str, str]:
    generations, rewards = folder / "generations.jsonl", folder / "rewards.jsonl"
    with generations.open("w") as made, rewards.open("w") as scored:
        for id, (scores, correct) in problems.items():
            samples = [{"text": "...", "correct": bool(label)} for label in correct]
            print(json.dumps({"id": id, "samples": samples}), file=made)
            entries: list[dict[str, float]] = [
                {"idx": at, "r_score": float(score), "r_last": 0.5}
                for at, score in enumerate(scores)
                if np.isfinite(score)
            ]
            print(json.dumps({"id": id, "rewards": entries[::-1]}), file=scored)
    return str(generations), str(rewards)


def compared(folder: Path, problems: Problems, seed: int) -> dict[str, Any]:
    generations, rewards = write_files(folder, problems)
    asked = ["hindsight", "adaptive", "uniform-matched", *(f"difficulty-{c}" for c in CLASSES)]
    code = cli.run(
        [
            "compare",
            generations,
            "--rewards",
            rewards,
            "--score",
            "r_score",
            *(f"--costs={generate},{verify}" for generate, verify in PRICES),
            *(f"--policy={name}" for name in asked),
            "--orders",
            str(ORDERS),
            "--seed",
            str(seed),
            "--order-scheme",
            "paper",
            "--width",
            "all",
            "--json",
            str(folder / "out.json"),
        ]
    )
    assert code == 0
    saved: dict[str, Any] = json.loads((folder / "out.json").read_text())
    return saved


def figures(row: dict[str, Any]) -> Figures:
    return Figures(row["cost"], row["generated"], row["verified"], row["solved"])


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "ragged"), [(0, False), (1, True)])
def test_every_figure_is_that_of_the_published_experiment(
    seed: int, ragged: bool, tmp_path: Path
) -> None:
    problems = made_up(seed, ragged=ragged)
    saved = compared(tmp_path, problems, seed)
    rows = {(r["policy"], *r["costs"].values()): r for r in saved["rows"]}

    for prices in PRICES:
        experiment = Experiment(problems, *prices, seed)
        assert figures(rows["hindsight", *prices]) == experiment.hindsight()
        assert figures(rows["adaptive", *prices]) == experiment.adaptive()
        uniform = rows["uniform-matched", *prices]
        m, k, success = experiment.matched()
        assert (uniform["m"], uniform["k"]) == (m, k)
        assert figures(uniform) == Figures(experiment.price(m, k), m, k, success)
        for classes, (cost, success) in experiment.classes().items():
            row = rows[f"difficulty-{classes}", *prices]
            assert row["cost"] == pytest.approx(cost, rel=1e-12)
            assert row["solved"] == pytest.approx(success, rel=1e-12)
            assert sum(group["problems"] for group in row["groups"]) == 12
    assert saved["log"]["excluded"] == [f"task_{12 * 7 % 13}"]


@pytest.mark.slow
def test_refuted_programs_are_charged_as_in_the_published_experiment(tmp_path: Path) -> None:
    """A quarter of the candidates do not parse. The paper's job verifies and charges them."""
    problems = made_up(3, ragged=False)
    chance = np.random.default_rng(3)
    log = tmp_path / "log.csv"
    lines = ["problem,candidate,passed,score,refuted"]
    for id, (scores, correct) in problems.items():
        refuted = ~correct & (chance.random(len(scores)) < 0.25 / (1 - correct.mean()))
        columns = zip(correct, scores, refuted, strict=True)
        lines += [
            f"{id},{at},{int(right)},{float(score)!r},{int(out)}"
            for at, (right, score, out) in enumerate(columns)
        ]
    log.write_text("\n".join(lines) + "\n")
    asked = ["hindsight", "adaptive", "uniform-matched", *(f"difficulty-{c}" for c in CLASSES)]

    def rows(*options: str) -> dict[tuple[str, int, int], dict[str, Any]]:
        out = tmp_path / "out.json"
        job = ["--job", str(PAPER / "coding.toml"), "--orders", str(ORDERS), "--seed", "3"]
        chosen = [f"--policy={name}" for name in asked]
        assert cli.run(["compare", str(log), *job, *chosen, *options, "--json", str(out)]) == 0
        saved = json.loads(out.read_text())["rows"]
        return {(row["policy"], *row["costs"].values()): row for row in saved}

    paper = rows()
    for prices in [(1, 1), (1, 10), (1, 20), (1, 30)]:
        experiment = Experiment(problems, *prices, 3)
        assert figures(paper["hindsight", *prices]) == experiment.hindsight()
        assert figures(paper["adaptive", *prices]) == experiment.adaptive()
        m, k, success = experiment.matched()
        matched = Figures(experiment.price(m, k), m, k, success)
        assert figures(paper["uniform-matched", *prices]) == matched
        for classes, (cost, success) in experiment.classes().items():
            row = paper[f"difficulty-{classes}", *prices]
            assert row["cost"] == pytest.approx(cost, rel=1e-12)
            assert row["solved"] == pytest.approx(success, rel=1e-12)

    free = rows("--refute")
    assert free["adaptive", 1, 10]["cost"] < paper["adaptive", 1, 10]["cost"]


@pytest.mark.slow
def test_a_sample_without_a_reward_ranks_last(tmp_path: Path) -> None:
    problems = made_up(2, ragged=False)
    for scores, _ in problems.values():
        scores[7] = -np.inf
    saved = compared(tmp_path, problems, seed=2)

    experiment = Experiment(problems, *PRICES[0], 2)

    assert saved["log"]["unscored"] == 13
    assert figures(saved["rows"][0]) == experiment.hindsight()
    assert figures(saved["rows"][1]) == experiment.adaptive()


def pair_of_files(folder: Path, generations: str, rewards: str) -> Log:
    (folder / "generations.jsonl").write_text(generations)
    (folder / "rewards.jsonl").write_text(rewards)
    return Log.load(folder / "generations.jsonl", rewards=folder / "rewards.jsonl", score="r_last")


GENERATIONS = '{"id": "a", "samples": [{"correct": true}, {"correct": false}]}\n'
REWARDS = '{"id": "a", "rewards": [{"idx": 1, "r_last": 2.5}, {"idx": 0, "r_last": 0.5}]}\n'


def test_rewards_find_their_sample_by_its_place(tmp_path: Path) -> None:
    log = pair_of_files(tmp_path, GENERATIONS, REWARDS)

    assert log["a"].scores.tolist() == [0.5, 2.5]
    assert log["a"].passed.tolist() == [True, False]
    assert log.score == "r_last"


MATHEMATICS = (
    {
        **{"id": "hmmt_feb_2025_00", "year": 2025, "problem": "...", "answer": "4"},
        **{"n_samples": 2, "n_parsed": 1, "n_correct": 1, "empirical_pass_rate": 0.5},
        "avg_tokens": 7.5,
        "samples": [
            {"idx": 0, "pred": None, "correct": False, "num_tokens": 8, "text": ""},
            {"idx": 1, "pred": "4", "correct": True, "num_tokens": 7, "text": "..."},
        ],
    },
    [
        {"idx": 0, "n_steps": 0, "step_scores": [], "r_min": None, "r_last": None},
        {"idx": 1, "n_steps": 2, "step_scores": [0.5, 0.25], "r_min": 0.25, "r_last": 0.25},
    ],
)
PROGRAMMING = (
    {
        **{"id": "abc_a", "problem": "...", "answer": None, "difficulty": "hard", "tests": []},
        **{"test_type": "stdin", "fn_name": None, "starter_code": "", "n_correct": 1},
        "samples": [
            {"idx": 0, "code": "...", "syntactic": True, "n_tests_passed": 1, "correct": False},
            {"idx": 1, "code": "...", "syntactic": True, "n_tests_passed": 2, "correct": True},
        ],
    },
    [{"idx": 0, "r_score": None}, {"idx": 1, "r_score": -1.5}],
)


@pytest.mark.parametrize(
    ("task", "name", "score", "value"),
    [
        (MATHEMATICS, "generations.jsonl", "r_last", 0.25),
        (PROGRAMMING, "verified.jsonl", "r_score", -1.5),
    ],
)
def test_the_files_of_both_tasks_are_read(
    task: tuple[dict[str, Any], list[dict[str, Any]]],
    name: str,
    score: str,
    value: float,
    tmp_path: Path,
) -> None:
    problem, rewards = task
    (tmp_path / name).write_text(json.dumps(problem) + "\n")
    record = {"id": problem["id"], "n_samples": 2, "rewards": rewards}
    (tmp_path / "rewards.jsonl").write_text(json.dumps(record) + "\n")

    log = Log.load(tmp_path / name, rewards=tmp_path / "rewards.jsonl")

    assert log.score == score
    (read,) = log.problems
    assert read.scores.tolist() == [-np.inf, value]
    assert read.passed.tolist() == [False, True]
    with pytest.raises(LogError, match=r"a published file needs --rewards rewards\.jsonl"):
        Log.load(tmp_path / name)


def test_a_problem_that_the_authors_skipped_counts_as_failed_if_asked(tmp_path: Path) -> None:
    skipped = {**PROGRAMMING[0], "id": "abc_b", "n_correct": None}
    skipped["samples"] = [{"idx": at, "correct": None} for at in range(2)]
    lines = [json.dumps(each) + "\n" for each in (PROGRAMMING[0], skipped)]
    (tmp_path / "verified.jsonl").write_text("".join(lines))
    record = {"id": "abc_a", "rewards": PROGRAMMING[1]}
    (tmp_path / "rewards.jsonl").write_text(json.dumps(record) + "\n")
    verified, rewards = tmp_path / "verified.jsonl", tmp_path / "rewards.jsonl"

    with pytest.raises(LogError, match=r"verified\.jsonl:2: no label for candidate 0 of 'abc_b'"):
        Log.load(verified, rewards=rewards)
    log = Log.load(verified, rewards=rewards, unlabelled="fail")

    assert [problem.id for problem in log.solvable] == ["abc_a"]
    assert [problem.id for problem in log.problems] == ["abc_a", "abc_b"]


def test_ids_that_are_numbers_are_sorted_as_numbers(tmp_path: Path) -> None:
    made = "".join(GENERATIONS.replace('"a"', id) for id in ("10", "9", "100"))
    scored = "".join(REWARDS.replace('"a"', id) for id in ("9", "10", "100"))

    log = pair_of_files(tmp_path, made, scored)

    assert [problem.id for problem in log.problems] == ["9", "10", "100"]


def test_a_problem_without_samples_is_named(tmp_path: Path) -> None:
    log = pair_of_files(tmp_path, GENERATIONS + '{"id": "b", "samples": []}\n', REWARDS)

    assert [problem.id for problem in log.problems] == ["a"]
    assert log.bare == ("b",)


@pytest.mark.parametrize(
    ("generations", "rewards", "message"),
    [
        (GENERATIONS * 2, REWARDS, "generations.jsonl:2: problem 'a' occurs twice"),
        (GENERATIONS, REWARDS * 2, "rewards.jsonl:2: problem 'a' occurs twice"),
        ('{"id": "a"}', REWARDS, "generations.jsonl:1: 'samples' must be a list of objects"),
        ('{"samples": []}', REWARDS, "generations.jsonl:1: 'id' must be a name or a whole number"),
        (
            '{"id": "a", "samples": ["x"]}',
            REWARDS,
            "generations.jsonl:1: 'samples' must be a list of objects; there are 'id', 'samples'",
        ),
        (
            GENERATIONS,
            '{"id": "a", "rewards": [{"r_last": 1}]}',
            "rewards.jsonl:1: 'idx' must be a whole number, not None",
        ),
        (
            GENERATIONS,
            '{"id": "a", "rewards": [{"idx": 0, "r_last": 1}, {"idx": 0, "r_last": 2}]}',
            "rewards.jsonl:1: idx 0 of 'a' occurs twice",
        ),
        (
            GENERATIONS,
            REWARDS.replace("r_last", "passed"),
            "no score 'r_last'; there are none",
        ),
        (GENERATIONS, REWARDS.replace('"a"', '"b"'), "rewards.jsonl: has no problem of"),
        (GENERATIONS, REWARDS.replace("r_last", "r_mean"), "no score 'r_last'; there are 'r_mean'"),
        (GENERATIONS.replace("false", "null"), REWARDS, "generations.jsonl:1: no label for"),
        (
            GENERATIONS,
            REWARDS.replace("2.5", "NaN"),
            "rewards.jsonl:1: r_last must be a finite",
        ),
    ],
)
def test_what_is_wrong_with_the_files_is_said_with_its_place(
    generations: str, rewards: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(LogError) as caught:
        pair_of_files(tmp_path, generations, rewards)

    assert message in str(caught.value)
