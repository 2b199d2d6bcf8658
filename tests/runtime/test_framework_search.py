"""Searches whose candidates are results of another framework, here of plain functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from grv.backends.protocols import Finding, Problem
from grv.core.errors import UsageError
from grv.core.values import Verdict
from grv.runtime.framework_search import (
    Attempt,
    FrameworkSearch,
    finding_on,
    framework,
    priced,
    search_options,
)
from grv.usage import Usage

MATH = {"kind": "math", "answer": "3"}


@dataclass(frozen=True)
class Number:
    """A result of the framework, whose text is its value."""

    value: int


def search(
    verifier: Callable[[Number], Any] | None,
    made: list[int],
    check: dict[str, Any] | None = None,
    **options: Any,
) -> FrameworkSearch:
    def make(number: int) -> Attempt:
        made.append(number)
        return Attempt(Number(number), str(number), Usage(1, 2, dollars=0.5))

    given = {"costs": (1, 1), "budget": 60, **options}
    return FrameworkSearch(
        Problem("p", "a number", check or {}),
        "numbers",
        make,
        lambda text: Number(int(text)),
        verifier,
        lambda result: 0.0,
        search_options(given, "test"),
        said=lambda result: str(result.value),
    )


def test_the_first_pass_ends_the_search_and_its_result_is_returned() -> None:
    made: list[int] = []
    found = search(lambda result: result.value == 3, made).run_now()
    assert found.result == Number(3)
    assert found.report["answer_verified"] is True
    assert found.report["usage"]["by_call"]["generate"]["dollars"] == 0.5 * len(made)
    assert [step.kind for step in found.steps][-1] == "ended"
    assert "answer" not in found.report


@pytest.mark.anyio
async def test_asynchronous_functions_are_awaited() -> None:
    async def passes(result: Number) -> bool:
        return result.value == 2

    assert (await search(passes, []).run()).result == Number(2)


def test_no_pass_is_a_report_and_not_an_error() -> None:
    found = search(lambda result: False, [], budget=8).run_now()
    assert found.result is None
    assert (found.report["outcome"], found.report["cost"]) == ("out of budget", 8)
    assert "budget" in found.report["message"]


def test_what_is_recorded_is_made_again_from_its_text(tmp_path: Path) -> None:
    ledger = tmp_path / "runs.db"
    made: list[int] = []

    def passes(result: Number) -> bool:
        return result.value == 3

    first = search(passes, made, ledger=ledger).run_now()
    count = len(made)
    again = search(passes, made, ledger=ledger).run_now()
    assert len(made) == count
    assert again.result == first.result


def test_an_error_of_the_framework_is_raised_as_it_is_and_what_was_paid_is_kept(
    tmp_path: Path,
) -> None:
    ledger = tmp_path / "runs.db"
    made: list[int] = []
    verified: list[int] = []

    class Unreachable(Exception):
        pass

    def passes(result: Number) -> bool:
        verified.append(result.value)
        return result.value == 5

    failing = search(passes, made, ledger=ledger)
    plain = failing.make

    def make(number: int) -> Any:
        if number == 4:
            raise Unreachable("no route")
        return plain(number)

    failing.make = make
    with pytest.raises(Unreachable, match="no route"):
        failing.run_now()
    assert search(passes, made, ledger=ledger).run_now().result == Number(5)
    assert sorted(made) == sorted({*made})
    assert sorted(verified) == sorted({*verified})


def test_an_answer_that_cannot_be_read_is_paid_for_and_dropped() -> None:
    verified: list[int] = []

    def passes(result: Number) -> bool:
        verified.append(result.value)
        return result.value == 3

    one = search(passes, [])
    plain = one.make

    def make(number: int) -> Any:
        return Attempt(None, "", Usage(1, 2), broken="no field") if number == 1 else plain(number)

    one.make = make
    found = one.run_now()
    assert found.result == Number(3)
    assert 1 not in verified
    assert found.report["generated"] > found.report["verified"]


def test_a_check_is_carried_out_on_the_text_of_a_result() -> None:
    found = search(None, [], MATH).run_now()
    assert found.result == Number(3)
    assert found.solution.conditions is not None


def test_costs_that_the_framework_reports_are_counted_in_dollars() -> None:
    options: dict[str, Any] = {"costs": "measured:0.5,0.1", "most": (0.5, 0.1), "budget": 2}
    found = search(lambda result: False, [], **options).run_now()
    assert found.report["outcome"] == "out of budget"
    assert 0 < found.report["cost"] <= 2
    assert found.report["cost"] == 0.5 * found.report["generated"]


def test_a_model_with_a_known_price_has_dollars() -> None:
    usage = Usage(1000, 1000)
    assert (priced(usage, "gpt-4o-mini", "openai").dollars or 0) > 0
    assert priced(usage, "gpt-4o-mini", "").dollars is None


@pytest.mark.slow
def test_a_total_budget_is_a_cap_on_all_calls(tmp_path: Path) -> None:
    spent = 0.0
    for number in range(3):
        one = search(lambda result: False, [], ledger=tmp_path / "runs.db", total_budget=15)
        one.problem = Problem(f"p{number}", f"a number {number}")
        spent += one.run_now().report["cost"]
    assert 10 < spent <= 15


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"budgte": 3}, "test has no option budgte; did you mean budget"),
        ({"generator": print}, "test has no option generator"),
        ({"budget": "much"}, "budget='much'"),
        ({"total_budget": 5}, "total_budget needs ledger="),
    ],
)
def test_a_wrong_option_is_an_error_of_one_line(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        search_options(given, "test")
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_framework_without_asyncio_is_told_so() -> None:
    for begun in (search(None, [], MATH).run(), finding_on(MATH, "3")):
        with pytest.raises(UsageError, match="asyncio, not on trio"):
            begun.send(None)  # no loop runs


def test_a_missing_framework_says_what_to_install() -> None:
    with pytest.raises(UsageError, match="needs nosuch: pip install nosuch-slim"):
        framework("nosuch", "nosuch-slim", "grv.adapters.nosuch")


@pytest.mark.parametrize("name", ["dspy", "inspect_ai", "langchain", "pydantic_ai"])
def test_each_adapter_says_which_package_is_missing(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib
    import sys

    for module in [*sys.modules]:
        if module.partition(".")[0] in ("dspy", "inspect_ai", "langchain_core", "pydantic_ai"):
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.delitem(sys.modules, f"grv.adapters.{name}", raising=False)
    for package in ("dspy", "inspect_ai", "langchain_core", "pydantic_ai"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UsageError, match=f"grv.adapters.{name} needs .*: pip install"):
        importlib.import_module(f"grv.adapters.{name}")


@pytest.mark.anyio
async def test_a_finding_on_one_text() -> None:
    found: Finding = await finding_on(MATH, "3")
    assert found.verdict is Verdict.PASSED
    assert (await finding_on(MATH, "4")).verdict is Verdict.FAILED
    with pytest.raises(UsageError, match="human"):
        await finding_on({"kind": "human", "question": "Is it right?"}, "3")
