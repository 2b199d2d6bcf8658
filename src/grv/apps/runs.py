"""`grv runs`: what a ledger holds."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from ..core.errors import UsageError
from ..options import option
from ..text import aligned
from .console import check_outputs, say
from .convert import LOG_OUT
from .options.command import command

if TYPE_CHECKING:
    from ..ledger.entries import Entry
    from ..ledger.rows import SearchSummary
    from ..ledger.tables import TableLedger

LEDGER = "The file or database given as --ledger."

runs = typer.Typer(help="Read a ledger of live runs.", rich_markup_mode=None, no_args_is_help=True)


def _open(place: str, *, read_only: bool = True) -> TableLedger:
    from ..ledger.opening import open_ledger, refuse_password

    refuse_password(place)
    return open_ledger(place, read_only=read_only)


@runs.command("list")
@command
def list_runs(
    ledger: str = option(..., LEDGER, argument=True, metavar="LEDGER"),
) -> None:
    """List the searches: problem, outcome, candidates, verifications and cost."""
    opened = _open(ledger)
    so_far = opened.so_far()
    rows = [_row(summary, so_far.get(summary.id, ())) for summary in opened.searches()]
    head = ("search", "problem", "started", "outcome", "generated", "verified", "cost")
    say(*aligned(head, rows, left=4).split("\n"))
    counts = Counter(row[3] for row in rows)
    say(f"{len(rows)} searches: " + ", ".join(f"{n} {o}" for o, n in counts.most_common()))


@runs.command("show")
@command
def show_run(
    ledger: str = option(..., LEDGER, argument=True, metavar="LEDGER"),
    problem: str = option(
        ..., "The name of a problem or of a search.", argument=True, metavar="PROBLEM"
    ),
) -> None:
    """Show one search: each step with its reason and result, and why it stopped."""
    opened = _open(ledger)
    found = [s for s in opened.searches() if problem in (s.problem, s.id)]
    if not found:
        raise UsageError(f"{ledger}: no search of {problem!r}; grv runs list shows all searches")
    for summary in found:
        say(f"{summary.problem} ({summary.id})")
        for line in _lines(opened.read(summary.id)):
            say(f"  {line}")


@runs.command("check")
@command
def check_ledger(
    ledger: str = option(..., LEDGER, argument=True, metavar="LEDGER"),
) -> None:
    """Check that no entry of the ledger is torn, missing or changed. Exit code 1 otherwise."""
    opened = _open(ledger)
    wrong = opened.check()
    say(*wrong)
    if wrong:
        say(f"{len(wrong)} problems found; grv runs repair saves what is intact")
        raise typer.Exit(1)
    keyed = "keyed" if opened.seals.name else "not keyed: they show damage, not forgery"
    say("all is well", f"the seals are {keyed}")


@runs.command("export")
@command
def export_log(
    ledger: str = option(..., LEDGER, argument=True, metavar="LEDGER"),
    out: str = option(..., LOG_OUT, "--out", "-o", metavar="FILE"),
    prices: str | None = option(
        None,
        "Dollars, in TOML: adds the columns generate_cost and verify_cost, with real costs.",
        metavar="FILE",
    ),
) -> None:
    """Write the candidates, scores and verdicts as a log for grv compare.

    Candidates that were never verified have no label: see --unlabelled of grv compare.
    """
    from ..logs.converting import write_log
    from ..runtime.prices import Prices
    from ..runtime.results.export import log_columns

    check_outputs([out], [ledger, prices])
    columns = log_columns(_open(ledger), None if prices is None else Prices.load(prices))
    write_log(columns, out)
    labelled = sum(value is not None for value in columns["passed"])
    say(f"{out}: {len(columns['problem'])} candidates, {labelled} of them verified")


@runs.command("repair")
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
    say(f"{out}: {saved.searches} searches, {saved.entries} entries")
    if saved.damaged:
        say(f"{len(saved.damaged)} searches were damaged; their entries up to the damage are there")
        raise typer.Exit(1)


@runs.command("copy")
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
        said = f"{new.path}: {saved.searches} searches, {saved.entries} entries"
    say(*saved.damaged, said + (f"; {saved.known} were there already" if saved.known else ""))
    if saved.damaged:
        say(f"{len(saved.damaged)} searches are damaged; their entries up to the damage are there")
        raise typer.Exit(1)


def _row(summary: SearchSummary, so_far: Sequence[int]) -> tuple[str, ...]:
    numbers: Sequence[float | None] = (summary.generated, summary.verified, summary.total)
    if summary.generated is None and so_far:
        numbers = (*so_far, None)
    return (
        summary.id,
        summary.problem,
        _when(summary.started),
        summary.outcome or "unfinished",
        *("" if number is None else f"{number:g}" for number in numbers),
    )


def _when(seconds: float) -> str:
    """A time as text; ? if the calendar has no such time."""
    try:
        moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    except (OverflowError, OSError, ValueError):
        return "?"
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def _lines(entries: Sequence[Entry]) -> list[str]:
    """A search as text, one line per step."""
    from ..core.values import Generated, Rescored, Verified
    from ..ledger.entries import Ended, Failed, Found, Scored, ScoredAgain, Started, Told
    from ..ledger.pending import pending_calls

    lines = []
    for entry in entries:
        match entry:
            case Started(_, about):
                said = (f"{k} {v}" for k, v in about.items() if v not in (None, "", []))
                lines.append("started: " + ", ".join(said))
            case Scored(candidate, None, _, reason):
                lines.append(f"candidate {candidate} has no score: {reason}")
            case Found(candidate, verdict, reason):
                lines.append(
                    f"candidate {candidate} {verdict.value}" + (f": {reason}" if reason else "")
                )
            case Told(Generated(scores), why):
                lines.append(f"generated {len(scores)} ({why})")
            case ScoredAgain(candidate, None, reason):
                lines.append(f"candidate {candidate} has no second score: {reason}")
            case Told(Rescored(second), why):
                lines.append(f"rescored {len(second)} ({why})")
            case Told(Verified(verdicts), why):
                lines.append(f"verified {len(verdicts)} ({why})")
            case Ended(reason, answer, generated, verified, total, why):
                end = f"{reason}: {generated} generated, {verified} verified, cost {total:g}"
                end += f"; {why}" if why else ""
                lines.append(
                    end + ("" if answer is None else f"; candidate {answer} is the answer")
                )
            case Failed(message):
                lines.append(f"failed: {message}")
    pending = pending_calls(entries)
    if pending.cancelled:
        lines.append(f"paid but unneeded: {pending.cancelled} verify")
    if pending.lost:
        counted = ", ".join(f"{count} {call}" for call, count in pending.lost.items())
        lines.append(f"possibly paid, lost: {counted}")
    for call, candidate in sorted(pending.parked):
        lines.append(f"parked: {call} of candidate {candidate}, until its result is entered")
    return lines
