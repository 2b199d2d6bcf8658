"""Verify changes to a repository: checks of kind "repo".

`{"kind": "repo", "repository": "project", "commit": "v1.2", "runner": "pytest", "tests":
["tests/test_parser.py"]}`. The candidate is a diff, or whole files. It is applied to a fresh copy
of the commit; then the tests run in the jail, without a network. A candidate passes if every test
passes that the commit has, and a control shows that the tests could have failed.
"""

from __future__ import annotations

import functools
import os
import re
import secrets
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from ....core.errors import UsageError
from ....core.values import Verdict
from ....files import shown
from ....text import checksum
from ...protocols import Finding, Problem, Stage, Usage
from ...sandbox.limits import CONTAINERS, RunLimits
from ..checks import JUDGE, WholeTextCheck
from ..command import process_folder
from ..groups import MemberSuite
from ..languages.toolchains import NotInstalled
from ..programs.findings import clean, failed
from ..worker_pair import WorkerPair
from . import control
from .changes import Changes, NewFile, apply
from .containers import Container, check_image
from .diff_lines import UnreadableDiff
from .diffs import read
from .git import Repository
from .jailed import Ran, run_in_jail
from .protection import Protection, test_file
from .results import WHOLE, Results, TestEnd, read_reports
from .runners import (
    IN_PROCESS,
    RESULTS,
    RUNNERS,
    RunnerCommand,
    completed,
    container_command,
    python_of,
    runner_command,
)
from .workspace import WORKSPACES, Workspace, write

LIMITS = RunLimits(seconds=300.0, memory_mb=4096, output_mb=16.0, files_mb=512, threads=512)
_SYSTEM = ("/usr", "/bin", "/lib", "/lib64")
_MOST_NAMES = 100_000  # tests in a record
_ASKING_SECONDS = 60.0
_FINDS_PYTEST = "import importlib.util as u, sys; sys.exit(not u.find_spec('pytest'))"
_READ = 16  # candidates whose changes are kept
_MOST_STAGES = 8  # files of tests that run in a process each; starting more would cost too much
# Where tests are selected or skipped, and the words that say so.
_SELECTING = ("conftest.py", "pytest.ini", ".pytest.ini", "tox.ini", "pyproject.toml", "setup.cfg")
_SELECTS = re.compile(
    rb"skip|ignore|deselect|modifyitems|makeitem|python_(?:functions|classes)|__test__|-[km]\b"
)
_LISTS = ("tests", "fail_to_pass", "pass_to_pass", "protect", "readable", "command")


@dataclass(frozen=True)
class RepoSettings:
    """The record of a check.

    Attributes:
        repository: the folder of the repository.
        commit: the full name of the commit.
        runner: what runs the tests, one of `RUNNERS`.
        command: the command line of the runner; empty for the usual one.
        reads_results: whether the command writes a file of results, in JUnit's format.
        tests: the files of tests that run, in this order; empty for all.
        fail_to_pass: tests that must pass, and fail before.
        pass_to_pass: tests that must pass, and pass before.
        protect: what candidates may not touch, besides the tests.
        setup: commands that run once, in the copy that all others are made of.
        readable: folders that the tests may read, besides the copy.
        writable: whether the tests may write to their copy.
        image: the container's image; "" for none.
        test_patch: a diff that adds tests to the commit; "" for none.
    """

    repository: str
    commit: str
    runner: str = "pytest"
    command: tuple[str, ...] = ()
    reads_results: bool = False
    tests: tuple[str, ...] = ()
    fail_to_pass: tuple[str, ...] = ()
    pass_to_pass: tuple[str, ...] = ()
    protect: tuple[str, ...] = ()
    setup: tuple[tuple[str, ...], ...] = ()
    readable: tuple[str, ...] = ()
    writable: bool = False
    image: str = ""
    test_patch: str = ""

    @property
    def required(self) -> tuple[str, ...]:
        """The tests that must pass, if the record names them."""
        return tuple(dict.fromkeys((*self.fail_to_pass, *self.pass_to_pass)))

    @property
    def files(self) -> tuple[str, ...]:
        """The files of tests that run: those of the record, or those that its tests name."""
        if self.tests:
            return tuple(dict.fromkeys(self.tests))
        named = (test_file(name) for name in self.required if "::" in name)
        return tuple(dict.fromkeys(named)) if self.runner in IN_PROCESS else ()

    @property
    def stages(self) -> tuple[str, ...]:
        """The files of tests that run in a process each, so that their order changes nothing."""
        are_files = all(path.endswith(".py") and "::" not in path for path in self.files)
        is_few = 1 < len(self.files) <= _MOST_STAGES
        return self.files if are_files and is_few and self.runner in IN_PROCESS else ()


class _NotJudged(Exception):
    """The machine or the repository is at fault, not the candidate."""


class RepoCheck(WholeTextCheck):
    """Passes a change to a repository if the repository's tests pass with it."""

    judged_by: ClassVar[int] = JUDGE + 1  # raised when the control became stricter
    is_jailed: ClassVar[bool] = True

    def __init__(self, settings: RepoSettings, limits: RunLimits = LIMITS) -> None:
        self.settings = settings
        self.limits = limits
        self._repository = Repository(settings.repository)
        tests = (*settings.tests, *settings.required)
        self.protection = Protection.of(tests, settings.protect)
        self.suite = MemberSuite(settings.stages) if settings.stages else None
        self._changes = functools.lru_cache(_READ)(self._read)

    @classmethod
    def of(cls, problem: Problem) -> RepoCheck:
        """The check of a problem; a UsageError says what is wrong."""
        return cls(settings_of(problem.check), LIMITS.with_(problem.check.get("limits", {})))

    def content(self) -> str:
        """The commit, and the interpreter that runs its tests."""
        return checksum(f"{self.settings.commit} {self.settings.image}")

    def key(self, text: str) -> str | None:
        """Candidates that make the same files are one candidate."""
        return f"repo:{self.identity(text)[:40]}"

    def identity(self, text: str) -> str:
        """A checksum of the files that it makes."""
        changes = self._changes(text)
        return checksum(text) if isinstance(changes, str) else changes.key

    def reading(self, text: str, verdict: Verdict) -> dict[str, str]:
        """How the candidate was read."""
        changes = self._changes(text)
        return {} if isinstance(changes, str) else {"read": changes.form}

    def refutation(self, text: str) -> str | None:
        """Why a candidate fails before any test runs: it does not apply, or touches tests."""
        changes = self._changes(text)
        return changes if isinstance(changes, str) else None

    def changes(self, text: str) -> Changes:
        """The files that a candidate makes. Raises UnreadableDiff if it cannot be applied."""
        changes = self._changes(text)
        if isinstance(changes, str):
            raise UnreadableDiff(changes)
        return changes

    def _read(self, text: str) -> Changes | str:
        """What a candidate makes of the commit, or why it fails."""
        with self._workspace() as workspace:
            try:
                changes = apply(read(text), workspace.files)
            except UnreadableDiff as exc:
                return f"does not apply: {exc}"
            except UnicodeEncodeError:
                return "does not apply: it has characters that no file can have"
            return self.protection.objection(changes, workspace.files) or changes

    def _workspace(self) -> Any:
        settings = self.settings
        name = (
            self._repository.folder,
            settings.commit,
            settings.setup,
            settings.image,
            settings.test_patch,
        )

        def make() -> Workspace:
            return Workspace(self._repository, settings.commit, settings.test_patch)

        return WORKSPACES.use(name, make)

    def missing(self) -> str:
        """What this machine lacks to run the tests, as far as one can see before; "" if nothing."""
        settings = self.settings
        if settings.image:
            return ""
        paths = frozenset(self._repository.entries(settings.commit))
        try:
            command = runner_command(settings.runner, settings.command, settings.files, paths)
        except NotInstalled as exc:
            return str(exc)
        return "" if settings.runner != "pytest" else _lacks_pytest(command.python)

    def worst_seconds(self) -> float:
        """How long one verification may run."""
        return 3 * self.limits.seconds

    def judge(self, text: str, pair: WorkerPair, seed: int = 0) -> Finding:
        """The finding on a candidate's text."""
        changes = self._changes(text)
        if isinstance(changes, str):
            return failed(changes)
        with self._workspace() as workspace:
            trial = _Trial(self, workspace, pair)
            try:
                finding = trial.finding(changes)
            except (_NotJudged, NotInstalled) as exc:
                finding = Finding(Verdict.BROKEN, str(exc))
            except UnreadableDiff as exc:  # it does not fit what the setup has made
                finding = failed(f"does not apply: {exc}")
            if not workspace.is_unchanged():
                workspace.ready = workspace.folder / "changed"  # so it is made anew
                finding = Finding(Verdict.BROKEN, "the files of the commit were changed")
        evidence = clean(finding.evidence) | {"isolation": trial.isolation}
        evidence |= {"stages": [stage.as_data() for stage in trial.stages]} if trial.stages else {}
        usage = Usage(seconds=trial.seconds)
        return replace(finding, reason=clean(finding.reason), evidence=evidence, usage=usage)


class _Trial:
    """The runs that judge one candidate."""

    def __init__(self, check: RepoCheck, workspace: Workspace, pair: WorkerPair) -> None:
        self._check = check
        self._settings = check.settings
        self._workspace = workspace
        self._pair = pair
        self._container = _container(check.settings, pair)
        self.stages: list[Stage] = []
        self.seconds = 0.0

    @property
    def isolation(self) -> str:
        """What confines the tests."""
        if self._container is not None:
            return str(self._container)
        return str(self._pair.tools.in_force)

    def finding(self, changes: Changes) -> Finding:
        """Run what is needed to decide."""
        self._set_up()
        before = self._before()
        results = Results()
        problem = self._tried(changes, before, results)
        return self._controlled(changes, results) if problem is None else problem

    def _tried(self, changes: Changes, before: Results | None, results: Results) -> Finding | None:
        """Run the tests, each file in turn or all at once; why the candidate fails, if it does."""
        suite = self._check.suite
        files = self._settings.files
        required = self._settings.required
        if suite is None:
            return self._run_once(changes, before, results, files, required)
        stages: list[tuple[int, Stage]] = []
        problem = None
        for number in suite.order(len(files)):
            file = files[number]
            started = self.seconds
            inside = [name for name in required if test_file(name) == file]
            own = None if before is None else before.of_file(file)
            problem = self._run_once(changes, own, results, (file,), inside)
            verdict = Verdict.PASSED if problem is None else Verdict.FAILED
            stages.append((number, Stage(file, verdict, self.seconds - started)))
            if problem is not None:
                break
        suite.note(stages)
        self.stages = [stage for _, stage in stages]
        missing = [name for name in required if name not in results.tests]
        if problem is None and missing:
            return failed("a test is missing", test=missing[0])
        return problem

    def _run_once(
        self,
        changes: Changes,
        before: Results | None,
        results: Results,
        files: Sequence[str],
        required: Sequence[str],
    ) -> Finding | None:
        """Run some files of tests in one process, and add what they show to the results."""
        started = time.monotonic()
        ran, found = self._run(changes, files, stops=True, required=required)
        self.seconds += time.monotonic() - started
        results.tests.update(found.tests)
        if self._check.suite is None:
            self._note_stages(found)
        problem = self._problem(ran, found, before, required)
        return problem or self._replacement(found)

    def _replacement(self, results: Results) -> Finding | None:
        """Whether the candidate replaces what tests run with, by code that is new in its file."""
        files = self._workspace.files
        for name, path in results.replaced.items():
            old = files.file(path).content if files.kind(path) == "file" else b""
            if name.rpartition(".")[2].encode() not in old:
                return failed(f"it replaces {name}, which tests run with")
        return None

    def _set_up(self) -> None:
        """Run the commands of `setup`, once for all candidates."""
        workspace = self._workspace
        with workspace.lock:
            if not self._settings.setup or workspace.facts.get("set up"):
                return
            workspace.set_up(self._run_setup)
            workspace.facts["set up"] = True

    def _run_setup(self, folder: Path) -> None:
        for argv in self._settings.setup:
            command = self._command("command", argv, ())
            ran, results = self._started(command, folder, writable=True, runner="command")
            if results.finished != 0:
                said = results.missing or _said(ran) or ran.problem
                raise _NotJudged(f"the setup {shown(list(argv))} failed: {said}")

    def _before(self) -> Results | None:
        """How the tests end on the unchanged commit, if the record does not name them."""
        settings = self._settings
        if settings.required or not (settings.runner in IN_PROCESS or _tells_tests(settings)):
            return None
        name = ("before", settings)
        with self._workspace.lock:
            known = self._workspace.facts.get(name)
            if known is None:
                ran, known = self._run(None, settings.files, stops=False)
                if known.finished is None:
                    said = ran.problem or _said(ran)
                    raise _NotJudged(f"the tests do not end on the unchanged commit: {said}")
                self._workspace.facts[name] = known
            assert isinstance(known, Results)
            return known

    def _command(self, runner: str, argv: Sequence[str], tests: Sequence[str]) -> RunnerCommand:
        if self._container is not None:
            return container_command(runner, argv, tests)
        return runner_command(runner, argv, tests, frozenset(self._workspace.files.paths))

    def _run(
        self,
        changes: Changes | None,
        files: Sequence[str],
        *,
        stops: bool,
        required: Sequence[str] = (),
        rewritten: Mapping[str, NewFile] | None = None,
    ) -> tuple[Ran, Results]:
        settings = self._settings
        command = self._command(settings.runner, settings.command, files)
        written = [path for path, file in changes.files.items() if file] if changes else []
        job = {**command.job, "stops": stops, "required": [*required], "written": written}
        writable = settings.writable or self._pair.tools.isolation.value == "unsafe"
        with self._workspace.copy(changes, writable=writable) as folder:
            for path, file in (rewritten or {}).items():
                write(folder, path, file, writable=writable)
            command = replace(command, job=job)
            return self._started(
                command, folder, writable=settings.writable, runner=settings.runner
            )

    def _started(
        self, command: RunnerCommand, folder: Path, *, writable: bool, runner: str
    ) -> tuple[Ran, Results]:
        secret = secrets.token_bytes(32)
        reads_results = self._settings.reads_results and runner == self._settings.runner
        if self._container is not None:
            ran = self._container.run(
                command.python,
                {"stops": False, "required": [], "written": [], **command.job},
                folder,
                secret=secret,
                writable=writable,
                limits=self._check.limits,
                reads_results=reads_results,
                is_called_off=self._pair.is_called_off,
            )
        else:
            ran = run_in_jail(
                self._pair.tools,
                command,
                folder,
                secret=secret,
                source=self._settings.repository,
                readable=self._settings.readable,
                writable=writable,
                limits=self._check.limits,
                reads_results=reads_results,
            )
        results = read_reports(ran.errors, secret)
        if results.missing:
            raise _NotJudged(f"not installed: {results.missing}")
        if ran.is_machines_fault:
            raise _NotJudged(ran.problem)
        if not results.started:
            raise _NotJudged(f"the tests could not start: {ran.problem or _said(ran)}")
        return ran, completed(results, runner, ran.printed, reads_results)

    def _note_stages(self, results: Results) -> None:
        failing = {
            test_file(name) for name, end in results.tests.items() if end.outcome == "failed"
        }
        for file, seconds in results.seconds_by_file().items():
            verdict = Verdict.FAILED if file in failing else Verdict.PASSED
            measured = seconds or self.seconds
            self.stages.append(Stage(file or self._settings.runner, verdict, measured))

    def _problem(
        self, ran: Ran, results: Results, before: Results | None, required: Sequence[str]
    ) -> Finding | None:
        """Why a candidate fails; None if it may pass."""
        names_tests = bool(self._settings.required)
        for name, end in results.tests.items():
            if end.outcome == "failed" and (not names_tests or name in required):
                return failed("tests failed", test=name, said=end.text or _said(ran))
        if results.broken and not names_tests:
            name, text = next(iter(results.broken.items()))
            return failed("tests cannot be loaded", test=name, said=text)
        if results.finished is None:
            return failed(ran.problem or "ended before its tests did", said=_said(ran))
        if results.finished and not names_tests and self._settings.runner not in IN_PROCESS:
            return failed("tests failed", exit_code=results.finished, said=_said(ran))
        for name, allowed in _wanted(required, before).items():
            there = results.tests.get(name)
            if there is None:
                return failed("a test is missing", test=name)
            if there.outcome not in allowed:
                return failed(f"a test was {there.outcome}", test=name)
        for file in {} if before is None else before.broken:
            if not any(test_file(name) == file for name in results.tests):
                return failed("a test is missing", test=file)
            if problem := self._vanished(file, results):
                return problem
        if not any(end.outcome == "passed" for end in results.tests.values()):
            return failed("no test has passed", said=_said(ran))
        return None

    def _vanished(self, file: str, results: Results) -> Finding | None:
        """Whether a test is missing or skipped, in a file that could not be loaded before.

        Only its text tells what should be there; so it is not asked where tests are selected.
        """
        files = self._workspace.files
        deciding = [path for path in files.paths if path.rpartition("/")[2] in _SELECTING]
        texts = [files.file(path).content for path in (file, *deciding) if files.kind(path)]
        texts.append(" ".join(self._settings.command[3:]).encode())
        if self._settings.runner != "pytest" or any(map(_SELECTS.search, texts)):
            return None
        ended: dict[str, set[str]] = {}
        for name, end in results.of_file(file).tests.items():
            function = name.partition("[")[0].rpartition("::")[2]
            ended.setdefault(function, set()).add(end.outcome)
        for function in sorted(control.collected(texts[0].decode("utf-8", "replace"))):
            if function not in ended:
                return failed("a test is missing", test=f"{file}::{function}")
            if ended[function] == {"skipped"}:
                return failed("a test was skipped", test=f"{file}::{function}")
        return None

    def _controlled(self, changes: Changes, results: Results) -> Finding:
        """Run the same tests once more, rewritten so that they must fail."""
        files: dict[str, NewFile] = {}
        names: dict[str, frozenset[str]] = {}
        for path in self._test_files(results):
            if path in changes.files:
                continue
            file = self._workspace.files.file(path)
            content = file.content.decode("utf-8", "replace")
            text, found = control.rewritten(path, content, self._workspace.files.paths)
            if found:
                names[path] = found
                files[path] = NewFile(text.encode("utf-8", "surrogateescape"), file.mode)
        passed = {name for name, end in results.tests.items() if end.outcome == "passed"}
        must_fail = {name for name in passed if name == WHOLE or control.is_rewritten(name, names)}
        evidence: dict[str, Any] = {"tests": len(passed), "control": len(must_fail) if files else 0}
        if not files or not must_fail:
            return Finding(Verdict.PASSED, "", evidence)
        started = time.monotonic()
        _, again = self._run(changes, self._settings.files, stops=False, rewritten=files)
        seconds = time.monotonic() - started
        self.seconds += seconds
        forged = sorted(
            name for name in must_fail if again.tests.get(name, _MISSING).outcome == "passed"
        )
        verdict = Verdict.FAILED if forged else Verdict.PASSED
        self.stages.append(Stage("control", verdict, seconds))
        if forged:
            return failed("forged results: tests pass that must fail", test=forged[0])
        return Finding(Verdict.PASSED, "", evidence)

    def _test_files(self, results: Results) -> list[str]:
        """The files of the tests that ran, as far as the commit has them.

        A command whose tests the record does not name may run any of them, or none.
        """
        settings = self._settings
        named = [test_file(name) for name in (*settings.files, *results.tests)]
        files = self._workspace.files
        found = [path for path in dict.fromkeys(named) if files.kind(path) == "file"]
        if found or settings.runner not in ("go", "cargo"):
            return found
        return [path for path in files.paths if path.endswith(("_test.go", ".rs"))]


_MISSING = TestEnd("missing")


def _container(settings: RepoSettings, pair: WorkerPair) -> Container | None:
    """Where the tests run, if the check names an image."""
    if not settings.image:
        return None
    if pair.isolation not in CONTAINERS:
        raise UsageError(
            f"the check names the image {shown(settings.image)}: give --isolation podman, docker or"
            " gvisor"
        )
    return Container(pair.isolation, settings.image)


def _lacks_pytest(python: str) -> str:
    try:
        done = subprocess.run(
            [
                python,
                "-I",
                "-c",
                "import importlib.util as u, sys; sys.exit(not u.find_spec('pytest'))",
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_ASKING_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{python} does not answer: {error}"
    return f"{python} has no pytest" if done.returncode == 1 else ""


def _wanted(required: Sequence[str], before: Results | None) -> dict[str, tuple[str, ...]]:
    """How each test may end that must be there."""
    if before is None:
        return {name: ("passed",) for name in required}
    skipped = ("passed", "skipped", "expected")
    return {
        name: skipped if end.outcome in ("skipped", "expected") else ("passed",)
        for name, end in before.tests.items()
    }


def _tells_tests(settings: RepoSettings) -> bool:
    return settings.reads_results or settings.runner in ("go", "cargo")


def _said(ran: Ran) -> str:
    """The end of what a run printed."""
    return ran.said[-900:]


def outside(record: Mapping[str, Any]) -> str:
    """Which file or folder a check reads that is not below the current one; "" if none."""
    repository = record.get("repository")
    readable = record.get("readable", [])
    command = record.get("command", [])
    named = [repository, *(readable if isinstance(readable, list) else [])]
    here = [Path.cwd().resolve(), Path(process_folder()).resolve()]
    for path in named:
        if isinstance(path, str) and not _is_below(Path(path).resolve(), here):
            return f"reads {shown(path)}, which is not below the current folder"
    program = command[0] if isinstance(command, list) and command else ""
    if isinstance(program, str) and "/" in program and not record.get("image"):
        # An interpreter of an environment is a link to one elsewhere: its place counts.
        place = Path(os.path.abspath(program))
        is_environment = (place.parent.parent / "pyvenv.cfg").is_file()
        real = place.parent.resolve() / place.name if is_environment else place.resolve()
        if not _is_below(real, here):
            return f"runs {shown(program)}, which is not below the current folder"
    if isinstance(repository, str) and os.path.isfile(os.path.join(repository, ".git")):
        try:
            objects = Repository(repository).common_folder
        except UsageError:
            return ""  # the parser says what is wrong
        if not _is_below(objects, here):
            return f"reads {shown(str(objects))}, which is not below the current folder"
    return ""


def _is_below(path: Path, places: Sequence[Path]) -> bool:
    return any(path.is_relative_to(place) for place in (*places, *map(Path, _SYSTEM)))


def settings_of(record: Mapping[str, Any]) -> RepoSettings:
    """The settings in a record; a UsageError names the field that is wrong."""
    lists = {name: _texts(record, name) for name in _LISTS}
    repository = _text(record, "repository")
    runner = _text(record, "runner", "pytest")
    if runner not in RUNNERS:
        raise UsageError(f"runner must be one of {', '.join(RUNNERS)}, not {shown(runner)}")
    if runner == "command" and not lists["command"]:
        raise UsageError('command is missing; "runner": "command" needs it')
    if runner == "go" and lists["command"] and lists["command"][1:2] != ("test",):
        raise UsageError(f"command must begin with go test, not {shown(list(lists['command']))}")
    results = _text(record, "results", "")
    if results and (results != "junit" or runner in IN_PROCESS):
        raise UsageError('results can only be "junit", for go, cargo, npm and command')
    if results and not any("{results}" in part for part in lists["command"]):
        raise UsageError(f"command must contain {{results}}, the path of the file {RESULTS}")
    for path in (*lists["tests"], *lists["protect"]):
        if path.startswith(("/", "-")) or ".." in path.split("/"):
            raise UsageError(f"{shown(path)} is no path below the repository")
    for path in lists["readable"]:
        if not os.path.exists(path):
            raise UsageError(f"readable names {shown(path)}, which does not exist")
    writable = record.get("writable", False)
    if not isinstance(writable, bool):
        raise UsageError(f"writable must be true or false, not {shown(writable)}")
    if record.get("image") is not None:
        check_image(_text(record, "image"))
    found = Repository(repository)
    settings = RepoSettings(
        repository=str(found.folder),
        commit=found.commit(_text(record, "commit", "HEAD")),
        runner=runner,
        reads_results=bool(results),
        setup=_setup(record),
        writable=writable,
        image=_text(record, "image", ""),
        test_patch=_text(record, "test_patch", ""),
        **lists,
    )
    if runner in IN_PROCESS:
        python_of(runner, settings.command)
    return settings


def _text(record: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = record.get(name, default)
    if not isinstance(value, str) or "\0" in value:
        said = "is missing" if value is None else f"must be a text, not {shown(value)}"
        raise UsageError(f"{name} {said}")
    return value


def _texts(record: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = record.get(name, [])
    is_list = isinstance(value, list) and len(value) <= _MOST_NAMES
    if not is_list or not all(
        isinstance(part, str) and part and "\0" not in part for part in value
    ):
        raise UsageError(f"{name} must be a list of texts, not {shown(value)}")
    return tuple(value)


def _setup(record: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    value = record.get("setup", [])
    if not isinstance(value, list):
        raise UsageError(f"setup must be a list of commands, not {shown(value)}")
    commands = value if all(isinstance(each, list) for each in value) else [value]
    return tuple(_texts({"setup": each}, "setup") for each in commands if each)
