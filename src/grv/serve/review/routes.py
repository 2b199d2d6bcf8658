"""The page for reviewers, and its API.

Every change needs the key of a reviewer, our own page as its origin, and the token of that page.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...backends.verifiers.math.statement import marked_answer
from ...core.errors import UsageError
from ...files import is_number
from ..door import parse_body, read_body
from ..errors import ApiError, wrong
from ..pages.access import Access
from ..pages.answers import json_response
from ..pages.routes import page, reading
from .desk import SAYINGS, Desk, Refused
from .leases import Lease
from .queue import ItemId, ReviewItem, reviews

_BODY = 64 << 10
_RECENT = 20  # verdicts of a reviewer that are listed
_MOST_SKIPPED = 10_000  # candidates that a reviewer skipped; the oldest are forgotten
_STATUS = {"unknown": 404}  # of refusals; the others are conflicts


class Review:
    """The queue of a ledger.

    Args:
        desk: gives candidates to reviewers.
        access: who may review.
    """

    def __init__(self, desk: Desk, access: Access) -> None:
        self._desk = desk
        self._access = access
        self._skipped: defaultdict[str, dict[ItemId, None]] = defaultdict(dict)
        self._lock = threading.Lock()

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
            waiting = self._desk.queue.waiting()
            skipped = self._skipped_by(reviewer)
            return {
                "waiting": len(waiting),
                "skipped": sum(id in skipped for id in waiting),
                "leased": self._desk.leases.count,
                "recent": self._recent(reviewer),
            }

        return json_response(await reading(read, reviewer))

    async def _next(self, http: Request) -> Response:
        """Lease the next item, but none that this reviewer skipped."""
        reviewer, _ = await self._changing(http)

        def read() -> dict[str, Any]:
            return self._given(self._desk.next(reviewer, self._skipped_by(reviewer)))

        return json_response(await reading(read, reviewer))

    async def _open(self, http: Request) -> Response:
        """Lease this item: one that waits, or one whose verdict is to be corrected."""
        reviewer, given = await self._changing(http)
        id = _item_id(given)

        def read() -> dict[str, Any]:
            return self._given(self._desk.open(reviewer, id))

        return json_response(await _accepted(read, reviewer))

    def _given(self, given: tuple[Lease, ReviewItem] | None) -> dict[str, Any]:
        waiting = len(self._desk.queue.waiting())
        if given is None:
            return {"item": None, "waiting": waiting}
        lease, item = given
        shown = {"item": _shown(item), "lease": lease.secret, "waiting": waiting}
        return {**shown, "correct": lease.corrects is not None}

    async def _here(self, http: Request) -> Response:
        """The page is still open. The answer is whether it still has the item."""
        reviewer, given = await self._changing(http)
        id = _item_id(given)
        secret = _text(given, "lease")

        def held() -> bool:
            return self._desk.leases.held(id, secret, reviewer) is not None

        return json_response({"item": str(id), "held": await reading(held, reviewer)})

    async def _leave(self, http: Request) -> Response:
        """The page is closed, or the reviewer skips the item."""
        reviewer, given = await self._changing(http)
        id = _item_id(given)
        secret = _text(given, "lease")

        def end() -> None:
            lease = self._desk.leases.held(id, secret, reviewer)
            if lease is None:
                return
            if given.get("skip") is True:
                self._skip(reviewer, id)
            self._desk.leases.end(lease)

        await reading(end, reviewer)
        return json_response({"item": str(id)})

    def _skipped_by(self, reviewer: str) -> frozenset[ItemId]:
        with self._lock:
            return frozenset(self._skipped[reviewer])

    def _skip(self, reviewer: str, id: ItemId) -> None:
        with self._lock:
            skipped = self._skipped[reviewer]
            skipped[id] = None
            if len(skipped) > _MOST_SKIPPED:
                del skipped[next(iter(skipped))]

    async def _verdict(self, http: Request) -> Response:
        """Write a verdict; the item then leaves the queue."""
        reviewer, given = await self._changing(http)
        id = _item_id(given)
        secret = _text(given, "lease")
        saying = _text(given, "verdict")
        note = _text(given, "note")
        seconds = given.get("seconds")
        if saying not in SAYINGS:
            raise wrong("verdict", f"must be one of {', '.join(SAYINGS)}")
        if not is_number(seconds) or seconds < 0:
            raise wrong("seconds", "must be a number and not negative")

        def write() -> None:
            self._desk.give(id, secret, saying, reviewer=reviewer, note=note, seconds=seconds)

        await _accepted(write, reviewer)
        return json_response({"item": str(id), "verdict": saying})

    async def _changing(self, http: Request) -> tuple[str, dict[str, Any]]:
        """The reviewer who wants a change, and what the request says."""
        reviewer = self._access.changing(http)
        given = parse_body(await read_body(http, _BODY, 10))
        if not isinstance(given, dict):
            raise ApiError(400, "the request must be a record", code="invalid_value")
        return reviewer, given

    def _recent(self, reviewer: str) -> Sequence[dict[str, Any]]:
        """What this reviewer said last, newest first."""
        found = {
            id: entry
            for id, entry in reviews(self._desk.queue.ledger)
            if entry.reviewer == reviewer
        }
        newest = [*found.items()][: -_RECENT - 1 : -1]
        problems = self._desk.queue.problems(id.search for id, _ in newest)
        return [
            {
                "item": str(id),
                "problem": problems.get(id.search, ""),
                "verdict": entry.verdict.value,
                "note": entry.note,
            }
            for id, entry in newest
        ]


async def _accepted(work: Callable[[], Any], reviewer: str) -> Any:
    """What the desk answers, in a thread; a refusal is an ApiError."""
    try:
        return await reading(work, reviewer)
    except Refused as refused:
        status = _STATUS.get(refused.code, 409)
        raise ApiError(status, str(refused), code=refused.code) from refused


def _shown(item: ReviewItem) -> dict[str, Any]:
    """What the page shows. It has neither scores nor verdicts."""
    check = item.check
    return {
        "id": str(item.id),
        "problem": item.problem,
        "prompt": item.prompt,
        "text": item.text,
        "answer_value": marked_answer(item.text),
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
