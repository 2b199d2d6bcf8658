"""`grv serve`: verified completions for the clients of OpenAI and Anthropic."""

from __future__ import annotations

import gc
import signal
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING

from ..core.errors import LedgerError, UsageError
from ..options import option
from ..runtime.options import Calls
from .console import check_outputs, say
from .dashboard import need_packages, pages_of
from .options.command import command
from .options.live import ledger_files
from .options.serving import Listening, ProfileOptions, Serving, check_profiles, profiles_of

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping, Sequence

    from starlette.routing import Route

    from ..ledger.tables import TableLedger
    from ..serve.clients import Clients
    from ..serve.connections import Connections
    from ..serve.door import Door
    from ..serve.events import Events
    from ..serve.profiles import Profile


@command
def serve(
    profiles: list[ProfileOptions],
    serving: Serving,
    calls: Calls,
    job: str | None = option(
        None,
        "A job file: one profile, named after its generator, or tables [profiles.NAME].",
        argument=True,
        metavar="JOB",
    ),
) -> None:
    """Serve verified completions to the clients of OpenAI and Anthropic.

    A request is an ordinary completion with one more field, grv: how the answer is verified, and
    what it may cost. The response is an ordinary one, too: its text has passed the check. Equal
    requests share one search and are paid for once. The ledger has everything that was paid for;
    after a stop or a crash, the same request continues.

    \b
    # job.toml
    generator = "openai:qwen2.5-coder"
    base-url = "http://localhost:8001/v1"
    costs = "1,10"
    budget = 500          # the most that one request may cost

    \b
    grv serve job.toml --ledger serve.ledger --total-budget 20000
    curl localhost:8000/v1/chat/completions -H 'Content-Type: application/json' -d '{
      "model": "qwen2.5-coder", "messages": [{"role": "user", "content": "What is 6 times 7?"}],
      "grv": {"check": {"kind": "math", "answer": "42"}}}'

    Status 422: no verified answer, with the bill; 429: a budget is spent, or the server is full;
    400: the request is wrong, and the error names the field. Other machines need --clients FILE.
    """
    need_packages("grv serve")
    from ..ledger.opening import open_ledger
    from ..serve.events import Events
    from ..serve.idle import use_few_arenas
    from ..serve.server import bind

    use_few_arenas()
    check_profiles(profiles)
    clients = check_serving(profiles, serving, calls, job)
    with (
        profiles_of(profiles, calls) as made,
        bind(serving.host, serving.port) as listening,
        closing(open_ledger(serving.ledger)) as ledger,
        closing(open_ledger(serving.ledger, read_only=True)) as reader,
    ):
        total = profiles[0].spending.total_budget
        pages = pages_of(reader, ledger, clients, total)
        first = _run(made, clients, ledger, reader, total, serving, listening, Events(), pages)
    if first == signal.SIGINT:
        raise KeyboardInterrupt


def check_serving(
    profiles: Sequence[ProfileOptions], serving: Serving, calls: Calls, job: str | None
) -> Clients:
    """Refuse, before any work, what cannot be served; the clients."""
    from ..backends.callables import processors
    from ..runtime.adaptive import FIRST
    from ..runtime.machine import check_machine

    files = ledger_files(serving.ledger)
    check_outputs(files, (job, serving.clients, *(each.spending.prices for each in profiles)))
    clients = clients_of(serving, [each.called for each in profiles])
    workers = max(each.verification.workers or processors() for each in profiles)
    number = FIRST if calls.concurrency is None else calls.concurrency
    check_machine(number * len(profiles) + serving.connections // 3, workers, files)
    return clients


def clients_of(serving: Listening, profiles: Sequence[str] | None) -> Clients:
    """The clients; a UsageError if other machines could use the server without a key."""
    from ..serve.clients import Clients
    from ..serve.door import is_loopback

    clients = Clients.load(serving.clients, profiles)
    if not clients.known and not is_loopback(serving.host):
        raise UsageError(
            f"--host {serving.host}: other machines could use it without a key; give --clients FILE"
        )
    return clients


def tell_outage(events: Events, model: str, message: str) -> None:
    """Report an outage. What the server said is left out: it may repeat a request."""
    events("outage", model=model, message=message.partition(": ")[0])


def door_of(serving: Listening, clients: Clients) -> Door:
    """What admits requests."""
    from ..serve.door import Door, DoorBounds

    bounds = DoorBounds(
        serving.connections,
        int(serving.request_mb * (1 << 20)),
        int(serving.client_mb * (1 << 20)),
    )
    return Door(bounds, keys=clients.known)


def connections_of(serving: Listening) -> Connections:
    """The connections that there may be."""
    from ..serve.connections import Connections

    per_address = serving.address_connections or max(1, serving.connections // 2)
    return Connections(serving.connections, per_address)


def address_of(listening: socket.socket) -> str:
    """The address of a server, as clients write it."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _run(
    profiles: Mapping[str, Profile],
    clients: Clients,
    ledger: TableLedger,
    reader: TableLedger,
    total: float,
    serving: Serving,
    listening: socket.socket,
    events: Events,
    pages: Sequence[Route],
) -> int:
    import anyio

    from ..backends.verifiers.pool import CheckVerifier
    from ..serve.app import Application, ServerTimes
    from ..serve.metrics import Metrics
    from ..serve.searches import Searches, ServerBounds
    from ..serve.server import run

    async def work() -> int:
        bounds = ServerBounds(serving.searches, serving.queue)
        searches = Searches(ledger, total, bounds, events, detailed=not clients.known)
        door = door_of(serving, clients)
        pace = ServerTimes(serving.heartbeat, serving.slow)
        metrics = Metrics(reader, total)
        for name, profile in profiles.items():
            profile.caller.outages.tell = partial(tell_outage, events, name)
        app = Application(profiles, clients, searches, metrics, door, events, pace, pages, reader)

        def rest() -> None:
            for profile in profiles.values():
                if isinstance(profile.backends.verifier, CheckVerifier):
                    profile.backends.verifier.rest()
            with suppress(LedgerError):  # the next request reports it
                ledger.rest()
                reader.rest()

        gc.freeze()  # modules and settings stay: collections need not look at them
        address = f"{address_of(listening)}/v1"
        say(f"{address} serves {', '.join(profiles)}; the ledger is {ledger.path}")
        events("listening", address=address, profiles=[*profiles])
        try:
            return await run(
                app,
                searches,
                listening,
                events,
                slow=serving.slow,
                grace=serving.grace,
                connections=connections_of(serving),
                rest=rest,
            )
        finally:
            for profile in profiles.values():
                await profile.backends.aclose()

    return anyio.run(work)
