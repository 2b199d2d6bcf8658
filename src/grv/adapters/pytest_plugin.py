"""Pytest: `pytest --grv problems.jsonl` makes a test of each problem, which passes if it is solved.

`grv solve` does the work, in a process of its own, with the options of a job file. It records to a
ledger and does not pay again for what is recorded. Results are read from the ledger: outcome, bill,
and the last evidence. With `--grv-replay` only the ledger is read.

`grv_pytest.py` has the options, and loads this module if they are used.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ..core.errors import GrvError
from ..text import aligned, counted, visible

if TYPE_CHECKING:
    from ..ledger.view import SearchView

_SOLVED = "solved"
_FACTS = ("outcome", "generated", "verified", "cost")  # of a bill, in the table and in reports
_EVIDENCE = 2000  # characters of evidence in a failure
_TEXT = 600  # characters of a candidate
_Raw = dict[str, Any]


@dataclass(frozen=True)
class Bill:
    """What the ledger says about one problem.

    Attributes:
        outcome: `solved`, or why there is no verified answer.
        generated: the number of candidates.
        verified: the number of verifications.
        cost: what was paid.
        evidence: lines about the last candidate without a pass.
    """

    outcome: str
    generated: int
    verified: int
    cost: float
    evidence: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The bill in one line."""
        tried = f"{counted(self.generated, 'candidate')}, {counted(self.verified, 'verification')}"
        return f"{self.outcome}: {tried}, cost {self.cost:g}"


class Unsolved(Exception):
    """A problem without a verified answer: the lines say why."""


class GrvRun:
    """The problems of one run of pytest."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.files = {Path(name).resolve(): name for name in config.getoption("--grv")}
        self.searches: dict[tuple[Path, str], str] = {}  # of problems that `grv solve` was given
        self.refused: dict[tuple[Path, str], str] = {}  # what `grv solve` said instead
        self.rows: list[list[str]] = []  # of the table at the end
        self.cost = 0.0
        if config.args_source is not pytest.Config.ArgsSource.ARGS:
            config.args = []  # only the problems are tests
        config.args += list(self.files.values())
        if not config.getoption("--grv-replay") and config.getoption("--grv-job") is None:
            raise pytest.UsageError("--grv needs --grv-job FILE or --grv-replay")

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> Any:
        """A file of problems."""
        if file_path.resolve() in self.files:
            return ProblemFile.from_parent(parent, path=file_path, run=self)
        return None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the bill of a test, also from a process of pytest-xdist."""
        facts = dict(report.user_properties)
        if report.when == "call" and "grv_cost" in facts:
            name = report.nodeid.partition("::")[2]
            self.rows.append([name, *(str(facts[f"grv_{each}"]) for each in _FACTS)])
            self.cost += float(str(facts["grv_cost"]))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the bills of all problems."""
        if not self.rows:
            return
        terminalreporter.section("grv")
        for line in aligned(["problem", *_FACTS], self.rows, left=2).splitlines():
            terminalreporter.line(visible(line))
        solved = sum(row[1] == _SOLVED for row in self.rows)
        terminalreporter.line(f"{solved} of {len(self.rows)} solved, cost {self.cost:g}")

    def solve(self, item: ProblemItem) -> None:
        """Run `grv solve` for this problem, and for all others of its file that will be tests.

        With pytest-xdist, it is not known which others this process will get.
        """
        file = item.file
        if (file.path, item.name) in self.searches:
            if said := self.refused.get((file.path, item.name)):
                raise Unsolved(said)
            return
        alone = hasattr(self.config, "workerinput")
        chosen = [item] if alone else [each for each in item.session.items if _is_in(each, file)]
        names = {each.name for each in chosen}
        self.searches |= {(file.path, name): "" for name in names}
        with tempfile.TemporaryDirectory() as folder:
            part = Path(folder) / file.path.name
            lines = [
                json.dumps(file.records[name]) + "\n" for name in file.records if name in names
            ]
            part.write_text("".join(lines), encoding="utf-8")
            command = [sys.executable, "-m", "grv", "solve", str(part)]
            command += ["--job", self.config.getoption("--grv-job"), "--ledger", file.ledger]
            if self.config.getoption("--grv-allow-commands"):
                command.append("--allow-commands")
            answers = Path(folder) / "answers.jsonl"
            command += ["--out", str(answers)]
            ran = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
            for line in (
                answers.read_text(encoding="utf-8").splitlines() if answers.exists() else ()
            ):
                answer = json.loads(line)
                self.searches[file.path, answer["problem"]] = answer["search"]
        if ran.returncode not in (0, 1):
            lines = ran.stderr.strip().splitlines() or [f"exit code {ran.returncode}"]
            said = f"grv solve: {lines[-1].removeprefix('grv: ')}"
            self.refused |= {(file.path, name): said for name in names}
            raise Unsolved(said)


class ProblemFile(pytest.File):
    """A file of problems."""

    run: GrvRun

    @classmethod
    def from_parent(cls, parent: Any, *, path: Path, run: GrvRun) -> ProblemFile:  # type: ignore[override]
        """A file in the tree of tests."""
        made: ProblemFile = super().from_parent(parent, path=path)
        made.run = run
        return made

    @cached_property
    def records(self) -> dict[str, _Raw]:
        """The records of the problems, by name."""
        from ..backends.problems.files import read_problems
        from ..files import json_lines

        try:
            names = [each.id for each in read_problems(str(self.path), checks=False)]
            raw = [record for _, record in json_lines(str(self.path))]
        except GrvError as error:
            raise self.CollectError(str(error)) from None
        return dict(zip(names, raw, strict=True))

    @property
    def ledger(self) -> str:
        """Where results are recorded."""
        given = self.config.getoption("--grv-ledger")
        return str(given or f"{self.path}.ledger")

    def collect(self) -> Iterator[ProblemItem]:
        """A test for each problem."""
        for name in self.records:
            yield ProblemItem.from_parent(self, name=name)


class ProblemItem(pytest.Item):
    """One problem as a test."""

    @property
    def file(self) -> ProblemFile:
        """The file that it is in."""
        assert isinstance(self.parent, ProblemFile)
        return self.parent

    def runtest(self) -> None:
        """Solve the problem, or read what is on record."""
        run = self.file.run
        if not self.config.getoption("--grv-replay"):
            run.solve(self)
        try:
            search = run.searches.get((self.path, self.name), "")
            check = self.file.records[self.name].get("check")
            bill = recorded(self.file.ledger, self.name, check, search)
        except GrvError as error:
            raise Unsolved(str(error)) from None
        shown = (bill.outcome, bill.generated, bill.verified, f"{bill.cost:g}")
        self.user_properties += [
            (f"grv_{name}", value) for name, value in zip(_FACTS, shown, strict=True)
        ]
        if bill.outcome != _SOLVED:
            raise Unsolved("\n".join([str(bill), *bill.evidence]))

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        """One block: outcome, bill, last evidence."""
        if isinstance(excinfo.value, Unsolved):
            return "\n".join(visible(line) for line in str(excinfo.value).split("\n"))
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The file and the problem."""
        return self.path, None, self.name


def _is_in(item: pytest.Item, file: ProblemFile) -> bool:
    return isinstance(item, ProblemItem) and item.file is file


def recorded(ledger: str, problem: str, check: Any, search: str = "") -> Bill:
    """What a ledger says about a problem, by one search, or else by the newest with this check.

    Raises:
        GrvError: there is no ledger.
        Unsolved: there is no finished search of this problem with this check.
    """
    from ..ledger.opening import open_ledger
    from ..ledger.view import SearchView

    opened = open_ledger(ledger, read_only=True)
    try:
        summaries = [each for each in opened.searches() if each.problem == problem]
        for summary in reversed(summaries):
            view = SearchView(opened.read(summary.id))
            is_same = view.started is not None and _is_same(view.started.check, check)
            if summary.id == search or (not search and is_same):
                return _bill(view)
    finally:
        opened.close()
    raise Unsolved(f"{ledger} has no search of this problem; run without --grv-replay to record it")


def _is_same(recorded: str, check: Any) -> bool:
    """Whether a recorded check is that of a record; one that its problem changed is another."""
    return not check or json.loads(recorded or "{}") == check


def _bill(view: SearchView) -> Bill:
    end = view.last_end
    if end is None:
        why = view.failed.message if view.failed is not None else "the search is not finished"
        return Bill("failed", len(view.made), len(view.found), view.tally.paid, (why,))
    return Bill(end.reason, end.generated, end.verified, end.total, tuple(_evidence(view)))


def _evidence(view: SearchView) -> Iterator[str]:
    """Lines about the last verdict."""
    from ..ledger.entries import Found

    found = [entry for entry in view.entries if isinstance(entry, Found)]
    if not found:
        return
    last = found[-1]
    yield f"candidate {last.candidate} {last.verdict.value}: {last.reason}"
    made = view.made.get(last.candidate)
    if made is not None:
        yield from _indented(_cut(made.text, _TEXT))
    if last.evidence:
        yield "evidence:"
        shown = [f"{name}: {value}" for name, value in last.evidence.items()]
        yield from _indented(_cut("\n".join(shown), _EVIDENCE))


def _cut(text: str, most: int) -> Sequence[str]:
    whole = text if len(text) <= most else f"{text[:most]}..."
    return whole.split("\n")


def _indented(lines: Iterable[str]) -> Iterator[str]:
    yield from (f"    {line}" for line in lines)
