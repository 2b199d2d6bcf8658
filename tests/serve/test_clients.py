"""The file of clients: hashes or variables, never keys."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from grv.core.errors import UsageError
from grv.serve.clients import ANYONE, Clients
from grv.serve.errors import ApiError
from support.serving import key_hash

KEY = "a-key-of-some-length"


def load(tmp_path: Path, text: str) -> Clients:
    path = tmp_path / "clients.toml"
    path.write_text(text)
    return Clients.load(str(path), ["fast", "good"])


def test_a_client_is_found_by_its_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_BOB", KEY + "b")
    clients = load(
        tmp_path,
        f'[clients.alice]\nkey = "{key_hash(KEY)}"\nbudget = 5\nprofiles = ["good"]\n'
        '[clients.bob]\nkey_env = "OF_BOB"\nmetrics = true\n',
    )
    alice, bob = clients.of([f"Bearer {KEY}"]), clients.of([f"bearer {KEY}b"])
    assert (alice.name, alice.budget, alice.profiles) == ("alice", 5.0, frozenset({"good"}))
    assert (bob.name, bob.budget, bob.profiles, bob.metrics) == ("bob", math.inf, None, True)
    assert KEY not in repr((alice, bob))
    wrong: list[list[str]] = [[f"Bearer {KEY}c"], [KEY], [f"Basic {KEY}"], [], ["Bearer "]]
    wrong.append([f"Bearer {KEY}"] * 2)
    for headers in wrong:
        with pytest.raises(ApiError) as caught:
            clients.of(headers)
        assert caught.value.status == 401


def test_without_a_file_every_key_is_accepted() -> None:
    clients = Clients.load(None, [])
    assert not clients.known
    assert clients.of([]) == clients.of(["Bearer x"]) == ANYONE


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", r"needs tables \[clients.NAME\]"),
        ("clients = 3", "needs tables"),
        ('[clients.a]\nkey = "x"\n[other]\n', "needs tables"),
        ("[clients.a]\nbudget = 3", "needs a key"),
        ('[clients.a]\nkey = "sk-plain-text-key"', "never the key itself"),
        ('[clients.a]\nkey-env = "NOT_SET"', "variable NOT_SET must have a key of at least 16"),
        (f'[clients.a]\nkey = "{key_hash(KEY)}"\nkey-env = "X"', "not both"),
        (f'[clients.a]\nkey = "{key_hash(KEY)}"\nbudgt = 3', "unknown field budgt; did you mean"),
        (f'[clients.a]\nkey = "{key_hash(KEY)}"\nbudget = -1', "budget must be a number"),
        (f'[clients.a]\nkey = "{key_hash(KEY)}"\nprofiles = ["x"]', "no profile 'x'"),
        (f'[clients.a]\nkey = "{key_hash(KEY)}"\nprofiles = "good"', "list of names"),
        (f'[clients.a]\nkey = "{key_hash(KEY)}"\nmetrics = 1', "metrics must be true or false"),
        (f'[clients."a b"]\nkey = "{key_hash(KEY)}"', "a name has letters"),
        ("[clients]\na = 3", "must be a table"),
        (
            f'[clients.a]\nkey = "{key_hash(KEY)}"\n[clients.b]\nkey = "{key_hash(KEY)}"',
            "a and b have one key",
        ),
    ],
)
def test_a_wrong_file_is_one_line_without_keys(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        load(tmp_path, text)
    assert "\n" not in str(caught.value)
    assert "plain-text" not in str(caught.value)
