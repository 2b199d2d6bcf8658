"""Made-up problems: random, adversarial, tied, exhausted, all wrong; and populations of them.

A *world* is plain data: what a generator would give and what a verifier would say, in order of
arrival. `drivers.py` runs policies in it. A *population* is a law of problems, each of which has a
known law of candidates; `populations.py` has them.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.errors import UsageError
from ..core.values import (
    Event,
    Generate,
    Generated,
    Rescore,
    Rescored,
    Task,
    Verdict,
    Verified,
    Verify,
)
from ..experiments.populations import FITTED as POPULATIONS
from ..experiments.populations import Binormals as Population
from ..experiments.populations import population

if TYPE_CHECKING:
    from ..logs.log import LoggedProblem

__all__ = [
    "POPULATIONS",
    "SIGNS",
    "Population",
    "World",
    "all_wrong",
    "empty",
    "flat",
    "inverted",
    "labelled",
    "needle",
    "population",
    "star",
    "tied",
]

_MARKS = {"+": Verdict.PASSED, "-": Verdict.FAILED, "?": Verdict.BROKEN}
SIGNS = {verdict: mark for mark, verdict in _MARKS.items()}
_CANDIDATE = re.compile(r"([-+]?(?:inf|\d+(?:\.\d*)?(?:e[-+]?\d+)?))([-+?])(\S*)")


@dataclass(frozen=True, repr=False)
class World:
    """The candidates of one problem, in order of arrival. After the last one there are no more.

    Attributes:
        scores: one a candidate; no NaN.
        verdicts: one a candidate; what a verifier says of it, each time it is asked.
        keys: one a candidate, or none at all. No key both passes and fails; a broken verdict says
            nothing of its key.
        second: one second score a candidate, for cascades; the first ones where not given.
    """

    scores: tuple[float, ...]
    verdicts: tuple[Verdict, ...]
    keys: tuple[str | None, ...] = ()
    second: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        sizes = {len(self.scores), len(self.verdicts)}
        sizes |= {len(each) for each in (self.keys, self.second) if each}
        if len(sizes) > 1:
            raise UsageError(
                f"{len(self.scores)} scores, {len(self.verdicts)} verdicts, {len(self.keys)} keys"
                + (f", {len(self.second)} second scores" if self.second else "")
            )
        if any(math.isnan(score) for score in self.scores):
            raise UsageError("a score of a world is NaN")
        labels: dict[str, Verdict] = {}
        for key, verdict in zip(self.keys, self.verdicts, strict=False):
            if key is None:
                continue
            if not key or re.search(r"\s", key):
                raise UsageError(f"a key of a world is one word, not {key!r}")
            if verdict is not Verdict.BROKEN and labels.setdefault(key, verdict) is not verdict:
                raise UsageError(f"the key {key!r} both passes and fails")

    @classmethod
    def of(cls, text: str) -> World:
        """A world as it is written: scores, each with a mark and, if it has one, its key.

        `+` passes, `-` fails, `?` is broken.

        >>> World.of("3- 2.5+ 2?a 1-a").keys
        (None, None, 'a', 'a')
        """
        found = [_CANDIDATE.fullmatch(word) for word in text.split()]
        matches = [match for match in found if match is not None]
        if len(matches) < len(found):
            wrong = text.split()[found.index(None)]
            raise UsageError(f"not a candidate: {wrong!r}; write a score and one of +, -, ?")
        keys = tuple(match[3] or None for match in matches)
        return cls(
            tuple(float(match[1]) for match in matches),
            tuple(_MARKS[match[2]] for match in matches),
            keys if any(keys) else (),
        )

    def __repr__(self) -> str:
        return f"World.of({str(self)!r})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """IPython's hook; hypothesis would show a dataclass field by field, whatever its repr."""
        printer.text(repr(self))

    def __str__(self) -> str:
        keys = self.keys or (None,) * len(self)
        return " ".join(
            f"{_number(score)}{SIGNS[verdict]}{key or ''}"
            for score, verdict, key in zip(self.scores, self.verdicts, keys, strict=True)
        )

    def __len__(self) -> int:
        """How many candidates there are."""
        return len(self.scores)

    def __add__(self, later: World) -> World:
        """This world, with more candidates to come after its own."""
        keys = self.keys or (None,) * len(self)
        more = later.keys or (None,) * len(later)
        return World(
            self.scores + later.scores,
            self.verdicts + later.verdicts,
            keys + more if self.keys or later.keys else (),
            (self.second or self.scores) + (later.second or later.scores)
            if self.second or later.second
            else (),
        )

    @property
    def solvable(self) -> bool:
        """Whether any candidate passes."""
        return Verdict.PASSED in self.verdicts

    def first(self, n: int) -> World:
        """The world whose generator ends after `n` candidates."""
        return World(self.scores[:n], self.verdicts[:n], self.keys[:n], self.second[:n])

    def event(self, action: Task, *, seen: int) -> Event:
        """What happens when a search that has seen so many candidates does this."""
        match action:
            case Generate(n):
                return Generated(self.scores[seen : seen + n], self.keys[seen : seen + n])
            case Verify(ids):
                return Verified({id: self.verdicts[id] for id in ids})
            case Rescore(ids):
                second = self.second or self.scores
                return Rescored({id: second[id] for id in ids})

    def logged(self, id: str = "world") -> LoggedProblem:
        """The same candidates as a problem of a log, which knows no broken verdicts."""
        import numpy as np

        from ..logs.log import LoggedProblem, classes

        if Verdict.BROKEN in self.verdicts:
            raise UsageError("a log has no broken verdicts")
        passed = np.array([verdict is Verdict.PASSED for verdict in self.verdicts], dtype=np.bool_)
        keys = classes(self.keys, passed)[0] if self.keys else None
        second = np.array(self.second, dtype=np.float64) if self.second else None
        return LoggedProblem(
            id, np.array(self.scores, dtype=np.float64), passed, keys, second=second
        )


def _number(score: float) -> str:
    return repr(float(score)).removesuffix(".0")


def labelled(candidates: int, label: Callable[[int], tuple[float, bool]]) -> World:
    """So many candidates, each with the score and the label that the function gives it."""
    given = [label(i) for i in range(candidates)]
    return World(
        tuple(score for score, _ in given),
        tuple(Verdict.PASSED if passed else Verdict.FAILED for _, passed in given),
    )


def empty() -> World:
    """A generator that has nothing to give."""
    return World((), ())


def all_wrong(candidates: int) -> World:
    """No candidate passes. Five levels of scores, so that ties abound."""
    return labelled(candidates, lambda i: (i % 5, False))


def tied(candidates: int, *, levels: int = 3, pass_rate: float = 0.2, seed: int = 0) -> World:
    """Random scores at a few levels; the pass rate rises from 0 at the lowest to twice the mean."""
    chance = random.Random(f"tied {seed}")
    top = max(1, levels - 1)

    def label(_: int) -> tuple[float, bool]:
        level = chance.randrange(levels)
        return level, chance.random() < 2 * pass_rate * level / top

    return labelled(candidates, label)


def needle(candidates: int, *, at: int) -> World:
    """One candidate passes, and scores above all others, which are tied."""
    return labelled(candidates, lambda i: (float(i == at), i == at))


def flat(candidates: int, *, pass_rate: float = 0.1, levels: int = 20, seed: int = 0) -> World:
    """The score says nothing: every candidate passes with the same probability."""
    chance = random.Random(f"flat {seed}")
    return labelled(candidates, lambda _: (chance.randrange(levels), chance.random() < pass_rate))


def inverted(candidates: int, *, pass_rate: float = 0.1, seed: int = 0) -> World:
    """The score misleads: exactly the candidates with the lowest scores pass."""
    chance = random.Random(f"inverted {seed}")

    def label(_: int) -> tuple[float, bool]:
        score = chance.random()
        return score, score < pass_rate

    return labelled(candidates, label)


def star(candidates: int, *, levels: int, hidden: int, seed: int = 0) -> World:
    """Exactly the candidates at one hidden level pass; nothing but verifying tells which.

    The instances of the lower bound by the centered star number (section 6).
    """
    chance = random.Random(f"star {seed}")

    def label(_: int) -> tuple[float, bool]:
        level = chance.randrange(levels)
        return level, level == hidden

    return labelled(candidates, label)
