"""`grv report`: from files to a page."""

from __future__ import annotations

import csv
import inspect
import json
import shutil
import sys
from importlib import resources
from pathlib import Path

import pytest

from grv.apps.cli import run
from grv.apps.compare import compare
from grv.apps.report import report

FAST = ["--orders", "2", "--many-orders", "3"]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    lines = (resources.files("grv") / "data" / "sample.csv").read_text("utf-8").splitlines()
    (tmp_path / "log.csv").write_text("\n".join(lines[:1201]), encoding="utf-8")  # 12 problems
    return "log.csv"


@pytest.mark.slow
def test_a_page_its_numbers_and_its_tables(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    saved = ["-o", "page.html", "--json", "report.json", "--csv", "tables"]
    assert run(["report", log, "--costs", "1,10", "--costs", "1,30", *saved, *FAST]) == 0
    said = capsys.readouterr().out
    assert "What should I do?" in said
    assert said.endswith("The page: page.html\n")
    assert Path("page.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    record = json.loads(Path("report.json").read_text(encoding="utf-8"))
    tables = {table["name"]: table for table in record["tables"]}
    with Path("tables/summary.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(tables["summary"]["rows"])
    assert {row["costs"] for row in rows} == {"1,10", "1,30"}


@pytest.mark.slow
def test_the_numbers_are_those_of_compare(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    policies = ["--policy", "adaptive", "--policy", "verify-all", "--policy", "default"]
    options = [*policies, "--seed", "3", "--width", "all", "--baseline", "verify-all"]
    assert run(["report", log, "--json", "report.json", *options, *FAST]) == 0
    assert run(["compare", log, "--json", "compare.json", *options, "--orders", "2"]) == 0
    tables = json.loads(Path("report.json").read_text())["tables"]
    summary = next(table for table in tables if table["name"] == "summary")
    names = [column["name"] for column in summary["columns"]]
    rows = [dict(zip(names, row, strict=True)) for row in summary["rows"]]
    wanted = json.loads(Path("compare.json").read_text())["rows"]
    same = ("policy", "cost", "ratio")
    assert [[row[key] for key in same] for row in rows] == [
        [row[key] for key in same] for row in sorted(wanted, key=lambda row: row["cost"])
    ]
    assert "log: ratios are relative to verify-all." in summary["notes"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        ["--costs", "measured", "--score", "score_a"],
        ["--costs", "1,5", "--costs", "measured:0.1,3", "--score", "score_b"],
        ["--score", "cascade(score_a, score_b, top=3, cost=0.5)"],
        ["--keys", "--value", "60", "--latency", "20,60", "--score", "score_a"],
        ["--order-scheme", "paper", "--unsolvable", "include", "--score", "score_b"],
    ],
    ids=["measured", "measured from a guess", "cascade", "keys, value, latency", "paper"],
)
def test_every_option_of_compare_means_the_same(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = ["problem,candidate,passed,score_a,score_b,key,generate_cost,verify_cost"]
    for problem, one_in in (("a", 3), ("b", 5), ("c", 100)):
        for at in range(12):
            passed = int(at % one_in == one_in - 1)
            scores = f"{at * 7 % 12 + 2 * passed},{at * 5 % 12 + 4 * passed}"
            costs = f"{1 + at % 3},{5 + at % 4}"
            rows.append(f"{problem},{at},{passed},{scores},{passed}{at % 4},{costs}")
    Path("log.csv").write_text("\n".join(rows), encoding="utf-8")
    named = ("adaptive", "hindsight", "verify-all", "varied")
    policies = [word for name in named for word in ("--policy", name)]
    given = ["log.csv", "--json", "numbers.json", "--orders", "2", *policies, *options]
    assert run(["compare", *given]) == 0
    wanted = json.loads(Path("numbers.json").read_text())["rows"]
    assert run(["report", *given, "--many-orders", "1"]) == 0
    tables = json.loads(Path("numbers.json").read_text())["tables"]
    found = {table["name"]: table for table in tables}
    names = [column["name"] for column in found["summary"]["columns"]]
    rows_found = [dict(zip(names, row, strict=True)) for row in found["summary"]["rows"]]
    same = ("policy", "cost", "generated", "verified", "solved", "ratio", "low", "high")
    prices = [row["costs"] for row in wanted]
    cheapest_first = sorted(wanted, key=lambda row: (prices.index(row["costs"]), row["cost"]))
    assert [[row[key] for key in same] for row in rows_found] == [
        [row[key] for key in same] for row in cheapest_first
    ]
    assert [row[-1] for row in found["rounds"]["rows"]] == [row.get("seconds") for row in wanted]


def test_report_takes_every_option_of_compare() -> None:
    own = inspect.signature(report).parameters.keys()
    assert inspect.signature(compare).parameters.keys() - own == {
        "log",  # it takes several
        "pairs",  # these are in its own words
        "errors",  # a table of its own
        "wrong",
    }


@pytest.mark.slow
def test_logs_and_saved_comparisons_side_by_side(
    log: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(log, "other.csv")
    assert run(["compare", log, "--json", "saved.json", "--orders", "2"]) == 0
    assert run(["report", f"one={log}", "other.csv", "saved.json", "--json", "r.json", *FAST]) == 0
    record = json.loads(Path("r.json").read_text())
    assert [entry["name"] for entry in record["logs"]] == ["one", "other", "saved"]
    assert [entry["kind"] for entry in record["logs"]] == ["log", "log", "comparison"]


@pytest.mark.slow
def test_a_job_file_says_it_all(log: str) -> None:
    Path("job.toml").write_text(
        """
        [report]
        costs = ["1,5"]
        orders = 2
        many-orders = 2
        policy = ["adaptive", "hindsight", "verify-all"]
        [[report.logs]]
        name = "ours"
        path = "log.csv"
        [[report.items]]
        id = "table-1"
        table = "summary"
        columns = ["policy", "cost"]
        [[report.items]]
        id = "figure-1"
        table = "coverage"
        draw = true
        """
    )
    assert run(["report", "--job", "job.toml", "--figures", "figures"]) == 0
    assert Path("report.html").exists()
    assert {path.name for path in Path("figures").iterdir()} == {
        "figure-1.pdf",
        "figure-1.png",
        *(f"table-1.{ending}" for ending in ("csv", "md", "tex", "txt")),
    }


@pytest.mark.slow
def test_figures_without_matplotlib_are_refused_before_any_work(
    log: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert run(["report", log, "--figures", "figures", *FAST]) == 2
    assert "pip install 'generate-rank-verify[figures]'" in capsys.readouterr().err
    assert not Path("report.html").exists()
    assert run(["report", log, *FAST]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give at least one log"),
        (["missing.csv"], "missing.csv"),
        (["log.csv", "-o", "log.csv"], "log.csv: given twice"),
        (["log.csv", "-o", "page.pdf"], "--figures DIR saves PDF"),
        (["log.csv", "--costs", "1"], "--costs 1: give two numbers"),
        (["log.csv", "--score", "nothing"], "nothing"),
        (["log.csv", "log.csv"], "given twice"),
        (["log.csv", "--csv", "log.csv/x"], "log.csv/x: cannot be made"),
        (["log.csv", "--figures", "log.csv"], "log.csv: cannot be made"),
        (["log.csv", "-o", "no/page.html"], "no/page.html: cannot be written"),
        (["log.csv", "--many-orders", "0"], "--many-orders 0: give a whole number"),
        (["log.csv", "--policy", "nonsense"], "nonsense"),
        (["log.csv", "--job", "log.csv"], "log.csv"),
        (["log.csv", "--costs", "measured"], "'generate_cost' is missing"),
        (["log.csv", "--costs", "1,5", "--costs", "1,5"], "given twice: 1,5, 1,5"),
        (["log.csv", "--value", "3"], "nothing is worth trying"),
        (["log.csv", "--score", "cascade(a, b)"], "write cascade(first, second, top=4"),
        (["log.csv", "--score", "none.json"], "none.json"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    arguments: list[str], message: str, log: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["report", *FAST, *arguments]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert "bug" not in said
    assert not Path("report.html").exists()


@pytest.mark.slow
def test_an_interrupted_report_leaves_no_file(
    log: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("grv.report.page.page.page", interrupted)
    before = sorted(path.name for path in Path().iterdir())
    assert run(["report", log, "--policy", "verify-all", *FAST]) == 130
    assert "interrupted" in capsys.readouterr().err
    assert sorted(path.name for path in Path().iterdir()) == before
