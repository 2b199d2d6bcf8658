"""Candidates that an agent makes in Harbor: `harbor:AGENT`, or `harbor:AGENT:MODEL`.

The problem's check is of kind `harbor` and names the task. Each candidate is a trial of its own:
`harbor trial start`, without Harbor's verification. The candidate is the diff between the working
folder of the image and the one that the agent left, and its cost is what Harbor says. A program of
our own does that (harbor_trial.py), which runs as `command:` does: with the user's rights, within a
time limit, and it ends with everything that it has started.
"""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from ...core.errors import GeneratorError, UsageError
from ..protocols import Draft, Problem
from ..verifiers.harbor import settings_of
from .command import SECONDS, Agent, CommandGenerator

_PROGRAM = str(Path(__file__).with_name("harbor_trial.py"))
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]*")


class HarborGenerator:
    """Runs an agent of Harbor for each candidate.

    Args:
        spec: the agent as Harbor names it, and after a colon its model.
        seconds: the time limit of a trial.
    """

    batch: int | None = 1

    def __init__(self, spec: str, *, seconds: float = SECONDS) -> None:
        name, _, model = spec.partition(":")
        if not _NAME.fullmatch(name) or (model and not _MODEL.fullmatch(model)):
            raise UsageError(f"harbor:{spec}: name an agent, as in harbor:claude-code:MODEL")
        self._agent = Agent(f"harbor:{spec}", (name, model), model=model)
        self._seconds = seconds
        self._runs: dict[str, CommandGenerator] = {}

    def __repr__(self) -> str:
        return f"HarborGenerator({self._agent.name!r})"

    @property
    def notices(self) -> list[str]:
        """What the user should hear once."""
        return [line for run in self._runs.values() for line in run.notices]

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> list[Draft]:
        """The candidate of one trial."""
        return await self._run(problem).generate(problem, n, first=first)

    def _run(self, problem: Problem) -> CommandGenerator:
        """What runs the trials of a task."""
        if problem.id not in self._runs:
            if shutil.which("harbor") is None:
                message = "harbor is not installed: pip install harbor, with Python 3.12 or newer"
                raise GeneratorError(message, backend=self._agent.name, final=True)
            try:
                settings = settings_of(problem.check)
            except UsageError as error:
                message = f"{self._agent.name}: problem {problem.id} is no task of Harbor: {error}"
                raise GeneratorError(message, backend=self._agent.name, final=True) from error
            task = str(Path(settings.task).resolve())
            words = (task, settings.image, settings.workdir, *self._agent.command)
            agent = replace(self._agent, command=(sys.executable, "-I", _PROGRAM, *words))
            self._runs[problem.id] = CommandGenerator(agent, seconds=self._seconds)
        return self._runs[problem.id]
