"""Run the tests in two parts: side by side, then alone those whose result depends on time.

`make test` runs all but the soak tests. `tests/suite.py -m MARKS` runs others; further arguments go
to pytest. The second part runs also if a test of the first one fails. The last lines sum up both.

The order of the tests is random. With `CI` in the environment it is always the same, so that a run
that gates a landing can be repeated.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

NO_TESTS = 5  # the exit code of pytest if there is nothing to run
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_COUNT = re.compile(r"(\d+) (passed|failed|skipped|error|xfailed|xpassed|warning)s?\b")
_ENDED = re.compile(r"=* ?\d+ [a-z].* in [\d.]+s")


@dataclass(frozen=True)
class Part:
    """How pytest ended: its exit code, its counts, and its lines about tests that failed."""

    code: int
    counts: Counter[str]
    failures: tuple[str, ...]


def run(arguments: Sequence[str]) -> Part:
    """Run pytest. Its output is shown as it comes."""
    command = [sys.executable, "-m", "pytest", *arguments]
    command += ["--color=yes"] if sys.stdout.isatty() else []
    output = bytearray()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while part := os.read(process.stdout.fileno(), 1 << 16):
            sys.stdout.buffer.write(part)
            sys.stdout.buffer.flush()
            output += part
    return read(process.returncode, output.decode("utf-8", "replace"))


def read(code: int, output: str) -> Part:
    """Read what pytest printed."""
    lines = _COLOUR.sub("", output).splitlines()
    ends = [line for line in lines if _ENDED.match(line)]
    counts = Counter({word: int(number) for number, word in _COUNT.findall("".join(ends[-1:]))})
    failures = [line for line in lines if line.startswith(("FAILED ", "ERROR "))]
    return Part(code, counts, tuple(failures))


def summary(parts: Sequence[Part], seconds: float) -> str:
    """The tests that failed, and one line of counts, as pytest prints them."""
    counts = sum((part.counts for part in parts), Counter[str]())
    order = ("failed", "error", "passed", "skipped", "xfailed", "xpassed", "warning")
    said = [f"{counts[word]} {word}" for word in order if counts[word]]
    failures = [line for part in parts for line in part.failures]
    minutes, rest = divmod(round(seconds), 60)
    words = ", ".join(said) or "no tests"
    return "\n".join(["", *failures, f"==== {words} in {minutes} min {rest} s ===="])


def workers() -> int:
    """More than there are processors: many tests wait for a process or a server."""
    return len(os.sched_getaffinity(0)) * 3 // 2


def main() -> int:
    """Run both parts; 1 if a test failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-m", dest="marks", default="not soak", help="an expression of marks")
    options, others = parser.parse_known_args()
    beside = ["-n", str(workers()), "--dist", "loadgroup", "-m", f"({options.marks}) and not alone"]
    alone = ["-n", "0", "-m", f"({options.marks}) and alone"]
    if os.environ.get("CI") and "no:randomly" not in others:
        others = ["--randomly-seed=1", *others]
    started = time.monotonic()
    parts = [run([*beside, *others]), run([*alone, *others])]
    print(summary(parts, time.monotonic() - started), flush=True)
    codes = {part.code for part in parts}
    return 0 if codes <= {0, NO_TESTS} and 0 in codes else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
