"""Checks of kind "math" on pairs made by machine and by hand: no wrong answer passes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

pytest.importorskip("mpmath")

from grv.backends.verifiers.math.check import MathCheck
from grv.core.errors import UsageError
from grv.core.values import Verdict
from support.math_pairs import Pair, pairs

ASSETS = Path(__file__).parent.parent / "assets"


def written(name: str = "math_written_pairs.jsonl") -> list[Pair]:
    with (ASSETS / name).open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [Pair(row["family"], row["answer"], row["text"], row["right"]) for row in rows]


def passes(pair: Pair) -> bool:
    try:
        return MathCheck(pair.reference).compare(pair.text).verdict is Verdict.PASSED
    except UsageError:
        return False  # a reference with two readings


def judged(some: Iterable[Pair]) -> tuple[list[Pair], list[Pair], Counter[str]]:
    """The wrong answers that passed, the right ones that did not, the right ones by family."""
    accepted: list[Pair] = []
    refused: list[Pair] = []
    right: Counter[str] = Counter()
    for pair in some:
        passed = passes(pair)
        right[pair.family] += pair.right
        if passed and not pair.right:
            accepted.append(pair)
        if pair.right and not passed:
            refused.append(pair)
    return accepted, refused, right


@pytest.mark.slow
def test_of_the_written_pairs_no_wrong_one_passes_and_few_right_ones_fail() -> None:
    accepted, refused, right = judged(written())
    assert accepted == []
    assert right.total() > 300
    by_family = Counter(pair.family for pair in refused)
    assert all(count <= right[family] / 10 for family, count in by_family.items())


@pytest.mark.slow
def test_of_pairs_that_the_code_was_not_made_for_no_wrong_one_passes() -> None:
    """A sample of 125 families, written without knowledge of the code."""
    accepted, refused, right = judged(written("math_blind_pairs.jsonl"))
    assert accepted == []
    assert len(refused) <= right.total() / 10


@pytest.mark.slow
def test_of_the_pairs_made_by_machine_no_wrong_one_passes_and_no_right_one_fails() -> None:
    accepted, refused, right = judged(pairs(seed=1, each=15))
    assert accepted == []
    assert refused == []
    assert len(right) == 25


@pytest.mark.soak
def test_of_very_many_pairs_made_by_machine_no_wrong_one_passes() -> None:
    accepted, refused, _ = judged(pairs(seed=2, each=1_500))
    assert accepted == []
    assert refused == []


@pytest.mark.slow
@pytest.mark.parametrize("each", range(20))
def test_the_verdict_on_a_pair_is_always_the_same(each: int) -> None:
    some = list(pairs(seed=100 + each, each=1))
    assert [passes(pair) for pair in some] == [passes(pair) for pair in some]


@pytest.mark.slow
def test_a_pass_works_both_ways() -> None:
    """What equals the reference would be a reference that the other one equals."""
    one_way: list[Pair] = []
    for pair in pairs(seed=3, each=6):
        answer = pair.text.removeprefix(r"So $\boxed{").removesuffix("}$.")
        if not pair.text.startswith(r"So $\boxed{") or "%" in pair.reference:
            continue
        turned = Pair(pair.family, answer, rf"So $\boxed{{{pair.reference}}}$.", pair.right)
        if passes(turned) != passes(pair):
            one_way.append(turned)
    assert one_way == []


@pytest.mark.parametrize(
    ("reference", "first", "second"),
    [
        ("1/2x", "1/(2x...)", "(1/2)x..."),
        ("1.5e-3", "1.5*10^(-3)", "1.5*e-3"),
        ("5!!", "(5!)!", "the double factorial of 5"),
        (r"3\frac{5}{2}", "3+5/2", "3*5/2"),
        (r"\sin(x)^2", "a power of a function", "a power of its argument"),
        ("|2|x|+1|", "a product with two absolute values", "one inside another"),
    ],
)
def test_a_reference_with_two_readings_is_an_error_that_names_both(
    reference: str, first: str, second: str
) -> None:
    with pytest.raises(UsageError) as caught:
        MathCheck(reference)
    assert f"{first} and {second}: write one of them" in str(caught.value)
    assert MathCheck("7").compare(rf"\boxed{{{reference}}}").verdict is Verdict.FAILED


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        (r"\arctan 2+\arctan 3+\arctan 5", r"\frac{\pi}{2}+\arctan 5+\arctan 7"),
        (r"\ln(xy)", r"\ln x+\ln y"),
        (r"\sin x", r"\sqrt{1-\cos^2 x}"),
        ("100-x", "|x-100|"),
    ],
)
def test_what_is_not_decided_failed_and_the_evidence_says_so(reference: str, answer: str) -> None:
    finding = MathCheck(reference).compare(rf"\boxed{{{answer}}}")
    assert finding.verdict is Verdict.FAILED
    if finding.reason != "wrong answer":
        assert finding.reason == "equality not decided"
        assert finding.evidence["detail"]


@pytest.mark.parametrize(
    "text",
    [
        "The solutions are 3 and 4.",
        "Die Lösungen sind 3 und 4.",
        "Les solutions sont $3$ et $4$.",
        "Las soluciones son 3 y 4.",
        "Ответы: 3 и 4.",
        "答案是3和4。",
        "答えは $3$ と $4$ です。",
        r"So \boxed{x=3\text{ oder }x=4}.",
    ],
)
def test_a_list_is_read_in_seven_languages(text: str) -> None:
    assert MathCheck("3, 4").compare(text).verdict is Verdict.PASSED
    assert MathCheck("4").compare(text).verdict is Verdict.FAILED


@pytest.mark.parametrize(
    "text",
    [
        r"\boxed{5}. This is the answer.",
        r"\boxed{5}. The value agrees with the estimate.",
        "\\boxed{5}\n\nI hope this is the answer that you wanted.",
    ],
)
def test_a_sentence_that_states_nothing_replaces_no_box(text: str) -> None:
    assert MathCheck("5").compare(text).verdict is Verdict.PASSED
