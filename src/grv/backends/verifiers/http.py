"""An HTTP endpoint as a verifier.

It is sent `{"problem": id, "prompt": ..., "candidate": text, "check": {...}}` by POST, and answers
`{"verdict": "passed" | "failed" | "broken", "reason": "...", "evidence": {...}}` with status 200;
the last two may be left out. Anything else is a `VerifierError`.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ...core.errors import UsageError, VerifierError
from ...core.values import Verdict
from ...files import parse_json
from ...files import shown as shown_value
from ..http.secrets import Secrets
from ..http.web import address, brief, seconds_to_wait, shown
from ..protocols import Draft, Finding, Problem, Usage

if TYPE_CHECKING:
    import httpx2

_LONGEST_ANSWER = 1 << 20  # bytes
_BACKEND = "http verifier"
_PUBLIC = ("accept", "content-type", "user-agent")  # headers that are no secrets


class HttpVerifier:
    """Asks an HTTP endpoint.

    Used as `async with HttpVerifier(...) as verifier`, it keeps its connections; otherwise each
    candidate has one of its own.

    Args:
        url: where to post.
        headers: sent with every request.
        timeout_seconds: for one candidate, from the first byte sent to the last received.
        transport: in place of the network.

    Raises:
        UsageError: the address is none, or httpx2 is not installed.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        timeout_seconds: float = 60.0,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        try:
            import httpx2
        except ImportError as exc:
            raise UsageError("an HTTP verifier needs httpx2: pip install 'grv[http]'") from exc
        self._httpx2 = httpx2
        try:
            self._url = httpx2.URL(url)
            address(url)
        except (httpx2.InvalidURL, TypeError) as exc:
            raise UsageError(f"not an address: {shown(str(url))!r}") from exc
        if not (math.isfinite(timeout_seconds) and timeout_seconds > 0):
            raise UsageError(f"timeout_seconds must be positive, not {timeout_seconds}")
        given = dict(headers or {})
        private = [value for name, value in given.items() if name.lower() not in _PUBLIC]
        self._secrets = Secrets.of(url, *(word for value in private for word in value.split()))
        self._headers = {"content-type": "application/json", **given}
        self._timeout = timeout_seconds
        self._transport = transport
        self._client: httpx2.AsyncClient | None = None

    async def __aenter__(self) -> HttpVerifier:
        self._client = self._new_client()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def verify(self, problem: Problem, draft: Draft) -> Finding:
        """The endpoint's finding.

        Raises:
            VerifierError: it could not be asked, or its answer is none.
        """
        started = time.monotonic()
        content = _question(problem, draft)
        try:
            async with asyncio.timeout(self._timeout):
                if self._client is not None:
                    answer = await self._post(self._client, content, problem)
                else:
                    async with self._new_client() as client:
                        answer = await self._post(client, content, problem)
            finding = _finding(self._secrets.hide_all(_parsed(answer)), time.monotonic() - started)
        except TimeoutError as exc:
            raise self._failed(f"no answer within {self._timeout} seconds", problem) from exc
        except ValueError as exc:
            raise self._failed(str(exc), problem) from None  # which would repeat the answer
        except foreign_errors() as exc:
            leaks = self._secrets.is_in(f"{exc!r} {exc.__cause__!r}")
            cause = None if leaks else exc
            raise self._failed(f"{type(exc).__name__}: {exc}", problem) from cause
        return finding

    def _new_client(self) -> httpx2.AsyncClient:
        return self._httpx2.AsyncClient(
            headers=self._headers, timeout=self._timeout, transport=self._transport
        )

    async def _post(self, client: httpx2.AsyncClient, content: bytes, problem: Problem) -> bytes:
        """The body of the answer."""
        async with client.stream("POST", self._url, content=content) as response:
            if response.status_code != 200:
                raise self._failed(
                    f"status {response.status_code}",
                    problem,
                    retry_after=seconds_to_wait(response.headers),
                )
            body = b""
            async for part in response.aiter_bytes():
                body += part
                if len(body) > _LONGEST_ANSWER:
                    raise self._failed(f"an answer of more than {_LONGEST_ANSWER} bytes", problem)
            return body

    def _failed(
        self, message: str, problem: Problem, *, retry_after: float | None = None
    ) -> VerifierError:
        return VerifierError(
            brief(message, self._secrets),
            backend=_BACKEND,
            problem_id=problem.id,
            retry_after=retry_after,
        )


def foreign_errors() -> tuple[type[Exception], ...]:
    """Every kind of exception that httpx2 raises."""
    import httpx2

    return (
        httpx2.HTTPError,
        httpx2.InvalidURL,
        httpx2.CookieConflict,
        httpx2.StreamError,
    )


def _question(problem: Problem, draft: Draft) -> bytes:
    question = {
        "problem": problem.id,
        "prompt": problem.prompt,
        "candidate": draft.text,
        "check": dict(problem.check),
    }
    try:
        return json.dumps(question).encode()
    except (TypeError, ValueError) as exc:
        raise UsageError(f"the check of problem {problem.id} is not JSON data: {exc}") from exc


def _parsed(body: bytes) -> Any:
    try:
        return parse_json(body)
    except ValueError as exc:
        raise ValueError(f"the answer is not JSON: {body.decode('utf-8', 'replace')}") from exc


def _finding(answer: Any, seconds: float) -> Finding:
    """The finding in an answer; a `ValueError` where there is none."""
    if not isinstance(answer, dict):
        raise ValueError(f"the answer is not a record: {shown_value(answer)}")
    verdicts = {verdict.value: verdict for verdict in Verdict}
    verdict, reason = answer.get("verdict"), answer.get("reason", "")
    evidence = answer.get("evidence", {})
    if not isinstance(verdict, str) or verdict not in verdicts:
        raise ValueError(f"verdict must be passed, failed or broken, not {shown_value(verdict)}")
    if not isinstance(reason, str) or not isinstance(evidence, dict):
        raise ValueError("reason must be a string, and evidence a record")
    return Finding(verdicts[verdict], reason, evidence, Usage(seconds=seconds))
