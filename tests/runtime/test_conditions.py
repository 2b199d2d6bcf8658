"""A verdict belongs to the conditions under which it was given; drafts and scores do not."""

from __future__ import annotations

import itertools
import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from grv import Costs
from grv.backends.protocols import Draft, Finding, Problem
from grv.backends.sandbox.limits import Isolation, RunLimits
from grv.backends.verifiers import checks
from grv.backends.verifiers.command import named_files
from grv.backends.verifiers.pool import CheckVerifier
from grv.backends.verifiers.verdict_store import VerdictStore
from grv.conditions import LEVELS, Conditions, Level, answers
from grv.core.values import REFUTED, Verdict
from grv.learning.ledger_history import entries_past
from grv.ledger.entries import Found, Made, Scored, Started, from_text, kind_of, to_text
from grv.ledger.ledger import Ledger, MemoryLedger
from grv.ledger.view import SearchView
from grv.policies import VerifyAll
from grv.runtime.executor import Backends
from grv.runtime.solution import Solution
from grv.testing.fakes import Crash, ScriptedGenerator, TableScorer, TableVerifier
from grv.testing.worlds import World, all_wrong, needle
from support.commands import Ran, here, records
from support.live import one_generator, search
from support.servers import FaultyServer

PROBLEM = Problem("p", "prompt")
STDIN = {"kind": "stdin", "tests": [{"input": "2\n", "output": "4\n"}]}

# Isolation, limits, check, content of the script, judge: each with two values or more.
DIMENSIONS = itertools.product(LEVELS[1:], (0.5, 10), ("a", "b"), (1, 2))
CONDITIONS = [
    Conditions(f"{check} {seconds}", judge, level)
    for level, seconds, check, judge in DIMENSIONS
    if (seconds, check, judge) in ((10, "a", 1), (0.5, "a", 1), (10, "b", 1), (10, "a", 2))
]
PAIRS = [*itertools.product(CONDITIONS, repeat=2)]
RANK = {"": 0, "unsafe": 1, "jail": 2, "strict": 3}


def expected(given: Conditions, wanted: Conditions) -> bool:
    """The rule, said once more."""
    equal = given.check == wanted.check and given.judge == wanted.judge
    return equal and RANK[given.isolation] >= RANK[wanted.isolation]


@dataclass
class Conditional(TableVerifier):
    """A verifier with conditions."""

    under: Conditions | None = None

    def conditions(self, problem: Problem) -> Conditions | None:
        return self.under

    async def verify(self, problem: Problem, draft: Draft) -> Finding:
        return replace(await super().verify(problem, draft), conditions=self.under)


@dataclass
class Run:
    """A search over a world, and what its backends were asked."""

    world: World
    under: Conditions | None
    ledger: Ledger
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.generator, self.scorer = ScriptedGenerator(self.world), TableScorer(self.world)
        self.verifier = Conditional(self.world, under=self.under)

    def solve(self) -> Solution:
        backends = Backends(self.generator, self.scorer, self.verifier)
        how: dict[str, Any] = {"policy": VerifyAll(), "costs": Costs(1, 10), **self.options}
        config = one_generator(backends, **how)

        async def solving() -> Solution:
            return await search(PROBLEM, config, ledger=self.ledger)

        return anyio.run(solving)


@pytest.mark.parametrize(("given", "wanted"), PAIRS)
def test_a_verdict_in_a_ledger_answers_by_the_rule_and_drafts_always_do(
    given: Conditions, wanted: Conditions
) -> None:
    ledger = MemoryLedger()
    first = Run(needle(5, at=2), given, ledger)
    before = first.solve()
    assert ledger.possibly_paid() == before.bill.total == 3 + 30
    again = Run(needle(5, at=2), wanted, ledger)
    after = again.solve()
    assert (again.generator.made, again.scorer.scored) == ([], [])
    assert again.verifier.verified == ([] if expected(given, wanted) else [0, 1, 2])
    assert after.bill == before.bill
    assert ledger.possibly_paid() == 33 + 10 * len(again.verifier.verified)
    assert after.conditions == (given if expected(given, wanted) else wanted)
    once_more = Run(needle(5, at=2), wanted, ledger)
    assert once_more.solve() == after
    assert once_more.verifier.verified == []


def test_a_verdict_in_a_store_answers_by_the_rule(tmp_path: Path) -> None:
    for number, given in enumerate(CONDITIONS):
        store = VerdictStore(tmp_path / str(number))
        store.put(given, "key", "program", Finding(Verdict.PASSED, "all tests passed"))
        for wanted in CONDITIONS:
            found = store.get(wanted, "key", "program")
            assert (found is not None) is expected(given, wanted)
            assert found is None or found.shared
        store.close()


@pytest.mark.parametrize(("given", "wanted"), PAIRS)
def test_the_rule(given: Conditions, wanted: Conditions) -> None:
    assert given.answers_for(wanted) is expected(given, wanted)
    assert answers(given, wanted) is expected(given, wanted)
    assert answers(given, None)


@pytest.mark.parametrize("level", LEVELS)
def test_a_verdict_of_the_old_format_answers_for_no_level_above_unsafe(level: Level) -> None:
    assert answers(None, Conditions("c", 1, level)) is (level in ("", "unsafe"))
    assert not answers(None, Conditions("c", 2, level))  # it is of the first judge
    ledger = MemoryLedger()
    Run(needle(5, at=2), None, ledger).solve()  # an old grv recorded no conditions
    again = Run(needle(5, at=2), Conditions("c", 1, level), ledger)
    assert again.solve().outcome == "solved"
    assert again.generator.made == []
    assert bool(again.verifier.verified) is (level in ("jail", "strict"))


def test_a_failure_under_tight_limits_is_no_failure_under_others_even_if_the_budget_is_spent() -> (
    None
):
    ledger = MemoryLedger()
    tight = Run(all_wrong(30), Conditions("0.5", 1, "jail"), ledger, {"budget": 55})
    before = tight.solve()
    assert (before.outcome, before.bill.verified) == ("out of budget", 5)
    again = Run(needle(30, at=3), Conditions("10", 1, "jail"), ledger, {"budget": 55})
    after = again.solve()
    assert (after.outcome, after.bill.verified, after.bill.total) == ("solved", 4, 45)
    assert (after.bill.generated, after.bill.unneeded) == (5, 1)  # paid for by the first run
    assert again.generator.made == []
    assert ledger.possibly_paid() == 55 + 40


def test_the_budget_still_counts_verdicts_that_answer_and_those_that_were_lost() -> None:
    ledger = MemoryLedger()
    under = Conditions("c", 1, "jail")
    Run(all_wrong(30), under, ledger, {"budget": 33}).solve()
    more = Run(all_wrong(30), under, ledger, {"budget": 55})
    assert more.solve().bill.total == 55
    assert ledger.possibly_paid() == 55


def test_the_verdict_under_exactly_these_conditions_comes_first() -> None:
    ledger = MemoryLedger()
    unsafe, strict = Conditions("c", 1, "unsafe"), Conditions("c", 1, "strict")
    assert Run(needle(3, at=0), unsafe, ledger).solve().outcome == "solved"
    assert Run(all_wrong(3), strict, ledger).solve().outcome == "exhausted"
    back = Run(needle(3, at=0), unsafe, ledger)
    assert back.solve().outcome == "solved"
    assert back.verifier.verified == []


def test_what_is_learned_and_exported_leaves_out_verdicts_that_do_not_answer() -> None:
    ledger = MemoryLedger()
    id = Run(needle(5, at=2), Conditions("c", 1, "unsafe"), ledger).solve().search
    strict = Run(needle(5, at=2), Conditions("c", 1, "strict"), ledger)

    async def die() -> None:
        raise Crash

    strict.verifier.faults = {2: die}
    with pytest.raises(Crash):
        strict.solve()
    entries = ledger.read(id)
    assert sum(isinstance(each, Found) for each in entries) == 4
    assert len(SearchView(entries).found) == 1
    past = entries_past("p", entries)
    assert past.verified.tolist() == [True, False, False]
    assert not past.passed.any()


def test_conditions_survive_the_ledger() -> None:
    under = Conditions("c", 1, "jail")
    for entry in (
        Started("p", {}, conditions=under),
        Found(0, Verdict.PASSED, conditions=under, shared=True),
        Scored(0, 1.0, "k", judge=1),
    ):
        assert from_text(kind_of(entry), to_text(entry)) == entry
    assert "conditions" not in to_text(Found(0, Verdict.PASSED))


# Refutations and keys


def test_an_old_refutation_does_not_refute_under_a_new_judge() -> None:
    """The old judge refutes every text; the new one none."""
    world, ledger = needle(3, at=0), MemoryLedger()

    def solved(judge: int, refutation: Callable[[Problem, Draft], str | None]) -> Solution:
        verifier = Conditional(world, under=Conditions("c", judge, "jail"))
        backends = Backends(
            ScriptedGenerator(world),
            TableScorer(world),
            verifier,
            key=lambda problem, draft: f"judge {judge}: {draft.text}",
            refutation=refutation,
        )
        config = one_generator(backends, VerifyAll(), Costs(1, 10))

        async def solving() -> Solution:
            return await search(PROBLEM, config, ledger=ledger)

        return anyio.run(solving)

    refuted = solved(1, lambda problem, draft: "does not parse")
    assert (refuted.outcome, refuted.bill.refuted) == ("exhausted", 3)
    mended = solved(2, lambda problem, draft: None)
    assert (mended.outcome, mended.bill.refuted) == ("solved", 0)
    id = mended.search
    last = {each.candidate: each for each in ledger.read(id) if isinstance(each, Scored)}
    assert last[0].key == "judge 2: 0"
    assert (last[0].judge, last[0].reason) == (2, "")
    assert last[1].key == REFUTED  # the search did not need it again
    assert sum(isinstance(each, Made) for each in ledger.read(id)) == 3


def test_refutations_of_the_old_format_are_made_again() -> None:
    """A ledger whose candidate was refuted by mistake, before judges were recorded."""
    problem = Problem("p", "", {"kind": "math", "answer": "5"})
    with CheckVerifier(workers=1) as verifier:
        world = needle(1, at=0)

        class Answering(ScriptedGenerator):
            async def generate(self, problem: Problem, n: int, *, first: int = 0) -> Any:
                made = await super().generate(problem, n, first=first)
                return [replace(each, text="\\boxed{5}") for each in made]

        class Length(TableScorer):
            async def score(self, problem: Problem, drafts: Any) -> Any:
                return await super().score(problem, [Draft("0")] * len(drafts))

        backends = Backends(
            Answering(world),
            Length(world),
            verifier,
            key=verifier.key,
            refutation=verifier.refutation,
        )
        config = one_generator(backends, VerifyAll(), Costs(1, 10))
        ledger, id = MemoryLedger(), config.search_id(problem)
        ledger.append(id, [config.started(problem), Made(0, "\\boxed{5}"), Scored(0, 1.0, REFUTED)])

        async def solving() -> Solution:
            return await search(problem, config, ledger=ledger)

        assert anyio.run(solving).outcome == "solved"


# The verifier of checks: what its conditions are


def conditions(
    check: dict[str, Any], isolation: Isolation, limits: RunLimits | None = None
) -> Conditions:
    with CheckVerifier(
        workers=1, isolation=isolation, limits=limits, allow_commands=True
    ) as verifier:
        return verifier.conditions(Problem("p", "", check))


def test_programs_have_an_isolation_and_limits_and_texts_have_neither() -> None:
    math = {"kind": "math", "answer": "5"}
    assert conditions(math, Isolation.UNSAFE) == conditions(
        math, Isolation.JAIL, RunLimits(seconds=1)
    )
    jail = conditions(STDIN, Isolation.JAIL)
    assert (jail.isolation, jail.judge) == ("jail", checks.JUDGE)
    assert conditions(STDIN, Isolation.UNSAFE) == replace(jail, isolation="unsafe")
    assert conditions(STDIN, Isolation.JAIL, RunLimits(seconds=1)).check != jail.check
    assert conditions(STDIN, Isolation.JAIL, RunLimits(memory_mb=99)).check != jail.check
    own = STDIN | {"limits": {"seconds": 3, "memory_mb": 64}}
    assert conditions(own, Isolation.JAIL, RunLimits(seconds=1)) == conditions(own, Isolation.JAIL)


def test_a_server_is_told_the_problem_so_equal_texts_of_two_problems_differ() -> None:
    check = {"kind": "http", "url": "http://127.0.0.1:9/verify"}
    with CheckVerifier(workers=1, allow_commands=True) as verifier:
        first, second = (verifier.conditions(Problem(id, "?", check)) for id in ("p", "q"))
    assert first != second
    assert first.judge == 0


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def script(word: str) -> str:
    """A check that passes texts that contain the word, and notes each run."""
    return (
        "import sys, pathlib\n"
        "text = sys.stdin.read()\n"
        "with open('runs', 'a') as file: file.write('x')\n"
        f"raise SystemExit({word!r} not in text)\n"
    )


def runs() -> int:
    return len(Path("runs").read_text()) if Path("runs").exists() else 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "argv",
    [
        [sys.executable, "check.py"],
        [sys.executable, "-m", "check"],
        ["./check.sh"],
        ["sh", "-c", "exec $0", "./check.sh"],
        [sys.executable, "other.py", "--script=check.py"],
    ],
)
def test_an_edited_script_is_another_check_also_in_memory(argv: list[str], folder: Path) -> None:
    Path("check.py").write_text(script("right"))
    shell = Path("check.sh")
    shell.write_text(f"#!/bin/sh\nexec {shlex.quote(sys.executable)} check.py\n")
    shell.chmod(0o755)
    Path("other.py").write_text("import runpy; runpy.run_path('check.py')\n")
    problem = Problem("p", "", {"kind": "command", "argv": argv})
    with CheckVerifier(workers=1, allow_commands=True) as verifier:
        before = verifier.conditions(problem)
        assert verifier.find(problem, "wrong").verdict is Verdict.FAILED
        assert verifier.find(problem, "wrong").shared
        assert runs() == 1
        # Of another length: within a second, Python takes the compiled module of an equal one.
        Path("check.py").write_text(script("wrong") + "# edited\n")
        shell.write_text(shell.read_text() + "# edited\n")
        after = verifier.find(problem, "wrong")
        assert (after.verdict, after.shared, runs()) == (Verdict.PASSED, False, 2)
        assert after.conditions not in (None, before)
        assert not before.answers_for(verifier.conditions(problem))


def test_a_file_that_a_script_imports_is_part_of_the_check(folder: Path) -> None:
    Path("check.py").write_text("import helper\nraise SystemExit(helper.status)\n")
    Path("helper.py").write_text("status = 1\n")
    problem = Problem("p", "", {"kind": "command", "argv": [sys.executable, "check.py"]})
    with CheckVerifier(workers=1, allow_commands=True) as verifier:
        assert verifier.find(problem, "x").verdict is Verdict.FAILED
        Path("helper.py").write_text("status = 0 # now\n")
        assert verifier.find(problem, "x").verdict is Verdict.PASSED


def test_only_files_are_named(folder: Path) -> None:
    Path("check.py").touch()
    Path("folder").mkdir()
    argv = ["check.py", "{}", "folder", "--x=check.py", "missing", "--", "a=b=c", "/dev/null"]
    assert named_files(argv) == ["check.py"]
    assert named_files(["no-such-program"]) == []
    Path("folder/__main__.py").touch()
    assert named_files([sys.executable, "folder"]) == [sys.executable, "folder/__main__.py"]


# The commands


def solve(server: FaultyServer, out: str, *more: object) -> tuple[Ran, dict[str, Any]]:
    live = [
        "problems.jsonl",
        "--generator",
        "openai:m",
        "--base-url",
        server.url,
        "--score",
        "length",
    ]
    given = ["--policy", "verify-all", "--costs", "1,10", "--budget", "100", "--workers", "1"]
    ran = here("solve", *live, *given, "--out", out, "--ledger", "ledger", *more)
    assert ran.code in (0, 1), ran
    (answer,) = records(Path(out))
    return ran, answer


def drafted(server: FaultyServer) -> int:
    return sum(request.body.get("n", 1) for request in server.received)


def write_problem(check: dict[str, Any]) -> None:
    line = {"problem": "p", "prompt": "?", "check": check}
    Path("problems.jsonl").write_text(json.dumps(line) + "\n")


@pytest.mark.slow
@pytest.mark.parametrize("outs", [("out", "out"), ("one", "two")])
def test_a_pass_without_isolation_is_no_pass_in_the_jail(
    outs: tuple[str, str], folder: Path
) -> None:
    write_problem(STDIN)
    program = "```python\nprint(2 * int(input()))\n```"
    with FaultyServer(text=lambda request, seed: program) as server:
        _, first = solve(server, outs[0], "--isolation", "unsafe")
        assert (first["outcome"], first["conditions"]["isolation"]) == ("solved", "unsafe")
        before = drafted(server)
        ran, second = solve(server, outs[1])
        assert (second["outcome"], second["conditions"]["isolation"]) == ("solved", "jail")
        assert "10 paid in this run" in ran.out
        assert drafted(server) == before
        ran, third = solve(server, outs[0], "--isolation", "unsafe")  # the jail answers for it
        assert third["outcome"] == "solved"
        assert "0 paid in this run" in ran.out


@pytest.mark.slow
def test_more_time_is_another_verdict(folder: Path) -> None:
    write_problem(STDIN)
    program = "```python\nimport time\ntime.sleep(1.2)\nprint(2 * int(input()))\n```"
    with FaultyServer(text=lambda request, seed: program) as server:
        _, first = solve(server, "out", "--timeout", "0.5")
        assert first["outcome"] != "solved"
        before = drafted(server)
        _, second = solve(server, "out", "--timeout", "20")
        assert (second["outcome"], second["verified"]) == ("solved", 1)
        assert drafted(server) == before


@pytest.mark.slow
def test_labels_belong_to_an_isolation(folder: Path) -> None:
    line = {"problem": "p", "check": STDIN, "candidates": ["print(4)", "print("]}
    Path("in.jsonl").write_text(json.dumps(line) + "\n")
    run = ["verify", "in.jsonl", "--out", "labels", "--workers", "1"]
    assert here(*run, "--isolation", "unsafe").code == 0
    refused = here(*run)
    assert refused.code == 2
    assert "weaker isolation; give another --out" in refused.err
    assert here(*run, "--isolation", "unsafe").code == 0
    run[3] = "others"
    assert here(*run).code == here(*run).code == 0
    weaker = here(*run, "--isolation", "unsafe")
    assert weaker.code == 0
    assert "2 were there before" in weaker.out
