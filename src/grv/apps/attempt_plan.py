"""How attempts at a task are searched for: from the options of `grv attempt` to a search."""

from __future__ import annotations

import dataclasses
import math
import os
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, aclosing, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..backends.by_name import named, scorer
from ..backends.generators.command import Agent, CommandGenerator
from ..backends.generators.containers import AgentContainer
from ..backends.git import GitError, UserRepository, branch_part
from ..backends.http.web import without_secrets
from ..backends.models import Generators, Models
from ..backends.protocols import Problem, Scorer
from ..backends.scorers.auto import AUTO, AutoScorer
from ..backends.verifiers.pool import CheckVerifier
from ..backends.verifiers.repo.check import RepoCheck
from ..core.errors import UsageError
from ..core.limits import Limits
from ..core.pace import Pace
from ..core.values import Costs, Measured
from ..files import error_line, read_bytes
from ..learning.trained.refits import trained_scorer
from ..ledger.entries import Call, Entry
from ..ledger.opening import open_ledger
from ..ledger.tables import TableLedger
from ..ledger.view import SearchView
from ..options import did_you_mean
from ..parsing import parse_budget
from ..runtime.attempts import (
    ACCEPTED,
    AttemptLimit,
    AttemptRow,
    LimitedGenerator,
    attempt_numbers,
    attempt_rows,
    mean_dollars,
)
from ..runtime.calls import Caller
from ..runtime.config import ALONE, GeneratorConfig, SearchConfig, apart
from ..runtime.executor import Backends
from ..runtime.options import Calls
from ..runtime.prices import Meter, Prices, Server
from ..runtime.solution import UNFINISHED, Solution
from ..runtime.solve import SolveRun
from .attempt_lines import AttemptLines, Tell
from .console import check_outputs
from .options.attempts import AttemptOptions
from .options.live import TRAINED, ledger_files, pricing_of
from .options.portfolio import policies_of

_SHARE = 0.2  # of the budget, that one attempt may cost at most
_USUAL_DOLLARS = 0.5  # of an attempt, if nothing else is known
_NEARLY_FREE = 1e-6  # a verification without a price, in attempts
_LONGEST_TASK = 1_000_000  # characters
_LONGEST_CALL = 1e8  # seconds; attempts and verifications have limits of their own
_AT_ONCE = 2  # calls
_NAMED = 3  # files in a message
_COMMAND = "command:"  # how the generator of grv solve begins
_BRANCHES = "grv"
_QUESTION = "The tests pass. Should this diff be applied?"
# Programs whose results are collected test by test, by the words a command begins with.
_RUNNERS = (
    (("pytest",), "pytest"),
    (("py.test",), "pytest"),
    (("python", "-m", "pytest"), "pytest"),
    (("python3", "-m", "pytest"), "pytest"),
    (("python", "-m", "unittest"), "unittest"),
    (("python3", "-m", "unittest"), "unittest"),
    (("go", "test"), "go"),
    (("cargo", "test"), "cargo"),
    (("npm", "test"), "npm"),
    (("npm", "run"), "npm"),
)


@dataclass(frozen=True)
class AttemptResult:
    """What came of a task.

    Attributes:
        task: its name.
        outcome: solved, out of budget, finished, exhausted, failed or unfinished.
        message: why, if it was not solved.
        rows: the attempts, in their order.
        accepted: the number of the accepted attempt, from 1; None if there is none.
        diff: its diff; empty if there is none.
        branch: the branch that has it; empty if it was applied, or there is none.
        applied: whether it was applied.
        dollars: what all attempts cost, as far as it is known.
        unknown: how many attempts did not say what they cost.
        folders: those of attempts that were kept.
        ledger: the ledger that has everything.
    """

    task: str
    outcome: str
    message: str
    rows: tuple[AttemptRow, ...]
    accepted: int | None
    diff: str
    branch: str
    applied: bool
    dollars: float
    unknown: int
    folders: tuple[str, ...]
    ledger: str

    def as_data(self) -> dict[str, Any]:
        """The result as JSON data."""
        data = dataclasses.asdict(self)
        del data["rows"]
        return data | {"attempts": [row.as_data() for row in self.rows]}


@contextmanager
def prepared(options: AttemptOptions, tell: Tell) -> Iterator[AttemptPlan]:
    """A plan that can be run. Every mistake that can be known before is found here."""
    _check_money(options)
    repository = UserRepository.around(options.repository)
    commit = _commit(repository, options)
    name, text = _task(options.task)
    _check_branches(repository, name)
    agents = _agents(options, None)
    check = _check(options, repository, commit)
    problem = Problem(name, text, _with_people(check) if options.people else check)
    place = options.ledger or _own_ledger(repository)
    check_outputs(
        (options.out, *ledger_files(place)), (options.task, options.prices), continued=True
    )
    prices = Prices.load(options.prices) if options.prices is not None else Prices()
    with ExitStack() as stack:
        # The check is made of the command line: naming a repository and folders there is consent.
        verification = dataclasses.replace(options.verification, allow_commands=True)
        verifier = stack.enter_context(verification.verifier())
        verifier.prepare(problem)
        if missing := RepoCheck.of(Problem(name, text, check)).missing():
            raise UsageError(f"--verify {options.verify}: {missing}{_other_python(check)}")
        ledger = stack.enter_context(closing(open_ledger(place)))
        plan = AttemptPlan(options, repository, commit, problem, agents, ledger, place, tell)
        plan.configure(verifier, prices)
        if check["runner"] in ("command", "npm"):
            tell(
                "only the exit status of --verify decides, and an attempt's code may end with 0"
                " early; pytest, unittest, go test and cargo test tell each test"
            )
        yield plan


def _commit(repository: UserRepository, options: AttemptOptions) -> str:
    """The commit that attempts start from, if all that the tree has is in it."""
    commit = repository.commit(options.commit or "HEAD")
    if options.commit is None and (changed := repository.changed()):
        raise UsageError(
            f"{_listed(changed)} changed since the last commit: commit or stash that, or start from"
            " the last commit without it, with --commit HEAD"
        )
    if modules := repository.submodules(commit):
        raise UsageError(
            f"{_listed(modules)}: this repository has submodules, which copies for attempts would"
            " lack; grv attempt does not work here"
        )
    return commit


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"


def _task(path: str) -> tuple[str, str]:
    """The name of the task and its text."""
    try:
        text = read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: a task must be UTF-8: {error_line(error)}") from None
    if not text.strip() or len(text) > _LONGEST_TASK:
        raise UsageError(f"{path}: a task has between 1 and {_LONGEST_TASK:,} characters")
    return branch_part(Path(path).stem), text


def _check_branches(repository: UserRepository, name: str) -> None:
    """Refuse a name whose branches cannot be made: a branch cannot be a folder of branches."""
    for branch in (_BRANCHES, f"{_BRANCHES}/{name}"):
        if repository.has(f"refs/heads/{branch}") is not None:
            raise UsageError(f"there is a branch {branch}, so {branch}/1 cannot be made: rename it")


def _agents(options: AttemptOptions, most: float | None) -> dict[str, Agent]:
    """The agents by name. Names differ; a program that is not there is refused.

    `most` is what an attempt may cost; agents that take a limit are told.
    """
    agents: dict[str, Agent] = {}
    for text in options.agent:
        agent = Agent.of(text, most)
        program = agent.command[0]
        if "/" in program and options.agent_image is None:
            program = os.path.abspath(program)
        if options.agent_image is None and shutil.which(program) is None:
            bare = text.removeprefix(_COMMAND)
            hint = f"; write the command itself: {bare}" if bare != text else ""
            raise UsageError(
                f"--agent {text}: {agent.command[0]} is not installed, or no program{hint}"
            )
        name = agent.name
        number = 1
        while name in agents:
            number += 1
            name = f"{agent.name}-{number}"
        agents[name] = dataclasses.replace(agent, name=name, command=(program, *agent.command[1:]))
    return agents


def _check_money(options: AttemptOptions) -> None:
    for name, amount in (("--budget", options.budget), ("--most", options.most)):
        if amount is not None and not amount > 0:
            raise UsageError(f"{name} {amount:g}: give dollars above 0, as in 5usd")


def _most(options: AttemptOptions) -> float | None:
    """The most that one attempt may cost, in dollars; None if there is no limit."""
    if options.most is not None:
        return float(options.most)
    return _SHARE * options.budget if math.isfinite(options.budget) else None


def _check(options: AttemptOptions, repository: UserRepository, commit: str) -> dict[str, Any]:
    """The check that decides: the command."""
    try:
        words = shlex.split(options.verify)
    except ValueError as error:
        raise UsageError(f"--verify {options.verify}: {error}") from None
    if not words:
        raise UsageError("--verify: the command is empty")
    check: dict[str, Any] = {
        "kind": "repo",
        "repository": repository.folder,
        "commit": commit,
        "runner": runner_of(words),
        "command": words,
        "limits": {"seconds": options.verify_timeout},
    }
    if options.protect:
        check["protect"] = list(options.protect)
    if options.readable:
        check["readable"] = [os.path.abspath(folder) for folder in options.readable]
    if options.image is not None:
        check["image"] = options.image
    return check


def _with_people(check: dict[str, Any]) -> dict[str, Any]:
    """The command, and then a person."""
    return {"kind": "first", "checks": [check, {"kind": "human", "question": _QUESTION}]}


def _other_python(check: dict[str, Any]) -> str:
    """What to say if the interpreter that runs grv is not that of the project."""
    if check["runner"] != "pytest" or "/" in check["command"][0]:
        return ""
    return "; name the project's interpreter, as in '.venv/bin/python -m pytest'"


def runner_of(words: Sequence[str]) -> str:
    """What collects the results of a command.

    >>> runner_of(["pytest", "-q"]), runner_of(["go", "test", "./..."]), runner_of(["make"])
    ('pytest', 'go', 'command')
    """
    plain = (os.path.basename(words[0]), *words[1:])
    return next((name for start, name in _RUNNERS if plain[: len(start)] == start), "command")


def _own_ledger(repository: UserRepository) -> str:
    """A ledger in the private folder of the repository, which no commit can contain."""
    folder = os.path.join(repository.private_folder, "grv")
    os.makedirs(folder, exist_ok=True)
    return os.path.join(folder, "attempts.ledger")


class AttemptPlan:
    """The attempts at one task: how they are searched for, and what came of them.

    Attributes:
        agents: by name, without the limit on what an attempt may cost.
        caller: makes the calls.
        solution: what the search has found; None before its end.
        show: is told in a few words what happens now.
    """

    def __init__(
        self,
        options: AttemptOptions,
        repository: UserRepository,
        commit: str,
        problem: Problem,
        agents: Mapping[str, Agent],
        ledger: TableLedger,
        place: str,
        tell: Tell,
    ) -> None:
        self.options = options
        self.repository = repository
        self.commit = commit
        self.problem = problem
        self.agents = agents
        self.ledger = ledger
        self.place = place
        self.caller = Caller(Calls(concurrency=_AT_ONCE, attempts=2, call_timeout=_LONGEST_CALL))
        self.caller.complaints.tell = tell
        self.caller.complaints.tells_broken = False  # `AttemptLines` does
        self.solution: Solution | None = None
        self.show: Tell = lambda line: None
        self._tell = tell
        self._programs: list[CommandGenerator] = []
        self._before: Sequence[Entry] = ()

    def configure(self, verifier: CheckVerifier, prices: Prices) -> None:
        """Make what the search needs."""
        options = self.options
        policy = policies_of(Generators(), options.policy, options.score)[ALONE]
        most = _most(options)
        guesses = self._guesses()
        names = [*self.agents] if len(self.agents) > 1 else [ALONE]
        limits = Limits(
            budget=float(options.budget),
            pace=Pace(deadline=options.deadline),
            most=None if most is None else Costs(most, most * _NEARLY_FREE),
        )
        container = None
        if options.agent_image is not None:
            container = AgentContainer.here(options.agent_image, options.agent_env)
        elif options.agent_env:
            raise UsageError("--agent-env is for agents in containers: give --agent-image")
        generators = {}
        limit = AttemptLimit(options.attempts)
        limited = _agents(options, most)
        for name, agent in zip(names, self.agents.values(), strict=True):
            program = CommandGenerator(
                limited[agent.name],
                seconds=options.attempt_timeout,
                keep=options.keep,
                container=container,
            )
            self._programs.append(program)
            backends = Backends(
                LimitedGenerator(program, limit),
                self._scorer(agent),
                verifier,
                verifier.key,
                refutation=verifier.refutation,
            )
            guess = guesses[agent.name]
            meter = Meter(
                prices,
                agent.model,
                Server(agent.provider),
                self._scoring_meters(agent, prices),
                unknown=guess if most is None else most,
            )
            generators[name] = GeneratorConfig(
                backends,
                policy,
                Measured(guess, guess * _NEARLY_FREE),
                meter,
                about=self._about(agent),
                pricing=meter,
            )
        if names == [ALONE]:
            (only,) = self.agents.values()
            self.config = SearchConfig.alone(generators[ALONE], limits, self._about(only))
        else:
            self.config = SearchConfig(generators, apart(limits))
        self.search_id = self.config.search_id(self.problem)
        self._before = self.ledger.read(self.search_id)
        limit.count(len(SearchView(self._before).made))

    def _about(self, agent: Agent) -> dict[str, Any]:
        """What an agent's attempts depend on, for the ledger: without keys.

        What an attempt may cost is no part of it, so that a budget can be raised.
        """
        command = [without_secrets(part) for part in agent.command]
        return {"generator": f"agent:{agent.name}", "command": command, "score": self._score}

    @property
    def _score(self) -> str:
        return named(self.options.score)

    def _models(self, agent: Agent) -> Models:
        options = self.options
        return Models(
            generator=f"command:{agent.name}", score=options.score, score_url=options.score_url
        )

    def _scorer(self, agent: Agent) -> Scorer:
        models = self._models(agent)
        first, second = models.scores
        if second is not None:
            raise UsageError("--score: a cascade does not work with attempts")
        if first == AUTO:
            return AutoScorer(None)
        if first.startswith(TRAINED):
            return trained_scorer(first.removeprefix(TRAINED), own=self.place)
        return scorer(models.whole_score(first), base_url=models.judge_url(first))

    def _scoring_meters(self, agent: Agent, prices: Prices) -> Mapping[Call, Meter]:
        return pricing_of(self._models(agent), prices).scorers

    def _guesses(self) -> dict[str, float]:
        """What an attempt of each agent costs, as a first guess: as given, or as before."""
        given: dict[str, float] = {}
        for text in self.options.price:
            name, _, amount = text.rpartition("=")
            if name not in self.agents:
                hint = did_you_mean(name, list(self.agents))
                raise UsageError(f"--price {text}: there is no agent {name!r} here{hint}")
            try:
                given[name] = float(parse_budget(amount))
            except UsageError as error:
                raise UsageError(f"--price {text}: {error}") from None
            if not 0 < given[name] < math.inf:
                raise UsageError(f"--price {text}: give dollars above 0")
        means = mean_dollars(self.ledger)
        return {
            name: given.get(name) or means.get(f"agent:{name}") or _USUAL_DOLLARS
            for name in self.agents
        }

    async def search(self) -> Solution:
        """Run the search to its end."""
        numbers = attempt_numbers(self._before)
        lines = AttemptLines(self.search_id, self._names, numbers, self._tell, self.show)
        stop = self.ledger.listen(lines)
        try:
            run = SolveRun(self.config, self.ledger, self.caller)
            async with aclosing(run.solutions([self.problem])) as solutions:
                async for solution in solutions:
                    return solution
            raise AssertionError("a search without an end")
        finally:
            stop()

    @property
    def _names(self) -> dict[str, str]:
        """The names of the agents by those of the generators."""
        return dict(zip(self.config.generators, self.agents, strict=True))

    async def aclose(self) -> None:
        """Close the connections of the backends."""
        await self.config.aclose()

    def result(self) -> AttemptResult:
        """What came of the attempts so far. Their diffs become branches; one may be applied."""
        rows = attempt_rows(self.ledger.read(self.search_id), self.config.meters, self._names)
        accepted = None
        if self.solution is not None and self.solution.verified:
            accepted = next((row for row in rows if row.verdict == ACCEPTED), None)
        is_applied = False
        message = "" if self.solution is None else self.solution.message
        if accepted is not None and self.options.apply:
            try:
                self.repository.apply(accepted.diff)
                is_applied = True
            except GitError as error:
                message = f"not applied, your files have changed since: {error}"
        kept = [self._kept(row, is_applied=is_applied and row is accepted) for row in rows]
        final = next((row for row in kept if accepted and row.number == accepted.number), None)
        known = [row.dollars for row in kept if row.dollars is not None]
        return AttemptResult(
            task=self.problem.id,
            outcome=UNFINISHED if self.solution is None else self.solution.outcome,
            message=message,
            rows=tuple(kept),
            accepted=None if final is None else final.number,
            diff="" if final is None else final.diff,
            branch="" if final is None else final.branch,
            applied=is_applied,
            dollars=sum(known, 0.0),
            unknown=len(kept) - len(known),
            folders=tuple(str(folder) for each in self._programs for folder in each.kept),
            ledger=self.place,
        )

    def _kept(self, row: AttemptRow, *, is_applied: bool) -> AttemptRow:
        """The attempt, with the branch that was made of its diff."""
        if not row.diff or is_applied:
            return row
        branch = f"{_BRANCHES}/{self.problem.id}/{row.number}"
        message = f"{self.problem.id}: attempt {row.number}, by {row.agent}"
        try:
            name = self.repository.keep(row.diff, self.commit, branch, message)
        except GitError as error:
            return dataclasses.replace(row, reason=f"{row.reason}; no branch: {error}".strip("; "))
        return dataclasses.replace(row, branch=name)
