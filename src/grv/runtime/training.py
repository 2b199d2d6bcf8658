"""A ledger as training data: verified answers, and pairs of an answer and a refuted candidate.

A text counts as an answer only if it passed and nothing equal to it failed: not the same text, nor
another candidate with the same key, in any search of the problem.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

from ..backends.protocols import Finding, verified_part
from ..core.values import Verdict
from ..files import write_whole
from ..ledger.tables import TableLedger
from ..ledger.view import SearchView


class ExportFormat(enum.StrEnum):
    """What `grv runs export` writes.

    `log` is a log for `grv compare`; `sft` has a line per verified answer, `dpo` one per pair of an
    answer and a candidate that failed.
    """

    LOG = "log"
    SFT = "sft"
    DPO = "dpo"


@dataclass(frozen=True, slots=True)
class _Passed:
    """A text that passed: its class, its generator, and the program that ran, if there was one."""

    kind: str
    generator: str
    program: str | None


@dataclass
class _Texts:
    """The candidates of one problem, over all its searches.

    Attributes:
        passed: the texts that passed.
        parts: what the verdict on a text that passed is about.
        failed: the texts that failed, or were refuted without verification.
        wrong: the classes of those that failed.
    """

    problem: str
    prompt: str
    passed: dict[str, _Passed] = field(default_factory=dict)
    failed: dict[str, None] = field(default_factory=dict)
    wrong: set[str] = field(default_factory=set)
    parts: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, view: SearchView) -> None:
        """Take the verdicts of a search."""
        for candidate in view.candidates:
            text = candidate.text
            key = candidate.key
            entry = candidate.verdict
            kind = f"text {text}" if key is None else f"key {key}"
            if candidate.refuted:
                self.failed.setdefault(text)
            elif entry is not None and entry.verdict is Verdict.FAILED:
                self.failed.setdefault(text)
                self.wrong.add(kind)
            elif entry is not None and entry.verdict is Verdict.PASSED:
                finding = Finding(entry.verdict, evidence=entry.evidence)
                passed = _Passed(kind, candidate.generator, finding.answer_program)
                self.passed.setdefault(text, passed)
                self.parts.setdefault(text, verified_part(entry.evidence))

    @property
    def answers(self) -> dict[str, _Passed]:
        """One text per class that passed and did not fail."""
        texts: dict[str, str] = {}
        for text, passed in self.passed.items():
            if text not in self.failed and passed.kind not in self.wrong:
                texts.setdefault(passed.kind, text)
        return {text: self.passed[text] for text in texts.values()}


def training_rows(ledger: TableLedger, what: ExportFormat) -> Iterator[dict[str, Any]]:
    """The lines of an export, in the order of the ledger's searches."""
    problems: dict[tuple[str, str], _Texts] = {}
    for summary in ledger.searches():
        view = SearchView(ledger.read(summary.id))
        place = (summary.problem, view.prompt)
        problems.setdefault(place, _Texts(summary.problem, view.prompt)).add(view)
    for texts in problems.values():
        yield from _answers(texts) if what is ExportFormat.SFT else _pairs(texts)


def _answers(texts: _Texts) -> Iterator[dict[str, Any]]:
    for text, passed in texts.answers.items():
        row = {"problem": texts.problem, "prompt": texts.prompt, "completion": text}
        if passed.program is not None:
            row["answer_program"] = passed.program
        if passed.generator:
            row["generator"] = passed.generator
        yield row | texts.parts[text]


def _pairs(texts: _Texts) -> Iterator[dict[str, Any]]:
    """Each candidate that failed once, with the answers in turn."""
    rejected = [text for text in texts.failed if text not in texts.passed]
    for wrong, right in zip(rejected, cycle(texts.answers), strict=False):
        row = {"problem": texts.problem, "prompt": texts.prompt}
        yield {**row, "chosen": right, "rejected": wrong}


def write_rows(rows: Iterable[dict[str, Any]], path: str) -> int:
    """Write JSON lines; the file is replaced as a whole. Returns their number."""
    lines = [json.dumps(row) for row in rows]
    write_whole(path, "".join(f"{line}\n" for line in lines))
    return len(lines)
