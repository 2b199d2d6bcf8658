"""Page, `grv runs`, export, bill and solution agree on every candidate and every number."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from grv.backends.protocols import Draft, Finding, ParkedCall, Problem, Score, Usage
from grv.core.pace import Pace
from grv.core.values import Cascade, Costs, Verdict
from grv.ledger.entries import Found
from grv.ledger.opening import open_ledger
from grv.ledger.tables import TableLedger
from grv.ledger.view import SearchView
from grv.runtime.export import exported
from grv.runtime.solution import Solution
from grv.runtime.solve import solve, solve_now
from grv.serve.pages.answers import as_json
from grv.serve.pages.one_search import search_data
from grv.serve.pages.store import Filter, Store
from grv.serve.review.desk import Desk
from grv.testing.fakes import Crash
from support.commands import here

HUMAN = {"kind": "human", "question": "Is it right?", "rubric": ["It is."], "minutes": 2}


@dataclass
class Model:
    """Writes its name and a number. The text says what becomes of it."""

    name: str = "text"
    marks: Mapping[int, str] = field(default_factory=lambda: {7: "right"})

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> Sequence[Draft]:
        """The next candidates."""
        texts = [
            f"{self.name} {id} {self.marks.get(id, 'wrong')}" for id in range(first, first + n)
        ]
        return [
            Draft("", broken="too long") if "long" in text else Draft(text, usage=Usage(3, 4))
            for text in texts
        ]


@dataclass
class Reader:
    """Scores by number, and verifies by the mark. It dies at a call, if that is asked for."""

    parks: bool = False
    dies_at: int | None = None
    calls: int = 0

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        """A score that says little; every sixth candidate has none."""
        numbers = [int(draft.text.split()[1]) for draft in drafts]
        return [
            Score(None, reason="no tokens") if number % 6 == 5 else Score(number % 4 / 4)
            for number in numbers
        ]

    async def verify(self, problem: Problem, draft: Draft) -> Finding:
        """The verdict that the mark says."""
        self.calls += 1
        if self.calls == self.dies_at:
            raise Crash
        if self.parks:
            raise ParkedCall("Is it right?")
        await anyio.lowlevel.checkpoint()
        if "strange" in draft.text:
            return Finding(Verdict.BROKEN, "could not tell")
        verdict = Verdict.PASSED if "right" in draft.text else Verdict.FAILED
        evidence = {"answer_value": draft.text.split()[1]}
        return Finding(verdict, "read", evidence, Usage(seconds=0.5), shared="known" in draft.text)


class Refuting(Reader):
    """Refutes texts that are certainly wrong."""

    def refutation(self, problem: Problem, draft: Draft) -> str | None:
        """Why the draft certainly fails."""
        return "it says so" if "refuted" in draft.text else None


def options(ledger: Path, **more: Any) -> Any:
    """The options of a search."""
    reader = more.pop("reader", None) or Reader()
    found: dict[str, Any] = {
        "generator": Model(),
        "scorer": reader,
        "verifier": reader,
        "costs": Costs(1, 10),
        "budget": 400,
        "policy": "varied",
        "ledger": str(ledger),
        "identity": {"generators": {name: {} for name in more.get("generator", ())}}
        if isinstance(more.get("generator"), dict)
        else {},
    }
    return found | more


def last_digit(problem: Problem, text: str) -> str:
    """A key of the user: the last digit of the number, and the mark."""
    return text.split()[1][-1] + text.split()[2]


KINDS: dict[str, dict[str, Any]] = {
    "one generator": {},
    "several generators": {
        "generator": {"small": Model("small", {}), "large: new": Model("large", {3: "right"})},
        "costs": {"small": Costs(1, 10), "large: new": Costs(5, 10)},
    },
    "width": {"width": 4, "policy": "fixed(12, 8)"},
    "generated meanwhile": {
        "width": 2,
        "policy": "verify-all",
        "pace": Pace(ramp=False, overlap=True),
    },
    "cascade": {"cascade": Cascade(4, 0.5), "second_scorer": Reader()},
    "keys": {"key": last_digit, "generator": Model(marks={17: "right"})},
    "refuted": {
        "reader": Refuting(),
        "generator": Model(marks={0: "refuted", 2: "refuted", 9: "right"}),
    },
    "broken": {
        "generator": Model(marks={1: "long", 3: "strange", 4: "strange", 9: "right"}),
    },
    "failed": {"generator": Model(marks=dict.fromkeys(range(20), "strange"))},
    "shared verdicts": {
        "generator": Model(marks={0: "known", 1: "known", 2: "known", 9: "right"}),
        "policy": "verify-all",
    },
    "several answers": {
        "generator": Model(marks={1: "right", 3: "right", 6: "right"}),
        "answers": 3,
    },
    "no answer": {"generator": Model(marks={}), "budget": 60},
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


def check(place: Path, solution: Solution | None) -> None:
    """Compare everything that is shown of the only search of a ledger."""
    with closing(open_ledger(str(place), read_only=True)) as ledger:
        store = Store(ledger)
        (listed,), _ = store.page(Filter())
        page = json.loads(as_json(search_data(listed, *store.entries(listed.summary.id))))
        log = exported(ledger)
        view = SearchView(ledger.read(listed.summary.id))
    shown = json.loads(here("runs", "show", place, listed.summary.id, "--json").out)
    lines = here("runs", "show", place, listed.summary.id, "--full").out.splitlines()
    row = here("runs", "list", place).out.splitlines()[1].split()

    check_counts(page, shown, listed.summary, lines, row)
    check_candidates(page, shown, log.columns)
    check_steps(page, shown, view)
    assert log.paid + log.shared + log.unlabelled + len(view.tally.refuted) == len(view.made)
    if solution is not None:
        check_solution(page, shown, view, solution)


def check_counts(
    page: dict[str, Any], shown: dict[str, Any], summary: Any, lines: list[str], row: list[str]
) -> None:
    for name in ("generated", "verified", "shared", "lost", "answer", "total", "paid", "outcome"):
        assert page[name] == shown[name], name
    assert (summary.generated, summary.verified) == (page["generated"], page["verified"])
    sums = f"in all: {page['generated']} generated, {page['verified']} verified, cost "
    assert lines[-1].strip().startswith(sums)
    cost = page["total"] if page["total"] is not None else page["paid"]
    assert row[-3:] == [str(page["generated"]), str(page["verified"]), f"{cost:g}"]


def check_candidates(
    page: dict[str, Any], shown: dict[str, Any], columns: dict[str, list[Any]]
) -> None:
    ids = [each["candidate"] for each in page["candidates"]]
    assert ids == [each["candidate"] for each in shown["candidates"]] == columns["candidate"]
    for number, (one, other) in enumerate(
        zip(page["candidates"], shown["candidates"], strict=True)
    ):
        row = {name: values[number] for name, values in columns.items()}
        assert one["text"]["text"] == other["text"]
        for name in ("generator", "score", "score_reason", "second_score", "refuted", "dropped"):
            assert one.get(name) == other.get(name), name
        assert one["generator"] == (row.get("generator") or "")
        assert one.get("answer_value") == other.get("answer_value") == row.get("answer_value")
        assert (one.get("score"), one.get("key")) == (row["score"], row["key"])
        assert one.get("second_score") == row.get("score_second")
        assert bool(one.get("refuted")) == bool(row.get("refuted"))
        verdict = one["verdicts"][-1] if one["verdicts"] else {"verdict": None, "shared": None}
        assert verdict["verdict"] == other.get("verdict")
        assert verdict["shared"] == other.get("shared")
        assert bool(verdict["shared"]) == bool(row.get("shared"))
        if verdict["verdict"] in ("passed", "failed"):
            assert row["passed"] is (verdict["verdict"] == "passed")


def check_steps(page: dict[str, Any], shown: dict[str, Any], view: SearchView) -> None:
    kinds = {"generated": "generate", "rescored": "rescore", "verified": "verify"}
    told = [each for each in page["steps"] if each["step"] in kinds]
    assert len(told) == len(shown["steps"])
    generators = {each["candidate"]: each["generator"] for each in page["candidates"]}
    for one, other in zip(told, shown["steps"], strict=True):
        assert kinds[one["step"]] == other["step"]
        assert len(one["ids"]) == other["count"]
        for name in ("ids", "why", "spent", "generator"):
            assert one.get(name) == other.get(name), name
        assert len(one.get("meanwhile", ())) == other.get("meanwhile", 0)
        for id in (*one["ids"], *one.get("meanwhile", ())):
            assert generators[id] == one.get("generator", "")
    used = [
        id
        for step in told
        for id in (step["ids"] if step["step"] == "generated" else step.get("meanwhile", ()))
    ]
    if not any(step["step"] in ("continued", "reviewed") for step in page["steps"]):
        assert len(used) == len(set(used))
    assert set(used) <= view.made.keys()


def check_solution(
    page: dict[str, Any], shown: dict[str, Any], view: SearchView, solution: Solution
) -> None:
    bill = solution.bill
    assert (bill.generated, bill.verified, bill.shared) == (
        page["generated"],
        page["verified"],
        page["shared"],
    )
    candidates = {each["candidate"]: each for each in shown["candidates"]}
    assert bill.refuted == sum(each.get("refuted", False) for each in candidates.values())
    assert bill.rescored == sum("second_score" in each for each in candidates.values())
    assert bill.total == pytest.approx(view.tally.billed)
    assert dict(solution.lost) == page["lost"]
    assert solution.unneeded == page["cancelled"]
    assert solution.outcome == page["outcome"]
    unscored = [each for each in candidates.values() if each.get("score") is None]
    assert solution.unscored == len(unscored)
    if page["answer"] is not None:
        assert solution.draft is not None
        answer = candidates[page["answer"]]
        assert (answer["verdict"], answer["text"]) == ("passed", solution.draft.text)
        assert answer["generator"] == solution.generator
        passed = {each["text"] for each in candidates.values() if each.get("verdict") == "passed"}
        assert {draft.text for draft in solution.answers} <= passed
    for name, one in solution.bills.items():
        own = [each for each in candidates.values() if each["generator"] == name]
        assert one.generated == len(own)
        verified = [step for step in page["steps"] if step["step"] == "verified"]
        ids = {id for step in verified if step["generator"] == name for id in step["ids"]}
        assert one.verified == len(ids)
    if page["total"] is not None:
        assert bill.total == pytest.approx(page["total"])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_all_readings_of_a_search_agree(kind: str, place: Path) -> None:
    solution = solve_now(Problem("p", "prompt"), **options(place, **KINDS[kind]))
    assert (solution.outcome == "failed") == (kind == "failed")
    check(place, solution)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["one generator", "several generators", "width", "cascade"])
def test_all_readings_of_an_interrupted_search_agree(kind: str, place: Path) -> None:
    reader = Reader(dies_at=2)

    async def die() -> None:
        await solve(Problem("p", "prompt"), **options(place, reader=reader, **KINDS[kind]))

    with pytest.raises((Crash, BaseExceptionGroup)):
        anyio.run(die)
    check(place, None)

    solution = solve_now(Problem("p", "prompt"), **options(place, **KINDS[kind]))
    assert solution.outcome == "solved"
    check(place, solution)

    other = {**KINDS[kind], "policy": "alternate", "budget": 500}
    check(place, solve_now(Problem("p", "prompt"), **options(place, **other)))


def review(ledger: TableLedger, say: str) -> None:
    """Give a verdict on the next candidate that waits."""
    desk = Desk(ledger)
    given = desk.next("ann")
    assert given is not None
    lease, item = given
    assert item.check.question == "Is it right?"
    desk.give(item.id, lease.secret, say, reviewer="ann", note="as I see it", seconds=1)


def test_all_readings_of_verdicts_of_people_agree(place: Path) -> None:
    """A first verdict is corrected, so the search continues from it."""
    problem = Problem("p", "prompt", HUMAN)
    how = options(place, reader=Reader(parks=True), policy="verify-all")

    async def run(*sayings: str) -> Solution | None:
        solution = None
        ledger = open_ledger(str(place))

        async def search() -> None:
            nonlocal solution
            solution = await solve(problem, **how)

        with closing(ledger):
            async with anyio.create_task_group() as group:
                group.start_soon(search)
                for say in sayings:
                    while not Desk(ledger).queue.waiting():  # noqa: ASYNC110 - another process
                        await anyio.sleep(0.02)
                    if say == "stop":
                        group.cancel_scope.cancel()
                        break
                    review(ledger, say)
        return solution

    assert anyio.run(run, "fail", "fail", "stop") is None
    check(place, None)
    with closing(open_ledger(str(place))) as ledger:
        (search,) = ledger.search_ids()
        view = SearchView(ledger.read(search))
        first = next(iter(view.found))
        desk = Desk(ledger)
        lease, item = desk.open("ann", type(desk.queue.waiting()[0])(search, first))
        desk.give(item.id, lease.secret, "cannot tell", reviewer="ann")
        changed = SearchView(ledger.read(search))
        assert changed.is_corrected
        assert changed.told == view.told[:1]
        assert isinstance(changed.steps[-1].entry, Found)
        assert changed.tally.verifications == view.tally.verifications == 2
    check(place, None)
    solution = anyio.run(run, "pass")
    assert solution is not None
    assert solution.outcome == "solved"
    check(place, solution)
    with closing(open_ledger(str(place))) as ledger:
        steps = SearchView(ledger.read(search)).steps
    generated = [step.ids for step in steps if step.kind == "generated"]
    assert generated == [(0,), (1,), (2,), (1,), (2,)]  # told again from the first verdict on
