"""`grv theory`: the promises; the lower bound and the separation, measured."""

from __future__ import annotations

import dataclasses
import json as json_text
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from ..core.errors import UsageError
from ..core.values import Costs
from ..options import MOST, option
from ..parsing import parse_costs
from ..text import aligned
from .console import check_outputs, progress, say
from .options.command import Group, Sections, command

if TYPE_CHECKING:
    from ..comparing.simulation.star_trials import StarTrials
    from ..core.search import Policy
    from ..theory.proofs.separation import Separation
    from ..theory.stars.bounds import StarInstance

theory = typer.Typer(
    cls=Group,
    help="Print what is proven, and measure the bounds of the learning theory.",
    rich_markup_mode=None,
    no_args_is_help=True,
)

_SMALLEST = 1e-6  # with less, the samples do not fit into memory
_CLASSES = ("singletons:4", "singletons:16", "singletons:64")
_COSTS = (Costs(1, 1), Costs(1, 10), Costs(1, 100), Costs(1, 1000))
_DIMENSIONS = (4, 8, 16, 32, 64, 128, 256)


def _parse_costs(text: str) -> Costs:
    """Costs whose ratio leaves candidates that can be drawn."""
    costs = parse_costs(text)
    if costs.has_failure:
        raise UsageError("this bound has one price of a verification: give G,V, as in 1,10")
    if costs.ratio > 1 / _SMALLEST:
        raise UsageError(f"verifying may cost at most {1 / _SMALLEST:g} times as much")
    return costs


@theory.command("lower-bound", cls=Sections)
@command
def lower_bound(
    classes: tuple[str, ...] = option(
        _CLASSES,
        "Classes as for grv star.",
        argument=True,
        metavar="[FILE|FAMILY]...",
        shown=", ".join(_CLASSES),
    ),
    eta: float | None = option(
        None, "For classes of probabilities, as in grv star.", metavar="E", least=0, most=1
    ),
    costs: tuple[Costs, ...] = option(
        _COSTS,
        "Cost of generating one candidate, and of verifying one. Repeatable.",
        metavar="G,V",
        parse=_parse_costs,
        shown="1,1 1,10 1,100 1,1000",
    ),
    policy: tuple[str, ...] = option(
        (), "A policy to run. Repeatable. Default: all policies.", metavar="SPEC"
    ),
    runs: int = option(40, "Runs of each policy.", least=2, most=MOST),
    seed: int = option(0, "Seed of targets and candidates.", least=0),
    time_limit: float = option(60.0, "Seconds for a star number.", metavar="S", least=0),
    json: str | None = option(None, "Save the numbers.", metavar="FILE"),
) -> None:
    """Run policies against the instance that proves the lower bound.

    The points of a largest star are equally likely. Candidates pass at one of them, chosen at
    random, and only verifying reveals which. J* is the cost if that point were known. No sound
    policy costs less than eta/4 min(s_0, c_ver/c_rew) times J*; a policy that gives up is not
    sound. Runs that cost 8 times the bound and more than 100 J* are cut off: their true ratio is
    higher than the one shown.

    \b
    grv theory lower-bound
    grv theory lower-bound singletons:256 --costs 1,1000 --policy adaptive --policy verify-all
    grv theory lower-bound intervals:9 --policy centered-star --policy "learned('prior.json')"
    grv theory lower-bound rates.npy --eta 0.5
    """
    check_outputs([json], classes, policy)
    from ..comparing.simulation.star_trials import measure

    rows: list[tuple[str, StarTrials]] = []
    untold: tuple[str, ...] = ()
    with _kept_so_far() as end:
        for text in classes:
            instance = _instance(text, eta, time_limit)
            policies, untold = _policies(policy, instance)
            measured = measure(policies, instance, costs, runs=runs, seed=seed)
            with progress(text) as tell:
                for done, row in enumerate(measured, 1):
                    rows.append((text, row))
                    tell(done, len(costs) * len(policies))
    if json is not None:
        records = [_record(text, row) for text, row in rows]
        _save(json, {"seed": seed, "complete": end.complete, "rows": records})
    say(*_table(rows).split("\n"), *_words([row for _, row in rows], untold))
    end.say()


def _words(rows: list[StarTrials], untold: tuple[str, ...]) -> list[str]:
    """What the table leaves out, and what it shows."""
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
    """Whether everything was measured."""

    complete: bool = True

    def say(self) -> None:
        """Pass an interruption on."""
        if not self.complete:
            raise KeyboardInterrupt


@contextmanager
def _kept_so_far() -> Iterator[_End]:
    """Work that may be interrupted; the results so far are shown then."""
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
        say(f"{text}: s_0 is from {star.lower} to {star.upper}; {star.lower} is used here")
    return star_instance(of, star, eta=1.0 if eta is None else eta)


def _policies(
    specs: tuple[str, ...], instance: StarInstance
) -> tuple[dict[str, Policy], tuple[str, ...]]:
    """The requested policies, or all; and the names of those that need parameters."""
    from ..comparing.simulation.star_trials import lineup
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


@theory.command("separation", cls=Sections)
@command
def separation(
    d: tuple[int, ...] = option(
        _DIMENSIONS,
        "Points besides the centre. Repeatable.",
        "--d",
        least=2,
        most=10_000,
        shown=" ".join(map(str, _DIMENSIONS)),
    ),
    epsilon: float = option(
        0.1, "The error that a learner may have.", metavar="E", least=_SMALLEST, most=0.249
    ),
    delta: float = option(
        0.1,
        "The probability that a learner's error is larger.",
        metavar="D",
        least=_SMALLEST,
        most=0.999,
    ),
    runs: int = option(200, "Random targets for each d.", least=2, most=MOST),
    seed: int = option(0, "Seed of targets and pools.", least=0),
    json: str | None = option(None, "Save the numbers.", metavar="FILE"),
) -> None:
    """Show a class where searching takes one label, and learning a number proportional to d.

    Half of all candidates are at a point c, where every concept with a pass passes. The others are
    at one of d points where the concepts have nothing in common. The learner asks for a label
    exactly where the concepts that agree with all labels so far disagree. No learner needs fewer
    labels than the bounds say.

    \b
    grv theory separation
    grv theory separation --d 16 --d 64 --epsilon 0.05 --json separation.json
    """
    check_outputs([json], [])
    from ..theory.proofs.separation import measure

    rows = []
    with _kept_so_far() as end, progress("separating") as tell:
        for done, size in enumerate(d, 1):
            rows.append(measure(size, epsilon, delta, runs=runs, seed=seed))
            tell(done, len(d))
    if json is not None:
        settings = {"epsilon": epsilon, "delta": delta, "runs": runs, "seed": seed}
        records = [dataclasses.asdict(row) for row in rows]
        _save(json, {**settings, "complete": end.complete, "rows": records})
    say(*_separation_table(rows).split("\n"))
    end.say()


def _separation_table(rows: Sequence[Separation]) -> str:
    cells = [
        (
            str(row.d),
            str(row.search_pool),
            f"{row.search_labels:.2f}",
            f"{row.search_found:.1%}",
            str(row.learn_pool),
            f"{row.learn_labels:.1f}",
            f"{row.learned:.1%}",
            str(row.labels_bound),
            str(row.fewest_labels),
        )
        for row in rows
    ]
    head = (
        "d",
        "search: pool",
        "labels",
        "found",
        "learn: pool",
        "labels",
        "learned",
        "labels >= (Hoeffding)",
        "(exact)",
    )
    return aligned(head, cells, left=0)


@theory.command("promises", cls=Sections)
@command
def promises(
    policy: tuple[str, ...] = option(
        (), "A policy by its name. Repeatable. Default: all policies.", metavar="NAME"
    ),
    json: str | None = option(None, "Save the rows.", metavar="FILE"),
) -> None:
    """Print what is promised about the cost of each policy, and where nothing is.

    Each row compares the cost with J*, the lowest cost if the pass rate at each score were known,
    or with the policy verify-all on the same candidates. The status is proven, checked (computed
    at many ratios, not proven) or open (no bound is promised). rho is the cost of a verification
    in candidates. The proofs are in docs/theory.

    \b
    grv theory promises
    grv theory promises --policy varied --policy learning
    grv theory promises --json promises.json
    """
    check_outputs([json], policy)
    from ..policies import POLICIES
    from ..policies.promises import SETTINGS
    from ..policies.promises import promises as all_promises

    unknown = [name for name in policy if name not in POLICIES]
    if unknown:
        raise UsageError(f"unknown policy {unknown[0]!r}: choose from {', '.join(POLICIES)}")
    rows = [row for row in all_promises() if not policy or row.policy.partition("(")[0] in policy]
    if json is not None:
        _save(json, {"settings": SETTINGS, "rows": [row.record() for row in rows]})
    cells = [(row.policy, row.setting, row.against, row.status, row.constant) for row in rows]
    say(*aligned(("policy", "setting", "against", "status", "constant"), cells, left=5).split("\n"))
    say("", *(f"{name}: {meaning}." for name, meaning in SETTINGS.items()))


def _save(path: str, record: dict[str, Any]) -> None:
    from ..files import write_whole

    write_whole(path, json_text.dumps({"format": 1, **record}, indent=1) + "\n")
