"""`grv solve --batch`: rounds of all problems at half the price, through kills and failures."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

import grv
from grv.ledger.entries import Made
from grv.ledger.pending import pending_calls
from grv.ledger.sqlite import SqliteLedger
from grv.testing.batch_servers import FakeAnthropicBatches, FakeOpenaiBatches, Fate, SentBatch
from support.commands import Ran, ended, here, kill, records, refuses, start

Fake = FakeOpenaiBatches | FakeAnthropicBatches
KINDS: dict[str, type[FakeOpenaiBatches] | type[FakeAnthropicBatches]] = {
    "openai": FakeOpenaiBatches,
    "anthropic": FakeAnthropicBatches,
}
every = pytest.mark.parametrize("kind", KINDS)
PRICES = {"prompt": 1000.0, "completion": 2000.0}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    Path("prices.toml").write_text("[fake]\nprompt = 1000.0\ncompletion = 2000.0\n")
    return tmp_path


def write(number: int) -> None:
    check = {"kind": "math", "answer": "42"}
    lines = [
        json.dumps({"problem": f"p{index}", "prompt": f"Problem {index}?", "check": check})
        for index in range(number)
    ]
    Path("problems").write_text("\n".join(lines) + "\n")


def text(prompt: str, index: int) -> str:
    """Every fifth candidate is right."""
    return "It is \\boxed{42}." if index % 5 == 4 else f"It is \\boxed{{{index}}}."


def command(kind: str, server: Fake, *more: object) -> list[object]:
    where = ["--generator", f"{kind}:fake", "--base-url", server.url, "-o", "out", "--batch"]
    costs = ["--costs", "measured", "--prices", "prices.toml", "--max-tokens", 20]
    how = ["--policy", "balanced", "--score", "length", "--first-pause", 0.01]
    return ["solve", "problems", *where, *costs, *how, "--total-budget", "1000usd", *more]


def check_money(server: Fake) -> None:
    """Every draft that was served is on record once, and billed at what the server charged."""
    ledger = SqliteLedger("out.ledger")
    made = paid = 0.0
    for search in ledger.searches():
        entries = ledger.read(search.id)
        tally = pending_calls(entries)
        assert not tally.lost["generate"]
        assert not tally.in_batch
        made += sum(isinstance(entry, Made) for entry in entries)
        paid += tally.paid - tally.lost_paid
    ledger.close()
    assert made == server.made
    assert paid == pytest.approx(server.charged)


@pytest.mark.slow
@every
def test_a_round_of_all_problems_is_one_batch_at_half_the_price(kind: str) -> None:
    write(4)
    with KINDS[kind](text, prices=PRICES) as server:
        ran = here(*command(kind, server))
        assert (ran.code, ran.err) == (0, "")
        first = server.batches[0]
        assert {"Problem 0?", "Problem 3?"} <= {
            body["messages"][-1]["content"] for body in first.requests.values()
        }
        check_money(server)
    answers = records(Path("out"))
    assert sum(answer["usage"]["dollars"] for answer in answers) == pytest.approx(server.charged)
    assert f"batches: {len(server.batches)} sent" in ran.out
    assert f"saved {server.charged:.4g} of {2 * server.charged:.4g} dollars" in ran.out


def unlucky(batch: int, request: int) -> Fate:
    """The second batch expires and the third one fails, both in half."""
    if request % 2 and batch == 1:
        return "expired"
    return "refused" if request % 2 and batch == 2 else "answered"


@every
@pytest.mark.parametrize(
    "problems", [pytest.param(8, marks=pytest.mark.slow), pytest.param(200, marks=pytest.mark.soak)]
)
def test_kills_expiry_and_failures_lose_no_answer_and_send_no_batch_twice(
    kind: str, problems: int
) -> None:
    write(problems)
    processes: list[subprocess.Popen[str]] = []

    def accepted(batch: SentBatch) -> None:
        if len(server.batches) == 1:  # before the process knows that it was accepted
            processes[-1].kill()

    def killed_after(batches: int, seconds: float) -> None:
        processes.append(start(*command(kind, server)))
        while len(server.batches) < batches and processes[-1].poll() is None:
            time.sleep(0.01)
        time.sleep(seconds)
        assert processes[-1].poll() in (None, -9)
        kill(processes[-1])

    with KINDS[kind](text, prices=PRICES, delay=0.5, fate=unlucky, accepted=accepted) as server:
        killed_after(1, 0)
        killed_after(2, 0.25)  # it waits
        # It reads, scores or verifies; a small run waits, or there would be no batch to find again.
        killed_after(4, 0.5 if problems > 8 else 0.25)
        last = ended(start(*command(kind, server)))
        assert (last.code, last.err) == (0, "")
        check_money(server)
    assert "found again" in last.out
    assert len(records(Path("out"))) == problems
    assert all(record["answer_verified"] for record in records(Path("out")))
    assert server.batches[1].count("expired") == len(server.batches[1].requests) // 2
    assert server.batches[2].count("refused") == len(server.batches[2].requests) // 2
    if kind == "openai":  # the seed says which candidates a request is for
        answered = [
            (body["messages"][-1]["content"], body["seed"])
            for batch in server.batches
            for id, body in batch.requests.items()
            if (batch.results or {})[id][0] == "answered"
        ]
        assert max(Counter(answered).values()) == 1


@pytest.mark.slow
@every
def test_a_batch_whose_response_is_lost_is_looked_up(kind: str) -> None:
    write(2)
    with KINDS[kind](text, prices=PRICES, lost=(0,)) as server:
        ran = here(*command(kind, server))
        assert ran.code == 0
        check_money(server)


@pytest.mark.slow
@every
def test_a_deadline_cancels_a_batch_that_nobody_waits_for(kind: str) -> None:
    write(2)
    with KINDS[kind](text, prices=PRICES, delay=60) as server:
        ran = here(*command(kind, server, "--deadline", 1.5))
    assert ran.code == 1
    assert [batch.is_cancelled for batch in server.batches] == [True]
    assert "1 cancelled" in ran.out


@pytest.mark.slow
@every
def test_what_a_server_refuses_is_left_out_of_the_next_batch(kind: str) -> None:
    write(2)
    with KINDS[kind](text, prices=PRICES, refuses=["temperature"]) as server:
        ran = here(*command(kind, server))
        assert ran.code == 0
        check_money(server)
    assert "refuses temperature" in ran.err
    assert not any("temperature" in body for body in server.batches[-1].requests.values())


@pytest.mark.slow
def test_the_budget_holds_for_batches() -> None:
    write(6)
    with KINDS["openai"](lambda prompt, index: f"\\boxed{{{index}}}", prices=PRICES) as server:
        ran = here(*command("openai", server, "--total-budget", "0.15usd"))
        check_money(server)
    assert ran.code == 1
    assert 0 < server.charged <= 0.15


@pytest.mark.slow
def test_the_wait_has_a_price() -> None:
    write(2)
    with KINDS["openai"](text, prices=PRICES) as server:
        ran = here(*command("openai", server, "--wait-price", 0.001))
    assert "at --wait-price 0.001 the wait cost" in ran.out


GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "budget.md"


@pytest.mark.slow
def test_the_command_of_the_guide_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    write(2)
    Path("problems").rename("problems.jsonl")
    found = re.search(r"^grv (solve [^`]*--batch[^`]*)", GUIDE.read_text(), re.MULTILINE)
    assert found is not None
    Path("prices.toml").write_text(
        "[MODEL]\nprompt = 1000.0\ncompletion = 2000.0\n[other]\nverify_call = 0.0001\n"
    )
    with KINDS["anthropic"](text, model="MODEL", prices=PRICES) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        words = shlex.split(found[1].replace("\\\n", " "))
        ran = here(*words, "--prices", Path("prices.toml"))
    assert ran.code == 0, ran
    assert len(records(Path("batched.jsonl"))) == 2


@pytest.mark.slow
def test_the_table_of_rounds_in_the_guide_is_right() -> None:
    sample = Path(grv.__file__).parent / "data" / "sample.csv"
    rows = re.findall(r"^\| `([^`]+)` \| ([\d.]+) \| ([\d.]+) \|", GUIDE.read_text(), re.MULTILINE)
    assert len(rows) == 7
    policies = [word for name, *_ in rows for word in ("--policy", name)]
    orders = ["--costs", "0.5,10", "--orders", 50, "--json", "rounds.json"]
    assert here("compare", sample, *policies, *orders).code == 0
    counted = {
        row["policy"]: (f"{row['generate_rounds']:.1f}", f"{row['generated']:.1f}")
        for row in json.loads(Path("rounds.json").read_text())["rows"]
    }
    assert counted == {name: tuple(figures) for name, *figures in rows}


def refused(*more: object) -> str:
    write(1)
    return refuses(["solve", "problems", "-o", "out", "--batch", "--budget", 9, *more])


def test_other_schedules_and_models_are_refused() -> None:
    assert "in-order or least-spent" in refused("--schedule", "doubling", "--generator", "openai:x")
    said = refused("--generator", "embedded")
    assert "embedded has no batches" in said
    assert "anthropic:MODEL" in said


def test_a_batch_that_is_refused_as_a_whole_stops_the_run_and_costs_nothing() -> None:
    write(2)
    why = "Enqueued token limit reached"
    with KINDS["openai"](text, prices=PRICES, invalid=why) as server:
        ran = here(*command("openai", server))
        check_money(server)
    assert (ran.code, len(server.batches)) == (2, 1)
    assert why in ran.err
    assert "leave out --batch" in ran.err


@pytest.mark.slow
def test_a_wrong_key_stops_the_run_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    write(2)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong-0123456789abcdef")
    with KINDS["openai"](text, prices=PRICES, key="sk-right-0123456789abcdef") as server:
        ran: Ran = here(*command("openai", server))
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert "OPENAI_API_KEY" in ran.err
