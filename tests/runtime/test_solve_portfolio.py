"""`grv solve` with several generators: two servers, a weak one and a strong one."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from grv.backends.generators.completions import seed_of
from grv.ledger.entries import Found, Made
from grv.ledger.sqlite import SqliteLedger
from support.commands import Ran, here, kill, records, refuses, start, write_problems
from support.servers import FaultyServer, Received

NAMES = [f"p{i}" for i in range(4)]
EASY = NAMES[:2]  # the weak model solves these too


def draft(request: Received, seed: int, *, strong: bool) -> str:
    name = request.prompt.removeprefix("Solve ").removesuffix(".")
    number = seed - seed_of(0, name, 0)
    right = number >= 2 if strong else (name in EASY and number >= 1)
    return f"{'strong' if strong else 'weak'} {name} {number} {'right' if right else 'wrong'}"


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[FaultyServer, FaultyServer]]:
    with (
        FaultyServer(text=lambda r, s: draft(r, s, strong=False), seconds=0.02) as weak,
        FaultyServer(text=lambda r, s: draft(r, s, strong=True), seconds=0.02) as strong,
    ):
        yield weak, strong


def command(tmp_path: Path, servers: tuple[FaultyServer, FaultyServer]) -> list[object]:
    weak, strong = servers
    problems = write_problems(tmp_path / "problems", NAMES, seen=tmp_path / "seen")
    return [
        "solve",
        problems,
        "--allow-commands",
        "--budget",
        400,
        "--generator",
        "weak=openai:small",
        "--base-url",
        f"weak={weak.url}",
        "--generator",
        "strong=openai:large",
        "--base-url",
        f"strong={strong.url}",
        "--costs",
        "weak=1,10",
        "--costs",
        "strong=20,10",
    ]


@pytest.fixture(scope="module")
def whole(
    tmp_path_factory: pytest.TempPathFactory, servers: tuple[FaultyServer, FaultyServer]
) -> tuple[Path, Ran]:
    """A run that has ended: the folder with its results, and what it printed."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, here(*command(folder, servers), "--out", folder / "out.jsonl")


class TestSolveWithTwoServers:
    @pytest.mark.slow
    def test_finds_the_answers_and_bills_each_generator(self, whole: tuple[Path, Ran]) -> None:
        folder, ran = whole
        assert (ran.code, ran.err) == (0, "")
        by_problem = {record["problem"]: record for record in records(folder / "out.jsonl")}
        assert set(by_problem) == set(NAMES)
        assert {by_problem[name]["generator"] for name in NAMES[2:]} == {"strong"}
        for record in by_problem.values():
            bills = record["by_generator"]
            assert sum(bill["cost"] for bill in bills.values()) == record["cost"] <= 400
            for name, price in (("weak", 1), ("strong", 20)):
                bill = bills[name]
                assert bill["cost"] == bill["generated"] * price + bill["verified"] * 10
        assert "weak: cost " in ran.out
        assert "strong: cost " in ran.out

    @pytest.mark.slow
    def test_a_job_file_says_the_same(
        self, tmp_path: Path, servers: tuple[FaultyServer, FaultyServer], whole: tuple[Path, Ran]
    ) -> None:
        job = tmp_path / "job.toml"
        job.write_text(
            "budget = 400\n"
            f"[generators.weak]\ngenerator = 'openai:small'\nbase_url = '{servers[0].url}'\n"
            f"costs = '1,10'\n"
            f"[generators.strong]\ngenerator = 'openai:large'\nbase_url = '{servers[1].url}'\n"
            f"costs = '20,10'\n"
        )
        arguments = ("--allow-commands", "--job", job, "--out", tmp_path / "job.jsonl")
        assert here("solve", whole[0] / "problems", *arguments).code == 0

        def told(path: Path) -> list[tuple[object, ...]]:
            found = sorted(records(path), key=lambda each: each["problem"])
            return [(each["problem"], each["answer"], each["cost"]) for each in found]

        assert told(tmp_path / "job.jsonl") == told(whole[0] / "out.jsonl")

    @pytest.mark.slow
    def test_a_killed_run_pays_for_no_recorded_draft_again(
        self, tmp_path: Path, servers: tuple[FaultyServer, FaultyServer], whole: tuple[Path, Ran]
    ) -> None:
        # Cold, as the undisturbed run: which problems end first decides what is learned.
        out, flags = tmp_path / "out.jsonl", [*command(tmp_path, servers), "--policy", "default"]
        until = len(servers[0].received) + 4
        process = start(*flags, "--out", out, "--concurrency", 2)
        while len(servers[0].received) < until and process.poll() is None:
            time.sleep(0.01)
        kill(process)
        before = drafts(tmp_path / "out.jsonl.ledger")
        asked = [len(server.received) for server in servers]

        assert here(*flags, "--out", out, "--concurrency", 2).code == 0
        again = Counter(
            (name, number)
            for server, start_at, name in zip(servers, asked, ("weak", "strong"), strict=True)
            for request in server.received[start_at:]
            for number in requested(request)
        )
        assert not {each for each in before if each in again}
        undisturbed = {each["problem"]: each for each in records(whole[0] / "out.jsonl")}
        for record in records(out):
            for field in ("outcome", "answer", "generator", "by_generator", "cost"):
                assert record[field] == undisturbed[record["problem"]][field]

    @pytest.mark.slow
    def test_the_ledger_of_one_run_is_the_history_of_the_next(
        self, tmp_path: Path, servers: tuple[FaultyServer, FaultyServer], whole: tuple[Path, Ran]
    ) -> None:
        flags, first = command(tmp_path, servers), whole[0] / "out.jsonl"
        history = ("--history", f"{first}.ledger", "--out", tmp_path / "second.jsonl")
        assert here(*flags, *history).code == 0
        ledger = SqliteLedger(tmp_path / "second.jsonl.ledger")
        started = ledger.read(next(iter(ledger.searches())).id)[0]
        assert str(started.about["portfolio"]).startswith("learned, ")  # type: ignore[union-attr]

    @pytest.mark.slow
    def test_the_ledger_shows_who_made_each_candidate(self, whole: tuple[Path, Ran]) -> None:
        shown = here("runs", "show", whole[0] / "out.jsonl.ledger", NAMES[2]).out
        assert "candidate 0 of weak" in shown
        assert "candidate 1 of strong" in shown
        assert "not used yet" not in shown

    def test_a_dry_run_counts_by_the_lowest_costs(
        self, tmp_path: Path, servers: tuple[FaultyServer, FaultyServer]
    ) -> None:
        ran = here(*command(tmp_path, servers), "--out", tmp_path / "x", "--dry-run")
        assert "4 problems: at most 1600 in all, 400 each; that is at most 1600 candid" in ran.out

    @pytest.mark.slow
    def test_an_exported_log_names_the_generators(
        self, tmp_path: Path, whole: tuple[Path, Ran]
    ) -> None:
        log = tmp_path / "log.jsonl"
        assert here("runs", "export", whole[0] / "out.jsonl.ledger", "--out", log).code == 0
        rows = [json.loads(line) for line in log.read_text().splitlines()]
        assert {row["generator"] for row in rows} == {"weak", "strong"}


class TestMistakes:
    @pytest.mark.parametrize(
        ("flags", "words"),
        [
            (["--generator", "a=openai:m"], "a has no costs: give --costs a=G,V"),
            (["--costs", "a=1,2"], "a has no generator"),
            (["--generator", "a=openai:m", "--generator", "a=openai:n"], "--generator a: given"),
            (["--generator", "a=openai:m", "--costs", "a=1,x"], "a: --costs"),
            (
                ["--generator", "a=openai:m", "--costs", "a=1,2", "--generator", "openai:n"],
                "name all generators",
            ),
            (["--generator", "openai:m", "--history", "log.csv"], "--history needs several"),
        ],
    )
    def test_are_one_line(self, tmp_path: Path, flags: list[str], words: str) -> None:
        problems = write_problems(tmp_path / "problems", NAMES, seen=tmp_path / "seen")
        command = ["solve", problems, "--allow-commands", "--out", tmp_path / "out", *flags]
        assert words in refuses(command)


def drafts(path: Path) -> set[tuple[str, tuple[str, int]]]:
    """The drafts on record, by generator: the problem, and the number of the draft."""
    ledger = SqliteLedger(path)
    found = set()
    for search in ledger.searches():
        for entry in ledger.read(search.id):
            if isinstance(entry, Made):
                found.add((entry.generator, (search.problem, entry.candidate // 2)))
            assert not isinstance(entry, Found) or entry.candidate >= 0
    ledger.close()
    return found


def requested(request: Received) -> Iterator[tuple[str, int]]:
    """The drafts that a request is for: the problem, and the number of the draft."""
    name = request.prompt.removeprefix("Solve ").removesuffix(".")
    first = request.body["seed"] - seed_of(0, name, 0)
    for number in range(first, first + request.body.get("n", 1)):
        yield name, number
