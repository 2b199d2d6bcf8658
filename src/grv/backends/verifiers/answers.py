"""What checks of texts share: the answer in a text, fields of a record, and a limit on work."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ...core.errors import UsageError, installing
from ...files import is_number, shown
from ..sandbox.limits import RunLimits
from .programs.blocks import THOUGHTS, visible_blocks

FREE = RunLimits(seconds=0.1)  # what a refutation may take
_LONGEST_PATTERN = 10_000
_STATES_PER_SECOND = 2e8  # that RE2 visits at worst: states of the expression times characters
_THOUGHTS = re.compile(rf"\s*<({'|'.join(THOUGHTS)})>", re.IGNORECASE)


class TooMuchWork(Exception):
    """A comparison took more processor time than its check allows."""


class Work:
    """Counts the processor time of one comparison, which does not depend on other load.

    Args:
        limits: what the check allows.
    """

    def __init__(self, limits: RunLimits) -> None:
        others = limits.seconds if limits.cpu_seconds is None else limits.cpu_seconds
        seconds = min(limits.seconds, others)
        self._end = time.thread_time() + seconds
        self._states = seconds * _STATES_PER_SECOND

    def check(self) -> None:
        """Raise `TooMuchWork` if the time is used up."""
        if time.thread_time() > self._end:
            raise TooMuchWork

    def search(self, pattern: Any, text: str) -> bool:
        """Whether an expression of RE2 occurs in a text; `TooMuchWork` before it takes too long."""
        whole = text.encode("utf-8", "replace").decode("utf-8")
        self._states -= pattern.programsize * len(whole)
        if self._states < 0:
            raise TooMuchWork
        return pattern.search(whole) is not None


def compiled(pattern: str) -> Any:
    """An expression of RE2; a UsageError if it is none."""
    try:
        import re2
    except ImportError:
        raise UsageError(f"an expression needs google-re2: {installing('text')}") from None
    if len(pattern) > _LONGEST_PATTERN:
        raise UsageError(f"an expression has more than {_LONGEST_PATTERN:,} characters")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        said = error.args[0] if error.args else "wrong"
        why = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        raise UsageError(f"{shown(pattern)} is no expression of RE2: {why}") from None
    except UnicodeEncodeError:
        raise UsageError(f"{shown(pattern)} is not text") from None


def spoken(text: str) -> str:
    """A text without the thoughts of the model at its beginning; "" if they do not end.

    >>> spoken("<think>Is it 3?</think>It is 4.")
    'It is 4.'
    """
    thoughts = _THOUGHTS.match(text)
    if thoughts is None:
        return text
    end = text.lower().rfind(f"</{thoughts[1].lower()}>")
    return "" if end < 0 else text[end:].partition(">")[2]


def code_in(text: str, languages: Sequence[str]) -> list[str]:
    """The code blocks of a text in one of these languages, or in none, in order."""
    blocks = [block for block in visible_blocks(text) if block.fenced]
    named = [block.source for block in blocks if block.language in languages]
    return named or [block.source for block in blocks if not block.language]


def texts(record: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """A field that is a list of texts; empty if it is not given."""
    values = record.get(name)
    if values is None:
        return ()
    if not isinstance(values, list) or not values:
        raise UsageError(f"{name} must be a list with at least one text, not {shown(values)}")
    for number, value in enumerate(values):
        if not isinstance(value, str) or not value:
            raise UsageError(f"{name}[{number}] must be a text, not {shown(value)}")
    return tuple(values)


def required_text(record: Mapping[str, Any], name: str) -> str:
    """A field that must be a text."""
    value = record.get(name)
    if not isinstance(value, str) or not value.strip():
        said = "is missing" if value is None else f"must be a text, not {shown(value)}"
        raise UsageError(f"{name} {said}")
    return value


def one_of(record: Mapping[str, Any], name: str, choices: Sequence[str]) -> str:
    """A field that must be one of some names."""
    value = record.get(name)
    if not isinstance(value, str) or value not in choices:
        raise UsageError(f"{name} must be one of {', '.join(choices)}, not {shown(value)}")
    return value


def tolerance_of(record: Mapping[str, Any], default: float) -> float:
    """The field `tolerance`."""
    value = record.get("tolerance", default)
    if not is_number(value) or not value >= 0:
        raise UsageError(f"tolerance must be a number and not negative, not {shown(value)}")
    return float(value)


def is_close(expected: float, got: float, tolerance: float) -> bool:
    """Whether two numbers agree, relative to the expected one."""
    return expected == got or abs(expected - got) <= tolerance * abs(expected)
