"""The GitHub Action: each step's script is run here, as a runner would run it."""

from __future__ import annotations

import http.server
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.commands import Ran
from support.environments import ROOT
from support.servers import FaultyServer

ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
EXPRESSION = re.compile(r"\$\{\{ *(.*?) *\}\}")
HOSTILE = "\"; touch hurt; echo '$(touch hurt)`touch hurt`"
pytestmark = pytest.mark.slow


@dataclass
class Runner:
    """Runs steps in a folder with the variables that GitHub's runner sets."""

    folder: Path
    inputs: dict[str, str]
    outputs: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)

    def value(self, expression: str) -> str:
        room, _, name = expression.rpartition(".")
        if room == "inputs":
            default = str(ACTION["inputs"][name].get("default", ""))
            return self.inputs.get(name, "" if "${{" in default else default)
        if expression == "github.action_path":
            return str(ROOT)
        assert room == "steps.run.outputs"
        return self.outputs.get(name, "")

    def run(self, name: str) -> Ran:
        """Run the script of a step; what it writes to GITHUB_OUTPUT is kept."""
        step = STEPS[name]
        given = {
            key: EXPRESSION.sub(lambda found: self.value(found[1]), value)
            for key, value in step["env"].items()
        }
        files = {key: self.folder / key.lower() for key in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
        for path in files.values():
            path.touch()
        script = self.folder / "script"
        script.write_text(step["run"])
        # As GitHub's documentation says that it starts these shells.
        shell = {
            "bash": ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            "python": [sys.executable, str(script)],
        }[step["shell"]]
        ran = subprocess.run(
            shell,
            cwd=self.folder,
            env={
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                "RUNNER_TEMP": str(self.folder),
                "GITHUB_REPOSITORY": "some/repository",
                **{key: str(path) for key, path in files.items()},
                **given,
                **self.env,
            },
            capture_output=True,
            text=True,
            timeout=120,
        )
        lines = files["GITHUB_OUTPUT"].read_text().splitlines()
        self.outputs |= dict(line.split("=", 1) for line in lines)
        return Ran(ran.returncode, ran.stdout, ran.stderr)

    @property
    def summary(self) -> str:
        return (self.folder / "github_step_summary").read_text()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with problems, of which one can be solved, and a job file."""
    with FaultyServer(
        text=lambda _, seed: f"::error::</pre> {'42' if seed % 3 else '41'}"
    ) as server:
        problems = [
            {
                "problem": "sum <b>",
                "prompt": "?",
                "check": {"kind": "text", "contains_all": ["42"]},
            },
            {"problem": "never", "prompt": "?", "check": {"kind": "text", "equals": "no"}},
        ]
        lines = [json.dumps(each) + "\n" for each in problems]
        (tmp_path / "problems.jsonl").write_text("".join(lines))
        (tmp_path / "one.jsonl").write_text(lines[0])
        job = f'generator = "openai:m"\nbase_url = "{server.url}"\nscore = "length"\nbudget = 60\n'
        (tmp_path / "job.toml").write_text(job)
        yield tmp_path


def test_inputs_reach_scripts_only_through_variables() -> None:
    assert STEPS.keys() == {"Install", "Run", "Comment", "Result"}
    for step in STEPS.values():
        assert "${{" not in step["run"]
        assert all(EXPRESSION.fullmatch(value) for value in step["env"].values())
    assert ACTION["inputs"]["token"]["default"] == ""
    assert "inputs.token != ''" in STEPS["Comment"]["if"]


def test_the_guide_shows_inputs_and_outputs_that_there_are() -> None:
    page = (ROOT / "docs" / "guide" / "github-action.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```text\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    *_, used = yaml.safe_load(shown)["jobs"]["problems"]["steps"]
    assert {*used["with"]} <= {*ACTION["inputs"]}
    table = re.findall(r"^\| (`.*?`) \|", page, re.MULTILINE)
    listed = [name for cell in table for name in re.findall(r"`([\w-]+)`", cell)]
    assert sorted(listed) == sorted(ACTION["inputs"])
    said = page.partition("The outputs are ")[2].partition(".")[0]
    assert {*re.findall(r"`(\w+)`", said)} == {*ACTION["outputs"]}


@pytest.mark.parametrize(("extras", "ending"), [("", ""), ("openai,math", "[openai,math]")])
def test_grv_is_installed_from_the_action_with_its_extras(
    tmp_path: Path, extras: str, ending: str
) -> None:
    stub = tmp_path / "python"
    stub.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > asked\n')
    stub.chmod(0o755)
    runner = Runner(tmp_path, {"extras": extras})
    runner.env["PATH"] = f"{tmp_path}:{os.environ['PATH']}"
    assert runner.run("Install").code == 0
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked == ["-m", "pip", "install", "--quiet", f"{ROOT}{ending}"]


def test_a_run_writes_the_table_to_the_summary_and_may_fail_the_step(folder: Path) -> None:
    runner = Runner(folder, {"problems": "problems.jsonl", "job": "job.toml", "budget": "50"})
    ran = runner.run("Run")

    assert ran.code == 0, ran
    assert runner.outputs["code"] == "1"
    assert "sum &lt;b&gt;" in runner.summary
    assert "out of budget" in runner.summary
    assert "2 problems: 1 solved" in runner.summary
    assert runner.summary.count("<pre>") == runner.summary.count("</pre>") == 1
    assert (folder / "answers.jsonl.ledger").exists()
    assert ran.out.startswith("::stop-commands::")
    assert Path(runner.outputs["table"]).read_text() == runner.summary
    assert runner.run("Result").code == 1

    assert Runner(folder, {"problems": "one.jsonl", "job": "job.toml"}).run("Run").code == 0


def test_the_doctor_examines_the_problems(folder: Path) -> None:
    runner = Runner(folder, {"command": "doctor", "problems": "problems.jsonl"})
    assert runner.run("Run").code == 0
    assert "2 problems: " in runner.summary


@pytest.mark.parametrize("name", ["command", "problems", "job", "budget", "total-budget", "out"])
def test_hostile_inputs_are_only_words(folder: Path, name: str) -> None:
    inputs = {"problems": "one.jsonl", "job": "job.toml", name: HOSTILE}
    ran = Runner(folder, inputs).run("Run")
    assert not (folder / "hurt").exists(), ran
    if name != "out":
        assert ran.code == 2, ran
        assert "Traceback" not in ran.out + ran.err


def test_a_file_that_looks_like_an_option_is_a_file(folder: Path) -> None:
    runner = Runner(folder, {"problems": "--dry-run", "job": "job.toml"})
    assert runner.run("Run").code == 2
    assert "--dry-run: cannot be read: No such file" in runner.summary


def test_a_table_fits_into_a_comment(tmp_path: Path) -> None:
    stub = tmp_path / "grv"
    stub.write_text("#!/bin/sh\nhead -c 60000 /dev/zero | tr '\\0' '<'\n")
    stub.chmod(0o755)
    runner = Runner(tmp_path, {"command": "doctor", "problems": "problems.jsonl"})
    runner.env["PATH"] = f"{tmp_path}:{os.environ['PATH']}"
    assert runner.run("Run").code == 0
    assert 50_000 < len(runner.summary) < 65_000


BOT = {"user": {"type": "Bot"}, "author_association": "NONE"}
STRANGER = {"user": {"type": "User"}, "author_association": "CONTRIBUTOR"}


class FakeComments(http.server.BaseHTTPRequestHandler):
    """The part of GitHub's interface that the action uses."""

    comments: list[dict[str, Any]]
    seen: list[tuple[str, str, str]]

    def _answer(self) -> None:
        self.seen.append((self.command, self.path, self.headers["Authorization"]))
        size = int(self.headers.get("Content-Length") or 0)
        given: dict[str, Any] = json.loads(self.rfile.read(size)) if size else {}
        page = re.search(r"&page=(\d+)$", self.path)
        said: Any = self.comments
        if page is not None:
            first = 100 * (int(page[1]) - 1)
            said = self.comments[first : first + 100]
        if self.command == "POST":
            self.comments.append({"id": 7, **BOT, **given})
            said = self.comments[-1]
        elif self.command == "PATCH":
            (said,) = (each for each in self.comments if self.path.endswith(f"/{each['id']}"))
            said |= given
        body = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PATCH = _answer

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed."""


def test_one_comment_has_the_newest_table(folder: Path) -> None:
    class Fake(FakeComments):
        comments = [{"id": 30, "body": "<!-- grv -->\nforged", **STRANGER}] * 100
        seen: list[tuple[str, str, str]] = []  # noqa: RUF012

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Fake) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        table = folder / "table.md"
        inputs = {"token": "secret-token", "pull-request": "12"}
        for text in ("first", "second"):
            table.write_text(text)
            runner = Runner(folder, inputs, {"table": str(table)}, {"GITHUB_API_URL": url})
            ran = runner.run("Comment")
            assert (ran.code, ran.out) == (0, ""), ran
        hostile = Runner(folder, {**inputs, "pull-request": "1/../2"}, {"table": str(table)})
        hostile.env["GITHUB_API_URL"] = url
        assert hostile.run("Comment").code == 1
        server.shutdown()

    assert {each["body"] for each in Fake.comments[:100]} == {"<!-- grv -->\nforged"}
    assert [each["body"] for each in Fake.comments[100:]] == ["<!-- grv -->\nsecond"]
    comments = "/repos/some/repository/issues/12/comments"
    assert [(method, path) for method, path, _ in Fake.seen] == [
        ("GET", f"{comments}?per_page=100&page=1"),
        ("GET", f"{comments}?per_page=100&page=2"),
        ("POST", comments),
        ("GET", f"{comments}?per_page=100&page=1"),
        ("GET", f"{comments}?per_page=100&page=2"),
        ("PATCH", "/repos/some/repository/issues/comments/7"),
    ]
    assert {key for _, _, key in Fake.seen} == {"Bearer secret-token"}
