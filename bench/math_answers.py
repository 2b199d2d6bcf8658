"""Judges of mathematical answers on the same pairs: grv, Math-Verify and inspect_ai's `math`.

    python bench/math_answers.py [--each N] [--pairs FILE] [--environment FOLDER]

The two others are installed by this script, into an environment of their own; it stays in FOLDER if
that is given. The pairs are those that the tests write by hand and make by machine, or those of a
file with a line `{"family", "reference", "text", "right"}` for each. Of each family the table has
the wrong answers that a judge accepts and the right ones that it refuses. Processor time is in
milliseconds per pair, after a first pair that loads modules. A judge that needs more than ten
seconds for a pair is stopped, and has not passed it.
"""

from __future__ import annotations

import argparse
import json
import select
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections import defaultdict
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

from grv.backends.verifiers.math.check import MathCheck  # noqa: E402
from grv.core.errors import UsageError  # noqa: E402
from grv.core.values import Verdict  # noqa: E402
from support.math_bombs import BOMBS, REPEATED  # noqa: E402
from support.math_pairs import Pair, pairs  # noqa: E402

OTHERS = {
    "Math-Verify": ["math-verify", "antlr4-python3-runtime==4.13.2"],
    "inspect_ai": ["inspect-ai", "latex2sympy2-extended==1.11.0", "antlr4-python3-runtime==4.13.2"],
}
PATIENCE = 10.0  # seconds for one pair
Verdicts = list[tuple[bool, float]]  # whether a pair passed, and the milliseconds that it took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--each", type=int, default=40, help="pairs of each family by machine")
    parser.add_argument("--pairs", type=Path, help="judge the pairs of this file instead")
    parser.add_argument("--environment", type=Path, help="keep the environment there")
    given = parser.parse_args()
    some = [*written(), *pairs(seed=5, each=given.each)]
    if given.pairs is not None:
        rows = map(json.loads, given.pairs.read_text(encoding="utf-8").splitlines())
        some = [Pair(row["family"], row["reference"], row["text"], row["right"]) for row in rows]
    judges: dict[str, Verdicts] = {"grv": [own(pair) for pair in [some[0], *some]][1:]}
    with tempfile.TemporaryDirectory() as folder:
        python = environment(given.environment or Path(folder) / "others")
        for name in OTHERS:
            judges[name] = other(python, name, some)
    found = {"pairs": len(some), **figures(some, judges), "hostile": hostile()}
    print(json.dumps(found, indent=1))


def written() -> list[Pair]:
    """The pairs that were written by hand."""
    path = HERE.parent / "tests" / "assets" / "math_written_pairs.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [
        Pair(f"by hand: {row['family']}", row["answer"], row["text"], row["right"]) for row in rows
    ]


def own(pair: Pair) -> tuple[bool, float]:
    """The verdict of grv."""
    started = time.process_time()
    try:
        passed = MathCheck(pair.reference).compare(pair.text).verdict is Verdict.PASSED
    except UsageError:
        passed = False
    return passed, 1000 * (time.process_time() - started)


def hostile() -> dict[str, Any]:
    """The most milliseconds that grv takes for a bomb, and for texts of growing length."""
    bombs = [
        own(Pair("bombs", reference, rf"So \boxed{{{bomb}}}.", False))[1]
        for bomb in BOMBS
        for reference in ("5", "x^2+1", f"0+{bomb}", f"x>{bomb}")
    ]
    lengths = {}
    for length in (10_000, 100_000, 1_000_000):
        texts = [
            place.format(piece * (length // len(piece)))
            for piece in REPEATED
            for place in ("{}", r"\boxed{{{}}}", r"{}\boxed{{5}}", r"\boxed{{5}}{}")
        ]
        lengths[length] = round(max(own(Pair("", "5", text, False))[1] for text in texts), 1)
    return {"bombs_ms_most": round(max(bombs), 1), "texts_ms_most_by_length": lengths}


def environment(folder: Path) -> Path:
    """The interpreter of an environment that has the other judges."""
    python = folder / "bin" / "python"
    if not python.exists():
        print(f"installing into {folder} ...", file=sys.stderr, flush=True)
        venv.create(folder, with_pip=True)
        packages = sorted({package for some in OTHERS.values() for package in some})
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
    return python


def other(python: Path, name: str, some: list[Pair]) -> Verdicts:
    """The verdicts of another judge, from a process in its own environment."""
    print(f"{name} ...", file=sys.stderr, flush=True)
    verdicts: Verdicts = []
    process: subprocess.Popen[str] | None = None
    for pair in some:
        if process is None:
            process = _started(python, name, some[0])
        answer = _asked(process, pair, PATIENCE)
        verdicts.append(answer or (False, 1000 * PATIENCE))
        if answer is None:
            process.kill()
            process.wait()
            process = None
    if process is not None:
        process.communicate()
    return verdicts


def _started(python: Path, name: str, first: Pair) -> subprocess.Popen[str]:
    """A process with the judge, which has loaded its modules."""
    script = str(HERE / "math_answers_of_others.py")
    process = subprocess.Popen(
        [str(python), script, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    _asked(process, first, 120)
    return process


def _asked(
    process: subprocess.Popen[str], pair: Pair, patience: float
) -> tuple[bool, float] | None:
    """The verdict of the process on a pair, and its milliseconds; None if it takes too long."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps([pair.reference, pair.text]) + "\n")
    process.stdin.flush()
    ready, _, _ = select.select([process.stdout], [], [], patience)
    line = process.stdout.readline() if ready else ""
    if not line:
        return None
    passed, taken = json.loads(line)
    return bool(passed), float(taken)


def figures(some: list[Pair], judges: dict[str, Verdicts]) -> dict[str, Any]:
    """Wrong accepted and right refused by family and in all, and the time."""
    families: dict[str, dict[str, Any]] = defaultdict(lambda: {"wrong": 0, "right": 0})
    for pair in some:
        families[pair.family]["right" if pair.right else "wrong"] += 1
    totals: dict[str, Any] = {}
    for name, verdicts in judges.items():
        accepted = refused = 0
        for pair, (passed, _) in zip(some, verdicts, strict=True):
            counts = families[pair.family].setdefault(name, [0, 0])
            counts[0] += passed and not pair.right
            counts[1] += pair.right and not passed
            accepted += passed and not pair.right
            refused += pair.right and not passed
        times = [taken for _, taken in verdicts]
        totals[name] = {
            "wrong_accepted": accepted,
            "right_refused": refused,
            "ms_median": round(statistics.median(times), 2),
            "ms_most": round(max(times), 1),
        }
    wrong = sum(not pair.right for pair in some)
    return {"wrong": wrong, "right": len(some) - wrong, "all": totals, "families": families}


if __name__ == "__main__":
    main()
