"""What serving costs beside `grv solve`: processor time per candidate.

    python bench/serve.py [--quick]

Both get the same work in the same run: requests of 8 candidates and one verification each, from a
model on loopback that answers at once, with a ledger on disk and 64 in flight. `grv solve` reads
them from a file; `grv serve` gets each over HTTP and streams its answer. Processor time is that of
the process and its workers after its start, so clients and the model do not count.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from live import server

IN_FLIGHT = 64
CANDIDATES = 8  # per request
CHECK = {"kind": "math", "answer": "42"}
OPTIONS = ["--costs", "1,2", "--budget", "100", "--policy", f"fixed({CANDIDATES}, 1)"]
OPTIONS += ["--concurrency", str(IN_FLIGHT), "--generator", "openai:m"]
_TICK = os.sysconf("SC_CLK_TCK")


def call(*words: object) -> list[str]:
    return [sys.executable, "-m", "grv", *map(str, words)]


def prompts(number: int, kind: str) -> list[str]:
    return [f"What is {at} + {at}? ({kind})" for at in range(number)]


def processor(pid: int) -> float:
    """Seconds of processor time of a process, with its live children and those that ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own = sum(map(int, fields[11:15])) / _TICK
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return own + sum(processor(int(each)) for each in children)


def solved(folder: Path, url: str, number: int) -> float:
    """Seconds of processor time that `grv solve` takes for these problems, with its start."""
    problems = folder / f"problems{number}"
    out = folder / f"out{number}"
    problems.write_text(
        "".join(
            json.dumps({"problem": f"p{at}", "prompt": prompt, "check": CHECK}) + "\n"
            for at, prompt in enumerate(prompts(number, "solve"))
        )
    )
    before = os.times()
    words = ["solve", problems, "--base-url", url, "--out", out, *OPTIONS]
    subprocess.run(call(*words), stdout=subprocess.DEVNULL, check=False)
    after = os.times()
    used = after.children_user + after.children_system
    return used - before.children_user - before.children_system


@contextmanager
def serving(folder: Path, url: str) -> Iterator[tuple[int, str]]:
    """A server: its process id and its address."""
    words = ["serve", "--base-url", url, "--ledger", folder / "served", "--port", 0, *OPTIONS]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(call(*words), stdout=subprocess.PIPE, stderr=log, text=True)
    assert process.stdout is not None
    with process:
        yield process.pid, process.stdout.readline().split()[0]
        process.send_signal(signal.SIGTERM)


async def asked(url: str, questions: list[str]) -> float:
    """Seconds that all requests take, streamed, several at once."""
    import openai

    todo = iter(questions)
    async with openai.AsyncOpenAI(api_key="none", base_url=url, max_retries=0) as client:

        async def loop() -> None:
            for question in todo:
                stream = await client.chat.completions.create(
                    model="m",
                    messages=[{"role": "user", "content": question}],
                    stream=True,
                    extra_body={"grv": {"check": CHECK, "require": "best"}},
                )
                async for _ in stream:
                    pass

        started = time.perf_counter()
        await asyncio.gather(*(loop() for _ in range(IN_FLIGHT)))
        return time.perf_counter() - started


def main() -> None:
    number = 64 if "--quick" in sys.argv else 1500
    few = number // 8
    with tempfile.TemporaryDirectory() as name, server(0) as url:
        folder = Path(name)
        used = solved(folder, url, number) - solved(folder, url, few)  # without the start
        solve_ms = 1000 * used / ((number - few) * CANDIDATES)
        with serving(folder, url) as (pid, address):
            asyncio.run(asked(address, prompts(few, "first")))
            before = processor(pid)
            seconds = asyncio.run(asked(address, prompts(number, "serve")))
            serve_ms = 1000 * (processor(pid) - before) / (number * CANDIDATES)
    figures: dict[str, Any] = {
        "requests": number,
        "candidates": number * CANDIDATES,
        "in_flight": IN_FLIGHT,
        "solve_ms": round(solve_ms, 3),
        "serve_ms": round(serve_ms, 3),
        "of_solve": round(serve_ms / max(solve_ms, 1e-9), 2),
        "serve_candidates_per_second": round(number * CANDIDATES / seconds),
    }
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
