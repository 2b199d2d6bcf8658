"""A ledger as training data: verified answers, and pairs of an answer and a refuted candidate.

A text counts as an answer only if it passed and nothing equal to it failed: not the same text, nor
another candidate with the same key, in any search of the problem.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

from ...core.values import Verdict
from ...files import write_whole
from ...ledger.tables import TableLedger
from ..search_record import SearchRecord
from .formats import ExportFormat


@dataclass
class _Texts:
    """The candidates of one problem, over all its searches.

    Attributes:
        passed: the texts that passed, each with its class and its generator.
        failed: the texts that failed, or were refuted without verification.
        wrong: the classes of those that failed.
    """

    problem: str
    prompt: str
    passed: dict[str, tuple[str, str]] = field(default_factory=dict)
    failed: dict[str, None] = field(default_factory=dict)
    wrong: set[str] = field(default_factory=set)

    def add(self, record: SearchRecord) -> None:
        """Take the verdicts of a search."""
        for id, made in sorted(record.made.items()):
            found, own = record.found.get(id), record.class_of(id)
            kind = f"key {own}" if isinstance(own, str) else f"text {made.text}"
            if record.refuted(id):
                self.failed.setdefault(made.text)
            elif found is not None and found.verdict is Verdict.FAILED:
                self.failed.setdefault(made.text)
                self.wrong.add(kind)
            elif found is not None and found.verdict is Verdict.PASSED:
                self.passed.setdefault(made.text, (kind, made.generator))

    @property
    def answers(self) -> dict[str, str]:
        """One text per class that passed and did not fail, with its generator."""
        found: dict[str, tuple[str, str]] = {}
        for text, (kind, generator) in self.passed.items():
            if text not in self.failed and kind not in self.wrong:
                found.setdefault(kind, (text, generator))
        return dict(found.values())


def training_rows(ledger: TableLedger, what: ExportFormat) -> Iterator[dict[str, Any]]:
    """The lines of an export, in the order of the ledger's searches."""
    problems: dict[tuple[str, str], _Texts] = {}
    for summary in ledger.searches():
        record = SearchRecord(None, summary.id, ledger.read(summary.id))
        prompt = record.prompt
        place = (summary.problem, prompt)
        problems.setdefault(place, _Texts(summary.problem, prompt)).add(record)
    for texts in problems.values():
        yield from _answers(texts) if what is ExportFormat.SFT else _pairs(texts)


def _answers(texts: _Texts) -> Iterator[dict[str, Any]]:
    for text, generator in texts.answers.items():
        row = {"problem": texts.problem, "prompt": texts.prompt, "completion": text}
        yield {**row, "generator": generator} if generator else row


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
