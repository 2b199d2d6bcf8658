"""Each built-in attack is a test: it must not pass, nor break anything."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from grv.backends.attacks import prying, right_programs, suite
from grv.backends.attacks.attack import ANY_WORKS, Attack
from grv.backends.protocols import Problem
from grv.backends.sandbox.limits import Isolation
from grv.backends.verifiers.pool import CheckVerifier
from grv.core.errors import UsageError
from grv.core.values import Verdict

pytestmark = pytest.mark.slow
LIMITS = dataclasses.replace(suite.LIMITS, seconds=1.0)  # many attacks last until it ends
ECHO = Problem("echo", check={"kind": "stdin", "tests": [{"input": "1", "output": "1"}]})


@pytest.fixture(scope="module")
def around() -> Iterator[suite.Surroundings]:
    with suite.Surroundings() as around:
        yield around
        assert around.damage() == []


@pytest.fixture(scope="module")
def verifier() -> Iterator[CheckVerifier]:
    with CheckVerifier(workers=1, limits=LIMITS, refute=False) as verifier:
        yield verifier
        folders = verifier.folders()
        verifier.close()
        assert suite.left_behind(folders) == []


@pytest.mark.parametrize("attack", suite.ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_is_held(
    attack: Attack, verifier: CheckVerifier, around: suite.Surroundings
) -> None:
    for _, problem, text in suite.trials_of(attack, around):
        finding = verifier.find(problem, text)
        assert suite.held(attack, finding), finding
        if attack.behaves:
            assert finding.evidence.get("test", 1) != 0
    assert around.damage() == []
    # The worker still works. (A different text each time, since equal programs run only once.)
    text = f"import os\nassert os.listdir('.') == []\nprint(input())\n_ = {attack.name!r}"
    assert verifier.find(ECHO, text).verdict is Verdict.PASSED


@pytest.mark.parametrize("right", right_programs.RIGHT_PROGRAMS, ids=lambda right: right.name)
def test_a_right_program_passes(
    right: right_programs.RightProgram, verifier: CheckVerifier
) -> None:
    finding = verifier.find(Problem(right.name, check=right.check), right.text)
    assert finding.verdict is Verdict.PASSED, finding


def test_numpy_works_in_the_jail(verifier: CheckVerifier) -> None:
    pytest.importorskip("numpy")
    check = dict(right_programs.NUMPY.check) | {"limits": {"seconds": 20, "memory_mb": 1024}}
    finding = verifier.find(Problem("numpy", check=check), right_programs.NUMPY.text)
    assert finding.verdict is Verdict.PASSED, finding


def test_the_attacks_are_not_tried_without_a_jail(around: suite.Surroundings) -> None:
    with (
        CheckVerifier(workers=1, isolation=Isolation.UNSAFE) as verifier,
        pytest.raises(UsageError, match="do not run without a jail"),
    ):
        next(suite.run_attacks(verifier, around))


def test_attacks_have_different_names_and_no_placeholder_remains(
    around: suite.Surroundings,
) -> None:
    names = [attack.name for attack in suite.ATTACKS]
    assert len(set(names)) == len(names)
    for attack in suite.ATTACKS:
        for _, _, text in suite.trials_of(attack, around):
            assert not re.search(r"@[A-Z]+@", text)
            compile(text, attack.name, "exec")


def test_damage_is_reported(around: suite.Surroundings) -> None:
    with suite.Surroundings() as own:
        assert own.damage() == []
        (own.file.parent / "more").touch()
        own.file.write_text("nothing")
        assert len(own.damage()) == 2


def test_an_attack_that_looks_for_a_secret_answers_with_what_it_finds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    secret = "secret-" + "0f" * 16
    look = f"def look():\n    try: found(b'..{secret}..')\n    except Exception: pass\n"
    space: dict[str, Any] = {}
    exec(prying._FIND + look + prying._ASK, space)  # noqa: SLF001
    assert space["f"](1) == secret
    assert secret in capsys.readouterr().out


def test_an_attack_that_got_through_once_says_so_in_every_later_call() -> None:
    space: dict[str, Any] = {}
    exec(ANY_WORKS, space)
    works = space["any_works"]
    assert works(lambda: 1 / 0) == works() == "held"
    assert works(lambda: 1 / 0, lambda: None, sys.exit) == "breached"  # the rest is not tried
    assert works(lambda: 1 / 0) == "breached"
