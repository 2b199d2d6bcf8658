"""One OpenAI-compatible endpoint: requests, answers, failures.

Never retries, sleeps or limits. The key comes from the environment and stays in the client. The key
and the secret parts of the address are removed from everything the server says.

It sends its requests with httpx2. OpenAI's own client would send the same ones; it takes half a
second to import, and as much processor time per request again as httpx2.
"""

from __future__ import annotations

import asyncio
import json
import os
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ...core.errors import BackendError, UsageError, installing
from ...files import error_line, parse_json
from .faults import Cause, complaint, of_exception, of_response
from .secrets import Secrets
from .web import Failures, address, client_errors, host_of, shown, tls

if TYPE_CHECKING:
    import httpx2

KEY = "OPENAI_API_KEY"
_OPENAI = "https://api.openai.com/v1"
_NO_KEY = "none"  # sent to a server that needs no key
_HEADERS = {"openai-organization": "OPENAI_ORG_ID", "openai-project": "OPENAI_PROJECT_ID"}
_SECONDS = 3600.0  # the runtime times out long before

# Requests in flight per client. For each request a client scans all its connections, which with 64
# of them is a third of its work. So there are several clients with a few connections each.
_ROOM = 4

_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_Error = TypeVar("_Error", bound=BackendError)


@dataclass(slots=True)
class _Lane:
    """A client, and how many requests it has in flight."""

    client: httpx2.AsyncClient
    in_flight: int = 0


class Endpoint(Failures[_Error]):
    """An OpenAI-compatible server, and the class of its errors.

    Args:
        base_url: such as http://localhost:8000/v1; None is OPENAI_BASE_URL, or else OpenAI.
        backend: the name for errors.
        error: the class of errors that failures become.
        hidden: further secrets that requests contain.

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
    ) -> None:
        try:
            import httpx2
        except ImportError as exc:
            raise UsageError(f"{backend} needs httpx2: {installing('openai')}") from exc
        self._httpx2 = httpx2
        given = base_url or os.environ.get("OPENAI_BASE_URL") or None
        self.base_url = None if given is None else address(given)
        if self.base_url is None and not os.environ.get(KEY):
            raise UsageError(
                f"{KEY} is not set; set it, or name another server, as in "
                "--base-url http://localhost:8000/v1"
            )
        self._key = os.environ.get(KEY) or None
        secrets = Secrets.of(self.base_url, self._key, *hidden)
        place = host_of(self.base_url or _OPENAI)
        super().__init__(backend, error, secrets, place=place, key=KEY)
        self._addresses: dict[str, httpx2.URL] = {}
        # A connection works only in the event loop that opened it.
        self._lanes: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, list[_Lane]] = (
            weakref.WeakKeyDictionary()
        )

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

    async def ask(self, path: str, body: Mapping[str, Any], problem_id: str) -> Any:
        """The answer to a request, as JSON data; failures are errors of this endpoint's class."""
        lane = self._lane()
        lane.in_flight += 1
        try:
            content = _JSON.encode(dict(body)).encode()
            response = await lane.client.post(self._address(path), content=content)
            response.raise_for_status()
        except client_errors() as exc:
            raise self._translated(exc, problem_id, body) from self.cause(exc)
        except UnicodeEncodeError as exc:
            cause = Cause(final=True, unpaid=True)
            raise self.failure("half a character in the prompt", problem_id, cause) from exc
        finally:
            lane.in_flight -= 1
        try:
            return self.secrets.hide_all(parse_json(response.content))
        except ValueError:
            raise self.failure(f"not JSON: {response.text}", problem_id) from None

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        for lane in self._lanes.pop(asyncio.get_running_loop(), []):
            await lane.client.aclose()

    def _lane(self) -> _Lane:
        """The first client with room for a request; a new one if all are full."""
        lanes = self._lanes.setdefault(asyncio.get_running_loop(), [])
        for lane in lanes:
            if lane.in_flight < _ROOM:
                return lane
        client = self._httpx2.AsyncClient(
            headers=self._headers(),
            timeout=self._httpx2.Timeout(_SECONDS, connect=60.0),
            follow_redirects=True,
            verify=tls(),
        )
        lanes.append(_Lane(client))
        return lanes[-1]

    def _headers(self) -> dict[bytes, bytes]:
        """The headers of all requests, as OpenAI's client sends them."""
        headers = {"accept": "application/json", "content-type": "application/json"}
        headers["authorization"] = f"Bearer {self._key or _NO_KEY}"
        headers |= {name: os.environ[of] for name, of in _HEADERS.items() if os.environ.get(of)}
        for line in os.environ.get("OPENAI_CUSTOM_HEADERS", "").splitlines():
            name, colon, value = line.partition(":")
            headers |= {name.strip().lower(): value.strip()} if colon else {}
        return {name.encode(): value.encode() for name, value in headers.items()}

    def _address(self, path: str) -> httpx2.URL:
        """The address of a path of this server; its query stays."""
        if path not in self._addresses:
            url = self._httpx2.URL(self.base_url or _OPENAI)
            self._addresses[path] = url.copy_with(path=url.path.rstrip("/") + path)
        return self._addresses[path]

    def _translated(self, exc: Exception, problem_id: str, body: Mapping[str, Any]) -> _Error:
        cause = of_exception(exc)
        match exc:
            case self._httpx2.HTTPStatusError(response=response):
                message = f"status {response.status_code}: {complaint(response.text)}"
                cause = of_response(response.status_code, response.text, response.headers, body)
            case self._httpx2.TimeoutException():
                message = "no answer in time"
            case self._httpx2.InvalidURL():
                message = error_line(exc, named=True, most=10_000)
            case _:
                message = f"no connection: {error_line(exc, named=True, most=10_000)}"
        return self.failure(message, problem_id, cause)


def status(error: BackendError) -> int | None:
    """The HTTP status that caused an error, if any."""
    response = getattr(error.__context__, "response", None)
    return None if response is None else int(response.status_code)
