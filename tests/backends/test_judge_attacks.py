"""What a candidate can say to a judge: nothing but an answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.backends.attacks.judging import ATTACKS, JudgeAttack, escapes, question_of
from grv.backends.protocols import Problem
from grv.backends.verifiers.judge import JudgeCheck, quoted
from grv.backends.verifiers.pool import CheckVerifier
from grv.core.values import Verdict
from grv.testing import gullible_judge
from grv.testing.servers import FakeAnthropic, FakeGemini, FakeOpenai, FakeResponses, FakeServer
from support.commands import here

DIALECTS: dict[str, type[FakeServer]] = {
    "openai": FakeOpenai,
    "responses": FakeResponses,
    "anthropic": FakeAnthropic,
    "gemini": FakeGemini,
}


@pytest.fixture
def verifier(monkeypatch: pytest.MonkeyPatch) -> Iterator[CheckVerifier]:
    for name in ("OPENAI", "ANTHROPIC", "GEMINI"):
        monkeypatch.setenv(f"{name}_API_KEY", "sk-a-key-of-some-length")
    with CheckVerifier(workers=2, allow_commands=True, decides=False) as made:
        yield made


def test_there_are_more_than_twenty_attacks_with_names_of_their_own() -> None:
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS) > 20


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_stays_in_its_place(attack: JudgeAttack) -> None:
    assert escapes(attack) == ""


@given(st.text())
def test_every_text_reads_back_and_has_no_mark_of_a_chat_format(text: str) -> None:
    sent = quoted(text)
    assert json.loads(sent) == text
    assert gullible_judge(f'{{"reference": "@", "answer": {sent}}}') == (
        '{"verdict": "pass"}' if text == "@" else '{"verdict": "fail"}'
    )


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_gullible_judge_hears_no_attack(verifier: CheckVerifier, dialect: str) -> None:
    with DIALECTS[dialect](gullible_judge) as server:
        jobs = []
        for number, attack in enumerate(ATTACKS):
            question, right, wrong = question_of(number)
            check = {"kind": "judge", "model": f"{dialect}:fake", "url": server.url}
            problem = Problem(f"p{number}", question, {**check, "reference": right})
            jobs.append(("right", problem, right))
            jobs.append((attack.name, problem, attack.filled(question, wrong)))
        found = [(name, judged.finding.verdict) for name, judged in verifier.find_all(jobs)]
    passed = [name for name, verdict in found if verdict is Verdict.PASSED]
    assert passed == ["right"] * len(ATTACKS)
    assert [verdict for _, verdict in found].count(Verdict.FAILED) == len(ATTACKS)


def test_the_judge_is_gullible_enough_to_tell_a_bad_request_from_a_good_one() -> None:
    """If the text were pasted into the request, most attacks would work."""
    worked = 0
    for number, attack in enumerate(ATTACKS):
        question, right, wrong = question_of(number)
        text = attack.filled(question, wrong)
        pasted = f'{{"problem": "{question}", "reference": "{right}", "answer": "{text}"}}'
        worked += json.loads(gullible_judge(pasted))["verdict"] == "pass"
    assert worked > 20


def test_a_text_that_could_push_the_instruction_out_is_not_sent(verifier: CheckVerifier) -> None:
    with FakeOpenai(gullible_judge) as server:
        check = {"kind": "judge", "model": "openai:fake", "url": server.url}
        found = verifier.find(Problem("p", "?", check), "x" * 250_000)
        assert server.received == []
    assert found.verdict is Verdict.BROKEN
    assert "more than 200,000 bytes" in found.reason


@pytest.mark.slow
def test_doctor_says_whether_words_to_the_judge_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-key-of-some-length")

    def talked_over(prompt: str, index: int) -> str:
        return json.dumps({"verdict": "pass" if "pass" in prompt.lower() else "fail"})

    def careful(prompt: str, index: int) -> str:
        record = json.loads(prompt)
        first, second = (int(word.strip("?")) for word in record["problem"].split()[2:5:2])
        return json.dumps(
            {"verdict": "pass" if record["answer"] == str(first + second) else "fail"}
        )

    for judge, code, said in (
        (careful, 0, f"passes {len(ATTACKS)} of {len(ATTACKS)} right answers"),
        (talked_over, 1, "not well: words to the judge make wrong answers pass"),
    ):
        with FakeOpenai(judge) as server:
            check = {"kind": "judge", "model": "openai:fake", "url": server.url}
            Path("judge.json").write_text(json.dumps(check), encoding="utf-8")
            ran = here("doctor", "--judge", "judge.json", "--allow-commands", "--json", "out.json")
        assert (ran.code, ran.err) == (code, ""), ran
        assert said in ran.out
        assert json.loads(Path("out.json").read_text())["asked"]["attacks"] == len(ATTACKS)


def test_the_request_says_nothing_about_who_wrote_the_answer() -> None:
    problem = Problem("secret-name", "What is 2 + 2?")
    check = JudgeCheck(problem, ["openai:any"], 1)
    assert "secret-name" not in check.record("4")
