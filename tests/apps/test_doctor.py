from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from grv.apps.doctor import doctor
from grv.testing.servers import (
    FakeAnthropic,
    FakeGemini,
    FakeOpenai,
    FakeResponses,
    FakeServer,
    FakeText,
)
from support.commands import here, refuses

app = typer.Typer()
app.command()(doctor)


@pytest.mark.soak
@pytest.mark.parametrize("level", ["strict", "jail"])
def test_all_is_well_here(level: str) -> None:
    result = CliRunner().invoke(app, ["--isolation", level, "--verbose"])
    assert result.exit_code == 0, result.output
    assert result.output.endswith("all is well\n")
    assert f"isolation {level}: landlock" in result.output
    assert "ok  fork bomb (function): failed" in result.output


def test_there_is_nothing_to_examine_without_a_jail() -> None:
    result = CliRunner().invoke(app, ["--isolation", "unsafe"])
    assert result.exit_code != 0


def answered(prompt: str, index: int) -> str:
    return '{"sum": 2}'


ALL: dict[str, Any] = dict.fromkeys(("n", "logprobs", "seed", "schema", "usage"), True)
ALL |= {"cost": False, "cancel": None}


@pytest.mark.parametrize(
    ("spec", "server", "changes", "requests"),
    [
        ("openai", FakeOpenai(answered, cost=0.25), {"cost": True}, 1),
        (
            "openai",
            FakeOpenai(refuses=["logprobs", "response_format", "seed"]),
            {"logprobs": False, "schema": False, "seed": False},
            4,
        ),
        (
            "openai",
            FakeOpenai(answered, most=1, logprobs=False),
            {"n": False, "logprobs": False},
            1,
        ),
        ("openai", FakeOpenai(), {"schema": False}, 1),
        ("responses", FakeResponses(answered), {"n": False, "seed": False}, 1),
        (
            "anthropic",
            FakeAnthropic(answered),
            {"n": False, "seed": False, "logprobs": False},
            1,
        ),
        ("gemini", FakeGemini(answered), {}, 1),
        ("openai-text", FakeText(answered), {"schema": False}, 2),
        (
            "gemini",
            FakeGemini(answered, refuses=["candidateCount", "responseLogprobs"]),
            {"n": False, "logprobs": False},
            3,
        ),
    ],
)
def test_what_a_server_can_do(
    tmp_path: Path, spec: str, server: FakeServer, changes: dict[str, Any], requests: int
) -> None:
    saved = tmp_path / "abilities.json"
    with server:
        given = ("--generator", f"{spec}:fake", "--base-url", server.url, "--json", saved)
        ran = here("doctor", *given)
        assert len(server.received) == requests

    assert (ran.code, ran.err) == (0, "")
    assert json.loads(saved.read_text()) == ALL | changes
    lines = ran.out.splitlines()
    assert [line.split()[0] for line in lines] == list(ALL)
    assert "unknown  a cancelled call counts as paid" in lines[-1]


def test_a_server_that_cannot_be_examined_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-wrong-0123456789abcdef")
    with FakeAnthropic(key="sk-right-0123456789abcdef") as server:
        given = ["doctor", "--base-url", server.url, "--generator"]
        refuses([*given, "anthropic:fake"], "status 401", "check the key in ANTHROPIC_API_KEY")
    with FakeOpenai() as server:
        given = ["doctor", "--base-url", server.url, "--generator"]
        refuses([*given, "openai:none"], "status 404", "check the name of the model")
    refuses(["doctor", "--generator", "my.py:f"], "has no server to ask")
    refuses(["doctor", "--json", "x"], "--json needs --generator SPEC")
