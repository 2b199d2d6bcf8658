"""`grv runs`: what a ledger holds."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence
from json import dumps as to_json
from typing import TYPE_CHECKING

import typer

from ..core.errors import UsageError
from ..options import option
from ..runtime.training import ExportFormat
from ..text import aligned, counted
from .console import check_outputs, say, say_table
from .convert import LOG_OUT
from .options.command import Group, Sections, command

if TYPE_CHECKING:
    from ..ledger.rows import SearchSummary
    from ..ledger.tables import SoFar, TableLedger

LEDGER = "The file or database given as --ledger."
_DAMAGED = "damaged: {}; the entries up to the damage are there"

runs = typer.Typer(
    cls=Group, help="Read a ledger of live runs.", rich_markup_mode=None, no_args_is_help=True
)


def _open(place: str, *, read_only: bool = True) -> TableLedger:
    from ..ledger.opening import open_ledger, refuse_password

    refuse_password(place)
    return open_ledger(place, read_only=read_only)


@runs.command("list", cls=Sections)
@command
def list_runs(
    ledger: str = option(..., LEDGER, argument=True, metavar="LEDGER"),
) -> None:
    """List the searches: problem, outcome, candidates, verifications and cost.

    A search without an outcome is running or stopped, or it waits for its turn or for a review.
    Its cost, and that of a search that has failed, is what was possibly paid so far.
    """
    opened = _open(ledger)
    so_far = opened.so_far()
    searches = list(opened.searches())
    open_ids = [each.id for each in searches if each.outcome is None]
    doing = opened.doing(open_ids, {id for id in so_far if so_far[id].waiting})
    rows = [_row(each, each.outcome or doing[each.id], so_far.get(each.id)) for each in searches]
    head = ("search", "problem", "started", "outcome", "generated", "verified", "cost")
    say_table(aligned(head, rows, left=4))
    counts = Counter(row[3] for row in rows)
    say(
        f"{counted(len(rows), 'search')}: " + ", ".join(f"{n} {o}" for o, n in counts.most_common())
    )


@runs.command("show", cls=Sections)
@command
def show_run(
    ledger: str = option(..., LEDGER, argument=True, metavar="LEDGER"),
    problem: str = option(
        ..., "The name of a problem or of a search.", argument=True, metavar="PROBLEM"
    ),
    full: bool = option(False, "Show whole texts and all evidence.", "--full"),
    json: bool = option(False, "Print the search as JSON, a line per search.", "--json"),
) -> None:
    """Show one search: each step with its reason, texts, scores, verdicts and the running cost.

    A verdict that is not a pass has its evidence, such as the first failing test. Control
    characters in texts are escaped.
    """
    from ..ledger.view import SearchView
    from .search_lines import SearchLines, search_data

    opened = _open(ledger)
    summaries = [s for s in opened.searches() if problem in (s.problem, s.id)]
    if not summaries:
        raise UsageError(f"{ledger}: no search of {problem!r}; grv runs list shows all searches")
    for summary in summaries:
        entries = opened.read(summary.id)
        if json:
            say(to_json(search_data(summary, entries), default=repr))
            continue
        say(f"{summary.problem} ({summary.id})")
        say(*[f"  {line}" for line in SearchLines(SearchView(entries), full=full).lines()])


@runs.command("watch", cls=Sections)
@command
def watch_runs(
    ledger: str = option(..., LEDGER, argument=True, metavar="LEDGER"),
    every: float = option(1.0, "Seconds between two looks.", least=0.1, most=3600),
) -> None:
    """Watch the searches on the terminal, while other processes run them. Stop it with Ctrl-C.

    Searches without an outcome stand first, then those that ended last. If the output is no
    terminal, a line is printed whenever the sums change. The ledger is only read.
    """
    from .watching import watch

    watch(_open(ledger), every)


@runs.command("check", cls=Sections)
@command
def check_ledger(
    ledger: str = option(..., LEDGER, argument=True, metavar="LEDGER"),
) -> None:
    """Check that no entry of the ledger is torn, missing or changed. Exit code 1 otherwise."""
    opened = _open(ledger)
    wrong = opened.check()
    say(*wrong)
    if wrong:
        say(f"{counted(len(wrong), 'problem')} found; grv runs repair saves what is intact")
        raise typer.Exit(1)
    keyed = "keyed" if opened.seals.name else "not keyed: they show damage, not forgery"
    say("all is well", f"the seals are {keyed}")


@runs.command("export", cls=Sections)
@command
def export_log(
    ledger: str = option(..., LEDGER, argument=True, metavar="LEDGER"),
    out: str = option(..., LOG_OUT, "--out", "-o", metavar="FILE"),
    prices: str | None = option(
        None,
        "Dollars, in TOML: adds the columns generate_cost and verify_cost, with real costs.",
        metavar="FILE",
    ),
    format: ExportFormat = option(
        ExportFormat.LOG,
        "A log for grv compare; or JSON lines for training: sft has a line per verified answer, dpo"
        " one per pair of an answer and a candidate that failed, rlvr one per problem that both"
        " passes and fails.",
    ),
) -> None:
    """Write the candidates, scores and verdicts as a log for grv compare, or as training data.

    The log is marked as censored: candidates that were never verified have no label, and the search
    chose them. grv compare gives bounds for such a log. Training data has verified answers only: a
    text that ever failed, or shares its key with one that failed, is not among them. What a check
    that errs has judged goes to a file of its own, OUT.judged.jsonl.

    \b
    grv runs export answers.jsonl.ledger --out log.parquet
    grv runs export answers.jsonl.ledger --out train.jsonl --format sft
    """
    if format is not ExportFormat.LOG:
        _export_training(ledger, out, format, prices)
        return
    from ..logs.converting import write_log
    from ..runtime.export import exported
    from ..runtime.prices import Prices

    check_outputs([out], [ledger, prices])
    log = exported(_open(ledger), None if prices is None else Prices.load(prices))
    write_log(log.columns, out)
    say(
        f"{out}: {len(log.columns['problem'])} candidates; verdicts: {log.paid} paid for,"
        f" {log.shared} shared; {log.unlabelled} without a label. The log is"
        " censored: the searches chose what to verify."
    )


def _export_training(ledger: str, out: str, format: ExportFormat, prices: str | None) -> None:
    from ..runtime.training import judged_path, training_rows, write_rows
    from .collect import rows_named

    if prices is not None:
        raise UsageError(f"--prices does not apply to --format {format.value}")
    check_outputs([out, judged_path(out)], [ledger])
    written = write_rows(training_rows(_open(ledger), format), out)
    say(f"{out}: {rows_named(written.verified, format)}")
    if written.judged:
        say(f"{written.judged_path}: {written.judged} that are judged, not verified")


@runs.command("repair", cls=Sections)
@command
def repair_ledger(
    ledger: str = option(..., LEDGER, argument=True, metavar="LEDGER"),
    out: str = option(
        ..., "A new ledger; the old one stays as it is.", "--out", "-o", metavar="FILE"
    ),
) -> None:
    """Copy everything intact into a new ledger. Exit code 1 if something was damaged.

    Of a damaged search, the entries before the damage are copied: running the same command as
    before with the new ledger continues it. The new ledger is sealed with the key of the
    environment, if there is one. This also opens a ledger whose write-ahead log is missing.
    """
    import os
    from contextlib import closing

    from ..ledger.checking import repair
    from ..ledger.sqlite import SqliteLedger, open_for_repair

    check_outputs([out], [ledger])
    if os.path.exists(out):
        raise UsageError(f"{out}: exists already; give the name of a new file")
    with closing(open_for_repair(ledger)) as old, closing(SqliteLedger(out)) as new:
        saved = repair(old, new)
    for line in saved.damaged:
        say(line)
    say(f"{out}: {counted(saved.searches, 'search')}, {saved.entries} entries")
    if saved.damaged:
        say(_DAMAGED.format(counted(len(saved.damaged), "search")))
        raise typer.Exit(1)


@runs.command("copy", cls=Sections)
@command
def copy_ledger(
    ledger: str = option(..., LEDGER, argument=True, metavar="LEDGER"),
    to: str = option(..., "The file or database to copy to.", argument=True, metavar="TO"),
) -> None:
    """Copy all searches into another ledger, for example from a file into PostgreSQL or back.

    The other ledger may have searches already; a search that it has too must be the same there.
    Stop the runs that write to the first ledger before. Exit code 1 if a search is damaged.

    \b
    grv runs copy answers.jsonl.ledger postgresql://grv@db.example/grv
    """
    from contextlib import closing

    from ..ledger.checking import repair

    with closing(_open(ledger)) as old, closing(_open(to, read_only=False)) as new:
        saved = repair(old, new)
        summary = f"{new.path}: {counted(saved.searches, 'search')}, {saved.entries} entries"
    say(*saved.damaged, summary + (f"; {saved.known} were there already" if saved.known else ""))
    if saved.damaged:
        say(_DAMAGED.format(counted(len(saved.damaged), "search")))
        raise typer.Exit(1)


def _row(summary: SearchSummary, status: str, so_far: SoFar | None) -> tuple[str, ...]:
    numbers: Sequence[float | None] = (summary.generated, summary.verified, summary.total)
    if so_far is not None:
        numbers = (so_far.generated, so_far.verified, summary.paid)
    return (
        summary.id,
        summary.problem,
        _when(summary.started),
        status,
        *("" if number is None else f"{number:g}" for number in numbers),
    )


def _when(seconds: float) -> str:
    """A time as text; ? if the calendar has no such time."""
    try:
        moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    except (OverflowError, OSError, ValueError):
        return "?"
    return moment.strftime("%Y-%m-%d %H:%M:%S")
