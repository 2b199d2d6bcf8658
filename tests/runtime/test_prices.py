"""Dollars, by a file of prices."""

from __future__ import annotations

from pathlib import Path

import pytest

from grv.backends.protocols import Usage
from grv.core.errors import UsageError
from grv.runtime.prices import Prices

FILE = """
["m"]
prompt = 0.5
completion = 2

[other]
verify_second = 0.01
verify_call = 0.25
score_call = 0.001
"""


@pytest.fixture
def prices(tmp_path: Path) -> Prices:
    (tmp_path / "prices.toml").write_text(FILE)
    return Prices.load(str(tmp_path / "prices.toml"))


def test_use_of_each_kind_has_its_price(prices: Prices) -> None:
    used = Usage(prompt_tokens=2_000_000, completion_tokens=500_000, seconds=30)
    assert prices.dollars("generate", used, "m", calls=8) == pytest.approx(1 + 1)
    assert prices.dollars("verify", used, "m", calls=4) == pytest.approx(0.3 + 1)
    assert prices.dollars("score", used, "m", calls=10) == pytest.approx(0.01)


def test_the_minutes_of_a_person_have_their_price() -> None:
    used = Usage(seconds=90)
    assert Prices(other={"verify_minute": 0.5}).dollars("verify", used, "m", calls=1) == 0.75
    both = Prices(other={"verify_minute": 0.5, "verify_second": 0.01})
    assert both.dollars("verify", used, "m", calls=1) == pytest.approx(0.75 + 0.9)


def test_what_has_no_price_costs_nothing(prices: Prices) -> None:
    used = Usage(10**6, 10**6, 10.0)
    assert prices.dollars("generate", used, "another", calls=3) == 0
    assert Prices().dollars("verify", used, "m", calls=3) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("= 1", "not TOML"),
        ("m = 1", "m must be a table"),
        ("[m]\nprompt = -1", r"\[m\] prompt = -1"),
        ("[m]\nprompt = nan", r"\[m\] prompt = nan"),
        ("[m]\nprompt = true", r"\[m\] prompt = True"),
        ("[m]\nprompt = '1'", r"\[m\] prompt = 1"),
        ("[m]\nverify_call = 1", r"\[m\] verify_call"),
        ("[other]\nprompt = 1", r"\[other\] prompt"),
        ("[other]\nhuman_minutes = 1", "verify_second"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        Prices.load(str(path))


def test_a_file_that_is_no_text_or_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not TOML"):
        Prices.load(str(tmp_path / "binary"))
    with pytest.raises(UsageError, match="cannot be read"):
        Prices.load(str(tmp_path / "missing"))
