"""One endpoint of a model: requests, answers, failures.

Never retries, sleeps or limits. The key comes from the environment and stays in the client. The key
and the secret parts of the address are removed from what the server says in errors. Answers are
returned as they are.

It sends its requests with httpx2. OpenAI's own client would send the same ones; it takes half a
second to import, and as much processor time per request again as httpx2.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from ...core.errors import CALLS_AT_ONCE, BackendError, UsageError, installing
from ...files import error_line
from .. import tracing
from .bodies import (
    ACCEPTED,
    LARGEST_CHOICE,
    AnswerReader,
    BodyTooLarge,
    OtherEncoding,
    Reduce,
    pieces,
)
from .client_pool import ClientPool
from .faults import Cause, complaint, of_exception, of_response
from .quotas import SAID, quotas
from .secrets import KEYS, Secrets, key_in, keys_of_headers
from .service import OPENAI, Service
from .web import Failures, address, client_errors, host_of, shown, tls

if TYPE_CHECKING:
    import httpx2

_LARGEST_REPLY = 16 << 20  # bytes of a response that has no candidates
_LARGEST_ERROR = 1 << 20  # bytes of an error response that are read
_BARE = "check the name of the model and the address of the server; it often ends in /v1"
_NO_MODEL = "check the address of the server: no model answers there"
_ELSEWHERE = Cause("stop", unpaid=True, hint="name that server, if you trust it")
_SECONDS = 3600.0  # the runtime times out long before

# Requests in flight per client. For each request a client scans all its connections, which with 64
# of them is a third of its work. So there are several clients with a few connections each.
_ROOM = 4

_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_Error = TypeVar("_Error", bound=BackendError)


class _LeadsAwayError(Exception):
    """A server redirects to another one."""


class Endpoint(Failures[_Error]):
    """A server of a model, and the class of its errors.

    Args:
        base_url: such as http://localhost:8000/v1; None is the provider's variable for it, such as
            OPENAI_BASE_URL, or else the provider.
        backend: the name for errors.
        error: the class of errors that failures become.
        hidden: further secrets that requests contain.
        service: how the provider is reached; OpenAI-compatible by default.

    Raises:
        UsageError: httpx2 is not installed, there is no key, or the address is invalid.
    """

    def __init__(
        self,
        base_url: str | None,
        *,
        backend: str,
        error: type[_Error],
        hidden: Iterable[str] = (),
        service: Service = OPENAI,
    ) -> None:
        try:
            import httpx2
        except ImportError as exc:
            raise UsageError(f"{backend} needs httpx2: {installing('openai')}") from exc
        self._httpx2 = httpx2
        self.service = service
        given = base_url or os.environ.get(service.base_url) or None
        self.base_url = None if given is None else address(given)
        self._key = service.key
        if self.base_url is None and self._key is None:
            raise UsageError(
                f"{service.keys[0]} is not set; set it, or name another server, as in "
                f"--base-url {service.example}"
            )
        headers = keys_of_headers(service.custom())
        # No candidate may contain any of the keys, whichever server it is for.
        secrets = Secrets.of(self.base_url, *map(key_in, KEYS), *headers, *hidden)
        place = host_of(self.base_url or service.address)
        super().__init__(backend, error, secrets, place=place, key=service.key_name)
        self._addresses: dict[str, httpx2.URL] = {}
        self._clients = ClientPool(self._client, _ROOM)

    def __repr__(self) -> str:
        return f"Endpoint({self.shown!r})"

    @property
    def shown(self) -> str | None:
        """The address without secrets."""
        return None if self.base_url is None else shown(self.base_url)

    def cut(self, tokens: int, *, chat: bool) -> dict[str, int]:
        """The parameter that limits the length of an answer, as this endpoint names it."""
        # OpenAI's newer models refuse the old name; many other servers do not know the new one.
        new = chat and self.base_url is None
        return {"max_completion_tokens" if new else "max_tokens": tokens}

    async def ask(
        self,
        path: str,
        body: Mapping[str, Any],
        problem_id: str,
        *,
        choices: int = 1,
        reduce: Reduce = lambda choice: choice,
    ) -> Any:
        """The answer to a request, as JSON data; failures are errors of this endpoint's class.

        Of a large answer, `choices` choices are kept, each as `reduce` returns it.
        """
        reader = AnswerReader(choices, reduce)
        try:
            content = _JSON.encode(dict(body)).encode()
            with self._clients.client() as client:
                async with client.stream(
                    "POST", self._address(path), content=content, headers=tracing.headers()
                ) as response:
                    SAID.set(quotas(response.headers, self.service.quotas))
                    await self._check_status(response)
                    async for piece in pieces(response, LARGEST_CHOICE * (choices + 1)):
                        reader.add(piece)
        except (BodyTooLarge, OtherEncoding) as exc:
            raise self.failure(str(exc), problem_id) from exc
        except _LeadsAwayError as exc:
            raise self.failure(str(exc), problem_id, _ELSEWHERE) from exc
        except client_errors() as exc:
            raise self._translated(exc, problem_id, path, body) from self.cause(exc)
        except UnicodeEncodeError as exc:
            cause = Cause(final=True, unpaid=True)
            raise self.failure("half a character in the prompt", problem_id, cause) from exc
        try:
            return reader.answer()
        except ValueError as exc:
            is_page = reader.beginning.lstrip().startswith("<")
            cause = Cause(hint=_NO_MODEL if is_page else "")
            message = f"not JSON: {reader.beginning}"
            raise self.failure(message, problem_id, cause) from self.cause(exc)

    async def exchange(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        content: bytes = b"",
        content_type: str = "application/json",
        most: int = _LARGEST_REPLY,
    ) -> AsyncIterator[bytes]:
        """The body of a response in pieces, of at most `most` bytes in all."""
        url = self._address(path)
        if query:
            url = url.copy_merge_params(dict(query))
        try:
            with self._clients.client() as client:
                headers = {"content-type": content_type}
                async with client.stream(method, url, content=content, headers=headers) as response:
                    await self._check_status(response)
                    async for piece in pieces(response, most):
                        yield piece
        except (BodyTooLarge, OtherEncoding) as exc:
            raise self.failure(str(exc), None) from exc
        except _LeadsAwayError as exc:
            raise self.failure(str(exc), None, _ELSEWHERE) from exc
        except client_errors() as exc:
            raise self._translated(exc, None, path, {}) from self.cause(exc)

    async def _check_status(self, response: httpx2.Response) -> None:
        """Raise httpx2's error for an error response, of which only the beginning is read."""
        if response.is_success:
            return
        beginning = b""
        with contextlib.suppress(BodyTooLarge, OtherEncoding):
            async for piece in pieces(response, _LARGEST_ERROR):
                beginning += piece
        said = {name: value for name, value in response.headers.items() if "retry" in name}
        read = self._httpx2.Response(
            response.status_code, headers=said, content=beginning, request=response.request
        )
        read.raise_for_status()

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        await self._clients.aclose()

    def _client(self) -> httpx2.AsyncClient:
        return self._httpx2.AsyncClient(
            headers=self._headers(),
            timeout=self._httpx2.Timeout(_SECONDS, connect=60.0),
            follow_redirects=True,
            event_hooks={"response": [_stay]},
            verify=tls(),
        )

    def _headers(self) -> dict[bytes, bytes]:
        """The headers of all requests, as the official client sends them."""
        headers = {"accept": "application/json", "content-type": "application/json"}
        headers["accept-encoding"] = ACCEPTED
        headers |= self.service.all_headers(self._key)
        return {name.encode(): value.encode() for name, value in headers.items()}

    def _address(self, path: str) -> httpx2.URL:
        """The address of a path of this server; its query stays."""
        if path not in self._addresses:
            url = self._httpx2.URL(self.base_url or self.service.address)
            self._addresses[path] = url.copy_with(path=self.service.joined(url.path, path))
        return self._addresses[path]

    @property
    def _is_bare(self) -> bool:
        """Whether the address has no path, although such servers usually have one."""
        url = None if self.base_url is None else self._httpx2.URL(self.base_url)
        return url is not None and url.path in ("", "/") and self.service.example.endswith("/v1")

    def _is_whole(self, path: str) -> bool:
        """Whether the address already ends with the path of requests, which grv adds."""
        url = None if self.base_url is None else self._httpx2.URL(self.base_url)
        return url is not None and url.path.rstrip("/").endswith(path)

    def _translated(
        self, exc: Exception, problem_id: str | None, path: str, body: Mapping[str, Any]
    ) -> _Error:
        cause = of_exception(exc)
        match exc:
            case self._httpx2.HTTPStatusError(response=response):
                message = f"status {response.status_code}: {complaint(response.text)}"
                cause = of_response(response.status_code, response.text, response.headers, body)
                spent = next((quota.of for quota in SAID.get() if not quota.remaining), "")
                if cause.limit == CALLS_AT_ONCE and spent:
                    cause = replace(cause, limit=spent)
                if response.status_code == 404 and self._is_whole(path):
                    cause = replace(cause, hint=f"leave {path} out of the address: grv adds it")
                elif response.status_code == 404 and self._is_bare:
                    cause = replace(cause, hint=_BARE)
            case self._httpx2.TimeoutException():
                message = "no answer in time"
            case self._httpx2.RemoteProtocolError() if "complete" in str(exc):
                message = f"the answer broke off: {error_line(exc, most=10_000)}"
            case self._httpx2.InvalidURL():
                message = error_line(exc, named=True, most=10_000)
            case _:
                message = f"no connection: {error_line(exc, named=True, most=10_000)}"
        return self.failure(message, problem_id, cause)


async def _stay(response: httpx2.Response) -> None:
    """Refuse a redirect to another server.

    It would get our keys and prompts, or be one that only this machine can reach. The same host may
    ask for TLS.
    """
    if not response.has_redirect_location:
        return
    here = response.request.url
    there = here.join(response.headers["location"])
    ours = (here.scheme, here.host, here.port)
    asks_for_tls = (here.scheme, here.port) == ("http", None) and there.scheme == "https"
    same = (there.scheme, there.host, there.port) == ours
    if not same and not (asks_for_tls and there.host == here.host and there.port is None):
        raise _LeadsAwayError(f"it redirects to another server, {shown(str(there))}")


def status(error: BackendError) -> int | None:
    """The HTTP status that caused an error, if any."""
    response = getattr(error.__context__, "response", None)
    return None if response is None else int(response.status_code)


def said(error: BackendError) -> str:
    """The body of the error response that caused an error; empty if there is none."""
    response = getattr(error.__context__, "response", None)
    return "" if response is None else str(response.text)
