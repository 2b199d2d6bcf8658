"""Rejection sampling to a target: what is found, what it costs, and going on after a stop."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.backends.protocols import JUDGED, Draft, Finding, Problem
from grv.core.values import Costs
from grv.ledger.ledger import Ledger, MemoryLedger
from grv.ledger.view import SearchView
from grv.runtime.calls import Caller
from grv.runtime.collect import Collected, Collection, collect_many
from grv.runtime.executor import Backends
from grv.runtime.training import (
    Different,
    ExportFormat,
    ProblemTexts,
    Target,
    judged_path,
    rows_of,
    write_rows,
)
from grv.testing.fakes import (
    Crash,
    ScriptedGenerator,
    TableScorer,
    TableVerifier,
    world_key,
)
from grv.testing.strategies import worlds
from grv.testing.worlds import World
from support.commands import here, refuses
from support.servers import FaultyServer, Received

PROBLEM = Problem("p", "prompt", {"kind": "math", "answer": "5"})


class Bench:
    """A collection to a target over one world, and what its backends saw."""

    def __init__(self, world: World, target: Target, n: int = 40, costs: Costs | None = None):
        self.world = world
        self.target = target
        self.generator = ScriptedGenerator(world)
        self.verifier = TableVerifier(world)
        backends = Backends(self.generator, TableScorer(world), self.verifier, world_key(world))
        costs = costs or Costs()
        self.collection = Collection(backends, n, costs=costs, target=target)

    async def collect(self, ledger: Ledger) -> ProblemTexts:
        done: list[Collected] = []
        await collect_many(
            [PROBLEM], self.collection, ledger=ledger, caller=Caller(), done=done.append
        )
        view = SearchView(ledger.read(self.collection.search_id(PROBLEM)))
        return ProblemTexts.of(PROBLEM, view)

    def found(self, ledger: Ledger | None = None) -> ProblemTexts:
        return anyio.run(self.collect, ledger or MemoryLedger())


@pytest.mark.slow
@given(
    world=worlds(),
    passes=st.integers(0, 4),
    failures=st.integers(0, 4),
    different=st.sampled_from(Different),
)
def test_the_target_is_found_whenever_the_candidates_have_it(
    world: World, passes: int, failures: int, different: Different
) -> None:
    target = Target(max(passes, 1), failures, different)
    n = max(1, len(world))
    bench = Bench(world, target, n)
    found = bench.found()
    everything = Bench(world, Target(MANY, MANY, different), n).found()
    right = everything.answers(different)
    wrong = everything.failures(different)
    assert len(found.answers(different)) >= min(target.passes, len(right))
    if not right.keys() & {*wrong}:
        assert len(found.failures(different)) >= min(target.failures, len(wrong))
    assert len(bench.verifier.verified) == len({*bench.verifier.verified})


MANY = 1000


def test_nothing_is_verified_or_generated_after_both_are_met() -> None:
    world = World.of(" ".join(["9+", "1-"] * 20))
    bench = Bench(world, Target(1, 1))
    found = bench.found()
    assert (len(found.answers(Different.TEXTS)), len(found.failures())) == (1, 1)
    assert len(bench.verifier.verified) == 2
    assert len(bench.generator.made) < 20


def test_n_is_the_most() -> None:
    world = World.of(" ".join(["1-"] * 30 + ["9+"]))
    bench = Bench(world, Target(1, 0), n=12)
    assert not bench.found().passed
    assert len(bench.generator.made) == 12


def test_failures_are_looked_for_among_the_lowest_scores() -> None:
    world = World.of("9+ 8+ 7+ 1- 6+ 5+ 4+ 3+ 2+ 8.5+ 7.5+ 6.5+")
    bench = Bench(world, Target(1, 1), n=12)
    bench.found()
    assert bench.verifier.verified[-1] == 3
    assert len(bench.verifier.verified) <= 4


def test_with_texts_the_key_of_an_answer_is_tried_first_and_with_keys_it_is_not_another() -> None:
    world = World.of("1+a 9- 8- 2+a 7-b 3+a 6- 5- 2+a 4+c")
    by_texts = Bench(world, Target(3, 0, Different.TEXTS), n=10)
    assert {*by_texts.found().answers(Different.TEXTS)} <= {"0", "3", "5", "8", "9"}
    assert by_texts.verifier.verified[0] == 0
    by_keys = Bench(world, Target(2, 0, Different.KEYS), n=10)
    assert {each.kind for each in by_keys.found().answers(Different.KEYS).values()} == {
        "key a",
        "key c",
    }


def test_candidates_with_the_key_of_a_failure_fail_for_free() -> None:
    bench = Bench(World.of("9-a 1-a 2-a 3-a 1+"), Target(0, 4), n=5)
    assert len(bench.found().failures(Different.TEXTS)) == 4
    assert len(bench.verifier.verified) == 1


@pytest.mark.parametrize("call", range(1, 12, 2))
def test_killed_it_goes_on_and_pays_nothing_twice(call: int) -> None:
    def die() -> None:
        raise Crash

    world = World.of(" ".join(["3-", "5-", "9+", "1-", "2+", "8-"] * 6))
    target = Target(4, 12)
    whole = Bench(world, target)
    expected = whole.found()
    ledger = MemoryLedger()
    first = Bench(world, target)
    first.verifier.faults = {call: die}
    with pytest.raises(Crash):
        first.found(ledger)
    second = Bench(world, target)
    assert second.found(ledger) == expected
    assert {*first.generator.made}.isdisjoint(second.generator.made)
    assert not {*first.verifier.verified} & {*second.verifier.verified}
    assert first.verifier.verified + second.verifier.verified == whole.verifier.verified
    again = Bench(world, target)
    assert again.found(ledger) == expected
    assert not again.verifier.verified


class Judge(TableVerifier):
    async def verify(self, problem: Problem, draft: Draft) -> Finding:
        found = await super().verify(problem, draft)
        return dataclasses.replace(found, evidence={JUDGED: {"wrong_probability": 0.01}})


@pytest.mark.parametrize("what", [ExportFormat.SFT, ExportFormat.DPO, ExportFormat.RLVR])
def test_judged_answers_are_in_a_file_of_their_own(tmp_path: Path, what: ExportFormat) -> None:
    target = Target(1, 1)
    sure = Bench(World.of("9+ 1- 2-"), target)
    judged = Bench(World.of("9+ 1- 2-"), target)
    judge = Judge(judged.world)
    judged.collection = dataclasses.replace(
        judged.collection, backends=dataclasses.replace(judged.collection.backends, verifier=judge)
    )
    out = tmp_path / "train.jsonl"
    written = write_rows(rows_of([sure.found(), judged.found()], what, target), str(out))
    assert (written.verified, written.judged) == (1, 1)
    assert JUDGED not in out.read_text()
    (row,) = lines(Path(judged_path(str(out))))
    assert row["labels"] == JUDGED


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


class TestCommand:
    PROBLEMS = (
        {"problem": "sum", "prompt": "2 + 3 =", "check": {"kind": "math", "answer": "5"}},
        {"problem": "never", "prompt": "2 + 9 =", "check": {"kind": "math", "answer": "11"}},
    )

    def collect(self, folder: Path, server: FaultyServer, *flags: object) -> Sequence[str]:
        file = folder / "p.jsonl"
        file.write_text("".join(json.dumps(each) + "\n" for each in self.PROBLEMS))
        call = ["collect", file, "--generator", "openai:m", "--base-url", server.url, "-n", 16]
        ran = here(*call, "--score", "length", "--out", folder / "out.jsonl", *flags)
        assert ran.code == 0, ran.err
        return ran.out.splitlines()

    @staticmethod
    def text(received: Received, seed: int) -> str:
        return f"Step {seed}. The answer is \\boxed{{{5 if seed % 3 == 0 else seed}}}"

    @pytest.mark.slow
    def test_writes_the_layouts_of_trl_and_verl(self, tmp_path: Path) -> None:
        flags = ("--passes", 2, "--failures", 2, "--ledger", tmp_path / "ledger")
        with FaultyServer(text=self.text) as server:
            out = self.collect(tmp_path, server, *flags, "--format", "sft")
            assert "1 problem with fewer different ones than asked for" in "\n".join(out)
            asked = len(server.received)
            answers = lines(tmp_path / "out.jsonl")
            assert [row["problem"] for row in answers] == ["sum", "sum"]
            assert len({row["completion"] for row in answers}) == 2
            assert all("boxed{5}" in row["completion"] for row in answers)
            self.collect(tmp_path, server, *flags, "--format", "dpo")
            pairs = lines(tmp_path / "out.jsonl")
            assert [{*row} for row in pairs] == [{"problem", "prompt", "chosen", "rejected"}] * 2
            self.collect(tmp_path, server, *flags, "--format", "rlvr")
            assert len(server.received) == asked
        (row,) = lines(tmp_path / "out.jsonl")
        assert row["prompt"] == [{"role": "user", "content": "2 + 3 ="}]
        assert row["reward_model"]["style"] == "rule"
        assert json.loads(row["reward_model"]["ground_truth"])["answer"] == "5"
        assert row["extra_info"]["index"] == "sum"

    @pytest.mark.parametrize(
        ("flags", "words"),
        [
            (["--passes", "2"], "give --format sft, dpo or rlvr"),
            (["--passes", "2", "--format", "dpo"], "give --passes and --failures"),
            (["--format", "sft", "--verify", "3"], "--verify is for a log"),
            (["--format", "sft", "--labels", "published"], "--labels published is for a log"),
            (["--format", "sft", "--out", "x.parquet"], "ends with .jsonl"),
        ],
    )
    def test_refuses_what_does_not_fit(self, tmp_path: Path, flags: list[str], words: str) -> None:
        file = tmp_path / "p.jsonl"
        file.write_text(json.dumps(self.PROBLEMS[0]) + "\n")
        call = ["collect", str(file), "--generator", "openai:m", "-n", "4"]
        assert words in refuses([*call, "--out", str(tmp_path / "o.jsonl"), *flags])
