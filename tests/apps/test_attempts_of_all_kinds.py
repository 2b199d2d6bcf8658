"""`grv attempt` accepts only right attempts: of cheats too, over all policies, and when killed."""

from __future__ import annotations

import json
import random
import shlex
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from grv.backends.generators import run_folders
from grv.ledger import open_ledger
from grv.ledger.entries import Made
from grv.policies import POLICIES
from grv.testing import AgentStep, ScriptedAgent
from support.attempts import TASKS, cheats, course, make_project, right
from support.commands import Ran, ended, grv, start
from support.user_repositories import git, state_of

pytestmark = pytest.mark.slow
# Policies that need parameters have some here; `learned` and `known-law` need a prior or a law.
_PARAMETERS = {"fixed": "fixed(m=8, k=8)", "threshold": "threshold(t=0)"}
_ENDS_WITHIN = 90.0  # seconds, on a busy machine; calls in flight get ten
_TASKS_AT_ONCE = 4
ALL = [_PARAMETERS.get(name, name) for name in POLICIES if name not in ("learned", "known-law")]


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders of these tests are apart from those of others."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def arguments(project: Path, task: str, agent: ScriptedAgent, policy: str) -> list[str]:
    verify = shlex.join([sys.executable, "-m", "pytest", "-q", f"tests/test_{task}.py"])
    place = project.parent
    words = ["attempt", f"{place}/{task}.md", "-C", str(project), "--verify", verify]
    words += ["--agent", f"agent={shlex.join(agent.command)}", "--attempt-timeout", "4"]
    words += ["--policy", policy, "--budget", "20usd", "--most", "0.5usd"]
    return [*words, "--out", f"{place}/{task}.result", "--ledger", f"{place}/{task}.ledger"]


def check_accepted(
    project: Path, task: str, ran: Ran, steps: Sequence[AgentStep], *, is_in_rounds: bool = False
) -> None:
    """The right attempt was accepted, and every other one was not.

    A policy that works in rounds may ask for several attempts at once.
    """
    assert ran.code == 0, ran.out + ran.err
    result = json.loads((project.parent / f"{task}.result").read_text())
    accepted = [row["number"] for row in result["attempts"] if row["verdict"] == "accepted"]
    assert accepted == [result["accepted"]]
    changed = git(project, "diff", "--name-only", "main", result["branch"])
    assert changed == f"src/{task}.py"
    (text,) = right(task).write.values()
    place = f"{result['branch']}:src/{task}.py"
    assert f"{git(project, 'show', place)}\n" == text
    assert result["branch"] == f"grv/{task}/{result['accepted']}"
    if not is_in_rounds:
        assert len(result["attempts"]) == len(steps)  # nothing is tried after the right one


def check_runs(agent: ScriptedAgent, ledger: Path, kills: int) -> None:
    """A finished attempt was never run again; one that was killed may have been."""
    runs = Counter(agent.runs)
    with closing(open_ledger(str(ledger))) as opened:
        (search,) = opened.search_ids()
        made = [entry for entry in opened.read(search) if isinstance(entry, Made)]
    assert len({entry.candidate for entry in made}) == len(made)
    assert sum(runs.values()) <= len(made) + kills
    assert all(count == 1 for count in runs.values()) or kills


def test_a_course_of_wrong_and_cheating_attempts(tmp_path: Path, own_folder: Path) -> None:
    task = TASKS[0]
    project = make_project(tmp_path / "project", [task])
    chosen = cheats(task)
    steps = [chosen["exits with 0"], chosen["adds conftest.py"], right(task)]
    agent = ScriptedAgent(tmp_path, steps)
    before = state_of(project)

    ran = grv(*arguments(project, task, agent, "learning"))

    check_accepted(project, task, ran, steps)
    check_runs(agent, tmp_path / f"{task}.ledger", 0)
    assert state_of(project) == before
    assert list(own_folder.glob("grv-run-*")) == []


@pytest.mark.alone
def test_a_killed_and_an_interrupted_run_are_continued(tmp_path: Path, own_folder: Path) -> None:
    task = TASKS[1]
    project = make_project(tmp_path / "project", [task])
    steps = [cheats(task)["edits the tests"], right(task)]
    steps = [AgentStep(write=step.write, dollars=0.3, seconds=2) for step in steps]
    agent = ScriptedAgent(tmp_path, steps)
    before = state_of(project)
    words = arguments(project, task, agent, "learning")

    codes = [interrupted(words, how, after) for how, after in (("kill", 4.0), ("interrupt", 5.0))]
    ran = grv(*words)

    assert codes[0] in (-signal.SIGKILL, 0)
    assert codes[1] in (130, 0)
    check_accepted(project, task, ran, steps)
    check_runs(agent, tmp_path / f"{task}.ledger", 2)
    run_folders.sweep()
    assert state_of(project) == before
    assert list(own_folder.glob("grv-run-*")) == []


def interrupted(words: Sequence[str], how: str, after: float) -> int:
    """Start the command and end it some seconds later; return its exit code.

    A command that does not end says where it is.
    """
    process = start(*words, env={"PYTHONFAULTHANDLER": "1"})
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL if how == "kill" else signal.SIGINT)
    try:
        process.wait(_ENDS_WITHIN)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        pytest.fail(f"{how} after {after:.1f} s did not end it: {ended(process).err}")
    return ended(process).code


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("turn", range(len(ALL)))
def test_twelve_tasks_over_all_policies_with_kills(
    tmp_path: Path, own_folder: Path, turn: int
) -> None:
    project = make_project(tmp_path / "project")
    before = state_of(project)

    def check(number: int) -> None:
        task = TASKS[number]
        chance = random.Random(100 * turn + number)
        policy = ALL[(number + turn) % len(ALL)]  # each task meets each policy, in some turn
        steps = course(task, seed=number)
        agent = ScriptedAgent(tmp_path, steps, name=task)
        words = arguments(project, task, agent, policy)
        kills = chance.randrange(3)
        for _ in range(kills):
            interrupted(words, chance.choice(["kill", "interrupt"]), chance.uniform(0.5, 12.0))
        ran = grv(*words, within=600)
        in_rounds = policy.startswith(("adaptive", "fixed"))
        check_accepted(project, task, ran, steps, is_in_rounds=in_rounds)
        check_runs(agent, tmp_path / f"{task}.ledger", kills)
        assert state_of(project) == before

    with ThreadPoolExecutor(_TASKS_AT_ONCE) as threads:  # most of the time they wait
        list(threads.map(check, range(len(TASKS))))
    run_folders.sweep()
    assert list(own_folder.glob("grv-run-*")) == []


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_every_cheat_is_refused(tmp_path: Path) -> None:
    task = TASKS[2]
    project = make_project(tmp_path / "project", [task])
    for number, (name, step) in enumerate(cheats(task).items()):
        agent = ScriptedAgent(tmp_path, [step], name=f"cheat{number}")
        words = arguments(project, task, agent, "learning")
        words[words.index("--ledger") + 1] = f"{tmp_path}/cheat{number}.ledger"

        ran = grv(*words, "--attempts", "1")

        assert ran.code == 1, f"{name}: {ran.out}"
