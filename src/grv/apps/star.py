"""`grv star`: how large a star a class has."""

from __future__ import annotations

import json as json_text
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import typer

from ..core.errors import UsageError
from ..text import aligned
from .console import check_outputs, choice, listed, parse_number, parse_whole, say, status

if TYPE_CHECKING:
    from ..theory.stars.classes import ConceptClass
    from ..theory.stars.search import Centre, Star


def star(
    concepts: str = typer.Argument(
        metavar="FILE|FAMILY",
        help="A matrix of one concept a row, its entries apart by blanks or commas, or an .npy"
        " file; or thresholds:16, intervals:16, singletons:16, subsets:8, unions:16:2.",
    ),
    eta: str = typer.Option(
        None,
        metavar="E",
        help="For a class of probabilities: from which one on a concept counts as passing.",
    ),
    centre: str = typer.Option(
        "zero", metavar="zero|any", help="The centered star number, or the usual one."
    ),
    bins: str = typer.Option(
        None,
        metavar="N",
        help="FILE is a log: a problem is a concept, and N bins of scores are the points.",
    ),
    score: str = typer.Option(None, metavar="NAME", help="With --bins, the column that ranks."),
    time_limit: str = typer.Option(
        "60", metavar="S", help="Seconds, after which the interval so far is the answer; or inf."
    ),
    json: str = typer.Option(None, metavar="FILE", help="Save the numbers and the witness."),
) -> None:
    """Compute the star number of a class of concepts, exactly, with a witness.

    The centered star number s_0 is the most points among which each can be the only one where
    candidates pass. It decides what a search costs that knows the class and nothing else: between
    1/4 and 6 times min(s_0, c_ver / c_rew) times the optimum. The problem is hard. The answer is an
    interval that closes; Ctrl-C prints it as it is.

    \b
    grv star intervals:64
    grv star class.txt --centre any --time-limit 10
    grv star rates.npy --eta 0.5 --json star.json
    """
    limit = parse_number("--time-limit", time_limit, least=0)
    where = cast("Centre", choice("--centre", centre, ("zero", "any")))
    least = None if eta is None else parse_number("--eta", eta, least=0, most=1)
    check_outputs([json], [concepts])
    from ..theory.stars.search import narrowing

    of = _from_log(concepts, bins, score) if bins is not None else _from_file(concepts, score)
    steps = narrowing(of, eta=least, centre=where)
    say(f"{of.name}: {of.concepts} concepts on {of.points} points")
    if where == "zero" and not of.has_zero:
        say("the all-zero concept is not among them, and was added as the centre")
    found, end = _closed(steps, limit)
    if json is not None:
        _save(json, found)
    name = "s" if where == "any" else "s_0" if least is None else f"s_0 (eta {least:g})"
    say(_words(name, found, end, limit))
    if found.points:
        say(*_witness(found).split("\n"))
    if end == "interrupted":
        raise typer.Exit(130)


def _from_file(path: str, score: str | None) -> ConceptClass:
    from ..theory.stars.class_files import load_class

    if score is not None:
        raise UsageError("--score is for logs: say also --bins")
    return load_class(path)


def _from_log(path: str, bins: str, score: str | None) -> ConceptClass:
    from ..logs.readers import read_log
    from ..theory.stars.classes import of_scores

    number = parse_whole("--bins", bins, most=1000)
    log = read_log(path, score=score)
    made, edges = of_scores([(each.scores, each.passed) for each in log.problems], number, path)
    starts = listed([f"{edge:g}" for edge in edges])
    say(f"{len(edges)} bins of {log.score}, from {starts}")
    return made


def _closed(steps: Iterator[Star], limit: float) -> tuple[Star, str]:
    """The interval when it is a number, or the time is up, or somebody has had enough."""
    start = time.monotonic()
    found = next(steps)
    try:
        with status("star number") as say:
            for found in steps:
                say(f"from {found.lower} to {found.upper}")
                if found.number is None and time.monotonic() - start >= limit:
                    return found, "stopped"
    except KeyboardInterrupt:
        return found, "interrupted"
    return found, "done"


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
    """Which concept stands for which point, and the centre where it is not zero."""
    pairs = sorted(zip(found.points, found.concepts, strict=True))
    table = aligned(("point", "concept"), [(str(point), str(row)) for point, row in pairs], left=0)
    if found.centre is None:
        return table
    return f"centre: concept {found.centre}\n{table}"
