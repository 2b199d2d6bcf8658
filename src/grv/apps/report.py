"""`grv report`: a page that says what each policy costs, whether the score is good, what to do."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core.errors import UsageError
from ..logs.reading_options import Reading
from ..options import Family, option
from ..parsing import parse_score
from ..report.print.job import FigureItem, check_ids
from ..report.request import ReportRequest, SourceFile
from .console import check_outputs, progress, say
from .options.command import command
from .options.job import allow_option, job_option

if TYPE_CHECKING:
    from ..report.report import Report

_PAGES = (".html", ".htm", "")  # how the name of a page ends; a device such as /dev/stdout has none


@dataclass(frozen=True)
class ReportFiles(Family):
    """What a report is made from, and what is written."""

    logs: tuple[SourceFile, ...] = option(
        (),
        "What grv compare takes; a ledger of live runs; or what grv compare --json saved.",
        argument=True,
        metavar="[NAME=]LOG...",
        parse=SourceFile.parse,
        tables=True,
    )
    out: str = option("report.html", "The page.", "-o", "--out", metavar="FILE")
    score: tuple[str, ...] = option(
        (),
        "What ranks candidates, as grv compare takes it: a column, cascade(first, second, top=4,"
        " cost=0.5), or a prior. Several appear side by side. Repeatable.",
        metavar="NAME",
        parse=parse_score,
    )
    title: str = option("", "The title of the page.")
    json: str | None = option(None, "Save the numbers of all tables.", metavar="FILE")
    csv: str | None = option(None, "Save each table as a CSV file.", metavar="DIR")
    figures: str | None = option(
        None,
        "Save the figures as PDF and PNG, and the tables as LaTeX, Markdown, text and CSV.",
        metavar="DIR",
    )
    items: tuple[FigureItem, ...] = option(
        (), "What --figures saves.", parse=FigureItem.parse, job_only=True, tables=True
    )


@command
def report(
    request: ReportRequest,
    reading: Reading,
    files: ReportFiles,
    job: str | None = job_option(", in a table [report], with the logs and what --figures saves"),
    allow_commands: bool = allow_option(),
) -> None:
    """Make one page from logs: what policies cost, whether the score is good, what to do.

    The page is one file that needs no network: open it in a browser. It has every figure of the
    paper, drawn from your log, and more, each with its numbers. Several logs, or several scores of
    a log, appear side by side.

    \b
    grv report log.parquet --score score_reward
    grv report log.csv --costs 1,10 --costs 1,30 -o report.html --json report.json
    grv report small=a.parquet large=b.parquet --csv tables --figures figures
    grv report log.parquet --score score_reward --score score_votes
    grv report log.csv --costs 1,10 --costs measured
    grv report answers.jsonl.ledger
    grv report generators.csv --generator small=1 --generator large=20
    grv report --job paper/report.toml --figures figures
    """
    sources = _sources(files, reading)
    check_ids(files.items)
    inputs = [each.path for each in sources] + [reading.rewards, job]
    specs = [*(each.score for each in sources), *request.policies]
    check_outputs([files.out, files.json], inputs, specs)
    if os.path.splitext(files.out)[1].lower() not in _PAGES:
        raise UsageError(
            f"--out {files.out}: the page is HTML: name it .html; --figures DIR saves PDF and more"
        )
    for folder in (files.csv, files.figures):
        _check_folder(folder)
    with progress("making the tables") as tell:
        from ..report.build import make_report
        from ..report.inputs import read_sources
        from ..report.print.printing import check_plotting

        if files.figures is not None:
            check_plotting()
        names = [name for name, _ in request.generators]
        made = make_report(read_sources(sources, names), request, progress=tell)
    _write(made, files, inputs, specs)
    say(*words(made, files.out))


def _write(
    made: Report, files: ReportFiles, inputs: Sequence[str | None], specs: Sequence[str | None]
) -> None:
    """Write the page and everything else that is asked for; first check that all can be."""
    from ..files import write_whole
    from ..report.page.page import page
    from ..report.print.printing import sheet_names, write_sheets

    paths = {files.out, files.json}
    if files.csv is not None:
        paths |= {os.path.join(files.csv, name) for name in made.csv_names}
    if files.figures is not None:
        paths |= {os.path.join(files.figures, name) for name in sheet_names(made, files.items)}
    check_outputs([*paths], inputs, specs)
    write_whole(files.out, page(made, files.title))
    if files.json is not None:
        made.save(files.json)
    if files.csv is not None:
        made.save_csv(files.csv)
    if files.figures is not None:
        with progress("drawing") as tell:
            write_sheets(made, files.figures, files.items, tell)


def _sources(files: ReportFiles, reading: Reading) -> list[SourceFile]:
    """Each file with each score. A file says how it is read, or the flags say it for all."""
    if not files.logs:
        raise UsageError("give at least one log, as in grv report log.parquet")
    sources = []
    for log in files.logs:
        plain = dataclasses.replace(log, reading=reading) if log.reading == Reading() else log
        scored = [dataclasses.replace(plain, score=score) for score in files.score] or [plain]
        if plain.name and len(scored) > 1:
            scored = [dataclasses.replace(one, name=f"{one.name} {one.score}") for one in scored]
        sources += scored
    return sources


def _check_folder(folder: str | None) -> None:
    """Create the folder before any work; refuse one that cannot be written to."""
    if folder is None:
        return
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{folder}: cannot be made: {error.strerror}; give the name of a folder"
        ) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"{folder}: cannot be written to")


def words(made: Report, out: str) -> list[str]:
    """The conclusions, the warnings, and where the page is."""
    lines = []
    for conclusion in made.conclusions:
        lines += [conclusion.question, *(f"  {sentence}" for sentence in conclusion.sentences)]
    lines += [f"Warning: {warning}" for warning in made.warnings]
    return [*lines, f"The page: {out}"]
