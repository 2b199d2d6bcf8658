"""Dollars, by a file of prices."""

from __future__ import annotations

from pathlib import Path

import pytest

from grv.backends.protocols import NOTHING, Usage
from grv.core.errors import UsageError
from grv.runtime.prices import Meter, Prices, Server, meters_of

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
    meter = Meter(prices, "m")
    assert meter.dollars("generate", used) == pytest.approx(1 + 1)
    assert meter.dollars("verify", used) == pytest.approx(0.3 + 0.25)
    assert meter.dollars("score", used) == pytest.approx(0.001)


def test_the_minutes_of_a_person_have_their_price() -> None:
    used = Usage(seconds=90)
    assert Meter(Prices(other={"verify_minute": 0.5})).dollars("verify", used) == 0.75
    both = Prices(other={"verify_minute": 0.5, "verify_second": 0.01})
    assert Meter(both).dollars("verify", used) == pytest.approx(0.75 + 0.9)


def test_what_has_no_price_is_unknown_and_never_free(prices: Prices) -> None:
    used = Usage(10**6, 10**6, 10.0)
    assert Meter(prices, "another").dollars("generate", used) is None
    assert Meter().dollars("score", used) is None  # a model's tokens
    assert Meter(prices, "m").dollars("generate", Usage(seconds=1)) is None  # nothing was counted
    with pytest.raises(UsageError, match="nobody says what a call to generate costs"):
        Meter(prices, "another").cost("generate", used)


def test_scores_and_verdicts_without_tokens_are_free() -> None:
    assert Meter().dollars("verify", Usage(seconds=3)) == 0
    assert Meter().dollars("score", Usage()) == 0


def test_the_file_comes_before_the_server(prices: Prices) -> None:
    used = Usage(2_000_000, 500_000, 0.0, 7.0)
    assert Meter(prices, "m").dollars("generate", used) == 2
    assert Meter(prices, "another").dollars("generate", used) == 7
    other = Prices(other={"generate_call": 0.5})
    assert Meter(other, "m").dollars("generate", used) == 7.5


def test_cached_and_reasoning_tokens_have_their_own_price() -> None:
    used = Usage(1000, 500, cached_tokens=600, cache_write_tokens=300, reasoning_tokens=400)
    plain = Prices({"m": {"prompt": 1e6, "completion": 2e6}})
    assert Meter(plain, "m").dollars("generate", used) == 1000 + 2 * 500
    table = {"prompt": 1e6, "completion": 2e6, "cached": 1e5, "cache_write": 2e6, "reasoning": 3e6}
    apart = 100 + 60 + 600 + 2 * 100 + 3 * 400
    assert Meter(Prices({"m": table}), "m").dollars("generate", used) == pytest.approx(apart)


def test_known_models_have_prices_without_a_file() -> None:
    pytest.importorskip("genai_prices")
    used = Usage(1_000_000, 1_000_000, cached_tokens=400_000)
    known = Meter(model="gpt-4o-mini", server=Server.of("openai:gpt-4o-mini", None))
    assert known.dollars("generate", used) == pytest.approx(0.6 * 0.15 + 0.4 * 0.075 + 0.6)
    assert known.dollars("generate", Usage(10, 10, 0.0, 5.0)) == 5  # the server comes before
    mine = Server.of("openai:gpt-4o-mini", "http://localhost:8000/v1")
    assert Meter(model="gpt-4o-mini", server=mine).dollars("generate", used) is None
    unheard = Meter(model="no-such-model", server=Server("openai"))
    assert unheard.dollars("generate", used) is None


def test_the_embedded_model_is_free() -> None:
    meter = Meter(server=Server.of("embedded", None))
    assert meter.dollars("generate", Usage(10, 10)) == 0


def test_a_meter_is_recorded_and_read_again(prices: Prices) -> None:
    meter = Meter(prices, "m", Server("openai"))
    again = Meter.of(meter.as_data())
    assert again == meter
    assert meters_of({"pricing": {"": meter.as_data()}}) == {"": meter}
    assert Meter().as_data() == {}
    damaged = Meter.of({"model": 3, "prices": {"prompt": "x"}, "other": [], "url": None})
    assert damaged == Meter()
    assert meters_of({"pricing": 3}) == {}


def test_sums_with_an_unknown_part_are_unknown() -> None:
    known = Usage(1, 2, 3.0, 4.0, 1, 0, 2)
    assert (NOTHING + known) == known
    assert (known + known).dollars == 8
    assert (known + Usage(1)).dollars is None
    assert (Usage(1) + known).prompt_tokens == 2


def test_old_records_say_0_where_dollars_were_unknown() -> None:
    old = {"prompt_tokens": 5, "completion_tokens": 6, "seconds": 1.0, "dollars": 0.0}
    assert Usage.of(old) == Usage(5, 6, 1.0, None)
    assert Usage.of({**old, "dollars": 0.5}).dollars == 0.5
    assert Usage.of({"seconds": 2.0, "dollars": 0.0}).dollars == 0  # a verification here
    assert Usage.of({**old, "cached_tokens": 0}).dollars == 0  # a new record: free
    assert Usage.of(Usage(5, 6).as_data()) == Usage(5, 6)


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
