"""Checks of kind "human": what they may say, and that a person decides."""

from __future__ import annotations

from typing import Any

import pytest

from grv.backends.protocols import Draft, ParkedCall, Problem
from grv.backends.verifiers.pool import CheckVerifier
from grv.core.errors import UsageError
from grv.core.values import Verdict

ASKED = {"kind": "human", "question": "Is it kind?"}


@pytest.mark.anyio
async def test_a_candidate_is_parked_with_the_question() -> None:
    with CheckVerifier(workers=1) as verifier:
        for _ in range(2):  # nothing is remembered
            with pytest.raises(ParkedCall, match="Is it kind"):
                await verifier.verify(Problem("p", "", ASKED), Draft("yes"))
        assert verifier.key(Problem("p", "", ASKED), Draft("yes")) is not None


def test_without_a_ledger_the_verdict_is_broken_and_says_what_to_do() -> None:
    with CheckVerifier(workers=1) as verifier:
        ((_, judged),) = verifier.find_all([("", Problem("p", "", ASKED), "yes")])
    assert judged.finding.verdict is Verdict.BROKEN
    assert "grv review" in judged.finding.reason


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"question": ""}, "question must be what a reviewer is asked"),
        ({"question": 3}, "question must be what a reviewer is asked"),
        ({"minutes": 0}, "minutes must be a number above 0"),
        ({"minutes": "3"}, "minutes must be a number above 0"),
        ({"rubric": [1]}, "rubric must be a text or a list of texts"),
        ({"questions": "?"}, "no such field"),
    ],
)
def test_a_wrong_check_is_one_line(change: dict[str, Any], words: str) -> None:
    with CheckVerifier(workers=1) as verifier, pytest.raises(UsageError, match=words):
        verifier.prepare(Problem("p", "", ASKED | change))
