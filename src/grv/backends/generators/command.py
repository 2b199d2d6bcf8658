"""Candidates that a program makes: `command:PROGRAM ARGUMENTS`, and coding agents, `agent:NAME`.

The program works in a fresh copy of the problem's repository if its check is of kind `repo`, and
otherwise in an empty folder. It gets:

    standard input      the task
    GRV_TASK            a file with the task
    GRV_COST_FILE       a file that it may write: {"cost_usd": 0.12}
    GRV_ANSWER          a file that it may write: the candidate, if there is no repository
    GRV_PROBLEM         the problem's id
    GRV_ATTEMPT         the number of the candidate, from 1

The candidate is the diff of the tree; without a repository it is the file GRV_ANSWER or else what
the program prints. Exit status 0 means done, 1 that there is no candidate, anything else that it
broke. In its arguments `{}` is the path of the file with the task, and `{task}` is its text.

The program runs with the user's rights, so a specification runs nothing by itself: the command line
must name it, or allow the job file to. When it ends, runs out of time or is cancelled, and also if
grv is killed, everything that it started is killed (guard.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import selectors
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio

from ...core.errors import GeneratorError, UsageError
from ...files import is_number
from ..callables import in_thread
from ..git import GitError, UserRepository
from ..http.secrets import Secrets, names_secret
from ..protocols import Draft, Problem, Usage
from ..sandbox.start import NOT_STARTED, UMASK, notice_children
from ..verifiers.checks import records_in
from ..verifiers.repo.git import Repository
from .containers import FILES, AgentContainer
from .recipes import RECIPES, Recipe, RunReport, recipe_named
from .run_folders import RunFolder, Source, kept_folder, run_folder

SECONDS = 1800.0
_LONGEST_OUTPUT = 4_000_000  # bytes at the end of an output that are kept
_LONGEST_LOG = 20_000  # characters of a run's log in a ledger
_LONGEST_COST_FILE = 100_000
_LARGEST = 1e12  # dollars or tokens of a run
_TICK_SECONDS = 0.2
_END_SECONDS = 10.0  # for the guard to end everything
_MOST_BROKEN = 3  # runs in a row without a candidate, after which an agent is given up
_GUARD = str(Path(__file__).with_name("guard.py"))
_TOKENS = ("prompt_tokens", "completion_tokens", "cached_tokens", "cache_write_tokens")
_NAMED = re.compile(r"([A-Za-z][\w.-]*)=")
_PLACEHOLDER = re.compile(r"\{(?:file|report|scratch|task)?\}")


@dataclass(frozen=True)
class Agent:
    """A program that makes candidates.

    Attributes:
        name: what it is called in bills and branches.
        command: the program and its arguments, with placeholders.
        report: where its output says what a run cost.
        set: variables of its environment.
        unset: variables that it must not see.
        model: the model whose price list holds, if the command names one.
        provider: who charges for it, as genai-prices names it.
    """

    name: str
    command: tuple[str, ...]
    report: RunReport = field(default_factory=RunReport)
    set: tuple[tuple[str, str], ...] = ()
    unset: tuple[str, ...] = ()
    model: str = ""
    provider: str = ""

    @classmethod
    def of(cls, text: str, most: float | None = None) -> Agent:
        """The agent that a user names: a recipe, a recipe with a model, or a command.

        A name of its own may stand in front, as in `fast=claude:haiku`. `most` is what one run may
        cost, in dollars; agents that take a limit are told.

        >>> Agent.of("claude:haiku").model, Agent.of("./agent.sh --fast").command
        ('haiku', ('./agent.sh', '--fast'))
        """
        if given := _NAMED.match(text):
            return replace(cls.of(text[given.end() :], most), name=given[1])
        name, _, model = text.strip().partition(":")
        if name in RECIPES:
            return cls.of_recipe(RECIPES[name], model, most)
        agent = cls.of_command(text)
        if len(agent.command) == 1 and "/" not in text and shutil.which(text) is None:
            recipe_named(name)  # says which there are
        return agent

    @classmethod
    def of_command(cls, text: str) -> Agent:
        """The agent that a command line is, split as a shell does it; no shell runs it."""
        try:
            command = tuple(shlex.split(text))
        except ValueError as error:
            raise UsageError(f"{text}: {error}") from None
        if not command or not command[0] or "\0" in text:
            raise UsageError("the command of an agent is empty, or has a null character")
        return cls(os.path.basename(command[0]), command)

    @classmethod
    def of_recipe(cls, recipe: Recipe, model: str = "", most: float | None = None) -> Agent:
        """The agent of a recipe."""
        if model and not recipe.model:
            raise UsageError(f"{recipe.name} takes no model here; set it in its environment")
        return cls(
            f"{recipe.name}:{model}" if model else recipe.name,
            recipe.arguments(model, most),
            recipe.report,
            tuple(recipe.set.items()),
            recipe.unset,
            model,
            recipe.provider,
        )


@dataclass(frozen=True)
class RunLog:
    """How a run of a program ended.

    Attributes:
        status: its exit status; None if its time was over.
        output: the end of its standard output.
        errors: the end of its standard error.
        printed: the number of bytes of the whole output.
        seconds: how long it ran.
    """

    status: int | None
    output: bytes
    errors: bytes
    printed: int
    seconds: float


class CommandGenerator:
    r"""Runs a program for each candidate, such as a coding agent in a fresh copy of a repository.

    Choose it for candidates that are diffs. It runs with your rights, as the program does when you
    start it yourself; only the verification is confined.

    Args:
        agent: a command as a list or a text, the name of a recipe such as "claude" or
            "claude:haiku", or an `Agent`.
        seconds: the time limit of a run.
        most: the most dollars that a run may cost, for agents that take a limit.
        keep: whether to keep the folders of the runs.
        container: the container that the program runs in; None runs it on this machine.

    Attributes:
        batch: the candidates of a call: one.
        notices: what the user should hear once.
        kept: the folders that were kept.

    Examples:
        >>> import grv
        >>> solution = grv.solve_now(
        ...     "Print 4.",
        ...     generator=grv.generators.Command(["echo", "4"]),
        ...     scorer=lambda p, t: 0.0,
        ...     verifier=lambda p, t: t == "4\n",
        ...     budget=50,
        ... )
        >>> solution.verified
        True
    """

    batch: int | None = 1

    def __init__(
        self,
        agent: Agent | str | Sequence[str],
        *,
        seconds: float = SECONDS,
        most: float | None = None,
        keep: bool = False,
        container: AgentContainer | None = None,
    ) -> None:
        if isinstance(agent, str):
            agent = Agent.of(agent, most)
        elif not isinstance(agent, Agent):
            if not agent or not all(isinstance(part, str) and "\0" not in part for part in agent):
                raise UsageError(f"a command is a list of texts, not {agent!r}")
            agent = Agent(os.path.basename(agent[0]), tuple(agent))
        if not seconds > 0:
            raise UsageError(f"seconds must be positive, not {seconds}")
        self.agent = agent
        self.seconds = seconds
        self.keep = keep
        self.container = container
        self.notices: list[str] = []
        self.kept: list[Path] = []
        self._broken = 0  # runs in a row without a candidate

    def __repr__(self) -> str:
        return f"CommandGenerator({self.agent.name!r})"

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> list[Draft]:
        """The candidate of one run; none if several runs in a row had none."""
        if self._broken >= _MOST_BROKEN:
            return []
        run = _Run(self, problem, first + 1)
        try:
            draft = await in_thread(run.draft)
        except asyncio.CancelledError:
            run.stop()
            with anyio.CancelScope(shield=True):
                await in_thread(run.wait)
            raise
        finally:
            self.kept += run.kept
        self._broken = self._broken + 1 if draft.broken else 0
        if self._broken == _MOST_BROKEN:
            self.notices.append(
                f"{self.agent.name}: no candidate {_MOST_BROKEN} times in a row, so it is not"
                f" asked again ({draft.broken})"
            )
        return [draft]


class _Run:
    """One run of a program, in a thread. `stop` ends it from another one."""

    def __init__(self, generator: CommandGenerator, problem: Problem, number: int) -> None:
        self._agent = generator.agent
        self._seconds = generator.seconds
        self._keep = generator.keep
        self._container = generator.container
        self._problem = problem
        self._number = number
        self._stopped = threading.Event()
        self._done = threading.Event()
        self.kept: list[Path] = []

    def stop(self) -> None:
        self._stopped.set()

    def wait(self) -> None:
        self._done.wait(_END_SECONDS + 2 * _TICK_SECONDS)

    def draft(self) -> Draft:
        """The candidate, with what it cost and the log of the run."""
        try:
            source = source_of(self._problem)
            with run_folder(source, keep=self._keep) as place:
                if self._keep:
                    self.kept.append(kept_folder(place))
                return self._draft(place)
        except GitError as error:
            message = f"{self._agent.name}: {error}"
            raise GeneratorError(message, backend=self._agent.name, final=True) from error
        except OSError as error:
            message = f"{self._agent.name}: {error.filename or 'folder'}: {error.strerror}"
            raise GeneratorError(message, backend=self._agent.name, final=True) from error
        finally:
            self._done.set()

    def _draft(self, place: RunFolder) -> Draft:
        task = self._problem.prompt
        place.file("task.md").write_text(task, encoding="utf-8", errors="surrogateescape")
        log = self._log(place)
        output = log.output.decode("utf-8", "replace")
        usage, said = self._usage(place, output)
        usage = replace(usage, seconds=log.seconds)
        errors = log.errors.decode("utf-8", "replace")
        secrets = _own_secrets()
        both = [part.strip() for part in (errors, said) if part.strip()]
        kept = _shortened(secrets.hide(_shortened("\n".join(both), 2 * _LONGEST_LOG)), _LONGEST_LOG)
        broken = self._broken(log, kept, place)
        text = ""
        if not broken:
            try:
                text = self._text(place, log)
            except GitError as error:
                broken = f"{self._agent.name}: {error}"
        if not broken and not text.strip():
            broken = f"{self._agent.name}: it changed nothing"
        if secrets.has_key(text):
            broken = f"{self._agent.name}: its candidate contains a key of your environment"
        return Draft("" if broken else text, None, usage, broken, log=kept)

    def _text(self, place: RunFolder, log: RunLog) -> str:
        if place.source is not None:
            return place.diff()
        answer = _content(place.file("answer"), _LONGEST_OUTPUT)
        return (log.output if answer is None else answer).decode("utf-8", "replace")

    def _broken(self, log: RunLog, kept: str, place: RunFolder) -> str:
        """Why there is no candidate; empty if there may be one."""
        name = self._agent.name
        last = kept.rstrip().rpartition("\n")[2][-200:]
        after = f": {last}" if last else ""
        match log.status:
            case None:
                return f"{name}: not done within {self._seconds:g} s"
            case 0:
                if log.printed > _LONGEST_OUTPUT and place.source is None:
                    return f"{name}: it printed more than {_LONGEST_OUTPUT:,} bytes"
                return ""
            case 1:
                return f"{name}: no candidate{after}"
            case status if status == NOT_STARTED:
                return f"{name}: it could not start{after}"
            case status:
                return f"{name}: exit status {status}{after}"

    def _usage(self, place: RunFolder, output: str) -> tuple[Usage, str]:
        """What the run cost: by the file that it may write, or else by its report."""
        report = _content(place.file("report.json"), _LONGEST_OUTPUT) or b""
        usage, said = self._agent.report.read(output, report.decode("utf-8", "replace"))
        own = _cost_file(place.file("cost.json"))
        return (usage if own is None else own), said

    def _log(self, place: RunFolder) -> RunLog:
        """Run the program until it ends, its time is over or it is stopped."""
        alive, ours = os.pipe()
        command = self._command(place)
        started = time.monotonic()
        notice_children()
        try:
            with place.file("task.md").open("rb") as stdin:
                process = subprocess.Popen(
                    [sys.executable, "-I", "-S", _GUARD, str(alive), *command],
                    stdin=stdin,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    cwd=place.tree,
                    env=self._environment() | self._own_variables(str(place.file(""))),
                    pass_fds=[alive],
                    start_new_session=True,
                    umask=UMASK,
                )
        finally:
            os.close(alive)
        with process, _closed_once(ours) as end, _Output(process) as output:
            status: int | None = None
            while True:
                output.read(_TICK_SECONDS)
                if process.poll() is not None:
                    status = process.returncode
                    break
                is_late = time.monotonic() - started > self._seconds
                if is_late or self._stopped.is_set():
                    end()
                    _reap(process)
                    break
            output.read(0.0)
        seconds = time.monotonic() - started
        return RunLog(status, output.stdout, output.stderr, output.printed, seconds)

    def _command(self, place: RunFolder) -> list[str]:
        """The command to start: the program itself, or its container."""
        if self._container is None:
            return self._filled(str(place.file("")))
        objects = None
        if place.source is not None:
            objects = UserRepository(place.source.repository).object_folder
        own = self._own_variables(FILES)
        self._container.mark(place.folder)
        return self._container.command_line(place.folder, objects, self._filled(FILES), own)

    def _filled(self, files: str) -> list[str]:
        """The command with its placeholders replaced. What they stand for is not looked into.

        `files` is the folder with the task, as the program sees it.
        """
        values = {
            "{}": f"{files}/task.md",
            "{file}": f"{files}/task.md",
            "{report}": f"{files}/report.json",
            "{scratch}": files,
            "{task}": self._problem.prompt.replace("\0", ""),
        }
        return [
            _PLACEHOLDER.sub(lambda found: values[found[0]], part) for part in self._agent.command
        ]

    def _environment(self) -> dict[str, str]:
        """The variables of this process that the program gets."""
        return {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("GIT_") and name not in ("PWD", *self._agent.unset)
        }

    def _own_variables(self, files: str) -> dict[str, str]:
        """The variables that grv sets; `files` is the folder with the task."""
        return {
            **dict(self._agent.set),
            "GRV_TASK": f"{files}/task.md",
            "GRV_COST_FILE": f"{files}/cost.json",
            "GRV_ANSWER": f"{files}/answer",
            "GRV_PROBLEM": self._problem.id,
            "GRV_ATTEMPT": str(self._number),
        }


class _Output:
    """The ends of what a process prints, read while it runs."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self._pipes = (process.stdout.fileno(), process.stderr.fileno())
        self._kept = {pipe: bytearray() for pipe in self._pipes}
        self._waiting = selectors.DefaultSelector()
        self.printed = 0
        for pipe in self._pipes:
            os.set_blocking(pipe, False)
            self._waiting.register(pipe, selectors.EVENT_READ)

    def __enter__(self) -> _Output:
        return self

    def __exit__(self, *error: object) -> None:
        self._waiting.close()

    @property
    def stdout(self) -> bytes:
        return bytes(self._kept[self._pipes[0]])

    @property
    def stderr(self) -> bytes:
        return bytes(self._kept[self._pipes[1]])

    def read(self, seconds: float) -> None:
        """Read what is there, and wait for it at most so long."""
        if not self._waiting.get_map():
            time.sleep(seconds)
            return
        while ready := self._waiting.select(seconds):
            for key, _ in ready:
                part = os.read(key.fd, 1 << 16)
                if not part:
                    self._waiting.unregister(key.fd)
                if key.fd == self._pipes[0]:
                    self.printed += len(part)
                kept = self._kept[key.fd]
                kept += part
                del kept[: max(0, len(kept) - _LONGEST_OUTPUT)]
            seconds = 0.0
            if not self._waiting.get_map():
                return


@contextmanager
def _closed_once(descriptor: int) -> Iterator[Callable[[], None]]:
    """A function that closes a descriptor; it is closed at the end in any case."""
    is_open = True

    def close() -> None:
        nonlocal is_open
        if is_open:
            is_open = False
            os.close(descriptor)

    try:
        yield close
    finally:
        close()


def _reap(process: subprocess.Popen[bytes]) -> None:
    """Wait until the guard has ended everything; if it does not, end the guard."""
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def source_of(problem: Problem) -> Source | None:
    """The repository and the commit that a problem's check is about; None if it is about none."""
    for record in records_in(problem.check):
        match record:
            case {"kind": "repo", "repository": str(folder), "commit": str(commit)}:
                repository = UserRepository.around(folder)
                found = repository.commit(commit)
                Repository(repository.folder).entries(found)  # refuses too many before any is made
                return Source(repository.folder, found)
    return None


def _content(path: Path, longest: int) -> bytes | None:
    """The content of a file that a program wrote; None if there is no such file.

    A link is not followed, and a pipe is not waited for: the program may have been in a container.
    """
    how = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with open(os.open(path, how), "rb") as file:
            is_regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            return file.read(longest) if is_regular else None
    except OSError:
        return None


def _cost_file(path: Path) -> Usage | None:
    """What a program says that it cost; None if it says nothing that makes sense."""
    try:
        data = json.loads(_content(path, _LONGEST_COST_FILE) or b"")
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, Mapping):
        return None
    known = {name: data.get(name) for name in ("cost_usd", *_TOKENS)}
    amounts = {name: n for name, n in known.items() if is_number(n) and 0 <= n < _LARGEST}
    if not amounts:
        return None
    tokens = {name: int(amounts[name]) for name in _TOKENS if name in amounts}
    return Usage(dollars=amounts.get("cost_usd"), **tokens)


def _own_secrets() -> Secrets:
    """The keys in the environment, which the program has too."""
    named = (value for name, value in os.environ.items() if _is_secret(name))
    return Secrets.of(None, *named)


def _is_secret(name: str) -> bool:
    return names_secret(name) or name.upper().endswith("_TOKEN")


def _shortened(text: str, longest: int) -> str:
    """The text, or its end: what matters of a log is how it ended."""
    return text if len(text) <= longest else f"...\n{text[-longest:]}"
