"""NeMo Gym, both ways: our checks behind its contract, and its servers as a check of ours.

`tests/assets/nemo_gym.json` was recorded from its own code, version 0.5.1, commit 07d6b0d07: what
the agent `simple_agent` has posted to `grv verify --serve`, and what the resources server `mcqa`
has answered to a check of kind `gym`. What `judge_failsafe` returns is typed after its source.
"""

from __future__ import annotations

import copy
import http.server
import json
import shlex
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from grv.apps import cli
from grv.backends.protocols import Problem
from grv.backends.sandbox.limits import Isolation
from grv.backends.verifiers.gym import endpoint, request_of
from grv.backends.verifiers.pool import CheckVerifier
from grv.core.errors import UsageError
from grv.core.values import Verdict
from support.commands import here
from support.guides import blocks
from support.servers import FaultyServer
from support.serving import Server, key_hash, serving_command

KEY = "a-key-of-some-length"
ASSETS = Path(__file__).parents[1] / "assets"
RECORDED = json.loads((ASSETS / "nemo_gym.json").read_text(encoding="utf-8"))


def recorded(text: str, **row: Any) -> dict[str, Any]:
    """What NeMo Gym's agent has posted, with another text and another row."""
    asked = copy.deepcopy(RECORDED["posted"])
    asked["response"]["output"][-1]["content"][0]["text"] = text
    del asked["expected_answer"]
    return {**asked, **row}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("gym")
    (folder / "clients.toml").write_text(f'[clients.trainer]\nkey = "{key_hash(KEY)}"\n')
    with serving_command(
        "verify",
        " verifies",
        folder,
        "--serve",
        "--clients",
        folder / "clients.toml",
        files=False,
    ) as up:
        yield up
    assert up.events("bug") == []
    assert not any(KEY in line or "boxed" in line for line in up.lines)


def post(server: Server, body: Any, path: str = "/verify", key: str = KEY) -> tuple[int, Any]:
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    address = server.url.removesuffix("/verify") + path
    request = urllib.request.Request(address, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@pytest.mark.parametrize(
    ("text", "row", "reward"),
    [
        ("It is \\boxed{42}", {"expected_answer": "42"}, 1.0),
        ("It is \\boxed{41}", {"expected_answer": "42"}, 0.0),
        ("I do not know.", {"expected_answer": "42"}, 0.0),
        (
            "```python\nprint(2 * int(input()))\n```",
            {"verifier_metadata": {"unit_tests": {"inputs": ["2\n"], "outputs": ["4\n"]}}},
            1.0,
        ),
        ("Paris", {"check": {"kind": "text", "equals": "Paris"}}, 1.0),
    ],
)
def test_a_request_of_nemo_gym_gets_its_reward(
    server: Server, text: str, row: dict[str, Any], reward: float
) -> None:
    asked = recorded(text, **row)
    status, answer = post(server, asked)
    assert status == 200
    assert answer["reward"] == reward
    assert answer["responses_create_params"]["input"] == asked["responses_create_params"]["input"]
    assert answer["response"] == asked["response"]
    assert answer["grv"]["verdict"] == ("passed" if reward else "failed")


def test_the_path_may_name_a_rollout(server: Server) -> None:
    """As NeMo Gym has it with `observability_enabled`."""
    status, answer = post(server, recorded("42", expected_answer="42"), "/ng-rollout/0-1-a2/verify")
    assert (status, answer.get("reward")) == (200, 1.0)
    assert post(server, {}, "/ng-rollout/0-1-a2/seed_session") == (200, {})


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"check": {"kind": "command", "argv": ["true"]}}, "must be one of"),
        ({"check": {"kind": "http", "url": "http://127.0.0.1:1/"}}, "must be one of"),
        ({"check": {"kind": "gym", "row": {}}}, "must be one of"),
        ({"check": {"kind": "math", "answer": "4", "limits": {"seconds": 1e6}}}, "at most"),
        ({"check": "house"}, "must be a check"),
        ({"rubric": "be polite"}, "there is no check for this row"),
        ({"expected_answer": "42", "response": {"output": 3}}, "must be a list"),
    ],
)
def test_a_client_gives_only_checks_that_are_data(
    server: Server, row: dict[str, Any], said: str
) -> None:
    status, answer = post(server, recorded("x", **row))
    assert (status, said in answer["error"]["message"]) == (400, True)


def test_a_client_needs_a_key_and_a_session_needs_nothing(server: Server) -> None:
    assert post(server, recorded("x", expected_answer="42"), key="wrong")[0] == 401
    assert post(server, {}, "/seed_session") == (200, {})


def test_a_server_for_other_machines_needs_clients(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["verify", "--serve", "--host", "0.0.0.0"]) == 2
    assert "give --clients FILE" in capsys.readouterr().err
    assert cli.run(["verify"]) == 2
    assert "--serve to answer requests" in capsys.readouterr().err


class Gym:
    """A resources server that answers with what it is told."""

    def __init__(self) -> None:
        self.answer: dict[str, Any] = {"reward": 1.0}
        self.received: list[tuple[str, dict[str, Any]]] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:  # the name that http.server calls
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.received.append((self.path, body))
                recorded_answer = {**RECORDED["answered"], **body, **outer.answer}
                content = json.dumps(recorded_answer).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def gym() -> Iterator[Gym]:
    made = Gym()
    thread = threading.Thread(target=made.server.serve_forever, daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()


CHECK: dict[str, Any] = {"kind": "gym", "row": {"expected_answer": "42"}}
PROBLEM = Problem("p7", "What is 6 times 7?", CHECK)


def test_the_server_of_the_operator_judges(gym: Gym) -> None:
    with CheckVerifier(workers=1, gym=gym.url) as verifier:
        passed = verifier.find(PROBLEM, "It is 42.")
        gym.answer = {"reward": 0.5}
        failed = verifier.find(PROBLEM, "It is 41.")
        gym.answer = {"reward": 0.0, "_ng_failure_class": "judge_failed"}
        broken = verifier.find(PROBLEM, "It is 40.")
    assert (passed.verdict, passed.reason) == (Verdict.PASSED, "judged by gym: reward 1")
    assert passed.evidence == {"judged_by": "gym", "reward": 1.0}
    assert (failed.verdict, failed.reason) == (Verdict.FAILED, "judged by gym: reward 0.5")
    assert broken.verdict is Verdict.BROKEN
    path, body = gym.received[0]
    assert path == "/verify"
    assert body == request_of(PROBLEM, CHECK["row"], "It is 42.")
    assert body["expected_answer"] == "42"
    asked = {"role": "user", "content": "What is 6 times 7?"}
    assert body["responses_create_params"]["input"] == [asked]
    assert body["response"]["output"][0]["content"][0]["text"] == "It is 42."


def test_a_lower_reward_may_pass_and_a_group_may_have_it(gym: Gym) -> None:
    gym.answer = {"reward": 0.5}
    half = {**CHECK, "passes": 0.5}
    group = {"kind": "first", "checks": [{"kind": "text", "contains_any": ["42"]}, half]}
    with CheckVerifier(workers=1, gym=gym.url) as verifier:
        assert verifier.find(Problem("g", "?", group), "42").verdict is Verdict.PASSED
        assert verifier.find(Problem("g", "?", group), "41").verdict is Verdict.FAILED
    assert len(gym.received) == 1


def test_no_file_of_problems_names_a_server() -> None:
    with CheckVerifier(workers=1) as verifier:
        with pytest.raises(UsageError, match="give --gym URL"):
            verifier.prepare(PROBLEM)
        elsewhere = {**CHECK, "url": "http://127.0.0.1:1/"}
        with pytest.raises(UsageError, match="url: no such field"):
            verifier.prepare(Problem("p", "?", elsewhere))
        with pytest.raises(UsageError, match=r"row\.response: grv sets this field itself"):
            verifier.prepare(Problem("p", "?", {"kind": "gym", "row": {"response": 1}}))
    with pytest.raises(UsageError, match="strict isolation forbids"):
        CheckVerifier(workers=1, gym="http://127.0.0.1:1", isolation=Isolation.STRICT)
    with (
        CheckVerifier(workers=1, gym="ftp://x") as verifier,
        pytest.raises(UsageError, match="not an address"),
    ):
        verifier.prepare(PROBLEM)


def test_an_answer_without_a_reward_is_no_verdict(gym: Gym) -> None:
    gym.answer = {"reward": None}
    with CheckVerifier(workers=1, gym=gym.url, attempts=1) as verifier:
        found = verifier.find(PROBLEM, "42")
    assert found.verdict is Verdict.BROKEN
    assert "must have a reward" in found.reason


def test_verdicts_of_another_server_are_other_verdicts(gym: Gym) -> None:
    with (
        CheckVerifier(workers=1, gym=gym.url) as one,
        CheckVerifier(workers=1, gym="http://127.0.0.1:1") as other,
    ):
        assert one.conditions(PROBLEM) != other.conditions(PROBLEM)
    assert endpoint("http://127.0.0.1:1/verify/") == "http://127.0.0.1:1/verify"


def test_grv_verifies_with_grv(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ways at once: our check of kind gym asks our server."""
    monkeypatch.setenv("VERIFIER_API_KEY", KEY)
    line = {"problem": "p", "prompt": "6 x 7?", "check": CHECK}
    line["candidates"] = ["\\boxed{42}", "\\boxed{41}"]
    (tmp_path / "candidates.jsonl").write_text(json.dumps(line) + "\n")
    out = tmp_path / "labels.jsonl"
    words = ["verify", str(tmp_path / "candidates.jsonl"), "-o", str(out), "--gym", server.url]
    assert cli.run(words) == 0
    labels = [json.loads(each) for each in out.read_text().splitlines()]
    found = {each["candidate"]: each["verdict"] for each in labels if "candidate" in each}
    assert found == {0: "passed", 1: "failed"}


@pytest.mark.slow
def test_the_guide_asks_a_server(gym: Gym, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (problem,) = blocks("gym.md", "json")
    Path("gym.jsonl").write_text(problem)
    command, serves = blocks("gym.md", "sh")
    assert serves == "grv verify --serve --port 8003\n"  # the fixture `server`, on another port
    with FaultyServer() as model:
        asked = command.replace("http://localhost:8000/v1", model.url)
        ran = here(*shlex.split(asked.replace("http://localhost:9000", gym.url))[1:])
    assert ran.code == 0, ran.err
    (answer,) = map(json.loads, Path("answers.jsonl").read_text().splitlines())
    assert answer["answer_verified"] is True
    assert [body["expected_answer"] for _, body in gym.received] == ["42"]


@pytest.mark.slow
def test_many_verifications_of_one_client_do_not_keep_another_waiting(tmp_path: Path) -> None:
    busy, patient = "busy-key-0123456789", "patient-key-0123456789"
    (tmp_path / "clients.toml").write_text(
        f'[clients.busy]\nkey = "{key_hash(busy)}"\n'
        f'[clients.patient]\nkey = "{key_hash(patient)}"\n'
    )
    tests = {"unit_tests": {"inputs": ["2\n"], "outputs": ["4\n"]}}
    options = ("--serve", "--workers", 1, "--clients", tmp_path / "clients.toml")
    with serving_command("verify", " verifies", tmp_path, *options, files=False) as server:

        def ask(number: int, key: str) -> float:
            program = f"import time\ntime.sleep(1)\nprint(2 * int(input()) + 0 * {number})"
            text = f"```python\n{program}\n```"
            status, answer = post(server, recorded(text, verifier_metadata=tests), key=key)
            assert (status, answer["reward"]) == (200, 1.0)
            return time.monotonic()

        with ThreadPoolExecutor(10) as threads:
            many = [threads.submit(ask, number, busy) for number in range(8)]
            until = time.monotonic() + 60
            while not any(each.done() for each in many):
                assert time.monotonic() < until
                time.sleep(0.05)
            answered = threads.submit(ask, 8, patient).result()
            assert sum(each.result() < answered for each in many) <= 4
