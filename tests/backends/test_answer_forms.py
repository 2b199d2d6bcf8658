"""Right programs pass and wrong ones do not, in whatever form a chat model writes its answer."""

from __future__ import annotations

import pytest

from grv.backends.protocols import Problem
from grv.backends.verifiers.pool import CheckVerifier
from grv.core.values import Verdict
from grv.text import checksum
from support.fuzzing.answers import CONTINUED, FORMS, REFUSED, answers

pytestmark = pytest.mark.slow


def misjudged(seed: int, n: int) -> tuple[list[str], list[str]]:
    """The names of right answers that were refused, and of wrong ones that passed."""
    chosen = answers(seed, n)
    assert len(chosen) == n
    jobs = (
        (answer, Problem(checksum(repr(answer.check)), check=answer.check), answer.text)
        for answer in chosen
    )
    refused, passed = [], []
    with CheckVerifier(workers=2) as verifier:
        for answer, judged in verifier.find_all(jobs):
            assert judged.finding.verdict is not Verdict.BROKEN
            has_passed = judged.finding.verdict is Verdict.PASSED
            if answer.is_right and not has_passed:
                refused.append(f"{answer.name}: {judged.finding.reason}")
            if has_passed and not answer.is_right:
                passed.append(answer.name)
    return [name for name in refused if not name.startswith(REFUSED)], passed


def test_answers_in_every_form_are_judged_by_their_programs() -> None:
    assert misjudged(1, 2 * len(FORMS | CONTINUED)) == ([], [])


@pytest.mark.soak
def test_five_hundred_answers_are_judged_by_their_programs() -> None:
    assert misjudged(2, 500) == ([], [])


@pytest.mark.soak
def test_all_answers_are_judged_by_their_programs() -> None:
    assert misjudged(3, 3592) == ([], [])
