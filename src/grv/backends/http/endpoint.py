"""One OpenAI-compatible endpoint, through the official client: a request, its answer, its failures.

Never retries, sleeps or limits. Keys come from the environment, stay in the client, and are struck
out of whatever a server says, as is what is secret in the address.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ...core.errors import BackendError, UsageError
from ...files import parse_json
from .secrets import Secrets
from .web import address, brief, complaint, seconds_to_wait, shown

if TYPE_CHECKING:
    import ssl

    import openai

KEY = "OPENAI_API_KEY"
_HOPELESS = (401, 403, 404)  # no key, not allowed, no such model: asking again does not help
_NO_KEY = "none"  # what a server that wants no key is sent
_SECONDS = 3600.0  # the runtime gives up long before

# Requests in flight per client. At each request a client looks at every connection it has, which is
# a third of its work when there are sixty-four; so there are several clients with a few each.
_ROOM = 4

_Error = TypeVar("_Error", bound=BackendError)


@dataclass(slots=True)
class _Lane:
    """A client, and how many requests it has in flight."""

    client: openai.AsyncOpenAI
    in_flight: int = 0


class Endpoint(Generic[_Error]):
    """Where to ask, and what its failures are called.

    Args:
        base_url: such as http://localhost:8000/v1; None is OPENAI_BASE_URL, or else OpenAI.
        backend: the name for errors.
        error: the kind of error that failures become.

    Raises:
        UsageError: the client is not installed, there is no key, or the address is none.
    """

    def __init__(self, base_url: str | None, *, backend: str, error: type[_Error]) -> None:
        try:
            import httpx2
            import openai
        except ImportError as exc:
            raise UsageError(f"{backend} needs openai: pip install 'grv[openai]'") from exc
        self._openai, self._httpx2, self._answer = openai, httpx2, httpx2.Response
        given = base_url or os.environ.get("OPENAI_BASE_URL") or None
        self.base_url = None if given is None else address(given)
        if self.base_url is None and not os.environ.get(KEY):
            raise UsageError(
                f"{KEY} is not set; set it, or say where another server is, as in "
                "--base-url http://localhost:8000/v1"
            )
        self.backend = backend
        self._error = error
        self._key = os.environ.get(KEY) or None
        self._secrets = Secrets.of(self.base_url, self._key)
        self._tls: ssl.SSLContext | None = None
        # Connections belong to the loop that opened them.
        self._lanes: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, list[_Lane]] = (
            weakref.WeakKeyDictionary()
        )

    def __repr__(self) -> str:
        return f"Endpoint({self.shown!r})"

    @property
    def shown(self) -> str | None:
        """The address as it may be shown."""
        return None if self.base_url is None else shown(self.base_url)

    def cut(self, tokens: int, *, chat: bool) -> dict[str, int]:
        """Where an answer shall be cut, in the words of this endpoint."""
        # OpenAI's own newer models refuse the old name, many servers do not know the new one.
        new = chat and self.base_url is None
        return {"max_completion_tokens" if new else "max_tokens": tokens}

    async def ask(self, path: str, body: Mapping[str, Any], problem_id: str) -> Any:
        """The answer to a request, as JSON data.

        Raises:
            BackendError: of the kind this endpoint was made with, for whatever goes wrong.
        """
        lane = self._lane()
        client = lane.client
        lane.in_flight += 1
        try:
            response = await client.post(path, body=dict(body), cast_to=self._answer)
        except foreign_errors() as exc:
            leaks = self._secrets.is_in(f"{exc!r} {exc.__cause__!r}")
            raise self._translated(exc, problem_id) from (None if leaks else exc)
        except UnicodeEncodeError as exc:
            raise self.failure("half a character in the prompt", problem_id) from exc
        finally:
            lane.in_flight -= 1
        try:
            return self._secrets.hide_all(parse_json(response.content))
        except ValueError:
            raise self.failure(f"not JSON: {response.text}", problem_id) from None

    def failure(
        self,
        message: str,
        problem_id: str,
        *,
        retry_after: float | None = None,
        final: bool = False,
    ) -> _Error:
        """An error of this endpoint, in one short line without secrets."""
        return self._error(
            brief(message, self._secrets),
            backend=self.backend,
            problem_id=problem_id,
            retry_after=retry_after,
            final=final,
        )

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        for lane in self._lanes.pop(asyncio.get_running_loop(), []):
            await lane.client.close()

    def _lane(self) -> _Lane:
        """The first client with room, of which there are as many as are needed."""
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

    def _translated(self, exc: Exception, problem_id: str) -> _Error:
        wait, final = None, False
        match exc:
            case self._openai.APITimeoutError():
                message = "no answer in time"
            case self._openai.APIConnectionError():
                cause = exc.__cause__ or exc
                message = f"no connection: {type(cause).__name__} {cause}".rstrip()
            case self._openai.APIStatusError():
                said = complaint(exc.response.text)
                message = f"status {exc.status_code}: {said}"
                wait = seconds_to_wait(exc.response.headers)
                final = exc.status_code in _HOPELESS
            case _:
                message = f"{type(exc).__name__}: {exc}"
        return self.failure(message, problem_id, retry_after=wait, final=final)


def foreign_errors() -> tuple[type[Exception], ...]:
    """Every kind of exception that the client and what it is built on raise."""
    import httpx2
    import openai

    return (
        openai.OpenAIError,
        openai.InvalidWebhookSignatureError,
        httpx2.HTTPError,
        httpx2.InvalidURL,
        httpx2.CookieConflict,
        httpx2.StreamError,
    )


def status(error: BackendError) -> int | None:
    """The status that an error comes from, if it comes from one."""
    said = getattr(error.__context__, "status_code", None)
    return said if isinstance(said, int) else None
