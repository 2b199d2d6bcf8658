"""Searches that a check which errs decides: live, resumed and replayed, they take one course."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grv
from grv.backends.protocols import Problem, Score
from grv.backends.verifiers.engine import LocalEngine
from grv.backends.verifiers.pool import CheckVerifier
from grv.comparing.erring import shares_after
from grv.ledger.opening import open_ledger
from grv.ledger.view import SearchView
from grv.logs.log import LoggedProblem
from grv.policies import DEFAULT
from grv.replay.erring import ErringOutcome, replay_erring
from grv.runtime.executor import finding_of
from grv.runtime.solution import Solution
from grv.testing.servers import FakeOpenai
from grv.theory.confirmations import CallCounts, Confirm, ErringRule, Errors, RightShares

pytestmark = pytest.mark.slow

ERRORS = Errors(0.2, 0.1)
WRONG = 0.05
PROBLEMS = 14
CANDIDATES = 60
COSTS = grv.Costs(1, 3)
LIMITS = grv.Limits(budget=600)


def is_right(problem: str, candidate: int) -> bool:
    share = {0: 0.0, 1: 0.05, 2: 0.4}[int(problem[1:]) % 3]
    return random.Random(f"label {problem} {candidate}").random() < share


def text_of(problem: str, candidate: int) -> str:
    return f"{'right' if is_right(problem, candidate) else 'wrong'} {problem} {candidate}"


def score_of(problem: str, candidate: int) -> float:
    noise = random.Random(f"score {problem} {candidate}").random()
    return round(noise + 0.3 * is_right(problem, candidate), 6)


def passes(text: str, number: int) -> bool:
    """The result of call `number` on a text."""
    right = text.startswith("right")
    error = ERRORS.false_fail if right else ERRORS.false_pass
    return right != (random.Random(f"{text} {number}").random() < error)


class Killed(BaseException):
    """The process dies."""


class Judge:
    """A model whose verdict on a text depends on the number of the call only."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, prompt: str, index: int) -> str:
        answer = json.loads(prompt)["answer"]
        with self._lock:
            number = self.calls[answer]
            self.calls[answer] += 1
        return json.dumps({"verdict": "pass" if passes(answer, number) else "fail"})


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Judge, FakeOpenai]]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-key-of-some-length")
    made = Judge()
    with FakeOpenai(made) as server:
        yield made, server


def problems(server: FakeOpenai) -> list[Problem]:
    check = {"kind": "judge", "model": "openai:fake", "url": server.url, "temperature": 1}
    errors = {"false_pass": ERRORS.false_pass, "false_fail": ERRORS.false_fail}
    return [
        Problem(f"p{number}", f"Question {number}?", {**check, "errors": errors})
        for number in range(PROBLEMS)
    ]


def solve(
    server: FakeOpenai, ledger: Path, confirm: Confirm, stop_after: int | None = None
) -> list[Solution]:
    """Solve all problems, one after the other; or die before a number of verdicts."""
    left = [stop_after]

    class Generator:
        async def generate(self, problem: Problem, n: int, *, first: int = 0) -> list[Any]:
            numbers = range(first, min(first + n, CANDIDATES))
            return [grv.Draft(text_of(problem.id, number)) for number in numbers]

    class Scorer:
        async def score(self, problem: Problem, drafts: Sequence[grv.Draft]) -> list[Score]:
            numbers = [int(draft.text.split()[-1]) for draft in drafts]
            return [Score(score_of(problem.id, number)) for number in numbers]

    class Verifier(CheckVerifier):
        async def verify(self, problem: Problem, draft: Any, **known: Any) -> Any:
            if left[0] is not None:
                if left[0] == 0:
                    raise Killed
                left[0] -= 1
            return await super().verify(problem, draft, **known)

    with Verifier(workers=1, allow_commands=True, wrong=WRONG, confirm=confirm) as verifier:
        found = grv.solve_many_now(
            problems(server),
            generator=Generator(),
            scorer=Scorer(),
            verifier=verifier,
            policy=DEFAULT,
            costs=COSTS,
            limits=LIMITS,
            keys=False,
            ledger=ledger,
            at_once=1,
            identity={"generator": "drawn", "scorer": "drawn", "verifier": "judge"},
        )
        return list(found)


def replayed(confirm: Confirm) -> list[ErringOutcome]:
    """The same run, replayed over the labels with the same calls."""
    rule = ErringRule(confirm, ERRORS, WRONG)
    outcomes: list[ErringOutcome] = []
    for number in range(PROBLEMS):
        name = f"p{number}"
        numbers = range(CANDIDATES)
        problem = LoggedProblem(
            name,
            np.array([score_of(name, each) for each in numbers]),
            np.array([is_right(name, each) for each in numbers]),
        )

        def call(candidate: int, made: int, name: str = name) -> bool:
            return passes(text_of(name, candidate), made)

        shares = None
        if rule.learns:
            shares = shares_after([each.counts for each in outcomes], ERRORS)
        outcomes.append(
            replay_erring(DEFAULT, problem, COSTS, rule, call, limits=LIMITS, shares=shares)
        )
    return outcomes


def recorded(ledger: Path) -> dict[str, tuple[CallCounts, ...]]:
    """The calls on the candidates of each problem, in the order of the candidates."""
    found = {}
    with closing(open_ledger(str(ledger), read_only=True)) as opened:
        for search in opened.searches():
            view = SearchView(opened.read(search.id))
            assert view.started is not None
            pairs = [finding_of(view.found[id]).call_counts for id in sorted(view.found)]
            found[view.started.problem] = tuple(pair[0] for pair in pairs if pair is not None)
    return found


@pytest.mark.parametrize("confirm", list(Confirm))
def test_a_replay_with_errors_takes_the_course_of_the_live_run(
    confirm: Confirm, judge: tuple[Judge, FakeOpenai], tmp_path: Path
) -> None:
    calls, server = judge
    ledger = tmp_path / "run.ledger"
    live = solve(server, ledger, confirm)
    replay = replayed(confirm)
    assert sum(outcome.answer is not None for outcome in replay) >= PROBLEMS // 2
    for solution, outcome in zip(live, replay, strict=True):
        expected = "" if outcome.answer is None else text_of(solution.problem, outcome.answer)
        assert (solution.status == "judged") == (outcome.answer is not None)
        assert solution.text == expected or outcome.answer is None
        assert solution.bill.generated == outcome.generated
        assert solution.bill.verified == outcome.verified
        assert solution.bill.repeated == outcome.calls - outcome.verified
        assert solution.bill.total == pytest.approx(outcome.cost)
        assert outcome.cost == outcome.generated + COSTS.verify * outcome.calls
        assert outcome.cost <= LIMITS.budget
    with closing(open_ledger(str(ledger), read_only=True)) as opened:
        paid = opened.possibly_paid(None)
    assert paid == pytest.approx(sum(outcome.cost for outcome in replay))
    counts = recorded(ledger)
    assert [counts.get(each.problem, ()) for each in live] == [each.counts for each in replay]
    assert calls.calls.total() == sum(outcome.calls for outcome in replay)


def test_a_run_that_is_killed_and_continued_decides_by_the_same_shares(
    judge: tuple[Judge, FakeOpenai], tmp_path: Path
) -> None:
    calls, server = judge
    for stop_after in (5, 40, 45, 80):
        with pytest.raises((Killed, BaseExceptionGroup, RuntimeError)):
            solve(server, tmp_path / "killed.ledger", Confirm.BAYES, stop_after)
    killed = solve(server, tmp_path / "killed.ledger", Confirm.BAYES)
    replay = replayed(Confirm.BAYES)
    answers = {each.problem: each.text for each in killed if each.status == "judged"}
    assert answers == {
        f"p{number}": text_of(f"p{number}", outcome.answer)
        for number, outcome in enumerate(replay)
        if outcome.answer is not None
    }
    assert calls.calls.total() == sum(outcome.calls for outcome in replay)
    shares = set()
    with closing(open_ledger(str(tmp_path / "killed.ledger"), read_only=True)) as opened:
        for search in opened.searches():
            starts = [each for each in opened.read(search.id) if hasattr(each, "shares")]
            assert len({each.shares for each in starts}) == 1
            shares.add(starts[0].shares)
    # Before the 6th problem has ended, after it, and after the 10th.
    assert len(shares) == 3
    assert all(RightShares.of(each).weights for each in shares if each)


def test_a_kill_between_two_calls_on_a_candidate_repeats_no_call(
    judge: tuple[Judge, FakeOpenai], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, server = judge
    original = LocalEngine.judge
    left = [7]

    def dying(self: LocalEngine, *given: Any) -> Any:
        if left[0] == 0:
            raise Killed
        left[0] -= 1
        return original(self, *given)

    monkeypatch.setattr(LocalEngine, "judge", dying)
    kills = 0
    solutions: list[Solution] = []
    while not solutions:
        try:
            solutions = solve(server, tmp_path / "killed.ledger", Confirm.COLD)
        except (Killed, BaseExceptionGroup, RuntimeError):
            kills += 1
            left[0] = 7 + kills**2
    replay = replayed(Confirm.COLD)
    assert kills >= 3
    assert calls.calls.total() == sum(outcome.calls for outcome in replay)
    totals = {each.problem: each.bill.total for each in solutions}
    for number, outcome in enumerate(replay):
        assert totals[f"p{number}"] == pytest.approx(outcome.cost)
    with closing(open_ledger(str(tmp_path / "killed.ledger"), read_only=True)) as opened:
        paid = opened.possibly_paid(None)
    # Each kill may have lost the call in flight, and nothing else.
    assert paid <= sum(outcome.cost for outcome in replay) + kills * COSTS.verify + 1e-6


def test_an_answer_says_how_probably_it_is_wrong(
    judge: tuple[Judge, FakeOpenai], tmp_path: Path
) -> None:
    _, server = judge
    solutions = solve(server, tmp_path / "run.ledger", Confirm.BAYES)
    judged = [each for each in solutions if each.status == "judged"]
    assert judged
    for solution in judged:
        assert not solution.verified
        assert solution.wrong_probability is not None
        assert 0 < solution.wrong_probability <= WRONG
