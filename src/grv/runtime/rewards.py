"""Verdicts on the completions of a training step: all of them, in one pool of jailed workers.

Nothing is chosen: every completion gets its own true verdict, so that gradients are not biased. It
costs less than one process for each completion because equal texts are verified once, completions
that certainly fail are refuted without being run, those with the key of a failure fail with it, and
workers stay warm from step to step.
"""

from __future__ import annotations

import atexit
import json
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from ..backends.callables import in_thread
from ..backends.generators.chat import transcript
from ..backends.protocols import Draft, ParkedCall, Problem
from ..backends.verifiers.options import Verification
from ..backends.verifiers.pool import CheckVerifier
from ..backends.verifiers.verdict_store import VerdictStore
from ..core.errors import UsageError, VerifierError
from ..core.values import Verdict
from ..files import parse_json, shown
from ..text import checksum

Check = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model wrote: its text, the prompt, and the check that decides."""

    text: str
    check: Check
    prompt: str = ""


@dataclass
class StepVerifier:
    """Verifies the completions of training steps. It can be pickled; workers start at first use.

    Args:
        verification: where and how checks are run.
        verdicts: a file that remembers verdicts, as `grv verify --cache`; a step that is repeated
            after a stop then runs nothing again that it has recorded.
        deadline: the seconds for one step. What has no verdict by then is broken.
        judged: whether checks that err may decide. Their verdicts are not verified.
    """

    verification: Verification = field(default_factory=Verification)
    verdicts: str | Path | None = None
    deadline: float = math.inf
    judged: bool = False

    def __post_init__(self) -> None:
        if math.isnan(self.deadline) or self.deadline <= 0:
            raise UsageError(f"the deadline must be above 0 seconds, not {self.deadline}")
        self._lock = threading.Lock()
        self._verifier: CheckVerifier | None = None
        self._store: VerdictStore | None = None

    def __getstate__(self) -> dict[str, Any]:
        names = ("verification", "verdicts", "deadline", "judged")
        return {name: getattr(self, name) for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()

    async def verify(self, completions: Sequence[Completion]) -> list[Verdict]:
        """One verdict per completion, in their order."""
        places: dict[tuple[str, str], list[int]] = {}
        problems: dict[str, Problem] = {}
        for place, each in enumerate(completions):
            problem = _problem(each)
            problems[problem.id] = problem
            places.setdefault((problem.id, each.text), []).append(place)
        verifier = await in_thread(lambda: self._prepared([*problems.values()]))
        verdicts = [Verdict.BROKEN] * len(completions)

        async def one(problem: Problem, text: str) -> None:
            verdict = await _verdict(verifier, problem, text)
            for place in places[problem.id, text]:
                verdicts[place] = verdict

        with anyio.move_on_after(self.deadline):
            async with anyio.create_task_group() as group:
                for name, text in places:
                    group.start_soon(one, problems[name], text)
        return verdicts

    def verify_now(self, completions: Sequence[Completion]) -> list[Verdict]:
        """As `verify`, for callers without an event loop in their thread."""
        return anyio.run(self.verify, completions)

    def _prepared(self, problems: Sequence[Problem]) -> CheckVerifier:
        """The verifier, with every check parsed; a UsageError if one cannot be used."""
        with self._lock:
            if self._verifier is None:
                if self.verdicts is not None:
                    self._store = VerdictStore(Path(self.verdicts))
                self._verifier = self.verification.verifier(self._store)
                atexit.register(self.close)
            verifier = self._verifier
        for problem in problems:
            if verifier.prepare(problem).erring is not None and not self.judged:
                raise UsageError(
                    f"check of kind {problem.check.get('kind')}: it errs, so its verdicts are"
                    " judged, not verified; give judged=True to train on them"
                )
        return verifier

    def close(self) -> None:
        """Stop the workers. They start again if they are needed."""
        atexit.unregister(self.close)
        with self._lock:
            if self._verifier is not None:
                self._verifier.close()
            if self._store is not None:
                self._store.close()
            self._verifier = None
            self._store = None


async def _verdict(verifier: CheckVerifier, problem: Problem, text: str) -> Verdict:
    try:
        return (await verifier.verify(problem, Draft(text))).verdict
    except ParkedCall:
        raise UsageError("a check of kind human takes too long for a training step") from None
    except VerifierError as error:
        if error.fault == "stop":
            raise
        return Verdict.BROKEN


def _problem(completion: Completion) -> Problem:
    """The problem of a completion; equal prompts and checks have equal ids."""
    check = dict(completion.check)
    try:
        text = json.dumps([completion.prompt, check], sort_keys=True)
    except (TypeError, ValueError) as error:
        raise UsageError(f"a check is not JSON data: {error}") from None
    return Problem(checksum(text)[:16], completion.prompt, check)


def check_in(given: object, where: str) -> Check:
    """A check of a dataset: a record, or better its JSON text.

    Tables of a dataset give all rows the same fields, and fill them with None.
    """
    parsed = given
    if isinstance(given, str):
        try:
            parsed = parse_json(given)
        except ValueError as error:
            raise UsageError(f"{where}: a check must be JSON: {error}") from None
    if not isinstance(parsed, Mapping):
        raise UsageError(f"{where}: a check must be a record or its JSON text, not {shown(given)}")
    return {name: value for name, value in parsed.items() if value is not None}


def joined(checks: Sequence[Check]) -> Check:
    """One check that passes if all of them pass."""
    return checks[0] if len(checks) == 1 else {"kind": "all", "checks": [*checks]}


def text_of(said: object) -> str:
    """A completion as text: as it is, or the last message of the assistant, unchanged."""
    if isinstance(said, str):
        return said
    messages = said if isinstance(said, Sequence) else ()
    for message in reversed(messages):
        if isinstance(message, Mapping) and message.get("role") == "assistant":
            content = message.get("content") or ""  # a message that only calls tools has none
            return content if isinstance(content, str) else transcript([message])
    raise UsageError(f"a completion must be a text or messages of an assistant, not {shown(said)}")


def prompt_of(asked: object) -> str:
    """A prompt as one text."""
    if isinstance(asked, str):
        return asked
    return transcript([*asked]) if isinstance(asked, Sequence) and asked else ""
