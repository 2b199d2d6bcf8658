"""The price of a failure on the command line: `--costs G,V,F`, job files, several generators."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from grv.backends.generators.completions import seed_of
from support.commands import Ran, here, records, write_problems
from support.servers import FaultyServer, Received

HEAD = "problem,candidate,passed,score"
ROWS = ["a,0,0,3", "a,1,0,2", "a,2,1,1", "a,3,0,0"]


def text(request: Received, seed: int) -> str:
    """Every fourth candidate passes."""
    name = request.prompt.removeprefix("Solve ").removesuffix(".")
    number = seed - seed_of(0, name, 0)
    return f"{request.prompt} {number} {'right' if number % 4 == 3 else 'wrong'}"


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with FaultyServer(text=text) as running:
        yield running


def solved(folder: Path, server: FaultyServer, *more: object) -> Ran:
    problems = write_problems(folder / "problems", ["p"], seen=folder / "seen")
    command = ["solve", problems, "--allow-commands", "--base-url", server.url]
    command += ["--policy", "verify-all", "--budget", 1000, "--out", folder / "out"]
    return here(*command, *more)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["option", "job file", "named"])
def test_a_run_bills_failures_and_the_pass_and_goes_on_for_nothing(
    tmp_path: Path, server: FaultyServer, how: str
) -> None:
    options: list[object] = ["--generator", "openai:m", "--costs", "1,10,2"]
    if how == "job file":
        job = tmp_path / "job.toml"
        job.write_text('[solve]\ngenerator = "openai:m"\ncosts = "1,10,2"\n')
        options = ["--job", job]
    if how == "named":
        options = ["--generator", "small=openai:m", "--costs", "small=1,10,2"]
    ran = solved(tmp_path, server, *options)
    assert ran.code == 0, ran.err
    (record,) = records(tmp_path / "out")
    failed = record["verified"] - 1
    assert failed == 3
    assert record["cost"] == record["generated"] + 2 * failed + 10
    calls = len(server.received)
    assert solved(tmp_path, server, *options).code == 0
    assert len(server.received) == calls
    assert records(tmp_path / "out")[0]["cost"] == record["cost"]
    assert here("runs", "check", tmp_path / "out.ledger").code == 0


@pytest.mark.slow
def test_a_run_that_was_cut_short_goes_on_with_more_money(
    tmp_path: Path, server: FaultyServer
) -> None:
    options = ["--generator", "openai:m", "--costs", "1,10,2", "--total-budget"]
    assert solved(tmp_path, server, *options, 15).code == 1
    # 1 + 2 for the first, then 11 more fit; then 6 are paid and 11 more do not fit.
    assert records(tmp_path / "out")[0]["cost"] == 6
    assert solved(tmp_path, server, *options, 100).code == 0
    assert records(tmp_path / "out")[-1]["cost"] == 4 + 3 * 2 + 10


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.csv"
    path.write_text("\n".join([HEAD, *ROWS]) + "\n")
    return path


def test_compare_oracle_and_shells_take_it(tmp_path: Path, log: Path) -> None:
    compared = tmp_path / "compared.json"
    ran = here("compare", log, "--costs", "1,10,2", "--policy", "verify-all", "--json", compared)
    assert ran.code == 0, ran.err
    assert "1,10,2" in ran.out
    assert json.loads(compared.read_text())["rows"][0]["costs"]["failure"] == 2

    oracle = tmp_path / "oracle.json"
    assert here("oracle", log, "--costs", "1,10,2", "--json", oracle).code == 0
    found = json.loads(oracle.read_text())
    assert found["costs"] == {"generate": 1, "verify": 10, "failure": 2}
    assert found["rows"][0]["optimum"] == pytest.approx(4 + 2 + 8)  # one in four, all known

    shells = [here("shells", "--costs", costs).out for costs in ("1,10,2", "1,2")]
    assert shells[0] == shells[1]


def test_the_lower_bound_has_one_price(log: Path) -> None:
    ran = here("theory", "lower-bound", "singletons:4", "--costs", "1,10,2", "--runs", 2)
    assert ran.code == 2
    assert ran.err == (
        "grv: --costs 1,10,2: this bound has one price of a verification: give G,V, as in 1,10\n"
    )


@pytest.mark.parametrize("command", ["solve", "compare", "oracle", "simulate", "report"])
def test_help_says_what_the_third_number_is(command: str) -> None:
    shown = " ".join(here(command, "--help").out.split())
    assert "G,V[,F]" in shown
    assert "F is the cost of a verification that fails" in shown
