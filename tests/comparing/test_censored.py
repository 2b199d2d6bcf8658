"""Comparisons on logs with missing labels: what is bounded, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import grv
from grv.comparing.compare import compare
from grv.comparing.conclusion import conclusion
from grv.core.errors import LogError, UsageError
from grv.core.values import Costs, Latency
from grv.logs.log import Log, LoggedProblem
from support.commands import here
from support.examples import examples

LIVE = ("varied", "adaptive", "verify-all", "alternate", "balanced", "fixed(6, 2)")
HEAD = "problem,candidate,passed,score,key,censored"


def problem(
    id: str, scores: Sequence[float], labels: list[int], keys: list[int] | None = None
) -> LoggedProblem:
    known = np.array(labels)
    return LoggedProblem(
        id,
        np.array(scores, dtype=float),
        known > 0,
        None if keys is None else np.array(keys, dtype=np.int32),
        unknown=known < 0 if (known < 0).any() else None,
    )


@st.composite
def censored_logs(draw: st.DrawFn) -> tuple[Log, Log]:
    """A log with missing labels, and the log with the labels that are missing."""
    known, true = [], []
    for at in range(draw(st.integers(1, 3))):
        size = draw(st.integers(2, 14))
        scores = draw(st.lists(st.integers(0, 5), min_size=size, max_size=size))
        labels = [1, *draw(st.lists(st.integers(0, 1), min_size=size - 1, max_size=size - 1))]
        hidden = draw(st.lists(st.booleans(), min_size=size - 1, max_size=size - 1))
        seen = [1, *(-1 if hide else label for label, hide in zip(labels[1:], hidden, strict=True))]
        known.append(problem(str(at), scores, seen))
        true.append(problem(str(at), scores, labels))
    return Log(tuple(known), unlabelled=1), Log(tuple(true))


@settings(max_examples=examples(25), deadline=None)
@given(
    censored_logs(),
    st.sampled_from([1, 3, None]),
    st.sampled_from([float("inf"), 60.0]),
)
def test_the_true_costs_are_within_the_bounds_for_every_policy(
    logs: tuple[Log, Log], width: int | None, value: float
) -> None:
    rows = (*LIVE, "threshold(3)") if value < 1e9 else (*LIVE, "threshold(3)", "hindsight")
    given, true = (
        compare(rows, log, Costs(1, 10), orders=3, width=width, value=value) for log in logs
    )
    if not given.is_bounded:
        return
    for found, real in zip(given.rows, true.rows, strict=True):
        bounds = found.bounds
        assert bounds is not None
        for ends, mean in (
            (bounds.cost, real.cost),
            (bounds.solved, real.solved),
            *([(bounds.generated, real.generated)] if bounds.generated else []),
            *([(bounds.verified, real.verified)] if bounds.verified else []),
            *([(bounds.ratio, real.ratio)] if bounds.ratio else []),
            *([(bounds.net, real.net)] if bounds.net else []),
        ):
            assert mean is not None
            assert ends[0] - 1e-9 <= mean <= ends[1] + 1e-9, (found.policy, ends, mean)


@settings(max_examples=examples(20), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 1)), min_size=2, max_size=12))
def test_bounds_hold_with_keys_that_keep_their_promise(candidates: list[tuple[int, int]]) -> None:
    verdict_of_key = dict(candidates)  # all candidates of a key have the last label given for it
    scores = [float(at * 7 % 5) for at in range(len(candidates) + 1)]
    keys = [9, *(key for key, _ in candidates)]
    labels = [1, *(verdict_of_key[key] for key, _ in candidates)]
    given = Log((problem("a", scores, labels, keys),), unlabelled=1)
    for passes in (0, 1):
        real = [passes if label < 0 else label for label in labels]
        true = compare(LIVE, Log((problem("a", scores, real, keys),)), orders=4, keys=True)
        found = compare(LIVE, given, orders=4, keys=True)
        for row, with_labels in zip(found.rows, true.rows, strict=True):
            low, high = row.bounds.cost if row.bounds else (row.cost, row.cost)
            assert low - 1e-9 <= with_labels.cost <= high + 1e-9


def bounded() -> Log:
    sure = problem("sure", [3, 2, 1, 0], [1, 0, 0, 0])
    open_ = problem("open", [3, 2, 1, 0], [-1, 0, 1, -1])
    never = problem("never", [3, 2], [0, -1])
    return Log((never, open_, sure), unlabelled=3, path="some.csv", censored=True)


def test_the_same_problems_are_compared_whatever_the_labels_are() -> None:
    found = compare(["adaptive", "verify-all"], bounded())

    assert found.problems == ("open", "sure")
    assert found.log.excluded == ("never",)
    assert found.is_bounded
    assert (found.pairs, found["adaptive"].ratio) == ((), None)


def test_the_table_shows_ranges_and_the_files_have_both_ends(tmp_path: Path) -> None:
    found = compare(["adaptive", "verify-all", "hindsight"], bounded(), latency=Latency(1, 1))
    row = found["verify-all"]

    assert row.bounds is not None
    low, high = row.bounds.cost
    assert low < high
    assert high == row.cost
    assert f"{low:.1f}-{high:.1f}" in found.table()
    known = found["hindsight"].bounds
    assert known is not None
    assert [known.generated, known.verified] == [None, None]  # only its cost is bounded
    assert found.to_json()["rows"][0]["bounds"]["ratio"] == (1, 1)
    assert "least_cost,most_solved" in found.to_csv().splitlines()[0]
    assert found.to_json()["rows"][1]["bounds"]["cost"] == row.bounds.cost


def test_no_policy_is_called_the_cheapest_unless_it_is_with_any_labels() -> None:
    found = compare(["adaptive", "verify-all"], bounded())
    assert "do not tell which policy is cheapest" in " ".join(conclusion(found, "1,10"))

    scores = [9.0, *[float(at) for at in range(8)] * 2]
    clear = Log((problem("a", scores, [1, *[0] * 15, -1]),), unlabelled=1)
    found = compare(["fixed(17, 17)", "verify-all"], clear, Costs(0.01, 100), orders=20)
    assert list(conclusion(found, "0.01,100")) == [
        "At 0.01,100 fixed(17, 17) is the cheapest policy, whatever the missing labels are."
    ]


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (
            ["uniform-matched", "difficulty-2"],
            {},
            "uniform-matched, difficulty-2 cannot be compared",
        ),
        (["hindsight"], {"value": 50.0}, "hindsight cannot be compared"),
        (["hindsight"], {"unsolvable": "include"}, "hindsight cannot be compared"),
    ],
)
def test_what_cannot_be_bounded_is_refused(
    rows: list[str], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        compare(rows, bounded(), **options)


def test_other_uses_of_a_log_need_all_labels() -> None:
    with pytest.raises(LogError, match="3 candidates have no label, and this needs all labels"):
        grv.comparing.oracle(bounded(), Costs())


@pytest.fixture
def exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What `grv runs export` writes: of each problem, the best were verified until one passed."""
    monkeypatch.chdir(tmp_path)
    lines = [HEAD]
    for at in range(4):
        for candidate in range(8):
            label = ("", "false", "true", "")[min(3, max(0, candidate - 4))]
            lines.append(f"p{at},{candidate},{label},{10 - abs(candidate - 5)},,true")
    Path("log.csv").write_text("\n".join(lines))
    return "log.csv"


def test_a_censored_log_is_compared_with_bounds_and_words(exported: str) -> None:
    ran = here("compare", exported, "--json", "out.json")

    assert ran.code == 0, ran.err
    assert "candidates without a label: 24. Each number is a range" in ran.out
    assert "This log is censored: a search chose what to verify" in ran.out
    assert "do not tell which policy is cheapest" in ran.out
    rows = [line.split()[0] for line in ran.out.splitlines() if " 1,10 " in line]
    assert rows[:4] == ["hindsight", "varied", "adaptive", "adaptive-all"]
    assert "rows left out, because they need all labels: uniform-matched, difficulty-1" in ran.out
    assert not any(line.startswith("difficulty") for line in ran.out.splitlines())
    valued = here("compare", exported, "--value", "90", "--orders", "2")
    assert "need all labels: hindsight, uniform-matched" in valued.out


def test_a_guess_about_missing_labels_is_called_one(exported: str) -> None:
    ran = here("compare", exported, "--unlabelled", "fail", "--policy", "adaptive")

    assert "counted as failed. This is a guess" in ran.out
    assert "range" not in ran.out


def test_only_a_censored_log_may_lack_labels_unless_bounds_are_asked_for(exported: str) -> None:
    plain = Path(exported).read_text().replace(",true\n", ",\n").replace(",,true", ",,")
    Path("plain.csv").write_text(plain)

    ran = here("compare", "plain.csv", "--policy", "adaptive")
    assert ran.code == 2
    assert "no label for candidate" in ran.err
    ran = here("compare", "plain.csv", "--policy", "adaptive", "--unlabelled", "bound")
    assert ran.code == 0, ran.err
    assert "Each number is a range" in ran.out
    assert "censored" not in ran.out


def test_other_commands_refuse_a_censored_log_in_one_line(exported: str) -> None:
    for command in (["oracle", exported], ["report", exported]):
        ran = here(*command)
        assert (ran.code, ran.err.count("\n")) == (2, 1), command
        assert "--unlabelled fail or drop" in ran.err
    ran = here("compare", exported, "--costs", "measured:1,10", "--policy", "adaptive")
    assert ran.code == 2
