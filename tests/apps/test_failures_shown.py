"""What a user sees on the screen: reasons, limits, costs, what to do next, one search in full."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grv.apps import summary
from grv.runtime.options import Spending
from support.commands import Ran, here, kill, records, start
from support.servers import Fault, FaultyServer, NoLogprobs, Received, Status

CHECK = {"kind": "stdin", "tests": [{"input": "3", "output": "9"}, {"input": "4", "output": "16"}]}
RIGHT = "```python\nprint(int(input()) ** 2)\n```"
WRONG = "```python\nprint(int(input()) * 3)\n```"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write("a", "b", "c")
    return tmp_path


def write(*names: str, check: dict[str, Any] = CHECK) -> None:
    lines = [{"problem": name, "prompt": f"Solve {name}.", "check": check} for name in names]
    Path("problems").write_text("".join(json.dumps(line) + "\n" for line in lines))


def solve(
    fault: Callable[[Received], Fault | None] = lambda _: None,
    *more: object,
    text: str | Callable[[Received, int], str] = RIGHT,
    url: str | None = None,
) -> Ran:
    given = text if callable(text) else lambda *_: text
    with FaultyServer(fault, text=given) as server:
        where = ("--base-url", url or server.url, "--out", "out", "--workers", 1)
        return here("solve", "problems", "--generator", "openai:m", *where, *more)


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Status(401, message="bad key"), "status 401: bad key; check the key in OPENAI_API_KEY"),
        (Status(404, message="no model m"), "check the name of the model and the address of the"),
    ],
    ids=str,
)
def test_a_wrong_key_or_model_is_said_once_with_what_to_do(fault: Status, said: str) -> None:
    ran = solve(lambda _: fault, "--budget", 50)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    assert said in ran.err


@pytest.mark.parametrize("patience", [0, 0.3])
def test_an_endpoint_that_is_down_is_said_once_with_what_to_do(patience: float) -> None:
    waiting = ("--patience", patience, "--attempts", 2, "--first-pause", 0.01)
    ran = solve(lambda _: None, *waiting, "--budget", 50, url=f"http://127.0.0.1:{closed_port()}")
    assert ran.code == (2 if patience else 1)
    assert ran.err.count("no connection") == 1
    assert "check that the server runs and that its address is right" in ran.err


@pytest.mark.slow
def test_missing_log_probabilities_are_said_once_with_another_score() -> None:
    ran = solve(lambda _: NoLogprobs(), "--budget", 100, "--score", "logprob")
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert "(the generator returned no log-probabilities): " in ran.err
    assert "--score length" in ran.err
    assert solve(lambda _: NoLogprobs(), "--budget", 100, "--score", "length").err == ""


def test_each_reason_of_a_failure_is_said_once_however_many_problems_fail() -> None:
    write(*[f"p{n}" for n in range(12)])

    def fault(request: Received) -> Fault | None:
        name = request.prompt[6:-1]
        return Status(400, message=f"the prompt of {name} has {len(name)}{name[1:]} words too many")

    ran = solve(fault, "--budget", 50)
    assert ran.code == 1
    assert ran.out.startswith("12 problems: 12 failed\n")
    assert len(ran.err.splitlines()) == 1
    assert re.match(r"grv: problem p\d+ failed: status 400: the prompt of p\d+ has", ran.err)
    assert re.search(r"^next: grv runs show out.ledger p\d+$", ran.out, re.MULTILINE)


@pytest.mark.slow
def test_a_run_without_any_limit_says_so_before_it_starts() -> None:
    ran = solve()
    assert ran.code == 0
    assert ran.err.startswith("no limit is set: ")
    assert "give --budget, --total-budget or --value" in ran.err
    assert solve().err == ""  # nothing is left to search
    for limit in (("--budget", 900), ("--total-budget", 900), ("--value", 900)):
        Path("out").unlink()
        assert solve(lambda _: None, *limit).err == ""


def test_without_a_progress_bar_spending_is_printed_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(summary, "_EVERY_SECONDS", 0.0)
    err = solve(lambda _: None, "--budget", 900).err
    assert re.search(
        r"^\d of 3 problems done, \d solved, \d+ spent, running problems included$",
        err,
        re.MULTILINE,
    )


@pytest.mark.slow
def test_in_a_terminal_reasons_and_spending_do_not_share_a_line() -> None:
    fault = Status(400, message="the prompt is too long")
    with FaultyServer(lambda r: fault if "b" in r.prompt[5:] else None, text=lambda *_: WRONG) as s:
        where = ["--base-url", s.url, "--out", "out", "--workers", "1", "--budget", "60"]
        process, terminal = pty.fork()
        if not process:
            given = ["solve", "problems", "--generator", "openai:m", *where]
            os.execv(sys.executable, [sys.executable, "-m", "grv", *given])
        shown = b""
        with contextlib.suppress(OSError):  # the command has ended
            while piece := os.read(terminal, 1 << 16):
                shown += piece
        os.close(terminal)
        os.waitpid(process, 0)
    reason = b"grv: problem b failed: status 400: the prompt is too long"
    plain = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", shown)
    assert re.search(rb"[\r\n]" + reason, plain)
    assert re.search(rb"\d solved, \d+ spent", shown)


def test_the_order_of_outcomes_does_not_depend_on_which_search_ended_first() -> None:
    ended = ["failed", "out of budget", "solved", "exhausted", "out of budget"]
    for outcomes in (ended, ended[::-1]):
        run = summary.Summary(len(outcomes))
        for outcome in outcomes:
            run.add({"problem": "p"}, outcome)
        line = run.lines("out.ledger", Spending())[0]
        assert line == "5 problems: 1 solved, 1 exhausted, 2 out of budget, 1 failed"


@pytest.mark.slow
def test_the_summary_has_outcomes_cost_dollars_seconds_and_the_next_command() -> None:
    Path("prices.toml").write_text("[m]\ncompletion = 1000000\n[other]\nverify_call = 2\n")

    def text(request: Received, seed: int) -> str:
        return WRONG if "c" in request.prompt[5:] else RIGHT

    ran = solve(lambda _: None, "--budget", 60, "--prices", "prices.toml", text=text)
    lines = ran.out.splitlines()
    found = records(Path("out"))
    cost = sum(record["cost"] for record in found)
    dollars = sum(record["usage"]["dollars"] for record in found)
    assert lines[0] == "3 problems: 2 solved, 1 out of budget"
    assert lines[1].startswith(f"cost {cost:g}, {dollars:.4g} dollars, ")
    assert re.search(r"candidates, \d+ verifications, \d+\.\d s$", lines[1])
    assert lines[-1] == "next: the same command with more money, such as --budget 120, continues"
    again = solve(lambda _: None, "--budget", 120, text=RIGHT)
    assert again.out.splitlines()[0] == "3 problems: 3 solved"
    assert again.out.splitlines()[-1] == "next: grv runs list out.ledger"


def test_the_budget_that_is_proposed_buys_a_verification() -> None:
    ran = solve(lambda _: None, "--budget", 5)
    assert ran.out.endswith("with more money, such as --budget 11, continues\n")
    ran = solve(lambda _: None, "--total-budget", 5)
    assert ran.out.endswith("with more money, such as --total-budget 11, continues\n")


def test_a_repeated_run_says_that_it_paid_nothing() -> None:
    assert "paid in this run" not in solve().out
    assert ", 0 paid in this run," in solve().out


@pytest.mark.slow
def test_the_total_budget_and_the_budget_of_a_problem_are_told_apart() -> None:
    ran = solve(lambda _: None, "--total-budget", 40, text=WRONG)
    assert ran.out.startswith("3 problems: 3 out of the total budget\n")
    assert ran.out.endswith(
        "next: the same command with more money, such as --total-budget 80, continues\n"
    )
    messages = {record["message"] for record in records(Path("out"))}
    assert messages == {"the total budget does not pay for another step"}
    ran = solve(lambda _: None, "--budget", 30, "--ledger", "other.ledger", text=WRONG)
    assert ran.out.startswith("3 problems: 3 out of budget\n")
    messages = {record["message"] for record in records(Path("out"))}
    assert messages == {"the problem's budget does not pay for another step"}
    assert {record["outcome"] for record in records(Path("out"))} == {"out of budget"}


@pytest.mark.slow
def test_list_shows_the_cost_of_unfinished_searches() -> None:
    with FaultyServer(text=lambda *_: WRONG) as server:
        where = ("--base-url", server.url, "--out", "out", "--workers", 1, "--costs", "1,3")
        process = start("solve", "problems", "--generator", "openai:m", *where)
        while len(server.received) < 12:
            assert process.poll() is None
        kill(process)
    rows = here("runs", "list", "out.ledger").out.splitlines()[1:-1]
    for row in rows:
        *_, outcome, generated, verified, cost = row.split()
        assert outcome == "stopped"
        assert float(cost) >= float(generated) + 3 * float(verified)
    assert any(float(row.split()[-1]) > 0 for row in rows)


def test_show_has_texts_scores_running_costs_and_the_failing_test() -> None:
    write("a")
    solve(lambda _: None, "--budget", 60, text=WRONG)
    shown = here("runs", "show", "out.ledger", "a").out
    assert re.search(r"^    candidate 0, score -?\d", shown, re.MULTILINE)
    assert "      | print(int(input()) * 3)\n" in shown
    assert re.search(r"generated 1 \(.*\); 1 spent so far", shown)
    assert re.search(r"verified 1 \(.*\); 11 spent so far", shown)
    assert "candidate 0 failed: wrong answer\n      test: 1\n      input: 4\n" in shown
    assert "      expected: 16\n" in shown
    assert "      got: 12\\n\n" in shown


def test_show_as_json_has_everything() -> None:
    write("a")
    solve(lambda _: None, "--budget", 60, text=WRONG)
    ran = here("runs", "show", "out.ledger", "a", "--json")
    data = json.loads(ran.out)
    assert (data["problem"], data["outcome"], data["prompt"]) == ("a", "out of budget", "Solve a.")
    first = data["candidates"][0]
    assert (first["text"], first["verdict"], first["reason"]) == (WRONG, "failed", "wrong answer")
    assert first["evidence"]["expected"] == "16"
    assert isinstance(first["score"], float)
    assert [step["step"] for step in data["steps"][:2]] == ["generate", "verify"]
    assert [step["spent"] for step in data["steps"][:2]] == [1, 11]
    assert data["total"] == data["paid"] == data["steps"][-1]["spent"]
    assert data["settings"]["generator"] == "openai:m"


HOSTILE = "\x1b[2J\x1b]0;mine\x07\r\u202egnihtyna\x9b31m\tend" + "".join(map(str, range(300)))


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("--full",), ("--json",)])
def test_no_text_of_a_candidate_controls_the_terminal(more: tuple[str, ...]) -> None:
    check = {"kind": "math", "answer": "42"}
    write("a", check=check)
    solve(lambda _: None, "--budget", 40, text="\n".join([HOSTILE] * 9))
    out = here("runs", "show", "out.ledger", "a", *more).out
    assert all(each.isprintable() or each == "\n" for each in out)
    assert "gnihtyna" in out


def test_long_texts_are_cut_unless_asked_for_in_full() -> None:
    write("a", check={"kind": "math", "answer": "42"})
    solve(lambda _: None, "--budget", 40, text="\n".join(f"line {n} {'x' * 500}" for n in range(9)))
    short = here("runs", "show", "out.ledger", "a").out
    assert "      | ... 6 more lines: --full\n" in short
    assert max(map(len, short.splitlines())) < 400
    full = here("runs", "show", "out.ledger", "a", "--full").out
    assert f"      | line 8 {'x' * 500}\n" in full
