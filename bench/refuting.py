"""What it saves to refute candidates, to compare them by keys, and to run deadly tests first.

    python bench/refuting.py --data=FOLDER [--quick]

FOLDER has `humaneval_programs.jsonl.gz` (prompts, tests, completions, labels) and
`humaneval_codegen16b.parquet` (scores of the same completions). Four measurements:

- `refuted`: how many completions are refuted, why, and whether each really fails: by its label, and
  by a run in the sandbox.
- `saved`: verifications and cost of policies with and without refutation, on the same orders, as
  shares saved. The means are over all problems that can be solved; one entry per score and ratio.
- `keys`: how many different keys the completions have; verifications and cost of policies with and
  without keys, refuted completions left out, as shares saved.
- `order_of_tests`: tests run, and seconds, to verify the same candidates if the test that failed
  most candidates runs first, over those in the given order; in turns, one worker. The assertions
  become tests of a function, and tests of a program that reads and prints.
"""

from __future__ import annotations

import ast
import dataclasses
import gzip
import json
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from grv.backends.protocols import Problem
from grv.backends.sandbox.limits import RunLimits
from grv.backends.verifiers.checks import parse_check
from grv.backends.verifiers.programs.checks import ProgramCheck
from grv.backends.verifiers.suite import TestOrder
from grv.backends.verifiers.worker_pair import WorkerPair
from grv.comparing.compare import compare
from grv.core.values import Costs, Verdict
from grv.logs.log import Log

POLICIES = ("verify-all", "adaptive", "balanced", "varied")
RATIOS = (10, 30)
LIMITS = RunLimits(seconds=2.0)
DRIVER = """

import sys as _sys
print(repr({name}(*eval(_sys.stdin.read()))))
"""
Record = dict[str, Any]


def records(folder: Path) -> list[Record]:
    with gzip.open(folder / "humaneval_programs.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def check_of(record: Record) -> ProgramCheck:
    fields = {name: record[name] for name in ("entry_point", "test", "prompt")}
    how = parse_check(Problem(record["problem"], check={"kind": "asserts", **fields}), LIMITS).how
    assert isinstance(how, ProgramCheck)
    return how


def refuted_of(all_records: Sequence[Record]) -> tuple[dict[str, list[bool]], Record]:
    """Which completions are refuted; and the figures."""
    flags: dict[str, list[bool]] = {}
    reasons = Counter[str]()
    verdicts = Counter[str]()
    wrong = 0
    seconds = 0.0
    pair = WorkerPair()
    for record in all_records:
        how = check_of(record)
        found = []
        for text, passed in zip(record["completions"], record["passed"], strict=True):
            started = time.process_time()
            reason = how.refutation(text)
            seconds += time.process_time() - started
            found.append(reason is not None)
            if reason is not None:
                reasons[reason.partition(":")[0]] += 1
                wrong += bool(passed)
                verdicts[how.run(how.program(text), pair, 0).verdict.value] += 1
        flags[record["problem"]] = found
    pair.close()
    total = sum(map(len, flags.values()))
    return flags, {
        "candidates": total,
        "failed": total - sum(sum(map(bool, record["passed"])) for record in all_records),
        "refuted": sum(reasons.values()),
        "reasons": dict(reasons),
        "refuted_but_passed_by_label": wrong,
        "verdicts_in_the_sandbox": dict(verdicts),
        "milliseconds_per_candidate": round(1000 * seconds / total, 3),
    }


def saved(folder: Path, flags: dict[str, list[bool]], orders: int) -> list[Record]:
    """Verifications and cost that refutation saves, per score, ratio, use of keys and policy."""
    rows = []
    for score in ("score_codet", "score_text_lr", "score_neglen"):
        whole = Log.load(folder / "humaneval_codegen16b.parquet", score=score)
        with_ = []
        without = []
        for problem in whole.problems:
            if problem.id in flags:
                mask = np.array(flags[problem.id], dtype=np.bool_)
                without.append(problem)
                with_.append(dataclasses.replace(problem, refuted=mask))
        for keys in (False, True):
            both = [
                compare(
                    POLICIES,
                    dataclasses.replace(whole, problems=tuple(problems)),
                    [Costs(1, ratio) for ratio in RATIOS],
                    orders=orders,
                    keys=keys,
                )
                for problems in (without, with_)
            ]
            for before, after in zip(both[0].rows, both[1].rows, strict=True):
                rows.append(
                    {
                        **{"score": score, "keys": keys, "ratio": before.costs.ratio},
                        **{"policy": before.policy, "solved": round(after.solved, 4)},
                        "verified": [round(before.verified, 2), round(after.verified, 2)],
                        "verifications_saved": round(1 - after.verified / before.verified, 4),
                        "cost_saved": round(1 - after.cost / before.cost, 4),
                    }
                )
    return rows


def keys_of(all_records: Sequence[Record], flags: dict[str, list[bool]]) -> dict[str, list[str]]:
    """The keys of all completions, by problem; "" if one is refuted, or has both labels."""
    keys: dict[str, list[str]] = {}
    for record in all_records:
        how = check_of(record)
        labels = defaultdict[str, set[bool]](set)
        found = [how.key(text) for text in record["completions"]]
        for key, passed in zip(found, record["passed"], strict=True):
            labels[key].add(bool(passed))
        keys[record["problem"]] = [
            "" if refuted or len(labels[key]) > 1 else key
            for key, refuted in zip(found, flags[record["problem"]], strict=True)
        ]
    return keys


def saved_by_keys(
    folder: Path, flags: dict[str, list[bool]], keys: dict[str, list[str]], orders: int
) -> Record:
    """What keys save, per score, ratio and policy."""
    rows = []
    for score in ("score_codet", "score_text_lr", "score_neglen"):
        whole = Log.load(folder / "humaneval_codegen16b.parquet", score=score)
        problems = []
        for problem in whole.problems:
            if problem.id in keys:
                numbers = {key: number for number, key in enumerate(sorted({*keys[problem.id]}))}
                codes = [numbers[key] if key else -1 for key in keys[problem.id]]
                mask = np.array(flags[problem.id], dtype=np.bool_)
                coded = np.array(codes, dtype=np.int32)
                problems.append(dataclasses.replace(problem, keys=coded, refuted=mask))
        log = dataclasses.replace(whole, problems=tuple(problems))
        costs = [Costs(1, ratio) for ratio in RATIOS]
        both = [compare(POLICIES, log, costs, orders=orders, keys=use) for use in (False, True)]
        for before, after in zip(both[0].rows, both[1].rows, strict=True):
            rows.append(
                {
                    **{"score": score, "ratio": before.costs.ratio, "policy": before.policy},
                    "verified": [round(before.verified, 2), round(after.verified, 2)],
                    "cost": [round(before.cost, 2), round(after.cost, 2)],
                    "verifications_saved": round(1 - after.verified / before.verified, 4),
                    "cost_saved": round(1 - after.cost / before.cost, 4),
                }
            )
    different = sum(len({*each} - {""}) for each in keys.values())
    return {"different": different, "saved": rows}


def tests_of(record: Record) -> list[tuple[list[Any], Any]]:
    """The assertions `candidate(...) == value` of a test, as arguments and values."""
    found = []
    for node in ast.walk(ast.parse(record["test"])):
        match node:
            case ast.Assert(
                test=ast.Compare(
                    left=ast.Call(func=ast.Name(id="candidate"), args=args, keywords=[]),
                    ops=[ast.Eq()],
                    comparators=[value],
                )
            ):
                try:
                    given = [ast.literal_eval(arg) for arg in args]
                    found.append((given, ast.literal_eval(value)))
                    json.dumps(found[-1])
                except (ValueError, TypeError):
                    return []
    return found


def checks_in(kind: str, record: Record) -> Iterator[ProgramCheck]:
    """The same check twice: deadly tests first, and in the given order."""
    if kind == "function":
        tests = [{"args": args, "expected": value} for args, value in tests_of(record)]
        check: Record = {"kind": kind, "entry_point": record["entry_point"], "tests": tests}
    else:
        pairs = [{"input": repr(args), "output": repr(value)} for args, value in tests_of(record)]
        check = {"kind": kind, "tests": pairs}
    for order in (TestOrder.LEARNED, TestOrder.FILE):
        how: Any = parse_check(Problem(record["problem"], check=check), LIMITS, order).how
        yield how


def order_of_tests(
    all_records: Sequence[Record], flags: dict[str, list[bool]], kind: str, sample: int, each: int
) -> Record:
    """Seconds with and without the order, on the same candidates in turns."""
    chance = random.Random(0)
    fit = [record for record in all_records if len(tests_of(record)) >= 4]
    seconds = [0.0, 0.0]
    failing = [0.0, 0.0]
    tests = [0, 0]
    verdicts = Counter[str]()
    disagreements = 0
    chosen = chance.sample(fit, min(sample, len(fit)))
    pair = WorkerPair()
    next(checks_in(kind, chosen[0])).judge("pass", pair)  # starts the worker
    for record in chosen:
        hows = list(checks_in(kind, record))
        open_ = [at for at, refuted in enumerate(flags[record["problem"]]) if not refuted]
        for turn, at in enumerate(chance.sample(open_, min(each, len(open_)))):
            text = record["prompt"] + record["completions"][at]
            if kind == "stdin":
                text += DRIVER.format(name=record["entry_point"])
            found = [Verdict.BROKEN, Verdict.BROKEN]
            for which in (0, 1) if turn % 2 else (1, 0):
                how: Any = hows[which]
                started = time.perf_counter()
                finding = how.judge(text, pair)
                took = time.perf_counter() - started
                found[which] = finding.verdict
                tests[which] += len(finding.stages)
                seconds[which] += took
                failing[which] += took * (found[which] is Verdict.FAILED)
            disagreements += found[0] is not found[1]
            verdicts[found[0].value] += 1
    pair.close()
    return {
        **{"problems": len(chosen), "candidates": sum(verdicts.values())},
        **{"verdicts": dict(verdicts), "disagreements": disagreements},
        **{"tests": tests, "seconds": [round(each, 2) for each in seconds]},
        "tests_of_the_given_order": round(tests[0] / tests[1], 3),
        "seconds_of_the_given_order": round(seconds[0] / seconds[1], 3),
        "of_candidates_that_fail": round(failing[0] / failing[1], 3),
    }


def main() -> None:
    given = [word.partition("=")[2] for word in sys.argv[1:] if word.startswith("--data=")]
    if not given:
        sys.exit("give --data=FOLDER with humaneval_programs.jsonl.gz")
    folder = Path(given[0])
    quick = "--quick" in sys.argv
    all_records = records(folder)[: 4 if quick else None]
    flags, refuted = refuted_of(all_records)
    sizes = (3, 5) if quick else (30, 25)
    figures = {
        "refuted": refuted,
        "saved": saved(folder, flags, 2 if quick else 10),
        "keys": saved_by_keys(folder, flags, keys_of(all_records, flags), 2 if quick else 10),
        "order_of_tests": {
            kind: order_of_tests(all_records, flags, kind, *sizes) for kind in ("function", "stdin")
        },
    }
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
