"""Huge ratios of budget and prices: an error of one line, never a plan that takes for ever."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import grv
from grv.backends.callables import CallableGenerator, CallableScorer, CallableVerifier
from grv.backends.protocols import Problem
from grv.core.errors import UsageError
from grv.core.limits import Limits
from grv.core.policy import Policy
from grv.core.pool import Pool
from grv.core.values import Costs, Generate, Step
from grv.policies import FOR_GUESTS, POLICIES
from grv.policies.spec import parse
from grv.runtime.config import GeneratorConfig, SearchConfig
from grv.runtime.executor import Backends
from support.commands import grv as command

BACKENDS = Backends(
    CallableGenerator(lambda problem: "x"),
    CallableScorer(lambda problem, text: 0.0),
    CallableVerifier(lambda problem, text: False),
)


def config(policy: Policy, costs: Costs, limits: Limits) -> SearchConfig:
    return SearchConfig.alone(GeneratorConfig(BACKENDS, policy, costs), limits, {})


WITH_NUMBERS = {"fixed": "fixed(64, 4)", "threshold": "threshold(0.5)"}


@pytest.mark.parametrize("width", [1, 4, None])
@pytest.mark.parametrize("budget", [math.inf, 1e300, 1e20])
@pytest.mark.parametrize("name", FOR_GUESTS)
def test_every_ratio_is_tried_at_once_or_refused(
    name: str, budget: float, width: int | None
) -> None:
    policy = parse(WITH_NUMBERS.get(name, name))
    said = []
    started = time.process_time()
    for generate, verify in ((1, 1e9), (1, 1e18), (1e-100, 1e100), (1e100, 1e-100), (1, 1e6)):
        try:
            config(
                policy, Costs(generate, verify), Limits(budget=budget, width=width)
            ).check_plans()
        except UsageError as error:
            said.append(str(error))
    assert time.process_time() - started < 2
    for message in said:
        assert "candidates at once, and 100,000 are the most" in message
        assert "\n" not in message
        assert len(message) < 300


def test_ordinary_plans_are_accepted() -> None:
    for name in FOR_GUESTS:
        policy = parse(WITH_NUMBERS.get(name, name))
        for costs in (Costs(1, 10), Costs(1, 1000), Costs(10, 1), Costs(0.001, 5)):
            config(policy, costs, Limits()).check_plans()
    assert set(FOR_GUESTS) <= set(POLICIES)


@dataclass(frozen=True)
class Growing:
    """A policy of a user, whose steps grow."""

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        yield Generate(1)
        yield Generate(1_000_000)


@pytest.mark.anyio
async def test_a_step_of_an_own_policy_is_refused_when_it_comes() -> None:
    made: list[str] = []

    def guess(problem: Problem) -> str:
        made.append(problem.id)
        return "x"

    with pytest.raises(UsageError, match="asks for 1,000,000 candidates at once"):
        await grv.solve(
            Problem("p", "a"),
            generator=guess,
            scorer=lambda problem, draft: 0.0,
            verifier=lambda problem, draft: False,
            policy=Growing(),
        )
    assert len(made) == 1


@pytest.mark.parametrize(("generate", "verify"), [(1e-300, 1e300), (1e300, 1e-300), (1e-300, 1)])
def test_costs_that_are_too_far_apart_are_refused(generate: float, verify: float) -> None:
    with pytest.raises(UsageError, match="too far apart"):
        Costs(generate, verify)


@pytest.mark.slow
def test_the_command_line_says_so_in_one_line(tmp_path: Path) -> None:
    problems = tmp_path / "problems.jsonl"
    check = {"kind": "math", "answer": "42"}
    problems.write_text(json.dumps({"problem": "a", "prompt": "x", "check": check}) + "\n")
    (tmp_path / "own.py").write_text("def generate(problem):\n    return 'It is 41'\n")
    ran = command(
        "solve",
        problems,
        "--generator",
        f"{tmp_path}/own.py:generate",
        "--score",
        "length",
        "--costs",
        "1,1e18",
        "--policy",
        "varied",
        "--budget",
        "1e300",
        "--out",
        tmp_path / "out.jsonl",
    )
    assert ran.code == 2
    assert "candidates at once" in ran.err
    assert ran.err.count("\n") == 1
