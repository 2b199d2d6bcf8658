"""A cascade over two score columns of a log."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from grv.comparing.compare import compare
from grv.core.errors import LogError, UsageError
from grv.core.limits import Limits
from grv.core.values import Cascade, Costs
from grv.logs.readers import read_log
from grv.policies import Adaptive
from grv.replay.engine import replay
from grv.replay.orders import batches
from grv.testing import World

HEAD = "problem,candidate,passed,cheap,dear\n"


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A cheap score that says little, a dear one that says all but for one candidate."""
    rows = []
    for problem in range(6):
        for candidate in range(40):
            passed = candidate % 10 == problem
            cheap, dear = (candidate * 7 + problem) % 11, 5 + 2 * passed - candidate / 100
            rows.append(f"p{problem},{candidate},{int(passed)},{cheap},{dear}\n")
    rows[3] = rows[3].rsplit(",", 1)[0] + ",\n"
    there = tmp_path / "log.csv"
    there.write_text(HEAD + "".join(rows))
    return str(there)


def test_second_scores_are_read_and_one_that_is_missing_ranks_last(path: str) -> None:
    log = read_log(path, score="cheap", second="dear")

    assert (log.score, log.second) == ("cheap", "dear")
    second = log.problems[0].second
    assert second is not None
    assert second[3] == -np.inf
    assert np.isfinite(np.delete(second, 3)).all()


def test_a_second_score_that_is_not_there_is_said(path: str) -> None:
    with pytest.raises(LogError, match="no score 'deer'; there are 'cheap', 'dear'"):
        read_log(path, score="cheap", second="deer")


def test_each_stage_is_billed(path: str) -> None:
    log, cascade = read_log(path, score="cheap", second="dear"), Cascade(top=6, cost=0.5)
    comparison = compare(["adaptive", "hindsight"], log, orders=3, cascade=cascade)
    row, baseline = comparison.rows

    outcomes = [
        replay(Adaptive(), batch.problem, Costs(1, 10), Limits(cascade=cascade), order=order)
        for batch in batches(log.problems, 3)
        for order in batch.orders.tolist()
    ]
    assert row.cost == pytest.approx(np.mean([each.bill.total for each in outcomes]))
    assert row.rescored is not None
    assert row.rescored == pytest.approx(np.mean([each.bill.rescored for each in outcomes]))
    assert row.cost == pytest.approx(row.generated + 10 * row.verified + 0.5 * row.rescored)
    assert row.rescore_rounds is not None
    assert row.rescore_rounds > 0
    assert baseline.rescored is None  # it ranks by the first score
    head = comparison.table().splitlines()[0]
    assert head.split()[-1] == "rescored"
    plain = comparison.to_json()
    assert plain["settings"]["cascade"] == {"top": 6, "cost": 0.5}
    assert plain["settings"]["second"] == "dear"


def test_a_good_second_score_saves_verifications(path: str) -> None:
    log = read_log(path, score="cheap", second="dear")
    one = compare(["adaptive"], log).rows[0]
    two = compare(["adaptive"], log, cascade=Cascade(top=8, cost=0.1)).rows[0]

    assert two.verified < one.verified
    assert two.cost < one.cost


def test_a_cascade_needs_second_scores(path: str) -> None:
    with pytest.raises(LogError, match="read without second scores"):
        compare(["adaptive"], read_log(path, score="cheap"), cascade=Cascade(2))
    with pytest.raises(UsageError, match="no second scores"):
        replay(Adaptive(), World.of("1+").logged(), Costs(), Limits(cascade=Cascade(2), width=None))
