"""Verify by what a text says: checks of kind "text".

`{"kind": "text", "contains_all": ["hello"], "matches": ["wor[lm]d"], "normalise": ["case"]}`. Every
field that is given must hold. `equals` and `contains_...` compare after the steps of `normalise`;
`matches` and `number` look at the text as it is. A model's thoughts at the beginning are left out.

Expressions are RE2's, whose time is proportional to the length of the text. A text too long for
them under `limits.seconds`, or longer than `limits.output_mb`, failed.
"""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

from ...core.errors import UsageError
from ...core.values import Verdict
from ...files import is_number, shown
from ...text import checksum
from ..protocols import Finding, Problem, Usage
from ..sandbox.limits import DEFAULT_LIMITS, RunLimits
from .answers import FREE, TooMuchWork, Work, compiled, is_close, spoken, texts, tolerance_of
from .checks import TextCheck
from .programs.findings import clean

_PHRASES = ("contains_all", "contains_any", "contains_none")
_RULES = ("equals", *_PHRASES, "matches", "number")
NORMALISERS = ("unicode", "case", "punctuation", "space")  # in the order in which they are applied
_TOLERANCE = 1e-6
_MOST_MARKS = 30  # combining marks in a row, as in Unicode's stream-safe format
_NUMBER = re.compile(
    r"(?<![\w.])[-+−]?(?:\d{1,3}(?:,\d{3})++|\d++)?+(?:\.\d++)?+(?:[eE][-+]?\d++)?+(?![\w])",
    re.ASCII,
)
_LONGEST_NUMBER = 400


@dataclass(frozen=True)
class TextRules(TextCheck):
    """Passes a text for which all rules hold.

    Attributes:
        rules: the fields of the record: `equals`, `contains_all` and so on.
        normalise: how texts are made alike before they are compared.
        tolerance: for `number`, relative to it.
        patterns: the expressions of `matches`, compiled.
        limits: `seconds` and `output_mb` apply.
    """

    is_limited: ClassVar[bool] = True

    rules: Mapping[str, Any]
    normalise: tuple[str, ...] = ()
    tolerance: float = _TOLERANCE
    patterns: tuple[Any, ...] = ()
    limits: RunLimits = DEFAULT_LIMITS

    @classmethod
    def of(cls, problem: Problem, limits: RunLimits = DEFAULT_LIMITS) -> TextRules:
        """The check of a problem; a UsageError names the field that is wrong."""
        record = problem.check
        if not any(name in record for name in _RULES):
            raise UsageError(f"no rule: give at least one of {', '.join(_RULES)}")
        steps = texts(record, "normalise")
        for step in steps:
            if step not in NORMALISERS:
                names = ", ".join(NORMALISERS)
                raise UsageError(f"normalise must be some of {names}, not {shown(step)}")
        rules: dict[str, Any] = {}
        for name in (*_PHRASES, "matches"):
            if name in record:
                rules[name] = texts(record, name)
        for name, is_right, what in (
            ("equals", lambda value: isinstance(value, str), "a text"),
            ("number", is_number, "a number"),
        ):
            if name in record:
                if not is_right(record[name]):
                    raise UsageError(f"{name} must be {what}, not {shown(record[name])}")
                rules[name] = record[name]
        made = cls(rules, steps, tolerance_of(record, _TOLERANCE), (), limits)
        made._check_phrases()
        return replace(made, patterns=tuple(map(_pattern, rules.get("matches", ()))))

    def _check_phrases(self) -> None:
        """Refuse a phrase of which nothing is left: every text would contain it."""
        for name in _PHRASES:
            for phrase in self.rules.get(name, ()):
                if not self._plain(phrase):
                    raise UsageError(f"{name}: nothing is left of {shown(phrase)} by normalise")

    def compare(self, text: str) -> Finding:
        """The finding on a candidate's text."""
        started = time.monotonic()
        evidence: dict[str, Any] = {}
        wrong = self._first_broken_rule(text, Work(self.limits))
        usage = Usage(seconds=time.monotonic() - started)
        if wrong is None:
            return Finding(Verdict.PASSED, "", {"rules": len(self.rules)}, usage)
        reason, expected = wrong
        if expected:
            evidence["expected"] = clean(expected)
        return Finding(Verdict.FAILED, reason, evidence, usage)

    def key(self, text: str) -> str | None:
        """Texts with the same answer fail together."""
        return f"text:{checksum(spoken(text))}"

    def refutation(self, text: str) -> str | None:
        """An empty text fails, if something must be in it."""
        needs = {"contains_all", "contains_any", "number"} & self.rules.keys()
        return "has no text" if needs and not spoken(text).strip() else None

    def failure(self, text: str) -> str | None:
        """Why a text fails, as far as a moment's work can tell; None if it may pass."""
        reason, expected = self._first_broken_rule(text, Work(FREE)) or ("", "")
        if not reason or reason == "timeout":
            return None
        return f"{reason}: {shown(expected)}" if expected else reason

    def _first_broken_rule(self, text: str, work: Work) -> tuple[str, str] | None:
        """The first rule that does not hold, as a reason and what was expected; None if all do."""
        if len(text) > self.limits.output_bytes:
            return "too long", ""
        try:
            return self._first_broken(text, work)
        except TooMuchWork:
            return "timeout", ""

    def _first_broken(self, text: str, work: Work) -> tuple[str, str] | None:
        answer = spoken(text)
        plain = self._plain(answer)
        if plain is None:
            return "too many combining marks", ""
        rules = self.rules
        if "equals" in rules and plain != self._plain(rules["equals"]):
            return "not equal", rules["equals"]
        for phrase in rules.get("contains_all", ()):
            work.check()
            if self._phrase(phrase) not in plain:
                return "does not contain a phrase", phrase
        for phrase in rules.get("contains_none", ()):
            work.check()
            if self._phrase(phrase) in plain:
                return "contains a phrase that it must not", phrase
        phrases = rules.get("contains_any", ())
        if phrases and not any(self._phrase(phrase) in plain for phrase in phrases):
            return "contains none of the phrases", ", ".join(phrases)
        if "number" in rules and not self._has_number(answer):
            return "wrong number", str(rules["number"])
        return self._first_without_match(answer, work)

    def _first_without_match(self, answer: str, work: Work) -> tuple[str, str] | None:
        for pattern, source in zip(self.patterns, self.rules.get("matches", ()), strict=True):
            work.check()
            if not work.search(pattern, answer):
                return "does not match an expression", source
        return None

    def _has_number(self, answer: str) -> bool:
        """Whether the last number in a text is the expected one."""
        last = ""
        for found in _NUMBER.finditer(answer):
            if any(letter.isdigit() for letter in found[0]):
                last = found[0]
        if not last or len(last) > _LONGEST_NUMBER:
            return False
        number = float(last.replace(",", "").replace("−", "-"))
        return is_close(float(self.rules["number"]), number, self.tolerance)

    def _phrase(self, phrase: str) -> str:
        return self._plain(phrase) or phrase

    def _plain(self, text: str) -> str | None:
        """A text after the steps of `normalise`; None if it has too many combining marks."""
        for name in NORMALISERS:
            if name not in self.normalise:
                continue
            if name == "unicode" and _longest_row_of_marks(text) > _MOST_MARKS:
                return None  # sorting them takes time quadratic in their number
            text = _STEPS[name](text)
        return text


def _without_punctuation(text: str) -> str:
    return "".join(each for each in text if not unicodedata.category(each).startswith("P"))


_STEPS = {
    "unicode": partial(unicodedata.normalize, "NFKC"),
    "case": str.casefold,
    "punctuation": _without_punctuation,
    "space": lambda text: " ".join(text.split()),
}


def _longest_row_of_marks(text: str) -> int:
    if text.isascii():
        return 0
    longest = row = 0
    for letter in text:
        row = row + 1 if unicodedata.combining(letter) else 0
        longest = max(longest, row)
    return longest


def _pattern(source: str) -> Any:
    try:
        return compiled(source)
    except UsageError as error:
        raise UsageError(f"matches: {error}") from None
