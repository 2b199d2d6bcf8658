"""Proofs in every command that verifies: solve, collect and serve."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import openai
import pytest

from grv.backends.verifiers.proofs.provers import installed
from grv.logs.readers import read_log
from support.commands import here
from support.servers import FaultyServer, Received
from support.serving import Model, serving, write_job

pytestmark = pytest.mark.slow
ROOT = {
    "kind": "proof",
    "system": "smt",
    "statement": "(synth-fun root () Int) (constraint (= (* root root) 1764))",
}


def proposed(request: Received, seed: int) -> str:
    place = seed % 5
    return f"```smt2\n(define-fun root () Int {40 + place})\n```" if place else "It is 42."


class Proposing(Model):
    """A model, one in five of whose candidates is right."""

    def _numbered(self, request: Received, seed: int) -> str:
        return proposed(request, seed)


@pytest.fixture(autouse=True)
def solver() -> None:
    if isinstance(missing := installed()["smt"], str):
        pytest.skip(missing)


def problems(folder: Path) -> Path:
    file = folder / "problems.jsonl"
    record = {"problem": "root", "prompt": "The root of 1764?", "check": ROOT}
    file.write_text(json.dumps(record) + "\n")
    return file


def test_solve_finds_a_proof_and_refutes_what_is_none(tmp_path: Path) -> None:
    with FaultyServer(text=proposed) as server:
        given = ["--generator", "openai:m", "--base-url", server.url, "--ledger", tmp_path / "l"]
        given += ["--policy", "verify-all", "--budget", "200", "--out", tmp_path / "out.json"]
        ran = here("solve", problems(tmp_path), *given)
    assert ran.code == 0, ran.err
    (row,) = [json.loads(line) for line in (tmp_path / "out.json").read_text().splitlines()]
    assert row["answer_value"] == "(define-fun root () Int 42)"


def test_collect_writes_verdicts_on_proofs(tmp_path: Path) -> None:
    with FaultyServer(text=proposed) as server:
        given = ["--generator", "openai:m", "--base-url", server.url, "-n", "10"]
        ran = here("collect", problems(tmp_path), *given, "--out", tmp_path / "log.jsonl")
    assert ran.code == 0, ran.err
    (problem,) = read_log(str(tmp_path / "log.jsonl")).problems
    assert problem.passed.tolist().count(True) >= 1
    assert problem.passed.tolist().count(False) >= 1


def test_a_client_of_a_server_may_ask_for_a_proof(tmp_path: Path) -> None:
    with Proposing() as model:
        write_job(tmp_path, model, policy="verify-all", width=1)
        with serving(tmp_path) as server, openai.OpenAI(base_url=server.url, api_key="x") as client:

            def ask(**changes: Any) -> Any:
                return client.chat.completions.create(
                    model="m",
                    messages=[{"role": "user", "content": "The root of 1764?"}],
                    extra_body={"grv": {"check": ROOT | changes}},
                )

            assert "42" in ask().choices[0].message.content
            with pytest.raises(openai.BadRequestError, match=r"statement is made of"):
                ask(statement="(exit)")
