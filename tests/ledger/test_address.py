"""Addresses of ledgers: whose credentials they get, and how long a silent server is waited for."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from grv.core.errors import LedgerError
from grv.learning.ledger_history import ledger_past
from grv.learning.prior_file import parse_policy
from grv.ledger.address import OperatorAddress, settings_of
from grv.ledger.opening import open_ledger
from grv.policies import Learning, spec

SECRET = "the-password-of-the-operator"


class Thief:
    """A server that asks for the password in plain text, and records what it is sent."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.heard = b""
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(10)
                said = connection.recv(4096)
                if said[4:8] == b"\x04\xd2\x16/":  # wants TLS
                    connection.sendall(b"N")
                    said = connection.recv(4096)
                self.heard += said
                connection.sendall(b"R\x00\x00\x00\x08\x00\x00\x00\x03")
                self.heard += connection.recv(4096)

    def close(self) -> None:
        self._listening.close()


@pytest.fixture
def thief() -> Iterator[Thief]:
    made = Thief()
    yield made
    made.close()


@pytest.fixture
def environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, thief: Thief, request: pytest.FixtureRequest
) -> None:
    """The operator's credentials, in a variable or in a file."""
    passwords = tmp_path / "pgpass"
    passwords.write_text(f"*:*:*:*:{SECRET}\n")
    passwords.chmod(0o600)
    services = tmp_path / "services"
    services.write_text(f"[mine]\npassword={SECRET}\nuser=operator\n")
    names = {
        "variable": {"PGPASSWORD": SECRET},
        "file": {"PGPASSFILE": str(passwords)},
        "service": {"PGSERVICE": "mine", "PGSERVICEFILE": str(services)},
    }
    for name, value in names[request.param].items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PGHOST", "127.0.0.1")
    monkeypatch.setenv("PGPORT", str(thief.port))
    monkeypatch.setenv("PGUSER", "operator")
    monkeypatch.setenv("PGDATABASE", "operators")


@pytest.mark.parametrize("environment", ["variable", "file", "service"], indirect=True)
def test_an_address_that_the_operator_did_not_name_gets_no_credentials(
    environment: None, thief: Thief
) -> None:
    address = f"postgresql://me@127.0.0.1:{thief.port}/db"
    with pytest.raises(LedgerError):
        ledger_past(address, "score")
    with pytest.raises(LedgerError):
        open_ledger(address, read_only=True, named=False)
    assert b"me\0" in thief.heard
    assert SECRET.encode() not in thief.heard
    assert b"operator" not in thief.heard

    with pytest.raises(LedgerError):
        ledger_past(OperatorAddress(address), "score")
    assert SECRET.encode() in thief.heard


@pytest.mark.parametrize("environment", ["variable"], indirect=True)
@pytest.mark.parametrize(
    "address",
    [
        "postgresql://",
        "postgresql:///db",
        "postgresql://me@/db",
        "postgresql://127.0.0.1/db",
        "postgresql://me@127.0.0.1",
        "postgresql://me@127.0.0.1/db?host=/tmp",
        "postgresql://me@127.0.0.1/db?service=mine",
        "postgresql://me@127.0.0.1/db?passfile=/etc/passwd",
        "postgresql://me@127.0.0.1/db?sslkey=/etc/passwd",
        "postgresql://me@127.0.0.1/db?options=-c%20x=y",
        "postgresql://[",
    ],
)
def test_such_an_address_leaves_nothing_to_the_environment(
    environment: None, thief: Thief, address: str
) -> None:
    with pytest.raises(LedgerError) as caught:
        open_ledger(address, read_only=True, named=False)
    assert "\n" not in str(caught.value)
    assert thief.heard == b""


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("more", ["", "?connect_timeout=0", "?connect_timeout=9999"])
def test_every_connection_has_a_timeout(more: str, named: bool) -> None:
    settings = settings_of(f"postgresql://me@h/db{more}", "shown", named=named)
    assert 0 < int(settings["connect_timeout"]) <= 10
    assert int(settings["tcp_user_timeout"]) > 0


def test_a_history_is_named_by_the_operator_and_never_by_a_specification_alone() -> None:
    text = "learning('postgresql://me@h/db')"
    operators, others = parse_policy(text), spec.parse(text)
    assert isinstance(operators, Learning)
    assert isinstance(others, Learning)
    assert operators == others
    assert all(isinstance(each, OperatorAddress) for each in operators.history)
    assert not any(isinstance(each, OperatorAddress) for each in others.history)
