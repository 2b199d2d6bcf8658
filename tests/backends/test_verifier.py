from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from grv.backends.protocols import Draft, Problem, Verifier
from grv.backends.sandbox.limits import Limits
from grv.backends.verdict_store import VerdictStore
from grv.backends.verifier import CheckVerifier
from grv.core.errors import UsageError
from grv.core.values import Verdict

CHECK = {"kind": "function", "entry_point": "f", "tests": [{"args": [1], "expected": 2}]}
PROBLEM = Problem("p", check=CHECK)
RIGHT = "def f(x): return x + 1"
WRONG = "def f(x): return x"
FOREVER = "def f(x):\n    while True: pass"


def test_it_is_a_verifier_and_verifies_in_parallel() -> None:
    async def main(verifier: Verifier) -> list[Verdict]:
        drafts = [RIGHT, WRONG, "nonsense (", RIGHT + " # again"]
        findings = await asyncio.gather(*(verifier.verify(PROBLEM, Draft(d)) for d in drafts))
        return [finding.verdict for finding in findings]

    with CheckVerifier(workers=2) as verifier:
        verdicts = asyncio.run(main(verifier))
    passed, failed = Verdict.PASSED, Verdict.FAILED
    assert verdicts == [passed, failed, failed, passed]


def test_a_plain_loop_gets_findings_as_they_come() -> None:
    jobs = ((i, PROBLEM, RIGHT if i % 2 else f"{WRONG} - {i}") for i in range(20))
    with CheckVerifier(workers=3) as verifier:
        found = dict(verifier.find_all(jobs))
    assert sorted(found) == list(range(20))
    assert [i for i in range(20) if found[i].finding.verdict is Verdict.PASSED] == list(
        range(1, 20, 2)
    )
    assert all(judged.key and judged.key.startswith("tree:") for judged in found.values())


def test_it_takes_no_more_jobs_than_it_needs() -> None:
    taken = []

    def jobs() -> Any:
        for i in range(1000):
            taken.append(i)
            yield i, PROBLEM, WRONG + f" - {i}"

    with CheckVerifier(workers=1) as verifier:
        next(verifier.find_all(jobs()))
    assert len(taken) < 10


def test_equal_keys_are_verified_once() -> None:
    text = "import time\ndef f(x):\n    time.sleep(0.2)\n    return x + 1"
    with CheckVerifier(workers=4) as verifier:
        jobs = ((i, PROBLEM, text + "\n" * i) for i in range(20))
        found = list(verifier.find_all(jobs))
    assert {judged.finding.verdict for _, judged in found} == {Verdict.PASSED}
    assert sum(judged.finding.usage.seconds > 0 for _, judged in found) == 1


def test_verdicts_are_remembered_in_a_file(tmp_path: Path) -> None:
    for again in (False, True):
        store = VerdictStore(tmp_path / "verdicts")
        with CheckVerifier(workers=1, store=store) as verifier:
            finding = verifier.find(PROBLEM, RIGHT)
        store.close()
        assert finding.verdict is Verdict.PASSED
        assert finding.evidence.get("remembered", False) is again


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

    with CheckVerifier(workers=1, limits=Limits(seconds=60)) as verifier:
        assert asyncio.run(main(verifier)) < 20


def test_closing_ends_what_is_going_on() -> None:
    verifier = CheckVerifier(workers=1, limits=Limits(seconds=60))
    thread = threading.Thread(target=verifier.find, args=(PROBLEM, FOREVER))
    thread.start()
    time.sleep(0.5)
    started = time.monotonic()
    verifier.close()
    thread.join(20)
    assert not thread.is_alive()
    assert time.monotonic() - started < 20


def _kill_zygotes(verifier: CheckVerifier, times: int, stop: threading.Event) -> None:
    (seat,) = verifier._all  # noqa: SLF001
    for _ in range(times):
        while seat.candidate.current is None and not stop.is_set():
            time.sleep(0.01)
        time.sleep(0.1)
        pid = seat.candidate.pid
        if pid is not None and not stop.is_set():
            os.kill(pid, signal.SIGKILL)
        while pid is not None and seat.candidate.pid == pid and not stop.is_set():
            time.sleep(0.01)


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


def test_repeated_it_reports_disagreement() -> None:
    flaky = "import random\ndef f(x): return 2 if random.random() > 0.5 else 0"
    steady = Problem("steady", check=CHECK | {"repeat": 5})
    with CheckVerifier(workers=1) as verifier:
        finding = verifier.find(steady, flaky)
        assert finding.verdict is Verdict.BROKEN
        assert finding.reason == "disagreement"
        assert set(finding.evidence["verdicts"]) == {"passed", "failed"}
        assert verifier.find(steady, RIGHT).verdict is Verdict.PASSED


def test_mistakes_in_a_record_are_the_callers() -> None:
    with CheckVerifier(workers=1) as verifier:
        with pytest.raises(UsageError, match=r"problem q, check\.kind"):
            verifier.find(Problem("q", check={"kind": "?"}), RIGHT)
        with pytest.raises(UsageError):
            list(verifier.find_all([(0, Problem("q", check={}), RIGHT)]))
    with pytest.raises(UsageError, match="at least one"):
        CheckVerifier(workers=0)


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
