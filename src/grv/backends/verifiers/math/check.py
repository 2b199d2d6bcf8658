r"""Verify by comparing final answers in mathematics: checks of kind "math".

`{"kind": "math", "answer": "\\frac{1}{2}", "match": "equivalent"}`. The module `statement` finds
the last statement of the candidate's text. What it states is the `answer_value` of the evidence.
The verdict is about this value, not about the text around it. Then:

* If it is written like the reference, up to spaces, typefaces, separators and the form of numbers
  (`writing`), it passed.
* Otherwise both are read by one grammar (`reading`, `scalars`) and compared: structures by
  `matching`, sets of numbers by `regions`, values by `equality`, which proves that they are equal
  up to a chance below 2^-40.
* An answer that is not fully understood, and one whose equality is not decided, failed.

A reference that is not understood is compared as text. One with two readings is an error.

Nothing of a candidate is executed, and all work is limited: an answer has at most 2,000 characters,
numbers have limited digits and bits, a comparison has limited work. Beyond that an answer failed.

`"match": "exact"` compares strings: without commas and spaces; integers, decimals to ten digits,
and fractions `a/b` in lowest terms. `"match": "published"` gives the labels of the paper's
published code (`published`): it reads the last box only, and compares strings in nearly that form.
"""

from __future__ import annotations

import decimal
import importlib
import math
import re
import time
from dataclasses import replace
from typing import Any, Literal, get_args

from ....core.errors import UsageError, installing
from ....core.values import Verdict
from ....text import checksum
from ...protocols import Finding, Problem, Usage
from ..checks import TextCheck
from . import published
from .exact import Undecided
from .matching import match as matched
from .reading import read
from .scalars import Ambiguous, Unreadable
from .statement import final_answer, reference_answer
from .tree import Answer
from .writing import LONGEST, canonical

Match = Literal["equivalent", "exact", "published"]
_SHOWN = 200  # characters of an answer in evidence and keys


class MathCheck(TextCheck):
    """Compares a candidate's final answer with a reference.

    Args:
        answer: the reference, in LaTeX or plain; a box or `####` in it marks the answer.
        match: "equivalent", "exact" for a comparison of strings, or "published" for the labels of
            the paper's published code.

    Raises:
        UsageError: the answer is empty, `match` is unknown, or mpmath is not installed.
    """

    def __init__(self, answer: str, *, match: Match = "equivalent") -> None:
        if match not in get_args(Match):
            raise UsageError(f"match must be one of {', '.join(get_args(Match))}, not {match!r}")
        self.answer = answer.strip() if match == "published" else reference_answer(answer)
        self.match = match
        self._text = canonical(self.answer)
        if not self._text:
            raise UsageError("the answer of a check of kind 'math' is empty")
        self._reading: Answer | None = None
        if match == "equivalent":
            try:
                importlib.import_module("mpmath.libmp")
            except ImportError:
                message = f"checks of kind 'math' need mpmath: {installing('math')}"
                raise UsageError(message) from None
            try:
                self._reading = read(self._text)
            except Ambiguous as error:
                raise UsageError(
                    f"the answer {_short(self.answer)!r} has {error}: write one of them"
                ) from None
            except Unreadable:
                pass  # then only the same text passes

    @classmethod
    def of(cls, problem: Problem) -> MathCheck:
        """The check of a problem."""
        answer = problem.check.get("answer")
        if isinstance(answer, int | float) and not isinstance(answer, bool):
            answer = repr(answer)
        if not isinstance(answer, str):
            raise UsageError(f"a check of kind 'math' needs an answer, a string, not {answer!r}")
        return cls(answer, match=problem.check.get("match", "equivalent"))

    def key(self, text: str) -> str | None:
        """The canonical answer; None if there is none. Texts with equal keys fail together."""
        answer = self._stated(text)
        if answer is None:
            return None
        form = canonical(answer) if self.match == "equivalent" else self._form(answer)
        if len(form) > _SHOWN:
            form = f"sha256:{checksum(form)}"
        return f"{self.match}:{form}"

    def refutation(self, text: str) -> str | None:
        """A text without a final answer fails."""
        return "has no answer" if self._stated(text) is None else None

    def _stated(self, text: str) -> str | None:
        """The answer that a text states; None if there is none."""
        return published.boxed(text) if self.match == "published" else final_answer(text)

    def _form(self, answer: str) -> str:
        """The form of an answer whose text is compared."""
        return published.form(answer) if self.match == "published" else exact_form(answer)

    def compare(self, text: str) -> Finding:
        """The finding on a candidate's text."""
        started = time.monotonic()
        answer = self._stated(text)
        if answer is None:
            finding = Finding(Verdict.FAILED, "no answer")
        elif self.match == "equivalent":
            finding = self._judge(canonical(answer))
        else:
            same = self._form(answer) == self._form(self.answer)
            finding = _passed("same text") if same else Finding(Verdict.FAILED, "wrong answer")
        evidence: dict[str, Any] = {
            "answer_value": None if answer is None else answer[:LONGEST],
            "reference": _short(self.answer),
            **finding.evidence,
        }
        usage = Usage(seconds=time.monotonic() - started)
        return replace(finding, evidence=evidence, usage=usage)

    def _judge(self, text: str) -> Finding:
        """The verdict on an answer. It depends only on the canonical text."""
        if text == self._text:
            return _passed("same text")
        if self._reading is None:
            return Finding(Verdict.FAILED, "wrong answer", {"compared": "as text"})
        try:
            if matched(self._reading, read(text), self._text):
                return _passed("equal")
        except Unreadable as exc:
            return Finding(Verdict.FAILED, "answer not understood", {"detail": str(exc)})
        except Undecided as exc:
            return Finding(Verdict.FAILED, "equality not decided", {"detail": str(exc)})
        return Finding(Verdict.FAILED, "wrong answer")


def _passed(how: str) -> Finding:
    return Finding(Verdict.PASSED, "right answer", {"compared": how})


def _short(answer: str) -> str:
    if len(answer) <= _SHOWN:
        return answer
    return f"{answer[:_SHOWN]}... ({len(answer)} characters)"


_WRAPPED = re.compile(r"\\(?:text|mathrm)\s*\{([^{}]*)\}")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_RATIO = re.compile(r"(-?[0-9]{1,1000})/(-?[0-9]{1,1000})")
_TEN_DIGITS = decimal.Context(prec=10)


def exact_form(answer: str) -> str:
    r"""The form of an answer that `"match": "exact"` compares.

    >>> exact_form("$1,000.0$"), exact_form("4/-6"), exact_form(r"\left( 1, 2 \right)")
    ('1000', '-2/3', '(12)')
    """
    text = _WRAPPED.sub(r"\1", answer.strip())
    for dropped in (r"\left", r"\right", ",", " "):
        text = text.replace(dropped, "")
    if len(text) > 1 and text.startswith("$") and text.endswith("$"):
        text = text[1:-1]
    if _INTEGER.fullmatch(text):
        digits = text.lstrip("+-").lstrip("0") or "0"
        return f"-{digits}" if text.startswith("-") and digits != "0" else digits
    if len(text) <= LONGEST and _DECIMAL.fullmatch(text):
        number = decimal.Decimal(text)
        if number == number.to_integral_value():
            return f"{number:.0f}" if number else "0"
        return f"{_TEN_DIGITS.create_decimal(number).normalize()}"
    ratio = _RATIO.fullmatch(text)
    if ratio and int(ratio[2]):
        above = int(ratio[1])
        below = int(ratio[2])
        common = math.gcd(above, below) * (1 if below > 0 else -1)
        return f"{above // common}/{below // common}"
    return text
