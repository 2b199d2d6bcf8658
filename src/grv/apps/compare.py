"""`grv compare`: what each policy would have cost on a log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..comparing.settings import TableSettings
from ..core.errors import UsageError
from ..logs.reading_options import Reading
from ..options import option
from ..parsing import parse_cascade, parse_errors, parse_named_cost, parse_score
from ..text import aligned, counted
from .console import check_outputs, listed, progress, say, say_table
from .options.command import command
from .options.job import allow_option, job_option

if TYPE_CHECKING:
    from ..comparing.comparison import Comparison

LOG = "A log in Parquet, JSON lines or CSV; or a published generations.jsonl or verified.jsonl."
SCORE = (
    "The column that ranks candidates; or cascade(first, second, top=4, cost=0.5): before one of"
    " the best 4 by the first column is verified, the second column ranks them, for 0.5 each; or a"
    " prior, for the combination of scores that it was learned with; or a scorer of grv learn, if"
    " the log has texts."
)


@command
def compare(
    settings: TableSettings,
    reading: Reading,
    log: str = option(..., LOG, argument=True, metavar="LOG"),
    score: str | None = option(None, SCORE, metavar="NAME", parse=parse_score),
    json: str | None = option(None, "Save the numbers.", metavar="FILE"),
    csv: str | None = option(None, "Save the rows as a table.", metavar="FILE"),
    pairs: bool = option(
        False, "Compare each two rows by a paired test, corrected for the number of tests."
    ),
    generators: tuple[tuple[str, float], ...] = option(
        (),
        "A generator of the log (column generator) and the cost of one of its candidates. The table"
        " then compares portfolios, single generators and orders of them; V of --costs is the cost"
        " to verify, and --policy decides within each generator. Repeatable.",
        "--generator",
        metavar="NAME=COST",
        parse=parse_named_cost,
    ),
    errors: tuple[float, float] | None = option(
        None,
        "Replay with a verifier that errs: A is how often a call passes a wrong candidate, B how"
        " often it fails a right one. The table compares the rules by which candidates are"
        " confirmed; each call costs V.",
        metavar="A,B",
        parse=parse_errors,
    ),
    wrong: float = option(
        0.05,
        "With --errors: the probability of a wrong answer that you accept.",
        metavar="P",
        least=1e-9,
        most=0.5,
    ),
    job: str | None = job_option(", in a table [compare]"),
    allow_commands: bool = allow_option(),
) -> None:
    """Replay policies on a log and compare what they cost.

    A log has one row per candidate, with the columns problem, candidate, passed, at least one
    score, and optionally key. Every policy sees the same candidates in the same orders. The row
    varied, the default policy, is always there; learning learns from one problem to the next.

    \b
    grv compare log.parquet --score score_reward
    grv compare log.csv --costs 1,10 --costs 1,30 --policy adaptive --policy "fixed(64, 4)"
    grv compare log.csv --costs 1,10 --costs measured
    grv compare log.csv --policy learning --policy verify-all --baseline verify-all --pairs
    grv compare log.csv --value 500 --unsolvable include
    grv compare log.csv --width 16 --latency 5,30 --wait-price 0.5
    grv compare log.csv --keys --answers 3
    grv compare log.csv --total-budget 10%,25%,50% --schedule least-spent,in-order
    grv compare log.csv --errors .05,.1 --wrong .05 --unsolvable include
    grv compare generators.csv --generator small=1 --generator large=20 --costs 1,10 --keys
    grv compare generations.jsonl --rewards rewards.jsonl --score r_last --order-scheme paper \\
        --width all --json table.json
    """
    check_outputs([json, csv], [log, reading.rewards, job], [score, *settings.policies])
    if errors is not None:
        if generators or pairs or settings.total_budget is not None:
            raise UsageError(
                "--errors compares rules: leave out --generator, --pairs, --total-budget"
            )
        _compare_rules(log, settings, reading, score, json, csv, errors, wrong)
        return
    if generators:
        from .compare_generators import compare_by_generator

        if settings.total_budget is not None:
            raise UsageError(
                "--total-budget replays batches of one generator: leave out --generator"
            )
        compare_by_generator(log, generators, settings, reading, score, json, csv, pairs=pairs)
        return
    _compare_policies(log, settings, reading, score, json, csv, pairs=pairs)


def _compare_rules(
    log: str,
    settings: TableSettings,
    reading: Reading,
    score: str | None,
    json: str | None,
    csv: str | None,
    errors: tuple[float, float],
    wrong: float,
) -> None:
    """Compare the rules by which candidates are confirmed if the verifier errs."""
    import json as json_text

    from ..comparing.erring import compare_erring, erring_cells
    from ..comparing.rows import DEFAULT_ROW, PolicyRow, parse_row, row_name
    from ..comparing.settings import Unsolvable
    from ..core.values import Measured
    from ..files import write_whole
    from ..learning.score_combination import read_scored
    from ..text import csv_text
    from ..theory.confirmations import Errors

    if parse_cascade(score or "") is not None:
        raise UsageError("--errors: give one score, not a cascade")
    if len(settings.costs) != 1 or isinstance(settings.costs[0], Measured | None):
        raise UsageError("--errors needs one price list, as in --costs 1,10")
    policies = {}
    for text in settings.policies or (DEFAULT_ROW,):
        row = parse_row(text)
        if not isinstance(row, PolicyRow) or row.whole_steps:
            raise UsageError(f"--errors: {text} is no policy that can run live")
        policies[row_name(text)] = row.policy
    logged = read_scored(log, score, reading=reading)
    include = settings.unsolvable is Unsolvable.INCLUDE
    with progress("comparing"):
        rows = compare_erring(
            policies,
            logged,
            settings.costs[0],
            Errors(*errors),
            wrong=wrong,
            orders=settings.orders,
            seed=settings.seed,
            limits=settings.limits,
            keys=settings.keys,
            unsolvable=include,
            jobs=settings.jobs,
        )
    head, cells = erring_cells(rows)
    if json is not None:
        record = {"errors": errors, "wrong": wrong, "rows": [row.to_json() for row in rows]}
        write_whole(json, json_text.dumps(record, indent=2) + "\n")
    if csv is not None:
        write_whole(csv, csv_text(head, cells))
    which = "all problems" if include else "the solvable problems"
    say(
        f"{log}: {which}, {settings.orders} orders each, costs {settings.costs[0].candidate:g},"
        f"{settings.costs[0].verify:g}; a call passes a wrong candidate with probability"
        f" {errors[0]:g} and fails a right one with {errors[1]:g}",
        "",
    )
    say_table(aligned(head, cells, left=2))
    say(
        "",
        f"cold keeps wrong answers per search at {wrong:g} or below; the others do not promise it."
        " Each call costs as much as a verification. Intervals are by problems.",
    )


def _compare_policies(
    log: str,
    settings: TableSettings,
    reading: Reading,
    score: str | None,
    json: str | None,
    csv: str | None,
    *,
    pairs: bool,
) -> None:
    """Compare policies; print the table and what it says."""
    with progress("comparing") as tell:
        from ..comparing.bounds import has_bounds
        from ..comparing.compare import compare as replay_all
        from ..comparing.rows import DEFAULT_ROWS, PolicyRow, completed, kind_of, parse_row
        from ..learning.score_combination import read_scored

        rows = completed(settings.policies or DEFAULT_ROWS, settings.baseline)
        if settings.answers > 1 and not settings.policies:
            rows = tuple(row for row in rows if isinstance(kind_of(row), PolicyRow))
        for text in rows:
            parse_row(text)
        first, second, cascade = parse_cascade(score) or (score, None, None)
        logged = read_scored(log, first, second=second, reading=reading, may_bound=True)
        left_out: list[str] = []
        if logged.is_bounded and not settings.policies:
            left_out = [row for row in rows if not has_bounds(kind_of(row), settings)]
            rows = tuple(row for row in rows if row not in left_out)
        prices = [logged.measured if each is None else each for each in settings.costs]
        comparison = replay_all(rows, logged, prices, settings, cascade=cascade, progress=tell)
    if json is not None:
        comparison.save(json)
    if csv is not None:
        comparison.save_csv(csv)
    say(*heading(comparison))
    if left_out:
        say(f"rows left out, because they need all labels: {', '.join(left_out)}")
    say("")
    say_table(comparison.table())
    say("")
    if pairs:
        say(*pair_table(comparison), "")
    say(*words(comparison))
    if comparison.batches:
        say("", *batch_lines(comparison))


def batch_lines(comparison: Comparison) -> list[str]:
    """What one budget for all problems buys, price list by price list."""
    from ..comparing.batch_row import batch_cells, batch_words

    lines: list[str] = []
    for prices in dict.fromkeys(row.prices for row in comparison.batches):
        rows = [row for row in comparison.batches if row.prices == prices]
        lines += [
            f"one budget for all {rows[0].problems} problems at costs {prices}: share of the"
            f" {rows[0].solvable} solvable ones that are solved, with 95 % intervals; 100 % of the"
            f" money is {rows[0].budget / rows[0].share:.4g}",
            *aligned(*batch_cells(rows), left=2).split("\n"),
            *batch_words(rows),
        ]
    return lines


def heading(comparison: Comparison) -> list[str]:
    """What was compared, and what was left out."""
    log = comparison.log
    settings = comparison.settings
    keys = "each key verified once" if settings["keys"] else "no keys"
    lines = [
        f"{settings['log']}: {counted(log.problems, 'problem')}, {log.solvable} of them solvable,"
        f" {counted(log.candidates, 'candidate')}, score {settings['score']}"
        + _cascade_words(settings),
        f"{settings['orders']} orders per problem ({settings['order_scheme']}, seed"
        f" {settings['seed']}), {width_words(settings)}, {keys}; ratios to"
        f" {comparison.baseline}",
    ]
    if settings.get("answers", 1) > 1:
        lines.append(
            f"{settings['answers']} different answers per problem, of different keys where the log"
            " has keys; a problem without as many is unsolved"
        )
    if log.excluded:
        what = "a known pass" if comparison.is_bounded else "any pass"
        lines.append(f"left out, without {what} ({len(log.excluded)}): {listed(log.excluded)}")
    if log.unscored:
        lines.append(f"candidates without a score, which rank last: {log.unscored}")
    if log.unlabelled:
        lines.append(f"candidates without a label: {log.unlabelled}{_label_words(comparison)}")
    if log.refuted:
        lines.append(
            f"candidates refuted without verification, which no row verifies: {log.refuted}"
        )
    if settings.get("refute") is False:
        lines.append("refuted candidates are verified and charged like others (--no-refute)")
    if log.published:
        lines.append(
            "labels by the rules of the paper's published code, for comparison with it only:"
            f" {log.published} of {counted(log.candidates, 'candidate')}"
        )
    if log.judged:
        lines.append(
            f"labels by a check that errs, judged and not verified: {log.judged} of"
            f" {counted(log.candidates, 'candidate')}"
        )
    if log.censored:
        lines.append(
            "This log is censored: a search chose what to verify, and stopped generating at its"
            " first pass. Passes are more frequent in it than among new candidates, so the same"
            " policies may cost more live."
        )
    if log.staged and any(row.measured for row in comparison.rows):
        lines.append(
            "measured costs bill a verification for the stages that ran, to the first failure:"
            f" {log.staged} of {counted(log.candidates, 'candidate')} have stages"
        )
    elif log.staged:
        lines.append(
            f"{counted(log.staged, 'candidate')} have stages; a price list bills every verification"
            " alike (--costs G,V,F: every failure), and --costs measured bills the stages that ran"
        )
    if log.unpriced and any(row.measured for row in comparison.rows):
        lines.append(f"unknown costs, replaced by the mean of the known ones: {log.unpriced}")
    if settings["keys"] and log.contradictory:
        names = [f"{key} of {id}" for id, keys in log.contradictory.items() for key in keys]
        lines.append(f"keys with both labels, not used as classes ({len(names)}): {listed(names)}")
    return lines


def _label_words(comparison: Comparison) -> str:
    """What was done about missing labels."""
    if comparison.is_bounded:
        return (
            ". Each number is a range: from all of them pass to all of them fail (a ratio: from one"
            " row at its best over the other at its worst)"
        )
    what = {"fail": ", counted as failed", "drop": ", left out"}
    words = what.get(str(comparison.settings.get("unlabelled")), "")
    if words and comparison.log.censored:
        words += ". This is a guess: labels are missing where the search expected failures"
    return words


def width_words(settings: Mapping[str, Any]) -> str:
    """The width, and when a search stops."""
    match settings["width"]:
        case "all":
            stops = "whole steps are paid for"
        case 1:
            stops = "stops at the first pass"
        case width:
            stops = f"{_block_words(width, settings.get('pace', {}))}; stops after the first pass"
    return f"width {settings['width']} ({stops})"


def _block_words(width: int, pace: Mapping[str, Any]) -> str:
    """How many verifications are in flight at once."""
    if pace.get("wait_price"):
        blocks = f"up to {width} at once, as a second of waiting costs {pace['wait_price']:g}"
    elif not pace.get("ramp", True):
        blocks = f"{width} at once"
    elif pace.get("random_phase"):
        blocks = f"1 or 2, then twice as many ... {width} at once"
    else:
        blocks = f"2, 4 ... {width} at once"
    return blocks + (", candidates ahead" if pace.get("overlap", True) else "")


def _cascade_words(settings: Mapping[str, Any]) -> str:
    cascade = settings["cascade"]
    if cascade is None:
        return ""
    return f", then {settings['second']} for the best {cascade['top']} at {cascade['cost']:g} each"


def words(comparison: Comparison) -> list[str]:
    """The result in a few sentences per price list."""
    from ..comparing.conclusion import conclusion

    return [line for prices in prices_of(comparison) for line in conclusion(comparison, prices)]


def prices_of(comparison: Comparison) -> list[str]:
    """The names of the price lists, in order."""
    return list(dict.fromkeys(row.prices for row in comparison.rows))


def pair_table(comparison: Comparison) -> list[str]:
    """The paired tests as lines of text, with their method."""
    from ..comparing.significance import METHOD, shown_p

    head = ("costs", "row", "compared with", "ratio", "95 %", "p", "solved", "p of solved")
    rows = [
        (
            pair.prices,
            pair.first,
            pair.second,
            "" if pair.ratio is None else f"x{pair.ratio:.2f}",
            "" if pair.low is None else f"{pair.low:.2f}-{pair.high:.2f}",
            shown_p(pair.adjusted).removeprefix("= "),
            f"{100 * pair.solved:+.1f}",
            shown_p(pair.solved_adjusted).removeprefix("= "),
        )
        for pair in comparison.pairs
    ]
    tests = sum(
        (pair.adjusted is not None) + (pair.solved_adjusted is not None)
        for pair in comparison.pairs
    )
    return [
        *aligned(head, rows, left=3).split("\n"),
        f"p: {METHOD} ({tests}). solved: difference in percentage points. No p: no difference on"
        " any problem.",
    ]
