from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from grv.backends.protocols import Draft, Finding, Problem, Verifier
from grv.backends.sandbox.limits import RunLimits
from grv.backends.sandbox.run import SandboxDied
from grv.backends.sandbox.worker import Worker
from grv.backends.verifiers.engine import LocalEngine
from grv.backends.verifiers.pool import CheckVerifier
from grv.backends.verifiers.programs import comparing
from grv.backends.verifiers.programs.checks import FunctionCheck
from grv.backends.verifiers.verdict_store import VerdictStore
from grv.backends.verifiers.worker_pair import WorkerPair
from grv.core.errors import UsageError
from grv.core.values import Verdict

CHECK = {"kind": "function", "entry_point": "f", "tests": [{"args": [1], "expected": 2}]}
PROBLEM = Problem("p", check=CHECK)
RIGHT = "def f(x): return x + 1"
WRONG = "def f(x): return x"
FOREVER = "def f(x):\n    while True: pass"


@pytest.mark.slow
def test_it_is_a_verifier_and_verifies_in_parallel() -> None:
    async def main(verifier: Verifier) -> list[Verdict]:
        drafts = [RIGHT, WRONG, "nonsense (", RIGHT + " # again"]
        findings = await asyncio.gather(*(verifier.verify(PROBLEM, Draft(d)) for d in drafts))
        return [finding.verdict for finding in findings]

    with CheckVerifier(workers=2) as verifier:
        verdicts = asyncio.run(main(verifier))
    passed, failed = Verdict.PASSED, Verdict.FAILED
    assert verdicts == [passed, failed, failed, passed]


@pytest.mark.slow
def test_a_plain_loop_gets_findings_as_they_come() -> None:
    jobs = ((i, PROBLEM, RIGHT if i % 2 else f"{WRONG} - {i}") for i in range(20))
    with CheckVerifier(workers=3) as verifier:
        found = dict(verifier.find_all(jobs))
    assert sorted(found) == list(range(20))
    assert [i for i in range(20) if found[i].finding.verdict is Verdict.PASSED] == list(
        range(1, 20, 2)
    )
    assert all(judged.key and judged.key.startswith("tree:") for judged in found.values())


@pytest.mark.slow
def test_it_takes_no_more_jobs_than_it_needs() -> None:
    taken = []

    def jobs() -> Any:
        for i in range(1000):
            taken.append(i)
            yield i, PROBLEM, WRONG + f" - {i}"

    with CheckVerifier(workers=1) as verifier:
        next(verifier.find_all(jobs()))
    assert len(taken) < 10


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "runs"), [("x + 1", 5), ("x", 1)])
def test_equal_keys_share_failures_and_equal_programs_share_everything(
    answer: str, runs: int
) -> None:
    text = f"import time\ndef f(x):\n    time.sleep(0.2)\n    return {answer}"
    verdict = Verdict.PASSED if answer == "x + 1" else Verdict.FAILED
    with CheckVerifier(workers=4) as verifier:
        jobs = ((i, PROBLEM, text + "\n" * (i % 5)) for i in range(20))
        found = list(verifier.find_all(jobs))
    assert {judged.finding.verdict for _, judged in found} == {verdict}
    assert len({judged.key for _, judged in found}) == 1
    assert sum(judged.finding.usage.seconds > 0 for _, judged in found) == runs


# Each reads the docstring, in a way that no list of names sees.
READERS = {
    "format": "'{.__doc__}'.format(f)",
    "format_map": "'{f.__doc__}'.format_map({'f': f})",
    "string.Formatter": "string.Formatter().get_field('0.__doc__', (f,), {})[0]",
    "match": "_match()",
}


def _twins(read: str) -> tuple[str, str]:
    """A right program and a wrong one that differ in their docstrings alone."""
    matching = (
        "def _match():\n    match f:\n        case object(__doc__=d):\n            return d\n"
    )
    body = f"    return x + 1 if 'right' in str({read}) else x"
    right = f"import string\n{matching}\ndef f(x):\n    'right'\n{body}\n"
    return right, right.replace("    'right'\n", "    'wrong'\n")


@pytest.mark.slow
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize("right_first", [True, False])
def test_programs_that_differ_in_their_docstrings_have_verdicts_of_their_own(
    read: str, right_first: bool, tmp_path: Path
) -> None:
    right, wrong = _twins(read)
    store = VerdictStore(tmp_path / "verdicts")
    with CheckVerifier(workers=1, store=store) as verifier:
        for text in (right, wrong) if right_first else (wrong, right):
            verifier.find(PROBLEM, text)
    with CheckVerifier(workers=1, store=store) as verifier:  # the same from the store
        assert verifier.find(PROBLEM, wrong).verdict is Verdict.FAILED
        assert verifier.find(PROBLEM, right).verdict is Verdict.PASSED
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize("right_first", [True, False])
def test_a_pass_belongs_to_the_program_that_ran(
    right_first: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if keys were equal that should not be."""
    monkeypatch.setattr(FunctionCheck, "key", lambda self, text: "equal")
    right, wrong = _twins(READERS["format"])
    store = VerdictStore(tmp_path / "verdicts")
    with CheckVerifier(workers=1, store=store) as verifier:
        for text in (right, wrong) if right_first else (wrong, right):
            verifier.find(PROBLEM, text)
        assert verifier.find(PROBLEM, wrong).verdict is Verdict.FAILED
    with CheckVerifier(workers=1, store=store) as verifier:
        assert verifier.find(PROBLEM, wrong).verdict is Verdict.FAILED
        found = verifier.find(PROBLEM, right)
        assert found.verdict is (Verdict.PASSED if right_first else Verdict.FAILED)
    store.close()


@pytest.mark.slow
def test_the_evidence_says_what_was_read_and_a_pass_has_the_program() -> None:
    block = "```python\ndef f(x):\n    return {}\n```\n"
    text = f"First:\n\n{block.format('x')}\nBetter:\n\n{block.format('x + 1')}"
    with CheckVerifier(workers=1) as verifier:
        passed = verifier.find(PROBLEM, text)
        same_program = verifier.find(PROBLEM, "def f(x):\n    return x + 1\n")
        failed = verifier.find(PROBLEM, block.format("x"))
    assert passed.verdict is Verdict.PASSED
    assert passed.evidence["read"] == "block 2 of 2"
    assert passed.answer_program == "def f(x):\n    return x + 1\n"
    assert same_program.evidence["read"] == "the whole text"
    assert same_program.answer_program == passed.answer_program
    assert failed.evidence["read"] == "block 1 of 1"
    assert failed.answer_program is None


@pytest.mark.slow
def test_an_error_in_the_judge_concerns_one_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = FunctionCheck.judge

    def fails_on_some(self: FunctionCheck, text: str, pair: WorkerPair, seed: int = 0) -> Finding:
        if "odd" in text:
            raise ZeroDivisionError("oops")
        return judge(self, text, pair, seed)

    monkeypatch.setattr(FunctionCheck, "judge", fails_on_some)
    jobs = ((i, PROBLEM, f"{RIGHT} + {i} - {i} # {'odd' if i % 2 else ''}") for i in range(6))
    with CheckVerifier(workers=2) as verifier:
        found = dict(verifier.find_all(jobs))
    for i in range(6):
        assert found[i].finding.verdict is (Verdict.BROKEN if i % 2 else Verdict.PASSED)
    assert found[1].finding.reason == "the judge failed: ZeroDivisionError: oops"


@pytest.mark.slow
def test_after_an_error_in_the_judge_the_same_workers_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> bool:
        raise RuntimeError("a fault \ud800")

    with CheckVerifier(workers=1) as verifier:
        with monkeypatch.context() as patch:
            patch.setattr(comparing, "same_value", fail)
            finding = verifier.find(PROBLEM, RIGHT)
        assert finding.verdict is Verdict.BROKEN
        assert finding.reason == "the judge failed: RuntimeError: a fault \\ud800"
        assert verifier.find(PROBLEM, RIGHT).verdict is Verdict.PASSED


@pytest.mark.slow
def test_an_isolation_that_cannot_be_had_is_an_error_and_no_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(self: Worker) -> None:
        raise UsageError("isolation 'jail' cannot be had here: no landlock")

    monkeypatch.setattr(Worker, "_refuse_less", refuse)
    with (
        CheckVerifier(workers=1) as verifier,
        pytest.raises(UsageError, match="cannot be had here"),
    ):
        verifier.find(PROBLEM, RIGHT)


@pytest.mark.slow
def test_losing_workers_is_not_an_attempt_but_not_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lost = 0
    judge = FunctionCheck.judge

    def loses_workers(self: FunctionCheck, text: str, pair: WorkerPair, seed: int = 0) -> Finding:
        nonlocal lost
        if lost:
            lost -= 1
            raise SandboxDied("the worker died", backend="sandbox")
        return judge(self, text, pair, seed)

    monkeypatch.setattr(FunctionCheck, "judge", loses_workers)
    with CheckVerifier(workers=1, attempts=1) as verifier:
        lost = 2
        assert verifier.find(PROBLEM, RIGHT).verdict is Verdict.PASSED
        lost = 99
        finding = verifier.find(PROBLEM, WRONG)
        assert (finding.verdict, finding.reason) == (Verdict.BROKEN, "the worker died")
        assert lost == 96


@pytest.mark.slow
def test_verdicts_are_remembered_in_a_file(tmp_path: Path) -> None:
    for again in (False, True):
        store = VerdictStore(tmp_path / "verdicts")
        with CheckVerifier(workers=1, store=store) as verifier:
            finding = verifier.find(PROBLEM, RIGHT)
        store.close()
        assert finding.verdict is Verdict.PASSED
        assert finding.evidence.get("remembered", False) is again


@pytest.mark.alone
def test_cancelled_it_ends_the_run_and_forgets_it(tmp_path: Path) -> None:
    async def main(verifier: CheckVerifier) -> float:
        task = asyncio.create_task(verifier.verify(PROBLEM, Draft(FOREVER)))
        await asyncio.sleep(0.5)
        task.cancel()
        started = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await task
        finding = await verifier.verify(PROBLEM, Draft(RIGHT))
        assert finding.verdict is Verdict.PASSED
        return time.monotonic() - started

    with CheckVerifier(workers=1, limits=RunLimits(seconds=60)) as verifier:
        assert asyncio.run(main(verifier)) < 20


@pytest.mark.alone
def test_closing_ends_what_is_going_on() -> None:
    verifier = CheckVerifier(workers=1, limits=RunLimits(seconds=60))
    thread = threading.Thread(target=verifier.find, args=(PROBLEM, FOREVER))
    thread.start()
    time.sleep(0.5)
    started = time.monotonic()
    verifier.close()
    thread.join(20)
    assert not thread.is_alive()
    assert time.monotonic() - started < 20


def _kill_zygotes(verifier: CheckVerifier, times: int, stop: threading.Event) -> None:
    assert isinstance(verifier.engine, LocalEngine)
    (pair,) = verifier.engine.pairs
    for _ in range(times):
        while pair.candidate.current is None and not stop.is_set():
            time.sleep(0.01)
        time.sleep(0.1)
        pid = pair.candidate.pid
        if pid is not None and not stop.is_set():
            os.kill(pid, signal.SIGKILL)
        while pid is not None and pair.candidate.pid == pid and not stop.is_set():
            time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize(("deaths", "verdict"), [(1, Verdict.PASSED), (9, Verdict.BROKEN)])
def test_broken_is_tried_again_then_reported(deaths: int, verdict: Verdict) -> None:
    text = "import time\ndef f(x):\n    time.sleep(1)\n    return x + 1"
    stop = threading.Event()
    with CheckVerifier(workers=1, attempts=3) as verifier:
        killer = threading.Thread(target=_kill_zygotes, args=(verifier, deaths, stop))
        killer.start()
        finding = verifier.find(PROBLEM, text)
        stop.set()
        killer.join()
        assert finding.verdict is verdict, finding
        if verdict is Verdict.BROKEN:
            assert finding.reason == "the worker died"
            assert verifier.find(PROBLEM, text).verdict is Verdict.PASSED  # broken is no label


@pytest.mark.slow
def test_repeated_it_reports_disagreement() -> None:
    flaky = "import random\ndef f(x): return 2 if random.random() > 0.5 else 0"
    steady = Problem("steady", check=CHECK | {"repeat": 5})
    with CheckVerifier(workers=1) as verifier:
        finding = verifier.find(steady, flaky)
        assert finding.verdict is Verdict.FAILED  # it does not pass every time
        assert finding.reason == "disagreement"
        assert set(finding.evidence["verdicts"]) == {"passed", "failed"}
        assert verifier.find(steady, RIGHT).verdict is Verdict.PASSED


def test_mistakes_in_a_record_are_the_callers() -> None:
    with CheckVerifier(workers=1) as verifier:
        with pytest.raises(UsageError, match=r"problem q, check\.kind"):
            verifier.find(Problem("q", check={"kind": "?"}), RIGHT)
        with pytest.raises(UsageError):
            list(verifier.find_all([(0, Problem("q", check={}), RIGHT)]))
    with pytest.raises(UsageError, match="at least 1"):
        CheckVerifier(workers=0)


@pytest.mark.slow
def test_a_problem_may_change_its_check() -> None:
    other = Problem("p", check=CHECK | {"tests": [{"args": [1], "expected": 1}]})
    with CheckVerifier(workers=1) as verifier:
        assert verifier.find(PROBLEM, RIGHT).verdict is Verdict.PASSED
        assert verifier.find(other, RIGHT).verdict is Verdict.FAILED
        assert verifier.find(PROBLEM, RIGHT).verdict is Verdict.PASSED


def test_checks_that_need_no_sandbox_start_none() -> None:
    problem = Problem("c", check={"kind": "command", "argv": ["grep", "-q", "yes"]})
    with CheckVerifier(workers=1, allow_commands=True) as verifier:
        assert verifier.find(problem, "yes").verdict is Verdict.PASSED
        assert verifier.find(problem, "no").verdict is Verdict.FAILED
        assert verifier.folders() == []
