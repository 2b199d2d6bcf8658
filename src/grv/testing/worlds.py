"""Made-up problems: random, adversarial, tied, exhausted, all wrong; and populations of them.

A *world* is plain data: the candidates of one problem in order of arrival, with their scores and
verdicts. `drivers.py` runs policies in it. A *population* is a distribution of problems, each with
a known distribution of candidates; `grv.comparing.simulation.populations` defines them.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..comparing.simulation.populations import FITTED as POPULATIONS
from ..comparing.simulation.populations import Binormals as Population
from ..comparing.simulation.populations import population
from ..core.errors import UsageError
from ..core.values import (
    REFUTED,
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
    """The candidates of one problem, in order of arrival.

    Attributes:
        scores: one per candidate; no NaN.
        verdicts: one per candidate; repeated verifications give the same verdict.
        keys: one per candidate, or an empty tuple. No key both passes and fails; a broken verdict
            says nothing about its key. Candidates with the key `REFUTED` fail.
        second: one second score per candidate, for cascades; by default the first scores.
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
            raise UsageError("a score cannot be NaN")
        labels: dict[str, Verdict] = {}
        for key, verdict in zip(self.keys, self.verdicts, strict=False):
            if key is None:
                continue
            if not key or re.search(r"\s", key):
                raise UsageError(f"a key must be one word, not {key!r}")
            if verdict is not Verdict.BROKEN and labels.setdefault(key, verdict) is not verdict:
                raise UsageError(f"the key {key!r} both passes and fails")
            if key == REFUTED and verdict is not Verdict.FAILED:
                raise UsageError(f"a candidate with the key {key!r} must fail")

    @classmethod
    def of(cls, text: str) -> World:
        """A world from text: one word per candidate, with its score, a mark and, if any, its key.

        `+` passes, `-` fails, `?` is broken.

        >>> World.of("3- 2.5+ 2?a 1-a").keys
        (None, None, 'a', 'a')
        """
        found = [_CANDIDATE.fullmatch(word) for word in text.split()]
        matches = [match for match in found if match is not None]
        if len(matches) < len(found):
            wrong = text.split()[found.index(None)]
            raise UsageError(f"not a candidate: {wrong!r}; write a score, then +, - or ?")
        keys = tuple(match[3] or None for match in matches)
        return cls(
            tuple(float(match[1]) for match in matches),
            tuple(_MARKS[match[2]] for match in matches),
            keys if any(keys) else (),
        )

    def __repr__(self) -> str:
        return f"World.of({str(self)!r})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the repr. Without this hook, hypothesis prints the fields of a dataclass."""
        printer.text(repr(self))

    def __str__(self) -> str:
        keys = self.keys or (None,) * len(self)
        return " ".join(
            f"{_number(score)}{SIGNS[verdict]}{key or ''}"
            for score, verdict, key in zip(self.scores, self.verdicts, keys, strict=True)
        )

    def __len__(self) -> int:
        """The number of candidates."""
        return len(self.scores)

    def __add__(self, later: World) -> World:
        """This world followed by the candidates of another."""
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
        """The world of the first `n` candidates."""
        return World(self.scores[:n], self.verdicts[:n], self.keys[:n], self.second[:n])

    def event(self, action: Task, *, seen: int) -> Event:
        """The result of an action of a search that has seen `seen` candidates."""
        match action:
            case Generate(n):
                return Generated(self.scores[seen : seen + n], self.keys[seen : seen + n])
            case Verify(ids, _, n):
                ahead = Generated(self.scores[seen : seen + n], self.keys[seen : seen + n])
                verdicts = {id: self.verdicts[id] for id in ids}
                return Verified(verdicts, meanwhile=ahead if n else None)
            case Rescore(ids):
                second = self.second or self.scores
                return Rescored({id: second[id] for id in ids})

    def logged(self, id: str = "world") -> LoggedProblem:
        """The same candidates as a problem of a log. A log has no broken verdicts."""
        import numpy as np

        from ..logs.log import LoggedProblem, classes

        if Verdict.BROKEN in self.verdicts:
            raise UsageError("a log has no broken verdicts")
        passed = np.array([verdict is Verdict.PASSED for verdict in self.verdicts], dtype=np.bool_)
        names = [None if key == REFUTED else key for key in self.keys]
        keys = classes(names, passed)[0] if any(names) else None
        refuted = np.array([key == REFUTED for key in self.keys], dtype=np.bool_)
        second = np.array(self.second, dtype=np.float64) if self.second else None
        return LoggedProblem(
            id,
            np.array(self.scores, dtype=np.float64),
            passed,
            keys,
            second=second,
            refuted=refuted if refuted.any() else None,
        )


def _number(score: float) -> str:
    return repr(float(score)).removesuffix(".0")


def labelled(candidates: int, label: Callable[[int], tuple[float, bool]]) -> World:
    """A world of candidates, each with the score and label that the function returns for it."""
    given = [label(i) for i in range(candidates)]
    return World(
        tuple(score for score, _ in given),
        tuple(Verdict.PASSED if passed else Verdict.FAILED for _, passed in given),
    )


def empty() -> World:
    """A world without candidates."""
    return World((), ())


def all_wrong(candidates: int) -> World:
    """No candidate passes. There are five different scores, so there are many ties."""
    return labelled(candidates, lambda i: (i % 5, False))


def tied(candidates: int, *, levels: int = 3, pass_rate: float = 0.2, seed: int = 0) -> World:
    """Random scores at a few levels. The pass rate rises from 0 to twice `pass_rate`."""
    chance = random.Random(f"tied {seed}")
    top = max(1, levels - 1)

    def label(_: int) -> tuple[float, bool]:
        level = chance.randrange(levels)
        return level, chance.random() < 2 * pass_rate * level / top

    return labelled(candidates, label)


def needle(candidates: int, *, at: int) -> World:
    """One candidate passes and has the highest score; all others are tied."""
    return labelled(candidates, lambda i: (float(i == at), i == at))


def flat(candidates: int, *, pass_rate: float = 0.1, levels: int = 20, seed: int = 0) -> World:
    """The score is uninformative: each candidate passes with the same probability."""
    chance = random.Random(f"flat {seed}")
    return labelled(candidates, lambda _: (chance.randrange(levels), chance.random() < pass_rate))


def inverted(candidates: int, *, pass_rate: float = 0.1, seed: int = 0) -> World:
    """The score is misleading: exactly the candidates with the lowest scores pass."""
    chance = random.Random(f"inverted {seed}")

    def label(_: int) -> tuple[float, bool]:
        score = chance.random()
        return score, score < pass_rate

    return labelled(candidates, label)


def star(candidates: int, *, levels: int, hidden: int, seed: int = 0) -> World:
    """Exactly the candidates at one hidden level of scores pass.

    These are the instances of the lower bound by the centered star number (section 6).
    """
    chance = random.Random(f"star {seed}")

    def label(_: int) -> tuple[float, bool]:
        level = chance.randrange(levels)
        return level, level == hidden

    return labelled(candidates, label)
