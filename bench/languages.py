"""What the second jail costs: programs in C++ and JavaScript, against fresh unprotected processes.

    python bench/languages.py [--quick]

Both ways compile a program with the same command, and then start a new process for each test, in
the same environment: node takes twice the time if a variable names more certificates. The other way
has nothing between these processes and the machine. Each program is different, so that no
verdict is remembered. The figures are processor time, of the judge, the zygote and all that they
start, in turns; `each_turn` has the ratio of each turn.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from itertools import count
from typing import Any

from grv.backends.protocols import Problem
from grv.backends.sandbox.tool_worker import ENVIRONMENT
from grv.backends.verifiers.languages.toolchains import BuildPlan, toolchain
from grv.backends.verifiers.pool import CheckVerifier
from grv.core.values import Verdict
from sandbox import below, since, used

PROGRAMS = {
    "cpp": """
#include <iostream>
#include <vector>
int main() {
    long n, sum = @NUMBER@ * 0;
    std::cin >> n;
    std::vector<long> all(n);
    for (auto& x : all) { std::cin >> x; sum += x; }
    std::cout << sum << std::endl;
}
""",
    "javascript": """
const [n, ...all] = require('fs').readFileSync(0, 'utf8').split(/\\s+/).map(Number);
console.log(all.slice(0, n).reduce((a, b) => a + b, @NUMBER@ * 0));
""",
}
MEMORY_MB = 1024
numbers = count()


def tests(amount: int) -> list[dict[str, str]]:
    found = []
    for size in range(1, amount + 1):
        values = range(size, 20 * size)
        text = f"{len(values)} {' '.join(map(str, values))}\n"
        found.append({"input": text, "output": f"{sum(values)}\n"})
    return found


def program(language: str) -> str:
    return PROGRAMS[language].replace("@NUMBER@", str(next(numbers)))


def ours(verifier: CheckVerifier, language: str, given: list[dict[str, str]]) -> None:
    check = {"kind": "run", "language": language, "tests": given}
    finding = verifier.find(Problem("p", check=check), program(language))
    assert finding.verdict is Verdict.PASSED, finding


def fresh(language: str, given: list[dict[str, str]]) -> None:
    """The same commands without a jail, in a folder of its own."""
    source = program(language)
    plan: BuildPlan = toolchain(language).plan(source, MEMORY_MB)
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, plan.source), "w") as file:
            file.write(source)
        for step in plan.build:
            argv = [part.replace("{built}", folder) for part in step.argv]
            subprocess.run(argv, cwd=folder, check=True, env=ENVIRONMENT | dict(step.environment))
        argv = [part.replace("{built}", folder) for part in plan.run.argv]
        environment = ENVIRONMENT | dict(plan.run.environment)
        for test in given:
            done = subprocess.run(
                argv,
                input=test["input"],
                capture_output=True,
                text=True,
                check=True,
                env=environment,
            )
            assert done.stdout.split() == test["output"].split()


def measured(language: str, amount: int, runs: int, turns: int) -> dict[str, Any]:
    """Milliseconds of processor time for a program with some tests, both ways in turns."""
    given = tests(amount)
    rows = []
    with CheckVerifier(workers=1) as verifier:
        ours(verifier, language, given)
        fresh(language, given)
        for _ in range(turns):
            before = used([os.getpid()])
            for _ in range(runs):
                fresh(language, given)
            bare = since(before)
            before = used([os.getpid(), *below(os.getpid())])
            for _ in range(runs):
                ours(verifier, language, given)
            rows.append((bare / runs, since(before) / runs))
    return {
        "tests": amount,
        "fresh_ms": round(statistics.median(bare for bare, _ in rows), 1),
        "grv_ms": round(statistics.median(jailed for _, jailed in rows), 1),
        "times_as_much": round(statistics.median(jailed / bare for bare, jailed in rows), 2),
        "each_turn": [round(jailed / bare, 2) for bare, jailed in rows],
    }


def main() -> None:
    runs, turns = (1, 1) if "--quick" in sys.argv else (3, 5)
    figures = {
        language: [measured(language, amount, runs, turns) for amount in (1, 20)]
        for language in PROGRAMS
    }
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
