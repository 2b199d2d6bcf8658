"""`grv solve` with each dialect: solved problems, and one line for each thing that goes wrong."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from grv.testing.servers import (
    FakeAnthropic,
    FakeGemini,
    FakeOpenai,
    FakeResponses,
    FakeServer,
    FakeText,
    Fault,
)
from support.commands import Ran, ended, here, records, start, without_outages

pytestmark = pytest.mark.slow

KINDS: dict[str, type[FakeServer]] = {
    "openai": FakeOpenai,
    "responses": FakeResponses,
    "anthropic": FakeAnthropic,
    "gemini": FakeGemini,
    "openai-text": FakeText,
}
KEYS = {
    "openai": "OPENAI_API_KEY",
    "responses": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "openai-text": "OPENAI_API_KEY",
}
every = pytest.mark.parametrize("name", KINDS)
RIGHT = "sk-right-0123456789abcdef"


def text(prompt: str, index: int) -> str:
    """Every third candidate is right."""
    return "It is \\boxed{42}." if index % 3 == 2 else f"It is \\boxed{{{index}}}."


def long_text(prompt: str, index: int) -> str:
    """Right, at the end of many words."""
    return "and " * 40 + "so it is \\boxed{42}."


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for variable in {*KEYS.values(), "GOOGLE_API_KEY"}:
        monkeypatch.delenv(variable, raising=False)
    write("What is 6 * 7?", "What is 40 + 2?", "What is 21 * 2?")
    return tmp_path


def write(*prompts: str) -> None:
    check = {"kind": "math", "answer": "42"}
    lines = [
        json.dumps({"problem": f"p{index}", "prompt": prompt, "check": check}) + "\n"
        for index, prompt in enumerate(prompts)
    ]
    Path("problems").write_text("".join(lines))


def command(name: str, server: FakeServer, *more: object) -> list[object]:
    """The command of the guide, with a budget."""
    where = ["--generator", f"{name}:fake", "--base-url", server.url, "-o", "out"]
    return ["solve", "problems", *where, "--budget", 300, "--first-pause", 0.01, *more]


def solve(name: str, server: FakeServer, *more: object) -> Ran:
    return here(*command(name, server, *more))


def lines(ran: Ran) -> list[str]:
    """What is said besides outages and the score."""
    told = without_outages(ran.err).splitlines()
    return [line for line in told if not line.startswith("score: ")]


def cut(number: int) -> Fault | None:
    """Of three answers, one is cut off in the middle of its body."""
    return "cut" if number % 3 == 1 else None


def lost(number: int) -> Fault | None:
    """Of three connections, one is closed before the answer."""
    return "lost" if number % 3 == 1 else None


@dataclass(frozen=True)
class Case:
    """What a server does, and what a run says and returns.

    Attributes:
        server: the options of the fake.
        options: those of the command.
        prompts: the problems, if they are not the usual ones.
        key: the key of the environment; none if empty.
        code: the exit code.
        line: parts of the only line on standard error, in which NAME, KEY and URL stand for the
            dialect, the variable of its key, and the address; none if empty.
        next: part of the last line of the summary.
        lacks: dialects in which this cannot happen.
    """

    server: Mapping[str, Any] = field(default_factory=dict)
    options: tuple[object, ...] = ()
    prompts: tuple[str, ...] = ()
    key: str = ""
    code: int = 0
    line: tuple[str, ...] = ()
    next: str = ""
    lacks: tuple[str, ...] = ()


LARGER = "next: the same command with a larger --max-tokens, or else more money, such as --budget "
AGAIN = "then run the same command again"
CASES = {
    "all is well": Case({"thinks": 3}),
    "thinking takes all tokens": Case(
        {"thinks": 20},
        ("--max-tokens", 18, "--budget", 30),
        ("What is 6 * 7?",),
        code=1,
        line=(
            "were dropped (the model spent all its tokens on thinking)",
            "raise --max-tokens, or think less with --effort low",
        ),
        next=LARGER,
        lacks=("openai-text",),
    ),
    "answers are cut off": Case(
        {"text": long_text},
        ("--max-tokens", 20, "--budget", 60),
        code=1,
        line=(
            "candidates were cut off in the middle, because their tokens ran out",
            "give a larger --max-tokens",
        ),
        next=LARGER,
    ),
    "a field is refused": Case(
        {"refuses": ["temperature"]},
        line=("NAME:fake refuses temperature: the server's own value holds",),
    ),
    "a prompt is moderated": Case(
        prompts=("What is 6 * 7?", "Something forbidden"),
        code=1,
        line=("grv: problem p1 failed: ", "; reword the prompt, or leave this problem out"),
    ),
    "overloaded at first": Case({"overloaded": 3}),
    "overloaded without end": Case(
        {"overloaded": 10**6},
        ("--patience", 0.2),
        code=2,
        line=(
            "grv: NAME:fake: status ",
            "for 0.2 s",
            "When the server is back, run the same command again; --patience sets how long to wait",
        ),
    ),
    "bodies are cut off": Case({"faults": cut}),
    "connections are closed": Case({"faults": lost}),
    "every body is cut off": Case(
        {"faults": lambda number: "cut"},
        ("--attempts", 2),
        code=1,
        line=(
            "grv: problem p",
            " failed: the answer broke off: ",
            "; check the server and what is between: a proxy may close connections too early",
        ),
    ),
    "a wrong key": Case(
        {"key": RIGHT},
        key="sk-wrong-0123456789abcdef",
        code=2,
        line=(f"check the key in KEY, {AGAIN}",),
    ),
    "no key": Case({"key": RIGHT}, code=2, line=(f"check the key in KEY, {AGAIN}",)),
    "an unknown model": Case(
        {"model": "other"},
        code=2,
        line=("status 404", "check the name of the model and the address of the server", AGAIN),
    ),
    "a wrong address": Case(
        {"root": "/elsewhere"},
        ("--base-url", "URL/nowhere"),
        code=2,
        line=("status 404", "check the name of the model and the address of the server", AGAIN),
    ),
}


@every
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_one_line_says_what_to_do(name: str, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    if name in case.lacks:
        return
    if case.key:
        monkeypatch.setenv(KEYS[name], case.key)
    if case.prompts:
        write(*case.prompts)
    with KINDS[name](**{"text": text, **case.server}) as server:
        given = [str(each).replace("URL", server.url) for each in case.options]
        ran = solve(name, server, *given)
    assert ran.code == case.code, ran.err
    told = lines(ran)
    assert len(told) == (1 if case.line else 0), told
    assert case.next in ran.out
    for part in case.line:
        assert part.replace("NAME", name).replace("KEY", KEYS[name]) in told[0]
    assert ".," not in ran.err
    if case.code == 0:
        answers = records(Path("out"))
        assert [answer["outcome"] for answer in answers] == ["solved"] * 3
        assert "think" not in Path("out").read_text()
    assert here("runs", "check", "out.ledger").code == 0
    if "faults" in case.server and case.code == 0:
        assert sum(answer["lost"].get("generate", 0) for answer in records(Path("out"))) > 0


@every
def test_nothing_is_requested_again_after_the_end(name: str) -> None:
    with KINDS[name](text) as server:
        assert solve(name, server).code == 0
        before = len(server.received)
        assert solve(name, server).code == 0
        assert len(server.received) == before


def slow(prompt: str, index: int) -> str:
    """Nothing is right before the 30th candidate."""
    time.sleep(0.02)
    return "It is \\boxed{42}." if index >= 30 else f"It is \\boxed{{{100 + index}}}."


@every
def test_nothing_is_paid_twice_after_a_kill(name: str) -> None:
    prices = {"prompt": 3.0, "completion": 15.0}
    Path("prices.toml").write_text('["fake"]\nprompt = 3.0\ncompletion = 15.0\n')
    with KINDS[name](slow, prices=prices) as server:
        asked = command(name, server, "--prices", "prices.toml", "--concurrency", 4)
        process = start(*asked)
        while process.poll() is None and server.made < 15:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        ended(process)
        assert 15 <= server.made < 60, "it was killed in the middle"
        ran = here(*asked)
    assert ran.code == 0, ran.err
    answers = records(Path("out"))
    assert [answer["outcome"] for answer in answers] == ["solved"] * 3
    generated = sum(answer["generated"] for answer in answers)
    unrecorded = sum(answer["lost"].get("generate", 0) for answer in answers)
    assert server.made <= generated + unrecorded
    reported = sum(answer["usage"]["dollars"] for answer in answers)
    assert reported <= server.charged + 1e-9
    if unrecorded == 0:
        assert reported == pytest.approx(server.charged)
    assert here("runs", "check", "out.ledger").code == 0
