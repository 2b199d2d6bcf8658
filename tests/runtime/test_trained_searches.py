"""Live searches with a trained score: the model is recorded, kept, and not part of the name."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from grv.backends.protocols import Draft, Problem, Score
from grv.backends.scorers.trained.model import TrainedModel, model_of
from grv.backends.scorers.trained.scorer import COLD, PairedScorer, TrainedScorer
from grv.core.values import Generated, Verdict
from grv.learning.trained.fit import fit
from grv.learning.trained.refits import trained_scorer
from grv.learning.trained.texts import read_texts
from grv.ledger.entries import Entry, Found, Made, Scored, Started, Told
from grv.ledger.ledger import Ledger, MemoryLedger
from grv.ledger.sqlite import SqliteLedger
from grv.policies import VerifyAll
from grv.runtime.config import SearchConfig
from grv.runtime.executor import Backends
from grv.testing.fakes import Crash
from support.live import one_generator, search

WORDS = [f"word{i}" for i in range(20)]


class Writer:
    """Writes texts; one in six passes, and contains "good". Dies at a draft if told to."""

    def __init__(self, dies_at: int | None = None) -> None:
        self.dies_at, self.made = dies_at, 0

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> Sequence[Draft]:
        found = []
        for number in range(first, first + n):
            if number == self.dies_at:
                raise Crash
            chance = random.Random(f"{problem.id} {number}")
            words = chance.sample(WORDS, 4)
            found.append(Draft(" ".join([*words, "good"] if chance.random() < 1 / 6 else words)))
            self.made += 1
        return found


def is_right(problem: Problem, text: str) -> bool:
    return "good" in text


class Counting:
    """Scores by the number of letters."""

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        return [Score(float(len(draft.text) % 3)) for draft in drafts]


def config(scorer: object, writer: Writer | None = None) -> SearchConfig:
    from grv.backends.callables import CallableVerifier

    backends = Backends(writer or Writer(), scorer, CallableVerifier(is_right))  # type: ignore[arg-type]
    return one_generator(backends, VerifyAll(), about={"score": "trained"})


def run(at: int, made: SearchConfig, ledger: Ledger) -> Sequence[Entry]:
    problem = Problem(f"p{at}", "Write it.", {"kind": "math"})
    asyncio.run(search(problem, made, ledger=ledger))
    return ledger.read(made.search_id(problem))


def started(entries: Sequence[Entry]) -> list[Started]:
    return [entry for entry in entries if isinstance(entry, Started)]


@pytest.mark.slow
def test_a_run_learns_from_its_own_ledger(tmp_path: Path) -> None:
    path = str(tmp_path / "runs.ledger")
    made, ledger = config(trained_scorer(path, own=path)), SqliteLedger(path)

    recorded = [started(run(at, made, ledger))[0].scorer for at in range(12)]

    assert recorded[:6] == [COLD] * 6
    assert recorded[6] == recorded[9] != recorded[10] == recorded[11]
    assert model_of(recorded[10]) == fit(
        [each.training() for each in read_texts(path)[:10]], sources=[path]
    )
    assert ledger.check() == []
    ledger.close()


def fitted(seed: int) -> TrainedModel:
    """Two models that differ."""
    ledger = MemoryLedger()
    from grv.learning.trained.texts import search_texts

    made = config(TrainedScorer(lambda: None))
    found = [search_texts(str(at), run(at, made, ledger)) for at in range(seed, seed + 5)]
    return fit([each.problem.training() for each in found if each is not None])


@pytest.mark.slow
def test_a_resumed_search_keeps_its_model_and_pays_nothing_twice() -> None:
    ledger, (old, new) = MemoryLedger(), (fitted(0), fitted(50))
    assert old != new
    dying = config(TrainedScorer(lambda: old), Writer(dies_at=2))
    with pytest.raises(Crash):
        run(105, dying, ledger)
    before = ledger.read(dying.search_id(Problem("p105", "Write it.", {"kind": "math"})))
    made = sum(isinstance(entry, Made) for entry in before)
    assert made == 2

    writer = Writer()
    again = run(105, config(TrainedScorer(lambda: new), writer), ledger)
    straight = run(105, config(TrainedScorer(lambda: old)), MemoryLedger())

    assert [each.scorer for each in started(again)] == [old.to_text()]
    results = (Made, Scored, Told)
    assert [e for e in again if isinstance(e, results)] == [
        e for e in straight if isinstance(e, results)
    ]
    assert writer.made == sum(isinstance(e, Made) for e in again) - made


def test_an_ended_search_is_not_searched_again_by_a_new_model() -> None:
    ledger = MemoryLedger()
    first = run(7, config(TrainedScorer(lambda: fitted(0))), ledger)
    writer = Writer()
    assert run(7, config(TrainedScorer(lambda: fitted(50)), writer), ledger) == first
    assert writer.made == 0


@pytest.mark.slow
def test_scores_live_are_those_of_a_replay(tmp_path: Path) -> None:
    """The scores in the ledger are those that `arriving` computes from the texts."""
    path, model = str(tmp_path / "runs.ledger"), fitted(0)
    ledger = SqliteLedger(path)
    entries = run(105, config(TrainedScorer(lambda: model)), ledger)
    ledger.close()
    (problem,) = read_texts(path)

    live = [entry.score for entry in entries if isinstance(entry, Scored)]

    assert len(live) > 2
    assert live == [model.score(each) for each in problem.arriving()]


def test_the_values_of_alike_reach_the_search_and_the_ledger() -> None:
    from grv.backends.scorers.length import LengthScorer

    entries = run(105, config(PairedScorer(LengthScorer(), Counting())), MemoryLedger())
    scored = [entry for entry in entries if isinstance(entry, Scored)]
    told = [e.event for e in entries if isinstance(e, Told) and isinstance(e.event, Generated)]
    assert [each.alike for each in scored] == [value for event in told for value in event.alike]
    assert [each.alike for each in scored] == [-each.score % 3 for each in scored if each.score]
    verdicts = [entry.verdict for entry in entries if isinstance(entry, Found)]
    assert verdicts[-1] is Verdict.PASSED


def test_without_alike_events_have_none() -> None:
    entries = run(105, config(TrainedScorer(lambda: None)), MemoryLedger())
    told = [e.event for e in entries if isinstance(e, Told) and isinstance(e.event, Generated)]
    assert all(event.alike == () for event in told)
    assert {e.alike for e in entries if isinstance(e, Scored)} == {None}
