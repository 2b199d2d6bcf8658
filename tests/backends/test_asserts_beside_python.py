"""An `asserts` check gives the verdict of Python, with a test process and without one."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from grv.backends.protocols import Finding
from grv.backends.sandbox.limits import RunLimits
from grv.backends.verifiers.programs import checks
from grv.backends.verifiers.programs.checks import AssertsCheck
from grv.backends.verifiers.worker_pair import WorkerPair
from grv.core.values import Verdict
from support.commands import as_from_a_terminal
from support.fuzzing.asserts import SPECIAL, Case, cases

pytestmark = pytest.mark.slow

LIMITS = RunLimits(seconds=5, output_mb=2)
PATIENCE = 30.0  # seconds for a program outside: one that takes longer does not pass
DATA = Path(os.environ.get("GRV_DATA", "data")) / "humaneval_programs.jsonl.gz"
LOOPING = ("while", "open(", "os.", "input(")  # what is not run outside


@pytest.fixture(scope="module")
def pair() -> Iterator[WorkerPair]:
    pair = WorkerPair()
    yield pair
    pair.close()


def judged(case: Case, pair: WorkerPair) -> Finding:
    return AssertsCheck(case.entry_point, case.test, case.prompt, LIMITS).judge(case.program, pair)


def told(finding: Finding) -> tuple[Any, ...]:
    """A finding without what is measured."""
    evidence = {k: v for k, v in finding.evidence.items() if not k.endswith("_seconds")}
    stages = [(stage["check"], stage["verdict"]) for stage in evidence.pop("stages", [])]
    return finding.verdict, finding.reason, evidence, stages


def passes_in_python(case: Case, folder: Path) -> bool:
    """Whether the program, followed by its test, runs to its end as a file of its own."""
    end = folder / "end"
    end.unlink(missing_ok=True)
    call = f"check({case.entry_point})\n" if "def check" in case.test else ""
    text = f"{case.program}\n{case.test}\n{call}import posix\nposix.open({str(end)!r}, 65)\n"
    (folder / "main.py").write_bytes(text.encode("utf-8", "surrogatepass"))
    command = [sys.executable, "-W", "ignore", "-s", "-B", str(folder / "main.py")]
    with contextlib.suppress(subprocess.TimeoutExpired):
        ended = subprocess.run(
            command,
            cwd=folder,
            env={"PATH": "/usr/bin:/bin", "PYTHONHASHSEED": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            preexec_fn=as_from_a_terminal,
            check=False,
            timeout=PATIENCE,
        )
        return ended.returncode == 0 and end.exists()
    return False


def differing(
    chosen: Iterable[Case], pair: WorkerPair, folder: Path, patch: pytest.MonkeyPatch
) -> list[str]:
    """The tests that the judge, a process or Python end in another way than the others."""
    found = []
    for case in chosen:
        finding = judged(case, pair)
        with patch.context() as context:
            context.setattr(checks, "simple_test", lambda *_: None)
            apart = judged(case, pair)
        name = f"{case.name}: {case.test}"
        if told(finding) != told(apart):
            found.append(f"{name}\n{told(finding)}\n{told(apart)}")
        elif case.name not in SPECIAL:
            has_passed = finding.verdict is Verdict.PASSED
            if has_passed is not passes_in_python(case, folder):
                found.append(f"{name}\n{told(finding)}")
    return found


def real(problems: int, programs: int) -> Iterator[Case]:
    """Programs of a language model, with the tests of HumanEval."""
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        for line in itertools.islice(lines, problems):
            record = json.loads(line)
            texts = [record["canonical_solution"], *record["completions"]]
            texts = [text for text in texts if not any(word in text for word in LOOPING)]
            for number, text in enumerate(texts[:programs]):
                name = f"{record['problem']}, program {number}"
                program = record["prompt"] + text
                yield Case(name, program, record["test"], record["entry_point"], record["prompt"])


def test_a_verdict_is_that_of_a_process_and_of_python(
    pair: WorkerPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert differing(cases(1, 15), pair, tmp_path, monkeypatch) == []


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_two_thousand_verdicts_are_those_of_a_process_and_of_python(
    pair: WorkerPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert differing(cases(2, 2000), pair, tmp_path, monkeypatch) == []


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_verdicts_on_real_programs_are_those_of_a_process_and_of_python(
    pair: WorkerPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not DATA.exists():
        pytest.skip(f"there is no {DATA.name}; GRV_DATA names its folder")
    assert differing(real(82, 25), pair, tmp_path, monkeypatch) == []
