"""Checks of kind "math": the corpus, the rules, and the properties of equality."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

pytest.importorskip("mpmath")

from grv.backends.protocols import Problem
from grv.backends.verifiers.checks import parse_check
from grv.backends.verifiers.math.check import MathCheck, exact_form
from grv.backends.verifiers.math.exact import Undecided
from grv.backends.verifiers.math.matching import match
from grv.backends.verifiers.math.reading import read
from grv.backends.verifiers.math.scalars import Unreadable
from grv.backends.verifiers.math.statement import final_answer
from grv.backends.verifiers.math.writing import canonical
from grv.core.errors import UsageError
from grv.core.values import Verdict
from support.examples import examples

CORPUS = Path(__file__).parent.parent / "assets" / "math_pairs.jsonl"
QUICK = settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))


def pairs() -> list[dict[str, Any]]:
    with CORPUS.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def text_of(row: dict[str, Any]) -> str:
    text = row["text"]
    if isinstance(text, str):
        return text
    return str(text["before"] + text["repeat"] * text["times"] + text["after"])


def verdict(answer: str, text: str) -> str:
    return MathCheck(answer).compare(text).verdict.value


def own(reference: str, candidate: str) -> bool | None:
    """Whether they are equal; None where that cannot be told."""
    try:
        return match(read(canonical(reference)), read(canonical(candidate)), reference)
    except (Unreadable, Undecided):
        return None


def boxed(answer: str) -> str:
    return rf"So \boxed{{{answer}}}."


@pytest.mark.slow
def test_the_corpus_has_all_its_verdicts() -> None:
    rows = pairs()
    assert len(rows) >= 2_700
    wrong = []
    for row in rows:
        finding = MathCheck(row["answer"]).compare(text_of(row))
        if finding.verdict.value != row["verdict"]:
            wrong.append((row["answer"], text_of(row)[:80], finding))
    assert wrong == []


def test_every_reference_of_the_corpus_passes_against_itself() -> None:
    answers = {row["answer"] for row in pairs()}
    assert [a for a in answers if verdict(a, boxed(a)) != "passed"] == []


@pytest.mark.slow
def test_equal_keys_have_equal_verdicts_over_the_whole_corpus() -> None:
    """For every reference, the verdict of our own check is the same for all texts of a key."""
    rows = [row for row in pairs() if isinstance(row["text"], str)]
    keyed: dict[str, list[str]] = {}
    for row in rows:
        key = MathCheck("1").key(row["text"])
        if key is not None:
            keyed.setdefault(key, []).append(row["text"])
    shared = {key: texts for key, texts in keyed.items() if len(texts) > 1}
    assert len(shared) > 10
    for texts in shared.values():
        forms = {canonical(final_answer(text) or "") for text in texts}
        assert len(forms) == 1  # and the verdict depends on nothing else


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (r"\boxed{\frac{2}{4}}", "equivalent:1/2"),
        (r"\boxed{0.50}", "equivalent:1/2"),
        (r"\boxed{1,000}", "equivalent:1000"),
        (r"\boxed{50\%}", "equivalent:50%"),
        (r"\boxed{2\sqrt{3}}", r"equivalent:2\sqrt{3}"),
        ("nothing here", r"equivalent:\text{nothing here}"),
        ("", None),
        (r"\boxed{}", None),
    ],
)
def test_the_key_is_the_canonical_answer(text: str, key: str | None) -> None:
    assert MathCheck("7").key(text) == key


def test_the_key_of_a_very_long_answer_is_short() -> None:
    key = MathCheck("7").key(boxed("9" * 1_000_000))
    assert key is not None
    assert len(key) < 100


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"\boxed{1}. Then \boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{1}, no, \boxed{\frac{1}{2}}", r"1, \frac{1}{2}"),
        (r"\boxed{1} then \boxed{\frac{1}{2}}", r"1, \frac{1}{2}"),
        (r"\boxed{1}, not \boxed{2}", "1, 2"),
        (r"\boxed{1} and \boxed{2}", "1, 2"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\boxed{3}. It is not \boxed{}", None),
        (r"\boxed{3} and \boxed{4", None),
        (r"$x^2+y^2=2+3=\boxed{5}$ cm", "2+3=5"),
        (r"$x=\boxed{5}\text{ cm}$", r"5\text{ cm}"),
        (r"-\boxed{5}", None),
        (r"\sqrt{\boxed{5}}", None),
        (r"\boxed{5}^2", None),
        (r"The answer is $2.\overline{3}$.", r"$2.\overline{3}$"),
        (r"The answer is \(3!\). Good", r"\(3!\)"),
        ("The answer is $5. Then we pay $6.", "$5"),
        (r"\boxed{5}. Wait, no.", "5"),
        (r"Twice the answer is \boxed{5}.", "5"),
        (r"not" + 500 * " " + r"\boxed{5}", "5"),
        (r"-" + 500 * " " + r"\boxed{5}", None),
        ("The answer is 6.\n#### 5", "5"),
        ("#### 5\nThe answer is 6.", "6"),
        (r"The answer is 6. So \boxed{5}.", "5"),
        (r"\boxed{5}. The answer is six.", "six"),
        (", ".join(rf"\boxed{{{n}}}" for n in range(1, 10)), "1, 2, 3, 4, 5, 6, 7, 8, 9"),
        (r"\boxed{5}. So the answer is 5.", "5"),
        (r"\boxed{5}. So the answer is 6.", "6"),
        ("blah\n#### 1,234\n", "1,234"),
        ("The answer is $x = 5$, as said.", "$x = 5$"),
        ("the answer is 3.5.", "3.5"),
        ("The answer is at least 5.", "at least 5"),
        ("The answer is 18 dollars a day.", "18 dollars"),
        ("The answer is 5. Or 6.", "5"),
        ("one\ntwo 2\nthree!", "three"),
        ("It costs $3 + $4 = $7", "$3 + $4 = $7"),
        ("", None),
        ("\n \n", None),
    ],
)
def test_the_final_answer_is_where_the_rules_say(text: str, answer: str | None) -> None:
    assert final_answer(text) == answer


def test_exact_match_is_the_papers() -> None:
    def exact(answer: str, candidate: str) -> str:
        return MathCheck(answer, match="exact").compare(boxed(candidate)).verdict.value

    passing = [("1000", "1,000.0"), ("1/2", "2/4"), ("-2/3", "4/-6"), ("0.5", ".50")]
    passing += [
        (r"\frac{1}{2}", r"\frac{1}{2}"),
        ("5", r"\text{5}"),
        ("(1,2)", r"\left(1, 2\right)"),
    ]
    passing += [("12", "1,2"), ("1e5", "100000"), ("0.12345678901", "0.12345678902"), ("0", "-0.0")]
    failing = [("0.5", "1/2"), (r"\frac{1}{2}", r"\dfrac{1}{2}"), ("5", r"5^\circ"), ("5", "x=5")]
    failing += [
        ("12345678901234567890", "12345678901234567891"),
        ("1e999", "1e998"),
        ("1/0", "2/0"),
    ]
    assert [pair for pair in passing if exact(*pair) != "passed"] == []
    assert [pair for pair in failing if exact(*pair) != "failed"] == []


def test_the_keys_of_exact_match_are_its_strings() -> None:
    check = MathCheck("1/2", match="exact")
    assert check.key(boxed("0.5")) == "exact:0.5"
    assert check.key(boxed("2/4")) == "exact:1/2"
    assert exact_form("9" * 100_000) == "9" * 100_000


@pytest.mark.parametrize(
    "check",
    [
        {},
        {"answer": ""},
        {"answer": "  $ $ "},
        {"answer": None},
        {"answer": ["1"]},
        {"answer": "1", "match": "fuzzy"},
        {"answer": True},
        {"answer": "1", "mach": "exact"},
    ],
)
def test_a_bad_record_is_the_callers_mistake(check: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        parse_check(Problem("p", check={"kind": "math", **check}))


def test_a_record_may_give_a_number_and_a_solution() -> None:
    for answer in (18, "9 * 2 = <<9*2=18>>18\n#### 18"):
        check = MathCheck.of(Problem("p", check={"kind": "math", "answer": answer}))
        assert check.compare(boxed("18.0")).verdict is Verdict.PASSED


def test_a_finding_shows_both_answers() -> None:
    finding = MathCheck(r"\frac{1}{2}").compare(boxed("1/3"))
    assert finding.reason == "wrong answer"
    assert finding.evidence["answer_value"] == "1/3"
    assert finding.evidence["reference"] == r"\frac{1}{2}"
    json.dumps(dict(finding.evidence))


def test_it_works_off_the_main_thread_too() -> None:
    check, text = MathCheck(r"2\sqrt{2}"), boxed(r"\sqrt{8}")
    found: list[Verdict] = []
    thread = threading.Thread(target=lambda: found.append(check.compare(text).verdict))
    thread.start()
    thread.join()
    assert found == [Verdict.PASSED]


@pytest.mark.slow
def test_without_the_extra_one_line_says_what_to_install() -> None:
    script = """
import sys
sys.modules["mpmath"] = None
from grv.backends.verifiers.math import words, writing
from grv.backends.verifiers.math.check import MathCheck
assert MathCheck("1/2", match="exact").compare("2/4").verdict.value == "passed"
try:
    MathCheck("1/2")
except ValueError as exc:
    print(exc)
"""
    said = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=100
    )
    assert (
        said.stdout
        == "checks of kind 'math' need mpmath: pip install 'generate-rank-verify[math]'\n"
    )


numbers = st.fractions(max_denominator=10**6)
small = st.integers(1, 30)


def forms(value: Fraction) -> st.SearchStrategy[str]:
    """Ways to write a rational."""
    a, b = value.numerator, value.denominator
    sign, size = ("-" if a < 0 else ""), abs(a)

    def scaled(k: int) -> list[str]:
        whole, rest = divmod(size, b)
        ways = [
            f"{a * k}/{b * k}",
            rf"\frac{{{a * k}}}{{{b * k}}}",
            rf"{sign}\dfrac{{{size}}}{{{b}}}",
        ]
        ways += [rf"x = {sign}\frac{{{size * k}}}{{{b * k}}}", f"{sign}{size} / {b}"]
        if whole and rest:
            ways += [rf"{sign}{whole}\frac{{{rest * k}}}{{{b * k}}}", f"{sign}{whole} {rest}/{b}"]
        if b == 1:
            ways += [f"{a}.0", f"{a:,}", f"{sign}0{size}", f"{a}"]
        return ways

    return small.flatmap(lambda k: st.sampled_from(scaled(k)))


@given(st.data(), numbers)
@QUICK
def test_a_rational_passes_however_it_is_written(data: st.DataObject, value: Fraction) -> None:
    reference, candidate = data.draw(forms(value)), data.draw(forms(value))
    assert own(reference, candidate) is True


@given(st.data(), numbers, numbers)
@QUICK
def test_another_rational_fails(data: st.DataObject, value: Fraction, other: Fraction) -> None:
    assume(value != other)
    assert verdict(data.draw(forms(value)), boxed(data.draw(forms(other)))) == "failed"


@given(st.integers(0, 10**9), st.integers(0, 999), st.sampled_from(["", "-"]))
@QUICK
def test_a_decimal_passes_with_any_zeros_and_fails_with_any_other_digit(
    whole: int, thousandths: int, sign: str
) -> None:
    decimal = f"{sign}{whole}.{thousandths:03d}"
    assert verdict(decimal, boxed(decimal + "000")) == "passed"
    assert verdict(decimal, boxed(decimal + "001")) == "failed"


@given(st.integers(-50, 50), st.integers(1, 50), small, st.integers(2, 60), small)
@QUICK
def test_a_surd_passes_however_it_is_written(a: int, b: int, c: int, n: int, k: int) -> None:
    reference = rf"\frac{{{a}+{b}\sqrt{{{n * k * k}}}}}{{{c}}}"
    assert own(reference, rf"\frac{{{a}}}{{{c}}}+\frac{{{b * k}\sqrt{{{n}}}}}{{{c}}}") is True
    assert own(reference, rf"({b * k}\sqrt{{{n}}}-({-a}))/{c}") is True
    assert own(reference, rf"\frac{{{a}+{b}\sqrt{{{n * k * k + 1}}}}}{{{c}}}") is False
    assert own(reference, rf"\frac{{{a}-{b}\sqrt{{{n * k * k}}}}}{{{c}}}") is False


@given(st.lists(numbers, min_size=2, max_size=6), st.randoms(use_true_random=False))
@QUICK
def test_order_counts_in_points_and_not_in_sets(values: list[Fraction], random: Any) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)
    listed, mixed = ",\\ ".join(map(str, values)), ", ".join(map(str, shuffled))
    assert own(rf"\{{{listed}\}}", rf"\{{{mixed}\}}") is True
    assert own(listed, mixed) is True
    assert own(f"({listed})", rf"\left({mixed}\right)") is (values == shuffled)
    changed = ", ".join(map(str, [values[0] + 1, *values[1:]]))
    assert own(rf"\{{{listed}\}}", rf"\{{{changed}\}}") is False
    assert own(f"({listed})", f"({changed})") is False


@given(numbers, numbers, st.sampled_from("(["), st.sampled_from(")]"))
@QUICK
def test_the_ends_of_an_interval_count(
    a: Fraction, b: Fraction, opening: str, closing: str
) -> None:
    interval = f"{opening}{a},{b}{closing}"
    assert own(interval, f"{opening} {a} , {b} {closing}") is True
    other = {"(": "[", "[": "("}[opening]
    assert own(interval, f"{other}{a},{b}{closing}") is False


@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(1, 9))
@QUICK
def test_equations_are_equal_up_to_a_factor(a: int, b: int, k: int) -> None:
    assume(a and b)
    assert (
        own(f"{a}x+{b}y=1".replace("+-", "-"), f"{a * k}x+{b * k}y={k}".replace("+-", "-")) is True
    )
    assert own(f"{a}x+{b}y=1".replace("+-", "-"), f"{a}x+{b}y=2".replace("+-", "-")) is False


@given(st.text(max_size=60))
@QUICK
def test_no_text_breaks_the_judge(text: str) -> None:
    check = MathCheck("271828")
    finding = check.compare(text)
    assert finding.verdict is Verdict.FAILED or "271828" in canonical(final_answer(text) or "")
    assert check.compare(boxed(text)).verdict in {Verdict.FAILED, finding.verdict}
    check.key(text)


@pytest.mark.slow
@given(
    st.lists(
        st.sampled_from(
            [
                *"0123456789xyie+-*/^!(){}[]|,=<>%_' .",
                r"\frac",
                r"\sqrt",
                r"\pi",
                r"\pm",
                r"\{",
                r"\}",
                r"\text{cm}",
                r"\cup",
                r"\infty",
                r"\sin",
                r"\ln",
                r"^{\circ}",
                r"\binom",
                "999!",
                "9^",
            ]
        ),
        max_size=25,
    )
)
@example(["0", "=", r"\text{cm}"])
@settings(QUICK, max_examples=examples(300))
def test_any_tokens_are_read_or_refused_in_bounded_time(tokens: list[str]) -> None:
    text = "".join(tokens)
    started = time.monotonic()
    own("42", text)
    assert own(text, text) in {True, None} or "=" in text  # `0 = 1` is no answer at all
    assert time.monotonic() - started < 10
