"""`grv mcp`: verdicts and verified answers as tools of agents."""

from __future__ import annotations

import signal
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from .. import __version__
from ..core.errors import UsageError, installing
from ..options import option
from ..runtime.options import Calls
from .console import say
from .mcp_attempts import Attempting, attempts_of
from .options.command import command
from .options.serving import ProfileOptions, Serving, check_profiles, profiles_of
from .serve import address_of, check_serving, connections_of, door_of, tell_outage

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping
    from typing import BinaryIO

    from ..ledger.tables import TableLedger
    from ..serve.clients import Clients
    from ..serve.events import Events
    from ..serve.mcp.tools import AttemptRunner, Tools
    from ..serve.profiles import Profile


@command
def mcp(
    profiles: list[ProfileOptions],
    serving: Serving,
    calls: Calls,
    attempting: Attempting,
    job: str | None = option(
        None,
        "A job file: one profile, named after its generator, or tables [profiles.NAME].",
        argument=True,
        metavar="JOB",
    ),
    http: bool = option(
        False,
        "Listen on --host and --port, at /mcp, instead of standard input and output.",
        "--http",
    ),
) -> None:
    """Give agents verdicts and verified answers, as tools of the Model Context Protocol.

    The tools: verify (a check and a candidate) returns a verdict that the candidate cannot forge;
    solve (a problem, a check, a budget) returns an answer that has passed; status tells what was
    spent and how far a search is. Job file, budgets, clients, queues and sandbox are those of grv
    serve. An agent can name only kinds of checks that are data, and the checks of the job file.

    \b
    # job.toml
    generator = "openai:qwen2.5-coder"
    base-url = "http://localhost:8001/v1"
    costs = "1,10"
    budget = 500          # the most that one call may cost

    \b
    grv mcp job.toml --ledger agent.ledger --total-budget 20000
    grv mcp job.toml --ledger agent.ledger --http --port 8002 --clients clients.toml

    With --repository, the tool attempt has the agents that you name work on that repository until
    its tests pass. They run with your rights, so it needs --allow-commands, and a client of --http
    needs attempts = true in the file of clients.

    \b
    grv mcp job.toml --ledger agent.ledger --allow-commands --repository . \\
        --verify 'pytest -q' --agent claude --attempt-budget 2usd --attempt-total 20usd

    Over standard input and output, the program that starts grv is the only client. Over HTTP, other
    machines need --clients FILE.
    """
    need_mcp()
    from ..ledger.opening import open_ledger
    from ..serve.events import Events

    if serving.clients is not None and not http:
        raise UsageError(
            "--clients needs --http: over standard input and output, the program that starts grv is"
            " the only client"
        )
    if attempting.repository is not None:
        attempting.check(allowed=any(each.verification.allow_commands for each in profiles))
    with ExitStack() as stack:
        streams = None
        if not http:
            from ..serve.mcp.stdio import protocol_streams

            streams = stack.enter_context(protocol_streams())
        check_profiles(profiles)
        clients = check_serving(profiles, serving, calls, job)
        made = stack.enter_context(profiles_of(profiles, calls))
        listening = None
        if http:
            from ..serve.server import bind

            listening = stack.enter_context(bind(serving.host, serving.port))
        ledger = stack.enter_context(closing(open_ledger(serving.ledger)))
        reader = stack.enter_context(closing(open_ledger(serving.ledger, read_only=True)))
        total = profiles[0].spending.total_budget
        events = Events()
        attempts = stack.enter_context(attempts_of(attempting, serving.ledger))
        server = _ServerParts(made, clients, ledger, reader, total, serving, events, attempts)
        first = _run(server, listening, streams)
    if first == signal.SIGINT:
        raise KeyboardInterrupt


def need_mcp() -> None:
    """Refuse to start without the packages of the protocol."""
    try:
        import mcp.server.lowlevel  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise UsageError(f"grv mcp needs the package mcp: {installing('mcp')}") from error


@dataclass(frozen=True)
class _ServerParts:
    """What a server is made of."""

    profiles: Mapping[str, Profile]
    clients: Clients
    ledger: TableLedger
    reader: TableLedger
    total: float
    serving: Serving
    events: Events
    attempts: AttemptRunner | None


def _run(
    parts: _ServerParts,
    listening: socket.socket | None,
    streams: tuple[BinaryIO, BinaryIO] | None,
) -> int:
    import anyio

    from ..serve.mcp.tools import Tools
    from ..serve.searches import Searches, ServerBounds

    async def work() -> int:
        serving = parts.serving
        events = parts.events
        known = parts.clients.known
        bounds = ServerBounds(serving.searches, serving.queue)
        searches = Searches(parts.ledger, parts.total, bounds, events, detailed=not known)
        for name, profile in parts.profiles.items():
            profile.caller.outages.tell = partial(tell_outage, events, name)
        tools = Tools(
            parts.profiles,
            searches,
            parts.reader,
            parts.total,
            int(serving.request_mb * (1 << 20)),
            known,
            parts.attempts,
            __version__,
        )
        try:
            if streams is not None:
                from ..serve.mcp.stdio import serve_stdio

                return await serve_stdio(tools, searches, events, streams)
            assert listening is not None
            return await _serve_http(parts, tools, listening)
        finally:
            for profile in parts.profiles.values():
                await profile.backends.aclose()

    return anyio.run(work)


async def _serve_http(parts: _ServerParts, tools: Tools, listening: socket.socket) -> int:
    from ..serve.mcp.http import PATH, McpApplication
    from ..serve.server import run

    serving = parts.serving
    door = door_of(serving, parts.clients)
    app = McpApplication(tools, parts.clients, door, parts.events, serving.slow)
    address = f"{address_of(listening)}{PATH}"
    say(f"{address} offers {', '.join(parts.profiles)}; the ledger is {parts.ledger.path}")
    parts.events("listening", address=address, profiles=[*parts.profiles])
    return await run(
        app,
        app,
        listening,
        parts.events,
        slow=serving.slow,
        grace=serving.grace,
        connections=connections_of(serving),
    )
