"""What live search costs beside the calls it makes: runtime and ledger, against bare clients.

    python bench/live.py [--quick]

* `overhead`: processor time per candidate of runtime and ledger, with backends that answer at once.
  Each candidate has a text of 200 characters and 32 log-probabilities.
* `loopback`: answers a second from a server on loopback, 64 in flight: grv with a ledger on disk,
  beside the bare `openai` client in turns: 64 loops, and all requests at once under a semaphore of
  64, which is how it is mostly used. The server is a process of its own and answers at once.
* `second`: the same where each answer takes a second; the ideal is 64 a second.
* `many`: peak memory of a run of 10,000 problems beside one of 1,000, and how long `grv runs list`
  takes on its ledger.

Each figure comes from a process of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import anyio

from grv import Adaptive, Costs, Fixed, Verdict
from grv.backends.generators.openai import OpenaiGenerator
from grv.backends.protocols import Draft, Finding, Problem, Score, Usage
from grv.core.search import Policy
from grv.ledger.ledger import Ledger, MemoryLedger
from grv.ledger.sqlite import SqliteLedger
from grv.runtime.options import Calls
from grv.runtime.solve import SolveOptions, solve_many

IN_FLIGHT = 64
ALLOWED_MS = 0.5  # of processor time per candidate
_SERVER = """
import sys
sys.path.append(sys.argv[2])
from support.servers import FaultyServer
with FaultyServer(seconds=float(sys.argv[1])) as server:
    print(server.url, flush=True)
    sys.stdin.read()
"""


class Instant:
    """Generates, scores and verifies at once; nothing ever passes."""

    def __init__(self) -> None:
        self._draft = Draft("x" * 200, (-0.5,) * 32, Usage(20, 32, 0.1))

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> Sequence[Draft]:
        """The same draft, so many times."""
        return [self._draft] * n

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        """The newest is the best."""
        return [Score(float(at)) for at in range(len(drafts))]

    async def verify(self, problem: Problem, draft: Draft) -> Finding:
        """It failed."""
        return Finding(Verdict.FAILED, "wrong answer", {"got": 1}, Usage(seconds=0.01))


def instant(policy: Policy, budget: float) -> SolveOptions:
    each = Instant()
    options: SolveOptions = {"generator": each, "scorer": each, "verifier": each}
    return options | {"policy": policy, "costs": Costs(1, 10), "budget": budget, "width": 4}


def problems(number: int) -> Iterator[Problem]:
    return (Problem(f"problem {at}", f"What is {at} + {at}?") for at in range(number))


async def run(options: SolveOptions, number: int, ledger: Ledger) -> int:
    """Search for answers to so many problems; the candidates that were generated."""
    generated = 0
    options = {**options, "ledger": ledger, "calls": Calls(concurrency=IN_FLIGHT)}
    async for solution in solve_many(problems(number), **options):
        generated += solution.bill.generated
    return generated


@contextmanager
def on_disk() -> Iterator[SqliteLedger]:
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(SqliteLedger(Path(folder) / "ledger.db")) as ledger,
    ):
        yield ledger


def overhead(number: int) -> dict[str, Any]:
    """Milliseconds of processor time per candidate; 40 candidates and 11 verdicts a problem."""

    def one(ledger: Ledger) -> float:
        started = time.process_time()
        generated = anyio.run(run, instant(Adaptive(), 150), number, ledger)
        return 1000 * (time.process_time() - started) / generated

    one(MemoryLedger())  # imports, caches
    in_memory = one(MemoryLedger())
    with on_disk() as ledger:
        sqlite = one(ledger)
    return {
        "candidates": 40 * number,
        "memory_ms": round(in_memory, 3),
        "sqlite_ms": round(sqlite, 3),
        "share_of_what_is_allowed": round(sqlite / ALLOWED_MS, 2),
    }


@contextmanager
def server(seconds: float) -> Iterator[str]:
    tests = Path(__file__).parent.parent / "tests"
    call = [sys.executable, "-c", _SERVER, str(seconds), str(tests)]
    with subprocess.Popen(
        call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.communicate("")


async def bare(url: str, requests: int, *, gathered: bool = False) -> float:
    """Answers a second that the openai client gets, in loops or gathered under a semaphore."""
    import openai

    async with openai.AsyncOpenAI(api_key="none", base_url=url, max_retries=0) as client:
        todo, slots = iter(range(requests)), asyncio.Semaphore(IN_FLIGHT)

        async def ask(at: int) -> None:
            await client.completions.create(
                model="m", prompt=f"What is {at}?", temperature=0.7, logprobs=1, seed=at
            )

        async def loop() -> None:
            for at in todo:
                await ask(at)

        async def wait_and_ask(at: int) -> None:
            async with slots:
                await ask(at)

        started = time.perf_counter()
        if gathered:
            await asyncio.gather(*(wait_and_ask(at) for at in todo))
        else:
            await asyncio.gather(*(loop() for _ in range(IN_FLIGHT)))
        return requests / (time.perf_counter() - started)


async def grv(url: str, requests: int, ledger: Ledger) -> float:
    """Answers a second that grv gets, of one candidate each; every eighth is verified too."""
    each = Instant()
    generator = OpenaiGenerator("m", chat=False, base_url=url, seed=0, batch=1)
    options: SolveOptions = {"generator": generator, "scorer": each, "verifier": each}
    options |= {"policy": Fixed(8, 1), "costs": Costs(1, 10), "width": 8}
    started = time.perf_counter()
    generated = await run(options, requests // 8, ledger)
    took = time.perf_counter() - started
    await generator.aclose()
    return generated / took


def loopback(requests: int, turns: int) -> dict[str, Any]:
    """All in turns: answers a second, and the ratio within each round of turns."""
    rounds = []
    with server(0) as url:
        asyncio.run(bare(url, requests // 4))
        for _ in range(turns):
            loops = asyncio.run(bare(url, requests))
            with on_disk() as ledger:
                ours = asyncio.run(grv(url, requests, ledger))
            gathered = asyncio.run(bare(url, requests, gathered=True))
            rounds.append((loops, gathered, ours))
    loops, gathered, ours = (statistics.median(column) for column in zip(*rounds, strict=True))
    return {
        "requests": requests,
        "in_flight": IN_FLIGHT,
        "bare_per_second": round(loops),
        "gathered_per_second": round(gathered),
        "grv_per_second": round(ours),
        "of_the_bare_client": round(statistics.median(o / b for b, _, o in rounds), 2),
        "of_the_bare_client_gathered": round(statistics.median(o / g for _, g, o in rounds), 2),
    }


def second(requests: int) -> dict[str, Any]:
    """How near to the ideal, grv and the bare client: every answer takes a second."""
    with server(1.0) as url, on_disk() as ledger:
        ours = asyncio.run(grv(url, requests, ledger))
        alone = asyncio.run(bare(url, requests))
    return {
        "requests": requests,
        "in_flight": IN_FLIGHT,
        "of_the_ideal": round(ours / IN_FLIGHT, 2),
        "bare_of_the_ideal": round(alone / IN_FLIGHT, 2),
    }


def one_run(number: int, path: str) -> dict[str, float]:
    """A run of so many problems: seconds, and the most memory that it ever had."""
    started = time.perf_counter()
    with closing(SqliteLedger(path)) as ledger:
        anyio.run(run, instant(Fixed(4, 1), 1000), number, ledger)
    took = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": round(took, 1), "peak_mb": round(peak, 1)}


def many(fewer: int, more: int) -> dict[str, Any]:
    """Memory as a run grows, and how soon `grv runs list` answers on its ledger."""
    figures: dict[str, Any] = {"problems": [fewer, more]}
    with tempfile.TemporaryDirectory() as folder:
        sizes = []
        for number in (fewer, more):
            path = str(Path(folder) / f"{number}.db")
            sizes.append(alone("one_run", number, path))
        command = [str(Path(sys.executable).with_name("grv")), "runs", "list", path]
        started = time.perf_counter()
        listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        took = time.perf_counter() - started
    assert f"{more} searches" in listed, listed[-200:]
    few, lots = sizes
    growth = lots["peak_mb"] - few["peak_mb"]
    return figures | {
        "seconds": [few["seconds"], lots["seconds"]],
        "peak_mb": [few["peak_mb"], lots["peak_mb"]],
        "growth_kb_per_problem": round(1024 * growth / (more - fewer), 2),
        "runs_list_seconds": round(took, 2),
    }


def alone(what: str, *arguments: object) -> Any:
    """One measurement in a process of its own."""
    call = [sys.executable, str(Path(__file__)), "--one", what, *map(json.dumps, arguments)]
    shown = subprocess.run(call, check=True, stdout=subprocess.PIPE, env={**os.environ})
    return json.loads(shown.stdout)


def main() -> None:
    quick = "--quick" in sys.argv
    figures = {
        "overhead": alone("overhead", 5 if quick else 250),
        "loopback": alone("loopback", 128 if quick else 2048, 1 if quick else 5),
        "second": alone("second", 64 if quick else 1024),
        "many": many(*((10, 50) if quick else (1_000, 10_000))),
    }
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    if "--one" in sys.argv:
        _, _, name, *given = sys.argv
        print(json.dumps(globals()[name](*map(json.loads, given))))
    else:
        main()
