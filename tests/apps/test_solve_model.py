"""`grv solve` with a real model: inside the process, and behind a real server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.commands import grv, here, records

pytestmark = pytest.mark.slow

PROBLEMS: list[dict[str, Any]] = [
    {
        "problem": f"{name}",
        "prompt": f'def {name}(a, b):\n    """Return {what}."""\n    return',
        "check": {
            "kind": "asserts",
            "entry_point": name,
            "test": f"def check(candidate):\n    assert candidate(2, 3) == {expected}\n",
        },
    }
    for name, what, expected in (("add", "the sum of a and b", 5), ("odd", "an odd thing", "'?'"))
]


@pytest.mark.parametrize("served", [False, True], ids=["embedded", "served"])
def test_a_real_model_within_a_small_budget(
    tmp_path: Path, served: bool, request: pytest.FixtureRequest
) -> None:
    problems, out = tmp_path / "problems", tmp_path / "out"
    problems.write_text("".join(json.dumps(each) + "\n" for each in PROBLEMS))
    command: list[object] = ["solve", problems, "--max-tokens", 8, "--stop", "\n"]
    command += ["--costs", "1,2", "--total-budget", 30, "--budget", 20, "--out", out]
    if served:
        url = request.getfixturevalue("model_url")
        command += ["--generator", "openai-text:SmolLM2", "--base-url", url]
    else:
        command += ["--generator", "embedded"]
    ran = grv(*command)
    assert ran.code == 1, ran.err
    found = {record["problem"]: record for record in records(out)}
    assert found.keys() == {"add", "odd"}
    assert found["odd"]["outcome"] == "out of budget"
    assert sum(record["cost"] for record in found.values()) <= 30
    for record in found.values():
        assert record["answer_verified"] is (record["outcome"] == "solved")
        assert record["usage"]["completion_tokens"] >= record["generated"]
        assert record["usage"]["seconds"] > 0
        assert record["unscored"] < record["generated"]
    out.unlink()
    assert here(*command).code == 1  # from the ledger
    assert {record["problem"]: record for record in records(out)} == found
    assert here("runs", "check", f"{out}.ledger").out.startswith("all is well\n")
