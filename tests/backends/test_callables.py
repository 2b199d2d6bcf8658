"""Functions as verifiers."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from grv.backends.callables import CallableVerifier
from grv.backends.protocols import Draft, Finding, Problem, Usage, Verifier
from grv.core.errors import UsageError
from grv.core.values import Verdict

PROBLEM = Problem("p", "prompt", {"answer": "42"})


def ask(function: Any, text: str = "42") -> Finding:
    verifier: Verifier = CallableVerifier(function)
    return asyncio.run(verifier.verify(PROBLEM, Draft(text)))


def asynchronous(said: Any) -> Callable[[Problem, str], Any]:
    async def function(problem: Problem, text: str) -> Any:
        await asyncio.sleep(0)
        return said

    return function


SAID: list[tuple[Any, Verdict]] = [
    (True, Verdict.PASSED),
    (False, Verdict.FAILED),
    (np.bool_(True), Verdict.PASSED),
    (np.bool_(False), Verdict.FAILED),
    (Verdict.PASSED, Verdict.PASSED),
    (Verdict.FAILED, Verdict.FAILED),
    (Verdict.BROKEN, Verdict.BROKEN),
    (Finding(Verdict.FAILED, "wrong"), Verdict.FAILED),
    (None, Verdict.BROKEN),
    (1, Verdict.BROKEN),
    ("passed", Verdict.BROKEN),
    ([], Verdict.BROKEN),
]


@pytest.mark.parametrize(("said", "verdict"), SAID)
def test_what_a_function_says_is_its_finding(said: Any, verdict: Verdict) -> None:
    assert ask(lambda problem, text: said).verdict is verdict
    assert ask(asynchronous(said)).verdict is verdict


def test_a_function_sees_the_problem_and_the_text() -> None:
    assert ask(lambda problem, text: text == problem.check["answer"]).verdict is Verdict.PASSED
    assert (
        ask(lambda problem, text: text == problem.check["answer"], "43").verdict is Verdict.FAILED
    )


def test_a_finding_keeps_its_evidence_and_its_usage() -> None:
    said = Finding(Verdict.PASSED, "why", {"a": 1}, Usage(dollars=2.0))
    assert ask(lambda problem, text: said) == said
    assert ask(lambda problem, text: True).usage.seconds > 0


class Rude(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize("exception", [ValueError("bad"), KeyError("k"), StopIteration(), Rude()])
def test_an_exception_is_a_broken_finding_with_its_name(exception: Exception) -> None:
    def fail(problem: Problem, text: str) -> bool:
        raise exception

    finding = ask(fail)
    name = type(exception).__name__
    assert finding.verdict is Verdict.BROKEN
    assert finding.reason.startswith(f"raised {name}")
    assert re.search(r" \(test_callables\.py:\d+\)$", finding.reason)
    assert finding.evidence["exception"] == name


def test_an_exception_in_a_coroutine_is_a_broken_finding_too() -> None:
    async def fail(problem: Problem, text: str) -> bool:
        raise OSError("no network")

    finding = ask(fail)
    assert finding.verdict is Verdict.BROKEN
    assert finding.reason.startswith("raised OSError: no network (test_callables.py:")
    assert finding.evidence["detail"] == "no network"


def test_objects_that_are_called_and_functions_that_return_coroutines_work() -> None:
    class Checker:
        async def __call__(self, problem: Problem, text: str) -> bool:
            return text == "42"

    assert ask(Checker()).verdict is Verdict.PASSED
    assert ask(lambda problem, text: Checker()(problem, text)).verdict is Verdict.PASSED


def test_plain_functions_run_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=20)

    async def twice() -> list[Finding]:
        verifier = CallableVerifier(lambda problem, text: both.wait() >= 0)
        asked = (verifier.verify(PROBLEM, Draft(text)) for text in "ab")
        return list(await asyncio.gather(*asked))

    assert [finding.verdict for finding in asyncio.run(twice())] == [Verdict.PASSED] * 2


def test_a_cancelled_verification_is_cancelled_and_not_broken() -> None:
    async def forever(problem: Problem, text: str) -> bool:
        await asyncio.sleep(1000)
        return True

    async def give_up() -> None:
        async with asyncio.timeout(0.05):
            await CallableVerifier(forever).verify(PROBLEM, Draft(""))

    with pytest.raises(TimeoutError):
        asyncio.run(give_up())


def test_what_cannot_be_called_is_the_callers_mistake() -> None:
    with pytest.raises(UsageError):
        CallableVerifier("passed")  # type: ignore[arg-type]


HANGING = """
import time
import grv
from grv.runtime.options import Calls

def hang(*_):
    time.sleep(1000)

def short(problem, text):
    return -len(text)

calls = Calls(attempts=1, call_timeout=0.2)
parts = dict(generator=lambda p: "x", scorer=short, verifier=lambda p, t: True)
parts["{which}"] = hang
solution = grv.solve_now("p", calls=calls, budget=20, **parts)
print(solution.outcome)
"""


@pytest.mark.slow
@pytest.mark.parametrize("which", ["generator", "scorer", "verifier"])
def test_a_function_that_never_returns_does_not_keep_the_program_from_exiting(which: str) -> None:
    program = HANGING.replace("{which}", which)
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit(), asyncio.CancelledError()])
def test_whatever_a_function_raises_concerns_its_candidate_only(error: BaseException) -> None:
    def fail(problem: Problem, text: str) -> bool:
        raise error

    finding = ask(fail)
    assert finding.verdict is Verdict.BROKEN
    assert finding.reason.startswith(f"raised {type(error).__name__}")
