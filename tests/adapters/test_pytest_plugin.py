"""`pytest --grv`: problems as tests, in a pytest of their own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from support.commands import Ran
from support.environments import ROOT
from support.guides import blocks
from support.servers import FaultyServer

pytestmark = pytest.mark.slow

GUESS = """
import itertools

numbers = itertools.count(1)


def guess(problem):
    with open("asked", "a") as file:
        file.write(problem.id + "\\n")
    return str(next(numbers))
"""
JOB = 'generator = "guess.py:guess"\nscore = "length"\npolicy = "verify-all"\nbudget = 100\n'
PROBLEMS = [
    {"problem": "three", "prompt": "3?", "check": {"kind": "text", "equals": "3"}},
    {"problem": "never", "prompt": "no?", "check": {"kind": "text", "equals": "no"}},
]
RUN = ("--grv", "problems.jsonl", "--grv-job", "job.toml", "--grv-allow-commands")
REPLAY = ("--grv", "problems.jsonl", "--grv-replay")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with problems, a job file, and a test of another kind."""
    (tmp_path / "guess.py").write_text(GUESS)
    (tmp_path / "job.toml").write_text(JOB)
    (tmp_path / "problems.jsonl").write_text("".join(json.dumps(each) + "\n" for each in PROBLEMS))
    (tmp_path / "test_other.py").write_text("def test_other():\n    pass\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_pytest(*words: str, plugins: tuple[str, ...] = ()) -> Ran:
    """Run pytest with the plugin and no others, however this environment was installed."""
    loaded = [word for name in ("grv_pytest", *plugins) for word in ("-p", name)]
    ours = {"CI", "PYTEST_ADDOPTS"}  # they change what is printed
    variables = {name: value for name, value in os.environ.items() if name not in ours}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *loaded, *words],
        env={**variables, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return Ran(ran.returncode, ran.stdout, ran.stderr)


def asked(folder: Path) -> int:
    """How many candidates were generated so far."""
    return len((folder / "asked").read_text().splitlines())


def test_each_problem_is_a_test_with_its_bill_and_a_record_costs_nothing(folder: Path) -> None:
    ran = run_pytest(*RUN, "-v", "--junit-xml", "report.xml")

    assert ran.code == 1, ran
    assert re.search(r"problems.jsonl::three PASSED", ran.out)
    assert re.search(r"problems.jsonl::never FAILED", ran.out)
    assert "test_other" not in ran.out
    block = ran.out.partition("= FAILURES =")[2].partition("= grv =")[0]
    assert re.search(
        r"_ never _+\nout of budget: (\d+) candidates, \1 verifications, cost \d+\n"
        r"candidate \d+ failed: not equal\n    \d+\nevidence:\n    expected: no\n",
        block,
    ), block
    assert "Traceback" not in ran.out
    assert re.search(r"^three +solved +\d+ +\d+ +\d+$", ran.out, re.MULTILINE)
    assert re.search(r"^1 of 2 solved, cost \d+$", ran.out, re.MULTILINE)
    facts = {
        each.attrib["name"]: each.attrib["value"]
        for each in ET.parse(folder / "report.xml").iter("property")
    }
    assert facts.keys() == {"grv_outcome", "grv_generated", "grv_verified", "grv_cost"}

    paid = asked(folder)
    again = run_pytest(*RUN)
    assert (again.code, asked(folder)) == (1, paid)
    (folder / "guess.py").unlink()
    replayed = run_pytest(*REPLAY)
    table = ran.out.partition("= grv =")[2].partition("= short")[0]
    for later in (again, replayed):
        assert later.out.partition("= grv =")[2].partition("= short")[0] == table


def test_a_replay_of_what_is_not_recorded_fails_and_spends_nothing(folder: Path) -> None:
    ran = run_pytest(*REPLAY)
    assert (ran.code, ran.out.count("problems.jsonl.ledger: no such ledger\n")) == (1, 2)
    assert run_pytest(*RUN, "-k", "three").code == 0
    paid = asked(folder)
    assert run_pytest(*REPLAY, "-k", "three").code == 0
    assert "has no search of this problem; run without --grv-replay" in run_pytest(*REPLAY).out
    changed = PROBLEMS[0] | {"check": {"kind": "text", "equals": "4"}}
    (folder / "problems.jsonl").write_text(json.dumps(changed) + "\n")
    assert "has no search of this problem" in run_pytest(*REPLAY).out
    assert asked(folder) == paid


def test_the_guide_records_and_replays(folder: Path) -> None:
    record, replay = (block.split()[1:] for block in blocks("in-pytest.md", "sh"))
    (job,) = blocks("in-pytest.md", "toml")
    with FaultyServer(text=lambda _, seed: str(seed % 5)) as model:
        (folder / "job.toml").write_text(job.replace("http://localhost:8000/v1", model.url))
        ran = run_pytest(*record, "-k", "three")
        paid = len(model.received)
        assert (ran.code, paid > 0) == (0, True), ran
        assert run_pytest(*replay, "-k", "three").code == 0
        assert len(model.received) == paid


def test_only_the_chosen_problems_are_solved_and_other_tests_run_if_named(folder: Path) -> None:
    ran = run_pytest(*RUN, "test_other.py", "-k", "three or other")
    assert (ran.code, "2 passed, 1 deselected" in ran.out) == (0, True)
    assert {*(folder / "asked").read_text().split()} == {"three"}


def test_a_mistake_is_one_line(folder: Path) -> None:
    ran = run_pytest("--grv", "problems.jsonl")
    assert (ran.code, ran.err) == (4, "ERROR: --grv needs --grv-job FILE or --grv-replay\n\n")
    ran = run_pytest("--grv", "problems.jsonl", "--grv-job", "job.toml")
    assert ran.out.count("\ngrv solve: job.toml: generator names code, guess.py:guess") == 2
    assert not (folder / "asked").exists()
    (folder / "problems.jsonl").write_text("{\n")
    ran = run_pytest(*RUN)
    assert "problems.jsonl" in ran.out
    assert "Traceback" not in ran.out
    assert ran.code == 2


def test_processes_of_xdist_share_the_ledger(folder: Path) -> None:
    ran = run_pytest(*RUN, "-n", "2", plugins=("xdist",))
    assert "1 failed, 1 passed" in ran.out
    assert re.search(r"^1 of 2 solved, cost \d+$", ran.out, re.MULTILINE)


def test_a_run_without_the_option_loads_nothing_of_grv(folder: Path) -> None:
    (folder / "conftest.py").write_text(
        "import sys\n\n\ndef pytest_unconfigure():\n"
        "    print([name for name in sys.modules if name.split('.')[0] == 'grv'])\n"
    )
    ran = run_pytest("-q", "-s")
    assert ran.code == 0
    assert "\n[]" in ran.out, ran.out
    assert "grv" not in run_pytest("--collect-only", "-q").out


def test_pytest_finds_the_plugin_by_its_entry_point() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"grv": "grv_pytest"}
