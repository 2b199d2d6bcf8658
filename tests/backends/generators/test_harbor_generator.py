"""`harbor:AGENT` with a stand-in for the program harbor, which leaves what Harbor leaves."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import anyio
import pytest

from grv import Problem
from grv.backends.generators.harbor import HarborGenerator
from grv.core.errors import GeneratorError, UsageError
from support.commands import refuses
from support.harbor import ASSET

HARBOR = '''#!{python}
"""Stands for harbor: reads the configuration of a trial, and leaves its folder."""
import json, pathlib, shutil, sys
assert sys.argv[1:4] == ["trial", "start", "--config"]
config = json.loads(pathlib.Path(sys.argv[4]).read_text())
assert config["verifier"] == {{"disable": True}} and config["artifacts"] == ["/app"]
agent = config["agent"]["name"]
if agent == "broken":
    sys.exit("no such agent")
trial = pathlib.Path(config["trials_dir"]) / "fix__0000001"
left = trial / "artifacts" / "app"
shutil.copytree({image!r} + "/app", left)
if agent != "idle":
    (left / "main.txt").write_text("right\\n")
    (left / "new.txt").write_text(config["agent"]["model_name"] or "none")
result = json.loads(pathlib.Path({asset!r}).read_text())
(trial / "result.json").write_text(json.dumps(result))
'''
ENGINE = """#!{python}
import shutil, sys
if sys.argv[1] == "create":
    print("c0ffee")
elif sys.argv[1] == "cp":
    shutil.copytree({image!r} + sys.argv[2].partition(":")[2], sys.argv[3])
"""


@pytest.fixture
def problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Problem:
    image = tmp_path / "image"
    (image / "app").mkdir(parents=True)
    (image / "app" / "main.txt").write_text("wrong\n")
    (tmp_path / "bin").mkdir()
    for name, text in (("harbor", HARBOR), ("docker", ENGINE)):
        path = tmp_path / "bin" / name
        path.write_text(text.format(python=sys.executable, image=str(image), asset=str(ASSET)))
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "task" / "tests").mkdir(parents=True)
    (tmp_path / "task" / "tests" / "test.sh").write_text("")
    check = {"kind": "harbor", "task": str(tmp_path / "task"), "image": "x", "workdir": "/app"}
    return Problem("fix", "Make it right.", check)


@pytest.mark.slow
def test_the_candidate_is_the_diff_that_the_agent_left_with_its_cost(problem: Problem) -> None:
    generator = HarborGenerator("claude-code:anthropic/model-a")
    (draft,) = anyio.run(generator.generate, problem, 1)
    assert "--- a/main.txt\n+++ b/main.txt\n@@ -1 +1 @@\n-wrong\n+right\n" in draft.text
    assert "+anthropic/model-a" in draft.text
    recorded = json.loads(ASSET.read_text())["agent_result"]
    assert draft.usage.dollars == recorded["cost_usd"]
    assert draft.usage.completion_tokens == recorded["n_output_tokens"]
    assert draft.usage.seconds > 0


@pytest.mark.slow
@pytest.mark.parametrize(("agent", "says"), [("idle", "changed nothing"), ("broken", "no result")])
def test_a_trial_without_a_candidate_says_why(problem: Problem, agent: str, says: str) -> None:
    (draft,) = anyio.run(HarborGenerator(agent).generate, problem, 1)
    assert draft.text == ""
    assert says in draft.broken


def test_what_is_no_agent_or_no_task_is_refused(problem: Problem, tmp_path: Path) -> None:
    for spec in ("", "--help", "a b", "a:--model"):
        with pytest.raises(UsageError, match="name an agent"):
            HarborGenerator(spec)
    other = Problem("sum", "2 + 2", {"kind": "math", "answer": "4"})
    with pytest.raises(GeneratorError, match="is no task of Harbor"):
        anyio.run(HarborGenerator("oracle").generate, other, 1)
    path = tmp_path / "problems.jsonl"
    path.write_text(json.dumps({"problem": "fix", "prompt": "", "check": dict(problem.check)}))
    job = tmp_path / "job.toml"
    job.write_text(f'generator = "harbor:oracle"\nproblems = "{path}"\n')
    refuses(["solve", "--job", job, "-o", tmp_path / "x"], "--allow-commands")


def test_without_harbor_it_says_how_to_get_it(
    problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(GeneratorError, match="pip install harbor"):
        anyio.run(HarborGenerator("oracle").generate, problem, 1)
