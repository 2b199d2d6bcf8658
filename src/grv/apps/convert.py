"""`grv convert`: joins files with labels and scores into one log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core.errors import UsageError
from ..options import Family, option
from .console import check_outputs, listed, say
from .options.command import command

if TYPE_CHECKING:
    from ..logs.entries import Fields

_NAMED = 5  # problems that are named for each reason
LOG_OUT = "The log: .parquet, .jsonl or .csv."


@dataclass(frozen=True)
class FieldNames(Family):
    """Which fields of the files hold what. Grv looks for the usual names if none is given.

    A name may be a path, as in scores.match.answer.
    """

    problem: tuple[str, ...] = option(
        (), "Field with the problem's name. Default: problem, id or task_id.", metavar="FIELD"
    )
    candidate: tuple[str, ...] = option(
        (), "Field with the candidate's number. Default: candidate or idx.", metavar="FIELD"
    )
    passed: tuple[str, ...] = option(
        (), "Field with the label. Default: passed, correct or verdict.", metavar="FIELD"
    )
    score: tuple[str, ...] = option(
        (),
        "Field with a score, and its column in the log; or length, logprob or votes, which are"
        " computed. Repeatable. Default: all whose name begins with score, or else what can be"
        " computed.",
        metavar="FIELD[=COLUMN]",
    )
    key: tuple[str, ...] = option(
        (), "Field with the equivalence class. Default: key.", metavar="FIELD"
    )
    text: tuple[str, ...] = option(
        (),
        "Field with the candidate's text, to compute its length. Default: text, completion or"
        " response.",
        metavar="FIELD",
    )
    list: str | None = option(
        None, "Field with the list of candidates of a problem.", metavar="FIELD"
    )
    filter: str | None = option(
        None, "The filter of lm-evaluation-harness whose labels count.", metavar="NAME"
    )
    hour: float | None = option(
        None,
        "Dollars per hour of the machine that verified. It adds what each verification of a job of"
        " Harbor cost.",
        metavar="USD",
        least=1e-9,
        most=1e6,
    )


@command
def convert(
    names: FieldNames,
    files: tuple[str, ...] = option(
        ...,
        "Files with labels, scores, candidates: JSON lines, Parquet, CSV, logs of inspect_ai"
        " (.eval, .json), samples of lm-evaluation-harness, traces of verifiers, details of"
        " lighteval, predictions of SWE-bench and the reports of its harness; folders with jobs of"
        " Harbor.",
        argument=True,
        metavar="FILE...",
    ),
    out: str = option(..., LOG_OUT, "--out", "-o", metavar="FILE"),
    importer: str | None = option(
        None,
        "The plugin that reads the files. Without it, grv finds out what they are.",
        metavar="NAME",
        code=True,
    ),
    predictions: str | None = option(
        None,
        "Write verified answers of grv solve as predictions for SWE-bench, under this model's name,"
        " instead of a log.",
        metavar="MODEL",
    ),
) -> None:
    """Make one log from the files you have: labels, scores and candidates.

    A row is about one candidate, or about one problem with a list of candidates. Rows are joined
    by problem and candidate number.

    \b
    grv convert labels.jsonl scores.jsonl -o log.parquet
    grv convert runs.jsonl --problem task --passed ok --score rm=score_rm -o log.csv
    grv convert generations.jsonl rewards.jsonl --score r_last -o log.parquet
    grv convert runs/*.eval -o log.parquet
    grv convert samples_gsm8k_*.jsonl --filter strict-match -o log.parquet
    grv convert jobs/ --hour 0.2 -o log.parquet
    grv convert predictions_1.jsonl predictions_2.jsonl report_1.json report_2.json -o log.parquet
    grv convert answers.jsonl --predictions my-model -o predictions.jsonl
    """
    from ..logs.converting import check_ending, join, write_log
    from ..logs.entries import importer_named

    check_outputs([out], files)
    if predictions is not None:
        _write_predictions(files, out, predictions)
        return
    check_ending(out)
    fields = _fields(names)
    joined = join(files, fields, None if importer is None else importer_named(importer))
    write_log(joined.columns, out)
    say(*joined.notes)
    say(
        f"{out}: {len(joined)} candidates, {', '.join(joined.score_names)};"
        f" {joined.unlabelled} without a label, {joined.unscored} without a score"
    )


def _write_predictions(files: tuple[str, ...], out: str, model: str) -> None:
    from ..logs.swe_bench import write_predictions
    from ..text import counted

    written = write_predictions(files, out, model)
    say(f"{out}: {counted(written.count, 'prediction')}")
    for reason, names in written.left_out.items():
        say(f"left out: {len(names)}, {reason}: {listed(names, _NAMED)}")


def _column(field: str) -> str:
    """The column of a score: `score_length` for one that is computed."""
    from ..logs.computed_scores import COMPUTED

    return f"score_{field}" if field in COMPUTED else field


def _fields(names: FieldNames) -> Fields:
    from ..logs.entries import Fields
    from ..logs.readers import OPTIONAL, REQUIRED

    pairs = [text.partition("=")[::2] for text in names.score]
    for name, column in pairs:
        if not name or (column or name) in (*REQUIRED, *OPTIONAL):
            raise UsageError(
                f"--score {name}={column}: give FIELD, or FIELD=COLUMN for a score of its own"
            )
    standard = Fields()
    return Fields(
        problem=names.problem or standard.problem,
        candidate=names.candidate or standard.candidate,
        passed=names.passed or standard.passed,
        scores=tuple((name, column or _column(name)) for name, column in pairs),
        key=names.key or standard.key,
        text=names.text or standard.text,
        list=names.list,
        filter=names.filter,
        hour=names.hour,
    )
