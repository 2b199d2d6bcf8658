"""`grv problems`: datasets in the formats they are published in, made up here."""

from __future__ import annotations

import base64
import gzip
import json
import os
import pickle
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grv.apps import cli
from grv.backends.problems.datasets import read_dataset
from grv.backends.problems.files import read_problems
from grv.backends.protocols import Problem
from grv.backends.verifiers.pool import CheckVerifier
from grv.core.errors import UsageError
from grv.core.values import Verdict


def packed(value: object, protocol: int = 4) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(value, protocol))).decode()


def lcb(name: str, tests: list[dict[str, str]], **fields: Any) -> dict[str, Any]:
    public, hidden = json.dumps(tests[:1]), packed(json.dumps(tests[1:]))
    return {
        "question_title": name,
        "question_content": f"Solve {{{name}}}: double the number.",
        "platform": "atcoder",
        "question_id": name,
        "contest_date": "2024-01-01T00:00:00",
        "starter_code": "",
        "difficulty": "hard",
        "public_test_cases": public,
        "private_test_cases": hidden,
        "metadata": "{}",
        **fields,
    }


def stdin(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    return [{"input": given, "output": said, "testtype": "stdin"} for given, said in pairs]


DOUBLE = lcb("double", stdin(("1\n", "2\n"), ("4\n", "8\n")))
METHOD = lcb(
    "method",
    [
        {"input": "[1, 2]\n3", "output": "6", "testtype": "functional"},
        {"input": "[]\n1", "output": "1", "testtype": "functional"},
    ],
    starter_code="class Solution:\n    def total(self, xs: List[int], y: int) -> int:\n        ",
    metadata=json.dumps({"func_name": "total"}),
    difficulty="medium",
)
EASY = lcb("easy", stdin(("1", "1")), difficulty="easy")


def lines(path: Path, *records: object) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def made(tmp_path: Path, *arguments: str) -> dict[str, Problem]:
    out = tmp_path / "problems.jsonl"
    assert cli.run(["problems", *arguments, "-o", str(out)]) == 0
    return {problem.id: problem for problem in read_problems(str(out))}


def refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    out = tmp_path / "problems.jsonl"
    assert cli.run(["problems", *arguments, "-o", str(out)]) == 2
    assert not out.exists()
    return capsys.readouterr().err


def verdict(problem: Problem, text: str) -> Verdict:
    with CheckVerifier(workers=1) as verifier:
        return verifier.find(problem, text).verdict


@pytest.mark.slow
def test_livecodebench_with_hidden_tests_of_both_kinds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = lines(tmp_path / "test.jsonl", DOUBLE, METHOD, EASY)
    problems = made(tmp_path, "livecodebench", file, "--difficulty", "medium,hard")
    out = capsys.readouterr().out
    assert "2 problems (1 hard, 1 medium)" in out
    assert "left out: 1 easy" in out
    double, method = problems["double"], problems["method"]
    assert len(double.check["tests"]) == 2
    assert double.prompt.startswith("Solve {double}: double the number.")
    assert double.prompt.endswith("```python\n")
    assert (double.question, double.code) == ("Solve {double}: double the number.", "")
    assert method.code.endswith("-> int:")
    assert verdict(double, "print(2 * int(input()))") is Verdict.PASSED
    assert verdict(double, "print(2)") is Verdict.FAILED  # passes the public test
    assert method.check["entry_point"] == "total"
    assert "def total(self" in method.prompt
    right = "class Solution:\n    def total(self, xs, y):\n        return sum(xs) + y"
    assert verdict(method, right) is Verdict.PASSED
    assert verdict(method, right.replace("+ y", "+ 3")) is Verdict.FAILED


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_protocol_of_pickle_and_plain_json_are_read(tmp_path: Path, protocol: int) -> None:
    hidden = json.dumps(stdin(("é\n", "long " * 200)))
    for value in (packed(hidden, protocol), hidden, json.loads(hidden)):
        file = lines(tmp_path / "t.jsonl", {**DOUBLE, "private_test_cases": value})
        problem = made(tmp_path, "livecodebench", file)["double"]
        assert problem.check["tests"][1]["input"] == "é\n"


class Evil:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (["[]"], "refused"),
        (b"[]", "refused"),
        ({"a": "[]"}, "refused"),
        (3, "refused"),
        ("not JSON", "is not JSON"),
        ("{}", "is not a list"),
    ],
)
def test_a_pickle_of_anything_but_a_text_of_tests_is_refused(
    value: object, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = lines(tmp_path / "t.jsonl", {**DOUBLE, "private_test_cases": packed(value)})
    assert said in refused(tmp_path, capsys, "livecodebench", file)


def _peak_of(function: Callable[[], object]) -> int:
    """The bytes that Python allocates at most while a function runs."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize(
    "pickled",
    [
        pickle.dumps("[" + " " * (300 << 20) + "]"),
        b"\x80\x04" + b"\x94" * (8 << 20) + b".",
    ],
    ids=["a long text", "many steps"],
)
def test_a_record_is_refused_before_it_fills_the_memory(tmp_path: Path, pickled: bytes) -> None:
    hidden = base64.b64encode(zlib.compress(pickled)).decode()
    file = lines(tmp_path / "t.jsonl", {**DOUBLE, "private_test_cases": hidden})

    def read() -> None:
        with pytest.raises(UsageError, match=r"t.jsonl:1: private_test_cases (unpacks|is a pick)"):
            list(read_dataset("livecodebench", [str(file)]))

    assert _peak_of(read) < 3 * (64 << 20)


def test_the_limit_of_a_record_can_be_raised(tmp_path: Path) -> None:
    file = lines(tmp_path / "t.jsonl", DOUBLE)
    with pytest.raises(UsageError, match=r"more than 10 bytes.*read_dataset\(..., largest=BYTES"):
        list(read_dataset("livecodebench", [str(file)], largest=10))
    assert len(list(read_dataset("livecodebench", [str(file)], largest=1 << 20))) == 1


def test_a_pickle_is_never_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trap = tmp_path / "trap"
    file = lines(tmp_path / "t.jsonl", {**DOUBLE, "private_test_cases": packed(Evil(trap))})
    assert "refused" in refused(tmp_path, capsys, "livecodebench", file)
    assert not trap.exists()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"private_test_cases": "%%%"}, "cannot be unpacked"),
        ({"private_test_cases": base64.b64encode(b"torn").decode()}, "cannot be unpacked"),
        ({"private_test_cases": packed("[]")[:24]}, "cut off"),
        ({"public_test_cases": "[3]"}, "not a list of tests"),
        ({"public_test_cases": "[]", "private_test_cases": "[]"}, "at least one test"),
        ({"question_content": None}, "field question_content is missing"),
        ({"public_test_cases": METHOD["public_test_cases"]}, "no func_name"),
        (
            {"metadata": "{", "public_test_cases": METHOD["public_test_cases"]},
            "metadata is not JSON",
        ),
    ],
)
def test_a_wrong_record_is_named_with_its_line(
    fields: dict[str, Any], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = lines(tmp_path / "t.jsonl", EASY, {**DOUBLE, **fields})
    err = refused(tmp_path, capsys, "livecodebench", file)
    assert said in err
    assert f"{file}:2: " in err


def test_hmmt_as_published_and_with_names(tmp_path: Path) -> None:
    published = {"problem_idx": 1, "problem": "Compute $1+1$.", "answer": "2"}
    first = lines(tmp_path / "feb_2024.jsonl", published)
    second = lines(tmp_path / "feb_2025.jsonl", {**published, "answer": 2})
    named = lines(
        tmp_path / "n.jsonl", {"problem": "h1", "prompt": "What is {x}?", "answer": "\\frac{1}{2}"}
    )
    problems = made(tmp_path, "hmmt", first, second, named, "--match", "exact")
    assert list(problems) == ["feb_2024/1", "feb_2025/1", "h1"]
    assert problems["h1"].prompt.startswith("What is {x}?\n\nReason")
    assert problems["h1"].check["match"] == "exact"
    assert verdict(problems["feb_2025/1"], "so \\boxed{2}") is Verdict.PASSED
    assert verdict(problems["feb_2025/1"], "so \\boxed{3}") is Verdict.FAILED


def test_two_files_that_are_called_alike_get_the_names_of_their_folders(tmp_path: Path) -> None:
    files = []
    for year in ("2024", "2025"):
        folder = tmp_path / f"feb_{year}" / "data"
        folder.mkdir(parents=True)
        record = {"problem_idx": 1, "problem": f"In {year}?", "answer": "2"}
        files.append(lines(folder / "train.jsonl", record))
    other = lines(tmp_path / "nov.jsonl", {"problem_idx": 1, "problem": "?", "answer": "2"})
    problems = made(tmp_path, "hmmt", *files, other, "--match", "published")
    names = ["feb_2024/data/train/1", "feb_2025/data/train/1", "nov/1"]
    assert list(problems) == names
    assert verdict(problems[names[0]], "so \\boxed{2}") is Verdict.PASSED
    assert verdict(problems[names[0]], "The answer is 2.") is Verdict.FAILED


def test_hmmt_from_parquet(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "feb.parquet"
    table = {"problem_idx": [1, 2], "problem": ["a", "b"], "answer": ["1", "2"]}
    pq.write_table(pa.table(table), path)
    assert list(made(tmp_path, "hmmt", str(path))) == ["feb/1", "feb/2"]


@pytest.mark.slow
def test_humaneval_compressed_with_a_prompt_of_ones_own(tmp_path: Path) -> None:
    record = {
        "task_id": "HumanEval/0",
        "prompt": 'def twice(x):\n    """Twice x."""\n',
        "entry_point": "twice",
        "test": "def check(candidate):\n    assert [candidate(2), candidate(3)] == [4, 6]\n",
        "canonical_solution": "    return 2 * x\n",
    }
    path = tmp_path / "HumanEval.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(record).encode()))
    problem = made(tmp_path, "humaneval", str(path))["HumanEval/0"]
    assert problem.prompt == 'def twice(x):\n    """Twice x."""'
    for text in (
        "    return 2 * x",
        "\n    return 2 * x",
        "```python\ndef twice(x): return 2 * x\n```",
    ):
        assert verdict(problem, text) is Verdict.PASSED
    own = made(tmp_path, "humaneval", str(path), "--prompt", "Finish this:\n{code}")["HumanEval/0"]
    assert own.prompt.startswith("Finish this:\ndef twice")
    assert verdict(own, "\n    return x * x") is Verdict.FAILED


def test_what_cannot_be_is_said_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = lines(tmp_path / "t.jsonl", DOUBLE)
    torn = tmp_path / "torn.jsonl.gz"
    torn.write_bytes(gzip.compress(b"{}" * 1000)[:20])
    bad = tmp_path / "bad.jsonl"
    bad.write_text("{\n")
    broken = tmp_path / "broken.parquet"
    broken.write_text("no")
    for arguments, said in (
        (("gsm8k", file), "give one of hmmt, livecodebench, humaneval"),
        (("gsm8k", file), "for other data, write a line of JSON per problem, as grv init server"),
        (("livecodebench", file, "--difficulty", "easy"), "no problem has it; there are 1 hard"),
        (("livecodebench", file, file), "problem 'double' is also at"),
        (("livecodebench", file, "--prompt", "Hello"), "must contain {question} or {code}"),
        (("livecodebench", str(tmp_path / "no")), "cannot be read"),
        (("livecodebench", os.devnull), "no problems"),
        (("humaneval", str(torn)), "cannot be read"),
        (("humaneval", str(bad)), "bad.jsonl:1: not a line of JSON"),
        (("hmmt", lines(tmp_path / "l.jsonl", [3])), "l.jsonl:1: a line must be an object"),
        (("hmmt", str(broken)), "not a readable Parquet file"),
        (("humaneval", lines(tmp_path / "h.jsonl", {"prompt": "x"})), "there is no task_id"),
    ):
        assert said in refused(tmp_path, capsys, *arguments)
