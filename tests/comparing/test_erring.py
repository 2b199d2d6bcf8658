"""Rules for a verifier that errs, compared on a log."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import grv
from grv.comparing.erring import RULES, compare_erring
from grv.core.errors import UsageError
from grv.logs.log import Log, LoggedProblem
from grv.policies import DEFAULT
from grv.theory.confirmations import Errors
from support.commands import here


def small_log(problems: int = 30, candidates: int = 40) -> Log:
    """A third of the problems has no right candidate."""
    generator = np.random.default_rng(3)
    made = []
    for number in range(problems):
        share = (0.0, 0.05, 0.3)[number % 3]
        passed = generator.random(candidates) < share
        made.append(LoggedProblem(f"p{number}", generator.random(candidates) + passed, passed))
    return Log(tuple(made))


@pytest.mark.parametrize("errors", [Errors(0.05, 0.05), Errors(0.2, 0.1)])
def test_the_cold_rule_keeps_its_promise_and_the_first_pass_does_not(errors: Errors) -> None:
    rows = compare_erring(
        {"default": DEFAULT}, small_log(), grv.Costs(1, 10), errors, orders=4, jobs=1
    )
    by_rule = {row.rule: row for row in rows}
    assert list(by_rule) == list(RULES)
    assert by_rule["cold"].wrong <= 0.05
    assert by_rule["first pass"].wrong > 0.2
    assert by_rule["first pass"].cost < by_rule["cold"].cost
    assert by_rule["cold"].ratio == 1.0
    assert by_rule["first pass"].wrong_returned is not None
    for row in rows:
        assert row.wrong_low <= row.wrong <= row.wrong_high
        assert row.calls >= row.verified
        assert row.cost == pytest.approx(row.generated + 10 * row.calls)


def test_without_errors_every_rule_finds_right_answers_only() -> None:
    rows = compare_erring(
        {"default": DEFAULT}, small_log(12), grv.Costs(1, 10), Errors(), orders=2, jobs=1
    )
    assert {row.wrong for row in rows} == {0.0}
    assert {row.calls for row in rows if row.rule in ("first pass", "cold", "bayes")} == {
        row.verified for row in rows if row.rule == "cold"
    }


def test_more_processes_change_nothing() -> None:
    log = small_log(9)
    one, two = (
        compare_erring(
            {"default": DEFAULT},
            log,
            grv.Costs(1, 10),
            Errors(0.1, 0.1),
            rules=("cold", "bayes"),
            orders=3,
            jobs=jobs,
        )
        for jobs in (1, 2)
    )
    assert one == two


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(UsageError, match="there is no rule 'twice'"):
        compare_erring(
            {"default": DEFAULT}, small_log(3), grv.Costs(), Errors(0.1), rules=("twice",)
        )


def test_the_command_prints_and_saves_the_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [
        json.dumps({"problem": problem.id, "candidate": number, "score": score, "passed": passed})
        for problem in small_log(6, 12).problems
        for number, (score, passed) in enumerate(
            zip(problem.scores.tolist(), problem.passed.tolist(), strict=True)
        )
    ]
    Path("log.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = ("compare", "log.jsonl", "--errors", ".1,.1", "--orders", 2, "--jobs", 1)
    ran = here(*command, "--unsolvable", "include", "--json", "rules.json", "--csv", "rules.csv")
    assert ran.code == 0, ran
    assert "wrong per search" in ran.out
    saved = json.loads(Path("rules.json").read_text(encoding="utf-8"))
    assert [row["rule"] for row in saved["rows"]] == list(RULES)
    assert Path("rules.csv").read_text(encoding="utf-8").startswith("policy,rule,")
    for more, said in (
        (("--errors", ".6,.5"), "give two shares whose sum is below 1"),
        (("--pairs",), "--errors compares rules"),
        (("--policy", "hindsight"), "no policy that can run live"),
        (("--costs", "1,10", "--costs", "1,2"), "needs one price list"),
    ):
        refused = here(*command, *more)
        assert refused.code == 2
        assert said in refused.err
