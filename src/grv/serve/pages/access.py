"""Who may open the pages: a session in a cookie, or this machine.

Scripts cannot read the cookie, and browsers send it only with requests of our own pages. A request
that changes something must also come from our own address, and have a token that only our own pages
can read.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from ..clients import Client, Clients, hash_of
from ..door import address_of, netloc_of
from ..errors import ApiError
from ..guesses import Guesses
from .sessions import AGE, Sessions

COOKIE = "grv_session"
TOKEN = "x-grv-token"
# wrong keys of an address, and seconds until it has one more
_WRONG = 10
_MORE = 6.0


class Access:
    """Decides who may see the ledger and who may review.

    Args:
        clients: the clients, who have keys; without any, this machine may see everything.
        reviewers: finds the name of the reviewer by the hash of a key; None if there is none.
        sessions: who is signed in.
    """

    def __init__(
        self,
        clients: Clients,
        reviewers: Callable[[bytes], str | None] = lambda digest: None,
        sessions: Sessions | None = None,
    ) -> None:
        self._clients = clients
        self._reviewers = reviewers
        self._sessions = sessions or Sessions()
        self._guesses = Guesses(_WRONG, _MORE)

    def viewer(self, http: Request) -> str:
        """The name of a client who may see the whole ledger; an ApiError if there is none."""
        if not self._clients.known:
            return ""
        client = self._client(self._owner(http))
        if client is not None and client.dashboard:
            return client.name
        if client is None:
            raise ApiError(401, "sign in to see this page", code="sign_in")
        raise ApiError(403, f"{client.name} may not see the dashboard", code="forbidden")

    def reviewer(self, http: Request) -> str:
        """The name of the reviewer who sent a request; an ApiError if there is none."""
        name = self._reviewer(self._owner(http))
        if name is None:
            raise ApiError(401, "sign in to review", code="sign_in")
        return name

    def changing(self, http: Request) -> str:
        """The name of the reviewer who wants to change something from our own page."""
        name = self.reviewer(http)
        check_origin(http)
        given = http.headers.get(TOKEN, "")
        if not hmac.compare_digest(given.encode(), token_of(_session(http)).encode()):
            raise ApiError(403, "the request has no valid token; reload the page", code="token")
        return name

    def session(self, http: Request) -> dict[str, object]:
        """Who is signed in, what they may do, and the token for changes."""
        owner = self._owner(http)
        client = self._client(owner)
        reviewer = self._reviewer(owner)
        sees = not self._clients.known or (client is not None and client.dashboard)
        name = reviewer or (client.name if client is not None else "")
        token = token_of(_session(http)) if reviewer is not None else ""
        return {"name": name, "sees": sees, "reviews": reviewer is not None, "token": token}

    def sign_in(self, http: Request, key: str) -> Response:
        """A response with the cookie of a new session, if the key is one."""
        check_origin(http)
        digest = hash_of(key)
        address = address_of(http)
        self._guesses.check(address, digest)
        client = self._client(digest)
        if self._reviewer(digest) is None and (client is None or not client.dashboard):
            self._guesses.wrong(address)
            raise ApiError(401, "this key is not known", code="invalid_key")
        self._guesses.right(digest)
        self._sessions.end(_session(http))
        response = Response(status_code=204)
        response.set_cookie(
            COOKIE,
            self._sessions.begin(digest),
            max_age=AGE,
            path="/",
            httponly=True,
            samesite="strict",
            secure=http.headers.get("origin", "").startswith("https://"),
        )
        return response

    def sign_out(self, http: Request) -> Response:
        """End the session, and remove the cookie."""
        check_origin(http)
        self._sessions.end(_session(http))
        response = Response(status_code=204)
        response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
        return response

    def _owner(self, http: Request) -> bytes | None:
        """The hash of the key of who is signed in."""
        name = _session(http)
        return self._sessions.owner(name) if name else None

    def _client(self, digest: bytes | None) -> Client | None:
        return None if digest is None else self._clients.with_hash(digest)

    def _reviewer(self, digest: bytes | None) -> str | None:
        if digest is None:
            return None
        client = self._client(digest)
        if client is not None and client.review:
            return client.name
        return self._reviewers(digest)


def check_origin(http: Request) -> None:
    """Refuse a request that a page of another address makes."""
    origin = http.headers.get("origin", "")
    site = http.headers.get("sec-fetch-site")
    ours = netloc_of(origin)
    if not ours or ours != http.headers.get("host", "") or site not in (None, "same-origin"):
        raise ApiError(403, "the request does not come from this page", code="origin")


def token_of(session: str) -> str:
    """The token of a session for changes."""
    return hmac.new(session.encode(), b"grv changes", hashlib.sha256).hexdigest()


def _session(http: Request) -> str:
    return http.cookies.get(COOKIE, "")
