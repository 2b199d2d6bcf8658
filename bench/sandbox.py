"""What the sandbox costs: against a fresh interpreter per program, and over many runs.

    python bench/sandbox.py [--quick] [--runs N]

The published way to verify a program is a fresh process for each candidate, with nothing between it
and the machine. Both ways are given the same programs with the same tests, on the same number of
workers, in turns of a few seconds, so that whatever else the machine does falls on both. Each
program is different, so that no verdict is remembered. `processor_time` has the processor time of
both, which depends less on what else the machine does.

`--runs` is how many runs the memory is watched over; 100000 takes several minutes.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

from grv.backends.protocols import Problem
from grv.backends.sandbox.limits import Isolation, RunLimits
from grv.backends.sandbox.worker import Worker
from grv.backends.verifiers.pool import CheckVerifier
from grv.core.values import Verdict

PROGRAM = '''
from typing import List


def has_close_elements(numbers: List[float], threshold: float) -> bool:
    """Whether two of the numbers are closer to each other than the threshold."""
    _ = {number}
    ordered = sorted(numbers)
    return any(b - a < threshold for a, b in zip(ordered, ordered[1:]))
'''
TESTS = [
    {"args": [[1.0, 2.0, 3.9, 4.0, 5.0, 2.2], 0.3], "expected": True},
    {"args": [[1.0, 2.0, 3.9, 4.0, 5.0, 2.2], 0.05], "expected": False},
    {"args": [[1.0, 2.0, 5.9, 4.0, 5.0], 0.95], "expected": True},
    {"args": [[1.0, 2.0, 5.9, 4.0, 5.0], 0.8], "expected": False},
    {"args": [[1.0, 2.0, 3.0, 4.0, 5.0, 2.0], 0.1], "expected": True},
]
FUNCTION = {"kind": "function", "entry_point": "has_close_elements", "tests": TESTS}
ASSERTIONS = "".join(
    f"    assert candidate(*{test['args']!r}) == {test['expected']!r}\n" for test in TESTS
)
ASSERTS = {
    "kind": "asserts",
    "entry_point": "has_close_elements",
    "test": f"def check(candidate):\n{ASSERTIONS}",
}
# A test that grv cannot evaluate without a process: it has a loop.
IN_PROCESS = {
    "kind": "asserts",
    "entry_point": "has_close_elements",
    "test": f"def check(candidate):\n    for _ in range(1):\n        pass\n{ASSERTIONS}",
}
STDIN = {"kind": "stdin", "tests": [{"input": "3 4\n", "output": "7\n"}]}
ADDING = "print(sum(map(int, input().split())), *[{number}][1:])"
CHECKS: dict[str, dict[str, Any]] = {
    **{"function": FUNCTION, "stdin": STDIN},
    **{"asserts": ASSERTS, "asserts_in_process": IN_PROCESS},
}
numbers = count()


def fresh(kind: str) -> None:
    """A program in a fresh interpreter, judged by its own exit code, as published."""
    if kind == "stdin":
        source = ADDING.format(number=next(numbers))
        given = "3 4\n"
    else:
        source = PROGRAM.format(number=next(numbers)) + ASSERTS["test"]
        source = f"{source}\ncheck(has_close_elements)\n"
        given = ""
    call = [sys.executable, "-I", "-c", source]
    subprocess.run(call, input=given, text=True, capture_output=True, check=True)


def turn(seconds: float, workers: int, work: Callable[[], object]) -> tuple[int, float]:
    """How often `workers` threads did the work, and the seconds they took."""
    started = time.perf_counter()

    def loop() -> int:
        done = 0
        while time.perf_counter() - started < seconds:
            work()
            done += 1
        return done

    with ThreadPoolExecutor(workers) as threads:
        total = sum(f.result() for f in [threads.submit(loop) for _ in range(workers)])
    return total, time.perf_counter() - started


def ours(verifier: CheckVerifier, check: dict[str, Any]) -> None:
    program = ADDING if check["kind"] == "stdin" else PROGRAM
    problem = Problem("p", check=check)
    finding = verifier.find(problem, program.format(number=next(numbers)))
    assert finding.verdict is Verdict.PASSED, finding


def against_fresh(workers: int, turns: int, seconds: float) -> dict[str, Any]:
    """Both ways in turns: verdicts a second, and the ratio of each pair of turns."""
    figures: dict[str, Any] = {"workers": workers}
    with CheckVerifier(workers=workers) as verifier:
        for kind, check in CHECKS.items():
            turn(min(1.0, seconds), workers, lambda: ours(verifier, check))  # noqa: B023
            ratios = []
            rates = []
            for _ in range(turns):
                done, took = turn(seconds, workers, lambda: fresh(kind))  # noqa: B023
                slow = done / took
                done, took = turn(seconds, workers, lambda: ours(verifier, check))  # noqa: B023
                rates.append((slow, done / took))
                ratios.append(done / took / slow)
            figures[kind] = {
                "fresh_per_second": round(statistics.median(r for r, _ in rates), 1),
                "grv_per_second": round(statistics.median(r for _, r in rates), 1),
                "times_faster": round(statistics.median(ratios), 2),
            }
    return figures


def below(pid: int) -> list[int]:
    """All processes below one."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:  # a run that has ended
        return []
    return [each for child in map(int, children) for each in (child, *below(child))]


def used(pids: list[int]) -> dict[int, float]:
    """Milliseconds of processor time of each process, and of its children that have ended."""
    found = {}
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a run that has ended
            stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            found[pid] = 1000 * sum(map(int, stat[11:15])) / os.sysconf("SC_CLK_TCK")
    return found


def since(before: dict[int, float]) -> float:
    """Milliseconds that the processes which are still there have used since."""
    return sum(now - before[pid] for pid, now in used(list(before)).items())


def processor(runs: int, turns: int) -> dict[str, Any]:
    """Milliseconds of processor time of a verification and of a fresh interpreter, in turns.

    Judge, zygote and children count; so does the process that starts a fresh interpreter.
    """
    figures: dict[str, Any] = {}
    with CheckVerifier(workers=1) as verifier:
        for kind, check in CHECKS.items():
            ours(verifier, check)
            rows = []
            for _ in range(turns):
                before = used([os.getpid()])
                for _ in range(runs):
                    fresh(kind)
                slow = since(before)
                before = used([os.getpid(), *below(os.getpid())])
                for _ in range(4 * runs):
                    ours(verifier, check)
                rows.append((slow / runs, since(before) / (4 * runs)))
            figures[kind] = {
                "fresh_ms": round(statistics.median(slow for slow, _ in rows), 2),
                "grv_ms": round(statistics.median(quick for _, quick in rows), 2),
                "times_less": round(statistics.median(s / q for s, q in rows), 2),
                "each_turn": [round(slow / quick, 2) for slow, quick in rows],
            }
    return figures


def one_run(worker: Worker) -> float:
    """Milliseconds from asking for a run to knowing how it ended."""
    started = time.perf_counter()
    order = {"mode": "program", "source": "print(7)", "seed": 0}
    with worker.run("candidate", RunLimits(), capture=True, first=order) as run:
        run.drain(10)
        run.wait(10)
    return 1000 * (time.perf_counter() - started)


def per_run(runs: int) -> dict[str, Any]:
    """Milliseconds of one run with and without the jail, in turns."""
    times: dict[str, list[float]] = {level.value: [] for level in Isolation}
    workers = [Worker(level) for level in Isolation]
    for _ in range(runs):
        for worker in workers:
            times[worker.isolation.value].append(one_run(worker))
    for worker in workers:
        worker.close()
    figures: dict[str, Any] = {
        level: {
            "median_ms": round(statistics.median(each), 2),
            "best_ms": round(min(each), 2),
        }
        for level, each in times.items()
    }
    gaps = [jail - bare for jail, bare in zip(times["jail"], times["unsafe"], strict=True)]
    figures["jail_itself_ms"] = round(statistics.median(gaps), 2)
    return figures


def megabytes(pid: int | None) -> float:
    """Memory of a process that is resident and its own."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("RssAnon:")[2].split()[0]) / 1024


def first_of(pid: int | None) -> int | None:
    """The zygote itself, where the process started waits for it outside its namespace."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    inner = children.read_text().split() if children.exists() else []
    return int(inner[0]) if inner else pid


def memory(runs: int) -> dict[str, Any]:
    """Memory of judge and zygote, at the start and at the end of many runs."""
    with Worker() as worker:
        for _ in range(min(200, runs)):
            one_run(worker)
        zygote = first_of(worker.pid)

        def now() -> dict[str, float]:
            descriptors = len(os.listdir(f"/proc/{os.getpid()}/fd"))
            pids = {"judge_mb": os.getpid(), "zygote_mb": zygote}
            sizes = {name: round(megabytes(pid), 2) for name, pid in pids.items()}
            return sizes | {"descriptors": descriptors}

        before = now()
        started = time.perf_counter()
        for _ in range(runs):
            one_run(worker)
        took = time.perf_counter() - started
        after = now()
    return {"runs": runs, "seconds": round(took, 1), "before": before, "after": after}


def option(name: str, default: int) -> int:
    return int(sys.argv[sys.argv.index(name) + 1]) if name in sys.argv else default


def sizes() -> Iterator[int]:
    yield from (1, 2, 4)


def main() -> None:
    quick = "--quick" in sys.argv
    turns, seconds = (1, 0.1) if quick else (5, 2.0)
    figures = {
        "processors": len(os.sched_getaffinity(0)),
        "against_fresh": [against_fresh(workers, turns, seconds) for workers in sizes()],
        "processor_time": processor(*((2, 1) if quick else (50, 5))),
        "per_run": per_run(5 if quick else 500),
        "memory": memory(option("--runs", 20 if quick else 10_000)),
    }
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
