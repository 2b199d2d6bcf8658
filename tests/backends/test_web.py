from __future__ import annotations

import time
from email.utils import formatdate

import pytest

from grv.backends.http.faults import complaint, seconds_to_wait
from grv.backends.http.secrets import Secrets
from grv.backends.http.web import (
    Failures,
    address,
    shown,
    without_secrets,
)
from grv.core.errors import BackendError, UsageError


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"retry-after": "-1"}, 0.0),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "tomorrow"}, None),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after-ms": "?", "retry-after": "1"}, 1.0),
    ],
)
def test_when_to_come_back(headers: dict[str, str], seconds: float | None) -> None:
    assert seconds_to_wait(headers) == seconds


def test_a_date_to_come_back_at() -> None:
    seconds = seconds_to_wait({"retry-after": formatdate(time.time() + 60, usegmt=True)})

    assert seconds is not None
    assert 30 < seconds <= 61


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("http://host:80/v1", "http://host:80/v1"),
        ("http://me:pass@host/v1?key=1", "http://host/v1"),
        ("me:pass@host", "host"),
        ("http://host/v1#frag", "http://host/v1"),
        ("http://me:pa/ss@host/v1", "http://host/v1"),
        ("http://me:pa?ss@host/v1", "http://..."),
        ("http://host:80/@scope/v1", "http://host:80/@scope/v1"),
        ("http://[::1]:80/v1", "http://[::1]:80/v1"),
    ],
)
def test_an_address_is_shown_without_its_secrets(url: str, seen: str) -> None:
    assert shown(url) == seen


def test_an_address_has_no_slash_at_its_end() -> None:
    assert address("https://host/v1/") == "https://host/v1"


@pytest.mark.parametrize("url", ["", "host", "http://", "http://h:99999", "http://[", "file:///x"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="not an address"):
        address(url)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('{"error": {"message": "no"}}', "no"),
        ('{"error": "no"}', "no"),
        ('{"message": "no"}', "no"),
        ('{"detail": "no"}', "no"),
        ('{"detail": [{"loc": 1}]}', '{"detail": [{"loc": 1}]}'),
        ("<html>", "<html>"),
        ("", ""),
    ],
)
def test_what_a_refusal_says(body: str, said: str) -> None:
    assert complaint(body) == said


def test_what_a_server_says_is_one_short_line_without_secrets() -> None:
    secrets = Secrets(["K1K1"])
    brief = Failures("b", BackendError, secrets, place="", key="").brief
    assert brief("a\nkey  K1K1") == "a key ***"
    assert len(brief("x" * 1000)) < 310
    assert "K1" not in brief("x" * 298 + "K1K1")  # cut after it is hidden


def test_addresses_in_a_text_are_shown_without_their_secrets() -> None:
    text = "cannot reach https://me:pass@host/v1?key=1 or HTTP://x:y@h/p#z now"
    assert without_secrets(text) == "cannot reach https://host/v1 or HTTP://h/p now"
