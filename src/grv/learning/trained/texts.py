"""Past problems with the texts of their candidates, from logs and ledgers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...backends.scorers.auto import AUTO
from ...backends.scorers.trained.features import Arrival, Features, Others, answers_are_programs
from ...backends.scorers.trained.model import TrainedModel
from ...core.errors import LogError, UsageError
from ...core.values import DROPPED, REFUTED, Verdict
from ...files import parse_json
from ...ledger.entries import Entry, Made, Scored, Started
from ...ledger.opening import is_ledger, open_ledger
from ...ledger.view import SearchView
from ...logs.columns import SCORE, WHOLE, key_name
from ...logs.log import Log
from ...logs.readers import is_censored, log_of
from ...logs.reading_options import Reading, Unlabelled
from ...logs.tables import ColumnTable, read_table
from .fit import ScoredTexts

TRAINED = "trained"  # the name of every trained score in a ledger
TEXT = ("text", "completion", "response")  # the column with the candidates' texts


@dataclass(frozen=True, eq=False)
class PastTexts:
    """One past problem.

    Attributes:
        id: the problem's id.
        prompt: its prompt; empty if unknown.
        arrivals: the candidates, in order of arrival.
        passed: `[candidates]`, whether the candidate is known to have passed.
        verified: `[candidates]`, whether it has a verdict.
        programs: whether answers are programs.
    """

    id: str
    prompt: str
    arrivals: tuple[Arrival, ...]
    passed: NDArray[np.bool_]
    verified: NDArray[np.bool_]
    programs: bool = True

    def in_order(self, order: NDArray[np.integer]) -> PastTexts:
        """The problem, if its candidates had arrived in another order."""
        arrivals = tuple(self.arrivals[place] for place in order.tolist())
        passed = self.passed[order]
        verified = self.verified[order]
        return dataclasses.replace(self, arrivals=arrivals, passed=passed, verified=verified)

    def until(self, size: int, verified: NDArray[np.bool_]) -> PastTexts:
        """What a search leaves that generated `size` candidates and verified some of them."""
        passed = self.passed[:size] & verified
        return dataclasses.replace(
            self, arrivals=self.arrivals[:size], passed=passed, verified=verified
        )

    def arriving(self) -> tuple[Features, ...]:
        """The features of the candidates as a live search computes them."""
        others = Others(self.prompt, programs=self.programs)
        found = []
        for arrival in self.arrivals:
            found.append(others.features(arrival))
            others.add(arrival)
        return tuple(found)

    def training(self) -> ScoredTexts:
        """The features to fit a score to.

        A candidate is compared with all others that have no verdict. Of those that have one, all
        but the last have failed, so that a resemblance to them would say more here than it does
        when a candidate arrives. If all have a verdict, no search has chosen them, and all count.
        """
        others = Others(self.prompt, programs=self.programs)
        counting = ~self.verified | self.verified.all()
        for arrival, counts in zip(self.arrivals, counting.tolist(), strict=True):
            others.add(arrival, int(counts))
        found = []
        for arrival, counts in zip(self.arrivals, counting.tolist(), strict=True):
            others.add(arrival, -int(counts))
            found.append(others.features(arrival))
            others.add(arrival, int(counts))
        return ScoredTexts(self.id, tuple(found), self.passed, self.verified)


def read_texts(path: str, given: Sequence[str] = ()) -> list[PastTexts]:
    """The problems of a log or a ledger, with the texts of their candidates and these scores."""
    return ledger_texts(path, given) if is_ledger(path) else log_texts(path, given)


def ledger_texts(path: str, given: Sequence[str] = ()) -> list[PastTexts]:
    """The searches of a ledger that have these scores, in the order in which they ended."""
    ledger = open_ledger(path, read_only=True)
    ended = [(each.ended is None, each.ended or 0.0, each.id) for each in ledger.searches()]
    found = [search_texts(id, ledger.read(id)) for _, _, id in sorted(ended)]
    known = [each for each in found if each is not None]
    if not known:
        raise UsageError(f"{path}: this ledger has no candidates with texts")
    names = sorted({name for each in known for name in each.given})
    for name in given:
        if name not in names:
            raise UsageError(f"{path}: no score {name!r}; there are {', '.join(names) or 'none'}")
    return [each.problem for each in known if each.given.issuperset(given)]


def log_texts(path: str, given: Sequence[str] = ()) -> list[PastTexts]:
    """The problems of a log with a column of texts, and with these columns of scores."""
    table = read_table(path)
    name = next((each for each in TEXT if each in table.columns), None)
    if name is None:
        raise LogError(
            f"no column 'text', which a score is trained on; there are {', '.join(table.columns)}",
            path=path,
        )
    unscored = {"score": np.zeros(table.rows)} | table.columns
    labelled = log_of(
        dataclasses.replace(table, columns=unscored), score="score", unlabelled="bound"
    )
    scores = {each: log_of(table, score=each, unlabelled="bound") for each in given}
    rows = _rows(table)
    found = []
    for at, problem in enumerate(labelled.problems):
        values = {each: log.problems[at].scores.tolist() for each, log in scores.items()}
        arrivals = _arrivals(table, name, rows[problem.id], values)
        known = np.ones(len(problem), dtype=np.bool_)
        for missing in (problem.unknown, problem.refuted):
            known &= True if missing is None else ~missing
        prompt = _text(table, "prompt", rows[problem.id][0])
        found.append(PastTexts(problem.id, prompt, arrivals, problem.passed, known))
    return found


def trained_log(path: str, model: TrainedModel, reading: Reading, *, may_bound: bool) -> Log:
    """A log with texts, ranked by a trained score.

    Scores are those of candidates that arrive in the order of the log. A replay in another order
    keeps them, although similarity and votes would then be those of another order.
    """
    table = read_table(path)
    rows = _rows(table)
    scores = dict[int, float]()
    for problem in log_texts(path, model.needs):
        found = [model.score(each) for each in problem.arriving()]
        scores |= dict(zip(rows[problem.id], found, strict=True))
    column = np.array([scores[row] for row in range(table.rows)])
    table = dataclasses.replace(table, columns={**table.columns, TRAINED: column})
    unlabelled = reading.unlabelled
    if may_bound and unlabelled is Unlabelled.ERROR and is_censored(table):
        unlabelled = Unlabelled.BOUND
    alike = reading.alike or model.alike or None
    log = log_of(table, score=TRAINED, unlabelled=unlabelled, alike=alike)
    log = dataclasses.replace(log, reading={"rewards": None, "unlabelled": unlabelled})
    return log if reading.refute else log.without_refutations()


def _rows(table: ColumnTable) -> dict[str, list[int]]:
    """The rows of each problem, by candidate; the table has been checked before."""
    numbers = list(map(WHOLE.read, table.columns["candidate"].tolist()))
    rows: dict[str, list[int]] = {}
    for row in sorted(range(table.rows), key=numbers.__getitem__):
        rows.setdefault(str(table.columns["problem"][row]), []).append(row)
    return rows


def _arrivals(
    table: ColumnTable, name: str, rows: Sequence[int], given: Mapping[str, Sequence[float]]
) -> tuple[Arrival, ...]:
    keys = table.columns.get("key")
    logprobs = table.columns.get("logprob")
    found = []
    for place, row in enumerate(rows):
        mean = float("nan") if logprobs is None else SCORE.read(logprobs[row])
        scores = {n: each[place] for n, each in given.items() if each[place] > -np.inf}
        found.append(
            Arrival(
                _text(table, name, row),
                (mean,) if np.isfinite(mean) else None,
                None if keys is None else key_name(keys[row]),
                scores,
            )
        )
    return tuple(found)


def _text(table: ColumnTable, name: str, row: int) -> str:
    values = table.columns.get(name)
    return "" if values is None or values[row] is None else str(values[row])


@dataclass(frozen=True, eq=False)
class SearchTexts:
    """The texts of one search in a ledger.

    Attributes:
        given: the names of the scores that its candidates have, trained ones left out.
        problem: the past problem.
    """

    given: frozenset[str]
    problem: PastTexts


def search_texts(id: str, entries: Sequence[Entry]) -> SearchTexts | None:
    """The texts and verdicts of a search; None if it has no candidate with a score."""
    started = next((each for each in entries if isinstance(each, Started)), None)
    view = SearchView(entries)
    made = view.made
    scored = view.scored
    verdicts = {id: found.verdict for id, found in view.found.items()}
    ids = sorted(made.keys() & scored.keys())
    if started is None or not ids:
        return None
    names = str(started.about.get("score", "score")), str(started.about.get("alike", ""))
    arrivals = tuple(_recorded(made[id], scored[id], *names) for id in ids)
    known = [verdicts.get(id) for id in ids]
    check = _check(started.check)
    return SearchTexts(
        frozenset(names) - {TRAINED, AUTO, ""},
        PastTexts(
            id,
            started.prompt,
            arrivals,
            np.array([verdict is Verdict.PASSED for verdict in known], dtype=np.bool_),
            np.array([each in (Verdict.PASSED, Verdict.FAILED) for each in known], dtype=np.bool_),
            answers_are_programs(check),
        ),
    )


def _check(text: str) -> Mapping[str, object]:
    """The check of a search; without any field if it has none that can be read."""
    try:
        check = parse_json(text) if text else {}
    except ValueError:
        return {}
    return check if isinstance(check, dict) else {}


def _recorded(made: Made, scored: Scored, score: str, alike: str) -> Arrival:
    """A candidate of a ledger. Its score is a given one, unless it was or may be trained."""
    key = None if scored.key in (REFUTED, DROPPED) else scored.key
    values = {score: scored.score} | ({alike: scored.alike} if alike else {})
    values.pop(TRAINED, None)
    values.pop(AUTO, None)
    given = {name: value for name, value in values.items() if value is not None}
    return Arrival(made.text, made.logprobs, key, given)
