"""A ledger as history: read when it is needed, it says what the whole of it says."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from grv.core.errors import LedgerError, UsageError
from grv.learning.history import PastProblem
from grv.learning.ledger_history import RecordedPast, ledger_past
from grv.learning.online import LEARNING
from grv.ledger.entries import Entry, Scored, Started
from grv.ledger.ledger import MemoryLedger
from grv.ledger.sqlite import SqliteLedger
from grv.runtime.experience import Experience, HistoryKind
from grv.testing.contracts_ledger import LIFE


def recorded(path: Path, searches: int, *, scores: tuple[str, ...] = ("score",)) -> str:
    """A ledger of that many searches; each third one has no score of a candidate."""
    with closing(SqliteLedger(path)) as ledger:
        for number in range(searches):
            started = Started(f"p{number}", {"score": scores[number % len(scores)]})
            entries: list[Entry] = [started, *LIFE[1:]]
            if number % 3 == 2:
                entries = [each for each in entries if not isinstance(each, Scored)]
            ledger.append(f"s{number}", entries)
    return str(path)


def described(problem: PastProblem) -> tuple[object, ...]:
    """Everything that is known of a problem."""
    arrays = problem.scores, problem.passed, problem.labelled, problem.ties
    return problem.id, *(array.tolist() for array in arrays), problem.payments


@pytest.mark.parametrize("score", ["a", "b"])
def test_problems_read_one_by_one_are_those_of_the_whole_ledger(tmp_path: Path, score: str) -> None:
    paths = [recorded(tmp_path / name, 9, scores=("a", "b")) for name in ("one", "two")]
    expected = [described(each) for path in paths for each in ledger_past(path, score)[0]]

    found = RecordedPast(paths, score)

    assert len(found) == len(expected) == 6
    assert [described(found[at]) for at in range(len(found))] == expected
    assert [described(each) for each in found[1:5]] == expected[1:5]
    assert found[9:] == []


def test_a_score_that_no_search_has_is_refused(tmp_path: Path) -> None:
    path = recorded(tmp_path / "ledger", 2)
    with pytest.raises(UsageError, match="no score 'other'; there are 'score'"):
        RecordedPast([path], "other")


def test_a_fit_reads_only_the_problems_that_it_is_fitted_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = recorded(tmp_path / "ledger", 90)
    read: list[str] = []
    whole = SqliteLedger.read

    def reading(ledger: SqliteLedger, search: str) -> Sequence[Entry]:
        read.append(search)
        return whole(ledger, search)

    monkeypatch.setattr(SqliteLedger, "read", reading)
    schedule = LEARNING._replace(most=7)
    monkeypatch.setattr(Experience, "schedule", schedule)

    experience = Experience(MemoryLedger(), HistoryKind("", "", "score"), (path,))

    assert anyio.run(experience.prior) is not None
    assert len(read) == 7
    expected = [each.id for each in ledger_past(path, "score")[0]][43:50]
    assert [f"p{search[1:]} ({search})" for search in read[:7]] == expected


def test_damage_is_said_when_a_problem_is_read(tmp_path: Path) -> None:
    path = recorded(tmp_path / "ledger", 3)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE entries SET body = replace(body, '12', '13')")
    past = RecordedPast([path], "score")
    with pytest.raises(LedgerError, match="changed since it was written"):
        past[0]
