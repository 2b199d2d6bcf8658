"""The tool `attempt` of `grv mcp`: agents that the operator named, in a repository of the operator.

A client gives a task, a name for its branches, a budget and a deadline, and nothing else. What an
attempt does is `grv attempt`. Attempts run one after the other, those of the client first that has
had the least time, on an event loop of their own: preparing them reads the repository and starts
processes, and no other call waits for that.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import UsageError
from ..options import Family, option
from ..parsing import parse_budget

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal

    from ..serve.mcp.tools import AttemptCall, AttemptRunner, Report

_QUEUE = 8  # calls of a client that run or wait for their turn


@dataclass(frozen=True, kw_only=True)
class Attempting(Family):
    """The options of the tool `attempt`; without a repository there is no such tool."""

    repository: str | None = option(
        None, "The repository on which the tool attempt has agents work.", metavar="FOLDER"
    )
    verify: str | None = option(
        None, "The command that decides about attempts, as in 'pytest -q'.", metavar="COMMAND"
    )
    agent: tuple[str, ...] = option(
        (),
        "What makes attempts, as in grv attempt --agent. It runs with your rights. Repeatable.",
        metavar="AGENT",
    )
    protect: tuple[str, ...] = option(
        (), "A file or folder that attempts may not change. Repeatable.", metavar="PATH"
    )
    readable: tuple[str, ...] = option(
        (), "A folder that the tests of attempts may read. Repeatable.", metavar="FOLDER"
    )
    attempt_budget: float = option(
        5.0,
        "The most dollars of one call of attempt.",
        metavar="USD",
        parse=parse_budget,
        shown="5usd",
    )
    attempt_total: float = option(
        20.0,
        "The most dollars of all calls of attempt together, ever, on --attempt-ledger.",
        metavar="USD",
        parse=parse_budget,
        shown="20usd",
    )
    attempt_ledger: str | None = option(
        None,
        "Where grv records attempts, whose costs are dollars.",
        metavar="LEDGER",
        shown="LEDGER.attempts",
    )

    def check(self, *, allowed: bool) -> None:
        """Refuse what cannot be offered; `allowed` is whether commands are."""
        if self.verify is None or not self.agent:
            raise UsageError("--repository needs --verify COMMAND and --agent AGENT")
        if not allowed:
            raise UsageError(
                "--repository has agents run with your rights; if you trust them, give"
                " --allow-commands"
            )


@contextmanager
def attempts_of(options: Attempting, ledger: str) -> Iterator[AttemptRunner | None]:
    """What runs attempts, until the end of the context; None without a repository.

    `ledger` is that of the server.
    """
    if options.repository is None:
        if options.verify is not None or options.agent:
            raise UsageError("--verify and --agent need --repository FOLDER")
        yield None
        return
    from anyio.from_thread import start_blocking_portal

    from ..ledger.opening import is_address

    place = options.attempt_ledger
    if place is None and is_address(ledger):
        raise UsageError("--repository with a ledger in a database needs --attempt-ledger")
    with start_blocking_portal() as portal, tempfile.TemporaryDirectory() as folder:
        made = RepositoryAttempts(options, place or f"{ledger}.attempts", portal, Path(folder))
        made.check()
        yield made


class RepositoryAttempts:
    """Runs attempts on one repository, one after the other."""

    def __init__(
        self, options: Attempting, ledger: str, portal: BlockingPortal, folder: Path
    ) -> None:
        from ..serve.searches import Places

        self._options = options
        self._ledger = ledger
        self._portal = portal
        self._folder = folder
        self._turn = Places(1)
        self._waiting: Counter[str] = Counter()  # by client

    @property
    def budget(self) -> float:
        """The most dollars of one call."""
        return self._options.attempt_budget

    def check(self) -> None:
        """Find what is wrong with the repository, the command or the agents, before any call."""
        from .attempt_plan import prepared
        from .options.attempts import AttemptOptions

        task = self._folder / "check.md"
        task.write_text("check", encoding="utf-8")
        with prepared(self._attempt(AttemptOptions, task, self.budget), lambda line: None):
            pass

    async def __call__(self, call: AttemptCall, report: Report) -> dict[str, Any]:
        """What came of a task, as JSON data.

        A call that is cancelled ends its agents; what they cost is on record.
        """
        from ..serve.errors import ApiError

        client = call.client
        if self._waiting[client] >= _QUEUE:
            message = f"{self._waiting[client]} attempts run or wait already; try again later"
            raise ApiError(429, message, code="queue_full", retry_after=60)
        self._waiting[client] += 1
        try:
            async with self._turn.one(client):
                started = time.monotonic()
                try:
                    return await self._run(call, report)
                finally:
                    self._turn.charge(client, time.monotonic() - started)
        finally:
            self._waiting[client] -= 1

    async def _run(self, call: AttemptCall, report: Report) -> dict[str, Any]:
        import anyio
        import anyio.to_thread

        from ..serve.errors import ApiError
        from .attempt import attempt_task
        from .options.attempts import AttemptOptions

        left = self._options.attempt_total - await anyio.to_thread.run_sync(self._paid)
        if left <= 0:
            message = "the total budget of attempts is spent"
            raise ApiError(429, message, code="insufficient_quota")
        task = self._folder / f"{call.name}.md"
        task.write_text(call.task, encoding="utf-8")
        options = self._attempt(AttemptOptions, task, min(call.budget, left), call.deadline)
        send, lines = anyio.create_memory_object_stream[str](1000)
        loop = asyncio.get_running_loop()

        def tell(line: str) -> None:
            loop.call_soon_threadsafe(_put, send, line)

        async def pass_on() -> None:
            steps = 0
            async for line in lines:
                steps += 1
                await report(steps, " ".join(line.split()))

        future = self._portal.start_task_soon(partial(attempt_task, options, tell))
        async with anyio.create_task_group() as group:
            group.start_soon(pass_on)
            result = await asyncio.wrap_future(future)
            group.cancel_scope.cancel()
        data = result.as_data()
        return {name: value for name, value in data.items() if name not in ("ledger", "folders")}

    def _attempt(
        self, family: type[Any], task: Path, budget: float, deadline: float = float("inf")
    ) -> Any:
        options = self._options
        return family(
            task=str(task),
            verify=options.verify,
            agent=options.agent,
            repository=options.repository,
            protect=options.protect,
            readable=options.readable,
            budget=budget,
            deadline=deadline,
            ledger=self._ledger,
        )

    def _paid(self) -> float:
        """What attempts have possibly cost so far."""
        from ..ledger.opening import open_ledger

        with closing(open_ledger(self._ledger, read_only=True)) as ledger:
            return ledger.possibly_paid(None)


def _put(send: Any, line: str) -> None:
    """Pass a line on, unless nobody reads."""
    import anyio

    try:
        send.send_nowait(line)
    except (anyio.WouldBlock, anyio.BrokenResourceError, anyio.ClosedResourceError):
        return
