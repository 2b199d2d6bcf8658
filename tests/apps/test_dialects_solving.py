"""`grv solve` with each dialect: solved problems, and one line for each thing that goes wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grv.testing.servers import (
    FakeAnthropic,
    FakeGemini,
    FakeOpenai,
    FakeResponses,
    FakeServer,
)
from support.commands import Ran, here, records, without_outages

KINDS: dict[str, type[FakeServer]] = {
    "openai": FakeOpenai,
    "responses": FakeResponses,
    "anthropic": FakeAnthropic,
    "gemini": FakeGemini,
}
KEYS = {
    "openai": "OPENAI_API_KEY",
    "responses": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "gemini": "GEMINI_API_KEY",
}
every = pytest.mark.parametrize("name", KINDS)
RIGHT = "sk-right-0123456789abcdef"


def text(prompt: str, index: int) -> str:
    """Every third candidate is right."""
    return "It is \\boxed{42}." if index % 3 == 2 else f"It is \\boxed{{{index}}}."


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write("What is 6 * 7?", "What is 40 + 2?", "What is 21 * 2?")
    return tmp_path


def write(*prompts: str) -> None:
    check = {"kind": "math", "answer": "42"}
    lines = [
        json.dumps({"problem": f"p{index}", "prompt": prompt, "check": check}) + "\n"
        for index, prompt in enumerate(prompts)
    ]
    Path("problems").write_text("".join(lines))


def solve(name: str, server: FakeServer, *more: object) -> Ran:
    where = ("--generator", f"{name}:fake", "--base-url", server.url, "--out", "out")
    given = ("--score", "length", "--budget", 200, "--first-pause", 0.01)
    return here("solve", "problems", *where, *given, *more)


def lines(ran: Ran) -> list[str]:
    return without_outages(ran.err).splitlines()


@every
def test_a_file_of_problems_is_solved(name: str) -> None:
    with KINDS[name](text, thinks=3) as server:
        ran = solve(name, server)
    assert (ran.code, lines(ran)) == (0, [])
    answers = records(Path("out"))
    assert [answer["outcome"] for answer in answers] == ["solved"] * 3
    assert "think" not in Path("out").read_text()


@every
def test_too_few_tokens_for_thinking_and_answering(name: str) -> None:
    write("What is 6 * 7?")
    with KINDS[name](text, thinks=20) as server:
        ran = solve(name, server, "--max-tokens", 18, "--budget", 30)
    (line,) = lines(ran)
    assert ran.code == 1
    assert "were dropped (the model spent all its tokens on thinking)" in line
    assert line.endswith("raise --max-tokens, or think less with --effort low")


@every
def test_a_refused_option_is_said_once_and_the_run_goes_on(name: str) -> None:
    field = "temperature"
    with KINDS[name](text, refuses=[field]) as server:
        ran = solve(name, server)
    assert ran.code == 0
    assert lines(ran) == [
        f"{name}:fake refuses temperature: the server's own value holds",
    ]
    assert "refuses temperature" in ran.out  # and again in the summary


@every
def test_a_moderated_prompt_fails_alone(name: str) -> None:
    write("What is 6 * 7?", "Something forbidden")
    with KINDS[name](text) as server:
        ran = solve(name, server)
    (line,) = lines(ran)
    assert ran.code == 1
    assert line.startswith("grv: problem p1 failed: ")
    assert line.endswith("; reword the prompt, or leave this problem out")
    assert {answer["problem"] for answer in records(Path("out"))} >= {"p0"}


@every
def test_an_overloaded_server_is_waited_for(name: str) -> None:
    with KINDS[name](text, overloaded=3) as server:
        ran = solve(name, server)
    assert (ran.code, lines(ran)) == (0, [])


@every
def test_a_wrong_key_is_one_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEYS[name], "sk-wrong-0123456789abcdef")
    with KINDS[name](text, key=RIGHT) as server:
        ran = solve(name, server)
    (line,) = lines(ran)
    assert ran.code == 2
    assert f"check the key in {KEYS[name]}, then run the same command again" in line


@every
def test_an_unknown_model_is_one_line(name: str) -> None:
    with KINDS[name](text, model="other") as server:
        ran = solve(name, server)
    (line,) = lines(ran)
    assert ran.code == 2
    assert "check the name of the model" in line


@every
def test_nothing_is_requested_again_after_the_end(name: str) -> None:
    with KINDS[name](text) as server:
        assert solve(name, server).code == 0
        before = len(server.received)
        assert solve(name, server).code == 0
        assert len(server.received) == before
