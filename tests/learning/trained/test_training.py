"""Scores trained on verdicts: what they find, what they refuse, and how they are judged."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from grv.backends.scorers.trained.features import DENSE, Arrival
from grv.comparing.evaluate import cost, in_order, ranking, resampled
from grv.core.errors import LogError, UsageError
from grv.core.values import Verdict
from grv.learning.trained.cross_fit import cross_fitted
from grv.learning.trained.fit import fit
from grv.learning.trained.refits import OpenedLater, Refits, trained_scorer
from grv.learning.trained.texts import PastTexts, log_texts, read_texts, search_texts
from grv.ledger.entries import Ended, Found, Made, Scored, Started
from grv.ledger.sqlite import SqliteLedger

WORDS = [f"word{i}" for i in range(30)]


def candidate(chance: random.Random, *, passed: bool) -> str:
    """A text; those that pass contain "good" more often than others."""
    words = chance.sample(WORDS, 6)
    if chance.random() < (0.9 if passed else 0.2):
        words.append("good")
    chance.shuffle(words)
    return " ".join(words)


def problem(at: int, *, size: int = 30, rate: float = 0.3, stops: bool = False) -> PastTexts:
    """A past problem; if it stops, only the candidates up to the first pass have a verdict."""
    chance = random.Random(at)
    passed = np.array([chance.random() < rate for _ in range(size)])
    passed[size // 2] = rate > 0
    texts = [candidate(chance, passed=bool(each)) for each in passed]
    given = [float(each) + chance.gauss(0, 2) for each in passed]
    verified = np.ones(size, dtype=np.bool_)
    if stops:
        verified = np.arange(size) <= int(passed.argmax())
    arrivals = tuple(
        Arrival(text, given={"judge": score}) for text, score in zip(texts, given, strict=True)
    )
    return PastTexts(f"p{at}", "Say it.", arrivals, passed & verified, verified, programs=False)


def test_a_word_that_passes_gets_a_weight() -> None:
    model = fit([problem(at).training() for at in range(12)])
    fresh = [problem(at) for at in range(100, 110)]
    area = ranking(fresh, [np.array([model.score(x) for x in p.arriving()]) for p in fresh])
    assert area is not None
    assert area.mean > 0.75
    assert (model.needs, model.alike) == ((), "")
    assert (model.evidence.problems, model.evidence.labels) == (12, 360)


@pytest.mark.slow
def test_a_few_verdicts_of_searches_that_stopped_are_enough_to_beat_chance() -> None:
    past = [problem(at, rate=0.15, stops=True) for at in range(40)]
    assert sum(int(each.verified.sum()) for each in past) < 400
    model = fit([each.training() for each in past])
    fresh = [problem(at) for at in range(100, 110)]
    area = ranking(fresh, [np.array([model.score(x) for x in p.arriving()]) for p in fresh])
    assert area is not None
    assert area.mean > 0.6


def test_a_given_score_is_used_and_its_ties_are_judged() -> None:
    model = fit([problem(at).training() for at in range(12)], ["judge"])
    assert model.needs == ("judge",)
    assert model.given[0].weight > 0
    assert model.alike == ""  # its values are all different


@pytest.mark.slow
def test_the_level_of_a_problem_does_not_count() -> None:
    """All candidates of easy problems say "easy", which says nothing about which one passes."""
    chance, past = random.Random(0), []
    for at in range(20):
        word, rate = ("easy", 0.9) if at % 2 else ("hard", 0.1)
        passed = np.array([chance.random() < rate for _ in range(30)])
        passed[:2] = True, False
        texts = tuple(Arrival(f"{word} {candidate(chance, passed=bool(p))}") for p in passed)
        past.append(PastTexts(str(at), "", texts, passed, np.ones(30, dtype=np.bool_)))
    model = fit([each.training() for each in past])
    weight = {name: _word(model, name) for name in ("easy", "hard", "good")}
    assert weight["good"] > 4 * max(abs(weight["easy"]), abs(weight["hard"]))


def _word(model: object, word: str) -> float:
    from grv.backends.scorers.trained.features import grams_of

    (gram,) = grams_of(word)
    return float(model.grams[gram])  # type: ignore[attr-defined]


def test_candidates_that_have_failed_are_not_compared_with() -> None:
    found = problem(1, rate=0.1, stops=True).training()
    similarity = [each.dense[DENSE.index("similarity")].counts for each in found.features]
    unverified = int((~found.verified).sum())
    assert similarity[0] == pytest.approx(unverified / (unverified + 2))
    assert similarity[-1] == pytest.approx((unverified - 1) / (unverified + 1))


@pytest.mark.parametrize(
    ("rate", "labels", "message"),
    [
        (0.3, False, "no candidate has a label"),
        (0.0, True, "no candidate passed"),
        (1.0, True, "no problem has both a pass and a failure"),
    ],
)
def test_nothing_to_learn_from_is_one_line(rate: float, labels: bool, message: str) -> None:
    made = problem(0, rate=rate)
    known = np.full(30, labels)
    past = PastTexts("p", "", made.arrivals, made.passed & known, known)
    with pytest.raises(UsageError, match=f"a.ledger: {message}"):
        fit([past.training()], sources=["a.ledger"])


def test_one_problem_is_enough_to_fit_but_not_to_judge() -> None:
    fit([problem(0).training()])
    (scores,) = cross_fitted([problem(0)])
    assert not scores.any()


def test_cross_fitting_leaves_the_own_problem_out() -> None:
    """A word that only one problem knows cannot help it."""
    past = [problem(at) for at in range(6)]
    own = past[0]
    marked = tuple(
        Arrival(f"{each.text} {'secret' if passed else 'public'}")
        for each, passed in zip(own.arrivals, own.passed, strict=True)
    )
    past[0] = PastTexts("p0", own.prompt, marked, own.passed, own.verified, programs=False)
    inside = fit([each.training() for each in past])
    assert _word(inside, "secret") > 0.1
    scores = cross_fitted(past, folds=6)
    alone = fit([each.training() for each in past[1:]])
    assert scores[0].tolist() == pytest.approx([alone.score(x) for x in past[0].arriving()])


@pytest.mark.slow
def test_in_order_of_arrival_a_problem_is_scored_by_earlier_ones() -> None:
    past = [problem(at) for at in range(12)]
    scores = in_order(past)
    assert [each is None for each in scores] == [True] * 6 + [False] * 6
    model = fit([each.training() for each in past[:10]])
    assert scores[11] is not None
    assert scores[11].tolist() == [model.score(x) for x in past[11].arriving()]


@pytest.mark.slow
def test_a_score_that_ranks_saves_money() -> None:
    past = [problem(at, rate=0.08, size=60) for at in range(25)]
    chance = np.random.default_rng(0)
    bad = [chance.random(60) for _ in past]
    good = [each.passed + noise for each, noise in zip(past, bad, strict=True)]
    assert cost(past, good, 10).mean < 0.7 < cost(past, bad, 10).mean


def test_intervals_need_three_problems() -> None:
    assert str(resampled(np.array([1.0, 3.0]))) == "2.00"
    assert str(resampled(np.array([2.0, 2.0, 2.0]))) == "2.00 [2.00, 2.00]"


def write_texts(path: Path, problems: int = 8, **columns: object) -> None:
    with path.open("w") as file:
        for at in range(problems):
            made = problem(at)
            for number, each in enumerate(made.arrivals):
                record = {"problem": f"p{at}", "candidate": number, "text": each.text}
                record |= {"passed": bool(made.passed[number]), "judge": each.given["judge"]}
                file.write(json.dumps(record | columns) + "\n")


def test_a_log_with_texts(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    write_texts(path, prompt="Say it.", logprob=-0.5)
    found = log_texts(str(path), ["judge"])
    assert [each.id for each in found] == [f"p{at}" for at in range(8)]
    assert found[3].arrivals[2].text == problem(3).arrivals[2].text
    assert found[3].arrivals[2].given == problem(3).arrivals[2].given
    assert found[3].arrivals[2].logprobs == (-0.5,)
    assert found[3].prompt == "Say it."
    with pytest.raises(LogError, match="no score 'jugde'"):
        log_texts(str(path), ["jugde"])


def test_a_log_without_texts_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("problem,candidate,passed,score\np,0,true,1\n")
    with pytest.raises(LogError, match="no column 'text', which a score is trained on"):
        read_texts(str(path))


def write_search(ledger: SqliteLedger, at: int, score: str = "judge", alike: bool = False) -> None:
    made = problem(at, rate=0.15, stops=True)
    about = {"score": "trained", "alike": score} if alike else {"score": score}
    entries: list[object] = [Started(f"p{at}", about, "Say it.", '{"kind": "math"}')]
    for number, each in enumerate(made.arrivals):
        value = each.given["judge"]
        entries.append(Made(number, each.text))
        entries.append(Scored(number, 9.0 if alike else value, alike=value if alike else None))
    for number in np.flatnonzero(made.verified).tolist():
        verdict = Verdict.PASSED if made.passed[number] else Verdict.FAILED
        entries.append(Found(number, verdict))
    ledger.append(f"s{at:02}", [*entries, Ended("solved", 0, 30, 3, 1.0)])  # type: ignore[list-item]


def test_a_ledger_has_the_same_texts_and_given_scores(tmp_path: Path) -> None:
    path = str(tmp_path / "runs.ledger")
    ledger = SqliteLedger(path)
    for at in range(8):
        write_search(ledger, at, alike=at % 2 == 1)
    ledger.close()

    found = read_texts(path, ["judge"])

    assert [each.id for each in found] == [f"s{at:02}" for at in range(8)]
    for at, each in enumerate(found):
        expected = problem(at, rate=0.15, stops=True)
        assert [x.given for x in each.arrivals] == [x.given for x in expected.arrivals]
        assert each.passed.tolist() == expected.passed.tolist()
        assert not each.programs
    with pytest.raises(UsageError, match="no score 'length'; there are judge"):
        read_texts(path, ["length"])


@pytest.mark.slow
def test_a_model_is_fitted_once_for_each_number_of_the_schedule(tmp_path: Path) -> None:
    path = str(tmp_path / "runs.ledger")
    refits = Refits(OpenedLater(path))
    assert refits.latest() is None
    ledger, models = SqliteLedger(path), []
    for at in range(11):
        write_search(ledger, at)
        models.append(refits.latest())
    assert [each is None for each in models[:6]] == [True] * 5 + [False]
    assert models[5] is models[8] is not models[9] is models[10]
    assert Refits(OpenedLater(path)).latest() == models[9], "it depends on the ledger alone"
    ledger.close()


def test_a_ledger_that_allows_no_model_has_none(tmp_path: Path) -> None:
    path = str(tmp_path / "runs.ledger")
    ledger = SqliteLedger(path)
    for at in range(7):
        ledger.append(
            f"s{at}", [Started("p", {}), Made(0, "a"), Scored(0, 1.0), Ended("x", 0, 1, 0, 1)]
        )
    assert Refits(OpenedLater(path)).latest() is None
    assert Refits(OpenedLater(path), "judge").latest() is None
    ledger.close()


def test_a_place_that_is_no_ledger_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no ledger")
    for name, message in (("none", "no such ledger"), ("text", "not a ledger")):
        with pytest.raises(UsageError, match=message):
            trained_scorer(str(tmp_path / name))
    trained_scorer(str(tmp_path / "own"), own=str(tmp_path / "own"))


def test_a_scorer_names_the_score_that_it_needs(tmp_path: Path) -> None:
    path = tmp_path / "scorer.json"
    path.write_text(fit([problem(at).training() for at in range(4)], ["judge"]).to_text())
    with pytest.raises(UsageError, match="uses the score 'judge' too: give --alike judge"):
        trained_scorer(str(path))


@pytest.mark.parametrize("check", ["{", "[]", "3", "[" * 100_000])
def test_a_check_in_a_ledger_that_cannot_be_read_is_none(check: str) -> None:
    started = Started("p", {}, "Say it.", check)
    texts = search_texts("s", [started, Made(0, "a"), Scored(0, 1.0)])
    assert texts is not None
    assert texts.problem.programs
