"""Checks of kind "math" against hostile texts: time grows with the length, and no change passes."""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("mpmath")

from grv.backends.verifiers.math.check import MathCheck
from grv.core.values import Verdict
from support.examples import examples
from support.math_bombs import BOMBS, REPEATED

DATA = Path(os.environ.get("GRV_TEST_DATA", "no such directory"))
QUICK = settings(max_examples=examples(200), deadline=None, suppress_health_check=list(HealthCheck))
LONGEST_SECONDS = 2.0  # of processor time; far more than any of these takes


def seconds(check: MathCheck, text: str) -> float:
    started = time.process_time()
    check.key(text)
    check.compare(text)
    return time.process_time() - started


@pytest.mark.slow
@pytest.mark.parametrize("piece", REPEATED)
@pytest.mark.parametrize("place", ["{}", r"\boxed{{{}}}", r"{}\boxed{{5}}", r"\boxed{{5}}{}"])
def test_a_long_text_takes_time_that_grows_with_its_length(piece: str, place: str) -> None:
    check = MathCheck("5")
    times = 100_000 // len(piece)
    short = min(seconds(check, place.format(piece * (times // 4))) for _ in range(2))
    long = min(seconds(check, place.format(piece * times)) for _ in range(2))
    assert long < LONGEST_SECONDS
    assert long < 10 * short + 0.5


@pytest.mark.slow
@pytest.mark.parametrize("answer", BOMBS)
def test_no_answer_keeps_the_judge_busy(answer: str) -> None:
    for reference in ("5", r"\{1,2\}", "x^2+1", "x^2=5", f"0+{answer}"):
        check = MathCheck(reference)
        started = time.process_time()
        assert check.compare(rf"\boxed{{{answer}}}").verdict in {Verdict.FAILED, Verdict.PASSED}
        assert time.process_time() - started < LONGEST_SECONDS


def test_a_list_of_many_roots_is_compared_in_any_order() -> None:
    roots = [rf"\sqrt{{{n}}}" for n in range(2, 160)]
    mixed = list(roots)
    random.Random(1).shuffle(mixed)
    check = MathCheck(",".join(roots))
    started = time.process_time()
    assert check.compare(rf"\boxed{{{','.join(mixed)}}}").verdict is Verdict.PASSED
    mixed[0] = r"\sqrt{1000}"
    assert check.compare(rf"\boxed{{{','.join(mixed)}}}").verdict is Verdict.FAILED
    assert time.process_time() - started < LONGEST_SECONDS


_WORDS = """
    factorial squared cubed lakh k M percent sixths root pi i x mod base times plus minus more less
    hundred thousand million dozen half and or not is wrong maybe qq zz about ish th
"""
WORDS_AFTER = _WORDS.split()
CHANGES = st.one_of(
    st.sampled_from(WORDS_AFTER).map(lambda w: lambda t: rf"{t}\text{{ {w}}}"),
    st.sampled_from(WORDS_AFTER).map(lambda w: lambda t: f"{t} {w}"),
    st.sampled_from(["not ", "about ", "at least ", "half of ", "minus ", "over ", "never "]).map(
        lambda w: lambda t: rf"\text{{{w}}}{t}"
    ),
    st.sampled_from("0123456789").map(lambda d: lambda t: t + d),
    st.sampled_from(["!", "^2", r"\%", "'", "i", "x", r"\pi", "_7", ",1", "+1", "/2", "e1"]).map(
        lambda s: lambda t: t + s
    ),
    st.sampled_from(
        [
            "-",
            "1",
            "2,",
            r"\sqrt",
            "|x|=",
            "2x=",
            r"x\ne ",
            r"\pm ",
            ">",
            r"\le ",
            "1/",
            "0.",
            "6=",
            "~",
        ]
    ).map(lambda s: lambda t: s + t),
    st.sampled_from(["cancel", "phantom", "overline", "bar", "not", "sout", "hat"]).map(
        lambda c: lambda t: rf"\{c}{{{t}}}"
    ),
)


@given(st.integers(3, 9_999), CHANGES)  # 2! is 2
@QUICK
def test_a_change_of_a_right_answer_does_not_pass(number: int, change: object) -> None:
    assert callable(change)
    check = MathCheck(str(number))
    assert check.compare(rf"So \boxed{{{number}}}.").verdict is Verdict.PASSED
    assert check.compare(rf"So \boxed{{{change(str(number))}}}.").verdict is Verdict.FAILED
    assert check.compare(f"The answer is {change(str(number))}.").verdict is Verdict.FAILED


FRAMES = [
    "The answer is not {}.", "The answer is at least {}.", "It cannot be {}.", "{} is wrong.",
    "{}?",
    "The answer is the square root of {}.", "The answer is half of {}.", "The answer is {} or 1.",
    "I doubt that the answer is {}.", "If the answer is {}, so be it.", "The answer isn't {}.",
    "The answer is {} million.", "The answer is {} squared.", "The answer is divisible by {}.",
    "The answer is between {} and 10000.", "The answer is less than {}.", "Twice the answer is {}.",
]  # fmt: skip


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("number", ["5", "$5$"])
def test_a_sentence_that_does_not_state_the_number_does_not_pass(frame: str, number: str) -> None:
    assert MathCheck("5").compare(frame.format(number)).verdict is Verdict.FAILED


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("number", [r"\boxed{5}", r"$\boxed{5}$", r"\(\boxed{5}\)"])
def test_a_box_is_the_answer_whatever_the_prose_around_it_says(frame: str, number: str) -> None:
    text = frame.format(number)
    finding = MathCheck("5").compare(text)
    if text.endswith("?"):
        assert finding.verdict is Verdict.FAILED  # a question states nothing
    else:
        assert finding.verdict is Verdict.PASSED
        assert finding.evidence["answer_value"] == "5"


@given(
    st.lists(
        st.sampled_from(
            [
                "5",
                "not ",
                "the answer is ",
                r"\boxed{5}",
                r"\boxed{",
                "}",
                "$",
                r"\(",
                r"\)",
                "=",
                "-",
                " or ",
                ". ",
                "\n",
                "#### ",
                r"\text{",
                " cm",
                "%",
                "x",
                "!",
                "?",
                ", ",
                "</think>",
            ]
        ),
        max_size=12,
    )
)
@settings(QUICK, max_examples=examples(400))
def test_no_text_raises_and_equal_keys_have_equal_verdicts(pieces: list[str]) -> None:
    text = "".join(pieces)
    check = MathCheck("5")
    finding, key = check.compare(text), check.key(text)
    assert finding.verdict is not Verdict.BROKEN
    if key is not None:
        again = check.compare(rf"\boxed{{{key.removeprefix('equivalent:')}}}")
        assert (key == "equivalent:5") <= (again.verdict is finding.verdict is Verdict.PASSED)


CORPUS = Path(__file__).parent.parent / "assets" / "math_pairs.jsonl"
CORPUS_LINES = CORPUS.read_text(encoding="utf-8").splitlines()
SIGNS = [
    *"0123456789+-*/^_{}()[]|,.;:!%$&~'=<>\\ \nabxie",
    r"\frac",
    r"\text{",
    r"\boxed{",
    r"\in",
    r"\{",
]


@given(st.randoms(use_true_random=False))
@settings(QUICK, max_examples=examples(100))
def test_no_change_of_a_text_of_the_corpus_raises(draw: random.Random) -> None:
    rows = [json.loads(line) for line in draw.sample(CORPUS_LINES, 10)]
    for row in rows:
        text = str(row["text"])
        for _ in range(draw.randint(1, 3)):
            at = draw.randrange(len(text) + 1)
            text = (
                text[:at] + draw.choice(["", draw.choice(SIGNS)]) + text[at + draw.randint(0, 1) :]
            )
        check = MathCheck(row["answer"])
        check.key(text)
        assert check.compare(text).verdict is not Verdict.BROKEN


def answers_of(name: str) -> list[str]:
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["answer"] for line in lines]


@pytest.mark.skipif(not DATA.exists(), reason="the data is not here")
def test_the_competition_and_school_answers_pass_against_themselves_and_no_other() -> None:
    competition = answers_of("hmmt_feb_2024_2025.jsonl")
    checks = [MathCheck(answer) for answer in competition]
    for check, answer in zip(checks, competition, strict=True):
        same = [
            x for x in competition if check.compare(rf"\boxed{{{x}}}").verdict is Verdict.PASSED
        ]
        assert set(same) == {answer}
    for answer in answers_of("gsm8k_test.jsonl"):
        assert MathCheck(answer).compare(answer).verdict is Verdict.PASSED
