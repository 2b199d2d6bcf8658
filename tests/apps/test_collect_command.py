"""`grv collect`: a log out of live models, job files, what a run needs."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from grv.apps import cli
from grv.apps.collect import CollectOptions, collect, resources_of
from grv.apps.options.command import arguments_of
from grv.backends.scorers.reward_options import Reward
from grv.logs.readers import read_log
from support.commands import ended, grv, here, kill, start, write_problems
from support.servers import FaultyServer, Received, Status

PAPER = Path(__file__).parents[2] / "paper"
ADD = {
    "problem": "add",
    "prompt": 'def add(a, b):\n    """Return the sum of a and b."""',
    "check": {"kind": "asserts", "entry_point": "add", "test": "assert add(1, 2) == 3"},
}
SUM = {
    "problem": "sum",
    "prompt": "2 + 3 =",
    "check": {"kind": "math", "answer": "5", "match": "exact"},
}


def problems(path: Path, *records: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def right_or_wrong(received: Received, seed: int) -> str:
    return f"{seed} {'right' if seed % 5 == 0 else 'wrong'}"


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.slow
def test_the_embedded_model_is_collected_from_and_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, log = problems(tmp_path / "p.jsonl", ADD, SUM), tmp_path / "log.csv"
    call = ["collect", file, "--generator", "embedded", "--max-tokens", "12", "-n", "6"]
    call += ["--temperature", "0.3", "--out", str(log)]
    assert cli.run(call) == 0
    first = log.read_text()
    assert "12 candidates of 2 problems" in capsys.readouterr().out
    assert cli.run(call) == 0
    assert log.read_text() == first
    read = read_log(str(log))
    assert [len(problem.scores) for problem in read.problems] == [6, 6]
    assert any(problem.passed.any() for problem in read.problems)
    assert cli.run(["compare", str(log), "--keys", "--orders", "2"]) == 0
    assert cli.run(["runs", "check", f"{log}.ledger"]) == 0


@pytest.mark.slow
def test_killed_it_goes_on_and_asks_for_nothing_twice(tmp_path: Path) -> None:
    seen, log = tmp_path / "seen", tmp_path / "log.jsonl"
    file = write_problems(tmp_path / "p.jsonl", ["p", "q"], seen=seen, seconds=0.05)
    with FaultyServer(text=right_or_wrong, seconds=0.01) as server:
        call = [
            "collect",
            file,
            "--allow-commands",
            "--generator",
            "openai:m",
            "--base-url",
            server.url,
        ]
        call += ["-n", 20, "--out", log, "--score", "length", "--concurrency", 4, "--no-keys"]
        process = start(*call)
        while not seen.exists() or len(seen.read_text().splitlines()) < 8:
            time.sleep(0.02)
            assert process.poll() is None
        kill(process)
        assert not log.exists()
        asked = len(server.received)
        ran = grv(*call)
        assert ran.code == 0, ran.err
        assert len(server.received) - asked <= 4
    assert len(rows(log)) == 40
    assert all(row["passed"] is not None for row in rows(log))
    assert len(seen.read_text().splitlines()) <= 40 + 4
    assert "possibly paid, lost" in ran.out


@pytest.mark.slow
def test_interrupted_it_ends_with_130_and_without_a_log(tmp_path: Path) -> None:
    seen, log = tmp_path / "seen", tmp_path / "log.jsonl"
    file = write_problems(tmp_path / "p.jsonl", ["p"], seen=seen, seconds=0.1)
    with FaultyServer(text=right_or_wrong) as server:
        call = [
            "collect",
            file,
            "--allow-commands",
            "--generator",
            "openai:m",
            "--base-url",
            server.url,
        ]
        call += ["-n", 32, "--out", log, "--score", "length", "--concurrency", 2]
        process = start(*call)
        while not seen.exists():
            time.sleep(0.02)
            assert process.poll() is None
        process.send_signal(2)
        assert ended(process).code == 130
    assert not log.exists()


@pytest.mark.slow
def test_a_sample_is_verified_and_a_failed_problem_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fault(received: Received) -> Status | None:
        return Status(400, message="not you") if "bad" in received.prompt else None

    log = tmp_path / "log.jsonl"
    file = write_problems(tmp_path / "p.jsonl", ["good", "bad"], seen=tmp_path / "seen")
    with FaultyServer(fault, text=right_or_wrong) as server:
        call = [
            "collect",
            str(file),
            "--allow-commands",
            "--generator",
            "openai:m",
            "--base-url",
            server.url,
        ]
        call += ["-n", "12", "--verify", "5", "--out", str(log), "--score", "length"]
        assert cli.run(call) == 1
    out, err = capsys.readouterr()
    assert "7 have no label" in out
    assert "bad is not in the results" in err
    assert {row["problem"] for row in rows(log)} == {"good"}
    assert sum(row["passed"] is not None for row in rows(log)) == 5


@pytest.mark.slow
def test_with_prices_the_log_says_what_was_paid(tmp_path: Path) -> None:
    log, prices = tmp_path / "log.jsonl", tmp_path / "prices.toml"
    prices.write_text("[m]\ncompletion = 1000000\n[other]\nverify_call = 3\n")
    file = write_problems(tmp_path / "p.jsonl", ["good"], seen=tmp_path / "seen")
    with FaultyServer(text=right_or_wrong) as server:
        call = [
            "collect",
            str(file),
            "--allow-commands",
            "--generator",
            "openai:m",
            "--base-url",
            server.url,
        ]
        call += ["-n", "12", "--verify", "5", "--out", str(log), "--prices", str(prices)]
        assert cli.run(call) == 0
    found = rows(log)
    assert all(row["generate_cost"] > 0 for row in found)
    assert [row["verify_cost"] for row in found if row["passed"] is not None] == [3] * 5
    assert [row["verify_cost"] for row in found if row["passed"] is None] == [None] * 7
    assert cli.run([*call[:-1], str(tmp_path / "none.toml")]) == 2


def test_a_dry_run_says_what_is_needed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tests = [{"input": "1", "output": "1"}] * 4
    stdin = {"problem": "s", "prompt": "", "check": {"kind": "stdin", "tests": tests}}
    file = problems(tmp_path / "p.jsonl", stdin, SUM)
    call = ["collect", file, "--generator", "openai:big", "--base-url", "http://h:1/v1", "-n", "90"]
    call += ["--max-tokens", "1000", "--timeout", "10", "--workers", "2", "--verify", "36"]
    call += ["--score", "pooling:http://h:2:min", "--score-model", "prm", "--dry-run"]
    assert cli.run([*call, "--out", str(tmp_path / "log.csv")]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "2 problems: 180 candidates, at most 180,000 tokens",
        "needs big at http://h:1/v1, to generate",
        "needs prm behind /pooling of http://h:2, to score",
        # 36 verifications of 4 tests of 10 s on 2 workers are 720 s
        "at most 72 verifications: 0.2 hours on 2 workers if every test took its full"
        " limit; usually much less",
        "disk: at most 1.2 MB for the ledger and log",
    ]
    assert list(tmp_path.iterdir()) == [tmp_path / "p.jsonl"]


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ("n = 0", "-n 0: give a whole number from 1 to 1,000,000"),
        ("n = 1\nverify = -1", "--verify -1"),
        ("n = true", "-n True: give a whole number"),
        ("n = 1\nruns = 3", "runs must be tables"),
        ("n = 1\nwidth = 3", "unknown option width"),
        ("n = 1\n[runs.a]\n[runs.b]", "two runs write"),
        ("n = 1\n[runs.a]\nnn = 3", "unknown option nn"),
        ("n = 1\n[expected]\nproblems = 'many'", "[expected] has problems and tests"),
    ],
)
def test_a_wrong_job_file_is_refused_in_one_line(
    toml: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = tmp_path / "job.toml"
    job.write_text(f'problems = "p"\ngenerator = "embedded"\nout = "{tmp_path}/log.csv"\n{toml}\n')
    assert cli.run(["collect", "--job", str(job)]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.slow
def test_prompts_and_stops_come_from_a_file_and_flags_win(tmp_path: Path) -> None:
    prompts, log = tmp_path / "prompts.toml", tmp_path / "log.jsonl"
    prompts.write_text("stop = ['Q:']\nprompt = 'Q: 1? A: 1 Q: {question} A:'\n")
    file = problems(tmp_path / "p.jsonl", {**SUM, "question": "2 + 3?"})
    with FaultyServer() as server:
        call = ["collect", file, "--generator", "openai-text:m", "--base-url", server.url, "-n", 1]
        call += ["--out", log, "--prompts", prompts]
        assert here(*call).code == 0
        assert here(*call).code == 0  # nothing is requested again
        assert here(*call, "--stop", "END").code == 0
        bodies = [received.body for received in server.received]
    assert [body["prompt"] for body in bodies] == ["Q: 1? A: 1 Q: 2 + 3? A:"] * 2
    assert [body["stop"] for body in bodies] == [["Q:"], ["END"]]


def test_a_missing_question_is_found_before_any_work(tmp_path: Path) -> None:
    file = problems(tmp_path / "p.jsonl", SUM)
    call = ["collect", file, "--generator", "openai:m", "--base-url", "http://h:1/v1", "-n", 1]
    call += ["--score", "score:http://h:2", "--score-question", "--out", tmp_path / "log.csv"]
    ran = here(*call)
    assert ran.code == 2
    assert "--score-question: problem 'sum' has no question" in ran.err
    assert list(tmp_path.iterdir()) == [tmp_path / "p.jsonl"]


def test_options_of_reward_models_are_part_of_a_run_s_name_only_if_given(tmp_path: Path) -> None:
    file = problems(tmp_path / "p.jsonl", SUM)
    given = {"problems": file, "generator": "openai:m", "out": "log.csv", "n": 1}
    (plain,) = arguments_of(collect, given)["runs"]
    reward = {"score": "classify:http://h", "score_raw": True, "score_split": "paragraphs"}
    (raw,) = arguments_of(collect, given | reward)["runs"]
    assert not {"reward", "score_raw", "score_split"} & plain.about.keys()
    assert raw.about["score_raw"] is True
    assert "score_split" not in raw.about


def test_only_some_runs_of_a_job_file(tmp_path: Path) -> None:
    job = str(PAPER / "math.toml")
    only = [f"--only={name}" for name in ("qwen2.5-14b", "gpt")]
    ran = here("collect", "--job", job, only[0], "-n", "3", "--dry-run")
    assert (ran.code, ran.err) == (0, "")
    assert "qwen2.5-14b:" in ran.out
    assert "60 problems: 180 candidates" in ran.out
    ran = here("collect", "--job", job, only[1])
    assert ran.code == 2
    assert "there are qwen2.5-math-7b, qwen2.5-14b" in ran.err


def runs_of(name: str) -> list[CollectOptions]:
    runs: list[CollectOptions] = arguments_of(collect, {"job": str(PAPER / name)})["runs"]
    return runs


class TestThePaper:
    def test_mathematics_is_as_the_paper_has_it(self) -> None:
        runs = runs_of("math.toml")
        assert [run.models.generator for run in runs] == [
            "openai-text:Qwen/Qwen2.5-Math-7B",
            "openai-text:Qwen/Qwen2.5-14B",
            "openai-text:deepseek-ai/DeepSeek-R1-Distill-Qwen-7B",
        ]
        for run in runs:
            assert (run.sampling.temperature, run.sampling.top_p, run.n) == (0.7, 0.95, 512)
            assert run.models.score.endswith(":last")
            assert run.models.score_model == "Qwen/Qwen2.5-Math-PRM-7B"
            assert run.models.reward.score_question
            assert run.models.reward.score_system
            assert run.models.reward.score_split == "paragraphs-or-lines"
            assert run.sample is None
            assert run.sampling.max_tokens == 2048
        assert sum(resources_of(run).candidates for run in runs) == 92_160

    def test_programming_is_as_the_paper_has_it(self) -> None:
        (run,) = runs_of("coding.toml")
        assert run.models.generator == "openai-text:Qwen/Qwen2.5-Coder-3B"
        assert (run.sampling.temperature, run.sampling.top_p, run.n) == (0.7, 0.95, 512)
        assert run.models.score_model == "LARK-Lab/CodeScaler-8B"
        assert run.models.reward == Reward(score_raw=True, score_tokens=4096)
        assert (run.verification.timeout, run.verification.workers) == (15.0, 64)
        assert resources_of(run).candidates == 168_448

    @pytest.mark.parametrize("name", ["math", "coding"])
    def test_a_dry_run_needs_nothing_but_the_job_file(
        self,
        name: str,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert cli.run(["collect", "--job", str(PAPER / f"{name}.toml"), "--dry-run"]) == 0
        out = capsys.readouterr().out
        assert "does not exist yet" in out
        assert "to generate" in out

    @pytest.mark.parametrize("name", ["math", "coding"])
    def test_the_comparison_is_as_the_paper_has_it_and_flags_win(
        self, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        log, table = tmp_path / "log.csv", tmp_path / "table.json"
        log.write_text("problem,candidate,passed,score\na,0,1,0.5\na,1,0,0.7\n")
        call = ["compare", str(log), "--job", str(PAPER / f"{name}.toml"), "--json", str(table)]
        assert cli.run([*call, "--policy", "adaptive"]) == 0
        saved = json.loads(table.read_text())
        assert (saved["settings"]["orders"], saved["settings"]["width"]) == (10, "all")
        assert saved["settings"]["order_scheme"] == "paper"
        assert Counter(row["policy"] for row in saved["rows"]) == {"adaptive": 4, "varied": 4}
        assert cli.run([*call, "--policy", "adaptive", "--orders", "100"]) == 0
        assert json.loads(table.read_text())["settings"]["orders"] == 100


def test_a_job_file_without_a_comparison_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = tmp_path / "job.toml"
    job.write_text("n = 3\n")
    assert cli.run(["compare", "log.csv", "--job", str(job)]) == 2
    assert "unknown option n" in capsys.readouterr().err
    job.write_text("[compare]\nordres = 3\n")
    assert cli.run(["compare", "log.csv", "--job", str(job)]) == 2
    assert "unknown option ordres" in capsys.readouterr().err
