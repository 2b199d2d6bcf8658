"""`grv convert`: joins files with labels and scores into one log."""

from __future__ import annotations

from ..core.errors import UsageError
from ..options import option
from .console import check_outputs, say
from .options.command import command

LOG_OUT = "The log: .parquet, .jsonl or .csv."


@command
def convert(
    files: tuple[str, ...] = option(
        ..., "JSON-lines files with labels, scores, candidates.", argument=True, metavar="FILE..."
    ),
    out: str = option(..., LOG_OUT, "--out", "-o", metavar="FILE"),
    problem: tuple[str, ...] = option(
        (), "Field with the problem's name. Default: problem, id or task_id.", metavar="FIELD"
    ),
    candidate: tuple[str, ...] = option(
        (), "Field with the candidate's number. Default: candidate or idx.", metavar="FIELD"
    ),
    passed: tuple[str, ...] = option(
        (), "Field with the label. Default: passed, correct or verdict.", metavar="FIELD"
    ),
    score: tuple[str, ...] = option(
        (),
        "Field with a score, and its column in the log. Repeatable. Default: all whose name begins"
        " with score.",
        metavar="FIELD[=COLUMN]",
    ),
    key: tuple[str, ...] = option(
        (), "Field with the equivalence class. Default: key.", metavar="FIELD"
    ),
    list_: str | None = option(
        None, "Field with the list of candidates of a problem.", "--list", metavar="FIELD"
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
    pairs = [text.partition("=")[::2] for text in score]
    for name, column in pairs:
        if not name or (column or name) in (*REQUIRED, *OPTIONAL):
            raise UsageError(
                f"--score {name}={column}: give FIELD, or FIELD=COLUMN for a score of its own"
            )
    standard = Fields()
    fields = Fields(
        problem=problem or standard.problem,
        candidate=candidate or standard.candidate,
        passed=passed or standard.passed,
        scores=tuple((name, column or name) for name, column in pairs),
        key=key or standard.key,
        list=list_,
    )
    joined = join(files, fields)
    write_log(joined.columns, out)
    say(
        f"{out}: {len(joined)} candidates, {', '.join(joined.score_names)};"
        f" {joined.unlabelled} without a label, {joined.unscored} without a score"
    )
