"""What a score would be worth that is trained on the verdicts of a log or ledger with texts."""

from __future__ import annotations

from collections.abc import Sequence

from ...comparing.evaluate import Figure, in_order, ranking
from ...core.errors import GrvError
from ...learning.trained.cross_fit import cross_fitted
from ...learning.trained.texts import PastTexts, read_texts
from ...ledger.opening import is_ledger
from .. import columns as c
from ..part import Dataset, Part, RowCollector, TableSchema
from ..table import significant

_MOST = 20_000  # candidates that are scored here; more take minutes

TRAINED = TableSchema(
    name="trained_score",
    title="What would a trained score be worth?",
    caption="How often a candidate that passes ranks above one of its problem that fails; one half"
    " is chance. By the score of the log, and by a score that is trained on texts and verdicts of"
    " other problems: cross-fitted for a log, in order of arrival for a ledger. Of a ledger, only"
    " verified candidates count.",
    alt="A table with two rows per log, its own score and a trained one; of a ledger, the latter.",
    columns=(
        c.LOG,
        c.text("score", "score", "the score of the log, or the trained one"),
        c.PROBLEMS,
        c.number("auc", "AUC", "the mean over problems; ties count half", 3),
        c.number("low", "from", "lower end of the 95 % interval over problems", 3),
        c.number("high", "to", "upper end of the 95 % interval over problems", 3),
    ),
)


def add_log(rows: RowCollector, dataset: Dataset) -> None:
    """Two rows, if the log has texts."""
    name = dataset.name
    problems = _texts(dataset.log.path)
    if problems is None:
        rows.note(TRAINED, f"{name}: without texts, no score can be trained.")
        return
    if sum(len(each.arrivals) for each in problems) > _MOST:
        rows.note(TRAINED, f"{name}: more than {_MOST:,} texts; grv learn --scorer judges them.")
        return
    scores = in_order(problems) if is_ledger(dataset.log.path) else cross_fitted(problems)
    trained = ranking(problems, scores)
    if trained is None:
        rows.note(TRAINED, f"{name}: too few problems have both a pass and a failure.")
        return
    own = None if is_ledger(dataset.log.path) else _own(dataset, problems)
    for score, figure in ((dataset.log.score, own), ("trained", trained)):
        if figure is not None:
            ends = figure.interval or (None, None)
            shown = [None if each is None else significant(each) for each in (figure.mean, *ends)]
            rows.add(TRAINED, name, score, figure.problems, *shown)


def _texts(path: str) -> list[PastTexts] | None:
    """The problems with texts of a file; None if it has none, or is no file."""
    try:
        return read_texts(path)
    except GrvError:
        return None


def _own(dataset: Dataset, problems: Sequence[PastTexts]) -> Figure | None:
    """The same figure by the score of the log; None if candidates were left out of it."""
    known = {problem.id: problem.scores for problem in dataset.log.problems}
    if any(len(known.get(each.id, ())) != len(each.arrivals) for each in problems):
        return None
    return ranking(problems, [known[each.id] for each in problems])


PART = Part("score", (TRAINED,), of_log=add_log, needs_pass=False)
