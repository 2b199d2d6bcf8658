"""Valid inputs of every kind, made once by the commands themselves."""

from __future__ import annotations

import base64
import gzip
import importlib
import json
import pickle
import pkgutil
import zlib
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import grv
from support.commands import here

MATH = {"kind": "math", "answer": "5"}
STDIN = {"kind": "stdin", "tests": [{"input": "2\n", "output": "4\n"}], "tolerance": 1e-6}
FUNCTION = {
    **{"kind": "function", "entry_point": "f", "tests": [{"args": [1], "expected": 2}]},
    **{"limits": {"seconds": 2}, "repeat": 1, "prompt": ""},
}
ASSERTS = {"kind": "asserts", "entry_point": "f", "test": "def check(c):\n    assert c(1) == 2\n"}
COMMAND = {"kind": "command", "argv": ["grep", "-q", "5", "{}"], "limits": {"seconds": 2}}
TEXTS = ["The answer is \\boxed{5}.", "```python\ndef f(x):\n    return x + 1\n```", "print(4)"]


def lines(path: Path, *records: Any) -> None:
    """Write JSON lines."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def build(folder: Path, url: str) -> None:
    """Fill a folder with valid inputs; `url` is of a server for the live ones.

    Loads everything that commands load, so that forks need not.
    """
    for module in pkgutil.walk_packages(grv.__path__, "grv."):
        if module.name.endswith(("__main__", "math_worker")):
            continue
        if module.name.startswith("grv.serve.mcp") and not find_spec("mcp"):
            continue  # an extra that old libraries do not go with
        if module.name.startswith("grv.adapters."):
            continue  # no command loads them, and their frameworks are not installed
        importlib.import_module(module.name)
    _logs(folder)
    _problems(folder)
    _datasets(folder)
    _jobs(folder, url)
    _made(folder, url)


def _logs(folder: Path) -> None:
    random = Random(7)
    rows: list[dict[str, Any]] = [
        {
            **{"problem": f"p{at // 12}", "candidate": at % 12, "passed": random.random() < 0.3},
            **{"score": round(random.gauss(0, 1), 2), "key": f"k{at % 5}"},
            **{"generate_cost": 0.5, "verify_cost": 3.0},
        }
        for at in range(96)
    ]
    lines(folder / "log.jsonl", *rows)
    plain = [{**row, "score2": -row["score"]} for row in rows]
    for row in plain:
        row.pop("key")
    lines(folder / "plain.jsonl", *plain)
    cells = [[str(value) for value in row.values()] for row in plain]
    for name, mark in (("log.csv", ","), ("log.tsv", "\t")):
        (folder / name).write_text(
            "\n".join(mark.join(row) for row in [list(plain[0]), *cells]) + "\n"
        )
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({n: [row[n] for row in rows] for n in rows[0]}), folder / "log.parquet")
    samples = [{"text": "x", "correct": at % 3 == 0} for at in range(6)]
    rewards = [{"idx": at, "r_last": at / 6, "r_min": 0.1} for at in range(6)]
    lines(folder / "generations.jsonl", *({"id": i, "samples": samples} for i in range(4)))
    lines(folder / "rewards.jsonl", *({"id": i, "rewards": rewards} for i in range(4)))
    (folder / "class.txt").write_text("1 0 0\n0 1 0\n0 0 1\n")
    np.save(folder / "class.npy", np.eye(4))


def _problems(folder: Path) -> None:
    records = [
        {"problem": f"p{at}", "prompt": f"Solve {at}", "check": check, "candidates": TEXTS}
        for at, check in enumerate((MATH, MATH, COMMAND))
    ]
    lines(folder / "problems.jsonl", *records)
    places = [(record["problem"], at) for record in records for at in range(len(TEXTS))]
    scores = [{"problem": name, "candidate": at, "score": at / 2} for name, at in places]
    lines(folder / "scores.jsonl", *scores)
    programs = [
        {"problem": f"q{at}", "prompt": f"Solve {at}", "check": check, "candidates": TEXTS[1:2]}
        for at, check in enumerate((STDIN, FUNCTION, ASSERTS))
    ]
    lines(folder / "programs.jsonl", *programs)


def _datasets(folder: Path) -> None:
    hmmt = {"problem_idx": 1, "problem": "What is 2 + 3?", "answer": "5"}
    lines(folder / "hmmt.jsonl", hmmt, {**hmmt, "problem_idx": 2})
    human = {"task_id": "H/0", "prompt": "def f(x):\n", "entry_point": "f", "test": ASSERTS["test"]}
    content = "".join(json.dumps({**human, "task_id": f"H/{at}"}) + "\n" for at in range(3))
    (folder / "human.jsonl.gz").write_bytes(gzip.compress(content.encode()))
    tests = json.dumps([{"input": "1", "output": "2", "testtype": "functional"}])
    hidden = base64.b64encode(zlib.compress(pickle.dumps(tests))).decode()
    code = {
        **{"question_id": "a", "question_content": "Add one.", "starter_code": "def f(x):\n"},
        **{"public_test_cases": tests, "private_test_cases": hidden, "difficulty": "hard"},
        **{"metadata": json.dumps({"func_name": "f"})},
    }
    lines(folder / "code.jsonl", code, {**code, "question_id": "b", "private_test_cases": tests})


def _jobs(folder: Path, url: str) -> None:
    live = f"""problems = "problems.jsonl"
generator = "openai:m"
base-url = "{url}"
score = "length"
attempts = 2
first-pause = 0.0
patience = 0.0
allow-commands = true
concurrency = 4
seed = 3
workers = 1
"""
    jobs = {
        "solve": f"""{live}out = "new.jsonl"
budget = 40
width = 2
policy = "default"
costs = "1,10"
""",
        "collect": f"""{live}n = 3
verify = "all"
[runs.a]
out = "a.csv"
[runs.b]
out = "b.jsonl"
n = 2
""",
        "compare": """[compare]
costs = ["1,10"]
orders = "2"
width = "1"
policy = ["adaptive", "verify-all"]
""",
        "report": """[report]
costs = ["1,10"]
orders = "2"
many-orders = "2"
[[report.logs]]
name = "one"
path = "log.csv"
score = "score"
[[report.items]]
id = "t1"
table = "summary"
columns = ["policy"]
""",
        "prices": """[m]
prompt = 0.1
completion = 0.2
[other]
verify_second = 0.1
score_call = 0.01
generate_call = 0.1
""",
    }
    for name, text in jobs.items():
        (folder / f"{name}.toml").write_text(text)


def _made(folder: Path, url: str) -> None:
    """What other commands leave behind."""
    live = ["--generator", "openai:m", "--base-url", url, "--score", "length", "--seed", 3]
    live += ["--allow-commands", "--first-pause", 0, "--patience", 0, "--workers", 1]
    problems, log = folder / "problems.jsonl", folder / "log.csv"
    commands: list[list[Any]] = [
        ["solve", problems, *live, "--budget", 40, "--out", folder / "answers.jsonl"],
        ["verify", problems, "--allow-commands", "-o", folder / "labels.jsonl"],
        ["verify", problems, "--allow-commands", "-o", "/dev/null", "--cache", folder / "v.cache"],
        ["compare", log, "--score", "score", "--orders", 2, "--json", folder / "table.json"],
        ["learn", log, "--score", "score", "-o", folder / "prior.json"],
        ["learn", log, "--score", "score", "--name", "length", "-o", folder / "length.json"],
    ]
    for command in commands:
        ran = here(*command)
        assert ran.code in (0, 1), ran
    (folder / "answers.jsonl.ledger").rename(folder / "answers.ledger")
    for rest in folder.glob("*.ledger.*"):
        if rest.is_file():
            rest.unlink()
