"""`grv solve`, where it matters as a process: what it writes, how it ends, how it goes on."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grv.backends.generators.completions import seed_of
from support.commands import Ran, ended, grv, here, records, start, write_problems
from support.servers import FaultyServer, Received, Status

FIELDS = ["problem", "outcome", "answer", "answer_verified", "answer_status", "answer_program"]
FIELDS += ["generated", "verified", "cost"]


def number_of(request: Received, seed: int) -> int:
    name = request.prompt.removeprefix("Solve ").removesuffix(".")
    return seed - seed_of(0, name, 0)


def text(request: Received, seed: int) -> str:
    """One in four passes, but for problems called hopeless."""
    number = number_of(request, seed)
    right = number % 4 == 3 and "hopeless" not in request.prompt
    return f"{request.prompt} {number} {'right' if right else 'wrong'}"


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with FaultyServer(text=text) as running:
        yield running


class Folder:
    """Problems, and where a run over them puts things."""

    def __init__(self, path: Path, *names: str, **options: Any) -> None:
        self.path = path
        self.seen, self.out, self.ledger = path / "seen", path / "out", path / "out.ledger"
        self.problems = write_problems(path / "problems", names, seen=self.seen, **options)

    def command(self, server: FaultyServer, *more: object) -> list[object]:
        where = ["--base-url", server.url, "--out", self.out, "--budget", 10**6]
        return [
            "solve",
            self.problems,
            "--allow-commands",
            "--generator",
            "openai:m",
            *where,
            *more,
        ]

    def solve(self, server: FaultyServer, *more: object) -> Ran:
        return here(*self.command(server, *more))

    @property
    def verified(self) -> list[str]:
        return self.seen.read_text().splitlines() if self.seen.exists() else []


def generated(server: FaultyServer) -> int:
    return sum(request.body.get("n", 1) for request in server.received)


def until(condition: Any, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.slow
def test_every_problem_gets_its_line(tmp_path: Path, server: FaultyServer) -> None:
    folder = Folder(tmp_path, "a", "b", "hopeless")
    sampling = ["--max-tokens", 50, "--seed", 0]
    ran = grv(*folder.command(server, "--policy", "adaptive", "--budget", 60, *sampling))
    assert (ran.code, ran.err) == (1, "")
    assert ran.out.splitlines()[0] == "3 problems: 2 solved, 1 out of budget"
    found = {record["problem"]: record for record in records(folder.out)}
    assert found.keys() == {"a", "b", "hopeless"}
    assert all(list(record)[:10] == [*FIELDS, "usage"] for record in found.values())
    assert found["a"]["outcome"] == "solved"
    assert found["a"]["answer"].endswith(" right")
    assert found["a"]["answer_verified"] is True
    assert found["a"]["cost"] == found["a"]["generated"] + 10 * found["a"]["verified"]
    assert found["a"]["usage"]["completion_tokens"] > 0
    assert found["hopeless"]["outcome"] == "out of budget"
    assert found["hopeless"]["answer_verified"] is False
    assert found["hopeless"]["answer"].startswith("Solve hopeless.")
    assert found["hopeless"]["cost"] <= 60
    assert sum(record["generated"] for record in found.values()) == generated(server)


@pytest.mark.slow
def test_all_solved_is_exit_code_0_and_the_same_again_costs_nothing(
    tmp_path: Path, server: FaultyServer
) -> None:
    folder = Folder(tmp_path, "a", "b")
    assert folder.solve(server).code == 0
    before, requests = folder.out.read_bytes(), len(server.received)
    again = folder.solve(server)
    assert (again.code, again.out.splitlines()[0]) == (0, "2 problems: 2 solved")
    assert folder.out.read_bytes() == before
    folder.out.unlink()  # the ledger knows it all
    assert folder.solve(server).code == 0
    assert sorted(folder.out.read_bytes().splitlines()) == sorted(before.splitlines())
    assert len(server.received) == requests
    assert max(Counter(folder.verified).values()) == 1


@pytest.mark.slow
def test_a_torn_last_line_is_repaired(tmp_path: Path, server: FaultyServer) -> None:
    folder = Folder(tmp_path, "a", "b", "c")
    folder.solve(server)
    whole = folder.out.read_bytes()
    for cut in (len(whole) - 1, len(whole) - 40, len(whole.splitlines()[0]) + 5):
        folder.out.write_bytes(whole[:cut])
        assert folder.solve(server).code == 0
        assert sorted(folder.out.read_bytes().splitlines()) == sorted(whole.splitlines())


@pytest.mark.slow
def test_a_file_of_something_else_is_not_touched(tmp_path: Path, server: FaultyServer) -> None:
    folder = Folder(tmp_path, "a")
    for content in (b"notes of mine", b"one\ntwo\n", b'{"other": 1}\n', b"[1]\n", b"\xff\n"):
        folder.out.write_bytes(content)
        ran = folder.solve(server)
        assert (ran.code, ran.out) == (2, "")
        assert (
            ran.err
            == f"grv: {folder.out}: exists and is not a file of answers; give another --out\n"
        )
        assert folder.out.read_bytes() == content
    assert not server.received


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_loses_nothing(tmp_path: Path, number: signal.Signals) -> None:
    """What is in flight may end; nothing is asked for again."""
    folder = Folder(tmp_path, *"abcdef")
    with FaultyServer(text=text, seconds=0.4) as server:
        command = folder.command(server, "--concurrency", 2)
        process = start(*command)
        until(lambda: len(server.received) >= 3, process)
        process.send_signal(number)
        ran = ended(process)
        assert ran.code == 130
        assert ran.err.splitlines()[-1] == "grv: interrupted"
        assert "Traceback" not in ran.err
        records(folder.out)
        assert here(*command).code == 0
        asked = Counter((r.prompt, r.body["seed"]) for r in server.received)
    assert max(asked.values()) == 1
    assert max(Counter(folder.verified).values()) == 1
    assert len(records(folder.out)) == 6
    assert all(record["lost"] == {} for record in records(folder.out))


@pytest.mark.alone
@pytest.mark.slow
def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "a")
    with FaultyServer(text=text, seconds=30) as server:
        process = start(*folder.command(server))
        until(lambda: server.received, process)
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert ended(process).code == 130
        assert time.monotonic() - begun < 8


@pytest.mark.slow
def test_the_budget_bounds_each_problem(tmp_path: Path, server: FaultyServer) -> None:
    folder = Folder(tmp_path, "hopeless", "hopeless too")
    ran = folder.solve(server, "--budget", 45, "--costs", "1,5")
    assert ran.code == 1
    for record in records(folder.out):
        assert record["cost"] == record["generated"] + 5 * record["verified"] <= 45
    assert generated(server) + 5 * len(folder.verified) <= 90


@pytest.mark.slow
def test_the_total_budget_is_never_passed_however_often_it_is_run(
    tmp_path: Path, server: FaultyServer
) -> None:
    folder = Folder(tmp_path, *(f"hopeless {i}" for i in range(4)), "a", "b")
    for _ in range(3):  # the cap is on all runs together
        ran = folder.solve(server, "--total-budget", 100, "--costs", "1,4")
        assert ran.code == 1
        assert generated(server) + 4 * len(folder.verified) <= 100
    spent = generated(server) + 4 * len(folder.verified)
    folder.solve(server, "--total-budget", 200, "--costs", "1,4")
    assert spent < generated(server) + 4 * len(folder.verified) <= 200
    assert here("runs", "check", folder.ledger).code == 0
    assert "unfinished" not in here("runs", "list", folder.ledger).out


@pytest.mark.slow
def test_what_was_lost_counts_against_the_total_budget(tmp_path: Path) -> None:
    folder = Folder(tmp_path, *(f"hopeless {i}" for i in range(4)))
    with FaultyServer(text=text, seconds=0.2) as server:
        for _ in range(3):
            process = start(*folder.command(server, "--total-budget", 60, "--costs", "1,4"))
            before = len(server.received)
            until(lambda b=before: len(server.received) > b, process)
            process.kill()
            process.communicate()
        folder.solve(server, "--total-budget", 60, "--costs", "1,4")
        assert generated(server) + 4 * len(folder.verified) <= 60


@pytest.mark.slow
def test_concurrency_bounds_the_requests_in_flight(tmp_path: Path) -> None:
    folder = Folder(tmp_path, *(f"p{i}" for i in range(12)))
    with FaultyServer(text=text, seconds=0.05) as server:
        assert folder.solve(server, "--concurrency", 3).code == 0
        assert server.busiest == 3


@pytest.mark.slow
def test_a_job_file_holds_the_same_options(tmp_path: Path, server: FaultyServer) -> None:
    folder = Folder(tmp_path, "a", "hopeless")
    job = tmp_path / "job.toml"
    job.write_text(
        f'problems = "{folder.problems}"\nout = "{folder.out}"\ngenerator = "openai:m"\n'
        f'base-url = "{server.url}"\nbudget = 30\ntemperature = 1\nstop = ["END"]\nkeys = true\n'
        "allow-commands = true\n"
    )
    ran = here("solve", "--job", job, "--max-tokens", 9)
    assert (ran.code, ran.err) == (1, "")
    body = server.received[0].body
    assert (body["temperature"], body["stop"]) == (1, ["END"])
    assert 9 in (body.get("max_tokens"), body.get("max_completion_tokens"))
    by_flags = ("--budget", 30, "--temperature", 1, "--stop", "END", "--max-tokens", 9)
    requests = len(server.received)
    assert folder.solve(server, *by_flags).code == 1
    assert len(server.received) == requests  # the same run: nothing is paid for again


def test_a_dry_run_says_what_it_can_cost_and_touches_nothing(
    tmp_path: Path, server: FaultyServer
) -> None:
    folder = Folder(tmp_path, "a", "b")
    before = sorted(tmp_path.iterdir())
    ran = folder.solve(server, "--dry-run", "--budget", 50)
    assert (ran.code, ran.err) == (0, "")
    assert "at most 100 in all, 50 each" in ran.out
    assert "at most 70 in all" in folder.solve(server, "--dry-run", "--total-budget", 70).out
    assert "without a limit" in folder.solve(server, "--dry-run", "--budget", "inf").out
    assert sorted(tmp_path.iterdir()) == before
    assert not server.received


@pytest.mark.slow
def test_prices_turn_use_into_dollars(tmp_path: Path, server: FaultyServer) -> None:
    folder = Folder(tmp_path, "a")
    prices = tmp_path / "prices.toml"
    prices.write_text('["m"]\nprompt = 1.0\ncompletion = 2.0\n[other]\nverify_call = 0.5\n')
    assert folder.solve(server, "--prices", prices).code == 0
    (record,) = records(folder.out)
    usage = record["usage"]
    tokens = usage["prompt_tokens"] * 1e-6 + usage["completion_tokens"] * 2e-6
    assert usage["dollars"] == pytest.approx(tokens + 0.5 * record["verified"])


@pytest.mark.slow
def test_two_runs_share_a_ledger_and_solve_nothing_twice(tmp_path: Path) -> None:
    folder = Folder(tmp_path, *(f"p{i}" for i in range(8)))
    with FaultyServer(text=text, seconds=0.1) as server:
        outs = [tmp_path / "one", tmp_path / "two"]
        both = [start(*folder.command(server, "--ledger", folder.ledger, "-o", o)) for o in outs]
        ran = [ended(process) for process in both]
        assert {each.code for each in ran} <= {0, 1}
        assert [each.err for each in ran] == ["", ""]
        asked = Counter((r.prompt, r.body["seed"]) for r in server.received)
        assert max(asked.values()) == 1
        solved = {record["problem"] for out in outs for record in records(out)}
        assert len(solved) == 8
        requests = len(server.received)
        assert folder.solve(server, "--ledger", folder.ledger, "-o", outs[0]).code == 0
        assert len(server.received) == requests
    assert len(records(outs[0])) == 8
    assert max(Counter(folder.verified).values()) == 1


@pytest.mark.slow
def test_a_second_run_does_not_write_over_the_answers_of_the_first(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "a", "b")
    with FaultyServer(text=text, seconds=2.0) as server:  # longer than a process takes to start
        first = start(*folder.command(server))
        until(lambda: server.received, first)
        second = folder.solve(server)
        assert second.code == 2
        assert second.err == f"grv: {folder.out}: another grv process writes its answers there\n"
        server.seconds = 0.0
        assert ended(first).code == 0
    assert len(records(folder.out)) == 2


@pytest.mark.slow
def test_keys_and_passwords_stay_out_of_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a server repeats the key in what it says, and where it stands in the address."""
    folder = Folder(tmp_path, "a", "hopeless")
    secrets = ("sk-very-secret", "pass-word-1", "pass-word-2")
    said = iter([Status(500, message=f"bad key {secrets[0]}")] * 3)
    monkeypatch.setenv("OPENAI_API_KEY", secrets[0])
    with FaultyServer(lambda _: next(said, None), text=text) as server:
        options = ["--first-pause", 0.01, "--budget", 30, "--attempts", 2, "--patience", 0]
        ran = folder.solve(server, *options)
        assert any(secrets[0] in str(request.headers) for request in server.received)
        address = ["--base-url", server.url.replace("http://", f"http://me:{secrets[1]}@")]
        score = ["--score", f"score:{server.root.replace('//', f'//me:{secrets[2]}@')}"]
        again = folder.solve(server, *options, *address, *score)
        assert (ran.code, again.code) == (1, 1)
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"Solve hopeless" in kept
    for secret in secrets:
        assert secret.encode() not in kept
        assert secret not in ran.out + ran.err + again.out + again.err


GOOD = {"problem": "a", "prompt": "Solve a.", "check": {"kind": "math", "answer": "1"}}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "PROBLEMS is required"),
        (("missing", "G"), "missing: cannot be read: No such file"),
        (("good", "--out", "answers"), "--generator SPEC is required"),
        (
            ("good", "--allow-commands", "--generator", "openai:m"),
            "--out FILE is required: where the results go",
        ),
        (("empty", "G"), "no problems in this file"),
        (("not-json", "G"), "not-json:1: not a line of JSON"),
        (("no-prompt", "G"), "no-prompt:1: no field 'prompt'"),
        (("no-check", "G"), "no-check:1: no field 'check'"),
        (("bad-check", "G"), "problem a, check.kind: must be one of"),
        (("twice", "G"), "twice:2: problem 'a' is also on line 1"),
        (("good", "G", "--generator", "opnai:m"), "did you mean openai:MODEL"),
        (("good", "G", "--generator", "openai:"), "openai needs MODEL"),
        (("good", "G", "--score", "beauty"), "unknown score 'beauty'"),
        (("good", "G", "--policy", "magic"), "unknown policy"),
        (("good", "G", "--costs", "1"), "--costs 1: give two numbers"),
        (("good", "G", "--costs", "1,-1"), "--costs 1,-1"),
        (("good", "G", "--budget", "-1"), "--budget -1: give a number of at least 0"),
        (("good", "G", "--budget", "nan"), "--budget nan: give a number of at least 0"),
        (("good", "G", "--budget", "much"), "--budget"),
        (("good", "G", "--total-budget", "-1"), "--total-budget -1: give a number of at least 0"),
        (("good", "G", "--width", "0"), "--width 0: give a whole number from 1 to 1,000,000"),
        (("good", "G", "--concurrency", "0"), "give a whole number from 1 to 10,000"),
        (("good", "G", "--attempts", "0"), "give a whole number from 1 to 1,000"),
        (("good", "G", "--first-pause", "-1"), "give a number from"),
        (("good", "G", "--call-timeout", "0"), "give a number from"),
        (("good", "G", "--temperature", "-1"), "--temperature -1: give a number from 0 to 100"),
        (("good", "G", "--top-p", "2"), "--top-p 2: give a number"),
        (("good", "G", "--max-tokens", "0"), "--max-tokens 0: give a whole number from 1"),
        (("good", "G", "--timeout", "-1"), "--timeout -1: give a number"),
        (("good", "G", "--memory", "0"), "memory"),
        (("good", "G", "--workers", "0"), "--workers 0: give a whole number"),
        (("good", "G", "--isolation", "none"), "none"),
        (("good", "G", "--base-url", "localhost"), "not an address"),
        (("good", "G", "--prices", "missing"), "missing: cannot be read"),
        (("good", "G", "--prices", "bad-prices"), "bad-prices: [m] prompt = -1"),
        (("good", "G", "--out", "."), "it is a folder"),
        (("good", "G", "--out", "nowhere/out"), "nowhere/out: cannot be written"),
        (("good", "G", "--out", "good"), "good: given twice"),
        (("good", "G", "--ledger", "good"), "good: given twice"),
        (("good", "G", "--ledger", "notes"), "notes: not a ledger: file is not a database"),
        (("good", "G", "--ledger", "nowhere/ledger"), "nowhere/ledger"),
        (("good", "G", "--job", "missing"), "missing: cannot be read"),
        (("good", "G", "--job", "bad-job"), "bad-job: not TOML"),
        (("good", "G", "--job", "typo-job"), "typo-job: unknown option budgte"),
        (("good", "G", "--job", "wrong-job"), "wrong-job: --budget ten: give a number"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    message: str,
) -> None:
    from grv.apps import cli

    monkeypatch.chdir(tmp_path)
    good = json.dumps(GOOD) + "\n"
    files = {
        "good": good,
        "empty": "\n",
        "not-json": "{\n",
        "no-prompt": '{"problem": "a", "check": {}}\n',
        "no-check": '{"problem": "a", "prompt": "p"}\n',
        "bad-check": '{"problem": "a", "prompt": "p", "check": {"kind": "luck"}}\n',
        "twice": good * 2,
        "bad-prices": "[m]\nprompt = -1\n",
        "bad-job": "= 1\n",
        "typo-job": "budgte = 1\n",
        "wrong-job": 'budget = "ten"\n',
        "notes": "these are my notes, and they are no database at all\n" * 20,
    }
    for name, content in files.items():
        Path(name).write_text(content)
    usual = [
        "--allow-commands",
        "--generator",
        "openai:m",
        "--base-url",
        "http://127.0.0.1:9",
        "--out",
        "out",
    ]
    given = [part for each in arguments for part in (usual if each == "G" else [each])]
    assert cli.run(["solve", *given]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("grv: ")
    assert err.count("\n") == 1
    assert "bug in grv" not in err
    assert message in err
    assert {path.name for path in tmp_path.iterdir()} == files.keys()
    assert all(Path(name).read_text() == content for name, content in files.items())
