"""The problems on the page about files of problems: each check passes and fails as it should."""

from __future__ import annotations

import http.server
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grv.backends.problems.files import read_problems
from grv.backends.protocols import Problem
from grv.backends.verifiers.checks import KINDS
from grv.backends.verifiers.pool import CheckVerifier
from grv.core.values import Verdict

GUIDE = Path(__file__).parents[2] / "docs" / "guide"
FENCE = r"^```{}\n(.*?)^```"

# For each problem of the page: a right and a wrong candidate.
CANDIDATES = {
    "sum": ("```python\nprint(sum(map(int, input().split())))\n```", "print(7)"),
    "double": ("def double(x):\n    return 2 * x", "def double(x):\n    return x * x"),
    "add": ("    return a + b\n", "    return 5\n"),
    "coin": ("The chance is \\boxed{0.5}.", "It is \\boxed{0.4}."),
    "moon": ("It was \\boxed{1,969}.", "It was \\boxed{1969.5}."),
    "greeting": ("hello world", "goodbye"),
    "product": ("It is 42.", "It is 41."),
}


def example() -> str:
    page = (GUIDE / "problems.md").read_text(encoding="utf-8")
    return str(re.findall(FENCE.format("json"), page, re.MULTILINE | re.DOTALL)[0])


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The server of the guide, on a free port."""
    page = (GUIDE / "http-verifier.md").read_text(encoding="utf-8")
    (program,) = re.findall(FENCE.format("python"), page, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(program, "http-verifier.md", "exec", dont_inherit=True), names)
    handler: Any = type("Quiet", (names["Handler"],), {"log_message": lambda *_: None})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as up:
        thread = threading.Thread(target=up.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{up.server_port}/"
        up.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def problems(server: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Problem]:
    path = tmp_path_factory.mktemp("page") / "problems.jsonl"
    path.write_text(example().replace("http://localhost:9000/", server), encoding="utf-8")
    return {problem.id: problem for problem in read_problems(str(path))}


def test_the_page_has_a_problem_of_each_kind_that_it_explains(
    problems: dict[str, Problem],
) -> None:
    assert problems.keys() == CANDIDATES.keys()
    page = (GUIDE / "problems.md").read_text(encoding="utf-8")
    explained = {kind for kind in KINDS if f"| `{kind}` |" in page}
    kinds = {problem.check["kind"] for problem in problems.values()}
    assert kinds == explained - {"human", "repo"}  # which have pages of their own


@pytest.mark.slow
@pytest.mark.parametrize("name", CANDIDATES)
def test_a_right_candidate_passes_and_a_wrong_one_fails(
    name: str, problems: dict[str, Problem]
) -> None:
    with CheckVerifier(workers=1, allow_commands=True) as verifier:
        found = [verifier.find(problems[name], text).verdict for text in CANDIDATES[name]]
    assert found == [Verdict.PASSED, Verdict.FAILED]


@pytest.mark.parametrize(
    ("script", "verdict"),
    [
        ("exit 0", Verdict.PASSED),
        ("exit 1", Verdict.FAILED),
        ("exit 2", Verdict.BROKEN),
        ("kill -9 $$", Verdict.BROKEN),
        ('[ "$(cat)" = "$(cat {})" ]', Verdict.PASSED),
    ],
)
def test_the_exit_code_of_a_command_is_the_verdict(script: str, verdict: Verdict) -> None:
    problem = Problem("p", check={"kind": "command", "argv": ["sh", "-c", script]})
    with CheckVerifier(workers=1, allow_commands=True) as verifier:
        assert verifier.find(problem, "text").verdict is verdict


@pytest.mark.slow
def test_a_candidate_that_a_command_runs_can_forge_its_verdict() -> None:
    """What the page warns of; the sandbox does not fall for it."""
    forged = "import os; os._exit(0)"
    command = {"kind": "command", "argv": ["python3", "{}"]}
    sandbox = {"kind": "stdin", "tests": [{"input": "", "output": "42"}]}
    with CheckVerifier(workers=1, allow_commands=True) as verifier:
        assert verifier.find(Problem("p", check=command), forged).verdict is Verdict.PASSED
        assert verifier.find(Problem("q", check=sandbox), forged).verdict is Verdict.FAILED


def test_every_line_of_the_page_is_one_object() -> None:
    assert all(isinstance(json.loads(line), dict) for line in example().splitlines())
