"""A verdict that was known costs nothing and is counted apart: everywhere that counts are shown."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from grv import Costs
from grv.backends.protocols import Draft, Finding, Problem
from grv.backends.verifiers.pool import CheckVerifier
from grv.backends.verifiers.verdict_store import VerdictStore
from grv.core.errors import EventError
from grv.core.pace import Pace
from grv.core.search import Search
from grv.core.values import CandidateId, Generated, Measured, Verdict, Verified, Verify
from grv.ledger.entries import Ended, Found, Settled, Told, from_text, to_text
from grv.ledger.ledger import MemoryLedger
from grv.ledger.opening import open_ledger
from grv.policies import VerifyAll
from grv.runtime.executor import Backends
from grv.runtime.export import exported
from grv.runtime.prices import Meter, Prices
from grv.runtime.solution import Solution
from grv.serve.metrics import Metrics
from grv.serve.pages.one_search import search_data
from grv.serve.pages.overview import overview
from grv.serve.pages.store import Store
from grv.testing.fakes import ScriptedGenerator, TableScorer, TableVerifier
from grv.testing.worlds import World, all_wrong, needle
from support.commands import Ran, here, records
from support.live import one_generator, search
from support.servers import FaultyServer

PROBLEM = Problem("p", "prompt")
CHECK = (
    "import sys\n"
    "with open('runs', 'a') as file: file.write('x')\n"
    "raise SystemExit('right' not in sys.stdin.read())\n"
)


@pytest.fixture
def four(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four problems with one command check."""
    monkeypatch.chdir(tmp_path)
    Path("check.py").write_text(CHECK)
    check = {"kind": "command", "argv": [sys.executable, "check.py"]}
    lines = [{"problem": f"p{n}", "prompt": f"Solve {n}.", "check": check} for n in range(4)]
    Path("problems.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path


def live(server: FaultyServer, command: str, *more: object) -> Ran:
    where = ["--generator", "openai:m", "--base-url", server.url, "--score", "length"]
    given = [*where, "--workers", "2", "--allow-commands"]
    return here(command, "problems.jsonl", *given, *more)


def runs() -> int:
    return len(Path("runs").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("text", ["right", "wrong"])
def test_one_command_that_ran_once_is_on_the_bill_once(text: str, four: Path) -> None:
    with FaultyServer(text=lambda request, seed: text) as server:
        limits = ["--policy", "fixed(1,1)", "--costs", "1,10", "--budget", "100", "--out", "out"]
        ran = live(server, "solve", *limits)
        again = live(server, "solve", *limits)
    assert ran.code == again.code == (0 if text == "right" else 1), ran
    assert runs() == 1
    assert "cost 14, dollars unknown, 4 candidates, 1 verification," in ran.out
    assert "known already, so neither run nor billed: 3 verdicts" in ran.out
    answers = records(Path("out"))
    assert sorted((each["verified"], each["shared"], each["cost"]) for each in answers) == [
        *[(0, 1, 1.0)] * 3,
        (1, 0, 11.0),
    ]
    ledger = open_ledger("out.ledger", read_only=True)
    assert ledger.possibly_paid() == 14
    assert ledger.check() == []
    totals = [(each.verified, each.total, each.paid) for each in ledger.searches()]
    assert sorted(totals) == [*[(0, 1.0, 1.0)] * 3, (1, 11.0, 11.0)]
    log = exported(ledger)
    assert (log.paid, log.shared, log.unlabelled) == (1, 3, 0)
    store = Store(ledger)
    assert overview(store, 100.0)["verdicts"]["shared"] == 3
    pages = []
    for each in ledger.searches():
        listed = store.one(each.id)
        assert listed is not None
        pages.append(search_data(listed, *store.entries(each.id)))
    assert sorted(page["shared"] for page in pages) == [0, 1, 1, 1]
    assert sorted((page["verified"], page["total"]) for page in pages) == sorted(
        t[:2] for t in totals
    )
    metrics = Metrics(ledger, 100.0).text(0)
    assert "grv_verdicts_shared_total 3" in metrics
    verdict = "passed" if text == "right" else "failed"
    assert f'grv_verdicts_total{{verdict="{verdict}"}} 1' in metrics
    ledger.close()
    shown = [here("runs", "show", "out.ledger", f"p{n}").out for n in range(4)]
    assert sum("nothing was run" in each for each in shown) == 3
    assert sum("0 verified, 1 shared, cost 1" in each for each in shown) == 3
    said = here("runs", "export", "out.ledger", "-o", "log.csv").out
    assert "verdicts: 1 paid for, 3 shared" in said


@pytest.mark.slow
def test_a_collection_pays_once_too(four: Path) -> None:
    with FaultyServer(text=lambda request, seed: "wrong") as server:
        ran = live(server, "collect", "-n", "2", "--out", "log.csv")
    assert ran.code == 0, ran
    assert runs() == 1
    assert "1 verification" in ran.out
    assert "known already, so neither run nor billed: 3 verdicts" in ran.out
    ledger = open_ledger("log.csv.ledger", read_only=True)
    assert ledger.possibly_paid() == sum(each.total or 0 for each in ledger.searches()) == 18
    assert ledger.check() == []
    ledger.close()


@pytest.mark.slow
def test_what_a_store_of_verdicts_knows_is_counted_apart(four: Path) -> None:
    problems = [json.loads(line) for line in Path("problems.jsonl").read_text().splitlines()]
    lines = [{**each, "candidates": ["wrong", "right", "wrong"]} for each in problems]
    Path("in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for out, verified in (("one", 2), ("two", 0)):
        ran = here("verify", "in.jsonl", "-o", out, "--cache", "cache", "--allow-commands")
        assert ran.code == 0, ran
        assert f"{verified} verified in" in ran.out
        assert f"{12 - verified} known already, so nothing was run" in ran.out
    assert runs() == 2


def test_a_verdict_of_the_store_is_not_run_again(tmp_path: Path) -> None:
    problem = Problem("p", "", {"kind": "math", "answer": "5"})
    for shared in (False, True):
        store = VerdictStore(tmp_path / "store")
        with CheckVerifier(workers=1, store=store, refute=False) as verifier:
            assert verifier.find(problem, "\\boxed{5}").shared is shared
        store.close()


# The search


@dataclass
class Knowing(TableVerifier):
    """A verifier that knows some verdicts already."""

    known: set[int] = field(default_factory=set)

    async def verify(self, problem: Problem, draft: Draft) -> Finding:
        finding = await super().verify(problem, draft)
        return replace(finding, shared=int(draft.text) in self.known)


def solve(world: World, known: set[int], ledger: MemoryLedger, **options: Any) -> Solution:
    backends = Backends(ScriptedGenerator(world), TableScorer(world), Knowing(world, known=known))
    how: dict[str, Any] = {"policy": VerifyAll(), "costs": Costs(1, 10), **options}
    config = one_generator(backends, **how)

    async def solving() -> Solution:
        return await search(PROBLEM, config, ledger=ledger)

    return anyio.run(solving)


@pytest.mark.parametrize("width", [1, 4, None])
def test_the_reserve_comes_back_and_a_resumed_search_agrees(width: int | None) -> None:
    ledger, world, known = MemoryLedger(), needle(6, at=4), {0, 3, 4}
    options = {"width": width, "pace": Pace(overlap=False)}
    solution = solve(world, known, ledger, **options)
    entries = ledger.read(solution.search)
    verdicts = [each for each in entries if isinstance(each, Found)]
    shared = sum(each.shared for each in verdicts)
    bill = solution.bill
    assert (bill.verified, bill.shared) == (len(verdicts) - shared + solution.unneeded, shared)
    assert bill.total == bill.generated + 10 * bill.verified
    returned = [each.returned for each in entries if isinstance(each, Settled)]
    assert returned == [10] * shared
    ended = next(each for each in entries if isinstance(each, Ended))
    assert (ended.verified, ended.shared, ended.total) == (bill.verified, bill.shared, bill.total)
    again = solve(world, set(), ledger, **options)
    assert again.bill == bill
    assert len(ledger.read(solution.search)) == len(entries)  # nothing new


def test_a_budget_has_the_money_of_known_verdicts_left() -> None:
    ledger = MemoryLedger()
    solution = solve(all_wrong(40), {0, 1, 2}, ledger, budget=34)
    # Three candidates cost 1 each; then 31 pay for two of 11, and the rest for no verification.
    assert (solution.bill.verified, solution.bill.shared) == (2, 3)
    assert solution.bill.total == ledger.possibly_paid() <= 34


def test_measured_costs_do_not_count_a_call_that_was_not_made() -> None:
    meter = Meter(Prices(other={"verify_call": 0.5, "generate_call": 0.25}))
    ledger = MemoryLedger()
    options = {"costs": Measured(0.25, 0.5), "meter": meter, "most": Costs(1, 2), "budget": 50.0}
    solution = solve(needle(4, at=2), {0, 2}, ledger, **options)
    assert (solution.bill.verified, solution.bill.shared) == (1, 2)
    assert solution.bill.total == pytest.approx(3 * 0.25 + 0.5)
    assert ledger.possibly_paid() == pytest.approx(solution.bill.total)


@pytest.mark.parametrize("paid", [None, 0.0])
def test_a_known_verdict_is_told_at_no_price_and_changes_no_estimate(paid: float | None) -> None:
    costs = Measured(1, 10) if paid is not None else Costs(1, 10)
    search = Search(VerifyAll(), costs)
    search.ask()
    search.tell(Generated((0.5,), paid=None if paid is None else 1.0))
    action = search.ask()
    assert isinstance(action, Verify)
    search.tell(
        Verified({CandidateId(0): Verdict.FAILED}, paid, shared=frozenset({CandidateId(0)}))
    )
    assert (search.bill.verified, search.bill.shared, search.bill.total) == (0, 1, 1.0)
    assert search.pool.costs.verify == 10
    assert str(search.trace[-1]).startswith("verified 0 failed, 1 of them shared")


def test_a_shared_verdict_must_be_among_the_verdicts() -> None:
    search = Search(VerifyAll(), Costs(1, 10))
    search.ask()
    search.tell(Generated((0.5,)))
    search.ask()
    event = Verified({CandidateId(0): Verdict.FAILED}, shared=frozenset({CandidateId(1)}))
    with pytest.raises(EventError, match="shared"):
        search.tell(event)


def test_a_shared_verdict_survives_the_ledger() -> None:
    told = Told(Verified({CandidateId(3): Verdict.FAILED}, shared=frozenset({CandidateId(3)})))
    assert from_text("told", to_text(told)) == told
    assert "shared" not in to_text(Told(Verified({CandidateId(3): Verdict.FAILED})))
