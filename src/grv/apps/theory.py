"""`grv theory`: the lower bound and the separation, measured."""

from __future__ import annotations

import dataclasses
import json as json_text
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from ..core.errors import UsageError
from ..text import aligned
from .console import check_outputs, parse_costs, parse_number, parse_whole, progress, say

if TYPE_CHECKING:
    from ..core.search import Policy
    from ..core.values import Costs
    from ..experiments.star_trials import StarTrials
    from ..theory.stars.bounds import StarInstance

theory = typer.Typer(
    help="See the bounds of the learning theory hold.", rich_markup_mode=None, no_args_is_help=True
)

_SMALLEST = 1e-6  # with less, more is drawn than fits
_CLASSES = ["singletons:4", "singletons:16", "singletons:64"]
_COSTS = ["1,1", "1,10", "1,100", "1,1000"]
_DIMENSIONS = ["4", "8", "16", "32", "64", "128", "256"]


@theory.command("lower-bound")
def lower_bound(
    classes: list[str] = typer.Argument(
        None,
        metavar="[FILE|FAMILY]...",
        help="Classes as for grv star. Default: singletons of 4, 16 and 64 points.",
    ),
    eta: str = typer.Option(None, metavar="E", help="For classes of probabilities."),
    costs: list[str] = typer.Option(
        _COSTS, metavar="G,V", help="Cost of generating, and of verifying. Repeatable."
    ),
    policy: list[str] = typer.Option(
        None, metavar="SPEC", help="A policy to run. Repeatable. Default: all there are."
    ),
    runs: str = typer.Option("40", metavar="N", help="How often each is run."),
    seed: str = typer.Option("0", metavar="N", help="What targets and candidates are drawn from."),
    time_limit: str = typer.Option("60", metavar="S", help="Seconds for a star number."),
    json: str = typer.Option(None, metavar="FILE", help="Save the numbers."),
) -> None:
    """Run policies against the instance that proves the lower bound.

    The points of a largest star are equally likely, and candidates pass at one of them, uniformly
    random, which nothing but verifying tells. No sound policy costs less than
    eta/4 min(s_0, c_ver/c_rew) times J*, the cost for somebody who knows which; a policy that gives
    up is not sound. Runs that cost 8 times the bound and more than 100 J* are cut off: their true
    ratio is higher than the one shown.

    \b
    grv theory lower-bound
    grv theory lower-bound singletons:256 --costs 1,1000 --policy adaptive --policy verify-all
    grv theory lower-bound intervals:9 --policy centered-star --policy "learned('prior.json')"
    grv theory lower-bound rates.npy --eta 0.5
    """
    prices = [_price_list(text) for text in costs]
    how_many, drawn_from = parse_whole("--runs", runs, 2), parse_whole("--seed", seed, 0)
    limit = parse_number("--time-limit", time_limit, least=0)
    least = None if eta is None else parse_number("--eta", eta, least=0, most=1)
    check_outputs([json], classes or [], policy or ())
    from ..experiments.star_trials import measure

    rows: list[tuple[str, StarTrials]] = []
    untold: tuple[str, ...] = ()
    with _kept_so_far() as end:
        for text in classes or _CLASSES:
            instance = _instance(text, least, limit)
            policies, untold = _policies(policy, instance)
            measured = measure(policies, instance, prices, runs=how_many, seed=drawn_from)
            with progress(text) as tell:
                for done, row in enumerate(measured, 1):
                    rows.append((text, row))
                    tell(done, len(prices) * len(policies))
    if json is not None:
        records = [_record(text, row) for text, row in rows]
        _save(json, {"seed": drawn_from, "complete": end.complete, "rows": records})
    say(*_table(rows).split("\n"), *_words([row for _, row in rows], untold))
    end.say()


def _price_list(text: str) -> Costs:
    """Costs whose ratio leaves candidates that can be drawn."""
    costs = parse_costs(text)
    if costs.ratio > 1 / _SMALLEST:
        raise UsageError(f"--costs {text}: verify at most {1 / _SMALLEST:g} times as dear")
    return costs


def _words(rows: list[StarTrials], untold: tuple[str, ...]) -> list[str]:
    """What is not in the table, and what it shows."""
    lines = []
    if untold:
        lines.append(
            f"left out: {', '.join(untold)}; give what they need with --policy, as in"
            " \"learned('prior.json')\""
        )
    below = [row for row in rows if row.sound and row.ratio + 3 * row.error < row.bound]
    lines.append(
        f"below the bound by more than three standard errors: {len(below)} of"
        f" {sum(row.sound for row in rows)} sound ones"
    )
    return lines


@dataclasses.dataclass
class _End:
    """Whether all was measured."""

    complete: bool = True

    def say(self) -> None:
        """End as one that was interrupted ends, if it was."""
        if not self.complete:
            raise KeyboardInterrupt


@contextmanager
def _kept_so_far() -> Iterator[_End]:
    """Work that may be interrupted, after which what there is so far is shown."""
    end = _End()
    try:
        yield end
    except KeyboardInterrupt:
        end.complete = False


def _instance(text: str, eta: float | None, limit: float) -> StarInstance:
    from ..theory.stars.bounds import star_instance
    from ..theory.stars.class_files import load_class
    from ..theory.stars.search import star_number

    of = load_class(text)
    star = star_number(of, eta=eta, time_limit=limit)
    if star.number is None:
        say(f"{text}: s_0 is from {star.lower} to {star.upper}; {star.lower} stands for it here")
    return star_instance(of, star, eta=1.0 if eta is None else eta)


def _policies(
    specs: list[str] | None, instance: StarInstance
) -> tuple[dict[str, Policy], tuple[str, ...]]:
    """By name, those that are asked for; or all, and the names of those that cannot be told."""
    from ..experiments.star_trials import lineup
    from ..policies.spec import parse

    told, untold = lineup(instance)
    if not specs:
        return told, untold
    return {text: told[text] if text in told else parse(text) for text in specs}, ()


def _table(rows: list[tuple[str, StarTrials]]) -> str:
    head = (
        "class",
        "policy",
        "star",
        "c_ver/c_rew",
        "bound",
        "tighter",
        "measured",
        "+-",
        "solved",
    )
    cells = [
        (
            text,
            row.policy,
            str(row.star),
            f"{row.costs.ratio:g}",
            f"{row.bound:.2f}",
            f"{row.tighter:.2f}",
            _measured(row),
            f"{1.96 * row.error:.2f}" if row.sound else "-",
            f"{row.solved:.0%}",
        )
        for text, row in rows
    ]
    return aligned(head, cells, left=2)


def _measured(row: StarTrials) -> str:
    if not row.sound:
        return "gives up"
    return f"{'>' if row.cut_off > 0 else ''}{row.ratio:.2f}"


def _record(text: str, row: StarTrials) -> dict[str, Any]:
    record = dataclasses.asdict(row)
    record["costs"] = {"generate": row.costs.generate, "verify": row.costs.verify}
    record["ratio"] = None if math.isinf(row.ratio) else row.ratio
    return {"class": text, **record, "cut_off": row.cut_off, "sound": row.sound}


@theory.command("separation")
def separation(
    d: list[str] = typer.Option(
        _DIMENSIONS, "--d", metavar="N", help="Points besides the centre. Repeatable."
    ),
    epsilon: str = typer.Option("0.1", metavar="E", help="The error that a learner may have."),
    delta: str = typer.Option("0.1", metavar="D", help="How often it may have more."),
    runs: str = typer.Option("200", metavar="N", help="Random targets for each d."),
    seed: str = typer.Option("0", metavar="N", help="What targets and pools are drawn from."),
    json: str = typer.Option(None, metavar="FILE", help="Save the numbers."),
) -> None:
    """Show a class where searching takes one label, and learning a number proportional to d.

    Half of all candidates are at a point c that every concept with a pass lets pass; the others are
    at one of d points about which the concepts say nothing in common. The learner asks for a label
    exactly where the concepts that agree with all labels so far disagree. No learner can do with
    fewer labels than the bounds say.

    \b
    grv theory separation
    grv theory separation --d 16 --d 64 --epsilon 0.05 --json separation.json
    """
    dimensions = [parse_whole("--d", text, 2, 10_000) for text in d]
    error, failure = _share("--epsilon", epsilon, 0.25), _share("--delta", delta, 1)
    how_many, drawn_from = parse_whole("--runs", runs, 2), parse_whole("--seed", seed, 0)
    check_outputs([json], [])
    from ..theory.proofs.separation import measure

    rows = []
    with _kept_so_far() as end, progress("separating") as tell:
        for done, size in enumerate(dimensions, 1):
            rows.append(measure(size, error, failure, runs=how_many, seed=drawn_from))
            tell(done, len(dimensions))
    if json is not None:
        settings = {"epsilon": error, "delta": failure, "runs": how_many, "seed": drawn_from}
        _save(
            json,
            {
                **settings,
                "complete": end.complete,
                "rows": [dataclasses.asdict(row) for row in rows],
            },
        )
    cells = [
        (
            *(str(row.d), str(row.search_pool), f"{row.search_labels:.2f}"),
            *(f"{row.search_found:.1%}", str(row.learn_pool), f"{row.learn_labels:.1f}"),
            *(f"{row.learned:.1%}", str(row.labels_bound), str(row.fewest_labels)),
        )
        for row in rows
    ]
    head = (
        *("d", "search: pool", "labels", "found", "learn: pool", "labels", "learned"),
        *("labels >= (Hoeffding)", "(exact)"),
    )
    say(*aligned(head, cells, left=0).split("\n"))
    end.say()


def _share(option: str, text: str, below: float) -> float:
    number = parse_number(option, text, least=0, most=below)
    if not 0 < number < below:
        raise UsageError(f"{option} {text}: give a number above 0 and below {below:g}")
    if number < _SMALLEST:
        raise UsageError(f"{option} {text}: give at least {_SMALLEST:g}")
    return number


def _save(path: str, record: dict[str, Any]) -> None:
    from ..files import write_whole

    write_whole(path, json_text.dumps({"format": 1, **record}, indent=1) + "\n")
