"""The closed world of the tests is closed."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest


@pytest.mark.parametrize("address", ["192.0.2.1", "2001:db8::1"])
def test_nobody_connects_to_another_machine(address: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with (
        socket.socket(family) as here,
        pytest.raises(Exception, match=r"socket\.connect") as caught,
    ):
        here.connect((address, 80))
    assert type(caught.value).__name__ == "NetworkForbiddenError"


def test_nobody_looks_up_a_name() -> None:
    with pytest.raises(Exception, match=r"socket\.getaddrinfo: example\.org"):
        socket.getaddrinfo("example.org", 80)


def test_loopback_is_open() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        for host in ("127.0.0.1", "localhost"):
            with socket.create_connection((host, port), timeout=5):
                pass


def test_a_name_that_cannot_exist_fails_as_it_would_elsewhere() -> None:
    with pytest.raises(socket.gaierror):
        socket.getaddrinfo("nowhere.invalid", 80)


def test_there_are_no_keys_and_the_home_is_not_the_users(tmp_path: Path) -> None:
    assert not [name for name in os.environ if "API_KEY" in name or "TOKEN" in name]
    assert Path.home().is_relative_to(tmp_path.parent)
