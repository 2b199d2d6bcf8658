"""The routes of the pages: the files that a browser loads, and the API that they read."""

from __future__ import annotations

import functools
import re
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from importlib import resources
from typing import Any, get_args

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from ...core.errors import LedgerError
from ...ledger.view import SearchView
from ...report.style import themes
from ..door import parse_body, read_body
from ..errors import ApiError, wrong
from .access import Access
from .answers import HEADERS, as_json, json_response
from .follower import Follower, in_thread
from .one_search import candidate_data, listed_data, search_data, view_of
from .overview import overview
from .store import PAGE, TEXTS, Filter, Show, Sort, Store

_KINDS = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml", "html": "text/html"}
_FRESH = 2.0  # seconds that an overview is shown unless there are new entries
_MOST_PAGES = 1_000_000
_NUMBER = re.compile("[0-9]{1,9}")
_MOST_STREAMS = 100  # open pages that are told of changes, half of them for one reader
_KEY = 4096  # bytes of a request to sign in
Handler = Callable[[Request], Awaitable[Response]]


class Pages:
    """The dashboard of a ledger.

    Args:
        store: reads the ledger, over a connection of its own.
        access: who may see it.
        total: the budget of the ledger.
        reviewing: whether there is a page for reviewers.
        dollars: what a search cost in dollars; None if that is unknown.
    """

    def __init__(
        self,
        store: Store,
        access: Access,
        total: float,
        *,
        reviewing: bool,
        dollars: Callable[[SearchView], float | None] = lambda view: None,
    ) -> None:
        self._dollars = dollars
        self._store = store
        self._access = access
        self._total = total
        self._reviewing = reviewing
        self.follower = Follower(store)
        self._overview: tuple[tuple[int, int], float, bytes] = ((0, 0), 0.0, b"")
        self._lock = threading.Lock()

    @property
    def routes(self) -> list[Route]:
        """What to add to an application."""
        get = ["GET"]
        return [
            Route("/", page("overview.html"), methods=get),
            Route("/searches/{search}", page("search.html"), methods=get),
            Route("/sign-in", page("sign-in.html"), methods=get),
            Route("/assets/{name}", self._asset, methods=get),
            Route("/api/session", self._session, methods=get),
            Route("/api/session", self._sign_in, methods=["POST"]),
            Route("/api/session", self._sign_out, methods=["DELETE"]),
            Route("/api/overview", self._show_overview, methods=get),
            Route("/api/searches", self._list, methods=get),
            Route("/api/searches/{search}", self._search, methods=get),
            Route("/api/searches/{search}/{candidate}", self._candidate, methods=get),
            Route("/api/events", self._events, methods=get),
        ]

    async def _asset(self, http: Request) -> Response:
        return asset(http.path_params["name"])

    async def _session(self, http: Request) -> Response:
        return json_response({**self._access.session(http), "reviewing": self._reviewing})

    async def _sign_in(self, http: Request) -> Response:
        given = parse_body(await read_body(http, _KEY, 10))
        if not isinstance(given, dict) or not isinstance(given.get("key"), str):
            raise wrong("key", "is missing")
        return self._access.sign_in(http, given["key"].strip())

    async def _sign_out(self, http: Request) -> Response:
        return self._access.sign_out(http)

    async def _show_overview(self, http: Request) -> Response:
        viewer = self._access.viewer(http)
        content = await reading(self._current, viewer)
        return Response(content, media_type="application/json", headers=HEADERS)

    def _current(self) -> bytes:
        """The overview; all viewers share it until there are new entries."""
        with self._lock:
            version, made, content = self._overview
            now = self._store.version()
            if now != version or time.monotonic() - made > _FRESH:
                content = as_json(overview(self._store, self._total))
                self._overview = (now, time.monotonic(), content)
            return content

    async def _list(self, http: Request) -> Response:
        viewer = self._access.viewer(http)
        wanted = filter_of(http.query_params)

        def read() -> dict[str, Any]:
            rows, count = self._store.page(wanted)
            shown = [listed_data(each) for each in rows]
            return {"searches": shown, "count": count, "page": wanted.page, "size": PAGE}

        found = await reading(read, viewer)
        return json_response({**found, "texts": TEXTS if wanted.texts else None})

    async def _search(self, http: Request) -> Response:
        viewer = self._access.viewer(http)
        search = _search_id(http)

        def read() -> dict[str, Any]:
            listed = self._store.one(search)
            if listed is None:
                raise ApiError(404, "there is no such search", code="not_found")
            timed, damage = self._store.entries(search)
            data = search_data(listed, timed, damage)
            return {**data, "dollars": self._dollars(view_of(timed))}

        return json_response(await reading(read, viewer))

    async def _candidate(self, http: Request) -> Response:
        viewer = self._access.viewer(http)
        search = _search_id(http)
        number = http.path_params["candidate"]
        if not _NUMBER.fullmatch(number):
            raise ApiError(404, "there is no such candidate", code="not_found")
        candidate = int(number)

        def read() -> dict[str, Any]:
            timed, _ = self._store.entries(search)
            for each in view_of(timed).candidates:
                if each.id == candidate:
                    return candidate_data(each)
            raise ApiError(404, "there is no such candidate", code="not_found")

        return json_response(await reading(read, viewer))

    async def _events(self, http: Request) -> Response:
        session = self._access.session(http)
        if not session["reviews"]:
            self._access.viewer(http)

        def may_go_on() -> bool:
            return self._access.session(http) == session

        reader = str(session["name"])
        streams = self.follower.streams
        if streams.total() >= _MOST_STREAMS or streams[reader] >= _MOST_STREAMS // 2:
            message = f"{streams.total()} pages are open, {streams[reader]} of them yours"
            message += "; try again later"
            raise ApiError(429, message, code="too_many_pages", retry_after=10)
        named = bool(session["sees"])
        events = self.follower.stream(reader, named=named, may_go_on=may_go_on)
        return StreamingResponse(events, media_type="text/event-stream", headers=HEADERS)


def _search_id(http: Request) -> str:
    """The search that an address names, without NUL: PostgreSQL has no such text."""
    named: str = http.path_params["search"]
    return named.replace("\0", "")


async def reading(read: Callable[[], Any], reader: str) -> Any:
    """What a function reads from the ledger for who is signed in, in a thread."""
    try:
        return await in_thread(read, reader)
    except LedgerError as error:
        raise ApiError(500, f"the ledger cannot be read: {error}", code="ledger") from error


def filter_of(given: Mapping[str, str]) -> Filter:
    """The filter in the query of an address."""
    show = given.get("show", "all")
    sort = given.get("sort", "newest")
    if show not in get_args(Show):
        raise wrong("show", f"must be one of {', '.join(get_args(Show))}")
    if sort not in get_args(Sort):
        raise wrong("sort", f"must be one of {', '.join(get_args(Sort))}")
    for name in ("account", "q"):
        if "\0" in given.get(name, ""):
            raise wrong(name, "must be a text without NUL")
    page = given.get("page", "0")
    if not (page.isascii() and page.isdigit() and int(page[:9]) < _MOST_PAGES):
        raise wrong("page", "must be the number of a page")
    return Filter(
        show,  # type: ignore[arg-type]  # checked above
        given.get("account"),
        given.get("q", "")[:200],
        given.get("texts") == "1",
        sort,  # type: ignore[arg-type]
        int(page[:9]),
    )


def page(name: str) -> Handler:
    """A route that answers with a file of HTML. What it shows comes from the API."""

    async def show(http: Request) -> Response:
        return asset(name)

    return show


def asset(name: str) -> Response:
    """A file that a browser loads."""
    content = _assets().get(name)
    if content is None:
        raise ApiError(404, "there is no such file", code="not_found")
    kind = _KINDS[name.rpartition(".")[2]]
    return Response(content, media_type=f"{kind}; charset=utf-8", headers=HEADERS)


@functools.cache
def _assets() -> dict[str, bytes]:
    """All files that a browser may load, by name."""
    folder = resources.files(__package__) / "assets"
    files = {each.name: each.read_bytes() for each in folder.iterdir() if "." in each.name}
    return {**files, "look.css": _style().encode()}


def _style() -> str:
    """The colours and the style sheet of a report, which the pages share."""
    sheet = resources.files("grv.report.page") / "assets" / "page.css"
    return f"{themes()}\n{sheet.read_text(encoding='utf-8')}"
