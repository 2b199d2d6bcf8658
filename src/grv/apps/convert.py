"""`grv convert`: one log out of the files that somebody has."""

from __future__ import annotations

import typer

from ..core.errors import UsageError
from .console import check_outputs, say


def convert(
    files: list[str] = typer.Argument(
        metavar="FILE", help="JSON-lines files with labels, scores, candidates."
    ),
    out: str = typer.Option(
        ..., "--out", "-o", metavar="FILE", help="The log: .parquet, .jsonl or .csv."
    ),
    problem: list[str] = typer.Option(
        None, metavar="FIELD", help="Names the problem. Default: problem, id or task_id."
    ),
    candidate: list[str] = typer.Option(
        None, metavar="FIELD", help="Numbers the candidate. Default: candidate or idx."
    ),
    passed: list[str] = typer.Option(
        None, metavar="FIELD", help="Holds the label. Default: passed, correct or verdict."
    ),
    score: list[str] = typer.Option(
        None,
        metavar="FIELD[=COLUMN]",
        help="Holds a score, and its name in the log. Repeatable. Default: all called score...",
    ),
    key: list[str] = typer.Option(
        None, metavar="FIELD", help="Holds the equivalence class. Default: key."
    ),
    list_: str = typer.Option(
        None, "--list", metavar="FIELD", help="Holds the list of candidates of a problem."
    ),
) -> None:
    """Join labels, scores and candidates from separate files into one log.

    A line is about one candidate, or about one problem with a list of candidates. Rows are joined
    by problem and candidate number.

    \b
    grv convert labels.jsonl scores.jsonl -o log.parquet
    grv convert runs.jsonl --problem task --passed ok --score rm=score_rm -o log.csv
    grv convert generations.jsonl rewards.jsonl --score r_last -o log.parquet
    """
    from ..logs.converting import Fields, check_ending, join, write_log
    from ..logs.readers import OPTIONAL, REQUIRED

    check_ending(out)
    check_outputs([out], files)
    pairs = [text.partition("=")[::2] for text in score or ()]
    for name, column in pairs:
        if not name or (column or name) in (*REQUIRED, *OPTIONAL):
            raise UsageError(
                f"--score {name}={column}: give FIELD, or FIELD=COLUMN for a score of its own"
            )
    standard = Fields()
    fields = Fields(
        problem=tuple(problem or standard.problem),
        candidate=tuple(candidate or standard.candidate),
        passed=tuple(passed or standard.passed),
        scores=tuple((name, column or name) for name, column in pairs),
        key=tuple(key or standard.key),
        list=list_,
    )
    joined = join(files, fields)
    write_log(joined.columns, out)
    say(
        f"{out}: {len(joined)} candidates, {', '.join(joined.score_names)};"
        f" {joined.unlabelled} without a label, {joined.unscored} without a score"
    )
