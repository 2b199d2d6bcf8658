"""Rewards of training steps, called as the frameworks call them, without the frameworks."""

from __future__ import annotations

import asyncio
import inspect
import json
import pickle
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from grv.adapters import trl, verifiers, verl
from grv.backends.verifiers.options import Verification
from grv.backends.verifiers.pool import CheckVerifier
from grv.core.errors import UsageError, VerifierError
from grv.core.values import Verdict
from grv.runtime.rewards import Completion, StepVerifier
from support.commands import here
from support.guides import blocks

SUM = {"kind": "math", "answer": "5"}
DOUBLE = {
    "kind": "function",
    "entry_point": "double",
    "tests": [{"args": [n], "expected": 2 * n} for n in range(1, 4)],
}
RIGHT = "def double(n):\n    return 2 * n\n"
ALSO_RIGHT = "def double(n):\n    return n + n\n"
WRONG = "def double(n):\n    return n + 2\n"
SAME_WRONG = "def double(n):\n    return n  +  2  # sure\n"
REFUTED = "def triple(n): return 3 * n"


@pytest.fixture
def verifier() -> Iterator[StepVerifier]:
    made = StepVerifier(Verification(workers=2))
    yield made
    made.close()


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts for which something was run."""
    texts: list[str] = []
    from grv.backends.verifiers.engine import LocalEngine

    judge = LocalEngine.judge

    def counting(self: Any, job: Any, problem: Any, check: Any, text: str, seed: int) -> Any:
        texts.append(text)
        return judge(self, job, problem, check, text, seed)

    monkeypatch.setattr(LocalEngine, "judge", counting)
    return texts


class TestStep:
    def test_verdicts_are_in_the_order_of_the_completions(self, verifier: StepVerifier) -> None:
        texts = [RIGHT, WRONG, REFUTED, ALSO_RIGHT, WRONG, RIGHT] * 3
        given = [Completion(text, DOUBLE) for text in texts]
        found = verifier.verify_now(given)
        expected = [text in (RIGHT, ALSO_RIGHT) for text in texts]
        assert [verdict is Verdict.PASSED for verdict in found] == expected

    def test_equal_keys_are_run_once_and_refuted_ones_never(
        self, verifier: StepVerifier, runs: list[str]
    ) -> None:
        texts = [RIGHT] * 5 + [WRONG, SAME_WRONG] * 5 + [REFUTED] * 5
        verifier.verify_now([Completion(text, DOUBLE) for text in texts])
        assert len(runs) == 2
        assert {*runs} < {RIGHT, WRONG, SAME_WRONG}

    def test_equal_texts_with_other_checks_have_their_own_verdicts(
        self, verifier: StepVerifier
    ) -> None:
        other = {**DOUBLE, "tests": [{"args": [1], "expected": 3}]}
        found = verifier.verify_now([Completion(WRONG, DOUBLE), Completion(WRONG, other)])
        assert found == [Verdict.FAILED, Verdict.PASSED]

    @pytest.mark.slow
    def test_what_has_no_verdict_at_the_deadline_is_broken(self) -> None:
        slow = "def double(n):\n    while True: pass\n"
        step = StepVerifier(Verification(workers=2, timeout=60), deadline=2.0)
        started = time.monotonic()
        try:
            found = step.verify_now([Completion(slow, DOUBLE), Completion(RIGHT, DOUBLE)])
            assert found == [Verdict.BROKEN, Verdict.PASSED]
            assert time.monotonic() - started < 30
            assert step.verify_now([Completion(WRONG, DOUBLE)]) == [Verdict.FAILED]
        finally:
            step.close()

    def test_a_step_that_is_repeated_in_another_process_runs_nothing_again(
        self, tmp_path: Path, runs: list[str]
    ) -> None:
        given = [Completion(text, DOUBLE) for text in (RIGHT, WRONG, REFUTED, ALSO_RIGHT)]
        results = []
        for _ in range(2):
            step = StepVerifier(Verification(workers=1), tmp_path / "verdicts")
            results.append(step.verify_now(given))
            step.close()
        assert results[0] == results[1]
        assert sorted(runs) == sorted([RIGHT, WRONG, ALSO_RIGHT])

    def test_a_check_that_errs_is_refused_unless_it_is_asked_for(
        self, verifier: StepVerifier
    ) -> None:
        errs = {**SUM, "errors": {"false_pass": 0.05, "false_fail": 0.1}}
        with pytest.raises(UsageError, match="judged, not verified"):
            verifier.verify_now([Completion("5", errs)])
        judging = StepVerifier(Verification(workers=1), judged=True)
        assert judging.verify_now([Completion("6", errs)]) == [Verdict.FAILED]
        judging.close()

    def test_a_deadline_must_be_positive(self) -> None:
        with pytest.raises(UsageError, match="deadline"):
            StepVerifier(deadline=0)


class TestTrl:
    def rewards(self, reward: trl.VerifiedReward, **columns: Any) -> list[float | None]:
        try:
            return asyncio.run(reward(**columns))
        finally:
            reward.close()

    def test_a_row_has_its_check_in_a_column(self) -> None:
        found = self.rewards(
            trl.reward(),
            prompts=["2 + 3 =", "double"],
            completions=["It is \\boxed{5}.", WRONG],
            completion_ids=[[1], [2]],
            check=[json.dumps(SUM), {**DOUBLE, "limits": None}],
            trainer_state=None,
        )
        assert found == [1.0, 0.0]

    def test_chats_and_rows_of_grv_collect(self) -> None:
        chat = [{"role": "user", "content": "2 + 3 ="}]
        row = {"style": "rule", "ground_truth": json.dumps(SUM)}
        found = self.rewards(
            trl.reward(),
            prompts=[chat, chat],
            completions=[[{"role": "assistant", "content": text}] for text in ("5", "6")],
            data_source=["grv", "grv"],
            reward_model=[row, row],
        )
        assert found == [1.0, 0.0]

    def test_parts_of_a_message_are_joined_and_a_call_of_a_tool_says_nothing(self) -> None:
        parts = [{"type": "text", "text": "It is"}, {"type": "text", "text": "\\boxed{5}"}]
        said = [[{"role": "assistant", "content": content}] for content in (parts, None)]
        assert self.rewards(trl.reward(SUM), prompts=["", ""], completions=said) == [1.0, 0.0]

    def test_checks_of_the_reward_and_of_the_row_must_all_pass(self) -> None:
        found = self.rewards(
            trl.reward(SUM),
            prompts=[""] * 3,
            completions=["5", "5", "6"],
            check=[SUM, {**SUM, "answer": "6"}, {**SUM, "answer": "6"}],
        )
        assert found == [1.0, 0.0, 0.0]

    def test_a_broken_verdict_has_no_reward(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def broken(self: Any, problem: Any, draft: Any) -> Any:
            raise VerifierError("no worker")

        monkeypatch.setattr(CheckVerifier, "verify", broken)
        assert self.rewards(trl.reward(SUM), prompts=[""], completions=["5"]) == [None]

    def test_is_a_coroutine_function_with_a_name_and_can_be_pickled(self) -> None:
        reward = trl.reward(SUM, deadline=9)
        assert inspect.iscoroutinefunction(reward)  # what TRL asks, until 1.15 of nothing else
        assert reward.__name__ == "verified"
        copy = pickle.loads(pickle.dumps(reward))
        assert (copy.checks, copy.verifier.deadline) == ((SUM,), 9)
        assert self.rewards(copy, prompts=[""], completions=["5"]) == [1.0]

    @pytest.mark.parametrize(
        ("columns", "words"),
        [
            ({}, "no column check"),
            ({"check": ["{"]}, "must be JSON"),
            ({"check": [5]}, "must be a record"),
            ({"check": [{"kind": "maths"}]}, "must be one of"),
            ({"check": [{"kind": "command", "command": ["true"]}]}, "allow"),
        ],
    )
    def test_a_mistake_in_a_row_is_one_line(self, columns: dict[str, Any], words: str) -> None:
        with pytest.raises(UsageError, match=words):
            self.rewards(trl.reward(), prompts=[""], completions=["5"], **columns)


class TestVerl:
    def test_one_completion_and_all_of_a_step(self) -> None:
        own = json.dumps(DOUBLE)
        scored = asyncio.run(
            verl.compute_score(
                data_source="grv", solution_str=RIGHT, ground_truth=own, extra_info={"index": 1}
            )
        )
        assert scored == {"score": 1.0, "broken": 0.0}
        scores = verl.compute_scores(
            data_sources=["grv", "openai/gsm8k", "math_dapo"],
            solution_strs=[WRONG, "So it is 5.\n#### 5", "Answer: 6"],
            ground_truths=[own, "5", "5"],
            extra_infos=[{}, {}, {}],
        )
        assert [each["score"] for each in scores] == [0.0, 1.0, 0.0]

    def test_a_source_without_a_rule_of_ours_is_a_mistake(self) -> None:
        with pytest.raises(UsageError, match="no check follows its rule"):
            verl.compute_scores(["unknown"], ["5"], ["5"])

    def test_rows_of_grv_collect_become_problems_again(self, tmp_path: Path) -> None:
        row = {
            "data_source": "grv",
            "prompt": [{"role": "user", "content": "2 + 3 ="}],
            "reward_model": {"style": "rule", "ground_truth": json.dumps(SUM)},
            "extra_info": {"index": "sum", "split": "train"},
        }
        file = tmp_path / "tasks.jsonl"
        file.write_text(json.dumps(row) + "\n")
        out = tmp_path / "problems.jsonl"
        ran = here("problems", "verl", file, "--out", out)
        assert ran.code == 0, ran.err
        assert json.loads(out.read_text())["check"] == SUM


class TestVerifiers:
    def trace(self, text: str) -> SimpleNamespace:
        replies = [SimpleNamespace(content=text)]
        return SimpleNamespace(root_reply=None, assistant_messages=replies)

    def test_a_trace_is_verified(self) -> None:
        found = [
            asyncio.run(verifiers.verified(self.trace(text), json.dumps(SUM))) for text in "56"
        ]
        assert found == [1.0, 0.0]

    def test_a_broken_verdict_is_an_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def broken(self: Any, given: Any) -> list[Verdict]:
            return [Verdict.BROKEN]

        monkeypatch.setattr(StepVerifier, "verify", broken)
        with pytest.raises(VerifierError, match="broken"):
            asyncio.run(verifiers.verified(self.trace("5"), SUM))

    def test_without_rubrics_it_says_what_to_use(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "verifiers", SimpleNamespace())
        with pytest.raises(UsageError, match="use verified"):
            verifiers.rubric()

    def test_a_rubric_calls_its_reward(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Rubric:
            def __init__(self, funcs: list[Any]) -> None:
                self.funcs = funcs

        monkeypatch.setitem(sys.modules, "verifiers", SimpleNamespace(Rubric=Rubric))
        (passes,) = verifiers.rubric().funcs
        completion = [{"role": "assistant", "content": "5"}]
        call = passes(prompt="2 + 3 =", completion=completion, answer="", info={"check": SUM})
        assert asyncio.run(call) == 1.0


def test_the_python_of_the_guide_that_needs_no_framework_runs() -> None:
    alone = [block for block in blocks("training.md") if "trl import G" not in block]
    plain = [block for block in alone if "verifiers" not in block]
    assert len(plain) == 2
    for block in plain:
        exec(compile(block, "training.md", "exec", dont_inherit=True), {})
