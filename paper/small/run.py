"""The paper, small: all of its tables and figures, with the embedded model, on this machine.

    make paper                        40 problems, 128 candidates each
    make paper count=4 candidates=8   a short try

Whatever stops it, the same command continues it: what was generated, scored and verified is in the
ledgers of the folder.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from problems import arithmetic, functions

HERE = Path(__file__).resolve().parent
REPORT = HERE.parent / "report.toml"
SCORES = {"logprob": "logprob", "judge": f"{HERE / 'judge.py'}:judge"}
TOKENS = {"math": 24, "coding": 64}
STOPS = {"math": ["\n"], "coding": ["\n\n", "\ndef", "\nclass", "\nprint", "\n```"]}
# What is in place of the paper's logs. There is one generator here, so table 2 compares scores.
IN_PLACE = {
    "math-qwen2.5-math-7b.parquet": "math-logprob.csv",
    "coding-qwen2.5-coder-3b.parquet": "coding-logprob.csv",
    "math-qwen2.5-14b.parquet": "math-judge.csv",
    "math-deepseek-r1-distill-qwen-7b.parquet": "coding-judge.csv",
    "math, Qwen2.5-14B": "math, judge",
    "math, DeepSeek-R1-7B": "coding, judge",
    "Per-generator results. The ratio is relative to adaptive for the same generator.": (
        "Results by score. The ratio is relative to adaptive for the same score."
    ),
    "Per-generator results": "Results by score",
}


def main() -> None:
    """Collect four logs, and write the page with the tables and figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=40, help="problems, half of each kind")
    parser.add_argument("--candidates", type=int, default=128, help="candidates of each problem")
    parser.add_argument("--folder", type=Path, default=Path("paper-small"))
    parser.add_argument("--logs", action="store_true", help="collect the logs, and stop")
    asked = parser.parse_args()
    if not 2 <= asked.count <= 40 or asked.candidates < 1:
        parser.error("count must be from 2 to 40, candidates at least 1")
    asked.folder.mkdir(parents=True, exist_ok=True)
    kinds = {"math": arithmetic(asked.count // 2), "coding": functions(asked.count // 2)}
    for kind, problems in kinds.items():
        write_problems(asked.folder / f"{kind}.jsonl", problems)
        for name in SCORES:
            collect(asked.folder, kind, name, asked.candidates)
    if not asked.logs:
        report(asked.folder)


def write_problems(path: Path, problems: Sequence[dict[str, Any]]) -> None:
    """A file of problems."""
    path.write_text("".join(json.dumps(problem) + "\n" for problem in problems))


def collect(folder: Path, kind: str, name: str, candidates: int) -> None:
    """A log of one kind of problems, ranked by one score. Both scores see the same candidates."""
    started = time.monotonic()
    call: list[object] = [
        "collect",
        folder / f"{kind}.jsonl",
        "--generator",
        "embedded",
        "--seed",
        0,
    ]
    call += ["--temperature", 0.7, "--top-p", 0.95, "--max-tokens", TOKENS[kind]]
    for stop in STOPS[kind]:
        call += ["--stop", stop]
    call += ["-n", candidates, "--no-refute", "--timeout", 2]
    grv(*call, "--score", SCORES[name], "--out", folder / f"{kind}-{name}.csv")
    print(f"{kind}, {name}: {time.monotonic() - started:.0f} s", flush=True)


def report(folder: Path) -> None:
    """The tables and figures, by the paper's own job with these logs."""
    text = REPORT.read_text()
    for paper, here in IN_PLACE.items():
        if paper not in text:
            raise SystemExit(f"{REPORT} has no {paper!r}: change IN_PLACE")
        text = text.replace(paper, str(folder / here) if here.endswith(".csv") else here)
    job = folder / "report.toml"
    job.write_text(text)
    grv("report", "--job", job, "-o", folder / "paper.html", "--figures", folder / "figures")
    for number in range(1, 5):
        print((folder / "figures" / f"table-{number}.txt").read_text(), flush=True)


def grv(*arguments: object) -> None:
    """A command of grv; this script ends with its exit code if it fails."""
    call = [sys.executable, "-m", "grv", *map(str, arguments)]
    ran = subprocess.run(call, check=False)
    if ran.returncode:
        raise SystemExit(ran.returncode)


if __name__ == "__main__":
    main()
