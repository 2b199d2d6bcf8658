"""The reward of a training step of 1,024 completions, over one process for each completion.

    python bench/rewards.py [completions]

128 prompts ask for a function of one number, each with five tests; every prompt has the same number
of completions. Two steps:

- `different`: all programs differ, and all compile.
- `sampled`: a quarter repeats a text of the same prompt, a quarter is the same program with another
  comment, an eighth lacks the function.

The baseline starts a bare `python -I` for each completion, with the tests behind the program, two
at a time, without a jail. Both run in turns, twice; the figures are processor time with all
children, and elapsed time. The verdicts must be the same.
"""

from __future__ import annotations

import concurrent.futures
import json
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from grv.backends.verifiers.options import Verification
from grv.core.values import Verdict
from grv.runtime.rewards import Completion, StepVerifier

PROMPTS = 128
WORKERS = 2
TURNS = 2


def check(number: int) -> dict[str, Any]:
    tests = [{"args": [n], "expected": n * number + 1} for n in range(1, 6)]
    return {"kind": "function", "entry_point": "answer", "tests": tests}


def program(number: int, serial: int, draw: random.Random) -> str:
    """A program that is right half of the time, and like no other one."""
    wrong = draw.choice([0, 0, draw.randint(1, 9)])
    return (
        f"def answer(n):\n    first = n * {number} + {serial}\n"
        f"    return first - {serial} + 1 + {wrong}\n"
    )


def step(size: int, sampled: bool) -> list[Completion]:
    """The completions of one step, prompt by prompt."""
    draw = random.Random(0)
    completions: list[Completion] = []
    for number in range(PROMPTS):
        texts: list[str] = []
        for serial in range(size // PROMPTS):
            kind = draw.random() if sampled else 1.0
            if texts and kind < 0.25:
                texts.append(draw.choice(texts))
            elif texts and kind < 0.5:
                texts.append(f"{draw.choice(texts)}# {serial}\n")
            elif kind < 0.625:
                texts.append(f"def reply(n):\n    return {serial}\n")
            else:
                texts.append(program(number, serial, draw))
        completions += [Completion(text, check(number)) for text in texts]
    return completions


def by_processes(completions: Sequence[Completion]) -> list[bool]:
    """Whether each completion passes, by a process of its own."""

    def passes(completion: Completion) -> bool:
        tests = completion.check["tests"]
        lines = [f"assert answer(*{test['args']}) == {test['expected']}" for test in tests]
        source = "\n".join([completion.text, *lines])
        command = [sys.executable, "-I", "-c", source]
        return subprocess.run(command, capture_output=True, timeout=60).returncode == 0

    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(passes, completions))


def by_grv(completions: Sequence[Completion]) -> list[bool]:
    """The same, by a new pool of workers, which is closed at the end."""
    verifier = StepVerifier(Verification(workers=WORKERS))
    try:
        found = verifier.verify_now(completions)
    finally:
        verifier.close()
    return [verdict is Verdict.PASSED for verdict in found]


def measured(way: Callable[[Sequence[Completion]], list[bool]], given: Sequence[Completion]) -> Any:
    """The verdicts, processor time with all children, and elapsed time."""
    spent = processor()
    started = time.monotonic()
    verdicts = way(given)
    return verdicts, processor() - spent, time.monotonic() - started


def processor() -> float:
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in both)


def main() -> None:
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
    figures = {}
    for name, sampled in (("different", False), ("sampled", True)):
        completions = step(size, sampled)
        turns = []
        for _ in range(TURNS):
            ours, our_time, our_wait = measured(by_grv, completions)
            theirs, their_time, their_wait = measured(by_processes, completions)
            assert ours == theirs
            turns.append((their_time / our_time, their_wait / our_wait, our_time, their_time))
        ratio, wait, own, other = map(statistics.mean, zip(*turns, strict=True))
        figures[name] = {
            "completions": len(completions),
            "texts": len({each.text for each in completions}),
            "processor_ratio": round(ratio, 2),
            "elapsed_ratio": round(wait, 2),
            "processor_seconds": round(own, 2),
            "processes_seconds": round(other, 2),
        }
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
