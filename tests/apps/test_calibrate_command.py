"""`grv calibrate`: the errors of a check, from candidates whose labels are known."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from grv.backends.protocols import Problem
from grv.backends.verifiers.calibration import Calibration, binding
from grv.core.errors import UsageError
from grv.testing.servers import FakeOpenai
from support.commands import here

pytestmark = pytest.mark.usefixtures("own_folder")
LABELS = 40


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-key-of-some-length")


def write_log(problems: int = LABELS, labels: bool = True) -> None:
    """Two right and three wrong candidates for each problem."""
    lines = []
    for number in range(problems):
        for candidate in range(5):
            right = candidate < 2
            text = f"{'right' if right else 'wrong'} {number}.{candidate}"
            row: dict[str, Any] = {"problem": f"p{number}", "candidate": candidate, "text": text}
            row |= {"prompt": f"Question {number}?", "score": 0.0}
            row["passed"] = right if labels else None
            lines.append(json.dumps(row))
    Path("log.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


class Grader:
    """A judge with errors, which vary from call to call or stay with the text."""

    def __init__(self, false_pass: float, false_fail: float, *, stays: bool = False) -> None:
        self._errors = {True: false_fail, False: false_pass}
        self._random = random.Random(5)
        self._stays = stays

    def __call__(self, prompt: str, index: int) -> str:
        answer = json.loads(prompt[prompt.index("{\n") :])["answer"]
        right = answer.startswith("right")
        chance = random.Random(answer).random() if self._stays else self._random.random()
        passes = right != (chance < self._errors[right])
        return json.dumps({"verdict": "pass" if passes else "fail"})


def calibrate(server: FakeOpenai, *more: object, **record: Any) -> tuple[int, str]:
    check = {"kind": "judge", "model": "openai:fake", "url": server.url, **record}
    Path("check.json").write_text(json.dumps(check), encoding="utf-8")
    ran = here(
        "calibrate",
        "log.jsonl",
        "--check",
        "check.json",
        "--allow-commands",
        "--out",
        "calibration.json",
        *more,
    )
    assert ran.err == ""
    return ran.code, ran.out


def test_a_judge_whose_errors_vary_is_measured_and_may_decide() -> None:
    write_log()
    with FakeOpenai(Grader(0.05, 0.1)) as server:
        code, said = calibrate(server)
        check = {"kind": "judge", "model": "openai:fake", "url": server.url}
    assert code == 0, said
    found = Calibration.read("calibration.json")
    assert found.false_pass.low <= 0.05 <= found.false_pass.high
    assert found.false_fail.low <= 0.1 <= found.false_fail.high
    assert found.false_pass.n == 3 * LABELS
    assert not found.is_persistent
    found.refuse_other(binding(Problem("p", "?", check)))
    with pytest.raises(UsageError, match="another model"):
        found.refuse_other(binding(Problem("p", "?", check | {"model": "openai:other"})))
    with pytest.raises(UsageError, match="another check"):
        found.refuse_other(binding(Problem("p", "?", check | {"rubric": "be kind"})))


def test_a_judge_whose_errors_stay_may_not_decide_alone() -> None:
    write_log()
    with FakeOpenai(Grader(0.1, 0.02, stays=True)) as server:
        code, said = calibrate(server)
    assert code == 1
    assert "its errors persist" in said
    assert "put a surer check behind it" in said
    assert "no number of labels" in said


def test_a_bad_judge_is_called_bad() -> None:
    write_log()
    with FakeOpenai(lambda prompt, index: '{"verdict": "pass"}') as server:
        code, said = calibrate(server, "--calls", 1)
    assert code == 1
    assert "it may agree with the gold labels in" in said
    assert Calibration.read("calibration.json").false_pass.mean == 1.0


def test_flaky_errors_are_measured_without_labels() -> None:
    write_log(labels=False)
    with FakeOpenai(Grader(0.05, 0.05)) as server:
        code, said = calibrate(server, "--calls", 4)
        assert code == 0, said
        found = Calibration.read("calibration.json")
        assert found.false_pass.mean == pytest.approx(0.05, abs=0.04)
        Path("calibration.json.calls").unlink()
        check = ("calibrate", "log.jsonl", "--check", "check.json", "--allow-commands")
        few = here(*check, "--calls", 2, "-o", "other.json")
    assert few.code == 2
    assert "give at least --calls 3" in few.err


def test_calls_that_were_paid_for_are_not_made_again() -> None:
    write_log(3)
    with FakeOpenai(Grader(0.0, 0.0)) as server:
        calibrate(server, "--calls", 1)
        assert len(server.received) == 15
        calibrate(server, "--calls", 2)
        assert len(server.received) == 30
        calibrate(server, "--calls", 2)
        assert len(server.received) == 30


@pytest.mark.parametrize(
    "text", ["{}", "[]", '{"format": "grv calibration 1"}', "not json", '{"kind": "math"}']
)
def test_a_file_that_is_no_calibration_is_refused_in_one_line(text: str) -> None:
    Path("calibration.json").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"^calibration\.json: "):
        Calibration.read("calibration.json")
