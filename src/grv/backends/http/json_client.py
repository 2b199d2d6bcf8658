"""Posts JSON to one address and reads the answer, within a size limit. Never retries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ...core.errors import BackendError, UsageError, installing
from ...files import error_line, parse_json
from .. import tracing
from .bodies import ACCEPTED, BodyTooLarge, OtherEncoding, whole
from .client_pool import ClientPool
from .faults import THIS_CALL, Cause, complaint, of_exception, of_response
from .secrets import Secrets
from .web import Failures, address, client_errors, host_of, tls

if TYPE_CHECKING:
    import httpx2

_LARGEST = 16 << 20  # bytes of an answer
_Error = TypeVar("_Error", bound=BackendError)


@dataclass(frozen=True, slots=True)
class Reply:
    """A response: its status, its body, and what it means if it is an error."""

    status: int
    content: bytes
    cause: Cause

    @property
    def text(self) -> str:
        """The body as text."""
        return self.content.decode("utf-8", "replace")

    @property
    def message(self) -> str:
        """What an error response says."""
        return f"status {self.status}: {complaint(self.text)}"


class JsonClient(Failures[_Error]):
    """Posts JSON to one address; failures become errors of the class `error`.

    Args:
        url: the address.
        key: sent as a bearer token; may be None.
        key_name: the environment variable that holds the key.
        backend: the name for errors.
        error: the class of errors.
        seconds: the time limit for connecting, and between two reads.
        transport: used instead of the network.
    """

    def __init__(
        self,
        url: str,
        key: str | None,
        *,
        key_name: str,
        backend: str,
        error: type[_Error],
        seconds: float = 3600.0,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        try:
            import httpx2
        except ImportError as exc:
            raise UsageError(f"{backend} needs httpx2: {installing('http')}") from exc
        address(url)
        secrets = Secrets.of(url, key)
        super().__init__(backend, error, secrets, place=host_of(url), key=key_name)
        self._httpx2 = httpx2
        self.url = url
        self._transport = transport
        self._headers = {"content-type": "application/json", "accept-encoding": ACCEPTED}
        if key:
            self._headers["authorization"] = f"Bearer {key}"
        self._timeout = httpx2.Timeout(seconds, connect=min(seconds, 60.0))
        self._clients = ClientPool(self._client)

    async def post(self, body: Mapping[str, Any], problem_id: str) -> Reply:
        """The response to a POST request, with any status; an error if there is none."""
        try:
            content = json.dumps(body).encode()
            with self._clients.client() as client:
                async with client.stream(
                    "POST", self.url, content=content, headers=tracing.headers()
                ) as response:
                    return _reply(response, await whole(response, _LARGEST), body)
        except (BodyTooLarge, OtherEncoding) as exc:
            raise self.failure(str(exc), problem_id) from exc
        except client_errors() as exc:
            message = error_line(exc, named=True, most=10_000)
            raise self.failure(message, problem_id, of_exception(exc)) from self.cause(exc)

    def data(self, reply: Reply, problem_id: str) -> Any:
        """The JSON data of a reply, without secrets: numbers and messages, never a candidate."""
        try:
            return self.secrets.hide_all(parse_json(reply.content))
        except ValueError:
            raise self.failure(f"not JSON: {reply.text}", problem_id) from None

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        await self._clients.aclose()

    def _client(self) -> httpx2.AsyncClient:
        return self._httpx2.AsyncClient(
            headers=self._headers,
            timeout=self._timeout,
            limits=self._httpx2.Limits(max_connections=None),
            transport=self._transport,
            verify=tls(),
        )


def _reply(response: httpx2.Response, content: bytes, sent: Mapping[str, Any]) -> Reply:
    text = content.decode("utf-8", "replace")
    status = response.status_code
    cause = THIS_CALL if status == 200 else of_response(status, text, response.headers, sent)
    return Reply(status, content, cause)
