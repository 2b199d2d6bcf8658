"""`--concurrency auto` beside every fixed number, on servers on loopback with hidden limits.

    python bench/concurrency.py [--quick] [--server NAME]...

Each server is a `grv.testing` fake of OpenAI. It refuses calls beyond its limit with status 429,
without saying how many it takes. A run solves the same problems, of four candidates each, through
`grv.solve_many_now` without a ledger on disk; the verifier is a function that takes no time. An
answer takes about `SECONDS`, with a spread of the logarithm of 0.3, the same for every run.
Figures: the elapsed time of auto over that of the best fixed number of the list, and the refused
part of all calls. Virtual time, without HTTP and without load:
`tests/runtime/test_adaptive_limit.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import grv
from grv.runtime.calls import Caller
from grv.testing.limits import ServerLimits
from grv.testing.servers import FakeOpenai

SECONDS = 0.5
EACH = 4  # candidates of a problem


@dataclass(frozen=True)
class Case:
    """A server, the number of calls to it, and the fixed numbers to compare with."""

    limits: Callable[[], dict[str, Any]]
    calls: int
    fixed: Sequence[int]


def _changing(answered: int) -> int:
    return 60 if answered < 800 else 15 if answered < 1200 else 40


CASES = {
    "at most 7": Case(lambda: {"at_once": 7}, 400, (4, 7, 16)),
    "at most 60": Case(lambda: {"at_once": 60}, 1600, (32, 60, 100)),
    "60, then 15, then 40": Case(lambda: {"at_once": _changing}, 2000, (15, 40, 60)),
    "12 at work, the rest waits": Case(lambda: {"works": 12}, 600, (12, 24)),
    "300 requests per minute": Case(lambda: {"requests": 300, "minute": 10.0}, 600, (16, 32)),
    "4,000 tokens per minute": Case(lambda: {"tokens": 4000, "minute": 10.0}, 800, (16, 32)),
}
QUICK = {"at most 7, few calls": Case(lambda: {"at_once": 7}, 120, (7,))}


def serve(case: Case) -> None:
    """Be the server: print the address; then, when there is a line to read, what was seen."""
    durations = random.Random(0)
    drawn = [durations.lognormvariate(-0.045, 0.3) * SECONDS for _ in range(4 * case.calls)]
    limits = ServerLimits(**case.limits(), seconds=lambda number: drawn[number % len(drawn)])
    made: dict[str, int] = {}

    def text(prompt: str, index: int) -> str:
        made[prompt] = made.get(prompt, 0) + 1
        return "right" if made[prompt] == EACH else f"wrong {made[prompt]}"

    with FakeOpenai(text, limits=limits, logprobs=False) as server:
        print(server.url, flush=True)
        sys.stdin.readline()
        seen = {"calls": limits.answered, "refused": limits.refused, "busiest": limits.busiest}
        print(json.dumps(seen), flush=True)


def run(name: str, case: Case, concurrency: int | str) -> dict[str, Any]:
    """Solve all problems once, with a server in a process of its own."""
    problems = [grv.Problem(f"p{i}", f"problem {i}") for i in range(case.calls // EACH)]
    caller = Caller(grv.runtime.Calls(concurrency=concurrency))  # type: ignore[arg-type]
    command = [sys.executable, __file__, "--serve", name]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as server:  # type: ignore[call-overload]
        url = server.stdout.readline().strip()
        generator = grv.generators.OpenAI("fake", base_url=url, logprobs=False, batch=1)
        started = time.monotonic()
        solutions = grv.solve_many_now(
            problems,
            generator=generator,
            scorer=lambda problem, text: 0.0,
            verifier=lambda problem, text: text == "right",
            policy="verify-all",
            budget=10**6,
            calls=caller,
        )
        solved = sum(solution.verified for solution in solutions)
        seconds = time.monotonic() - started
        seen = json.loads(server.communicate("end\n")[0])
    assert solved == len(problems), f"{solved} of {len(problems)} solved"
    share = seen["refused"] / (seen["refused"] + seen["calls"])
    return {
        "concurrency": concurrency,
        "seconds": round(seconds, 2),
        **seen,
        "refused_share": round(share, 4),
        "summary": caller.lanes.summary(),
    }


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--server", action="append", choices=sorted(CASES))
    parser.add_argument("--serve", choices=sorted({**CASES, **QUICK}))
    given = parser.parse_args()
    if given.serve:
        serve({**CASES, **QUICK}[given.serve])
        return
    cases = QUICK if given.quick else CASES
    rows = {}
    for name, case in cases.items():
        if given.server and name not in given.server:
            continue
        auto = run(name, case, "auto")
        fixed = [run(name, case, number) for number in case.fixed]
        best = min(fixed, key=lambda row: row["seconds"])
        rows[name] = {
            "of_the_best": round(auto["seconds"] / best["seconds"], 3),
            "refused_share": auto["refused_share"],
            "best": best["concurrency"],
            "auto": auto,
            "fixed": fixed,
        }
    load = os.getloadavg()[0]
    print(json.dumps({"load": round(load, 2), "servers": rows}, indent=2))


if __name__ == "__main__":
    main()
