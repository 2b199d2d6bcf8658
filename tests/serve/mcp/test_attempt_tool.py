"""The tool `attempt`: agents that the operator named, in a repository that the operator named."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.from_thread import start_blocking_portal

pytest.importorskip("mcp", reason="the tools of agents need the extra mcp")

from mcp import Client

from grv.apps.mcp_attempts import Attempting, RepositoryAttempts
from grv.serve.errors import ApiError
from grv.serve.mcp.tools import AttemptCall, Report
from grv.testing import AgentStep, ScriptedAgent
from support.attempts import make_project, right, wrong
from support.commands import grv
from support.mcp_clients import call, http, http_server, stdio
from support.serving import key_hash, write_job

pytestmark = pytest.mark.slow
ALICE, BOB = "alice-key-0123456789", "bob-key-0123456789"


def options(folder: Path, *steps: AgentStep, **more: object) -> list[object]:
    """The options of the tool, with an agent that takes these steps."""
    repository = make_project(folder / "project", ["task1"], plain=True)
    (folder / "agent").mkdir()
    agent = ScriptedAgent(folder / "agent", steps)
    words: list[object] = ["--allow-commands", "--repository", repository]
    words += ["--verify", "sh tests/check.sh", "--agent", f"agent={shlex.join(agent.command)}"]
    for name, value in more.items():
        words += [f"--{name.replace('_', '-')}", value]
    return words


def branches(folder: Path) -> set[str]:
    said = subprocess.run(
        ["git", "branch", "--format=%(refname:short)"],
        cwd=folder / "project",
        capture_output=True,
        text=True,
        check=True,
    )
    return {name for name in said.stdout.split() if name.startswith("grv/")}


def test_an_agent_has_a_task_done_and_gets_the_diff_that_passed(tmp_path: Path) -> None:
    write_job(tmp_path, "http://127.0.0.1:1/v1")
    words = options(tmp_path, wrong("task1"), right("task1"))

    async def talk(client: Client) -> None:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == ["verify", "solve", "status", "attempt"]
        told: list[float] = []

        async def progress(steps: float, total: float | None, message: str | None) -> None:
            told.append(steps)

        found = await call(client, "attempt", progress, task="Make it 1.", name="one", budget=3)
        assert isinstance(found, dict), found
        assert (found["outcome"], found["accepted"], found["applied"]) == ("solved", 2, False)
        assert "+    return 1" in found["diff"]
        assert [row["verdict"] for row in found["attempts"]] == ["failed", "accepted"]
        assert found["dollars"] == pytest.approx(0.5)
        assert not {"ledger", "folders"} & found.keys()
        again = await call(client, "attempt", task="Make it 1.", name="one", budget=3)
        assert again["accepted"] == 2

    stdio(tmp_path, talk, *words)
    assert branches(tmp_path) == {"grv/one/1", "grv/one/2"}
    source = tmp_path / "project" / "src" / "task1.py"
    assert "NotImplementedError" in source.read_text()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "task: must be a text"),
        ({"task": " "}, "task: must be a text"),
        ({"task": "t", "name": "../x"}, "name: must be"),
        ({"task": "t", "name": "A"}, "name: must be"),
        ({"task": "t", "budget": 6}, "budget: must be a number from 0 to 5"),
        ({"task": "t", "agent": "rm -rf /"}, "agent: unknown field"),
        ({"task": "t", "verify": "true"}, "verify: unknown field"),
        ({"task": "t", "repository": "/"}, "repository: unknown field"),
    ],
)
def test_a_client_can_name_no_agent_command_or_folder(
    tmp_path: Path, arguments: dict[str, Any], says: str
) -> None:
    asked: list[object] = []

    class Never:
        budget = 5.0

        async def __call__(self, call: object, report: object) -> dict[str, Any]:
            asked.append(call)
            return {}

    from grv.serve.clients import ANYONE
    from grv.serve.errors import ApiError
    from grv.serve.mcp.tools import Tools

    async def report(steps: float, message: str) -> None:
        pass

    async def work() -> None:
        tools = Tools({}, None, None, attempts=Never())  # type: ignore[arg-type]
        await tools.call("attempt", arguments, ANYONE, report)

    with pytest.raises(ApiError, match=says):
        anyio.run(work)
    assert asked == []


def test_only_clients_with_the_right_may_attempt_and_money_ends(tmp_path: Path) -> None:
    write_job(tmp_path, "http://127.0.0.1:1/v1")
    clients = tmp_path / "clients.toml"
    clients.write_text(
        f'[clients.alice]\nkey = "{key_hash(ALICE)}"\nattempts = true\n'
        f'[clients.bob]\nkey = "{key_hash(BOB)}"\n'
    )
    step = AgentStep(write={"src/task1.py": "def value():\n    return -1\n"}, dollars=0.6)
    words = options(tmp_path, step, attempt_budget="1usd", attempt_total="1.5usd")
    with http_server(tmp_path, "--clients", clients, *words) as server:

        async def alice(client: Client) -> None:
            first = await call(client, "attempt", task="Make it 1.", name="a")
            assert first["accepted"] is None
            assert first["dollars"] <= 1.5
            second = await call(client, "attempt", task="Again.", name="b")
            third = await call(client, "attempt", task="And again.", name="c")
            assert third == "the total budget of attempts is spent" or third["dollars"] == 0, second

        async def bob(client: Client) -> None:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert "attempt" not in names
            assert "there is no tool" in await call(client, "attempt", task="t")

        http(server, bob, BOB)
        http(server, alice, ALICE)


def test_what_the_tool_needs_is_said_in_one_line(tmp_path: Path) -> None:
    write_job(tmp_path, "http://127.0.0.1:1/v1")
    job = [tmp_path / "job.toml", "--ledger", tmp_path / "ledger"]
    words = options(tmp_path, right("task1"))
    ran = grv("mcp", *job, *words[1:])
    assert "give --allow-commands" in ran.err
    ran = grv("mcp", *job, *words[:3])
    assert "needs --verify COMMAND and --agent AGENT" in ran.err
    (tmp_path / "project" / "src" / "task1.py").write_text("changed")
    ran = grv("mcp", *job, *words)
    assert "changed since the last commit" in ran.err
    assert ran.err.count("\n") == 1
    assert ran.out == ""


def alive(text: str) -> list[str]:
    """The command lines of living processes that contain a text."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if text in line and " mcp " not in line:
            found.append(line)
    return found


@pytest.mark.alone
def test_a_cancelled_attempt_ends_its_agent_and_what_it_cost_is_on_record(tmp_path: Path) -> None:
    write_job(tmp_path, "http://127.0.0.1:1/v1")
    words = options(tmp_path, AgentStep(seconds=5, dollars=0.2), right("task1"))
    script = str(tmp_path / "agent" / "agent.json")
    started = tmp_path / "agent" / "agent.runs"

    async def talk(client: Client) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: call(client, "attempt", task="Make it 1.", name="one"))
            with anyio.fail_after(60):
                while not started.exists():  # noqa: ASYNC110 (another process starts it)
                    await anyio.sleep(0.1)
            group.cancel_scope.cancel()
        with anyio.fail_after(30):
            while alive(script):  # noqa: ASYNC110
                await anyio.sleep(0.1)
        found = await call(client, "attempt", task="Make it 1.", name="one")
        assert found["outcome"] == "solved", found
        status = await call(client, "status")
        assert status["spent"] == 0  # attempts have a ledger of their own

    stdio(tmp_path, talk, *words)


class Timed(RepositoryAttempts):
    """Attempts that take a moment each, and note whose they are."""

    def __init__(self, folder: Path) -> None:
        with start_blocking_portal() as portal:
            super().__init__(Attempting(), "ledger", portal, folder)
        self.order: list[str] = []

    async def _run(self, call: AttemptCall, report: Report) -> dict[str, Any]:
        self.order.append(call.client)
        await anyio.sleep(0.02)
        return {}


@pytest.mark.anyio
async def test_the_attempts_of_one_client_do_not_keep_another_waiting(tmp_path: Path) -> None:
    attempts = Timed(tmp_path)

    async def report(steps: float, message: str) -> None: ...

    async def call(client: str) -> None:
        await attempts(AttemptCall("name", "task", 1.0, 60.0, client), report)

    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(call, "busy")
        await anyio.sleep(0.005)
        with pytest.raises(ApiError, match="8 attempts run or wait already"):
            await call("busy")
        await call("other")
        assert attempts.order[:2] == ["busy", "other"]
    assert attempts.order == ["busy", "other", *["busy"] * 7]
