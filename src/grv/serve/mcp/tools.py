"""The tools: what each takes, what it does, what it returns. Nothing here knows the protocol.

The arguments of a tool are those of a request to `grv serve`, and are parsed by the same functions.
They are data: they choose among what the server's file allows, and cannot name addresses, commands,
files or code.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import anyio

from ...backends.generators.no_candidates import NoCandidates
from ...backends.protocols import Finding
from ...backends.verifiers.checks import DATA_KINDS
from ...ledger.tables import TableLedger
from ...runtime.budget import ACCOUNT_SPENT, TOTAL_SPENT
from ...runtime.solution import FAILED, Solution
from ...text import checksum
from ..clients import Client
from ..completions.answers import evidence_of, found_of, text_of
from ..completions.chat_dialect import CHAT, TEXT
from ..completions.requests import GRV, LONGEST_WAIT, CompletionRequest, parse_request
from ..door import parse_body
from ..errors import ApiError, wrong
from ..fields import number, only, record
from ..profiles import Profile, profile_named
from ..searches import RunningSearch, Searches
from ..states import state_of
from ..threads import ClientThreads
from .given import finding_on_given, parse_given, without_given

_LEAST_PAUSE = 0.2  # seconds between two reports of progress
_THREADS = 4  # that parse arguments or read the ledger
_SAMPLING = ("temperature", "top_p", "max_tokens", "seed", "stop")
_SOLVE = ("problem", "model", *GRV, *_SAMPLING)
_VERIFY = ("candidate", "check", "problem", "model", "budget", "deadline")
_STATUS = ("search",)
_ATTEMPT = ("task", "name", "budget", "deadline")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_LONGEST_TASK = 100_000  # characters
_LONGEST_EVIDENCE = 4_000  # characters of a text in evidence

Report = Callable[[float, str], Awaitable[None]]


@dataclass(frozen=True)
class AttemptCall:
    """A call of the tool `attempt`.

    Attributes:
        name: the name of the task, for branches.
        task: its text.
        budget: the most dollars that it may cost.
        deadline: seconds after which it ends.
        client: the name of the client that calls.
    """

    name: str
    task: str
    budget: float
    deadline: float
    client: str = ""


class AttemptRunner(Protocol):
    """Has agents work on the server's repository, which the operator named."""

    @property
    def budget(self) -> float:
        """The most dollars of one call."""

    async def __call__(self, call: AttemptCall, report: Report) -> dict[str, Any]:
        """What came of a task, as JSON data."""


Properties = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class ToolCard:
    """A tool as clients list it.

    Attributes:
        name: its name.
        title: a few words for people.
        description: what it does, for models.
        properties: its arguments, as JSON Schema.
        required: those that every call needs.
        only_reads: whether it spends nothing and changes nothing.
    """

    name: str
    title: str
    description: str
    properties: Properties
    required: tuple[str, ...] = ()
    only_reads: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        """The schema of the arguments."""
        return {
            "type": "object",
            "properties": dict(self.properties),
            "required": [*self.required],
            "additionalProperties": False,
        }


_CHECK = {
    "type": ["object", "string"],
    "description": "How the answer is verified: a check, as in"
    ' {"kind": "math", "answer": "42"} or {"kind": "function", "entry_point": "f", "tests":'
    ' [{"args": [2], "expected": 4}]}, or the name of a check of this server. Kinds: '
    + ", ".join(DATA_KINDS)
    + ".",
}
_BUDGET = {
    "type": "number",
    "description": "The most that the call may cost; the server's limit if it is missing.",
}
_DEADLINE = {
    "type": "number",
    "description": "Seconds after which the call returns, however far it is. The same call"
    " continues it later, and pays for nothing twice.",
}
_MODEL = {"type": "string", "description": "Which of the server's models; see the tool status."}


_ATTEMPT_CARD = ToolCard(
    "attempt",
    "Have agents change the repository until its tests pass",
    "Have the coding agents of this server try a task in its repository. Each attempt works in a"
    " fresh copy; the tests as they were before decide, in a sandbox. The accepted diff is returned"
    " and left as a branch; nothing is applied.",
    {
        "task": {"type": "string", "description": "What to do, whole, for an agent."},
        "name": {
            "type": "string",
            "pattern": f"^{_NAME.pattern}$",
            "description": "A name for the branches; the same name and task continue.",
        },
        "budget": {"type": "number", "description": "The most dollars that it may cost."},
        "deadline": {"type": "number", "description": "Seconds after which it ends."},
    },
    ("task",),
)


def cards(profiles: Mapping[str, Profile]) -> list[ToolCard]:
    """The tools of a client that may use these profiles."""
    solving = {name: each for name, each in profiles.items() if _makes_candidates(each)}
    named = sorted({name for profile in profiles.values() for name in profile.checks})
    checks = f" Checks of this server: {', '.join(named)}." if named else ""
    needs_model = ("model",) if len(profiles) > 1 else ()
    solve = ToolCard(
        "solve",
        "Find a verified answer",
        "Have candidates generated and verified until one passes or the budget is spent, and"
        " return the answer that passed, with the bill. Without a verified answer, answer is"
        " null." + checks,
        {
            "problem": {"type": "string", "description": "The prompt, whole."},
            "check": _CHECK,
            "model": _MODEL,
            "budget": _BUDGET,
            "deadline": _DEADLINE,
            "policy": {"type": "string", "description": "The policy, as in fixed(8, 2)."},
            "require": {"type": "string", "enum": ["verified", "judged", "best"]},
            "temperature": {"type": "number"},
            "max_tokens": {"type": "integer"},
            "fresh": {"type": "boolean", "description": "Do not continue an equal call."},
        },
        ("problem", *needs_model),
    )
    return [
        ToolCard(
            "verify",
            "Verify a candidate",
            "Run a check on a candidate in a sandbox and return the verdict: passed, failed (with"
            " the evidence) or broken. The verdict comes from the run, not from the text." + checks,
            {
                "candidate": {"type": "string", "description": "The whole text to verify."},
                "check": _CHECK,
                "problem": {"type": "string", "description": "What was asked, if it matters."},
                "model": _MODEL,
                "budget": _BUDGET,
                "deadline": _DEADLINE,
            },
            ("candidate", *needs_model),
        ),
        *([solve] if solving else []),
        ToolCard(
            "status",
            "What was spent, and how far a search is",
            "Without arguments: models, checks, and what you have spent of your budget. With the"
            " id of a search: its state, its answer and its bill.",
            {"search": {"type": "string", "description": "The id that another tool returned."}},
            only_reads=True,
        ),
    ]


def _makes_candidates(profile: Profile) -> bool:
    return not isinstance(profile.backends.generator, NoCandidates)


@dataclass
class Tools:
    """Runs the tools of all clients.

    Args:
        profiles: the profiles of the server, by name.
        searches: runs searches, and knows the budgets.
        reader: the ledger, for reading.
        total: the most that all clients together may spend.
        longest: the most bytes of the arguments of a call.
        known: whether clients need a key. Then they learn no addresses.
        attempts: runs agents; None if the operator named no repository.
        version: that of grv, which clients are told.
    """

    profiles: Mapping[str, Profile]
    searches: Searches
    reader: TableLedger
    total: float = math.inf
    longest: int = 4 << 20
    known: bool = False
    attempts: AttemptRunner | None = None
    version: str = ""
    _threads: ClientThreads = field(init=False)

    def __post_init__(self) -> None:
        self._threads = ClientThreads(_THREADS, known=self.known)

    def allowed(self, client: Client) -> dict[str, Profile]:
        """The profiles that a client may use."""
        own = client.profiles
        return {name: p for name, p in self.profiles.items() if own is None or name in own}

    def cards(self, client: Client) -> list[ToolCard]:
        """The tools of a client."""
        may_attempt = self.attempts is not None and client.attempts
        return [*cards(self.allowed(client)), *([_ATTEMPT_CARD] if may_attempt else [])]

    async def call(self, name: str, arguments: Any, client: Client, report: Report) -> Any:
        """The result of a call, as JSON data; an ApiError says what is wrong with it.

        A call that is cancelled stops its search, if no other call waits for it. What the search
        has paid for is on record, and an equal call continues it.
        """
        arrived = time.monotonic()
        given = await self._threads.run(client.name, partial(self._checked, arguments))
        try:
            match name:
                case "verify":
                    return await self._verify(given, client, arrived, report)
                case "solve":
                    return await self._solve(given, client, arrived, report)
                case "status":
                    return await self._status(given, client)
                case "attempt" if self.attempts is not None and client.attempts:
                    return await self._attempt(self.attempts, given, client, report)
        except ApiError as error:
            raise _in_arguments(error) from error
        raise ApiError(404, f"there is no tool {name[:80]!r}", code="not_found")

    def _checked(self, arguments: Any) -> dict[str, Any]:
        """The arguments as `grv serve` would read them: finite, whole characters, not too large."""
        try:
            content = json.dumps({} if arguments is None else arguments).encode()
        except (RecursionError, ValueError, TypeError) as error:
            raise ApiError(400, "the arguments are not JSON", code="invalid_json") from error
        if len(content) > self.longest:
            message = f"the arguments have more than {self.longest} bytes"
            raise ApiError(413, message, code="request_too_large")
        return record(parse_body(content), "", "the arguments")

    def _profile(self, given: Mapping[str, Any], client: Client) -> Profile:
        allowed = self.allowed(client)
        if not allowed:
            raise ApiError(403, "this client may use no model", code="forbidden")
        if "model" not in given and len(allowed) == 1:
            return next(iter(allowed.values()))
        return profile_named(given.get("model"), allowed)

    async def _verify(
        self, given: Mapping[str, Any], client: Client, arrived: float, report: Report
    ) -> dict[str, Any]:
        only(given, "", _VERIFY)
        profile = self._profile(given, client)

        def parse() -> CompletionRequest:
            return parse_given(given, profile, client.name, LONGEST_WAIT)

        request = await self._threads.run(client.name, parse)
        solution = await self._found(request, client, arrived, report)

        def read() -> Finding | None:
            return finding_on_given(self.reader, request)

        finding = await self._threads.run(client.name, read)
        found = found_of(request, solution)
        self._refuse_failed(request, solution, found)
        return {
            "verdict": None if finding is None else finding.verdict.value,
            "reason": solution.message if finding is None else finding.reason,
            **found,
            "bill": without_given(request, found["bill"]),
            "evidence": _shortened(evidence_of(finding, request.check)),
        }

    async def _solve(
        self, given: Mapping[str, Any], client: Client, arrived: float, report: Report
    ) -> dict[str, Any]:
        only(given, "", _SOLVE)
        profile = self._profile(given, client)
        if not _makes_candidates(profile):
            raise wrong("model", f"{profile.name} makes no candidates: it only verifies")
        if "problem" not in given or not isinstance(given["problem"], str):
            raise wrong("problem", "must be a text")
        body = {name: given[name] for name in _SAMPLING if name in given}
        body |= {"model": profile.name, "grv": {n: given[n] for n in GRV if n in given}}
        if profile.chat:
            body["messages"] = [{"role": "user", "content": given["problem"]}]
        else:
            body["prompt"] = given["problem"]

        def parse() -> CompletionRequest:
            allowed = {profile.name: profile}
            dialect = CHAT if profile.chat else TEXT
            return parse_request(body, allowed, dialect, client=client.name)

        request = await self._threads.run(client.name, parse)
        solution = await self._found(request, client, arrived, report)
        found = found_of(request, solution)
        try:
            answer = text_of(request, solution, found, detailed=not self.known)
        except ApiError as error:
            if error.status != 422:  # the search could not be made
                raise
            return {"answer": None, "message": str(error), **found}
        return {"answer": answer, **found, "evidence": _shortened(found["evidence"])}

    async def _found(
        self, request: CompletionRequest, client: Client, arrived: float, report: Report
    ) -> Solution:
        """The solution of a search, or what it has found at the deadline of the call."""
        until = arrived + (math.inf if request.deadline is None else request.deadline)
        with self.searches.hold(request, client) as running:
            await _wait(running, until, report)
            if running.error is not None:
                raise running.error
            return running.solution or await self.searches.so_far(running, client)

    def _refuse_failed(
        self, request: CompletionRequest, solution: Solution, found: Mapping[str, Any]
    ) -> None:
        """Raise what keeps a search from giving a verdict, as for an answer."""
        spent = solution.message in (ACCOUNT_SPENT, TOTAL_SPENT)
        if solution.outcome == FAILED or (spent and not solution.verified):
            text_of(request, solution, found, detailed=not self.known)

    async def _attempt(
        self, attempts: AttemptRunner, given: Mapping[str, Any], client: Client, report: Report
    ) -> dict[str, Any]:
        only(given, "", _ATTEMPT)
        task = given.get("task")
        if not isinstance(task, str) or not task.strip() or len(task) > _LONGEST_TASK:
            raise wrong("task", f"must be a text of at most {_LONGEST_TASK:,} characters")
        name = given.get("name", f"task-{checksum(task)[:8]}")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise wrong("name", "must be up to 40 small letters, digits and -")
        budget = number(given, "budget", least=0, most=attempts.budget)
        deadline = number(given, "deadline", least=1e-3, most=LONGEST_WAIT)
        call = AttemptCall(
            name,
            task,
            attempts.budget if budget is None else budget,
            math.inf if deadline is None else deadline,
            client.name,
        )
        return await attempts(call, report)

    async def _status(self, given: Mapping[str, Any], client: Client) -> dict[str, Any]:
        only(given, "", _STATUS)
        search = given.get("search")
        if search is not None and not isinstance(search, str):
            raise wrong("search", "must be the id of a search")

        def read() -> dict[str, Any]:
            if search is None:
                return self._account(client)
            running = self.searches.is_running(search)
            return state_of(self.reader, search, client, running=running)

        return await self._threads.run(client.name, read)

    def _account(self, client: Client) -> dict[str, Any]:
        """What a client may use, and what it has spent."""
        models = [
            {
                "name": name,
                "checks": [*profile.checks],
                "check": profile.check or None,
                "budget": profile.plan.limits.budget,
                "costs": [profile.plan.costs.candidate, profile.plan.costs.verify],
            }
            for name, profile in self.allowed(client).items()
        ]
        return {
            "client": client.name or None,
            "models": models,
            "spent": self.reader.possibly_paid(client.name),
            "budget": _finite(min(client.budget, self.total if not self.known else math.inf)),
        }


def _shortened(value: Any) -> Any:
    """Evidence with the ends of long texts only: a model has to read it."""
    match value:
        case str() if len(value) > _LONGEST_EVIDENCE:
            return f"[{len(value)} characters] ... {value[-_LONGEST_EVIDENCE:]}"
        case list():
            return [_shortened(each) for each in value]
        case Mapping():
            return {name: _shortened(each) for name, each in value.items()}
    return value


def _finite(amount: float) -> float | None:
    return None if math.isinf(amount) else amount


def _in_arguments(error: ApiError) -> ApiError:
    """The error with the names that arguments have: a tool has no field `grv`."""
    if error.param is None or not error.param.startswith("grv."):
        return error
    param = error.param.removeprefix("grv.")
    return ApiError(
        error.status,
        str(error).removeprefix("grv."),
        code=error.code,
        param=param,
        grv=error.grv,
        retry_after=error.retry_after,
    )


async def _wait(running: RunningSearch, until: float, report: Report) -> None:
    """Wait until the search ends or `until` passes, and report progress."""
    told = 0
    while not running.done.is_set() and (now := time.monotonic()) < until:
        changed = running.changed
        steps = running.generated + running.verified + running.shared
        if steps > told:
            told = steps
            await report(steps, _progress(running))
            with anyio.move_on_after(min(_LEAST_PAUSE, until - now)):
                await running.done.wait()
            continue
        with anyio.move_on_after(None if math.isinf(until) else until - now):
            await changed.wait()


def _progress(running: RunningSearch) -> str:
    return (
        f"{running.generated} generated, {running.verified} verified, cost {running.cost:g},"
        f" search {running.request.search}"
    )
