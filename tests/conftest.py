"""A closed world for every test: loopback only, no keys, an empty home."""

from __future__ import annotations

import ipaddress
import os
import re
import sys
from pathlib import Path

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("grv.testing.contracts")

settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")

_SECRET = re.compile(r"API_?KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)


class NetworkForbiddenError(Exception):
    """A test wanted to leave this machine. Not an OSError, so that nobody handles it."""


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _stay_here(event: str, args: tuple[object, ...]) -> None:
    """Refuse connections and look-ups that leave the machine, whoever makes them."""
    match event, args:
        case ("socket.connect" | "socket.sendto", (_, (str(host), *_))):
            allowed = _is_loopback(host)
        case "socket.getaddrinfo", (str(host), *_):
            # Names under .invalid never resolve, and addresses need no look-up.
            allowed = _is_loopback(host) or host.endswith(".invalid") or _is_address(host)
        case _:
            return
    if not allowed:
        raise NetworkForbiddenError(f"{event}: {host}")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return not host
    return True


sys.addaudithook(_stay_here)


@pytest.fixture(autouse=True)
def closed_world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No keys in the environment, and a home of its own."""
    for name in os.environ:
        if _SECRET.search(name) or name.startswith("XDG_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
