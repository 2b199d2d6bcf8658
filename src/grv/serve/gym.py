"""Checks behind the contract of NeMo Gym: POST `/verify` returns the request with a reward.

A request is a row, the request to a model (`responses_create_params`) and the model's answer
(`response`). The row says how the answer is verified: by the fields that NeMo Gym's own servers
read, such as `expected_answer`, or by the field `check`, which is one of ours. Clients may give
only checks that are data, as in `grv serve`.
"""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ..backends.problems.nemo_gym import nemo_gym
from ..backends.problems.records import NotConverted, Record, Wanted
from ..backends.protocols import Draft, Finding, Problem
from ..backends.sandbox.limits import RunLimits
from ..backends.verifiers.pool import CheckVerifier
from ..core.errors import GrvError, LedgerError, UsageError
from ..core.values import REFUTED, Verdict
from ..files import shown
from ..text import checksum
from .buffers import Buffer, Buffers
from .clients import Clients
from .completions.checks import check_guest, named_error
from .completions.dialect import as_json
from .completions.streaming import until_left
from .door import Door, OpenRequests, parse_body, read_body
from .errors import ApiError, wrong
from .events import Events
from .fields import record
from .guard import ClientLeft, RequestGuard, client_of
from .searches import Places
from .threads import ClientThreads

PATH = "/verify"
_ROLLOUT = "/ng-rollout/{rollout}"  # before the path, if NeMo Gym observes rollouts
_PARSERS = 4  # threads that parse requests
_REWARDS = {Verdict.PASSED: 1.0, Verdict.FAILED: 0.0, Verdict.BROKEN: 0.0}


class GymApplication:
    """Answers requests for verdicts. It is an ASGI application, and the work of its server.

    Args:
        verifier: gives the verdicts.
        limits: what programs may use; a check may lower them.
        clients: who may use it.
        door: admits requests.
        events: is told of requests.
        slow: seconds that a client may take to send a request.

    Attributes:
        lost, ledger_lost: as of searches; there is no ledger to lose.
    """

    lost: LedgerError | None = None

    def __init__(
        self,
        verifier: CheckVerifier,
        limits: RunLimits,
        clients: Clients,
        door: Door,
        events: Events,
        slow: float,
    ) -> None:
        self.ledger_lost = anyio.Event()
        self._verifier = verifier
        self._limits = limits
        self._clients = clients
        self._bounds = door.bounds
        self._slow = slow
        self._parsers = ClientThreads(_PARSERS, known=clients.known)
        self._places = Places(max(1, verifier.engine.slots))
        self._buffers = Buffers(door.bounds.client)
        self._open = OpenRequests(door.bounds.requests // 2 if clients.known else math.inf)
        self._closed = False
        self._running = 0
        self._ended = anyio.Event()
        routes = [Route("/health", self._health, methods=["GET"])]
        for rollout in ("", _ROLLOUT):
            routes += [
                Route(rollout + PATH, self._verify, methods=["POST"]),
                Route(f"{rollout}/seed_session", self._seed, methods=["POST"]),
            ]
        self._guard = RequestGuard(routes, door, events, _failure)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await self._guard(scope, receive, send)

    async def _health(self, http: HttpRequest) -> Response:
        return _json({"status": "ok"})

    async def _seed(self, http: HttpRequest) -> Response:
        """A session begins. There is nothing to prepare."""
        client_of(http, self._clients)
        return _json({})

    async def _verify(self, http: HttpRequest) -> Response:
        client = client_of(http, self._clients)
        held: ExitStack = http.scope["held"]
        held.enter_context(self._open.one_more(client.name))
        buffer: Buffer = held.enter_context(self._buffers.of(client.name))
        content = await read_body(http, self._bounds.body, self._slow, buffer.add)
        if self._closed:
            message = "the server is shutting down"
            raise ApiError(503, message, code="shutting_down", retry_after=2)

        def parse() -> tuple[dict[str, Any], Problem, str]:
            body = record(parse_body(content), "", "the request")
            problem = problem_of(body, self._limits)
            try:
                self._verifier.prepare(problem)
            except UsageError as error:
                raise named_error(error) from error
            return body, problem, text_of(body.get("response"))

        body, problem, text = await self._parsers.run(client.name, parse)
        self._running += 1
        try:
            async with until_left(http.receive) as left:
                finding = await self._found(client.name, problem, text)
        finally:
            self._running -= 1
            self._ended.set()
        if left.is_set():
            raise ClientLeft
        return _json(reply(body, finding), buffer)

    async def _found(self, client: str, problem: Problem, text: str) -> Finding:
        draft = Draft(text)
        refuted = partial(self._verifier.refutation, problem, draft)
        refutation = await self._parsers.run(client, refuted)
        if refutation is not None:
            return Finding(Verdict.FAILED, refutation, {"key": REFUTED})
        async with self._places.one(client):
            started = time.monotonic()
            try:
                return await self._verifier.verify(problem, draft)
            finally:
                self._places.charge(client, time.monotonic() - started)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """There is nothing to run beside the requests."""
        yield

    async def close(self, grace: float) -> None:
        """Begin no more verifications; give those that run some seconds to end."""
        self._closed = True
        with anyio.move_on_after(grace):
            while self._running:
                self._ended = anyio.Event()
                await self._ended.wait()

    def stop(self) -> None:
        """Begin no more verifications."""
        self._closed = True


def problem_of(body: Mapping[str, Any], limits: RunLimits) -> Problem:
    """The problem of a request, with the check of its row, which is data within the limits."""
    row = Record({**body, "id": "request"}, "request", 1, "request")
    check = body.get("check")
    if check is not None:
        if not isinstance(check, Mapping):
            raise wrong("check", f"must be a check, not {shown(check)}")
        asked = body.get("responses_create_params")
        prompt = str(asked.get("input", "")) if isinstance(asked, Mapping) else ""
        problem = Problem("request", prompt, check)
    else:
        try:
            problem = nemo_gym(row, Wanted()).problem
        except NotConverted as error:
            message = f"there is no check for this row: {error}; give the field check"
            raise ApiError(400, message, code="invalid_value") from error
        except UsageError as error:
            raise ApiError(400, str(error), code="invalid_value") from error
    check_guest(problem.check, limits)
    return replace(problem, id=f"request {checksum(str(sorted(problem.check.items())))[:16]}")


def text_of(response: Any) -> str:
    """What a model has answered: the texts of its last message."""
    items = response.get("output") if isinstance(response, Mapping) else None
    if not isinstance(items, list):
        raise wrong("response.output", "must be a list of items")
    for item in reversed(items):
        match item:
            case {"type": "message", "role": "assistant", "content": [*parts]}:
                texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
                return "".join(text for text in texts if isinstance(text, str))
            case {"type": "message", "role": "assistant", "content": str(text)}:
                return text
    return ""


def reply(body: Mapping[str, Any], finding: Finding) -> dict[str, Any]:
    """The request with the reward. What could not be verified is marked as NeMo Gym marks it."""
    said = {"verdict": finding.verdict.value, "reason": finding.reason}
    answer = {**body, "reward": _REWARDS[finding.verdict], "grv": said}
    if finding.verdict is Verdict.BROKEN:
        answer |= {"_ng_failure_class": "judge_failed", "_ng_failure_judge_error": finding.reason}
    return answer


def _failure(error: GrvError) -> ApiError:
    """An error of a verifier; it may name addresses, so clients learn only that there was one."""
    return ApiError(500, "the verification failed", code="verification_failed", retry_after=5)


def _json(data: Mapping[str, Any], buffer: Buffer | None = None) -> Response:
    content = as_json(data)
    if buffer is not None:
        buffer.add(len(content))
    return Response(content, media_type="application/json")
