"""`grv schema`: what real files fit, and what they do not."""

from __future__ import annotations

import functools
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from grv.apps.options.schema import SCHEMAS, schema
from grv.backends.problems.files import read_problems
from grv.backends.protocols import Problem
from grv.backends.verifiers.checks import KINDS, parse_check
from grv.core.errors import UsageError
from support.commands import here, refuses
from support.environments import ROOT

JOBS = [
    *sorted((ROOT / "paper").glob("*.toml")),
    ROOT / "examples" / "serve.toml",
    ROOT / "deploy" / "job.toml",
    *sorted((ROOT / "src/grv/data/start").glob("*/job.toml")),
]


@functools.cache  # a schema is large, and it is checked itself
def validator(name: str) -> jsonschema.Draft202012Validator:
    made = schema(name)
    jsonschema.Draft202012Validator.check_schema(made)
    return jsonschema.Draft202012Validator(made)


def faults(name: str, data: Any) -> list[str]:
    return [f"{each.json_path}: {each.message}" for each in validator(name).iter_errors(data)]


@pytest.mark.parametrize("path", JOBS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_real_job_files_fit(path: Path) -> None:
    assert faults("job", tomllib.loads(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "job",
    [
        {"solve": {"budgett": 1}},
        {"solve": {"max-tokens": "many"}},
        {"solve": {"isolation": "none"}},
        {"solve": {"width": 0}},
        {"compare": {"generator": "openai:m"}},
        {"genrator": "openai:m"},
    ],
)
def test_mistakes_in_a_job_file_do_not_fit(job: dict[str, Any]) -> None:
    assert faults("job", job) != []


def test_real_problems_fit() -> None:
    files = [ROOT / "src/grv/data/demo.jsonl", *(ROOT / "src/grv/data/start").glob("*/*.jsonl")]
    for path in files:
        assert [*read_problems(str(path))]
        for line in path.read_text(encoding="utf-8").splitlines():
            assert faults("problems", json.loads(line)) == []


def test_every_check_of_the_reference_fits() -> None:
    page = (ROOT / "docs" / "reference" / "checks.md").read_text(encoding="utf-8")
    seen = set()
    for text in re.findall(r"^```json\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        for line in text.splitlines():
            record = json.loads(line)
            check = record.get("check", record)
            seen.add(check["kind"])
            assert faults("problems", {"problem": "a", "prompt": "", "check": check}) == []
    assert seen == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_the_fields_of_a_kind_are_those_that_its_parser_knows(kind: str) -> None:
    """The parser refuses an unknown field by its name, and none of the fields of the table."""
    record: dict[str, Any] = {"kind": kind, **dict.fromkeys(KINDS[kind].fields), "zzz": 1}
    with pytest.raises(UsageError) as refused:
        parse_check(Problem("a", "", record))

    if "labels" not in record:
        assert "zzz" in str(refused.value)
    assert faults("problems", {"problem": "a", "prompt": "", "check": record}) != []


def test_files_of_clients() -> None:
    key = f"sha256:{'0' * 64}"
    assert faults("clients", {"clients": {"a": {"key": key, "budget": 2, "review": True}}}) == []
    assert faults("clients", {"clients": {"a": {"key-env": "KEY"}}}) == []
    for wrong in ({"key": "plain"}, {}, {"key": key, "key_env": "K"}, {"key": key, "buget": 1}):
        assert faults("clients", {"clients": {"a": wrong}}) != []


def test_answers_of_a_real_run_fit(tmp_path: Path) -> None:
    problems = tmp_path / "problems.jsonl"
    problems.write_text('{"problem": "a", "prompt": "2 + 2"}\n')
    code = tmp_path / "my.py"
    code.write_text("def make(problem): return '4'\n\ndef right(problem, text): return True\n")
    out = tmp_path / "answers.jsonl"
    words = ["solve", problems, "--generator", f"{code}:make", "--verifier", f"{code}:right"]
    ran = here(*words, "--score", "length", "--budget", 50, "-o", out)

    assert ran.code == 0, ran.err
    for line in out.read_text().splitlines():
        assert faults("answers", json.loads(line)) == []


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_command_prints_the_schema(name: str) -> None:
    assert json.loads(here("schema", name).out) == schema(name)


def test_another_file_is_refused() -> None:
    assert "did you mean clients" in refuses(["schema", "client"], "job, problems")
