"""The job files of the paper, from the datasets to the figures, on loopback servers."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from grv.logs.readers import read_log
from support.commands import here
from support.servers import FaultyServer, Received

PAPER = Path(__file__).parents[2] / "paper"
RUNS = ("qwen2.5-math-7b", "qwen2.5-14b", "deepseek-r1-distill-qwen-7b")
SUMS = [
    {"problem_idx": at, "problem": f"What is {at} plus 1?", "answer": at + 1} for at in range(3)
]
DOUBLE = {
    "question_id": "double",
    "question_content": "Read a number and print its double.",
    "starter_code": "",
    "difficulty": "medium",
    "public_test_cases": '[{"input": "1", "output": "2", "testtype": "stdin"}]',
    "private_test_cases": '[{"input": "4", "output": "8", "testtype": "stdin"}]',
    "metadata": "{}",
}
TRIPLE = {
    "question_id": "triple",
    "question_content": "Return three times x.",
    "starter_code": "class Solution:\n    def triple(self, x: int) -> int:\n        ",
    "difficulty": "hard",
    "public_test_cases": '[{"input": "1", "output": "3", "testtype": "functional"}]',
    "private_test_cases": '[{"input": "4", "output": "12", "testtype": "functional"}]',
    "metadata": '{"func_name": "triple"}',
}
EASY = {**DOUBLE, "question_id": "easy", "difficulty": "easy"}


def write_lines(path: Path, records: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def done(*call: object) -> str:
    ran = here(*map(str, call))
    assert ran.code == 0, ran.err
    return ran.out


def solution(received: Received, seed: int) -> str:
    return f"We add the numbers.\nThe answer is \\boxed{{{seed % 4}}}."


def program(received: Received, seed: int) -> str:
    factor = seed % 4
    if "def triple" in received.prompt:
        return f"class Solution:\n    def triple(self, x):\n        return {factor} * x\n"
    return f"print({factor} * int(input()))\n"


def collect_mathematics() -> list[Received]:
    """Collect by all three generators; what the two servers received."""
    write_lines(Path("hmmt_feb_2024.jsonl"), SUMS)
    done("problems", "hmmt", "hmmt_feb_2024.jsonl", "--match", "published", "-o", "hmmt.jsonl")
    with FaultyServer(text=solution) as generator, FaultyServer() as rewards:
        servers = ["--base-url", generator.url, "--score", f"pooling:{rewards.root}:last"]
        said = done("collect", "--job", "paper/math.toml", "-n", 6, *servers)
        assert said.count("18 candidates of 3 problems") == len(RUNS)
        return [*generator.received, *rewards.received]


def collect_programs() -> list[Received]:
    write_lines(Path("test.jsonl"), [DOUBLE, EASY])
    write_lines(Path("test2.jsonl"), [TRIPLE])
    wanted = ["--difficulty", "medium,hard", "-o", "livecodebench.jsonl"]
    assert "2 problems" in done("problems", "livecodebench", "test.jsonl", "test2.jsonl", *wanted)
    with FaultyServer(text=program) as generator, FaultyServer() as rewards:
        servers = ["--base-url", generator.url, "--score", f"classify:{rewards.root}"]
        done("collect", "--job", "paper/coding.toml", "-n", 6, "--workers", 2, *servers)
        return [*generator.received, *rewards.received]


def check_mathematics(received: list[Received]) -> None:
    generated = [each for each in received if each.path == "/v1/completions"]
    assert len({each.body["model"] for each in generated}) == len(RUNS)
    for each in generated:
        assert each.prompt.count("Problem: ") == 3
        assert each.prompt.endswith("\\boxed{}.\nSolution:")
        assert (each.body["stop"], each.body["max_tokens"]) == (["\nProblem:", "Problem:"], 2048)
    scored = [each.body["messages"] for each in received if each.path == "/pooling"]
    assert len(scored) == 3 * 18
    assert len(received) == len(generated) + len(scored)
    for system, user, assistant in scored:
        assert system["role"] == "system"
        assert user["content"] in {record["problem"] for record in SUMS}
        assert assistant["content"].startswith("We add the numbers.<extra_0>The answer is")
        assert assistant["content"].endswith(".<extra_0>")


def check_programs(received: list[Received]) -> None:
    generated = [each for each in received if each.path == "/v1/completions"]
    scored = [each.body for each in received if each.path == "/classify"]
    prompts = {each.prompt for each in generated}
    assert len(prompts) == 2
    for prompt in prompts:
        assert prompt.count("### Example") == prompt.count("### Problem") == 1
        assert prompt.endswith("Solution:\n```python\n")
    assert all(each.body["stop"] == ["```", "\n### "] for each in generated)
    for body in scored:
        assert {message["content"] for message in body["messages"][:1]} <= prompts
        assert [message["role"] for message in body["messages"]] == ["user", "assistant"]
        assert body["use_activation"] is False
        assert body["truncate_prompt_tokens"] == 4096


def labels_of(path: str) -> dict[int, bool]:
    rows = map(json.loads, Path(path).read_text().splitlines())
    return {row["candidate"]: row["passed"] for row in rows}


@pytest.mark.slow
def test_a_log_with_published_labels_is_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both logs come from one ledger: candidates and scores are not asked for again."""
    monkeypatch.chdir(tmp_path)
    check = {
        "kind": "function",
        "entry_point": "total",
        "tests": [{"input": "[1, 2]", "output": "3"}],
    }
    write_lines(Path("sum.jsonl"), [{"problem": "sum", "prompt": "Add.", "check": check}])

    def text(received: Received, seed: int) -> str:
        parameters = ("x", "a, b", "x)")[seed % 3]
        returned = ("sum(x)", "a + b", "3")[seed % 3]
        return f"def total({parameters}):\n    return {returned}\n"

    with FaultyServer(text=text) as server:
        job = ["sum.jsonl", "--generator", "openai-text:m", "--base-url", server.url, "-n", 6]
        job += ["--score", "length", "--seed", 0, "--ledger", "one.ledger", "--no-refute"]
        done("collect", *job, "--out", "own.jsonl")
        asked = len(server.received)
        said = done("collect", *job, "--labels", "published", "--out", "published.jsonl")
        assert len(server.received) == asked
    assert "6 are labelled as the paper's published code does" in said

    own = labels_of("own.jsonl")
    theirs = labels_of("published.jsonl")
    assert sorted(own.values()) == sorted(theirs.values()) == [False] * 4 + [True] * 2
    assert not any(own[candidate] and theirs[candidate] for candidate in own)
    assert '"labels"' not in Path("own.jsonl").read_text()
    assert read_log("own.jsonl").published == 0
    assert read_log("published.jsonl").published == 6
    done("runs", "export", "one.ledger", "--out", "exported.jsonl")
    assert read_log("exported.jsonl").published == 6
    words = "labels by the rules of the paper's published code, for comparison with it only: 6 of 6"
    assert words in done("compare", "published.jsonl", "--orders", 2)
    assert words not in done("compare", "own.jsonl", "--orders", 2)
    done("report", "published.jsonl", "--orders", 2, "--many-orders", 2, "-o", "page.html")
    assert "6 labelled as the paper&#x27;s published code does" in Path("page.html").read_text()


@pytest.mark.soak
@pytest.mark.slow
def test_the_small_paper_is_run_and_continued(tmp_path: Path) -> None:
    call = [sys.executable, str(PAPER / "small" / "run.py"), "--count", "4", "--candidates", "8"]
    call += ["--folder", str(tmp_path)]
    ran = subprocess.run(call, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    made = {path.name for path in (tmp_path / "figures").iterdir()}
    numbers = ("1", "2", "3a", "3b", "3c", "3d", "4a", "4b", "5a", "5b", "6a", "6b")
    assert {f"figure-{number}.pdf" for number in numbers} <= made
    assert {f"table-{number}.tex" for number in range(1, 5)} <= made
    logs = [f"{kind}-{score}.csv" for kind in ("math", "coding") for score in ("logprob", "judge")]
    first = {name: (tmp_path / name).read_text() for name in logs}
    for text in first.values():
        assert len(text.splitlines()) == 1 + 2 * 8
    assert [read_log(str(tmp_path / name)).published for name in logs] == [16, 16, 0, 0]

    (tmp_path / logs[0]).unlink()
    again = subprocess.run([*call, "--logs"], capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert {name: (tmp_path / name).read_text() for name in logs} == first


@pytest.mark.parametrize("name", ["math.toml", "coding.toml"])
def test_the_jobs_verify_and_charge_every_candidate(name: str) -> None:
    job = tomllib.loads((PAPER / name).read_text())
    report = tomllib.loads((PAPER / "report.toml").read_text())
    assert (job["refute"], job["compare"]["refute"], report["report"]["refute"]) == (False,) * 3


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ({"kind": "text", "contains_all": ["a"]}, "the paper's code has no check of kind 'text'"),
        ({"kind": "asserts", "entry_point": "f", "test": "assert f()"}, "of kind 'asserts'"),
    ],
)
def test_other_checks_have_no_published_labels(
    check: dict[str, Any], message: str, tmp_path: Path
) -> None:
    file = write_lines(tmp_path / "p.jsonl", [{"problem": "p", "prompt": "?", "check": check}])
    call = ["collect", file, "--generator", "openai-text:m", "--base-url", "http://localhost:9/v1"]
    ran = here(*call, "-n", "1", "--labels", "published", "--out", str(tmp_path / "l.csv"))
    assert ran.code == 2
    assert message in ran.err


@pytest.mark.slow
def test_the_paper_is_repeated_from_the_datasets_to_the_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "paper").symlink_to(PAPER)
    check_mathematics(collect_mathematics())
    check_programs(collect_programs())
    for name in (*(f"math-{run}" for run in RUNS), "coding-qwen2.5-coder-3b"):
        log = read_log(f"{name}.parquet")
        assert len(log.solvable) == len(log.problems)
        assert all(len(problem) == 6 for problem in log.problems)
    small = ["--orders", 2, "--many-orders", 3, "--figures", "figures", "-o", "paper.html"]
    done("report", "--job", "paper/report.toml", *small)

    made = {path.name for path in Path("figures").iterdir()}
    assert {name for name in made if name.endswith(".tex") and name.startswith("table")} == {
        f"table-{number}.tex" for number in range(1, 5)
    }
    for figure in ("1", "2", "3a", "3b", "3c", "3d", "4a", "4b", "5a", "5b", "6a", "6b"):
        assert f"figure-{figure}.pdf" in made
    by_generator = Path("figures/table-2.txt").read_text().split("\n")
    assert by_generator[1].split() == ["solvable", "problems", "3", "3", "3"]
    assert Path("paper.html").stat().st_size > 100_000
