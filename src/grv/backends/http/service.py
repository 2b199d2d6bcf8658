"""How a provider's servers are reached: its address, its keys and its headers, as data."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from .secrets import key_in

_NO_KEY = "none"  # sent to a server that needs no key


@dataclass(frozen=True)
class Service:
    """What the official client of a provider knows. A base URL ends where that client's does.

    Attributes:
        address: the provider's own server.
        keys: the environment variables that may hold the key, the first one that is set wins.
        base_url: the environment variable with another address.
        example: an address of a server of one's own, for messages.
        key_header: the header with the key.
        key_prefix: what stands before the key in it.
        headers: fixed headers.
        variables: headers from environment variables, as {header: variable}.
        custom_headers: the environment variable with further headers, one per line.
        quotas: the headers with what is left of limits per minute, as {what is limited: header},
            with {} for limit, remaining and reset.
        versions: versions of the interface. One at the end of a base URL replaces the usual one.
    """

    address: str
    keys: tuple[str, ...]
    base_url: str
    example: str = "http://localhost:8000"
    key_header: str = "authorization"
    key_prefix: str = "Bearer "
    headers: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    custom_headers: str = ""
    quotas: Mapping[str, str] = field(default_factory=dict)
    versions: tuple[str, ...] = ()

    @property
    def key_name(self) -> str:
        """The variable that holds the key, or the usual one if none does."""
        return next((name for name in self.keys if key_in(name) is not None), self.keys[0])

    @property
    def key(self) -> str | None:
        """The key, if there is one."""
        return key_in(self.key_name)

    def joined(self, base: str, path: str) -> str:
        """The path of a request, which begins with a version if the provider has some.

        >>> OPENAI.joined("/v1/", "/responses")
        '/v1/responses'
        """
        base = base.rstrip("/")
        if base.rpartition("/")[2] in self.versions:
            path = "/" + path.removeprefix("/").partition("/")[2]
        return base + path

    def custom(self) -> dict[str, str]:
        """The headers that the user adds; they may replace others."""
        lines = os.environ.get(self.custom_headers, "").splitlines() if self.custom_headers else []
        pairs = [line.partition(":") for line in lines]
        return {name.strip().lower(): value.strip() for name, colon, value in pairs if colon}

    def all_headers(self, key: str | None) -> dict[str, str]:
        """The headers of all requests that this provider reads."""
        custom = self.custom()
        headers = dict(self.headers)
        if key or not custom:  # without a key, the user's own headers may have one
            headers[self.key_header] = f"{self.key_prefix}{key or _NO_KEY}"
        given = {name: os.environ.get(of) for name, of in self.variables.items()}
        headers |= {name: value for name, value in given.items() if value}
        return headers | custom


OPENAI = Service(
    address="https://api.openai.com/v1",
    keys=("OPENAI_API_KEY",),
    base_url="OPENAI_BASE_URL",
    example="http://localhost:8000/v1",
    variables={"openai-organization": "OPENAI_ORG_ID", "openai-project": "OPENAI_PROJECT_ID"},
    custom_headers="OPENAI_CUSTOM_HEADERS",
    # https://platform.openai.com/docs/guides/rate-limits; many other servers have the same headers.
    quotas={"requests": "x-ratelimit-{}-requests", "tokens": "x-ratelimit-{}-tokens"},
)
