"""`grv calibrate`: the errors of a check, from candidates whose labels are known."""

from __future__ import annotations

import json
import os
import random
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from grv.backends.protocols import Problem
from grv.backends.verifiers.calibration import Calibration, binding
from grv.backends.verifiers.judge import INSTRUCTIONS
from grv.core.errors import UsageError
from grv.core.values import Verdict
from grv.learning.gold import gold_candidates
from grv.ledger.entries import Found, Made, Started
from grv.ledger.opening import open_ledger
from grv.serve.review import Desk
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_judge_whose_errors_stay_may_not_decide_alone() -> None:
    write_log()
    with FakeOpenai(Grader(0.1, 0.02, stays=True)) as server:
        code, said = calibrate(server)
    assert code == 1
    assert "its errors persist" in said
    assert "put a surer check behind it" in said
    assert "no number of labels" in said


@pytest.mark.slow
def test_a_bad_judge_is_called_bad() -> None:
    write_log()
    with FakeOpenai(lambda prompt, index: '{"verdict": "pass"}') as server:
        code, said = calibrate(server, "--calls", 1)
    assert code == 1
    assert "it may agree with the gold labels in" in said
    assert Calibration.read("calibration.json").false_pass.mean == 1.0


# Every twentieth call on right candidates errs, and every twentieth on wrong ones.
FLAKY = """#!{python} -IS
import os, sys
right = sys.stdin.read().startswith("right")
calls = os.open(f"{{__file__}}.{{right}}", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
os.write(calls, b".")
number = os.fstat(calls).st_size
sys.exit(0 if right != (number % 20 == 7) else 1)
"""


@pytest.mark.slow
def test_a_search_that_relies_on_a_bad_judge_is_refused_in_one_line() -> None:
    write_log(20)
    with FakeOpenai(Grader(0.7, 0.25)) as server:
        code, said = calibrate(server, "--calls", 2)
        assert code == 1
        assert "it may agree with the gold labels in" in said
        check = json.loads(Path("check.json").read_text()) | {"calibration": "calibration.json"}
        line = {"problem": "p", "prompt": "?", "check": check}
        Path("problems.jsonl").write_text(json.dumps(line) + "\n")
        asked = len(server.received)
        ran = here(
            "solve",
            "problems.jsonl",
            "--generator",
            "openai:fake",
            "--base-url",
            server.url,
            "--allow-commands",
            "--budget",
            50,
            "--out",
            "answers.jsonl",
        )
        assert len(server.received) == asked
    assert ran.code == 2
    assert len(ran.err.splitlines()) == 1
    assert "it may not decide alone: it may agree with the gold labels in" in ran.err
    assert "put a surer check behind it" in ran.err


@pytest.mark.slow
def test_errors_of_a_flaky_check_are_measured_without_labels() -> None:
    write_log(24, labels=False)
    Path("check.py").write_text(FLAKY.format(python=sys.executable), encoding="utf-8")
    Path("check.py").chmod(0o755)
    Path("check.json").write_text(json.dumps({"kind": "command", "argv": ["./check.py"]}))
    check = ("calibrate", "log.jsonl", "--check", "check.json", "--allow-commands")
    ran = here(*check, "--calls", 4, "--out", "calibration.json")
    assert ran.code == 0, ran
    assert "errors that persist are not seen without labels" in ran.out
    found = Calibration.read("calibration.json")
    assert found.false_pass.low <= 0.05 <= found.false_pass.high < 0.2
    assert found.false_fail.low <= 0.05 <= found.false_fail.high < 0.2
    few = here(*check, "--calls", 2, "-o", "other.json")
    assert few.code == 2
    assert "give at least --calls 3" in few.err


@pytest.mark.slow
def test_a_judge_without_labels_may_not_decide_alone() -> None:
    write_log(10, labels=False)
    with FakeOpenai(Grader(0.0, 0.0)) as server:
        code, said = calibrate(server)
    assert code == 1
    assert "a judge needs gold labels" in said


@pytest.mark.slow
def test_the_errors_of_a_panel_are_those_of_its_votes_not_a_product() -> None:
    write_log()
    with FakeOpenai(Grader(0.3, 0.3, stays=True)) as server:
        panel = ["openai:fake", "openai:fake", "openai:fake"]
        code, said = calibrate(server, "--calls", 1, model=panel)
    assert code == 1
    found = Calibration.read("calibration.json")
    assert [member.model for member in found.members] == panel
    # All three err on the same candidates: their votes err as often as one of them.
    assert found.false_pass.mean == found.members[0].false_pass.mean > 0.2
    assert found.false_pass.n == 3 * LABELS
    product = _two_of_three(found.false_pass.mean)
    assert product < 0.8 * found.false_pass.mean
    assert f"as measured, {product:.3f} if the models erred independently" in said


def _two_of_three(rate: float) -> float:
    return 3 * rate**2 * (1 - rate) + rate**3


@pytest.mark.slow
def test_a_judge_that_prefers_the_first_word_is_noticed() -> None:
    write_log(20)

    seen: Counter[str] = Counter()

    def biased(prompt: str, index: int) -> str:
        """Passes what it sees for the first time: the words are in another order then."""
        seen[prompt] += 1
        return json.dumps({"verdict": "pass" if seen[prompt] == 1 else "fail"})

    with FakeOpenai(biased) as server:
        code, said = calibrate(server, "--calls", 2)
        asked = Counter(body["messages"][0]["content"] for body in server.bodies)
    assert asked == {INSTRUCTIONS[0]: 100, INSTRUCTIONS[1]: 100}
    assert code == 1
    found = Calibration.read("calibration.json")
    assert found.position_bias is not None
    assert found.position_bias.mean == 1.0
    assert "it prefers a place" in said


@pytest.mark.slow
def test_labels_of_people_are_gold_and_were_given_blind() -> None:
    write_log(12, labels=False)
    check = {"kind": "judge", "model": "openai:fake", "url": "http://127.0.0.1:1"}
    Path("check.json").write_text(json.dumps({**check, "rubric": ["It is right."]}))
    command = ("calibrate", "log.jsonl", "--check", "check.json", "-o", "labels.ledger")
    ran = here(*command, "--ask", 30)
    assert ran.code == 0, ran
    assert "30 candidates more for people to label" in ran.out
    assert "0 candidates more" in here(*command, "--ask", 30).out
    with closing(open_ledger("labels.ledger")) as ledger:
        desk = Desk(ledger)
        reviewed = 0
        while (leased := desk.next("ann")) is not None:
            lease, item = leased
            assert item.check.rubric == ("It is right.",)
            saying = "pass" if item.text.startswith("right") else "fail"
            desk.give(item.id, lease.secret, saying, reviewer="ann")
            reviewed += 1
    assert reviewed == 30
    with FakeOpenai(Grader(0.0, 0.0)) as server:
        record = {"kind": "judge", "model": "openai:fake", "url": server.url}
        Path("check.json").write_text(json.dumps(record))
        ran = here(
            "calibrate",
            "labels.ledger",
            "--check",
            "check.json",
            "--allow-commands",
            "-o",
            "calibration.json",
        )
    found = Calibration.read("calibration.json")
    assert found.false_pass.n + found.false_fail.n == 30
    assert found.false_pass.mean == found.false_fail.mean == 0


@pytest.mark.slow
def test_solutions_are_gold_and_verdicts_of_a_judge_are_not() -> None:
    write_log(6, labels=False)
    lines = [
        json.dumps(
            {
                "problem": f"p{number}",
                "prompt": f"Question {number}?",
                "check": {"kind": "text", "equals": "x"},
                "solutions": [f"right solution {number}"],
            }
        )
        for number in range(6)
    ]
    Path("problems.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with FakeOpenai(Grader(0.0, 1.0)) as server:
        code, said = calibrate(server, "--calls", 1, "--solutions", "problems.jsonl")
    assert code == 1
    found = Calibration.read("calibration.json")
    assert (found.false_fail.mean, found.false_fail.n) == (1.0, 6)
    assert found.false_pass.n == 0
    assert "passes a wrong candidate: unknown: no labels" in said
    with closing(open_ledger("judged.ledger")) as ledger:
        judged = {"judged": {"passes": 2, "failures": 0, "wrong_probability": 0.05}}
        ledger.append(
            "s",
            [
                Started("p0", {}, "Question 0?"),
                Made(0, "wrong 0.1"),
                Found(0, Verdict.PASSED, "judged right", judged),
                Made(1, "right 0.1"),
                Found(1, Verdict.PASSED),
            ],
        )
    labels = {each.text: each.right for each in gold_candidates("judged.ledger")}
    assert labels == {"wrong 0.1": None, "right 0.1": True}


def test_a_strange_record_of_calls_is_one_line_and_calls_nothing() -> None:
    write_log(3)
    call = {"problem": "p0", "text": "right 0.0", "number": 0, "voice": 0, "verdict": "sure"}
    with FakeOpenai(Grader(0.0, 0.0)) as server:
        check = {"kind": "judge", "model": "openai:fake", "url": server.url}
        Path("check.json").write_text(json.dumps(check), encoding="utf-8")
        Path("edited.json.calls").write_text(json.dumps(call) + "\n")
        os.mkfifo("pipe.json.calls")
        for name, says in (("edited", "no record of grv calibrate"), ("pipe", "not a file")):
            how = ("--check", "check.json", "--allow-commands", "--out", f"{name}.json")
            ran = here("calibrate", "log.jsonl", *how)
            assert (ran.code, ran.err.count("\n")) == (2, 1)
            assert says in ran.err
        assert server.received == []


@pytest.mark.slow
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
