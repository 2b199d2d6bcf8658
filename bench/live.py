"""What live search costs beside the calls it makes: runtime and ledger, against bare clients.

    python bench/live.py [--quick]

* `overhead`: processor time per candidate of runtime and ledger, with backends that answer at once.
  Each candidate has a text of 200 characters and 32 log-probabilities.
* `loopback`: requests per second to a server on loopback, and processor time per request, with 16,
  64 and 256 in flight, for 1 and for 8 candidates each: grv with a ledger on disk, beside the bare
  `openai` client in turns: in loops, and all requests at once under a semaphore, which is how it is
  mostly used. The server is a process of its own and answers at once.
* `second`: the same with 64 in flight where each answer takes a second; the ideal is 64 a second.
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
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio

from grv import Costs, Verdict
from grv.backends.generators.openai import OpenaiGenerator
from grv.backends.protocols import Draft, Finding, Problem, Score, Usage
from grv.core.search import Policy
from grv.ledger.ledger import Ledger, MemoryLedger
from grv.ledger.sqlite import SqliteLedger
from grv.policies import Adaptive, Fixed
from grv.runtime.options import Calls
from grv.runtime.solve import SolveOptions, solve_many

IN_FLIGHT = 64
_Result = TypeVar("_Result")
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
        """The same draft, n times."""
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


async def run(
    options: SolveOptions, number: int, ledger: Ledger, in_flight: int = IN_FLIGHT
) -> int:
    """Search for answers to `number` problems; return how many candidates were generated."""
    generated = 0
    options = {**options, "ledger": ledger, "calls": Calls(concurrency=in_flight)}
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


Speed = tuple[float, float]  # requests per second, milliseconds of processor time per request


async def bare(
    url: str, requests: int, in_flight: int, n: int = 1, *, gathered: bool = False
) -> Speed:
    """The openai client asks for n candidates per request, in loops or under a semaphore."""
    import openai

    async with openai.AsyncOpenAI(api_key="none", base_url=url, max_retries=0) as client:
        todo = iter(range(requests))
        slots = asyncio.Semaphore(in_flight)

        async def ask(at: int) -> None:
            await client.completions.create(
                model="m", prompt=f"What is {at}?", temperature=0.7, logprobs=1, seed=at, n=n
            )

        async def loop() -> None:
            for at in todo:
                await ask(at)

        async def wait_and_ask(at: int) -> None:
            async with slots:
                await ask(at)

        calls = (
            [wait_and_ask(at) for at in todo] if gathered else [loop() for _ in range(in_flight)]
        )
        return (await timed(asyncio.gather(*calls), requests))[0]


async def grv(url: str, requests: int, in_flight: int, n: int = 1) -> Speed:
    """The same with grv and a ledger on disk; it verifies a candidate of every eight requests."""
    each = Instant()
    generator = OpenaiGenerator("m", chat=False, base_url=url, seed=0, batch=n)
    options: SolveOptions = {"generator": generator, "scorer": each, "verifier": each}
    options |= {"policy": Fixed(8 * n, 1), "costs": Costs(1, 10), "width": 8}
    with on_disk() as ledger:
        speed, made = await timed(run(options, requests // 8, ledger, in_flight), requests)
    await generator.aclose()
    assert made == requests * n
    return speed


async def timed(asking: Awaitable[_Result], requests: int) -> tuple[Speed, _Result]:
    """How fast requests are made, without opening and closing connections and files; the result."""
    started = time.perf_counter()
    used = time.process_time()
    result = await asking
    took = time.perf_counter() - started
    used = time.process_time() - used
    return (requests / took, 1000 * used / requests), result


def loopback(requests: int, turns: int, in_flight: int, n: int) -> dict[str, Any]:
    """All in turns: medians, and of the ratios within each round of turns the median."""
    rounds = []
    with server(0) as url:
        asyncio.run(bare(url, requests // 4, in_flight))
        asyncio.run(grv(url, requests // 4, in_flight, n))
        for _ in range(turns):
            loops = asyncio.run(bare(url, requests, in_flight, n))
            ours = asyncio.run(grv(url, requests, in_flight, n))
            gathered = asyncio.run(bare(url, requests, in_flight, n, gathered=True))
            rounds.append((loops, gathered, ours))
    middle = statistics.median
    return {
        "requests": requests,
        "in_flight": in_flight,
        "candidates_per_request": n,
        "bare_per_second": round(middle(bare[0] for bare, _, _ in rounds)),
        "gathered_per_second": round(middle(bare[0] for _, bare, _ in rounds)),
        "grv_per_second": round(middle(ours[0] for _, _, ours in rounds)),
        "bare_ms": round(middle(bare[1] for bare, _, _ in rounds), 2),
        "grv_ms": round(middle(ours[1] for _, _, ours in rounds), 2),
        "of_the_bare_client": round(middle(ours[0] / bare[0] for bare, _, ours in rounds), 2),
        "each_turn": [round(ours[0] / bare[0], 2) for bare, _, ours in rounds],
        "of_the_bare_client_gathered": round(
            middle(ours[0] / bare[0] for _, bare, ours in rounds), 2
        ),
        "processor_time_of_the_bare_client": round(
            middle(ours[1] / bare[1] for bare, _, ours in rounds), 2
        ),
    }


def second(requests: int) -> dict[str, Any]:
    """How near to the ideal, grv and the bare client: every answer takes a second."""
    with server(1.0) as url:
        ours, _ = asyncio.run(grv(url, requests, IN_FLIGHT))
        alone, _ = asyncio.run(bare(url, requests, IN_FLIGHT))
    return {
        "requests": requests,
        "in_flight": IN_FLIGHT,
        "of_the_ideal": round(ours / IN_FLIGHT, 2),
        "bare_of_the_ideal": round(alone / IN_FLIGHT, 2),
    }


def one_run(number: int, path: str) -> dict[str, float]:
    """A run of `number` problems: its seconds, and its peak memory."""
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
        "loopback": [
            alone("loopback", 64 if quick else 1024, 1 if quick else 5, in_flight, n)
            for n in (1, 8)
            for in_flight in (16, 64, 256)
        ],
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
