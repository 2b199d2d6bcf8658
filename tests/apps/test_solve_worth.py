"""`grv solve`: real dollars, giving up, and a second score for the best."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from grv.backends.generators.completions import seed_of
from support.commands import Ran, records, write_problems
from support.commands import here as grv
from support.servers import FaultyServer, Received

PRICES = """
[m]
completion = 1000.0

[other]
verify_call = 0.05
"""


def text(request: Received, seed: int) -> str:
    """One in four passes, but for problems called hopeless."""
    name = request.prompt.removeprefix("Solve ").removesuffix(".")
    number = seed - seed_of(0, name, 0)
    right = number % 4 == 3 and "hopeless" not in request.prompt
    return f"{request.prompt} {number} {'right' if right else 'wrong'}"


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with FaultyServer(text=text) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_problems(tmp_path / "problems", ("a", "hopeless"), seen=tmp_path / "seen")
    (tmp_path / "prices.toml").write_text(PRICES)
    return tmp_path


def solve(folder: Path, server: FaultyServer, *more: object) -> Ran:
    where = ["--base-url", server.url, "--out", folder / "out", "--prices", folder / "prices.toml"]
    return grv(
        "solve", folder / "problems", "--allow-commands", "--generator", "openai:m", *where, *more
    )


@pytest.mark.slow
def test_a_hopeless_problem_is_given_up_when_it_has_cost_what_it_is_worth(
    folder: Path, server: FaultyServer
) -> None:
    ran = solve(folder, server, "--value", 70, "--width", 1)

    assert (ran.code, ran.err) == (1, "")
    assert ran.out.splitlines()[0] == "2 problems: 1 solved, 1 finished"
    found = {record["problem"]: record for record in records(folder / "out")}
    assert found["hopeless"]["outcome"] == "finished"
    assert found["hopeless"]["cost"] <= 70
    assert found["hopeless"]["message"].startswith("an answer is worth 70; the next attempt")
    assert "message" not in found["a"]
    shown = grv("runs", "show", folder / "out.ledger", "hopeless").out
    assert "an answer is worth 70" in shown
    planned = grv(
        "solve", folder / "problems", "--allow-commands", "--generator", "openai:m", "--value", 70
    )
    assert planned.code == 2  # where shall answers go?


@pytest.mark.slow
def test_measured_costs_are_dollars_and_budgets_hold(folder: Path, server: FaultyServer) -> None:
    measured = ("--costs", "measured:0.01,0.05", "--most", "0.2,0.05", "--budget", 1, "--width", 1)
    ran = solve(folder, server, *measured)

    assert (ran.code, ran.err) == (1, "")
    for record in records(folder / "out"):
        assert record["cost"] == pytest.approx(record["usage"]["dollars"])
        tokens = record["usage"]["completion_tokens"]
        assert record["cost"] == pytest.approx(tokens / 1000 + 0.05 * record["verified"])
        assert record["cost"] <= 1
    before = (folder / "out").read_text().splitlines()
    requests = len(server.received)
    assert solve(folder, server, *measured).code == 1
    assert sorted((folder / "out").read_text().splitlines()) == sorted(before)
    assert len(server.received) == requests


@pytest.mark.slow
def test_the_best_get_a_second_score_before_one_is_verified(
    folder: Path, server: FaultyServer
) -> None:
    ran = solve(
        folder,
        server,
        "--score",
        "cascade(logprob, length, top=3, cost=0.5)",
        "--value",
        200,
        "--width",
        1,
    )

    assert (ran.code, ran.err) == (1, "")
    found = {record["problem"]: record for record in records(folder / "out")}
    extra = found["a"]["cost"] - found["a"]["generated"] - 10 * found["a"]["verified"]
    assert extra > 0
    assert extra % 0.5 == 0
    log = folder / "log.csv"
    assert grv("runs", "export", folder / "out.ledger", "--out", log).code == 0
    assert "score_second" in log.read_text().splitlines()[0]
    compared = grv(
        "compare",
        log,
        "--score",
        "cascade(score, score_second, top=3, cost=0.5)",
        "--keys",
        "--policy",
        "adaptive",
        "--unlabelled",
        "fail",
    )
    assert compared.code == 0, compared.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--costs", "measured", "--generator", "openai:x"), "the price of x is unknown"),
        (("--budget", "5usd"), "--budget 5usd: dollars need --costs measured; a price list such"),
        (("--total-budget", "5USD", "--costs", "2,3"), "--total-budget 5usd: dollars need"),
        (("--budget", "five"), "--budget five: give a number of at least 0, or dollars, as in"),
        (("--total-budget", "-1"), "--total-budget -1: give a number of at least 0"),
        (("--costs", "measured:1,-1"), "--costs measured:1,-1: the cost to verify must be"),
        (("--costs", "measured:1,1", "--budget", "5"), "a budget over measured costs needs --most"),
        (("--costs", "measured:1,1", "--total-budget", "5"), "needs --most G,V"),
        (("--most", "1,10"), "--most needs --costs measured:G,V"),
        (("--costs", "measured:1,1", "--most", "0,1"), "--most 0,1: the cost to generate must"),
        (("--value", "-1"), "--value -1: give what a solved problem is worth"),
        (("--value", "nan"), "--value nan: give what a solved problem is worth"),
        (("--score", "cascade(logprob)"), "write cascade(first, second, top=4, cost=0.5)"),
        (("--score", "cascade(logprob, length, top=0)"), "at least one candidate to score, not 0"),
        (("--score", "cascade(logprob, length, top=2, cost=nan)"), "must be finite"),
        (("--score", "cascade(logprob, size, top=2)"), "unknown score 'size'"),
    ],
)
def test_what_does_not_go_together_is_said_before_any_work(
    folder: Path, options: tuple[str, ...], message: str
) -> None:
    ran = grv(
        "solve",
        folder / "problems",
        "--allow-commands",
        "--generator",
        "openai:m",
        "--out",
        folder / "out",
        "--base-url",
        "http://127.0.0.1:9",
        "--prices",
        folder / "prices.toml",
        *options,
    )

    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1


def test_measured_costs_need_prices(folder: Path) -> None:
    where = ("solve", folder / "problems", "--out", folder / "out", "--costs", "measured:1,1")
    none = grv(*where, "--allow-commands", "--generator", "openai:m")
    other = grv(*where, "--generator", "openai:other", "--prices", folder / "prices.toml")

    assert none.code == other.code == 2
    message = (
        "measured costs need a price to generate: give --prices FILE with a table for the model, or"
        " with generate_second, generate_minute or generate_call in [other]"
    )
    assert message in none.err
    assert message in other.err


def test_a_price_to_verify_has_no_table_of_a_model(folder: Path) -> None:
    (folder / "half.toml").write_text("[m]\ncompletion = 0.2\n")
    where = ("solve", folder / "problems", "--out", folder / "out", "--costs", "measured:1,1")
    ran = grv(*where, "--generator", "openai:m", "--prices", folder / "half.toml")

    assert ran.code == 2
    assert (
        "measured costs need a price to verify: give --prices FILE with verify_second,"
        " verify_minute or verify_call in [other]" in ran.err
    )


def test_a_cascade_is_not_collected(folder: Path) -> None:
    ran = grv(
        "collect",
        folder / "problems",
        "--allow-commands",
        "--generator",
        "openai:m",
        "-n",
        2,
        "--out",
        folder / "log.csv",
        "--score",
        "cascade(logprob, length, top=2)",
    )

    assert ran.code == 2
    assert "a cascade is for grv solve" in ran.err
