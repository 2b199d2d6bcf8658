"""Jobs of the policy `learning`: what they learn from, and that they can be interrupted."""

from __future__ import annotations

import gc
import math
import threading
import warnings
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from grv import Costs
from grv.backends.protocols import Draft, Problem, Score
from grv.core.errors import UsageError
from grv.learning.history import PastProblem
from grv.learning.ledger_history import entries_past
from grv.learning.online import FitSchedule, fitted_prior
from grv.learning.prior_file import from_text
from grv.ledger.entries import Scored, Started, Told
from grv.ledger.ledger import Ledger, MemoryLedger
from grv.ledger.sqlite import SqliteLedger
from grv.policies import Learning
from grv.policies.learned.policy import UnlikeHistoryWarning
from grv.runtime.config import config_of
from grv.runtime.experience import Experience
from grv.runtime.ledger_writer import LedgerWriter
from grv.runtime.record import SearchRecord
from grv.runtime.solution import Solution
from grv.runtime.solve import SolveOptions, solve, solve_many
from grv.testing.fakes import Crash
from grv.theory.guard import FACTOR
from support.learning import Problems, course

pytestmark = pytest.mark.anyio
COLD = "varied(factor=5.0)"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def job(
    made: Problems,
    problems: Sequence[Problem],
    ledger: Ledger,
    policy: str | Learning = "learning",
    at_once: int = 1,
    budget: float = 600.0,
    other: Mapping[str, str] | None = None,
) -> list[Solution]:
    """The solutions of a job, in the order of their ends."""
    how: SolveOptions = {"generator": made, "scorer": made, "verifier": made, "policy": policy}
    how |= {"ledger": ledger, "at_once": at_once, "costs": Costs(1, 10), "budget": budget}
    how["identity"] = {"generator": "made up", "score": "made up", **(other or {})}
    found = solve_many(problems, **how)
    return [solution async for solution in found]


def summary(solutions: Sequence[Solution]) -> dict[str, tuple[str, float]]:
    """What decided each problem, and what it cost."""
    return {each.problem: (each.policy, each.bill.total) for each in solutions}


@pytest.mark.slow
async def test_the_first_six_problems_are_cold_and_then_history_decides() -> None:
    made = Problems()
    found = await job(made, made.problems(24), MemoryLedger())

    policies = [solution.policy for solution in found]
    assert policies[:6] == [COLD] * 6
    assert all(each.startswith("learned(prior='history', hash=") for each in policies[6:])
    assert [i for i in range(1, 24) if policies[i] != policies[i - 1]] == [6, 10, 15, 22]
    assert all(solution.verified for solution in found)


@pytest.mark.slow
@pytest.mark.parametrize("most", [3, 400])
async def test_no_more_problems_are_kept_than_a_fit_takes(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(Experience, "schedule", FitSchedule(2, 4, most))
    ledger, made = MemoryLedger(), Problems()
    found = await job(made, made.problems(9), ledger)
    config = config_of({"generator": made, "scorer": made, "verifier": made, "policy": "learning"})
    about = {"generator": "made up", "score": "made up"}
    before = past_problems()
    experience = Experience.of(replace(config, about=about), LedgerWriter(ledger))
    for each in found:
        await experience.add(SearchRecord(None, each.search, ledger.read(each.search)))
        assert await experience.prior() is not None
    assert past_problems() - before == min(most, 9)


def past_problems() -> int:
    """How many are in memory."""
    gc.collect()
    return sum(isinstance(each, PastProblem) for each in gc.get_objects())


@pytest.mark.slow
async def test_a_job_that_is_killed_and_continued_takes_the_same_course(tmp_path: Path) -> None:
    problems, whole = Problems().problems(17), MemoryLedger()
    expected = await job(Problems(), problems, whole)
    path, crashes, found = tmp_path / "ledger", 0, list[Solution]()
    for crash_at in (3, 40, 7, 0):
        with closing(SqliteLedger(path)) as ledger:
            try:
                found = await job(Problems(crash_at=crash_at), problems, ledger)
            except* Crash:
                crashes += 1

    assert crashes == 3
    assert summary(found) == summary(expected)
    with closing(SqliteLedger(path, read_only=True)) as ledger:
        for solution in expected:
            assert course(ledger, solution.search) == course(whole, solution.search)


@pytest.mark.slow
async def test_searches_that_had_begun_continue_with_their_prior(tmp_path: Path) -> None:
    """With several problems at once, those that had not begun may see more history."""
    problems, path = Problems().problems(24), tmp_path / "ledger"
    with closing(SqliteLedger(path)) as ledger:
        with suppress(Crash):
            await job(Problems(crash_at=60), problems, ledger, at_once=8)
        begun = {id: starts(ledger, id) for id in ledger.search_ids()}
        ended = {id for id, _ in ledger.ended_searches()}
    assert len(begun) > len(ended)

    with closing(SqliteLedger(path)) as ledger:
        found = await job(Problems(), problems, ledger, at_once=8)
        assert len(found) == 24
        for id, before in begun.items():
            assert starts(ledger, id) == before  # none was started again


@pytest.mark.slow
async def test_a_second_job_starts_from_the_verdicts_of_the_first(tmp_path: Path) -> None:
    made, path = Problems(), tmp_path / "ledger"
    problems = made.problems(26)
    with closing(SqliteLedger(path)) as ledger:
        await job(made, problems[:20], ledger)
    given = await job(made, problems[20:], MemoryLedger(), Learning((str(path),)))
    with closing(SqliteLedger(path)) as ledger:
        again = await job(made, problems[20:], ledger)

    assert all(each.policy.startswith("learned(") for each in again)
    assert summary(given) == summary(again)


async def test_a_history_with_another_score_is_an_error(tmp_path: Path) -> None:
    made, path = Problems(), tmp_path / "ledger"
    with closing(SqliteLedger(path)) as ledger:
        await job(made, made.problems(1), ledger, other={"score": "another"})

    with pytest.raises(UsageError, match="no score 'made up'; there are 'another'"):
        await job(made, made.problems(1), MemoryLedger(), Learning((str(path),)))


@pytest.mark.slow
async def test_only_searches_of_the_same_generator_and_score_are_history() -> None:
    made, ledger = Problems(), MemoryLedger()
    for other in ({"generator": "another"}, {"score": "another"}):
        await job(made, made.problems(12), ledger, other=other)
    found = await job(made, made.problems(8), ledger)

    assert [each.policy == COLD for each in found] == [True] * 6 + [False] * 2


@pytest.mark.slow
@pytest.mark.parametrize("chance", [0.0, 1.0])
async def test_if_all_fail_or_all_pass_it_stays_within_its_bounds(chance: float) -> None:
    made = Problems(chance=chance)
    found = await job(made, made.problems(16), MemoryLedger(), budget=300.0)

    assert all(each.bill.total <= 300 for each in found)
    if chance:
        assert [each.bill.total for each in found] == [11.0] * 16
    else:
        assert {each.policy for each in found} == {COLD}  # there is nothing to learn from


async def test_one_problem_without_labels_teaches_nothing() -> None:
    made, ledger = Problems(), MemoryLedger()
    found = await job(made, made.problems(12), ledger, budget=5.0)  # enough to generate only

    assert {each.policy for each in found} == {COLD}
    assert not any(each.bill.verified for each in found)


@pytest.mark.slow
async def test_scores_unlike_the_history_are_left_to_the_default_and_it_says_so() -> None:
    made, ledger = Problems(shift=50.0, shift_from=15), MemoryLedger()
    with pytest.warns(UnlikeHistoryWarning, match="differ from its history"):
        found = await job(made, made.problems(18), ledger)

    late = [each for each in found if int(each.problem[1:]) >= 15 and each.bill.generated >= 8]
    reasons = [
        [told.why for told in course(ledger, each.search) if isinstance(told, Told)]
        for each in late
    ]
    assert reasons
    assert all(any("unlike the history" in why for why in each) for each in reasons)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::grv.policies.learned.policy.UnlikeHistoryWarning")
async def test_a_history_that_misleads_costs_at_most_the_factor() -> None:
    """In the history higher scores fail; now they pass, and then they fail again."""
    ledger, made = MemoryLedger(), Problems(separation=-2.0, chance=0.1)
    problems = made.problems(36)
    await job(made, problems[:12], ledger)
    for stop, separation in ((24, 2.0), (36, -2.0)):
        turned = Problems(separation=separation, chance=0.1)
        found = await job(turned, problems[stop - 12 : stop], ledger)
        costs = [each.bill.total for each in found]
        assert all(each.policy.startswith("learned(") for each in found)
        assert sum(costs) / len(costs) <= FACTOR * 11 / 0.1


@pytest.mark.slow
async def test_the_prior_of_a_search_is_in_the_ledger_once(tmp_path: Path) -> None:
    made, path = Problems(), tmp_path / "ledger"
    with closing(SqliteLedger(path)) as ledger:
        found = await job(made, made.problems(10), ledger)
        texts = [text for (text,) in ledger.select("SELECT text FROM texts")]
        (started,) = starts(ledger, found[-1].search)
    priors = [text for text in texts if "grv prior" in str(text)]

    assert priors == [started.prior]
    assert f"hash='{from_text(started.prior).hash}'" in found[-1].policy
    assert found[-1].policy == started.about["policy"]


@pytest.mark.slow
async def test_a_search_of_another_policy_is_started_again_by_history() -> None:
    made, ledger = Problems(), MemoryLedger()
    problems = made.problems(9)
    await job(made, problems[:7], ledger, "verify-all")
    found = await job(made, problems, ledger)
    assert found[-1].policy.startswith("learned(")


async def test_a_search_that_the_default_has_ended_is_not_paid_for_again() -> None:
    """So a ledger of an earlier grv, or of `--policy default`, stays valid."""
    made, ledger = Problems(), MemoryLedger()
    problems = made.problems(9)
    await job(made, problems, ledger, "default")
    paid = made.verified
    found = await job(made, problems, ledger)

    assert {each.policy for each in found} == {"varied"}
    assert made.verified == paid


def starts(ledger: Ledger, search: str) -> list[Started]:
    return [entry for entry in ledger.read(search) if isinstance(entry, Started)]


@pytest.mark.slow
async def test_clients_learn_apart_unless_their_histories_are_joined() -> None:
    ledger, made = MemoryLedger(), Problems()
    problems = made.problems(16)
    await job(made, problems[:8], ledger, other={"client": "alice"})
    (apart,) = await job(made, problems[8:9], ledger, other={"client": "bob"})
    assert apart.policy == COLD
    (own,) = await job(made, problems[9:10], ledger, other={"client": "alice"})
    assert own.policy != COLD

    config = config_of({"generator": made, "scorer": made, "verifier": made, "policy": "learning"})
    about = {"generator": "made up", "score": "made up"}
    writer = LedgerWriter(ledger)
    for joined, fits in ((False, False), (True, True)):
        asked = replace(config, about={**about, "client": "cleo"}, joined=joined)
        prior = await Experience.of(asked, writer).prior()
        assert (prior is not None) == fits


async def test_a_history_that_does_not_answer_takes_no_thread_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, answer = threading.Event(), threading.Event()

    def silent(paths: Sequence[str], score: str) -> list[PastProblem]:
        asked.set()
        assert answer.wait(60)
        return []

    monkeypatch.setattr("grv.runtime.experience.RecordedPast", silent)
    writer, made = LedgerWriter(MemoryLedger()), Problems()
    config = config_of(
        {"generator": made, "scorer": made, "verifier": made, "policy": "learning('silent')"}
    )
    async with anyio.create_task_group() as group:
        for _ in range(100):
            group.start_soon(Experience.of(config, writer).prior)
        while not asked.is_set():  # noqa: ASYNC110 - a thread sets it
            await anyio.sleep(0.01)
        with anyio.fail_after(30):
            assert await anyio.to_thread.run_sync(lambda: "done") == "done"
        answer.set()


@pytest.mark.slow
@pytest.mark.parametrize("large", [1e308, -1.7e308, math.inf, math.nan])
async def test_a_score_that_is_too_large_does_not_spoil_what_is_learned(large: float) -> None:
    """Neither a new one, which is none, nor one that an older ledger has."""
    ledger, made = MemoryLedger(), Problems()
    await job(made, made.problems(8), ledger)
    known = {id: ledger.read(id) for id, _ in ledger.ended_searches()}
    spoilt = [
        replace(each, score=large if each.candidate % 2 else -large)
        for entries in known.values()
        for each in entries
        if isinstance(each, Scored)
    ]
    past = [
        entries_past(id, [*entries, *(each for each in spoilt if math.isfinite(large))])
        for id, entries in known.items()
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prior = fitted_prior(past, "made up")
    assert prior is not None
    assert from_text(prior.to_text())

    class Wild(Problems):
        async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
            return [Score(large) for _ in drafts]

    wild = Wild()
    how: SolveOptions = {"generator": wild, "scorer": wild, "verifier": wild}
    how |= {"ledger": ledger, "budget": 100}
    solution = await solve(wild.problems(1)[0], **how)
    scored = [each for each in ledger.read(solution.search) if isinstance(each, Scored)]
    assert scored
    assert {each.score for each in scored} == {None}
    assert "the scorer returned" in scored[0].reason
