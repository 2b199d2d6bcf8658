"""Clients: their keys, budgets and profiles, from a TOML file.

    [clients.alice]
    key = "sha256:2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90"
    budget = 20            # the most that alice may spend on this ledger, ever
    profiles = ["fast"]    # all profiles if it is missing

    [clients.monitor]
    key-env = "MONITOR_KEY"  # the environment variable that has the key
    profiles = []
    metrics = true           # may read /metrics
    dashboard = true         # may open the dashboard, which shows the searches of all clients
    review = true            # may review candidates that wait for a person
    attempts = true          # may have agents work on the server's repository (grv mcp)

The file has hashes of keys, or names of variables. Keys themselves are neither stored nor logged.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.errors import UsageError
from ..files import is_number, read_toml, shown
from ..options import did_you_mean
from .errors import ApiError
from .guesses import Guesses

RIGHTS = ("metrics", "dashboard", "review", "attempts")
FIELDS = ("key", "key_env", "budget", "profiles", *RIGHTS)
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
HASH = re.compile(r"sha256:[0-9a-f]{64}")
SHORTEST_KEY = 16
# wrong keys of an address, and seconds until it has one more
_WRONG = 100
_MORE = 1.0


@dataclass(frozen=True)
class Client:
    """Who sends requests.

    Attributes:
        name: the name in logs and metrics, and of the account in the ledger.
        digest: the SHA-256 of the key.
        budget: the most that all its requests may cost.
        profiles: the profiles that it may use; None is all.
        metrics: whether it may read the metrics.
        dashboard: whether it may open the dashboard.
        review: whether it may review candidates.
        attempts: whether it may have agents work on the server's repository.
    """

    name: str = ""
    digest: bytes = field(default=b"", repr=False)
    budget: float = math.inf
    profiles: frozenset[str] | None = None
    metrics: bool = False
    dashboard: bool = False
    review: bool = False
    attempts: bool = False


ANYONE = Client(metrics=True, attempts=True)  # on loopback, if there is no file of clients


def hash_of(key: str) -> bytes:
    """The SHA-256 of a key. Keys are random, so they need no slow hash."""
    try:
        content = key.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half a character, which JSON can express: no client has such a key
        content = key.encode("utf-8", "surrogatepass")
    return hashlib.sha256(content).digest()


class Clients:
    """All clients; without a file, any key is that of `ANYONE`."""

    def __init__(self, clients: Sequence[Client] | None = None) -> None:
        self._clients = clients
        self._guesses = Guesses(_WRONG, _MORE)

    @property
    def known(self) -> bool:
        """Whether clients need a key."""
        return self._clients is not None

    @property
    def names(self) -> list[str]:
        """The names of all clients."""
        return [ANYONE.name] if self._clients is None else [each.name for each in self._clients]

    @classmethod
    def load(cls, path: str | None, profiles: Sequence[str] | None) -> Clients:
        """Read a file of clients; None is no file. Without profiles, any may be named."""
        if path is None:
            return cls()
        tables = read_toml(path)
        named = tables.get("clients")
        if not isinstance(named, dict) or not named or len(tables) > 1:
            raise UsageError(f"{path}: needs tables [clients.NAME], and nothing else")
        found = [
            _client(f"{path}: [clients.{name}]", name, table, profiles)
            for name, table in named.items()
        ]
        digests: dict[bytes, str] = {}
        for each in found:
            if each.digest in digests:
                raise UsageError(f"{path}: {digests[each.digest]} and {each.name} have one key")
            digests[each.digest] = each.name
        return cls(found)

    def of(self, authorization: Sequence[str], address: str = "") -> Client:
        """The client that sent these headers from an address; an ApiError if there is none.

        The time that this takes depends neither on the key nor on whose it is.
        """
        if self._clients is None:
            return ANYONE
        scheme, _, key = (authorization[0] if len(authorization) == 1 else "").partition(" ")
        digest = hash_of(key.strip())
        found = None
        if key.strip() and scheme.lower() == "bearer":
            self._guesses.check(address, digest)
            found = self.with_hash(digest)
            if found is None:
                self._guesses.wrong(address)
        if found is None:
            message = "a client's key is needed, in the header Authorization: Bearer KEY"
            raise ApiError(401, message, code="invalid_api_key")
        self._guesses.right(digest)
        return found

    def with_hash(self, digest: bytes) -> Client | None:
        """The client whose key has this hash; None if there is none."""
        found = None
        for client in self._clients or ():
            if hmac.compare_digest(client.digest, digest):
                found = client
        return found


def _client(place: str, name: str, given: Any, profiles: Sequence[str] | None) -> Client:
    if not NAME.fullmatch(name):
        raise UsageError(f"{place}: a name has letters, digits and ._@- only, at most 64")
    if not isinstance(given, dict):
        raise UsageError(f"{place}: must be a table")
    table = {each.replace("-", "_"): value for each, value in given.items()}
    for each in table:
        if each not in FIELDS:
            raise UsageError(f"{place}: unknown field {each}{did_you_mean(each, FIELDS)}")
    budget = table.get("budget", math.inf)
    if "budget" in table and not (is_number(budget) and budget >= 0):
        raise UsageError(f"{place}: budget must be a number and not negative, not {shown(budget)}")
    rights = {each: table.get(each, False) for each in RIGHTS}
    for each, right in rights.items():
        if not isinstance(right, bool):
            raise UsageError(f"{place}: {each} must be true or false")
    digest = _digest(place, table)
    return Client(name, digest, float(budget), _profiles(place, table, profiles), **rights)


def _digest(place: str, table: Mapping[str, Any]) -> bytes:
    """The hash of the key. No message repeats what may be a key."""
    match table:
        case {"key": _, "key_env": _}:
            raise UsageError(f"{place}: give key or key-env, not both")
        case {"key": str(text)} if HASH.fullmatch(text):
            return bytes.fromhex(text.removeprefix("sha256:"))
        case {"key": _}:
            raise UsageError(
                f"{place}: key must be sha256: and the SHA-256 of the key in hexadecimal, never the"
                " key itself: printf %s KEY | sha256sum"
            )
        case {"key_env": str(variable)}:
            key = os.environ.get(variable, "")
            if len(key) < SHORTEST_KEY:
                raise UsageError(
                    f"{place}: the variable {variable} must have a key of at least {SHORTEST_KEY}"
                    " characters"
                )
            return hash_of(key)
    raise UsageError(f"{place}: needs a key, as sha256:..., or key-env")


def _profiles(
    place: str, table: Mapping[str, Any], profiles: Sequence[str] | None
) -> frozenset[str] | None:
    given = table.get("profiles")
    if given is None:
        return None
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise UsageError(f"{place}: profiles must be a list of names")
    for each in given:
        if profiles is not None and each not in profiles:
            there = ", ".join(profiles)
            raise UsageError(f"{place}: there is no profile {shown(each)}; there are {there}")
    return frozenset(given)
