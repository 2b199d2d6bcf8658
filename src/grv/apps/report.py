"""`grv report`: a page that says what each policy costs, whether the score is good, what to do."""

from __future__ import annotations

import dataclasses
import inspect
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import typer

from ..core.errors import UsageError
from .compare import compare
from .console import (
    MEASURED,
    check_outputs,
    choice,
    parse_latency,
    parse_prices,
    parse_value,
    parse_whole,
    parse_width,
    progress,
    say,
)
from .live import defaults_from_job, read_job

if TYPE_CHECKING:
    from ..report.dataset import Request
    from ..report.print.job import Item
    from ..report.report import Report
    from .sources import Given

# An option that `grv compare` has is the same option here.
_SAME: dict[str, Any] = {
    name: parameter.default for name, parameter in inspect.signature(compare).parameters.items()
}


def _from_job(context: typer.Context, job: str | None) -> str | None:
    return defaults_from_job(context, job, "report", ("logs", "items"))


def report(
    logs: list[str] = typer.Argument(
        None,
        metavar="[NAME=]LOG...",
        help="What grv compare takes; a ledger of live runs; or what grv compare --json saved.",
        show_default=False,
    ),
    out: str = typer.Option("report.html", "-o", "--out", metavar="FILE", help="The page."),
    rewards: str = _SAME["rewards"],
    score: list[str] = typer.Option(
        None,
        metavar="NAME",
        help="What ranks candidates, as grv compare takes it: a column, cascade(first, second,"
        " top=4, cost=0.5), or a prior. Several are set side by side. Repeatable.",
    ),
    costs: list[str] = _SAME["costs"],
    policy: list[str] = _SAME["policy"],
    orders: str = _SAME["orders"],
    many_orders: str = typer.Option(
        "100", metavar="N", help="In how many orders each problem's cheapest pair is found."
    ),
    seed: str = _SAME["seed"],
    order_scheme: str = _SAME["order_scheme"],
    width: str = _SAME["width"],
    value: str = _SAME["value"],
    latency: str = _SAME["latency"],
    keys: bool = _SAME["keys"],
    unlabelled: str = _SAME["unlabelled"],
    unsolvable: str = _SAME["unsolvable"],
    title: str = typer.Option("", metavar="TEXT", help="What the page is called."),
    json: str = typer.Option(None, metavar="FILE", help="Save the numbers of all tables."),
    csv: str = typer.Option(None, metavar="DIR", help="Save each table as a CSV file."),
    figures: str = typer.Option(
        None,
        metavar="DIR",
        help="Save the figures as PDF and PNG, and the tables as LaTeX, Markdown, text and CSV.",
    ),
    job: str = typer.Option(
        None,
        metavar="FILE",
        is_eager=True,
        callback=_from_job,
        help="These options in TOML, in a table [report], with the logs and what --figures saves;"
        " flags win.",
    ),
) -> None:
    """Make one page out of logs: what policies cost, whether the score is good, what to do.

    The page is one file that needs no network: open it in a browser. It draws every figure of the
    paper from your log, and further ones, and has the numbers under each. Several logs, or several
    scores of a log, are set side by side.

    \b
    grv report log.parquet --score score_reward
    grv report log.csv --costs 1,10 --costs 1,30 -o report.html --json report.json
    grv report small=a.parquet large=b.parquet --csv tables --figures figures
    grv report log.parquet --score score_reward --score score_votes
    grv report log.csv --costs 1,10 --costs measured
    grv report answers.jsonl.ledger
    grv report --job paper/report.toml --figures figures
    """
    request = _request(
        costs, policy, orders, many_orders, seed, order_scheme, width, keys, unsolvable
    )
    request = dataclasses.replace(
        request,
        value=parse_value(value),
        latency=None if latency is None else parse_latency(latency),
    )
    given = _given(logs or [], score or [], rewards, unlabelled, job)
    inputs = [each.path for each in given] + [rewards, job]
    specs = [*(each.score for each in given), *(policy or ())]
    check_outputs([out, json], inputs, specs)
    for folder in (csv, figures):
        _check_folder(folder)
    items = _items(job)
    from ..files import write_whole
    from ..report.build import make_report
    from ..report.page.page import page
    from ..report.print.printing import check_plotting, sheet_names, write_sheets
    from .sources import read_sources

    if figures is not None:
        check_plotting()
    sources = read_sources(given)
    with progress("making the tables") as tell:
        made = make_report(sources, request, progress=tell)
    names = [(csv, name) for name in made.csv_names] if csv is not None else []
    names += [(figures, name) for name in sheet_names(made, items)] if figures is not None else []
    check_outputs([out, json, *{os.path.join(*name) for name in names}], inputs, specs)
    write_whole(out, page(made, title))
    if json is not None:
        made.save(json)
    if csv is not None:
        made.save_csv(csv)
    if figures is not None:
        with progress("drawing") as tell:
            write_sheets(made, figures, items, tell)
    say(*words(made, out))


def _request(
    costs: Sequence[str],
    policy: Sequence[str] | None,
    orders: str,
    many_orders: str,
    seed: str,
    order_scheme: str,
    width: str,
    keys: bool,
    unsolvable: str,
) -> Request:
    price_lists = tuple(None if text == MEASURED else parse_prices(text) for text in costs)
    in_flight = parse_width(width)
    how_many, many = parse_whole("--orders", orders), parse_whole("--many-orders", many_orders)
    drawn_from = parse_whole("--seed", seed, 0)
    from ..experiments.compare import Unsolvable
    from ..replay.orders import Scheme
    from ..report.dataset import Request

    scheme = cast(Scheme, choice("--order-scheme", order_scheme, ("stable", "paper")))
    kept = cast(Unsolvable, choice("--unsolvable", unsolvable, ("exclude", "include")))
    return Request(
        costs=price_lists,
        policies=tuple(policy or ()),
        orders=how_many,
        seed=drawn_from,
        order_scheme=scheme,
        width=in_flight,
        keys=keys,
        unsolvable=kept,
        many_orders=many,
    )


def _given(
    logs: Sequence[str],
    scores: Sequence[str],
    rewards: str | None,
    unlabelled: str,
    job: str | None,
) -> list[Given]:
    """Each file with each score; those of the job file where none is named."""
    from ..logs.readers import Unlabelled
    from .sources import Given, parse_given

    labels = cast(Unlabelled, choice("--unlabelled", unlabelled, ("error", "fail", "drop")))
    if not logs:
        named = read_job(job)["report"].get("logs") if job is not None else None
        if not named:
            raise UsageError("give at least one log, as in grv report log.parquet")
        return list(parse_given(named, str(job)))
    found = []
    for text in logs:
        plain = dataclasses.replace(Given.parse(text), rewards=rewards, unlabelled=labels)
        each = [dataclasses.replace(plain, score=score) for score in scores] or [plain]
        if plain.name and len(each) > 1:
            each = [dataclasses.replace(one, name=f"{one.name} {one.score}") for one in each]
        found += each
    return found


def _items(job: str | None) -> tuple[Item, ...]:
    from ..report.print.job import parse_items

    records = read_job(job)["report"].get("items") if job is not None else None
    return parse_items(records, str(job)) if records is not None else ()


def _check_folder(folder: str | None) -> None:
    """Refuse, before any work, a folder that could not be written to."""
    if folder is None:
        return
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be made: {error.strerror}") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"{folder}: cannot be written to")


def words(made: Report, out: str) -> list[str]:
    """What the page says first, and where it is."""
    lines = []
    for conclusion in made.conclusions:
        lines += [conclusion.question, *(f"  {sentence}" for sentence in conclusion.sentences)]
    lines += [f"Warning: {warning}" for warning in made.warnings]
    return [*lines, f"The page: {out}"]
