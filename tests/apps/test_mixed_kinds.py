"""One problem of each kind of check in one file, through `grv verify`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from grv.backends.verifiers.checks import KINDS
from grv.backends.verifiers.proofs import provers
from grv.testing import FakeLean, LeanAnswer
from support.commands import here

pytestmark = pytest.mark.slow
FUNCTION = "def double(x):\n    return {} * x"
THEORY = "$c |- wff ( -> ) $. $v P Q $. wp $f wff P $. wq $f wff Q $."
THEORY += " wim $a wff ( P -> Q ) $. id $a |- ( P -> P ) $."
# A check of each kind, a right and a wrong candidate.
CASES: list[tuple[dict[str, Any], str, str]] = [
    ({"kind": "stdin", "tests": [{"input": "2", "output": "4"}]}, "print(4)", "print(5)"),
    (
        {"kind": "function", "entry_point": "double", "tests": [{"args": [2], "expected": 4}]},
        FUNCTION.format(2),
        FUNCTION.format(3),
    ),
    (
        {
            "kind": "asserts",
            "entry_point": "double",
            "test": "def check(f):\n    assert f(2) == 4",
        },
        FUNCTION.format(2),
        FUNCTION.format(3),
    ),
    (
        {"kind": "run", "language": "python", "tests": [{"input": "2", "output": "4"}]},
        "print(4)",
        "print(5)",
    ),
    ({"kind": "math", "answer": "1/2"}, "\\boxed{0.5}", "\\boxed{2}"),
    ({"kind": "text", "contains_all": ["tea"]}, "Some tea.", "Some coffee."),
    ({"kind": "schema", "schema": {"type": "object"}}, '{"a": 1}', "[1]"),
    (
        {
            "kind": "sql",
            "engine": "sqlite",
            "schema": "CREATE TABLE t (a INTEGER NOT NULL); INSERT INTO t VALUES (1), (2);",
            "reference": "SELECT a FROM t WHERE a > 1",
        },
        "SELECT a FROM t WHERE NOT a <= 1",
        "SELECT a FROM t",
    ),
    (
        {
            "kind": "all",
            "checks": [{"kind": "text", "contains_none": ["tea"]}, {"kind": "math", "answer": "4"}],
        },
        "\\boxed{4}",
        "\\boxed{4} tea",
    ),
    (
        {
            "kind": "first",
            "checks": [{"kind": "math", "answer": "4"}, {"kind": "text", "contains_all": ["so"]}],
        },
        "so \\boxed{4}",
        "\\boxed{4}",
    ),
    ({"kind": "command", "jail": True, "argv": ["grep", "-q", "tea", "{}"]}, "tea", "coffee"),
    (
        {
            "kind": "proof",
            "system": "metamath",
            "theory": THEORY,
            "statement": "idd $p |- ( ( P -> Q ) -> ( P -> Q ) )",
        },
        "wp wq wim id",
        "wp id",
    ),
    (
        {
            "kind": "proof",
            "system": "smt",
            "statement": "(synth-fun root () Int) (constraint (= (* root root) 1764))",
        },
        "(define-fun root () Int 42)",
        "(define-fun root () Int 24)",
    ),
    (
        {"kind": "proof", "system": "lean", "statement": "theorem two : 1 + 1 = 2"},
        "by rfl",
        "by simp_all",
    ),
]
# They need a server, a person, a model, a repository, a container.
ELSEWHERE = {"gym", "http", "human", "judge", "repo", "harbor"}


def test_a_file_with_every_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("re2", "jsonschema"):
        pytest.importorskip(name)
    said = "'two' does not depend on any axioms"
    lean = FakeLean(tmp_path / "lean", [LeanAnswer("by rfl", axioms=said)])
    monkeypatch.setenv("PATH", f"{lean.programs}:/usr/bin:/bin:/usr/local/bin")
    for missing in provers.installed().values():
        if isinstance(missing, str):
            pytest.skip(missing)
    assert {check["kind"] for check, _, _ in CASES} | ELSEWHERE == set(KINDS)
    file = tmp_path / "candidates.jsonl"
    with file.open("w") as lines:
        for number, (check, right, wrong) in enumerate(CASES):
            name = f"{number} {check.get('system', check['kind'])}"
            record = {"problem": name, "check": check, "candidates": [right, wrong]}
            lines.write(json.dumps(record) + "\n")
    ran = here("verify", file, "--out", tmp_path / "verdicts.jsonl", "--workers", "2")
    assert ran.code == 0, ran.err
    rows = [json.loads(line) for line in (tmp_path / "verdicts.jsonl").read_text().splitlines()]
    misjudged = [row for row in rows if (row["verdict"] == "passed") != (row["candidate"] == 0)]
    assert not misjudged
    assert len(rows) == 2 * len(CASES)
    assert not [row for row in rows if row["verdict"] == "broken"]
    again = here("verify", file, "--out", tmp_path / "verdicts.jsonl")
    assert "0 verified in" in again.out
