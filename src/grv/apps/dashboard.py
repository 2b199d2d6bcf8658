"""`grv dashboard`: watch a ledger in a browser."""

from __future__ import annotations

import math
import secrets
import signal
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core.errors import UsageError, installing
from ..options import Family, option
from .console import say, user_name
from .options.command import command
from .runs import LEDGER

if TYPE_CHECKING:
    import socket

    from starlette.routing import Route

    from ..ledger.tables import TableLedger
    from ..serve.clients import Clients
    from ..serve.events import Events
    from ..serve.pages.application import PagesApplication
    from ..serve.pages.store import Store


_CONNECTIONS = 256  # at once


@dataclass(frozen=True)
class Watching(Family):
    """Where the pages of a ledger are, and who may open them."""

    host: str = option(
        "127.0.0.1", "The address to listen on. Other machines need --clients.", metavar="HOST"
    )
    port: int = option(8010, "The port to listen on; 0 takes a free one.", least=0, most=65535)
    clients: str | None = option(
        None,
        "A TOML file with the clients, as for grv serve: those with dashboard = true may watch,"
        " those with review = true may review.",
        metavar="FILE",
    )
    total_budget: float = option(
        math.inf, "The total budget of the runs, to show what is left.", least=0
    )
    review: bool = option(
        False,
        "Also let people review candidates that wait for them. The ledger is opened for writing.",
        "--review",
    )


@command
def dashboard(
    watching: Watching,
    ledger: str = option(..., LEDGER, argument=True, metavar="LEDGER"),
) -> None:
    """Watch a ledger in a browser, also while other processes write to it.

    The page shows what is running, solved, spent and left, and every search with its steps,
    reasons, candidates and failing tests. It changes as the run goes on. The ledger is only read,
    unless --review is given.

    \b
    grv solve problems.jsonl --generator openai:MODEL --out answers.jsonl &
    grv dashboard answers.jsonl.ledger

    Stop it with Ctrl-C.
    """
    need_packages("grv dashboard")
    import anyio

    from ..ledger.opening import open_ledger, refuse_password
    from ..serve.clients import Clients
    from ..serve.connections import Connections
    from ..serve.door import is_loopback
    from ..serve.events import Events
    from ..serve.pages.store import Store
    from ..serve.server import bind, run

    refuse_password(ledger)
    clients = Clients.load(watching.clients, None)
    if not clients.known and not is_loopback(watching.host):
        raise UsageError(
            f"--host {watching.host}: other machines could read the ledger without a key; give"
            " --clients FILE"
        )
    with ExitStack() as stack:
        store = Store(stack.enter_context(closing(open_ledger(ledger, read_only=True))))
        writable = stack.enter_context(closing(open_ledger(ledger))) if watching.review else None
        listening = stack.enter_context(bind(watching.host, watching.port))
        events = Events()
        app = _application(store, writable, clients, watching, events, _address(listening))

        connections = Connections(_CONNECTIONS, _CONNECTIONS // 2)

        async def work() -> int:
            return await run(app, app, listening, events, slow=30, grace=0, connections=connections)

        first = anyio.run(work)
    if first == signal.SIGINT:
        raise KeyboardInterrupt


def need_packages(name: str) -> None:
    """Refuse to start without the packages of a server."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        message = f"{name} needs starlette and uvicorn: {installing('serve')}"
        raise UsageError(message) from error


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def _application(
    store: Store,
    writable: TableLedger | None,
    clients: Clients,
    watching: Watching,
    events: Events,
    address: str,
) -> PagesApplication:
    from ..runtime.solution import dollars_of
    from ..serve.door import Door, DoorBounds
    from ..serve.pages.access import Access
    from ..serve.pages.application import PagesApplication
    from ..serve.pages.routes import Pages
    from ..serve.pages.sessions import Sessions
    from ..serve.review.desk import Desk
    from ..serve.review.reviewers import Reviewers, from_environment
    from ..serve.review.routes import Review

    reviewers = from_environment()
    more = ""
    if writable is not None and not (reviewers or clients.known):
        token = secrets.token_urlsafe(24)
        reviewers = Reviewers({user_name(): token})
        more = f"sign-in?to=/review#key={token}"
    access = Access(clients, reviewers, Sessions(None if writable is None else writable.path))
    pages = Pages(
        store, access, watching.total_budget, reviewing=writable is not None, dollars=dollars_of
    )
    routes = pages.routes
    if writable is not None:
        routes += Review(Desk(writable, store.ledger), access).routes
    say(f"{address} shows {store.ledger.path}")
    if more:
        say(f"{address}{more} is the page to review, for {user_name()}")
    door = Door(DoorBounds(_CONNECTIONS, 1 << 20), keys=clients.known)
    return PagesApplication(routes, door, events, pages.follower)


def pages_of(
    reader: TableLedger, ledger: TableLedger, clients: Clients, total: float
) -> list[Route]:
    """The pages of a server that also writes the ledger; `reader` is a connection of its own."""
    from ..runtime.solution import dollars_of
    from ..serve.pages.access import Access
    from ..serve.pages.routes import Pages
    from ..serve.pages.sessions import Sessions
    from ..serve.pages.store import Store
    from ..serve.review.desk import Desk
    from ..serve.review.reviewers import from_environment
    from ..serve.review.routes import Review

    access = Access(clients, from_environment(), Sessions(ledger.path))
    pages = Pages(Store(reader), access, total, reviewing=True, dollars=dollars_of)
    return [*pages.routes, *Review(Desk(ledger, reader), access).routes]
