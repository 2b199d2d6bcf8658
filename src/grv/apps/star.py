"""`grv star`: how large a star a class has."""

from __future__ import annotations

import enum
import json as json_text
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from ..core.errors import UsageError
from ..options import option
from ..text import aligned
from .console import check_outputs, listed, say, status
from .options.command import command

if TYPE_CHECKING:
    from ..theory.stars.classes import ConceptClass
    from ..theory.stars.search import Star


class CentreChoice(enum.StrEnum):
    """Which star number: the centered one, or the usual one."""

    ZERO = "zero"
    ANY = "any"


@command
def star(
    concepts: str = option(
        ...,
        "A matrix with one concept per row, its entries separated by blanks or commas, or an .npy"
        " file; or thresholds:16, intervals:16, singletons:16, subsets:8, unions:16:2.",
        argument=True,
        metavar="FILE|FAMILY",
    ),
    eta: float | None = option(
        None,
        "For a class of probabilities: a concept passes at this probability or above.",
        metavar="E",
        least=0,
        most=1,
    ),
    centre: CentreChoice = option(CentreChoice.ZERO, "The centered star number, or the usual one."),
    bins: int | None = option(
        None,
        "FILE is a log: each problem is a concept, and N bins of scores are the points.",
        least=1,
        most=1000,
    ),
    score: str | None = option(None, "With --bins, the column that ranks.", metavar="NAME"),
    time_limit: float = option(
        60.0, "Seconds until the current interval is the answer; or inf.", metavar="S", least=0
    ),
    json: str | None = option(None, "Save the numbers and the witness.", metavar="FILE"),
) -> None:
    """Compute the star number of a class of concepts, exactly, with a witness.

    The centered star number s_0 is the largest number of points such that each of them can be the
    only one where candidates pass. A search that knows the class and nothing else costs between 1/4
    and 6 times min(s_0, c_ver / c_rew) times the optimum. The problem is hard, so the answer is an
    interval that narrows; Ctrl-C prints the current one.

    \b
    grv star intervals:64
    grv star class.txt --centre any --time-limit 10
    grv star rates.npy --eta 0.5 --json star.json
    """
    check_outputs([json], [concepts])
    from ..theory.stars.search import narrowing

    of = _from_log(concepts, bins, score) if bins is not None else _from_file(concepts, score)
    steps = narrowing(of, eta=eta, centre=centre.value)
    say(f"{of.name}: {of.concepts} concepts on {of.points} points")
    if centre is CentreChoice.ZERO and not of.has_zero:
        say("the class has no all-zero concept; grv added it as the centre")
    result, end = _closed(steps, time_limit)
    if json is not None:
        _save(json, result)
    name = "s" if centre is CentreChoice.ANY else "s_0"
    if eta is not None and centre is CentreChoice.ZERO:
        name = f"s_0 (eta {eta:g})"
    say(_words(name, result, end, time_limit))
    if result.points:
        say(*_witness(result).split("\n"))
    if end == "interrupted":
        raise typer.Exit(130)


def _from_file(path: str, score: str | None) -> ConceptClass:
    from ..theory.stars.class_files import load_class

    if score is not None:
        raise UsageError("--score is for logs: give --bins too")
    return load_class(path)


def _from_log(path: str, bins: int, score: str | None) -> ConceptClass:
    from ..logs.readers import read_log
    from ..theory.stars.classes import of_scores

    log = read_log(path, score=score)
    made, edges = of_scores([(each.scores, each.passed) for each in log.problems], bins, path)
    starts = listed([f"{edge:g}" for edge in edges])
    say(f"{len(edges)} bins of {log.score}, from {starts}")
    return made


def _closed(steps: Iterator[Star], limit: float) -> tuple[Star, str]:
    """The interval once it is a number, the time is up, or the user interrupts."""
    start = time.monotonic()
    result = next(steps)
    try:
        with status("star number") as say:
            for result in steps:
                say(f"from {result.lower} to {result.upper}")
                if result.number is None and time.monotonic() - start >= limit:
                    return result, "stopped"
    except KeyboardInterrupt:
        return result, "interrupted"
    return result, "done"


def _save(path: str, found: Star) -> None:
    from ..files import write_whole

    record: dict[str, object] = {
        "star": found.number,
        "lower": found.lower,
        "upper": found.upper,
        "points": found.points,
        "concepts": found.concepts,
    }
    if found.centre is not None:
        record["centre"] = found.centre
    write_whole(path, json_text.dumps(record) + "\n")


def _words(name: str, found: Star, end: str, limit: float) -> str:
    if found.number is not None:
        return f"{name} = {found.number}"
    why = "interrupted" if end == "interrupted" else f"stopped after {limit:g} s"
    return f"{name} is from {found.lower} to {found.upper} ({why})"


def _witness(found: Star) -> str:
    """The concept of each point, and the centre if it is not zero."""
    pairs = sorted(zip(found.points, found.concepts, strict=True))
    table = aligned(("point", "concept"), [(str(point), str(row)) for point, row in pairs], left=0)
    if found.centre is None:
        return table
    return f"centre: concept {found.centre}\n{table}"
