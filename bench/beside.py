"""Live search of this tree beside that of another one, such as a worktree of an earlier commit.

    git worktree add --detach ../before COMMIT
    python bench/beside.py ../before [--turns=7] [--only=calls,candidates,loopback,serve]

* `calls`: Python functions called, and functions of C, per candidate and per search. They hardly
  depend on what else the machine does. Differences of two runs, so the start does not count.
* `candidates`: processor time per candidate with backends that answer at once, with a ledger
  in memory and on disk: 40 candidates and 11 verdicts a problem, 8 candidates and one verdict, or
  one of each.
* `loopback`: processor time per request to a server on loopback, with 16 and 64 in flight, for 1
  and for 8 candidates each.
* `serve`: processor time of `grv serve` per request of one candidate and one verdict with 32 in
  flight, and per request whose answer is recorded.

The trees take turns, each figure comes from a process of its own, and each ratio is the mean over
turns of this tree to the other one, with a 95 % interval (t distribution of the logarithms).
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MEASURES = ("calls", "candidates", "loopback", "serve")
IN_FLIGHT = 32


def calls() -> dict[str, float]:
    """Functions called per candidate and per search."""
    import anyio

    from grv.ledger.ledger import MemoryLedger
    from grv.policies import Adaptive, Fixed
    from live import instant, on_disk, run

    counts = {"call": 0, "c_call": 0}

    def count(frame: object, event: str, argument: object) -> None:
        if event in counts:
            counts[event] += 1

    def counted(options: Any, number: int, ledger: Any) -> tuple[int, int, int]:
        before = counts["call"], counts["c_call"]
        threading.setprofile(count)
        sys.setprofile(count)
        made = anyio.run(run, options, number, ledger)
        sys.setprofile(None)
        threading.setprofile(None)
        return counts["call"] - before[0], counts["c_call"] - before[1], made

    figures: dict[str, float] = {}

    def measure(name: str, policy: Any, budget: float, ledger: Any, unit: str) -> None:
        few = counted(instant(policy, budget), 8, ledger())
        more = counted(instant(policy, budget), 40, ledger())
        number = more[2] - few[2] if unit == "candidate" else 32
        figures[f"{name}: Python calls per {unit}"] = (more[0] - few[0]) / number
        figures[f"{name}: C calls per {unit}"] = (more[1] - few[1]) / number

    def disk() -> Any:
        opened = on_disk()
        kept.append(opened)
        return opened.__enter__()

    kept: list[Any] = []
    anyio.run(run, instant(Adaptive(), 150), 4, MemoryLedger())  # imports
    for name, ledger in (("memory", MemoryLedger), ("sqlite", disk)):
        measure(name, Adaptive(), 150, ledger, "candidate")
        measure(f"{name}, 8 per request", Fixed(8, 1), 1000, ledger, "candidate")
        measure(f"{name}, one candidate", Fixed(1, 1), 150, ledger, "search")
    for opened in kept:
        opened.__exit__(None, None, None)
    return figures


def candidates() -> dict[str, float]:
    """Milliseconds of processor time per candidate: the least of two runs each, after a first."""
    import anyio

    from grv.ledger.ledger import MemoryLedger
    from grv.policies import Adaptive, Fixed
    from live import instant, on_disk, run

    def once(policy: Any, budget: float, number: int, ledger: Any) -> float:
        started = time.process_time()
        made = anyio.run(run, instant(policy, budget), number, ledger)
        return 1000 * (time.process_time() - started) / made

    figures = {}
    sizes = (
        ("40 candidates and 11 verdicts", Adaptive(), 150.0, 40),
        ("8 per request", Fixed(8, 1), 1000.0, 60),
        ("one candidate", Fixed(1, 1), 150.0, 150),
    )
    for name, policy, budget, number in sizes:
        in_memory = []
        on_sqlite = []
        for _ in range(3):
            in_memory.append(once(policy, budget, number, MemoryLedger()))
            with on_disk() as ledger:
                on_sqlite.append(once(policy, budget, number, ledger))
        figures[f"memory, {name}: ms per candidate"] = min(in_memory[1:])
        figures[f"sqlite, {name}: ms per candidate"] = min(on_sqlite[1:])
    return figures


def loopback() -> dict[str, float]:
    """Milliseconds of processor time per request."""
    import asyncio

    from live import grv, server

    figures = {}
    with server(0) as url:
        for n in (1, 8):
            for in_flight in (16, 64):
                asyncio.run(grv(url, 64, in_flight, n))
                speeds = [asyncio.run(grv(url, 256, in_flight, n)) for _ in range(3)]
                name = f"loopback, {n} per request, {in_flight} in flight: ms per request"
                figures[name] = min(spent for _, spent in speeds)
    return figures


def serve() -> dict[str, float]:
    """Milliseconds of processor time of a server per request."""
    import asyncio
    import tempfile

    import serve as served
    from live import server

    served.IN_FLIGHT = IN_FLIGHT
    served.OPTIONS[:] = ["--costs", "1,2", "--budget", "100", "--policy", "fixed(1, 1)"]
    served.OPTIONS += ["--concurrency", str(IN_FLIGHT), "--generator", "openai:m"]
    with (
        tempfile.TemporaryDirectory() as name,
        server(0) as url,
        served.serving(Path(name), url) as (pid, address),
    ):
        asyncio.run(plain(address, served.prompts(100, "first")))

        def spent(questions: list[str]) -> float:
            before = served.processor(pid)
            asyncio.run(plain(address, questions))
            return 1000 * (served.processor(pid) - before) / len(questions)

        new = [spent(served.prompts(400, f"turn {turn}")) for turn in range(2)]
        again = [spent(served.prompts(400, f"turn {turn}")) for turn in range(2)]
    return {
        "serve, one candidate and one verdict: ms per request": min(new),
        "serve, a recorded answer: ms per request": min(again),
    }


async def plain(url: str, questions: list[str]) -> None:
    """Send requests that are not streamed, several at once."""
    import asyncio

    import httpx2

    from serve import CHECK

    todo = iter(questions)
    limits = httpx2.Limits(max_connections=IN_FLIGHT)
    async with httpx2.AsyncClient(base_url=url, limits=limits, timeout=60) as client:

        async def loop() -> None:
            for question in todo:
                body = {
                    "model": "m",
                    "messages": [{"role": "user", "content": question}],
                    "grv": {"check": CHECK, "require": "best"},
                }
                response = await client.post("chat/completions", json=body)
                assert response.status_code in (200, 422), response.text  # 422: none passed

        await asyncio.gather(*(loop() for _ in range(IN_FLIGHT)))


def measured(tree: Path, measure: str) -> dict[str, float]:
    """The figures of a tree, from a process that imports grv and the benches from there."""
    call = [sys.executable, str(Path(__file__).resolve()), "--one", measure, str(tree.resolve())]
    path = os.pathsep.join([str(tree.resolve() / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    shown = subprocess.run(call, check=True, stdout=subprocess.PIPE, env=environment)
    figures: dict[str, float] = json.loads(shown.stdout)
    return figures


def interval(ratios: list[float]) -> tuple[float, float, float]:
    """The geometric mean of ratios, and its 95 % interval."""
    logs = [math.log(ratio) for ratio in ratios]
    mean = statistics.fmean(logs)
    if len(logs) < 2:
        return math.exp(mean), 0.0, math.inf
    from scipy.stats import t

    half = t.ppf(0.975, len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def main() -> None:
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    given = dict(word[2:].split("=") for word in sys.argv[1:] if word.startswith("--"))
    other = Path(words[0])
    turns = int(given.get("turns", 7))
    figures: dict[str, Any] = {}
    for measure in given.get("only", ",".join(MEASURES)).split(","):
        repeats = 1 if measure == "calls" else turns
        rows: dict[str, list[tuple[float, float]]] = {}
        for turn in range(repeats):
            trees = [other, HERE.parent]
            pair = {}
            for tree in trees if turn % 2 else reversed(trees):
                pair[tree] = measured(tree, measure)
            for name, before in pair[other].items():
                rows.setdefault(name, []).append((before, pair[HERE.parent][name]))
            print(f"{measure}: turn {turn + 1} of {repeats}", file=sys.stderr, flush=True)
        for name, pairs in rows.items():
            mean, low, high = interval([now / before for before, now in pairs])
            figures[name] = {
                "before": round(statistics.median(before for before, _ in pairs), 4),
                "now": round(statistics.median(now for _, now in pairs), 4),
                "ratio": round(mean, 3),
            }
            if repeats > 1:
                figures[name]["interval"] = [round(low, 3), round(high, 3)]
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        sys.path[0] = str(Path(sys.argv[3]) / "bench")  # that of the measured tree
        print(json.dumps(globals()[sys.argv[2]]()))
    else:
        main()
