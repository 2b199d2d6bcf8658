"""What a cluster costs and how far it goes: Ray beside local workers, and the capacity model.

    python bench/cluster.py [--quick] [--model]

* `actors`: verifications a second on 1, 2 and 4 nodes of one CPU each, beside as many local
  workers, in turns; the difference is the overhead per verification.
* `driver`: processor time of this process per candidate, with 1,000 in flight, beside that of local
  verification; and the part of it that computes keys and refutations.
* `memory`: resident memory of this process, of the head's GCS and raylet, before and after 100,000
  candidates of 2,000 characters, 10,000 of them in flight at once.
* `model`, with `--model` only: the capacity model beside real runs. The programs sleep, so that
  a cluster of many more workers than this machine has processors fits on it.
* `simulated`, with `--model` only: a tenth of 10^9 candidates a day in virtual time, with what the
  model says is needed, and with half of it.

All nodes are on this machine, and share its processors with this process.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from grv.backends.cluster.engine import RayEngine
from grv.backends.protocols import Draft, Problem
from grv.backends.verifiers.pool import CheckVerifier
from grv.core.values import Verdict
from sandbox import FUNCTION, PROGRAM

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "tests"))
from support.ray_cluster import RayCluster, running  # noqa: E402

MOST_WORKERS = 2048  # that one driver keeps busy: 4,096 requests in flight, two per worker
DAY = 86_400
numbers = count()


def programs(number: int) -> Iterator[tuple[None, Problem, str]]:
    """Programs that pass, all different, so that no verdict is remembered."""
    problem = Problem("p", check=FUNCTION)
    return ((None, problem, PROGRAM.format(number=next(numbers))) for _ in range(number))


@contextmanager
def on_ray(
    cluster: RayCluster, workers: int | None = None, *, refute: bool = True
) -> Iterator[CheckVerifier]:
    os.environ.update(cluster.env)
    with CheckVerifier(engine=RayEngine(workers=workers), refute=refute) as verifier:
        yield verifier


def rate(verifier: CheckVerifier, number: int) -> float:
    """Verifications a second."""
    started = time.perf_counter()
    for _, judged in verifier.find_all(programs(number)):
        assert judged.finding.verdict is Verdict.PASSED, judged
    return number / (time.perf_counter() - started)


def actors(cluster: RayCluster, sizes: tuple[int, ...], turns: int, number: int) -> Any:
    """As many nodes of one CPU as local workers, in turns."""
    figures = []
    for size in sizes:
        cluster.keep(size)
        with CheckVerifier(workers=size) as local, on_ray(cluster) as remote:
            assert remote.workers == size
            for verifier in (local, remote):
                rate(verifier, 2 * size)
            rates = [(rate(local, number), rate(remote, number)) for _ in range(turns)]
        here, there = (statistics.median(each) for each in zip(*rates, strict=True))
        figures.append(
            {
                "actors": size,
                "local_per_second": round(here, 1),
                "ray_per_second": round(there, 1),
                "of_local": round(statistics.median(b / a for a, b in rates), 2),
                "overhead_ms": round(statistics.median(1000 / b - 1000 / a for a, b in rates), 2),
            }
        )
    return figures


async def in_flight(verifier: CheckVerifier, drafts: list[tuple[Problem, str]], most: int) -> None:
    """Verify all, several at once."""
    slots = asyncio.Semaphore(most)

    async def one(problem: Problem, text: str) -> None:
        async with slots:
            finding = await verifier.verify(problem, Draft(text))
            assert finding.verdict is not Verdict.BROKEN, finding

    await asyncio.gather(*(one(problem, text) for problem, text in drafts))


def driver(cluster: RayCluster, number: int) -> Any:
    """Milliseconds of this process's processor time per candidate."""

    def cpu(verifier: CheckVerifier) -> float:
        drafts = [(problem, text) for _, problem, text in programs(number)]
        asyncio.run(in_flight(verifier, drafts[:20], 20))
        started = time.process_time()
        asyncio.run(in_flight(verifier, drafts[20:], 1000))
        return 1000 * (time.process_time() - started) / (len(drafts) - 20)

    cluster.keep(2)
    with CheckVerifier(workers=2) as local:
        here = cpu(local)
        started = time.process_time()
        for _, problem, text in programs(number):
            assert local.refutation(problem, Draft(text)) is None
            local.key(problem, Draft(text))
        keys = 1000 * (time.process_time() - started) / number
    with on_ray(cluster) as remote:
        there = cpu(remote)
    return {
        "in_flight": min(1000, number),
        "candidates": number,
        "ray_ms": round(there, 3),
        "local_ms": round(here, 3),
        "keys_and_refutations_ms": round(keys, 3),
    }


def resident(pid: int) -> float:
    """Megabytes of a process."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) / 1024


def head(cluster: RayCluster) -> dict[str, int]:
    """The processes of the head that requests could fill: its GCS, and its raylet, the first."""
    found: dict[str, int] = {}
    for each in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            words = (each / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        name = os.path.basename(words[0])
        if name in ("gcs_server", "raylet") and any(cluster.folder in word for word in words):
            found.setdefault(name, int(each.name))
    return found


def memory(cluster: RayCluster, number: int, chunk: int) -> Any:
    """Megabytes before and after; the check compares texts, so that the driver is the slow part."""
    cluster.keep(2)
    problem = Problem("p", check={"kind": "math", "answer": "7"})
    pids = {"driver": os.getpid(), **head(cluster)}

    def sizes() -> dict[str, float]:
        return {name: round(resident(pid), 1) for name, pid in pids.items()}

    def work(first: int, many: int) -> None:
        texts = (f"\\boxed{{{at}}} {'x' * 2000}" for at in range(first, first + many))
        asyncio.run(in_flight(remote, [(problem, text) for text in texts], chunk))

    with on_ray(cluster, refute=False) as remote:  # every text goes to a node
        work(10**9, min(number, chunk))  # imports, caches, threads
        before = sizes()
        started = time.perf_counter()
        for first in range(0, number, chunk):
            work(first, min(chunk, number - first))
        took = time.perf_counter() - started
        after = sizes()
    return {
        **{"candidates": number, "in_flight": chunk, "per_second": round(number / took)},
        **{"before_mb": before, "after_mb": after},
    }


@dataclass(frozen=True)
class Model:
    """What limits a run. Times are in seconds per candidate.

    Attributes:
        driver: processor time of the driver, for runtime, ledger and dispatch.
        verify: time that a worker of a node needs for one verification.
        verified: the share of candidates that is verified.
        drivers: the number of drivers, each with a processor of its own.
        workers: the workers of all nodes.
        here: if nodes and drivers share this machine, the processor time of one verification.
        processors: if they share it, its processors.
    """

    driver: float
    verify: float
    verified: float = 1.0
    drivers: int = 1
    workers: int = 1
    here: float = 0.0
    processors: float = math.inf

    @property
    def rate(self) -> float:
        """Candidates a second: the slowest part decides."""
        by_driver = self.drivers / self.driver
        busy = min(self.workers, self.drivers * MOST_WORKERS)
        by_workers = busy / (self.verify * self.verified)
        shared = self.processors / (self.driver + self.here * self.verified)
        return min(by_driver, by_workers, shared)


@dataclass(frozen=True)
class Assumed:
    """What the model assumes where nothing here can be measured.

    Attributes:
        record: processor seconds of a driver per candidate, for runtime and ledger.
        dispatch: processor seconds of a driver per verification.
        verified: the share of candidates that is verified.
        busy: the share of its time that a processor may be busy.
        database: candidates that one PostgreSQL database records per second.
        bytes: what a candidate takes in the ledger.
        core_hour: dollars for an hour of a core.
        candidate: dollars for generating a candidate.
    """

    record: float = 0.6e-3
    dispatch: float = 3.1e-3
    verified: float = 0.25
    busy: float = 0.7
    database: float = 290.0
    bytes: float = 4000.0
    core_hour: float = 0.04
    candidate: float = 1e-4


def needs(per_day: float, verify: float, given: Assumed = Assumed()) -> dict[str, float]:
    """What a number of candidates per day needs, given the core seconds of a verification."""
    each = per_day / DAY
    checks = each * given.verified
    cores = checks * verify / given.busy
    by_time = (each * given.record + checks * given.dispatch) / given.busy
    drivers = max(1, math.ceil(by_time), math.ceil(cores / MOST_WORKERS))
    return {
        "candidates_per_second": round(each, 1),
        "drivers": drivers,
        "databases": math.ceil(each / given.database),
        "ledger_gigabytes_per_day": round(per_day * given.bytes / 1e9, 1),
        "verification_cores": math.ceil(cores),
        "dollars_verifying": round(cores * 24 * given.core_hour, 1),
        "dollars_generating": round(per_day * given.candidate),
    }


def simulate(per_day: float, verify: float, *, given: float = 1.0) -> dict[str, float]:
    """A queue at each part, in virtual time: whether `given` times what `needs` says keeps up.

    Candidates arrive at random. Each takes a driver, then a database, and a share of them a core
    for a time that varies exponentially. Every part serves in the order of arrival.
    """
    assumed = Assumed()
    need = needs(per_day, verify)
    random = Random(0)
    sizes = {"drivers": need["drivers"], "databases": need["databases"]}
    sizes["cores"] = need["verification_cores"]
    free = {name: [0.0] * max(1, round(given * size)) for name, size in sizes.items()}
    each = DAY / per_day
    until = max(60.0, 12 * verify)
    now = 0.0
    waits: list[float] = []
    arrived = ended = 0

    def served(part: str, at: float, seconds: float) -> float:
        begin = max(at, heapq.heappop(free[part]))
        heapq.heappush(free[part], begin + seconds)
        waits.append(begin - at)
        return begin + seconds

    while now < until:
        now += random.expovariate(1 / each)
        is_verified = random.random() < assumed.verified
        arrived += 1
        at = served("drivers", now, assumed.record + is_verified * assumed.dispatch)
        at = served("databases", at, 1 / assumed.database)
        if is_verified:
            seconds = random.expovariate(1 / verify)
            at = served("cores", at, seconds) - seconds  # when it gets its core
        ended += at <= until
    waits.sort()
    return {
        "candidates": arrived,
        "share_that_got_all_in_time": round(ended / arrived, 3),
        "longest_wait_of_99_percent": round(waits[int(0.99 * len(waits))], 3),
    }


def sleeping(number: int, seconds: float) -> Iterator[tuple[None, Problem, str]]:
    tests = [{"args": [1], "expected": 2}]
    problem = Problem("p", check={"kind": "function", "entry_point": "f", "tests": tests})
    for _ in range(number):
        text = f"import time\ndef f(x):\n    time.sleep({seconds})\n    return x + 1 + 0 * {{}}\n"
        yield None, problem, text.format(next(numbers))


def timed(verifier: CheckVerifier, number: int, seconds: float) -> tuple[float, float]:
    """Verifications a second of programs that sleep, and this process's CPU seconds for each."""
    started = time.perf_counter()
    cpu = time.process_time()
    for _, judged in verifier.find_all(sleeping(number, seconds)):
        assert judged.finding.verdict is Verdict.PASSED, judged
    took = time.perf_counter() - started
    return number / took, (time.process_time() - cpu) / number


def model(cluster: RayCluster, sizes: tuple[int, ...], seconds: float) -> Any:
    """Predicted and measured verifications a second, as the workers grow."""
    processors = len(os.sched_getaffinity(0))
    cluster.keep(2)
    with on_ray(cluster) as remote:  # the two constants, on a cluster that is not slow by itself
        rate(remote, 20)
        cpu = time.process_time()
        most = rate(remote, 400)
        each = (time.process_time() - cpu) / 400
    here = max(0.0, processors / most - each)
    figures = []
    for size in sizes:
        cluster.keep(0)
        for _ in range(2):
            cluster.add(cpus=size // 2)
        with on_ray(cluster) as remote:
            timed(remote, 2 * size, seconds)  # starts all workers
            measured, _ = timed(remote, 6 * size, seconds)
        limits = Model(each, seconds, workers=size, here=here, processors=processors)
        figures.append(
            {
                "workers": size,
                "predicted_per_second": round(limits.rate, 1),
                "measured_per_second": round(measured, 1),
                "of_predicted": round(measured / limits.rate, 2),
            }
        )
    constants = {"driver_ms": round(1000 * each, 3), "verify_cpu_ms": round(1000 * here, 3)}
    per_day = {
        f"{many:.0e} a day, {verify:g} s each": needs(many, verify)
        for many in (1e6, 1e9)
        for verify in (0.02, 25.0)
    }
    return {**constants, "program_seconds": seconds, "sizes": figures, "needs": per_day}


def simulated(scale: float) -> Any:
    """The simulation with what the model says, and with half of it, at a part of 10^9 a day."""
    return {
        f"{1e9 * scale:.0e} a day, {verify:g} s each, {given:g} of it": simulate(
            1e9 * scale, verify, given=given
        )
        for verify in (0.02, 25.0)
        for given in (1.0, 0.5)
    }


def main() -> None:
    quick = "--quick" in sys.argv
    figures: dict[str, Any] = {"processors": len(os.sched_getaffinity(0))}
    with running(1) as cluster:
        if "--model" in sys.argv:
            figures["simulated"] = simulated(0.001 if quick else 0.1)
            figures["model"] = model(cluster, (4,) if quick else (8, 32, 64), 0.2 if quick else 2.0)
        else:
            sizes, turns, number = ((1,), 1, 20) if quick else ((1, 2, 4), 5, 400)
            figures["actors"] = actors(cluster, sizes, turns, number)
            figures["driver"] = driver(cluster, 60 if quick else 5000)
            figures["memory"] = memory(cluster, *((200, 100) if quick else (100_000, 10_000)))
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
