"""Twenty problems in six languages: right programs pass, wrong ones fail."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from grv.backends.protocols import Problem
from grv.backends.verifiers.languages.toolchains import Toolchain, installed
from grv.backends.verifiers.pool import CheckVerifier
from grv.core.values import Verdict
from support.languages import LANGUAGES, PROBLEMS, check, program

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def verifier() -> Iterator[CheckVerifier]:
    with CheckVerifier(workers=1) as verifier:
        yield verifier


def judge(verifier: CheckVerifier, name: str, language: str) -> None:
    found = installed()[language]
    if not isinstance(found, Toolchain):
        pytest.skip(f"{language}: {found}")
    problem = Problem(name, check=check(name, language))
    right = verifier.find(problem, program(name, language, right=True))
    assert right.verdict is Verdict.PASSED, right
    wrong = verifier.find(problem, program(name, language, right=False))
    assert (wrong.verdict, wrong.reason) == (Verdict.FAILED, "wrong answer"), wrong


def test_there_are_twenty_problems_with_two_programs_each() -> None:
    assert len(PROBLEMS) == 20
    for language in LANGUAGES:
        for name in PROBLEMS:
            right = program(name, language, right=True)
            wrong = program(name, language, right=False)
            assert right != wrong
            assert not set("⟦¦⟧") & set(right + wrong)


@pytest.mark.parametrize("language", LANGUAGES)
def test_two_problems_of_each_language(verifier: CheckVerifier, language: str) -> None:
    start = LANGUAGES.index(language)
    for name in list(PROBLEMS)[start::10]:
        judge(verifier, name, language)


@pytest.mark.soak
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_problem_of_each_language(verifier: CheckVerifier, name: str, language: str) -> None:
    judge(verifier, name, language)
