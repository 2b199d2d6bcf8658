"""Several answers to one problem, live; and the ledger as training data."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

import grv
from grv.backends.verifiers.pool import CheckVerifier
from grv.core.values import Costs, Verdict
from grv.files import json_lines
from grv.ledger.entries import Found, Made
from grv.ledger.sqlite import SqliteLedger
from grv.runtime.answers import record_of
from grv.runtime.training import ExportFormat, training_rows
from grv.serve.clients import Client
from grv.serve.pages.one_search import candidate_data, view_of
from grv.serve.states import state_of
from support.commands import here, refuses

TEXTS = ["no 1", "yes a", "yes a", "no 2", "yes b", "no 1", "yes c", "yes d"]


class Listed:
    """A generator with a list of drafts."""

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts

    def __repr__(self) -> str:
        return f"Listed({len(self.texts)})"

    async def generate(
        self, problem: grv.Problem, n: int, *, first: int
    ) -> list[grv.backends.protocols.Draft]:
        return [grv.backends.protocols.Draft(text) for text in self.texts[first : first + n]]


def solve(
    texts: list[str], ledger: Path | None = None, problem: str | grv.Problem = "p", **more: Any
) -> grv.Solution:
    checked: list[str] = more.pop("checked", [])

    def verify(problem: grv.Problem, text: str) -> bool:
        checked.append(text)
        return text.startswith("yes")

    options: dict[str, Any] = {
        "generator": Listed(texts),
        "scorer": lambda problem, text: 0.0,
        "verifier": verify,
        "costs": Costs(1, 10),
        "ledger": ledger,
        **more,
    }
    return grv.solve_now(problem, **options)


class TestSeveralAnswers:
    @pytest.mark.parametrize("width", [1, 3])
    def test_are_different_and_stop_the_search(self, width: int) -> None:
        checked: list[str] = []
        solution = solve(TEXTS, answers=3, width=width, checked=checked)

        assert solution.outcome == "solved"
        assert sorted(draft.text for draft in solution.answers)[:2] == ["yes a", "yes b"]
        assert len({draft.text for draft in solution.answers}) == len(solution.answers) >= 3
        assert len(checked) == len(set(checked)), "a class is verified once"
        assert solution.bill.total == solution.bill.generated + 10 * solution.bill.verified

    def test_fewer_than_wanted_are_kept_and_not_solved(self) -> None:
        solution = solve(TEXTS, answers=9)
        assert (solution.outcome, solution.verified) == ("exhausted", True)
        assert sorted(d.text for d in solution.answers) == ["yes a", "yes b", "yes c", "yes d"]

    def test_keys_decide_if_there_are_some(self) -> None:
        def key(problem: grv.Problem, text: str) -> str:
            return text[:5].strip()

        solution = solve(["yes a1", "yes a2", "yes b1"], answers=2, key=key)
        assert [draft.text for draft in solution.answers] == ["yes a1", "yes b1"]

    def test_more_answers_later_pay_only_for_what_is_new(self, tmp_path: Path) -> None:
        first = solve(TEXTS, tmp_path / "ledger")
        checked: list[str] = []
        more = solve(TEXTS, tmp_path / "ledger", answers=3, checked=checked)
        assert first.outcome == more.outcome == "solved"
        assert not {draft.text for draft in first.answers} & set(checked)

    def test_may_come_from_several_generators(self) -> None:
        generators = {"a": Listed(["no", "yes 1", "yes 1"]), "b": Listed(["yes 1", "yes 2"])}
        costs = {"a": Costs(1, 10), "b": Costs(5, 10)}
        found = solve([], generator=generators, costs=costs, answers=2)
        assert sorted(draft.text for draft in found.answers) == ["yes 1", "yes 2"]


class TestAnswerProgram:
    """The program that passed is returned with the answer, wherever answers are written."""

    PROGRAM = "def f(x):\n    return 2 * x\n"
    TEXT = f"Sure, here it is:\n\n```python\n{PROGRAM}```\n\nUse `f(2)`.\n"
    PROBLEM = grv.Problem(
        "double",
        "Double x.",
        {"kind": "function", "entry_point": "f", "tests": [{"args": [2], "expected": 4}]},
    )

    def solved(self, ledger: Path, **more: Any) -> grv.Solution:
        wrong = self.TEXT.replace("2 * x", "x")
        other = self.TEXT.replace("2 * x", "x + x")
        with CheckVerifier(workers=1) as verifier:
            return solve([wrong, self.TEXT, other], ledger, self.PROBLEM, verifier=verifier, **more)

    @pytest.mark.slow
    def test_is_in_the_solution_and_its_line(self, tmp_path: Path) -> None:
        solution = self.solved(tmp_path / "ledger")
        line = record_of(solution)
        assert (line["answer"], line["answer_program"]) == (self.TEXT, self.PROGRAM)
        assert solution.finding is not None
        assert solution.finding.evidence["read"] == "block 1 of 1"

    @pytest.mark.slow
    def test_is_there_for_each_of_several_answers(self, tmp_path: Path) -> None:
        line = record_of(self.solved(tmp_path / "ledger", answers=2))
        assert len(line["answers"]) == 2
        for text, program in zip(line["answers"], line["answer_programs"], strict=True):
            assert f"```python\n{program}```" in text

    def test_is_not_there_without_a_pass_or_a_program(self) -> None:
        assert record_of(solve(["no"]))["answer_program"] is None
        assert record_of(solve(["yes"]))["answer_program"] is None

    @pytest.mark.slow
    def test_is_in_exports_and_pages(self, tmp_path: Path) -> None:
        path = tmp_path / "ledger"
        solution = self.solved(path)
        with contextlib.closing(SqliteLedger(path)) as ledger:
            (row,) = training_rows(ledger, ExportFormat.SFT)
            timed = [(entry, 0.0) for entry in ledger.read(solution.search)]
            state = state_of(ledger, solution.search, Client(""), running=False)
        assert (row["completion"], row["answer_program"]) == (self.TEXT, self.PROGRAM)
        candidates = map(candidate_data, view_of(timed).candidates)
        shown = [verdict for each in candidates for verdict in each["verdicts"]]
        assert shown[-1]["evidence"]["answer_program"] == self.PROGRAM
        assert (state["answer"], state["answer_program"]) == (self.TEXT, self.PROGRAM)


class TestTrainingData:
    def test_has_passes_and_pairs(self, tmp_path: Path) -> None:
        ledger, out = tmp_path / "ledger", tmp_path / "out.jsonl"
        solve(TEXTS, ledger, answers=4)
        assert here("runs", "export", ledger, "--out", out, "--format", "sft").code == 0
        rows = [row for _, row in json_lines(str(out))]
        assert sorted(row["completion"] for row in rows) == ["yes a", "yes b", "yes c", "yes d"]
        assert {row["prompt"] for row in rows} == {"p"}

        assert here("runs", "export", ledger, "--out", out, "--format", "dpo").code == 0
        pairs = [json.loads(line) for line in out.read_text().splitlines()]
        assert {pair["rejected"] for pair in pairs} == {"no 1", "no 2"}
        assert all(pair["chosen"].startswith("yes") for pair in pairs)

    @pytest.mark.slow
    @pytest.mark.parametrize("what", [ExportFormat.SFT, ExportFormat.DPO])
    def test_never_has_a_text_that_failed_anywhere(
        self, tmp_path: Path, what: ExportFormat
    ) -> None:
        path = tmp_path / "ledger"
        solve(TEXTS, path, answers=4)
        # The same problem in another run: the verifier now refuses one of the answers.
        solve(TEXTS, path, verifier=lambda problem, text: text == "yes d", about={"run": 2})
        ledger = SqliteLedger(path)
        failed = set()
        for search in ledger.searches():
            entries = ledger.read(search.id)
            texts = {each.candidate: each.text for each in entries if isinstance(each, Made)}
            failed |= {
                texts[each.candidate]
                for each in entries
                if isinstance(each, Found) and each.verdict is Verdict.FAILED
            }
        assert {"yes a", "yes b"} <= failed
        rows = list(training_rows(ledger, what))
        right = {row.get("completion", row.get("chosen")) for row in rows}
        assert right
        assert not right & failed
        ledger.close()

    def test_with_prices_is_refused(self, tmp_path: Path) -> None:
        solve(TEXTS, tmp_path / "ledger")
        flags = ("--out", tmp_path / "x.jsonl", "--format", "sft", "--prices", "p.toml")
        assert "--prices does not apply" in refuses(["runs", "export", tmp_path / "ledger", *flags])
