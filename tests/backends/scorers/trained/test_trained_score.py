"""A trained score: its features, its file, and how a search keeps its model."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from grv.backends.by_name import named, scorer
from grv.backends.protocols import Arrived, Draft, Problem, Score, Usage
from grv.backends.scorers.trained.features import (
    BUCKETS,
    DENSE,
    TREE,
    Arrival,
    Feature,
    Features,
    Others,
    answers_are_programs,
    grams_of,
)
from grv.backends.scorers.trained.model import (
    GivenWeight,
    ScorerEvidence,
    TrainedModel,
    Weight,
    load_model,
    model_of,
)
from grv.backends.scorers.trained.scorer import COLD, PairedScorer, TrainedScorer
from grv.core.errors import UsageError


def model(*, given: float = 0.0, **weights: float) -> TrainedModel:
    """A model with these weights of dense features."""
    return TrainedModel(
        tuple(Weight(name, 0.0, 1.0, weights.get(name, 0.0)) for name in DENSE),
        (GivenWeight("judge", (0.0, 1.0), (-1.0, 1.0), given),) if given else (),
        (0.0,) * BUCKETS,
        "judge" if given else "",
        ScorerEvidence(1, 2, 1),
    )


def features(others: Others, text: str, key: str | None = None) -> dict[str, Feature]:
    return dict(zip(DENSE, others.features(Arrival(text, key=key)).dense, strict=True))


def test_features_by_hand() -> None:
    others = Others("add two numbers")
    found = features(others, "add numbers")
    assert found["overlap"] == Feature(2 / 3, 1.0)  # add, numbers; not their pair
    assert found["parses"] == Feature(0.0, 1.0)
    assert found["similarity"] == found["votes"] == found["logprob"] == Feature(0.0, 0.0)
    assert features(others, "x = 1")["parses"] == Feature(1.0, 1.0)
    assert features(others, " ")["parses"] == Feature(0.0, 1.0)
    assert features(Others("def f():\n"), "    return 1\n")["parses"] == Feature(1.0, 1.0)
    assert features(Others("", programs=False), "x = 1")["parses"].counts == 0


def test_features_of_a_text_by_hand() -> None:
    found = features(Others("add two numbers"), "add\n \nmany, many numbers")
    assert found["lines"] == Feature(math.log1p(2), 1.0)
    assert found["names"] == Feature(math.log1p(3), 1.0)  # add, many, numbers
    assert found["known names"] == Feature(2 / 3, 1.0)
    assert features(Others("1 + 1"), "2")["known names"].counts == 0


def test_features_of_a_program_by_hand() -> None:
    others = Others("def f(a, b):\n")
    looping = features(others, "    for x in a:\n        return x\n    return 1\n")
    assert looping["loops"] == Feature(1.0, 1.0)
    assert looping["returns"] == Feature(math.log1p(2), 1.0)
    assert looping["parameters"] == Feature(1 / 2, 1.0)
    short = features(others, "    return a + b\n")
    assert short["loops"] == Feature(0.0, 1.0)
    assert short["parameters"] == Feature(1.0, 1.0)
    assert 0 < short["nodes"].value < looping["nodes"].value
    broken = features(others, "    return a +\n")
    assert [broken[name].counts for name in TREE] == [1.0, 0.0, 0.0, 0.0, 0.0]
    assert features(others, "    return 1\n")["parameters"] == Feature(0.0, 1.0)
    assert features(Others(""), "x = 1")["parameters"].counts == 0


def test_a_candidate_is_compared_with_those_before_it() -> None:
    others = Others("")
    others.add(Arrival("a b", key="k"))
    others.add(Arrival("c", key="k"))

    found = features(others, "a b", key="k")

    assert found["similarity"] == Feature(1 / 2, 1 / 2)
    assert found["votes"] == Feature(1.0, 1 / 2)
    others.add(Arrival("c", key="k"), -1)
    assert features(others, "a b")["similarity"] == Feature(1.0, 1 / 3)


def test_the_mean_log_probability_counts_if_it_is_a_number() -> None:
    logprob = DENSE.index("logprob")
    some = Others("").features(Arrival("a", (-1.0, -3.0))).dense[logprob]
    none = Others("").features(Arrival("a", (-1.0, float("nan")))).dense[logprob]
    assert (some, none) == (Feature(-2.0, 1.0), Feature(0.0, 0.0))


@pytest.mark.parametrize("text", ["", "\ud800", "(" * 5000, "\0", "x" * 100_000])
def test_any_text_has_features(text: str) -> None:
    assert all(0 <= gram < BUCKETS for gram in grams_of(text))
    assert len(Others(text).features(Arrival(text)).dense) == len(DENSE)


def test_checks_that_run_programs() -> None:
    assert answers_are_programs({"kind": "stdin"})
    assert not answers_are_programs({"kind": "math"})
    assert answers_are_programs({})


def test_a_score_is_a_sum_over_features() -> None:
    made = model(length=2.0, given=1.5)
    dense = (Feature(3.0, 0.5), *[Feature(9.0, 0.0)] * (len(DENSE) - 1))
    assert made.score(Features((), dense, {"judge": 0.75})) == pytest.approx(3.0 + 1.5 * 0.5)
    assert made.score(Features((), dense, {})) == pytest.approx(3.0 - 1.5)
    far = (Feature(99.0, 1.0), *dense[1:])
    assert made.score(Features((), far, {})) == pytest.approx(6.0 - 1.5)


def test_n_grams_count_by_the_root_of_their_number() -> None:
    grams = [0.0] * BUCKETS
    grams[7], grams[8] = 1.0, 2.0
    made = dataclasses.replace(model(), grams=tuple(grams))
    assert made.score(Features((7, 8, 9, 10), (Feature(),) * len(DENSE), {})) == pytest.approx(1.5)


def test_a_file_comes_back_as_it_was(tmp_path: Path) -> None:
    made, path = model(length=0.25, given=1.5), tmp_path / "scorer.json"
    path.write_text(made.to_text())
    assert load_model(str(path)) == made
    assert load_model(str(path)).hash == made.hash != model(length=0.5).hash


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not a scorer: "),
        ("[1]", "not a scorer; make one with grv learn --scorer"),
        ('{"format": "grv prior", "version": 1}', "not a scorer; make one with grv learn"),
        ('{"format": "grv scorer", "version": 9}', "a scorer of version 9, but this grv reads"),
        ('{"format": "grv scorer", "version": 1}', "a broken scorer: 'dense' is missing"),
    ],
)
def test_a_file_that_is_no_scorer_is_one_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "scorer.json"
    path.write_text(content)
    with pytest.raises(UsageError) as error:
        scorer(f"trained:{path}")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("field", "value"), [("grams", [0.0]), ("dense", []), ("alike", "other"), ("grams", "none")]
)
def test_a_damaged_scorer_is_refused(field: str, value: object) -> None:
    record = json.loads(model(given=1.0).to_text()) | {field: value}
    with pytest.raises(UsageError, match="a broken scorer: "):
        model_of(json.dumps(record))


class Constant:
    """Gives every draft the same score, and costs a dollar."""

    closed = False

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        return [Score(0.75, Usage(dollars=1.0)) for _ in drafts]

    async def aclose(self) -> None:
        self.closed = True


def scores(made: TrainedScorer, texts: Sequence[str], recorded: str = "") -> Sequence[Score]:
    async def run() -> Sequence[Score]:
        pinned = await made.pinned(recorded)
        return await pinned.score(Problem("p"), [Draft(text, (-0.5, -1.5)) for text in texts])

    return asyncio.run(run())


def test_before_there_is_a_model_the_score_is_the_best_that_is_known() -> None:
    cold = TrainedScorer(lambda: None)
    assert [each.value for each in scores(cold, ["a", " "])] == [-1.0, None]
    given = TrainedScorer(lambda: None, ("judge", Constant()))
    assert scores(given, ["a"]) == [Score(0.75, Usage(dollars=1.0))]


def test_a_search_keeps_the_model_that_it_recorded() -> None:
    old, new = model(length=1.0), model(length=-1.0)
    made = TrainedScorer(lambda: new)
    short, long = scores(made, ["a", "a" * 50], old.to_text())
    assert (short.value or 0.0) < (long.value or 0.0)
    assert [s.value for s in scores(made, ["a"], COLD)] == [-1.0]
    assert asyncio.run(made.pinned()).content == new.to_text()
    assert asyncio.run(made.pinned(old.to_text())).content == old.to_text()


def test_a_given_score_is_a_feature_and_counts_failures() -> None:
    inner = Constant()
    made = TrainedScorer(lambda: model(given=2.0), ("judge", inner))
    assert scores(made, ["a"]) == [Score(1.0, Usage(dollars=1.0), alike=0.75)]
    asyncio.run(made.aclose())
    assert inner.closed


def test_scores_do_not_depend_on_how_candidates_are_grouped() -> None:
    made = TrainedScorer(lambda: model(similarity=1.0, votes=1.0))
    arrived = [Arrived(Draft(f"word {i % 3} x"), str(i % 2)) for i in range(9)]

    async def grouped(*sizes: int) -> list[float | None]:
        pinned, found = await made.pinned(), list[float | None]()
        for size in sizes:
            new = arrived[len(found) : len(found) + size]
            more = await pinned.score_arrivals(Problem("p"), arrived[: len(found)], new)
            found += [each.value for each in more]
        return found

    assert asyncio.run(grouped(9)) == asyncio.run(grouped(1, 3, 5)) == asyncio.run(grouped(8, 1))


def test_two_scorers_in_one() -> None:
    first, second = scorer("length"), Constant()
    pair = PairedScorer(first, second)
    found = asyncio.run(pair.score(Problem("p"), [Draft("abc"), Draft("")]))
    assert [(each.value, each.alike) for each in found] == [(-3.0, 0.75), (None, 0.75)]
    asyncio.run(pair.aclose())
    assert second.closed


def test_a_ledger_knows_every_trained_score_by_the_same_name() -> None:
    assert named("trained:/some/where.ledger") == named("trained:scorer.json") == "trained"
