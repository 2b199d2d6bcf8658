"""Verify with the tests of a Harbor task: checks of kind "harbor".

`{"kind": "harbor", "task": "tasks/fix-parser", "image": "fix-parser", "workdir": "/app"}`. The
candidate is a diff, or whole files, of the task's working folder. It is applied outside; then
`tests/test.sh` runs in a new container of the image, in which no agent ever ran. The reward is read
outside, after the container is gone: 1 passes, less fails. The same tests first run on the
unchanged folder, which must not pass. So it is known which file the tests write, and a candidate
that writes the other one fails.
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import shutil
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

from ...core.errors import UsageError
from ...core.values import Verdict
from ...files import is_number, parse_json, shown
from ...own_code import digest_of_files
from ...text import checksum
from ..protocols import Finding, Problem, Usage
from ..sandbox.limits import CONTAINERS, Isolation, RunLimits
from .checks import WholeTextCheck
from .command import process_folder
from .programs.findings import clean
from .repo.changes import Changes, NewFile, apply
from .repo.containers import RUNTIMES, check_image, ending_option, engine_of, why_not
from .repo.diff_lines import UnreadableDiff
from .repo.diffs import read
from .repo.workspace import write
from .worker_pair import WorkerPair

LIMITS = RunLimits(seconds=600.0, memory_mb=4096, output_mb=16.0, files_mb=1024, threads=1024)
_REWARDS = ("reward.json", "reward.txt")  # the first one that is there counts
_LARGEST_REWARD = 1 << 16  # bytes
_KEPT = 4_000  # characters at the end of an output, for evidence
_NOT_STARTED = (125, 126, 127)
_GRACE = 60.0  # seconds for the start and the end of a container
_TICK = 0.05
# What an installer in `test.sh` needs; the rest is dropped.
_CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID")


@dataclass(frozen=True)
class HarborSettings:
    """The record of a check.

    Attributes:
        task: the folder of the task.
        image: the image of its environment.
        workdir: the folder in the image that candidates change.
        network: whether the tests may use the network, as `test.sh` does that installs packages.
    """

    task: str
    image: str
    workdir: str = "/app"
    network: bool = False


class NotJudged(Exception):
    """There is no verdict, and the candidate is not the reason."""


class HarborCheck(WholeTextCheck):
    """Passes changes with which the tests of a Harbor task give the reward 1."""

    judged_by: ClassVar[int] = 1
    is_limited: ClassVar[bool] = True

    def __init__(self, settings: HarborSettings, limits: RunLimits = LIMITS) -> None:
        self.settings = settings
        self.limits = limits

    @classmethod
    def of(cls, problem: Problem) -> HarborCheck:
        """The check of a problem; a UsageError says what is wrong."""
        return cls(settings_of(problem.check), LIMITS.with_(problem.check.get("limits", {})))

    def content(self) -> str:
        """The tests, and the name of the image."""
        files = [str(path) for path in sorted(_tests(self.settings).rglob("*")) if path.is_file()]
        return checksum(f"{digest_of_files(files)} {self.settings.image}")

    def refutation(self, text: str) -> str | None:
        """Why a candidate fails before any test runs: it is no diff."""
        try:
            read(text)
        except (UnreadableDiff, UnicodeEncodeError) as exc:
            return f"does not apply: {exc}"
        return None

    def worst_seconds(self) -> float:
        """How long one verification may run."""
        return 2 * self.limits.seconds

    def judge(self, text: str, pair: WorkerPair, seed: int = 0) -> Finding:
        """The finding on a candidate's text."""
        isolation = pair.isolation
        if isolation not in CONTAINERS:
            raise UsageError(
                "checks of kind harbor run in containers: give --isolation podman, docker or gvisor"
            )
        if problem := why_not(isolation):
            raise UsageError(f"--isolation {isolation.value}: {problem}")
        started = time.monotonic()
        try:
            finding = self._finding(text, _Tests(self, isolation, pair.is_called_off))
        except NotJudged as exc:
            finding = Finding(Verdict.BROKEN, clean(str(exc)))
        evidence = {**clean(finding.evidence), "isolation": _in_force(self.settings, isolation)}
        usage = Usage(seconds=time.monotonic() - started)
        return Finding(finding.verdict, finding.reason, evidence, usage)

    def _finding(self, text: str, tests: _Tests) -> Finding:
        with _unchanged(self.settings, tests) as base:
            try:
                changes = apply(read(text), FolderFiles(base.folder))
            except (UnreadableDiff, UnicodeEncodeError) as exc:
                return Finding(Verdict.FAILED, f"does not apply: {exc}")
            outcome = tests.run(base.folder, changes)
            wrote = base.wrote
        said = {"stdout": outcome.said} if outcome.said else {}
        if outcome.problem:
            return Finding(Verdict.FAILED, outcome.problem, said)
        others = [name for name in outcome.wrote if name != wrote]
        if others:
            why = f"the tests write {wrote}, and this run wrote {', '.join(others)}"
            return Finding(Verdict.FAILED, "forged reward", {**said, "why": why})
        if outcome.reward is None:
            return Finding(Verdict.FAILED, outcome.missing, said)
        verdict = Verdict.PASSED if outcome.reward >= 1 else Verdict.FAILED
        return Finding(verdict, f"reward {outcome.reward:g}", {**said, "reward": outcome.reward})


def settings_of(record: Mapping[str, Any]) -> HarborSettings:
    """The settings in a record; a UsageError says what is wrong."""
    for name in ("task", "image"):
        if not isinstance(record.get(name), str) or not record[name]:
            raise UsageError(f"{name} must be a text, not {shown(record.get(name))}")
    check_image(record["image"])
    workdir = record.get("workdir", "/app")
    if not _is_folder(workdir):
        raise UsageError(f"workdir must be a folder of the image, as /app, not {shown(workdir)}")
    network = record.get("network", False)
    if not isinstance(network, bool):
        raise UsageError(f"network must be true or false, not {shown(network)}")
    settings = HarborSettings(record["task"], record["image"], workdir, network)
    script = _tests(settings) / "test.sh"
    if not script.is_file() or script.is_symlink():
        raise UsageError(f"task: {shown(record['task'])} has no tests/test.sh")
    return settings


def outside(record: Mapping[str, Any]) -> str:
    """What a check does outside the sandbox, for the error that asks the user to allow it."""
    more = " with the network" if record.get("network") is True else ""
    return f"runs the tests of {shown(record.get('task'))} in a container{more}"


def _is_folder(value: object) -> bool:
    if not isinstance(value, str) or not value.startswith("/") or value == "/":
        return False
    parts = PurePosixPath(value).parts
    return ".." not in parts and not any(sign in value for sign in (":", ",", "\0", "\n"))


def _tests(settings: HarborSettings) -> Path:
    return Path(settings.task).resolve() / "tests"


def _in_force(settings: HarborSettings, isolation: Isolation) -> str:
    network = "with network" if settings.network else "no network"
    return f"{isolation.value}: {network}, few capabilities, no new privileges, limits"


class FolderFiles:
    """The files of a folder, for `apply`. Links are not followed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def kind(self, path: str) -> str:
        """What is at a path: "file", "link", "folder", or "" for nothing."""
        place = self._folder
        for part in path.split("/"):
            if place.is_symlink():
                return ""
            place = place / part
        try:
            mode = place.lstat().st_mode
        except OSError:
            return ""
        if stat.S_ISLNK(mode):
            return "link"
        return "folder" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "link"

    def file(self, path: str) -> NewFile:
        """A file of the folder."""
        descriptor = os.open(self._folder / path, os.O_RDONLY | os.O_NOFOLLOW)
        with open(descriptor, "rb") as handle:
            mode = 0o755 if os.fstat(descriptor).st_mode & 0o100 else 0o644
            return NewFile(handle.read(), mode)


@dataclass(frozen=True)
class RewardRun:
    """What a run of the tests left.

    Attributes:
        reward: the reward; None if there is none.
        missing: why there is none.
        wrote: the files of rewards that it wrote.
        problem: why it was ended; "" if it ended by itself.
        said: the end of what it printed.
    """

    reward: float | None = None
    missing: str = ""
    wrote: tuple[str, ...] = ()
    problem: str = ""
    said: str = ""


@dataclass(frozen=True)
class _Base:
    """The unchanged working folder of an image, and the file of rewards that the tests write."""

    folder: Path
    wrote: str


_bases: dict[tuple[HarborSettings, str, Isolation], _Base] = {}
_making = threading.Lock()


@contextlib.contextmanager
def _unchanged(settings: HarborSettings, tests: _Tests) -> Iterator[_Base]:
    """The working folder as the image has it. It is copied, and its tests run, once."""
    name = (settings, tests.digest, tests.isolation)
    with _making:
        base = _bases.get(name)
        if base is None or not base.folder.is_dir():
            folder = Path(tempfile.mkdtemp(prefix="harbor-", dir=process_folder())) / "base"
            tests.copy_out(folder)
            outcome = tests.run(folder, None)
            if outcome.problem or outcome.reward is None or len(outcome.wrote) != 1:
                why = outcome.problem or outcome.missing or "they write two files of rewards"
                said = outcome.said.strip().splitlines()
                told = f": {said[-1]}" if said else ""
                raise NotJudged(f"the tests do not work on the unchanged folder: {why}{told}")
            if outcome.reward >= 1:
                raise NotJudged("the tests pass on the unchanged folder, so they judge nothing")
            base = _Base(folder, outcome.wrote[0])
            _bases[name] = base
    yield base


class _Tests:
    """Runs the tests of a task in containers."""

    def __init__(
        self, check: HarborCheck, isolation: Isolation, is_called_off: threading.Event | None
    ) -> None:
        self._settings = check.settings
        self._limits = check.limits
        self._is_called_off = is_called_off
        self.isolation = isolation
        self.digest = check.content()

    def copy_out(self, target: Path) -> None:
        """Copy the working folder of the image."""
        engine = engine_of(self.isolation)
        made = _asked([engine, "create", "--pull=never", self._settings.image, "/bin/true"])
        container = made.strip().splitlines()[-1] if made.strip() else ""
        try:
            _asked([engine, "cp", f"{container}:{self._settings.workdir}", str(target)])
        finally:
            with contextlib.suppress(NotJudged):
                _asked([engine, "rm", "--force", container])

    def run(self, base: Path, changes: Changes | None) -> RewardRun:
        """The tests on a copy of the folder with some changes; the reward, read outside."""
        with tempfile.TemporaryDirectory(
            prefix="trial-", dir=process_folder(), ignore_cleanup_errors=True
        ) as place:
            folder = Path(place) / "work"
            shutil.copytree(base, folder, symlinks=True)
            for path, file in ({} if changes is None else changes.files).items():
                write(folder, path, file, writable=True)
            logs = Path(place) / "logs"
            logs.mkdir()
            problem, said = self._run(folder, logs)
            return _read_reward(logs, problem, said)

    def command_line(
        self, folder: Path, logs: Path, name: str, runtime: tuple[str, ...] = ()
    ) -> list[str]:
        """The command that runs the tests in a new container."""
        memory = int(self._limits.memory_mb)
        threads = int(self._limits.threads)
        settings = self._settings
        options = [
            "--rm",
            f"--name={name}",
            "--pull=never",
            "--cap-drop=ALL",
            *(f"--cap-add={each}" for each in _CAPABILITIES),
            "--security-opt=no-new-privileges",
            f"--memory={memory}m",
            f"--memory-swap={memory}m",
            f"--pids-limit={threads}",
            "--ulimit=nofile=1024:1024",
            f"--ulimit=nproc={threads}:{threads}",
            "--ulimit=core=0:0",
            ending_option(self.isolation, self._limits),
            "--hostname=grv",
            f"--volume={folder}:{settings.workdir}:rw",
            f"--volume={_tests(settings)}:/tests:ro",
            f"--volume={logs}:/logs/verifier:rw",
            f"--workdir={settings.workdir}",
            "--entrypoint=",
        ]
        if not settings.network:
            options.append("--network=none")
        script = ("/bin/bash", "/tests/test.sh")
        return [engine_of(self.isolation), "run", *runtime, *options, settings.image, *script]

    def _run(self, folder: Path, logs: Path) -> tuple[str, str]:
        """Why the run was ended, and what it said."""
        code = 0
        problem = said = ""
        for runtime in RUNTIMES[self.isolation]:
            name = f"grv-{secrets.token_hex(8)}"
            code, problem, said = self._started(
                self.command_line(folder, logs, name, runtime), name
            )
            if problem or code not in _NOT_STARTED or any(logs.iterdir()):
                return problem, said
        lines = said.strip().splitlines()
        raise NotJudged(f"the container does not start: {lines[-1] if lines else code}")

    def _started(self, command: list[str], name: str) -> tuple[int, str, str]:
        deadline = time.monotonic() + self._limits.seconds + _GRACE
        problem = ""
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                while process.poll() is None and not problem:
                    if time.monotonic() > deadline:
                        problem = "timeout"
                    elif self._is_called_off is not None and self._is_called_off.is_set():
                        raise NotJudged("called off")
                    elif os.fstat(output.fileno()).st_size > self._limits.output_mb * (1 << 20):
                        problem = "output limit"
                    else:
                        time.sleep(_TICK)
            finally:
                if process.poll() is None:
                    with contextlib.suppress(NotJudged):
                        _asked([engine_of(self.isolation), "rm", "--force", name])
                    process.kill()
                process.wait()
            size = os.fstat(output.fileno()).st_size
            output.seek(max(0, size - _KEPT))
            said = output.read().decode("utf-8", "replace")
        return process.returncode, problem, said


def _asked(command: list[str]) -> str:
    """What a command prints."""
    try:
        ran = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_GRACE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotJudged(f"{command[0]} does not answer") from error
    if ran.returncode:
        lines = ran.stderr.strip().splitlines()
        raise NotJudged(f"{command[0]} {command[1]}: {lines[-1] if lines else 'it fails'}")
    return ran.stdout


def _read_reward(logs: Path, problem: str, said: str) -> RewardRun:
    """The reward in a folder that a container wrote to. Nothing there is trusted."""
    wrote = tuple(name for name in _REWARDS if os.path.lexists(logs / name))
    make = functools.partial(RewardRun, wrote=wrote, problem=problem, said=said)
    if not wrote:
        return make(missing="the tests wrote no reward")
    try:
        descriptor = os.open(logs / wrote[0], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return make(missing="the reward is no file")
    with open(descriptor, "rb") as handle:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return make(missing="the reward is no file")
        content = handle.read(_LARGEST_REWARD)
    try:
        value: Any = parse_json(content.decode("utf-8").strip(), finite=True)
    except ValueError:
        return make(missing="the reward is no number")
    if isinstance(value, Mapping):
        only = next(iter(value.values())) if len(value) == 1 else None
        value = value.get("reward", only)
    if not is_number(value):
        return make(missing="the reward is no number")
    return make(reward=float(value))
