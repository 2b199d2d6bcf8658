"""Who may open the pages: a key in a cookie, or this machine.

The cookie holds the key itself. Scripts cannot read it, and browsers send it only with requests of
our own pages. A restart does not sign anyone out, because the server keeps no sessions.

A request that changes something must also come from our own address, and have a token that only our
own pages can read.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from ..clients import Client, Clients
from ..errors import ApiError

COOKIE = "grv_key"
TOKEN = "x-grv-token"
_AGE = 30 * 24 * 3600


class Access:
    """Decides who may see the ledger and who may review.

    Args:
        clients: the clients, who have keys; without any, this machine may see everything.
        reviewers: finds the name of the reviewer with a key; None if there is none.
    """

    def __init__(
        self, clients: Clients, reviewers: Callable[[str], str | None] = lambda key: None
    ) -> None:
        self._clients, self._reviewers = clients, reviewers

    def viewer(self, http: Request) -> str:
        """The name of a client who may see the whole ledger; an ApiError if there is none."""
        if not self._clients.known:
            return ""
        client = self._client(_key(http))
        if client is not None and client.dashboard:
            return client.name
        if client is None:
            raise ApiError(401, "sign in to see this page", code="sign_in")
        raise ApiError(403, f"{client.name} may not see the dashboard", code="forbidden")

    def reviewer(self, http: Request) -> str:
        """The name of the reviewer who sent a request; an ApiError if there is none."""
        name = self._reviewer(_key(http))
        if name is None:
            raise ApiError(401, "sign in to review", code="sign_in")
        return name

    def changing(self, http: Request) -> str:
        """The name of the reviewer who wants to change something from our own page."""
        name = self.reviewer(http)
        check_origin(http)
        given = http.headers.get(TOKEN, "")
        if not hmac.compare_digest(given.encode(), token_of(_key(http)).encode()):
            raise ApiError(403, "the request has no valid token; reload the page", code="token")
        return name

    def session(self, http: Request) -> dict[str, object]:
        """Who is signed in, what they may do, and the token for changes."""
        key = _key(http)
        client, reviewer = self._client(key), self._reviewer(key)
        sees = not self._clients.known or (client is not None and client.dashboard)
        name = reviewer or (client.name if client is not None else "")
        token = token_of(key) if reviewer is not None else ""
        return {"name": name, "sees": sees, "reviews": reviewer is not None, "token": token}

    def sign_in(self, http: Request, key: str) -> Response:
        """A response with the cookie, if the key is one."""
        check_origin(http)
        client = self._client(key)
        if self._reviewer(key) is None and (client is None or not client.dashboard):
            raise ApiError(401, "this key is not known", code="invalid_key")
        response = Response(status_code=204)
        secure = http.url.scheme == "https"
        response.set_cookie(
            COOKIE, key, max_age=_AGE, path="/", httponly=True, samesite="strict", secure=secure
        )
        return response

    def sign_out(self, http: Request) -> Response:
        """A response that removes the cookie."""
        check_origin(http)
        response = Response(status_code=204)
        response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
        return response

    def _client(self, key: str) -> Client | None:
        if not self._clients.known or not key:
            return None
        try:
            return self._clients.of([f"Bearer {key}"])
        except ApiError:
            return None

    def _reviewer(self, key: str) -> str | None:
        if not key:
            return None
        client = self._client(key)
        if client is not None and client.review:
            return client.name
        return self._reviewers(key)


def check_origin(http: Request) -> None:
    """Refuse a request that a page of another address makes."""
    origin, site = http.headers.get("origin"), http.headers.get("sec-fetch-site")
    host = http.headers.get("host", "")
    if origin is None or urlsplit(origin).netloc != host or site not in (None, "same-origin"):
        raise ApiError(403, "the request does not come from this page", code="origin")


def token_of(key: str) -> str:
    """The token of a key's owner for changes."""
    return hmac.new(key.encode(), b"grv changes", hashlib.sha256).hexdigest()


def _key(http: Request) -> str:
    return http.cookies.get(COOKIE, "")
