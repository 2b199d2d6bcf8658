"""The columns `failed_stage` and `stage_costs` of a log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import grv
from grv.core.errors import LogError
from grv.logs.readers import log_of_frame, read_log
from grv.logs.stages import LoggedStage


def frame(costs: list[Any], **more: list[Any]) -> dict[str, list[Any]]:
    rows = len(costs)
    return {
        "problem": ["p"] * rows,
        "candidate": list(range(rows)),
        "score": [0.5] * rows,
        "passed": [*[0] * (rows - 1), 1],
        "stage_costs": costs,
        **more,
    }


COSTS: list[Any] = ['[["test 1", 2], ["test 0", 0.5]]', "[1, 2.5]", None]


def test_stages_add_up_to_the_cost_of_a_verification() -> None:
    log = log_of_frame(frame(COSTS, failed_stage=["test 0", "stage 1", ""]))
    (problem,) = log.problems
    assert problem.verify_costs is not None
    assert problem.verify_costs.tolist() == [2.5, 3.5, 3.0]  # the mean for the unknown one
    assert problem.stages is not None
    assert problem.stages[0] == (LoggedStage("test 1", 2, False), LoggedStage("test 0", 0.5, True))
    assert problem.stages[1][1] == LoggedStage("stage 1", 2.5, True)
    assert problem.stages[2] is None
    assert (log.staged, log.unpriced) == (2, 1)


def test_a_known_cost_counts_and_the_stages_do_not() -> None:
    (problem,) = log_of_frame(frame(COSTS, verify_cost=[7.0, None, 1.0])).problems
    assert problem.verify_costs is not None
    assert problem.verify_costs.tolist() == [7.0, 3.5, 1.0]


@pytest.mark.parametrize(
    "wrong", ["[", "3", '[["test 0"]]', '[["test 0", -1]]', "[-1]", '{"a": 1}', '[["a", "b"]]']
)
def test_what_is_not_a_list_of_costs_is_named(wrong: str) -> None:
    with pytest.raises(LogError, match="stage_costs must be a JSON list of costs") as error:
        log_of_frame(frame([wrong, "[1]"]))
    assert "\n" not in str(error.value)


def test_stages_survive_every_format(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    from grv.logs.converting import write_log

    columns = frame(COSTS, failed_stage=["test 0", "stage 1", ""])
    for ending in ("csv", "jsonl", "parquet"):
        path = str(tmp_path / f"log.{ending}")
        write_log(columns, path)
        (problem,) = read_log(path).problems
        assert problem.stages is not None
        assert [each and sum(s.cost for s in each) for each in problem.stages] == [2.5, 3.5, None]
    nested = tmp_path / "nested.jsonl"
    rows = [{name: values[n] for name, values in columns.items()} for n in range(3)]
    rows[0]["stage_costs"] = json.loads(COSTS[0])
    nested.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read_log(str(nested)).staged == 2


def test_a_comparison_bills_the_stages_that_ran() -> None:
    columns = frame(COSTS, generate_cost=[1.0, 1.0, 1.0])
    table = grv.compare(["verify-all"], columns, "measured:1,3", order_scheme="logged")
    assert table["verify-all"].cost == 3 + 2.5 + 3.5 + 3.0
    assert table.log.staged == 2
