"""What judges cost: in the bill, in what budgets reserve, and before any work."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from grv.ledger.entries import Intended
from grv.ledger.opening import open_ledger
from grv.testing.servers import FakeOpenai
from support.commands import here

PRICES = """
["fake"]
prompt = 1000.0
completion = 2000.0
"""

pytestmark = pytest.mark.usefixtures("own_folder")


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-key-of-some-length")
    Path("prices.toml").write_text(PRICES, encoding="utf-8")


def model(prompt: str, index: int) -> str:
    """Answers 42, and judges: 42 is right."""
    if '"answer":' not in prompt:
        return "42" if index % 3 == 2 else "41"
    return json.dumps({"verdict": "pass" if json.loads(prompt)["answer"] == "42" else "fail"})


def solve(server: FakeOpenai, check: dict[str, Any], *more: object) -> Any:
    record = {"problem": "p", "prompt": "What is 6 x 7?", "check": check}
    Path("problems.jsonl").write_text(json.dumps(record) + "\n", encoding="utf-8")
    return here(
        "solve",
        "problems.jsonl",
        "--generator",
        "openai:fake",
        "--base-url",
        server.url,
        "--allow-commands",
        "--costs",
        "measured",
        "--max-tokens",
        16,
        "--score",
        "length",
        "--out",
        "answers.jsonl",
        *more,
    )


def answer() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("answers.jsonl").read_text(encoding="utf-8"))
    return found


def reserved() -> list[float]:
    ledger = open_ledger("answers.jsonl.ledger", read_only=True)
    (search,) = ledger.searches()
    entries = ledger.read(search.id)
    return [
        each.reserved for each in entries if isinstance(each, Intended) and each.call == "verify"
    ]


ERRING = {"errors": {"false_pass": 0.05, "false_fail": 0.05}, "temperature": 1}


@pytest.mark.slow
@pytest.mark.parametrize("panel", [False, True])
def test_a_budget_in_dollars_reserves_the_worst_price_of_a_judge(panel: bool) -> None:
    prices = {"prompt": 1000.0, "completion": 2000.0}
    with FakeOpenai(model, prices=prices) as server:
        models: Any = ["openai:fake", "openai:fake"] if panel else "openai:fake"
        check = {"kind": "judge", "model": models, "url": server.url, **ERRING}
        ran = solve(server, check, "--prices", "prices.toml", "--budget", "400usd")
        assert ran.code == 0, ran
        assert answer()["answer_status"] == "judged"
        assert answer()["cost"] == pytest.approx(server.charged)
    # A call: the request in bytes and 1024 tokens of reply, for each of up to 8 calls.
    least = 8 * (1 + panel) * (1024 * 2000 + 500 * 1000) / 1e6
    assert reserved()
    assert all(least < each < 2 * least for each in reserved())


def test_without_a_price_the_budget_says_what_is_missing() -> None:
    other = "prompt = 1.0\ncompletion = 2.0\n"
    Path("prices.toml").write_text(f'["fake"]\n{other}', encoding="utf-8")
    with FakeOpenai(model) as server:
        check = {"kind": "judge", "model": "openai:unknown", "url": server.url, **ERRING}
        ran = solve(server, check, "--prices", "prices.toml", "--budget", "5usd")
    assert ran.code == 2
    assert "needs --most G,V" in ran.err
    assert "For models with known prices, also those that judge" in ran.err
    assert len(ran.err.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("models", ["openai:fake", ["openai:fake", "openai:fake", "openai:fake"]])
def test_a_judge_or_a_panel_in_front_of_a_sure_check_is_in_bill_and_report(models: Any) -> None:
    prices = {"prompt": 1000.0, "completion": 2000.0}
    asked: list[str] = []

    def counted(prompt: str, index: int) -> str:
        asked.extend([prompt] if '"answer":' in prompt else [])
        return model(prompt, index)

    with FakeOpenai(counted, prices=prices) as server:
        judge = {"kind": "judge", "model": models, "url": server.url}
        check = {"kind": "first", "checks": [judge, {"kind": "math", "answer": "42"}]}
        ran = solve(server, check, "--prices", "prices.toml", "--budget", "100usd")
        assert ran.code == 0, ran
        assert answer()["answer_status"] == "verified"
        assert answer()["cost"] == pytest.approx(server.charged)
    exported = here(
        "runs", "export", "answers.jsonl.ledger", "--prices", "prices.toml", "--out", "log.csv"
    )
    assert exported.code == 0, exported
    with Path("log.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["stage_costs"]]
    assert {row["failed_stage"] for row in rows} == {"judge", ""}
    for row in rows:
        stages = json.loads(row["stage_costs"])
        assert [name for name, _ in stages] == ["judge", "math"][: len(stages)]
        assert stages[0][1] > 0
        assert sum(cost for _, cost in stages) == pytest.approx(float(row["verify_cost"]))
    reported = here("report", "log.csv", "--unlabelled", "fail", "--csv", "tables")
    assert reported.code == 0, reported
    with Path("tables/stages.csv").open(encoding="utf-8") as file:
        (stage, _) = csv.DictReader(file)
    votes = 1 if isinstance(models, str) else 2  # two equal ones of three decide
    judged = {row["key"]: json.loads(row["stage_costs"])[0][1] for row in rows}
    assert stage["stage"] == "judge"
    assert float(stage["runs"]) == len(judged)
    assert len(asked) == len(judged) * votes
    assert float(stage["cost"]) == pytest.approx(sum(judged.values()) / len(judged))
    assert stage["words"].startswith("does not pay: what follows must cost more than")


def test_a_second_score_of_a_judge_needs_no_most() -> None:
    prices = {"prompt": 1000.0, "completion": 2000.0}

    def rates(prompt: str, index: int) -> str:
        return "90" if "Proposed answer" in prompt else model(prompt, index)

    with FakeOpenai(rates, prices=prices) as server:
        check = {"kind": "math", "answer": "42"}
        ran = solve(
            server,
            check,
            "--prices",
            "prices.toml",
            "--budget",
            "400usd",
            "--score",
            "cascade(length, judge:fake, top=2)",
        )
        assert ran.code == 0, ran
        assert answer()["cost"] == pytest.approx(server.charged)
    ledger = open_ledger("answers.jsonl.ledger", read_only=True)
    (search,) = ledger.searches()
    kept = [each for each in ledger.read(search.id) if isinstance(each, Intended)]
    assert all(each.reserved > 2 for each in kept if each.call == "rescore")
