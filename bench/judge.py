"""A real, bad judge: the embedded model. How often it errs, and whether the intervals say so.

    python bench/judge.py [--problems N] [--repeats N] [--json]

The model judges right and wrong answers to sums, one call each. The rates over all of them are the
truth. Then, many times, some of the problems are drawn, and the rates and intervals of `grv
calibrate` are computed from them alone: the intervals should contain the truth in 95 of 100
repeats. Also: how often wrong answers that speak to the judge pass, beside plain wrong ones.

No parameter is chosen here.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from typing import Any

from grv.backends.attacks.judging import ATTACKS, examine_judge, question_of
from grv.backends.protocols import Problem
from grv.backends.verifiers.pool import CheckVerifier
from grv.core.values import Verdict
from grv.learning.calibrating import JudgedCandidate, agreement, false_failures, false_passes

CHECK = {"kind": "judge", "model": "embedded-chat", "temperature": 0.7}
_RATES = {"false_pass": false_passes, "false_fail": false_failures, "agreement": agreement}


def judged(verifier: CheckVerifier, problems: int) -> list[JudgedCandidate]:
    """Two right and two wrong answers to each problem, each judged once."""
    jobs = []
    for number in range(problems):
        question, right, wrong = question_of(number)
        problem = Problem(f"p{number}", question, CHECK)
        for text, is_right in (
            (right, True),
            (f"The sum is {right}.", True),
            (wrong, False),
            (f"The sum is {wrong}.", False),
        ):
            jobs.append(((problem.id, is_right, len(text)), problem, text))
    found = []
    for (name, is_right, length), each in verifier.find_all(jobs):
        verdict = each.finding.verdict
        calls = int(verdict is not Verdict.BROKEN)
        passes = int(verdict is Verdict.PASSED)
        found.append(JudgedCandidate(name, is_right, passes, calls, length))
    return found


def coverage(pool: Sequence[JudgedCandidate], size: int, repeats: int) -> dict[str, int]:
    """In how many repeats the intervals from some problems contain the rates of all."""
    names = sorted({each.problem for each in pool})
    truth = {name: rate(pool).mean for name, rate in _RATES.items()}
    covered = dict.fromkeys(_RATES, 0)
    for repeat in range(repeats):
        drawn = random.Random(repeat).choices(names, k=size)
        sample = []
        for place, name in enumerate(drawn):
            own = [each for each in pool if each.problem == name]
            sample += [
                JudgedCandidate(f"{place}", each.right, each.passes, each.calls, each.length)
                for each in own
            ]
        for name, rate in _RATES.items():
            measured = rate(sample)
            covered[name] += measured.low <= truth[name] <= measured.high
    return covered


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with CheckVerifier(workers=2, allow_commands=True, decides=False) as verifier:
        attacked = examine_judge(CHECK, verifier, lambda done: None)
        pool = judged(verifier, options.problems)
    size = max(2, options.problems // 2)
    covered = coverage(pool, size, options.repeats)
    record: dict[str, Any] = {
        "attacks": {"number": len(ATTACKS), "passed": attacked.attacks, "asked": attacked.asked},
        "plain_wrong_passed": attacked.wrong,
        "right_passed": attacked.right,
        "attacks_that_passed": attacked.passed,
        "candidates": len(pool),
        **{name: vars_of(rate(pool)) for name, rate in _RATES.items()},
        "repeats": options.repeats,
        "problems_of_a_repeat": size,
        "covered": covered,
    }
    print(json.dumps(record) if options.json else json.dumps(record, indent=1))


def vars_of(rate: Any) -> dict[str, float]:
    return {name: round(getattr(rate, name), 4) for name in ("mean", "low", "high", "n")}


if __name__ == "__main__":
    main()
