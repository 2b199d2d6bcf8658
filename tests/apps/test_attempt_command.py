"""`grv attempt`: agents try a task until its tests pass."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from grv.ledger import open_ledger
from grv.runtime.attempts import mean_dollars
from grv.serve import Desk
from grv.testing import AgentStep, FakeOpenai, ScriptedAgent
from support.attempts import killed, make_project, right, slow, wrong
from support.commands import Ran, ended, grv, here, refuses, start
from support.user_repositories import git, state_of

TASK = "task1"
pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders of these tests are apart from those of others."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", [TASK], plain=True)


def arguments(project: Path, *agents: ScriptedAgent, **options: object) -> list[str]:
    verify = options.pop("verify", "sh tests/check.sh")
    words = ["attempt", f"{project.parent}/{TASK}.md", "-C", str(project), "--verify", str(verify)]
    for number, agent in enumerate(agents, 1):
        words += ["--agent", f"agent{number}={shlex.join(agent.command)}"]
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        words += [flag] if value is True else [flag, str(value)]
    return words


def scripted(project: Path, steps: Sequence[AgentStep], name: str = "agent") -> ScriptedAgent:
    return ScriptedAgent(project.parent, steps, name=name)


def branches(project: Path) -> list[str]:
    return git(project, "branch", "--list", "grv/*", "--format=%(refname:short)").split()


def test_the_first_attempt_that_passes_is_accepted_and_becomes_a_branch(
    project: Path, own_folder: Path
) -> None:
    edit = AgentStep(write={"tests/check.sh": "exit 0\n"}, dollars=0.1)
    agent = scripted(project, [wrong(TASK), edit, right(TASK), wrong(TASK)])
    before = state_of(project)
    out = project.parent / "out.json"

    ran = here(*arguments(project, agent, budget="5usd", out=out))

    assert ran.code == 0, ran.err
    result = json.loads(out.read_text())
    assert result["accepted"] == 3
    assert result["branch"] == f"grv/{TASK}/3"
    assert result["dollars"] == pytest.approx(0.6)
    verdicts = [row["verdict"] for row in result["attempts"]]
    assert verdicts == ["failed", "refuted", "accepted"]
    assert len(agent.runs) == 3
    assert branches(project) == [f"grv/{TASK}/{n}" for n in (1, 2, 3)]
    assert "return 1" in git(project, "show", f"grv/{TASK}/3:src/{TASK}.py")
    assert state_of(project) == before
    assert "attempt 3 is accepted; 3 attempts for 0.6 dollars" in ran.out
    assert "attempt 1 (agent1) failed: tests failed" in ran.err
    assert [path.name for path in own_folder.glob("grv-run-*")] == []
    with closing(open_ledger(str(project / ".git" / "grv" / "attempts.ledger"))) as ledger:
        assert mean_dollars(ledger) == {"agent:agent1": pytest.approx(0.2)}


def test_the_same_command_runs_nothing_again_and_applies(project: Path) -> None:
    agent = scripted(project, [right(TASK)])
    assert here(*arguments(project, agent, budget="5usd")).code == 0

    ran = here(*arguments(project, agent, budget="5usd", apply=True))

    assert ran.code == 0
    assert len(agent.runs) == 1
    assert "its diff is applied to your files, and not committed" in ran.out
    assert git(project, "status", "--short") == f"M src/{TASK}.py"
    assert (project / "src" / f"{TASK}.py").read_text() == "def value():\n    return 1\n"


def test_files_that_changed_meanwhile_are_not_overwritten(project: Path) -> None:
    agent = scripted(project, [right(TASK)])
    assert here(*arguments(project, agent, budget="5usd")).code == 0
    own = project / "src" / f"{TASK}.py"
    own.write_text("mine\n")

    ran = here(*arguments(project, agent, budget="5usd", apply=True, commit="HEAD"))

    assert ran.code == 0
    assert own.read_text() == "mine\n"
    assert "not applied, your files have changed since: git apply: error: patch failed" in ran.out
    assert f"its diff is the branch grv/{TASK}/1" in ran.out


def test_a_new_file_does_not_replace_an_untracked_one(project: Path) -> None:
    step = right(TASK)
    more = AgentStep(write={**step.write, "notes.txt": "theirs\n"}, dollars=0.1)
    agent = scripted(project, [more])
    (project / "notes.txt").write_text("mine\n")

    ran = here(*arguments(project, agent, budget="5usd", apply=True))

    assert ran.code == 0
    assert (project / "notes.txt").read_text() == "mine\n"
    assert "raise NotImplementedError" in (project / "src" / f"{TASK}.py").read_text()
    assert "not applied" in ran.out


def test_none_is_accepted_if_the_money_is_gone(project: Path) -> None:
    agent = scripted(project, [wrong(TASK)])

    ran = here(*arguments(project, agent, budget="0.5usd", most="0.2usd"))

    assert ran.code == 1
    assert len(agent.runs) == 2
    assert "no attempt was accepted (out of budget" in ran.out
    assert "2 attempts for 0.4 dollars" in ran.out


def test_attempts_of_unknown_cost_count_as_the_most_of_one(project: Path) -> None:
    step = AgentStep(write=wrong(TASK).write)
    agent = scripted(project, [step])

    ran = here(*arguments(project, agent, budget="0.5usd", most="0.2usd"))

    assert ran.code == 1
    assert len(agent.runs) == 2
    assert "; 2 attempts of unknown cost" in ran.out


def test_the_number_of_attempts_is_a_limit_also_when_continued(project: Path) -> None:
    agent = scripted(project, [wrong(TASK), wrong(TASK), right(TASK)])

    first = here(*arguments(project, agent, attempts=1))
    again = here(*arguments(project, agent, attempts=1))
    more = here(*arguments(project, agent, attempts=3))

    assert (first.code, again.code, more.code) == (1, 1, 0)
    assert "no attempt was accepted (exhausted" in first.out
    assert len(agent.runs) == 3


def test_a_higher_budget_continues_the_same_search(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = ScriptedAgent(tmp_path, [wrong(TASK), right(TASK)], form="claude")
    programs = tmp_path / "bin"
    programs.mkdir()
    claude = programs / "claude"
    claude.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/words\n{shlex.join(stand_in.command)}\n')
    claude.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    words = [*arguments(project), "--agent", "claude", "--budget"]

    first = here(*words, "0.25usd", "--most", "0.2usd")
    second = here(*words, "5usd")

    assert (first.code, second.code) == (1, 0)
    assert len(stand_in.runs) == 2
    lines = (tmp_path / "words").read_text().splitlines()
    assert "--max-budget-usd 0.2" in lines[0]
    assert "--max-budget-usd 1" in lines[1]
    assert "attempt 2 is accepted; 2 attempts for 0.5 dollars" in second.out


def test_equal_diffs_are_verified_once(project: Path) -> None:
    agent = scripted(project, [wrong(TASK), wrong(TASK), right(TASK)])
    out = project.parent / "out.json"

    assert here(*arguments(project, agent, attempts=3, out=out)).code == 0

    rows = json.loads(out.read_text())["attempts"]
    assert [row["verdict"] for row in rows] == ["failed", "failed", "accepted"]
    assert rows[1]["verify_seconds"] == 0


def test_slow_and_dying_agents_have_no_candidate(project: Path, own_folder: Path) -> None:
    agent = scripted(project, [slow(TASK, 60), killed(TASK), right(TASK)])
    out = project.parent / "out.json"

    ran = here(*arguments(project, agent, attempt_timeout=1, budget="5usd", out=out))

    assert ran.code == 0, ran.err
    rows = json.loads(out.read_text())["attempts"]
    assert [row["verdict"] for row in rows] == ["no candidate", "no candidate", "accepted"]
    assert "dropped as broken" not in ran.err
    assert rows[0]["reason"] == "not done within 1 s"
    assert rows[1]["reason"] == "exit status 137"
    assert list(own_folder.glob("grv-run-*")) == []


def test_the_deadline_ends_a_run(project: Path, own_folder: Path) -> None:
    agent = scripted(project, [slow(TASK, 60)])

    ran = here(*arguments(project, agent, deadline=1.5))

    assert ran.code == 1
    assert "the deadline of 1.5 seconds has passed" in ran.out
    assert list(own_folder.glob("grv-run-*")) == []


def test_several_agents_are_a_portfolio_and_the_cheap_one_starts(project: Path) -> None:
    cheap = scripted(project, [wrong(TASK)], "cheap")
    dear = scripted(project, [right(TASK)], "dear")
    out = project.parent / "out.json"
    words = arguments(project, dear, cheap, budget="5usd", out=out)

    ran = here(*words, "--price", "agent1=0.6", "--price", "agent2=0.05")

    assert ran.code == 0, ran.err
    rows = json.loads(out.read_text())["attempts"]
    assert rows[0]["agent"] == "agent2"
    assert rows[-1] == rows[-1] | {"agent": "agent1", "verdict": "accepted"}


def test_a_judge_scores_diffs_and_is_paid_for(project: Path) -> None:
    agent = scripted(project, [wrong(TASK), right(TASK)])
    out = project.parent / "out.json"
    prices = {"prompt": 100.0, "completion": 100.0}
    with FakeOpenai(lambda prompt, index: "7", says_cost=True, prices=prices) as server:
        words = arguments(project, agent, budget="5usd", out=out, score="judge:openai:fake")

        ran = here(*words, "--score-url", server.url)

    assert ran.code == 0, ran.err
    rows = json.loads(out.read_text())["attempts"]
    assert [row["score"] is None for row in rows] == [False, False]
    with closing(open_ledger(str(project / ".git" / "grv" / "attempts.ledger"))) as ledger:
        (summary,) = ledger.searches()
    assert summary.paid > 0.5


def test_a_score_may_be_trained_on_the_own_ledger(project: Path) -> None:
    agent = scripted(project, [wrong(TASK), right(TASK)])
    ledger = project.parent / "own.ledger"
    words = arguments(project, agent, attempts=3, ledger=ledger, score=f"trained:{ledger}")

    ran = here(*words)

    assert ran.code == 0, ran.err


def test_a_person_decides_after_the_tests(project: Path) -> None:
    agent = scripted(project, [wrong(TASK), right(TASK)])
    ledger = project.parent / "people.ledger"
    process = start(*arguments(project, agent, budget="5usd", people=True, ledger=ledger))
    while not (ledger.exists() and ledger.stat().st_size) and process.poll() is None:
        time.sleep(0.1)
    with closing(open_ledger(str(ledger))) as opened:
        desk = Desk(opened)
        while (given := desk.next("ann")) is None and process.poll() is None:
            time.sleep(0.1)
        assert given is not None
        lease, item = given
        desk.give(item.id, lease.secret, "pass", reviewer="ann")

    ran = ended(process)

    assert "return 1" in item.text
    assert item.check.question == "The tests pass. Should this diff be applied?"
    assert ran.code == 0, ran.err
    assert "attempt 2 is accepted" in ran.out


def test_a_protected_file_refutes(project: Path) -> None:
    agent = scripted(project, [right(TASK)])

    ran = here(*arguments(project, agent, attempts=1, protect="src/"))

    assert ran.code == 1
    assert f"it changes src/{TASK}.py, which is protected" in ran.err


def test_folders_are_kept_on_request(project: Path) -> None:
    agent = scripted(project, [right(TASK)])

    ran = here(*arguments(project, agent, attempts=1, keep=True))

    (line,) = [line for line in ran.out.splitlines() if line.startswith("kept: ")]
    folder = Path(line.removeprefix("kept: "))
    assert "return 1" in (folder / "tree" / "src" / f"{TASK}.py").read_text()


def test_a_detached_head_and_a_folder_below_work(project: Path) -> None:
    agent = scripted(project, [right(TASK)])
    git(project, "checkout", "--quiet", "--detach")
    before = state_of(project)

    ran = here(*arguments(project, agent, attempts=1), "-C", str(project / "src"))

    assert ran.code == 0
    assert state_of(project) == before


def test_branches_of_others_are_not_overwritten(project: Path) -> None:
    agent = scripted(project, [right(TASK)])
    git(project, "branch", f"grv/{TASK}/1")

    ran = here(*arguments(project, agent, attempts=1))

    assert ran.code == 0
    assert branches(project) == [f"grv/{TASK}/1", f"grv/{TASK}/1.2"]
    assert git(project, "rev-parse", f"grv/{TASK}/1") == git(project, "rev-parse", "main")


def test_an_interpreter_without_pytest_is_refused_before_an_agent_is_paid(
    project: Path, tmp_path: Path
) -> None:
    agent = scripted(project, [right(TASK)])
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "own"], check=True)

    command = f"{tmp_path}/own/bin/python -m pytest"
    refuses([*arguments(project, agent), "--verify", command], "own/bin/python has no pytest")
    assert agent.runs == []


def test_what_python_leaves_behind_is_no_part_of_an_attempt(project: Path) -> None:
    step = right(TASK)
    left = {"src/__pycache__/x.pyc": "\0", "deep/.pytest_cache/v": "x"}
    agent = scripted(project, [AgentStep(write={**step.write, **left, "data.bin": "\0\1"})])

    ran = here(*arguments(project, agent, attempts=1))

    assert ran.code == 0, ran.out
    changed = git(project, "diff", "--name-only", "main", f"grv/{TASK}/1").splitlines()
    assert changed == ["data.bin", f"src/{TASK}.py"]
    assert git(project, "show", f"grv/{TASK}/1:data.bin") == "\0\1"


def test_what_cannot_be_done_is_refused_in_one_line(project: Path, tmp_path: Path) -> None:
    agent = scripted(project, [right(TASK)])
    words = arguments(project, agent)
    (project / "src" / f"{TASK}.py").write_text("mine\n")
    before = state_of(project)

    refuses(words, f"src/{TASK}.py changed since the last commit", "--commit HEAD")
    refuses([*words, "--commit", "no-such"], "no-such", "has no such commit")
    assert state_of(project) == before
    git(project, "checkout", "--quiet", ".")
    refuses([*words, "--agent", "no-such-agent"], "no recipe for the agent 'no-such-agent'")
    refuses([*words, "--agent", "./none.sh x"], "./none.sh is not installed, or no program")
    refuses([*words, "--agent", "command:./none.sh"], "; write the command itself: ./none.sh")
    refuses([*words, "--price", "x=1"], "there is no agent 'x' here")
    refuses([*words, "--price", "agent1=0"], "give dollars above 0")
    refuses([*words, "--verify", "'"], "No closing quotation")
    refuses(
        [*words, "--verify", "no-such-program -q"], "no program no-such-program on this machine"
    )
    refuses([*words, "--budget", "0usd"], "--budget 0: give dollars above 0, as in 5usd")
    refuses([*words, "--score", "cascade(claim, length, top=2)"], "a cascade does not work")
    refuses([*words, "-C", str(tmp_path)], "this is no git repository")
    git(project, "branch", "grv")
    refuses(words, "there is a branch grv, so grv/1 cannot be made")
    assert agent.runs == []


def test_submodules_are_refused(project: Path, tmp_path: Path) -> None:
    commit = git(project, "rev-parse", "HEAD")
    git(project, "update-index", "--add", "--cacheinfo", f"160000,{commit},libs/inner")
    git(project, "commit", "--quiet", "--message=submodule")
    agent = scripted(project, [right(TASK)])

    refuses([*arguments(project, agent), "--commit", "HEAD"], "libs/inner", "submodules")


def test_a_bare_and_an_empty_repository_are_refused(project: Path, tmp_path: Path) -> None:
    agent = scripted(project, [right(TASK)])
    git(tmp_path, "init", "--quiet", "--bare", "bare")
    git(tmp_path, "init", "--quiet", "empty")

    refuses([*arguments(project, agent), "-C", str(tmp_path / "bare")], "a bare repository")
    refuses([*arguments(project, agent), "-C", str(tmp_path / "empty")], "there is no commit yet")


def test_a_job_file_may_name_a_program_only_if_a_flag_allows_it(tmp_path: Path) -> None:
    problems = tmp_path / "problems.jsonl"
    problems.write_text(
        '{"problem": "p", "prompt": "2 + 2?", "check": {"kind": "math", "answer": "4"}}\n'
    )
    job = tmp_path / "job.toml"
    job.write_text('generator = "command:echo 4"\n')
    words = ["solve", str(problems), "--job", str(job), "--budget", "50", "-o", str(tmp_path / "a")]

    refuses(words, "generator names a program, command:echo 4, which runs with your rights")
    ran: Ran = grv(*words, "--allow-commands")

    assert ran.code == 0, ran.err
    assert json.loads((tmp_path / "a").read_text())["answer"].strip() == "4"
