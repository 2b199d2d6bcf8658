"""The stages of a group of checks: however often a verification breaks off, each is paid once."""

from __future__ import annotations

from collections import Counter
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.backends.protocols import Finding, Problem, Stage
from grv.backends.verifiers.groups import GroupCheck, GroupMember
from grv.backends.verifiers.suite import PaidStage, StageMemory
from grv.backends.verifiers.worker_pair import WorkerPair
from grv.core.values import Verdict

WAYS = ("broken", "killed before it is paid for", "killed when it is on record")


class Killed(BaseException):
    """The process dies."""


@given(
    kind=st.sampled_from(["all", "first"]),
    prices=st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=2, max_size=5),
    data=st.data(),
)
def test_no_stage_is_paid_for_twice_however_often_a_verification_breaks_off(
    kind: str, prices: list[float], data: st.DataObject
) -> None:
    names = ["text", *(f"text {number}" for number in range(2, len(prices) + 1))]
    fails = data.draw(st.sets(st.sampled_from(names)), label="fails")
    troubles = {name: data.draw(st.lists(st.sampled_from(WAYS), max_size=3)) for name in names}
    paid: Counter[str] = Counter()
    recorded: list[PaidStage] = []

    def run(member: GroupMember, text: str, pair: WorkerPair, seed: int) -> tuple[Finding, Stage]:
        left = troubles[member.name]
        if left and left[0] != WAYS[2]:
            if left.pop(0) == "broken":
                return Finding(Verdict.BROKEN), Stage(member.name, Verdict.BROKEN)
            raise Killed
        paid[member.name] += 1
        verdict = Verdict.FAILED if member.name in fails else Verdict.PASSED
        return Finding(verdict), Stage(member.name, verdict, cost=member.cost)

    def keep(stage: PaidStage) -> None:
        recorded.append(stage)
        left = troubles[stage.stage.name]
        if left:
            left.pop(0)
            raise Killed

    checks = [{"kind": "text", "contains_all": ["x"], "cost": price} for price in prices]
    problem = Problem("p", "prompt", {"kind": kind, "checks": checks})
    check = GroupCheck.of(problem)
    pair = WorkerPair()
    finding = Finding(Verdict.BROKEN)
    with mock.patch.object(GroupMember, "run", run):
        while finding.verdict is Verdict.BROKEN:
            pair.memory = StageMemory(recorded, keep)
            try:
                finding = check.judge("x", pair)
            except Killed:
                check = GroupCheck.of(problem)
    stages = finding.stages
    assert paid == Counter(stage.name for stage in stages)
    assert finding.usage.dollars == pytest.approx(sum(stage.cost or 0.0 for stage in stages))
    assert finding.verdict is (Verdict.FAILED if fails & set(paid) else Verdict.PASSED)
    assert len(paid) == len(names) or finding.verdict is Verdict.FAILED
