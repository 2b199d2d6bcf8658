"""The dollars that are reported are those that a server has charged."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from grv.backends.protocols import NOTHING, Problem, Usage
from grv.backends.scorers.bounded import Effort
from grv.ledger.entries import Started
from grv.ledger.sqlite import SqliteLedger
from grv.runtime.prices import Meter, Prices, Server
from grv.testing.servers import (
    FakeAnthropic,
    FakeGemini,
    FakeOpenai,
    FakeResponses,
    FakeServer,
    FakeText,
)
from grv.testing.servers import Fault as Trouble
from support.commands import here as grv
from support.servers import Drop, Fault, FaultyServer, Received, Status, Tariff

TARIFF = Tariff()
PRICES = """
["m"]
prompt = 3.0
cached = 0.3
cache_write = 3.75
completion = 15.0
reasoning = 20.0
"""
KINDS: dict[str, type[FakeServer]] = {
    "openai": FakeOpenai,
    "responses": FakeResponses,
    "anthropic": FakeAnthropic,
    "gemini": FakeGemini,
    "openai-text": FakeText,
}
JUDGES = [name for name in KINDS if name != "openai-text"]  # it has no chats
JUDGE = {"prompt": 2.0, "completion": 8.0}
every = pytest.mark.parametrize("name", KINDS)
LEDGER = "out.ledger"


def faults(every: int) -> Any:
    """A refusal, a lost answer and half an answer now and then."""
    seen = 0

    def fault(_: Received) -> Fault | None:
        nonlocal seen
        seen += 1
        kinds: dict[int, Fault] = {3: Status(503), 5: Drop(midway=True), 9: Status(429, "0")}
        return kinds.get(seen % every)

    return fault


def problems(folder: Path, number: int) -> Path:
    path = folder / "problems.jsonl"
    check = {"kind": "math", "answer": "42"}
    lines = [
        {"problem": f"p{at}", "prompt": f"question {at} with a few words more", "check": check}
        for at in range(number)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def solve(
    folder: Path,
    server: FaultyServer | FakeServer,
    number: int,
    *options: object,
    generator: str = "openai:m",
) -> Any:
    (folder / "prices.toml").write_text(PRICES)
    return grv(
        "solve",
        problems(folder, number),
        "--generator",
        generator,
        "--base-url",
        server.url,
        "--score",
        "length",
        "--out",
        folder / "out",
        "--first-pause",
        "0.001",
        "--max-tokens",
        "40",
        *options,
    )


def answers(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "out").read_text().splitlines()]


def bill(folder: Path, *, says_cost: bool, calls: int) -> None:
    """Make about this number of calls, and compare the bills."""
    tariff = Tariff(says_cost=says_cost)
    options: list[object] = ["--policy", "fixed(8, 1)", "--max-tokens", "1000"]
    if not says_cost:
        options += ["--prices", folder / "prices.toml"]
    with FaultyServer(faults(11), tariff=tariff, ignores_n=True) as server:
        ran = solve(folder, server, calls // 8, *options)
        asked = len(server.received)
        charged = server.charged
        in_vain = server.charged_in_vain
    assert ran.code == 1, ran.err
    assert asked >= calls
    records = answers(folder)
    reported = sum(record["usage"]["dollars"] for record in records)
    assert reported == pytest.approx(charged, abs=1e-9)
    assert in_vain > 0
    assert sum(record["lost"].get("generate", 0) for record in records) > 0
    for name in ("cached_tokens", "reasoning_tokens"):
        assert sum(record["usage"][name] for record in records) > 0
    assert f"{reported:.4g} dollars" in ran.out


@pytest.mark.slow
@pytest.mark.parametrize("says_cost", [True, False])
def test_the_dollars_are_those_that_the_server_charged(tmp_path: Path, says_cost: bool) -> None:
    bill(tmp_path, says_cost=says_cost, calls=200)


@pytest.mark.soak
@pytest.mark.parametrize("says_cost", [True, False])
def test_the_dollars_are_right_over_many_calls(tmp_path: Path, says_cost: bool) -> None:
    bill(tmp_path, says_cost=says_cost, calls=2000)


def trouble(number: int) -> Trouble | None:
    """Of 11 requests, one is refused, one is cut off and one has no answer."""
    kinds: dict[int, Trouble] = {3: "overloaded", 5: "cut", 9: "lost"}
    return kinds.get(number % 11)


def scaled(factor: float) -> dict[str, float]:
    """The prices of the model, times a factor."""
    prices: dict[str, float] = tomllib.loads(PRICES)["m"]
    return {kind: price * factor for kind, price in prices.items()}


def charging(name: str, factor: float = 1) -> FakeServer:
    """A server of a dialect that charges for cached, written and reasoning tokens.

    It makes one candidate per request.
    """
    return KINDS[name](
        lambda prompt, index: "so it is " + "or " * (index % 7) + str(index),
        model="m",
        refuses=["n", "candidateCount"],
        thinks=0 if name == "openai-text" else 3,
        cached=2,
        written=0 if name == "gemini" else 1,
        prices=scaled(factor),
        faults=trouble,
    )


def bill_of(folder: Path, name: str, calls: int) -> None:
    """Make about this number of calls in a dialect, and compare the bills."""
    options = ("--policy", "fixed(8, 1)", "--prices", folder / "prices.toml", "--max-tokens", "90")
    with charging(name) as server:
        ran = solve(folder, server, calls // 8, *options, generator=f"{name}:m")
    assert ran.code == 1, ran.err
    assert len(server.received) >= calls
    records = answers(folder)
    reported = sum(record["usage"]["dollars"] for record in records)
    assert reported == pytest.approx(server.charged, abs=1e-9)
    assert server.charged_in_vain > 0
    assert sum(record["lost"].get("generate", 0) for record in records) > 0
    for counted in ("cached_tokens", "reasoning_tokens"):
        is_counted = counted == "cached_tokens" or name != "openai-text"
        assert (sum(record["usage"][counted] for record in records) > 0) == is_counted
    print(  # with -s, the figures of a soak
        f"{name}: {len(server.received)} requests, charged {server.charged:.6f}, reported"
        f" {reported:.6f}, charged in vain {server.charged_in_vain:.6f} dollars"
    )


@pytest.mark.slow
@every
def test_the_dollars_of_each_dialect(tmp_path: Path, name: str) -> None:
    bill_of(tmp_path, name, 60)


@pytest.mark.soak
@every
def test_the_dollars_of_each_dialect_over_many_calls(tmp_path: Path, name: str) -> None:
    bill_of(tmp_path, name, 2000)


def budget_of(folder: Path, name: str, dollars: float, factor: float, *more: object) -> int:
    """Spend a budget in a dialect, at prices times a factor; return the number of requests."""
    table = "".join(f"{kind} = {price}\n" for kind, price in scaled(factor).items())
    (folder / "scaled.toml").write_text(f'["m"]\n{table}')
    options = ("--costs", "measured", "--prices", folder / "scaled.toml")
    with charging(name, factor) as server:
        ran = solve(
            folder,
            server,
            200,
            *options,
            "--total-budget",
            f"{dollars:g}usd",
            *more,
            generator=f"{name}:m",
        )
    assert ran.code == 1, ran.err
    charged = server.charged + server.charged_in_vain
    assert dollars / 10 < charged <= dollars
    reported = sum(record["usage"]["dollars"] for record in answers(folder))
    assert reported == pytest.approx(server.charged, abs=1e-9)
    print(
        f"{name}: {len(server.received)} requests, a budget of {dollars:g}, charged"
        f" {server.charged:.6f}, reported {reported:.6f}, charged in vain"
        f" {server.charged_in_vain:.6f} dollars"
    )
    return len(server.received)


@pytest.mark.slow
@every
def test_a_budget_in_dollars_holds_in_each_dialect(tmp_path: Path, name: str) -> None:
    budget_of(tmp_path, name, 0.05, 1)


def test_a_lost_answer_takes_the_reserve_of_what_was_asked_for(tmp_path: Path) -> None:
    """The server makes one candidate per request, and loses one answer."""
    server = FakeOpenai(
        lambda prompt, index: f"it is {index}",
        model="m",
        refuses=["n"],
        prices=scaled(1),
        faults=lambda number: "lost" if number == 5 else None,
    )
    with server:
        options = ("--costs", "measured", "--prices", tmp_path / "prices.toml")
        more = ("--total-budget", "5usd", "--policy", "fixed(8, 1)")
        assert solve(tmp_path, server, 1, *options, *more).code == 1
    ledger = SqliteLedger(tmp_path / LEDGER, read_only=True)
    (search,) = ledger.searches()
    entries = ledger.read(search.id)
    (most,) = (entry.about["most"][0] for entry in entries if isinstance(entry, Started))
    paid = ledger.possibly_paid(None)
    ledger.close()
    assert server.charged_in_vain > 0
    assert paid == pytest.approx(server.charged + most)


@pytest.mark.soak
@every
def test_a_budget_of_5_dollars_holds_over_many_calls(tmp_path: Path, name: str) -> None:
    assert budget_of(tmp_path, name, 5, 4, "--policy", "fixed(16, 1)") >= 2000


@pytest.mark.slow
def test_a_budget_in_dollars_covers_lost_calls_too(tmp_path: Path) -> None:
    options = ("--costs", "measured", "--prices", tmp_path / "prices.toml")
    with FaultyServer(faults(11), tariff=Tariff(says_cost=False)) as server:
        ran = solve(tmp_path, server, 40, *options, "--total-budget", "0.05usd")
        charged = server.charged + server.charged_in_vain
    assert ran.code == 1, ran.err
    assert 0.01 < charged <= 0.05
    reported = sum(record["usage"]["dollars"] for record in answers(tmp_path))
    assert reported == pytest.approx(server.charged, abs=1e-9)


def test_what_nobody_says_is_unknown(tmp_path: Path) -> None:
    with FaultyServer(tariff=Tariff(says_cost=False)) as server:
        ran = solve(tmp_path, server, 2, "--policy", "fixed(2, 1)")
    assert ran.code == 1, ran.err
    assert "dollars unknown" in ran.out
    for record in answers(tmp_path):
        assert record["usage"]["dollars"] is None
        assert record["usage"]["by_call"]["generate"]["dollars"] is None
        assert record["usage"]["by_call"]["verify"]["dollars"] == 0
    shown = grv("runs", "show", tmp_path / LEDGER, "p0", "--json")
    assert json.loads(shown.out)["dollars"] is None


def test_measured_costs_stop_at_once_if_nobody_says_what_a_call_costs(tmp_path: Path) -> None:
    with FaultyServer(tariff=Tariff(says_cost=False)) as server:
        ran = solve(tmp_path, server, 5, "--costs", "measured:0.001,0.001", "--at-once", "1")
        asked = len(server.received)
    assert ran.code == 2
    assert "nobody says what a call to generate costs: give --prices FILE" in ran.err
    assert "Traceback" not in ran.err
    assert asked < 20


@pytest.mark.slow
def test_measured_costs_are_what_the_server_says(tmp_path: Path) -> None:
    options = ("--costs", "measured:0.001,0.001", "--most", "0.01,0.001", "--budget", "0.02usd")
    with FaultyServer(tariff=TARIFF) as server:
        ran = solve(tmp_path, server, 3, *options)
    assert ran.code == 1, ran.err
    records = answers(tmp_path)
    assert sum(record["cost"] for record in records) == pytest.approx(server.charged)
    assert all(record["cost"] <= 0.02 for record in records)


def test_a_known_model_needs_no_numbers(tmp_path: Path) -> None:
    pytest.importorskip("genai_prices")
    asked: list[object] = ["solve", problems(tmp_path, 3), "--out", tmp_path / "out", "--dry-run"]
    asked += ["--score", "length", "--costs", "measured", "--total-budget", "5usd"]
    known = grv(*asked, "--generator", "openai:gpt-4o-mini", "--max-tokens", "100")
    assert known.code == 0, known.err
    assert "3 problems: at most 5 in all" in known.out
    unbounded = grv(*asked, "--generator", "openai:gpt-4o-mini")
    assert unbounded.code == 2
    assert "--max-tokens N is enough" in unbounded.err
    judged = ("--max-tokens", "100", "--score", "judge:gpt-4o-mini")
    scored = grv(*asked, "--generator", "openai:gpt-4o-mini", *judged)
    assert scored.code == 0, scored.err
    second = ("--max-tokens", "100", "--score", "cascade(length, judge:gpt-4o-mini, top=4)")
    twice = grv(*asked, "--generator", "openai:gpt-4o-mini", *second)
    assert twice.code == 0, twice.err
    several = ("--generator", "a=openai:gpt-4o-mini", "--generator", "b=openai:gpt-4o")
    named = [each for each in asked if each not in ("--costs", "measured")]
    costs = ("--costs", "a=measured", "--costs", "b=measured", "--max-tokens", "100")
    both = grv(*named, *several, *costs)
    assert both.code == 0, both.err


def test_the_reserve_is_at_least_what_a_call_can_cost() -> None:
    prices = Prices({"m": {"prompt": 1.0, "completion": 2.0, "cache_write": 3.0, "reasoning": 4.0}})
    problem = Problem("p", "é" * 100)
    most = Meter(prices, "m").highest([problem], 50)
    assert most is not None
    assert most.candidate == pytest.approx((400 * 3.0 + 50 * 4.0) / 1e6)
    assert Meter(prices, "m").highest([problem], None) is None
    assert Meter(prices, "other").highest([problem], 50) is None
    timed = Prices(prices.models, {"verify_second": 1.0})
    assert Meter(timed, "m").highest([problem], 50) is None


def test_the_reserve_for_a_judge_covers_what_it_reads_and_says() -> None:
    judge = Meter(Prices({"j": {"prompt": 1.0, "completion": 3.0}}), "j")
    prices = Prices({"m": {"prompt": 1.0, "completion": 2.0}})
    meter = Meter(prices, "m", scorers={"score": judge})
    effort = Effort(calls=2, own_bytes=100, answer_tokens=1025)
    most = meter.highest([Problem("p", "x" * 50)], 10, effort)
    assert most is not None
    assert most.generate == pytest.approx((250 * 1.0 + 10 * 2.0) / 1e6)
    assert most.score == pytest.approx((2 * (250 + 80 + 100) * 1.0 + 1025 * 3.0) / 1e6)
    unknown = Meter(prices, "m", scorers={"score": Meter(model="k")})
    assert unknown.highest([Problem("p", "x")], 10, effort) is None


def test_a_judge_without_a_price_is_named(tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(PRICES)
    asked: list[object] = ["solve", problems(tmp_path, 1), "-o", tmp_path / "out", "--dry-run"]
    asked += ["--generator", "openai:m", "--base-url", "http://127.0.0.1:1/v1"]
    asked += ["--prices", tmp_path / "prices.toml", "--costs", "measured", "--max-tokens", 9]
    ran = grv(*asked, "--total-budget", "5usd", "--score", "judge:other")
    assert ran.code == 2
    assert "the price of other, which scores, is unknown" in ran.err


def test_an_interface_with_a_limit_of_its_own_needs_no_other(tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(PRICES)
    asked: list[object] = ["solve", problems(tmp_path, 1), "-o", tmp_path / "out", "--dry-run"]
    asked += ["--base-url", "http://127.0.0.1:1", "--prices", tmp_path / "prices.toml"]
    asked += ["--costs", "measured", "--total-budget", "5usd", "--generator"]
    assert grv(*asked, "anthropic:m").code == 0
    assert grv(*asked, "gemini:m").code == 2


def both_prices(folder: Path) -> Path:
    """Prices of the generator's model and of the judge's."""
    path = folder / "both.toml"
    path.write_text(PRICES + '["j"]\nprompt = 2.0\ncompletion = 8.0\n')
    return path


@pytest.mark.slow
@pytest.mark.parametrize("name", JUDGES)
def test_a_budget_in_dollars_holds_with_a_judge(tmp_path: Path, name: str) -> None:
    """Both servers lose answers that they charge for. The judge thinks nearly as long as it may."""
    judge = KINDS[name](
        lambda prompt, index: "70",
        model="j",
        prices=JUDGE,
        thinks=1000,
        refuses=["logprobs", "responseLogprobs", "include"],
        faults=trouble,
    )
    with charging("anthropic") as server, judge:
        scored = ("--score", f"judge:{name}:j", "--score-url", judge.url, "--costs", "measured")
        budget = ("--prices", both_prices(tmp_path), "--total-budget", "1usd")
        ran = solve(tmp_path, server, 40, *budget, *scored, generator="anthropic:m")
    assert ran.code == 1, ran.err
    records = answers(tmp_path)
    charged = server.charged + server.charged_in_vain + judge.charged + judge.charged_in_vain
    assert 0.1 < charged <= 1
    assert judge.charged_in_vain > 0
    reported = sum(record["usage"]["dollars"] for record in records)
    assert reported <= server.charged + judge.charged + 1e-9


@pytest.mark.slow
def test_what_a_judge_says_in_vain_is_possibly_paid(tmp_path: Path) -> None:
    """Only the judge loses answers. Without a result, the whole reserve of a call counts."""
    judge = FakeAnthropic(
        lambda prompt, index: "70", model="j", prices=JUDGE, thinks=1000, faults=trouble
    )
    server = FakeAnthropic(
        lambda prompt, index: f"it is {index}", model="m", prices=tomllib.loads(PRICES)["m"]
    )
    with server, judge:
        scored = ("--score", "judge:anthropic:j", "--score-url", judge.url, "--costs", "measured")
        budget = ("--prices", both_prices(tmp_path), "--total-budget", "5usd")
        more = ("--policy", "fixed(4, 1)")
        ran = solve(tmp_path, server, 4, *budget, *scored, *more, generator="anthropic:m")
    assert ran.code == 1, ran.err
    ledger = SqliteLedger(tmp_path / LEDGER, read_only=True)
    paid = ledger.possibly_paid(None)
    ledger.close()
    assert judge.charged_in_vain > 0
    charged = server.charged + judge.charged
    assert charged + judge.charged_in_vain <= paid < charged + 4 * judge.charged_in_vain
    reported = sum(record["usage"]["dollars"] for record in answers(tmp_path))
    assert reported == pytest.approx(charged, abs=1e-9)


@pytest.mark.slow
def test_a_candidate_that_the_reserve_does_not_cover_is_not_judged(tmp_path: Path) -> None:
    with (
        KINDS["openai"](
            lambda prompt, index: "x" * 400, model="m", prices={"prompt": 3.0, "completion": 15.0}
        ) as server,
        KINDS["openai"](lambda prompt, index: "70", model="j", prices=JUDGE) as judge,
    ):
        scored = ("--score", "judge:j", "--score-url", judge.url, "--costs", "measured")
        budget = ("--prices", both_prices(tmp_path), "--total-budget", "0.2usd")
        more = ("--policy", "fixed(3, 1)")
        ran = solve(tmp_path, server, 1, *budget, *scored, *more)
    assert not judge.received  # 400 bytes, and --max-tokens is 40
    assert "it is too long for what the budget in dollars reserves: give --most G,V" in ran.err


@pytest.mark.slow
@pytest.mark.parametrize("name", JUDGES)
def test_what_a_judge_costs_is_part_of_the_bill(tmp_path: Path, name: str) -> None:
    """The generator and the judge are of different providers, with prices of their own."""
    both_prices(tmp_path)
    judge = KINDS[name](lambda prompt, index: "70", model="j", prices=JUDGE, refuses=["logprobs"])
    with charging("anthropic") as server, judge:
        options = ("--policy", "fixed(3, 1)", "--prices", tmp_path / "both.toml")
        scored = ("--score", f"judge:{name}:j", "--score-url", judge.url, "--costs", "measured")
        ran = solve(tmp_path, server, 4, *options, *scored, generator="anthropic:m")
    assert ran.code == 1, ran.err
    records = answers(tmp_path)
    by_call = [record["usage"]["by_call"] for record in records]
    assert judge.charged > 0
    assert sum(each["score"]["dollars"] for each in by_call) == pytest.approx(judge.charged)
    assert sum(each["generate"]["dollars"] for each in by_call) == pytest.approx(server.charged)
    cost = sum(record["cost"] for record in records)
    assert cost == pytest.approx(server.charged + judge.charged, rel=1e-3)
    shown = grv("runs", "show", tmp_path / LEDGER, "p0", "--json")
    (first,) = (record["usage"]["dollars"] for record in records if record["problem"] == "p0")
    assert json.loads(shown.out)["dollars"] == pytest.approx(first)


def test_a_meter_is_read_as_it_was_written() -> None:
    judge = Meter(Prices({"j": {"prompt": 2.0}}), "j", Server("anthropic"))
    meter = Meter(Prices({"m": {"prompt": 1.0}}), "m", Server(url="http://h"), {"score": judge})
    assert Meter.of(meter.as_data()) == meter
    used = Usage(prompt_tokens=1_000_000)
    assert meter.dollars("score", used) == pytest.approx(2.0)
    assert meter.dollars("score", NOTHING) == 0.0


def test_a_model_that_verifies_has_no_known_bound() -> None:
    meter = Meter(Prices({"m": {"prompt": 1.0, "completion": 2.0}}), "m")
    plain = {"kind": "math", "answer": "4"}
    judge = {"kind": "judge", "model": "openai:j"}
    both = {"kind": "first", "checks": [plain, judge]}
    for check in (judge, both):
        assert meter.highest([Problem("p", "x", check)], 50) is None
    assert meter.highest([Problem("p", "x", plain)], 50) is not None


def test_an_image_has_no_known_bound() -> None:
    prices = Prices({"m": {"prompt": 1.0, "completion": 2.0}})
    part = {"type": "image_url", "image_url": {"url": "https://h/a.png"}}
    problem = Problem("p", messages=({"role": "user", "content": [part]},))
    assert Meter(prices, "m").highest([problem], 50) is None
