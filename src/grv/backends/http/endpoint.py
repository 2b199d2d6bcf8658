"""One OpenAI-compatible endpoint, through the official client: requests, answers, failures.

Never retries, sleeps or limits. The key comes from the environment and stays in the client. The key
and the secret parts of the address are removed from everything the server says.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ...core.errors import BackendError, UsageError, installing
from ...files import error_line, parse_json
from .faults import Cause, complaint, of_exception, of_response
from .secrets import Secrets
from .web import Failures, address, client_errors, host_of, shown

if TYPE_CHECKING:
    import ssl

    import openai

KEY = "OPENAI_API_KEY"
_OPENAI = "https://api.openai.com/v1"
_NO_KEY = "none"  # sent to a server that needs no key
_SECONDS = 3600.0  # the runtime times out long before

# Requests in flight per client. For each request a client scans all its connections, which with 64
# of them is a third of its work. So there are several clients with a few connections each.
_ROOM = 4

_Error = TypeVar("_Error", bound=BackendError)


@dataclass(slots=True)
class _Lane:
    """A client, and how many requests it has in flight."""

    client: openai.AsyncOpenAI
    in_flight: int = 0


class Endpoint(Failures[_Error]):
    """An OpenAI-compatible server, and the class of its errors.

    Args:
        base_url: such as http://localhost:8000/v1; None is OPENAI_BASE_URL, or else OpenAI.
        backend: the name for errors.
        error: the class of errors that failures become.
        hidden: further secrets that requests contain.

    Raises:
        UsageError: the client is not installed, there is no key, or the address is invalid.
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
            import openai
        except ImportError as exc:
            raise UsageError(f"{backend} needs openai: {installing('openai')}") from exc
        self._openai, self._httpx2, self._answer = openai, httpx2, httpx2.Response
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
        self._tls: ssl.SSLContext | None = None
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
        client = lane.client
        lane.in_flight += 1
        try:
            response = await client.post(path, body=dict(body), cast_to=self._answer)
        except foreign_errors() as exc:
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
            await lane.client.close()

    def _lane(self) -> _Lane:
        """The first client with room for a request; a new one if all are full."""
        lanes = self._lanes.setdefault(asyncio.get_running_loop(), [])
        for lane in lanes:
            if lane.in_flight < _ROOM:
                return lane
        if self._tls is None:
            self._tls = self._httpx2.create_ssl_context()  # once: it reads all certificates
        client = self._openai.AsyncOpenAI(
            api_key=self._key or _NO_KEY,
            base_url=self.base_url,
            timeout=self._openai.Timeout(_SECONDS, connect=60.0),
            max_retries=0,
            http_client=self._openai.DefaultAsyncHttpxClient(verify=self._tls),
        )
        lanes.append(_Lane(client))
        return lanes[-1]

    def _translated(self, exc: Exception, problem_id: str, body: Mapping[str, Any]) -> _Error:
        cause = of_exception(exc)
        match exc:
            case self._openai.APITimeoutError():
                message = "no answer in time"
            case self._openai.APIConnectionError():
                said = exc.__cause__ or exc
                message = f"no connection: {error_line(said, named=True, most=10_000)}"
            case self._openai.APIStatusError():
                text = exc.response.text
                message = f"status {exc.status_code}: {complaint(text)}"
                cause = of_response(exc.status_code, text, exc.response.headers, body)
            case _:
                message = error_line(exc, named=True, most=10_000)
        return self.failure(message, problem_id, cause)


def foreign_errors() -> tuple[type[Exception], ...]:
    """Every class of exception that the OpenAI client, or httpx2 below it, raises."""
    import openai

    return (openai.OpenAIError, openai.InvalidWebhookSignatureError, *client_errors())


def status(error: BackendError) -> int | None:
    """The HTTP status that caused an error, if any."""
    said = getattr(error.__context__, "status_code", None)
    return said if isinstance(said, int) else None
