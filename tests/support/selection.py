"""Which files and which cases a run needs, so that the others cost nothing; names of cases."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TypeVar

_FILES_MARKS = re.compile(r"^pytestmark = .*?(?:\n\n|\Z)", re.MULTILINE | re.DOTALL)

T = TypeVar("T")


def has_tests(text: str, marks: str) -> bool:
    """Whether a file may have tests that an expression of marks takes: `not slow and alone`.

    A file has none if all its tests have a mark that is refused, or none has one that is wanted.
    """
    if " or " in marks:
        return True
    refused = set(re.findall(r"\bnot (\w+)", marks))
    wanted = set(re.findall(r"\w+", marks)) - refused - {"not", "and"}
    head = _FILES_MARKS.search(text)
    of_all = set(re.findall(r"mark\.(\w+)", head.group())) if head else set()
    return not of_all & refused and all(f"mark.{mark}" in text for mark in wanted)


def spread(cases: Sequence[T], most: int) -> list[T]:
    """At most so many of the cases, always the same ones, from everywhere and in order.

    Each comes from a random place in its part of the list. With a fixed step, cases made by
    several decorators would share a parameter.
    """
    if most <= 0 or len(cases) <= most:
        return list(cases)
    ends = [part * len(cases) // most for part in range(most + 1)]
    places = random.Random(len(cases))
    return [cases[places.randrange(start, end)] for start, end in pairwise(ends)]


def few_cases(names: Iterable[str], most: int) -> set[str]:
    """The tests that run if no parametrised test has more cases than `most`.

    Args:
        names: as pytest prints them, in the order in which the files have them.
        most: 0 leaves none out.
    """
    families: dict[str, list[str]] = {}
    for name in names:
        families.setdefault(name.partition("[")[0], []).append(name)
    return {name for cases in families.values() for name in spread(cases, most)}


def short(value: object) -> str:
    """A name for a case: its value, cut. Workers and reports repeat the names of all tests."""
    text = str(value)
    return text if len(text) <= 100 else f"{text[:30]!a}-and-so-on-to-{len(text)}"
