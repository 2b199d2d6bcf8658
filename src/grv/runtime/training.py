"""A ledger as training data: verified answers, candidates that failed, and problems with both.

A text counts as an answer only if it passed and nothing equal to it failed: not the same text, nor
another candidate with the same key, in any search of the problem. Texts are written as they were
generated. What a check that errs has passed or failed is marked as judged, and kept in a file of
its own.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import PurePath
from typing import Any

from ..backends.problems.verl import OWN
from ..backends.protocols import JUDGED, Finding, Problem, verified_part
from ..core.errors import UsageError
from ..core.values import Verdict
from ..files import parse_json, write_whole
from ..ledger.tables import TableLedger
from ..ledger.view import SearchView
from ..options import MOST, Family, option


class ExportFormat(enum.StrEnum):
    """What `grv runs export` and `grv collect` write.

    `log` is a log for `grv compare`; `sft` has a line per verified answer, `dpo` one per pair of an
    answer and a candidate that failed; `rlvr` has a line per problem with both, and its check.
    """

    LOG = "log"
    SFT = "sft"
    DPO = "dpo"
    RLVR = "rlvr"


class Different(enum.StrEnum):
    """When two answers to a problem are different: by their whole texts, or by their keys."""

    TEXTS = "texts"
    KEYS = "keys"


@dataclass(frozen=True)
class Target(Family):
    """How many different answers and failures to find per problem; none means no target."""

    passes: int = option(
        0,
        "Find this many different verified answers per problem, for the least money; -n is then the"
        " most candidates.",
        metavar="K",
        least=0,
        most=MOST,
    )
    failures: int = option(
        0,
        "Find this many different candidates per problem that failed or were refuted.",
        metavar="K",
        least=0,
        most=MOST,
    )
    different: Different = option(
        Different.TEXTS,
        "Two answers count as different if their texts are, or only if their keys are: programs"
        " that differ in more than layout, other final answers.",
    )

    @property
    def is_set(self) -> bool:
        """Whether anything is to be found."""
        return self.passes > 0 or self.failures > 0

    def is_met(self, texts: ProblemTexts) -> bool:
        """Whether a problem has all that is to be found."""
        return self.has_passes(texts) and self.has_failures(texts)

    def has_passes(self, texts: ProblemTexts) -> bool:
        """Whether a problem has as many answers as are to be found."""
        return self.passes == 0 or len(texts.answers(self.different)) >= self.passes

    def has_failures(self, texts: ProblemTexts) -> bool:
        """Whether a problem has as many failures as are to be found."""
        return self.failures == 0 or len(texts.failures(self.different)) >= self.failures


@dataclass(frozen=True, slots=True)
class _Passed:
    """A text that passed: its class, its generator, and the program that ran, if there was one."""

    kind: str
    generator: str
    program: str | None


@dataclass
class ProblemTexts:
    """The candidates of one problem, over all its searches.

    Attributes:
        problem: its id.
        prompt: its prompt.
        check: its check, as JSON text; empty if the user's own code verifies.
        messages: its chat, if it has one.
        generated: the number of candidates.
        passed: the texts that passed.
        parts: what the verdict on a text that passed is about.
        failed: the texts that failed or were refuted without verification, with their classes.
        wrong: the classes of those that failed.
        is_judged: whether a check that errs gave a verdict.
    """

    problem: str
    prompt: str
    check: str = ""
    messages: Sequence[Mapping[str, Any]] = ()
    generated: int = 0
    passed: dict[str, _Passed] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    wrong: set[str] = field(default_factory=set)
    parts: dict[str, dict[str, Any]] = field(default_factory=dict)
    is_judged: bool = False

    @classmethod
    def of(cls, problem: Problem, view: SearchView) -> ProblemTexts:
        """The candidates of one search of a problem."""
        check = "" if view.started is None else view.started.check
        texts = cls(problem.id, problem.prompt, check, problem.messages)
        texts.add(view)
        return texts

    def add(self, view: SearchView) -> None:
        """Take the verdicts of a search."""
        for candidate in view.candidates:
            self.generated += 1
            text = candidate.text
            entry = candidate.verdict
            kind = kind_of(candidate.key, text)
            self.is_judged |= entry is not None and JUDGED in entry.evidence
            if candidate.passed is False:
                self.failed.setdefault(text, kind)
                if not candidate.refuted:
                    self.wrong.add(kind)
            elif entry is not None and entry.verdict is Verdict.PASSED:
                finding = Finding(entry.verdict, evidence=entry.evidence)
                passed = _Passed(kind, candidate.generator, finding.answer_program)
                self.passed.setdefault(text, passed)
                self.parts.setdefault(text, verified_part(entry.evidence))

    def answers(self, different: Different = Different.KEYS) -> dict[str, _Passed]:
        """The texts that passed and did not fail; with keys, one per class."""
        right = {
            text: passed
            for text, passed in self.passed.items()
            if text not in self.failed and passed.kind not in self.wrong
        }
        if different is Different.TEXTS:
            return right
        first: dict[str, str] = {}
        for text, passed in right.items():
            first.setdefault(passed.kind, text)
        return {text: right[text] for text in first.values()}

    def failures(self, different: Different = Different.KEYS) -> list[str]:
        """The texts that failed and never passed; with keys, one per class."""
        wrong = {text: kind for text, kind in self.failed.items() if text not in self.passed}
        if different is Different.TEXTS:
            return [*wrong]
        first: dict[str, str] = {}
        for text, kind in wrong.items():
            first.setdefault(kind, text)
        return [*first.values()]


def kind_of(key: str | None, text: str) -> str:
    """The class of a candidate: by its key, or else by its text."""
    return f"text {text}" if key is None else f"key {key}"


def training_rows(ledger: TableLedger, what: ExportFormat) -> Iterator[dict[str, Any]]:
    """The lines of an export, in the order of the ledger's searches."""
    problems: dict[tuple[str, str], ProblemTexts] = {}
    for summary in ledger.searches():
        view = SearchView(ledger.read(summary.id))
        check = "" if view.started is None else view.started.check
        texts = ProblemTexts(summary.problem, view.prompt, check)
        problems.setdefault((summary.problem, view.prompt), texts).add(view)
    return rows_of(problems.values(), what, Target(different=Different.KEYS))


def rows_of(
    problems: Iterable[ProblemTexts], what: ExportFormat, target: Target
) -> Iterator[dict[str, Any]]:
    """The lines of training data: as many per problem as are to be found, or else all.

    If any problem is a chat, all prompts and completions are lists of messages.
    """
    problems = list(problems)
    is_chat = any(texts.messages for texts in problems)
    for texts in problems:
        mark = {"labels": JUDGED} if texts.is_judged else {}
        match what:
            case ExportFormat.RLVR:
                rows = _tasks(texts, target)
            case ExportFormat.DPO:
                rows = _pairs(texts, target, is_chat=is_chat)
            case _:
                rows = _answers(texts, target, is_chat=is_chat)
        for row in rows:
            yield row | mark


def _answers(texts: ProblemTexts, target: Target, *, is_chat: bool) -> Iterator[dict[str, Any]]:
    answers = texts.answers(target.different).items()
    for text, passed in islice(answers, target.passes or None):
        row = _asked(texts, is_chat) | {"completion": _said(text, is_chat)}
        if passed.program is not None:
            row["answer_program"] = passed.program
        if passed.generator:
            row["generator"] = passed.generator
        yield row | texts.parts[text]


def _pairs(texts: ProblemTexts, target: Target, *, is_chat: bool) -> Iterator[dict[str, Any]]:
    """Each candidate that failed once, with the answers in turn."""
    rejected = texts.failures(target.different)[: target.failures or None]
    chosen = [*texts.answers(target.different)][: target.passes or None]
    for wrong, right in zip(rejected, cycle(chosen), strict=False):
        pair = {"chosen": _said(right, is_chat), "rejected": _said(wrong, is_chat)}
        yield _asked(texts, is_chat) | pair


def _tasks(texts: ProblemTexts, target: Target) -> Iterator[dict[str, Any]]:
    """The problem as a row of verl, if it has a check, and both passes and fails often enough."""
    passes = len(texts.answers(target.different))
    failures = len(texts.failures(target.different))
    enough = target.is_met(texts) if target.is_set else passes > 0 and failures > 0
    if not (enough and texts.check):
        return
    parsed = parse_json(texts.check)
    kind = str(parsed.get("kind", "")) if isinstance(parsed, dict) else ""
    found = {"passes": passes, "failures": failures, "generated": texts.generated}
    yield {
        "data_source": OWN,
        "prompt": _messages(texts),
        "ability": kind,
        "reward_model": {"style": "rule", "ground_truth": texts.check},
        "extra_info": {"index": texts.problem, "split": "train", **found},
    }


def _asked(texts: ProblemTexts, is_chat: bool) -> dict[str, Any]:
    return {"problem": texts.problem, "prompt": _messages(texts) if is_chat else texts.prompt}


def _messages(texts: ProblemTexts) -> list[dict[str, Any]]:
    """The prompt as a chat."""
    given = texts.messages or [{"role": "user", "content": texts.prompt}]
    return [dict(message) for message in given]


def _said(text: str, is_chat: bool) -> Any:
    return [{"role": "assistant", "content": text}] if is_chat else text


@dataclass(frozen=True)
class WrittenRows:
    """What was written: lines with verified verdicts, and those of checks that err, apart."""

    verified: int
    judged: int
    judged_path: str


def judged_path(path: str) -> str:
    """The file for what checks that err have judged: `train.judged.jsonl` beside `train.jsonl`."""
    pure = PurePath(path)
    return str(pure.with_name(f"{pure.stem}.judged{pure.suffix}"))


def write_rows(rows: Iterable[dict[str, Any]], path: str) -> WrittenRows:
    """Write JSON lines; a file is replaced as a whole. Judged lines go to a file of their own."""
    verified: list[str] = []
    judged: list[str] = []
    for row in rows:
        lines = judged if row.get("labels") == JUDGED else verified
        lines.append(json.dumps(row) + "\n")
    apart = judged_path(path)
    write_whole(path, "".join(verified))
    if judged:
        write_whole(apart, "".join(judged))
    return WrittenRows(len(verified), len(judged), apart)


def check_rows_path(path: str) -> None:
    """A UsageError if training data cannot have this name."""
    if not path.endswith(".jsonl"):
        raise UsageError(f"{path}: training data is JSON lines: give a name that ends with .jsonl")
