"""The page for reviewers, and its API.

Every change needs the key of a reviewer, our own page as its origin, and the token of that page.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...core.errors import UsageError
from ...files import is_number
from ...ledger.tables import TableLedger
from ..door import read_body
from ..errors import ApiError, wrong
from ..pages.access import Access
from ..pages.answers import json_response
from ..pages.routes import page, parsed, reading
from .leases import Lease, Leases
from .queue import Item, ItemId, Queue, reviews
from .verdicts import SAYINGS, record

_BODY = 64 << 10
_RECENT = 20  # verdicts of a reviewer that are listed
_LONGEST = 4 * 3600.0  # seconds of one review


class Review:
    """The queue of a ledger, which must be open for writing.

    Args:
        ledger: the ledger.
        access: who may review.
        leases: who has which item.
    """

    def __init__(self, ledger: TableLedger, access: Access, leases: Leases | None = None) -> None:
        self._ledger, self._access = ledger, access
        self._queue, self._leases = Queue(ledger), leases or Leases(ledger)
        self._skipped: defaultdict[str, set[ItemId]] = defaultdict(set)

    @property
    def routes(self) -> list[Route]:
        """What to add to an application."""
        post = ["POST"]
        return [
            Route("/review", page("review.html"), methods=["GET"]),
            Route("/api/review", self._state, methods=["GET"]),
            Route("/api/review/next", self._next, methods=post),
            Route("/api/review/open", self._open, methods=post),
            Route("/api/review/here", self._here, methods=post),
            Route("/api/review/leave", self._leave, methods=post),
            Route("/api/review/verdict", self._verdict, methods=post),
        ]

    async def _state(self, http: Request) -> Response:
        """How many wait, and what this reviewer said last."""
        reviewer = self._access.reviewer(http)

        def read() -> dict[str, Any]:
            waiting = self._queue.waiting()
            return {
                "waiting": len(waiting),
                "skipped": len(self._skipped[reviewer].intersection(waiting)),
                "leased": self._leases.count,
                "recent": self._recent(reviewer),
            }

        return json_response(await reading(read))

    async def _next(self, http: Request) -> Response:
        """Lease the next item; those that this reviewer skipped come last."""
        reviewer, _ = await self._changing(http)

        def read() -> dict[str, Any]:
            waiting, skipped = self._queue.waiting(), self._skipped[reviewer]
            wanted = [id for id in waiting if id not in skipped]
            return self._leased(self._leases.take(reviewer, wanted), len(waiting))

        return json_response(await reading(read))

    async def _open(self, http: Request) -> Response:
        """Lease this item: one that waits, or one whose verdict is to be corrected."""
        reviewer, given = await self._changing(http)
        id = _item_id(given)

        def read() -> dict[str, Any]:
            if self._queue.item(id) is None:
                raise ApiError(404, "there is no such candidate", code="not_found")
            lease = self._leases.take(reviewer, [id])
            if lease is None:
                return {"item": None, "refused": "another reviewer has it"}
            return self._leased(lease, len(self._queue.waiting()))

        return json_response(await reading(read))

    def _leased(self, lease: Lease | None, waiting: int) -> dict[str, Any]:
        item = None if lease is None else self._queue.item(lease.id)
        if lease is None or item is None:
            return {"item": None, "waiting": waiting}
        return {"item": _shown(item), "lease": lease.secret, "waiting": waiting}

    async def _here(self, http: Request) -> Response:
        """The page is still open. The answer is whether it still has the item."""
        _, given = await self._changing(http)
        id, secret = _item_id(given), _text(given, "lease")
        lease: Lease | None = await reading(lambda: self._leases.held(id, secret))
        return json_response({"item": str(id), "held": lease is not None})

    async def _leave(self, http: Request) -> Response:
        """The page is closed, or the reviewer skips the item."""
        reviewer, given = await self._changing(http)
        id, secret = _item_id(given), _text(given, "lease")
        if given.get("skip") is True:
            self._skipped[reviewer].add(id)

        def end() -> None:
            lease = self._leases.held(id, secret)
            if lease is not None:
                self._leases.end(lease)

        await reading(end)
        return json_response({"item": str(id)})

    async def _verdict(self, http: Request) -> Response:
        """Write a verdict; the item then leaves the queue."""
        reviewer, given = await self._changing(http)
        id, secret, saying = _item_id(given), _text(given, "lease"), _text(given, "verdict")
        if saying not in SAYINGS:
            raise wrong("verdict", f"must be one of {', '.join(SAYINGS)}")
        seconds = given.get("seconds")
        if not is_number(seconds) or seconds < 0:
            raise wrong("seconds", "must be a number and not negative")

        def write() -> str:
            lease = self._leases.held(id, secret)
            taken = lease or self._leases.take(reviewer, [id])  # after a restart of the server
            if taken is None or taken.reviewer != reviewer:
                return "another reviewer has it now"
            try:
                there = record(
                    self._ledger,
                    id,
                    saying,
                    reviewer=reviewer,
                    note=_text(given, "note"),
                    seconds=min(seconds, self._leases.age(taken) if lease else _LONGEST),
                    correcting=given.get("correct") is True,
                )
            finally:
                self._leases.end(taken)
            return "" if there else "there is a verdict already; correct it if it is wrong"

        refused = await reading(write)
        return json_response({"item": str(id), "verdict": saying, "refused": refused})

    async def _changing(self, http: Request) -> tuple[str, dict[str, Any]]:
        """The reviewer who wants a change, and what the request says."""
        reviewer = self._access.changing(http)
        given = parsed(await read_body(http, _BODY, 10))
        if not isinstance(given, dict):
            raise ApiError(400, "the request must be a record", code="invalid_value")
        return reviewer, given

    def _recent(self, reviewer: str) -> Sequence[dict[str, Any]]:
        """What this reviewer said last, newest first."""
        found = {id: entry for id, entry in reviews(self._ledger) if entry.reviewer == reviewer}
        newest = [*found.items()][: -_RECENT - 1 : -1]
        return [
            {"item": str(id), "verdict": entry.verdict.value, "note": entry.note}
            for id, entry in newest
        ]


def _shown(item: Item) -> dict[str, Any]:
    """What the page shows. It has neither scores nor verdicts."""
    check = item.check
    return {
        "id": str(item.id),
        "problem": item.problem,
        "prompt": item.prompt,
        "text": item.text,
        "question": check.question,
        "rubric": [*check.rubric],
        "minutes": check.minutes,
    }


def _item_id(given: dict[str, Any]) -> ItemId:
    try:
        return ItemId.parse(_text(given, "item"))
    except UsageError as error:
        raise wrong("item", str(error)) from error


def _text(given: dict[str, Any], name: str) -> str:
    value = given.get(name, "")
    if not isinstance(value, str):
        raise wrong(name, "must be a text")
    return value
