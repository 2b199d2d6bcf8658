r"""Verify by comparing final answers in mathematics: checks of kind "math".

`{"kind": "math", "answer": "\\frac{1}{2}", "match": "equivalent"}`. The module `text` finds the
final answer in the candidate's text. Then:

* If it is written like the reference, up to spaces, typefaces, separators and the form of numbers
  (`writing`), it passed.
* Otherwise both are read (`reading`) and compared (`matching`, `values`), with exact rationals or
  as many bits as needed.
* An answer that is not fully understood passes only if it is the same text.

Nothing of a candidate is executed, and all work is limited: an answer has at most 2,000 characters,
numbers have limited digits and bits, a comparison has limited work. Beyond that an answer failed.

`"match": "exact"` compares strings as the paper's published code does: without commas and spaces;
integers, decimals to ten digits, and fractions `a/b` in lowest terms. (That code fails a text
without a box; here its final answer is judged.)
"""

from __future__ import annotations

import contextlib
import decimal
import importlib.util
import math
import re
import time
from dataclasses import replace
from typing import Literal

from ....core.errors import UsageError, installing
from ....core.values import Verdict
from ....text import checksum
from ...protocols import Finding, Problem, Usage
from ..checks import TextCheck
from .matching import match as matched
from .reading import read
from .scalars import Unreadable
from .text import final_answer, reference_answer
from .tree import Answer
from .writing import LONGEST, canonical

_SHOWN = 200  # characters of an answer in evidence and keys


class MathCheck(TextCheck):
    """Compares a candidate's final answer with a reference.

    Args:
        answer: the reference, in LaTeX or plain; a box or `####` in it marks the answer.
        match: "equivalent", or "exact" for the paper's comparison of strings.

    Raises:
        UsageError: the answer is empty, `match` is unknown, or mpmath is not installed.
    """

    def __init__(
        self, answer: str, *, match: Literal["equivalent", "exact"] = "equivalent"
    ) -> None:
        if match not in {"equivalent", "exact"}:
            raise UsageError(f'match must be "equivalent" or "exact", not {match!r}')
        self.answer = reference_answer(answer)
        self.match = match
        self._text = canonical(self.answer)
        if not self._text:
            raise UsageError("the answer of a check of kind 'math' is empty")
        self._reading: Answer | None = None
        if match == "equivalent":
            if importlib.util.find_spec("mpmath") is None:
                raise UsageError(f"checks of kind 'math' need mpmath: {installing('math')}")
            with contextlib.suppress(Unreadable):
                self._reading = read(self._text)

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
        answer = final_answer(text)
        if answer is None:
            return None
        form = exact_form(answer) if self.match == "exact" else canonical(answer)
        if len(form) > _SHOWN:
            form = f"sha256:{checksum(form)}"
        return f"{self.match}:{form}"

    def refutation(self, text: str) -> str | None:
        """A text without a final answer fails."""
        return "has no answer" if final_answer(text) is None else None

    def compare(self, text: str) -> Finding:
        """The finding on a candidate's text."""
        started = time.monotonic()
        answer = final_answer(text)
        if answer is None:
            finding = Finding(Verdict.FAILED, "no answer")
        elif self.match == "exact":
            same = exact_form(answer) == exact_form(self.answer)
            finding = _passed("same text") if same else Finding(Verdict.FAILED, "wrong answer")
        else:
            finding = self._judge(canonical(answer))
        evidence = {"answer": _short(answer), "reference": _short(self.answer), **finding.evidence}
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
        return Finding(Verdict.FAILED, "wrong answer")


def _passed(how: str) -> Finding:
    return Finding(Verdict.PASSED, "right answer", {"compared": how})


def _short(answer: str | None) -> str | None:
    if answer is None or len(answer) <= _SHOWN:
        return answer
    return f"{answer[:_SHOWN]}... ({len(answer)} characters)"


_WRAPPED = re.compile(r"\\(?:text|mathrm)\s*\{([^{}]*)\}")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_RATIO = re.compile(r"(-?[0-9]{1,1000})/(-?[0-9]{1,1000})")
_TEN_DIGITS = decimal.Context(prec=10)


def exact_form(answer: str) -> str:
    r"""The form of an answer that the paper's code compares.

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
        above, below = int(ratio[1]), int(ratio[2])
        common = math.gcd(above, below) * (1 if below > 0 else -1)
        return f"{above // common}/{below // common}"
    return text
