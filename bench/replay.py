"""How much faster the comparison is than a straightforward one, and how it scales.

    python bench/replay.py [--quick]

The first part is one task of the paper: 83 problems, 512 candidates, 10 orders, costs 1 to 1, 10,
20 and 30, all rows. grv is timed as its user runs it, as a command with files, from start to exit,
with compiled modules, as an installer leaves them.
The straightforward implementation (`straightforward.py`) is timed in this process, at one price
list; it does the same work again for each, so four price lists take four times that. Both must
agree in every figure.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from grv.testing.worlds import population
from straightforward import Problem, figures

GRV = Path(sys.executable).with_name("grv")


def main() -> None:
    quick = "--quick" in sys.argv
    # The scale first: a child counts the memory that its parent had when it was started.
    sizes = scale(quick)
    print(json.dumps({"paper": paper_task(quick), "scale": sizes}, indent=1))


def paper_task(quick: bool = False) -> dict[str, Any]:
    """One task of the paper, by both."""
    problems, candidates, orders = (6, 32, 10) if quick else (83, 512, 10)
    prices = (1, 10, 20, 30)
    with tempfile.TemporaryDirectory() as folder:
        logged = _write_published(Path(folder), problems, candidates)
        command = [GRV, "compare", f"{folder}/generations.jsonl"]
        command += ["--rewards", f"{folder}/rewards.jsonl", "--score", "r_score"]
        command += ["--order-scheme", "paper", "--width", "all", "--json", f"{folder}/out.json"]
        command += [word for price in prices for word in ("--costs", f"1,{price}")]
        compiled = {"PYTHONPYCACHEPREFIX": f"{folder}/compiled", "PYTHONDONTWRITEBYTECODE": ""}
        _timed(command, compiled)  # compiles
        times = [_timed(command, compiled) for _ in range(1 if quick else 3)]
        seconds = min(elapsed for elapsed, _ in times)
        rows = json.loads(Path(folder, "out.json").read_text())["rows"]
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    start = time.perf_counter()
    expected = figures(logged, 1.0, 10.0, orders)
    slow = len(prices) * (time.perf_counter() - start)
    agree(rows, expected)
    return {
        "problems": problems,
        "candidates": candidates,
        "orders": orders,
        "grv_seconds": round(seconds, 2),
        "grv_processor_seconds": round(min(processor for _, processor in times), 2),
        "grv_megabytes": round(memory),
        "straightforward_seconds": round(slow, 1),
        "times_faster": round(slow / seconds),
    }


def agree(rows: list[dict[str, Any]], expected: dict[str, Any]) -> None:
    """Both must have found the same figures."""
    for row in rows:
        if row["costs"]["verify"] != 10 or row["policy"] not in expected:
            continue
        wanted = expected[row["policy"]]
        got = (row["m"], row["k"]) if row["policy"] == "uniform-matched" else row["cost"]
        if not np.allclose(got, wanted, rtol=1e-12):
            raise SystemExit(f"{row['policy']}: grv says {got}, straightforward says {wanted}")


def scale(quick: bool = False) -> list[dict[str, Any]]:
    """Seconds and memory of the default rows, as problems and orders grow."""
    sizes = [(250, 1000, 25), (500, 1000, 25), (1000, 1000, 25), (1000, 1000, 100)]
    found = []
    for problems, candidates, orders in [(10, 50, 2)] if quick else sizes:
        call = [sys.executable, __file__, "--one", *map(str, (problems, candidates, orders))]
        found.append(json.loads(subprocess.run(call, check=True, capture_output=True).stdout))
    return found


def one_size(problems: int, candidates: int, orders: int) -> dict[str, Any]:
    """The default rows on a log of this size, in a process of their own."""
    import grv

    log = population("coding", problems=problems, candidates=candidates)
    start = time.perf_counter()
    grv.compare(grv.comparing.DEFAULT_ROWS, log, orders=orders)
    return {
        "problems": problems,
        "candidates": candidates,
        "orders": orders,
        "seconds": round(time.perf_counter() - start, 1),
        "megabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def _write_published(folder: Path, problems: int, candidates: int) -> list[Problem]:
    """Files as the published code writes them; no two pass rates are equal."""
    generator = np.random.default_rng(5)
    passing = generator.choice(np.arange(1, candidates // 2), size=problems, replace=False)
    logged = []
    with (
        (folder / "generations.jsonl").open("w") as generations,
        (folder / "rewards.jsonl").open("w") as rewards,
    ):
        for at, count in enumerate(passing):
            passed = np.arange(candidates) < count
            scores = generator.normal(size=candidates) + passed * generator.normal(1.2, 0.8)
            shuffled = generator.permutation(candidates)
            passed = passed[shuffled]
            scores = scores[shuffled]
            name = f"problem-{at:03}"
            samples = [{"correct": bool(label)} for label in passed]
            generations.write(json.dumps({"id": name, "samples": samples}) + "\n")
            entries = [{"idx": i, "r_score": float(score)} for i, score in enumerate(scores)]
            rewards.write(json.dumps({"id": name, "rewards": entries}) + "\n")
            logged.append((scores, passed))
    return logged


def _timed(command: list[Any], environment: dict[str, str]) -> tuple[float, float]:
    """Seconds that a command takes, and its processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    changed = {**os.environ, **environment}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=changed)
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    if "--one" in sys.argv:
        print(json.dumps(one_size(*map(int, sys.argv[2:]))))
    else:
        main()
