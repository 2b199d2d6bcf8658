"""`grv solve` when servers are out of service, refuse everything, or return nothing useful."""

from __future__ import annotations

import socket
import time
from collections import Counter
from pathlib import Path

import pytest

from support.commands import ended, grv, here, records, start, without_outages, write_problems
from support.servers import (
    Fault,
    FaultyServer,
    NoLogprobs,
    NotNumbers,
    Null,
    Received,
    Status,
)

pytestmark = pytest.mark.slow

NAMES = [f"p{i:02}" for i in range(20)]


def text(request: Received, seed: int) -> str:
    return f"{request.prompt} {seed} {'right' if seed % 2 else 'wrong'}"


def command(folder: Path, url: str, *more: object) -> list[object]:
    write_problems(folder / "problems", NAMES, seen=folder / "seen")
    basic = ["solve", folder / "problems", "--allow-commands", "--generator", "openai:m"]
    where = ["--base-url", url, "--out", folder / "out", "--budget", 10**6]
    return [*basic, *where, "--concurrency", 4, "--first-pause", 0.1, *more]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def all_solved(folder: Path) -> bool:
    found = Counter(record["outcome"] for record in records(folder / "out"))
    return found == {"solved": len(NAMES)}


def test_a_server_that_is_down_at_first_is_waited_for_and_the_screen_says_so(
    tmp_path: Path,
) -> None:
    port = free_port()
    given = command(tmp_path, f"http://127.0.0.1:{port}/v1", "--attempts", 1)
    process = start(*given)
    assert process.stderr is not None
    first = process.stderr.readline().rstrip("\n")
    time.sleep(1)
    with FaultyServer(text=text, port=port):
        ran = ended(process)
    assert ran.code == 0, ran.err
    assert all_solved(tmp_path)
    (last,) = ran.err.splitlines()
    assert first.startswith(f"waiting for 127.0.0.1:{port}: no connection: ConnectError")
    assert first.endswith("up to 300 s")
    assert last.startswith(f"127.0.0.1:{port} answers again, after ")


@pytest.mark.parametrize("code", [429, 500, 503])
def test_waits_are_not_attempts(tmp_path: Path, code: int) -> None:
    with FaultyServer([Status(code, retry_after="0.05")] * 30, text=text) as server:
        ran = here(*command(tmp_path, server.url, "--attempts", 1))
    assert (ran.code, without_outages(ran.err)) == (0, "")
    assert all_solved(tmp_path)


@pytest.mark.alone
def test_when_patience_ends_the_run_stops_and_no_problem_fails(tmp_path: Path) -> None:
    down = [True]
    script = lambda _: Status(503) if down[0] else None  # noqa: E731
    with FaultyServer(script, text=text) as server:
        given = command(tmp_path, server.url, "--patience", 2)
        ran = here(*given)
        assert (ran.code, records(tmp_path / "out")) == (2, [])
        waiting, stopped = ran.err.splitlines()
        assert waiting.startswith("waiting for 127.0.0.1:")
        assert stopped.startswith("grv: openai:m: status 503: not now, for 2 s.")
        assert "--patience" in stopped
        down[0] = False
        assert here(*given).code == 0
    assert all_solved(tmp_path)


@pytest.mark.parametrize(
    ("fault", "advice"),
    [
        (Status(401, message="bad key"), "check the key in OPENAI_API_KEY"),
        (Status(403, message="not yours"), "check the key in OPENAI_API_KEY"),
        (Status(404, message="no model m"), "check the name of the model"),
        (Status(402, message="pay first"), "add credit"),
        (Status(429, message="You exceeded your current quota"), "add credit"),
        (Status(400, message="'temperature' must be 1"), "the server refuses temperature"),
    ],
    ids=str,
)
def test_what_no_call_can_survive_stops_the_run_at_once(
    tmp_path: Path, fault: Status, advice: str
) -> None:
    wrong = [True]
    script = lambda _: fault if wrong[0] else None  # noqa: E731
    with FaultyServer(script, text=text) as server:
        given = command(tmp_path, server.url)
        ran = here(*given)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith(f"grv: openai:m: status {fault.code}: {fault.message}; ")
        assert ran.err.count("\n") == 1
        assert advice in ran.err
        assert len(server.received) <= 2 * 4  # those in flight; and once more without `n`
        wrong[0] = False
        assert here(*given).code == 0
    assert all_solved(tmp_path)


def test_calls_in_flight_are_recorded_before_the_run_stops(tmp_path: Path) -> None:
    seen: list[Received] = []

    def script(request: Received) -> Fault | None:
        seen.append(request)
        return Status(402) if len(seen) == 2 else None

    with FaultyServer(script, text=text, seconds=0.3) as server:
        given = command(tmp_path, server.url)
        assert here(*given).code == 2
        served = len(server.received) - 1
        assert served >= 3
        assert here(*given).code == 0
        good = [r for r in server.received if r is not seen[1]]
        asked = Counter((request.prompt, request.body["seed"]) for request in good)
        assert max(asked.values()) == 1


@pytest.mark.parametrize(
    ("fault", "what"),
    [
        (Null(), "have no text"),
        (NoLogprobs(), "have no score (the generator returned no log-probabilities)"),
        (NotNumbers(), "have no score (the generator returned no log-probabilities)"),
    ],
    ids=str,
)
def test_a_run_stops_if_nothing_it_gets_is_of_use(tmp_path: Path, fault: Fault, what: str) -> None:
    nothing = lambda request, seed: f"{request.prompt} {seed} wrong"  # noqa: E731
    with FaultyServer(lambda _: fault, text=nothing) as server:
        ran = here(*command(tmp_path, server.url, "--budget", 1000, "--score", "logprob"))
        served = sum(request.body.get("n", 1) for request in server.received)
    assert ran.code == 2
    *first, last = ran.err.splitlines()
    assert [what in line for line in first] == ([True] if fault == Null() else [])
    assert last.startswith("grv: the first ")
    assert what in last
    # Missing log-probabilities show with the first response; other calls are in flight then.
    assert served < (400 if fault == Null() else 50)


def test_a_full_disk_under_the_answers_is_named(tmp_path: Path) -> None:
    with FaultyServer(text=text) as server:
        given = command(tmp_path, server.url, "--ledger", tmp_path / "ledger", "--out", "/dev/full")
        ran = grv(*given)
    assert ran.code == 2
    assert ran.err.startswith("grv: /dev/full: cannot be written: No space left on device.")
    assert ran.err.count("\n") == 1
