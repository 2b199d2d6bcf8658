"""The commands in docs/guide/models.md run, each against a fake of its provider."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from grv.backends.generators import INSTEAD_OF
from grv.testing.compatible import COMPATIBLE, Compatible
from grv.testing.servers import (
    FakeAnthropic,
    FakeGemini,
    FakeOpenai,
    FakeResponses,
    FakeServer,
)
from support.commands import Ran, here, records, without_outages

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "models.md"
KEY = "sk-right-0123456789abcdef"
OWN: dict[str, type[FakeServer]] = {
    "OpenAI": FakeResponses,
    "Anthropic": FakeAnthropic,
    "Gemini": FakeGemini,
}
VARIABLES = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY")
ADDRESSES = ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL")


@dataclass(frozen=True)
class Line:
    """A line of the table: a provider, the variable with its key, and its command."""

    provider: str
    variables: tuple[str, ...]
    words: tuple[str, ...]

    @property
    def spec(self) -> str:
        return self.words[self.words.index("--generator") + 1]

    @property
    def model(self) -> str:
        return self.spec.partition(":")[2]

    @property
    def url(self) -> str | None:
        return (
            self.words[self.words.index("--base-url") + 1] if "--base-url" in self.words else None
        )


def lines() -> list[Line]:
    found = []
    for row in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if len(cells) != 3 or not cells[2].startswith("`grv solve"):
            continue
        variables = tuple(re.findall(r"`([A-Z_]+)`", cells[1]))
        found.append(Line(cells[0], variables, tuple(shlex.split(cells[2].strip("`")))))
    return found


LINES = lines()


def each(providers: Callable[[Line], bool]) -> pytest.MarkDecorator:
    """The lines of some providers."""
    chosen = [line for line in LINES if providers(line)]
    return pytest.mark.parametrize("line", chosen, ids=[line.provider for line in chosen])


def like(line: Line) -> Compatible:
    """How the provider differs from OpenAI; not at all if it has an interface of its own."""
    return COMPATIBLE.get(line.provider, COMPATIBLE["OpenAI"])


every = each(lambda line: True)


def text(prompt: str, index: int) -> str:
    """Every third candidate is right."""
    return "It is \\boxed{42}." if index % 3 == 2 else f"It is \\boxed{{{index}}}."


def fake(line: Line, key: str | None = KEY) -> FakeServer:
    """A server as the provider of a line has it."""
    if line.provider in OWN:
        return OWN[line.provider](text, key=key, model=line.model)
    name = "OpenAI" if line.provider == "OpenAI, chats" else line.provider
    return FakeOpenai(text, key=key, model=line.model, like=name, prices={"completion": 10.0})


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in (*VARIABLES, *ADDRESSES, "OPENAI_CUSTOM_HEADERS"):
        monkeypatch.delenv(name, raising=False)
    write("What is 6 * 7?", "What is 40 + 2?")
    return tmp_path


def write(*prompts: str) -> None:
    check = {"kind": "math", "answer": "42"}
    problems = [
        {"problem": f"p{index}", "prompt": prompt, "check": check}
        for index, prompt in enumerate(prompts)
    ]
    Path("problems.jsonl").write_text("".join(json.dumps(each) + "\n" for each in problems))


def set_key(line: Line, monkeypatch: pytest.MonkeyPatch, key: str = KEY) -> None:
    """Set the variable that the line names first, if there is one."""
    if line.variables:
        is_header = line.variables[0] == "OPENAI_CUSTOM_HEADERS"
        monkeypatch.setenv(line.variables[0], f"api-key: {key}" if is_header else key)


def arguments(line: Line, server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The words of the line's command, with the fake's host in place of the provider's."""
    words = list(line.words[1:])
    host = urlsplit(server.url).netloc
    if line.url is None:
        for name in ADDRESSES:
            monkeypatch.setenv(name, server.url)
    else:
        given = urlsplit(line.url)
        words[words.index(line.url)] = given._replace(scheme="http", netloc=host).geturl()
    return words


def run(line: Line, server: FakeServer, monkeypatch: pytest.MonkeyPatch, *more: object) -> Ran:
    return here(*arguments(line, server, monkeypatch), "--budget", 300, *more)


def said(ran: Ran) -> list[str]:
    """What is said besides outages and the score."""
    told = without_outages(ran.err).splitlines()
    return [line for line in told if not line.startswith("score: ")]


def test_every_provider_has_a_line() -> None:
    named = {line.provider for line in LINES}
    assert named == {*OWN, "OpenAI, chats", *COMPATIBLE}


def test_the_name_of_a_provider_says_what_to_write() -> None:
    for name, instead in INSTEAD_OF.items():
        ran = here("solve", "problems.jsonl", "-o", "answers.jsonl", "--generator", f"{name}:m")
        assert (ran.code, ran.err) == (2, f"grv: for {name}, write --generator {instead}\n")
        provider = {"claude": "Anthropic", "google": "Gemini"}.get(name, name)
        (line,) = (line for line in LINES if line.provider.casefold() == provider.casefold())
        assert " ".join(line.words).endswith(f"--generator {instead}")


@every
def test_the_command_of_each_provider(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    set_key(line, monkeypatch)
    with fake(line) as server:
        ran = run(line, server, monkeypatch)
    assert ran.code == 0, ran.err
    assert said(ran) == []
    assert [answer["outcome"] for answer in records(Path("answers.jsonl"))] == ["solved"] * 2
    if line.provider == "OpenRouter":
        assert f"{server.charged:.4g} dollars" in ran.out
        assert server.charged > 0
    if line.provider == "Azure, dated versions":
        (received, *_) = server.received
        assert received.query == "api-version=2024-10-21"
        assert "authorization" not in received.headers


def test_more_candidates_than_llama_cpp_has_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    (line,) = (line for line in LINES if line.provider == "llama.cpp")
    with fake(line, key=None) as server:
        ran = run(line, server, monkeypatch, "--policy", "fixed(8, 8)")
        asked = [received.body.get("n", 1) for received in server.received]
    assert ran.code == 0, ran.err
    assert "openai:MODEL refuses n: grv sends one request for each candidate" in ran.err
    assert set(asked) == {8, 1}


@each(lambda line: bool(line.variables))
def test_a_wrong_key_at_each_provider(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    set_key(line, monkeypatch, "sk-wrong-0123456789abcdef")
    with fake(line) as server:
        ran = run(line, server, monkeypatch)
    assert ran.code == 2
    (told,) = said(ran)
    assert "check the key in" in told
    assert "sk-wrong" not in ran.err


@each(lambda line: not like(line).any_model)
def test_an_unknown_model_at_each_provider(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    set_key(line, monkeypatch)
    with fake(line) as server:
        server.model = "another"
        ran = run(line, server, monkeypatch)
        assert len(server.received) <= 2  # one for each problem
    assert ran.code == 2
    (told,) = said(ran)
    assert "check the name of the model" in told


@pytest.mark.slow
@every
def test_an_overloaded_server_of_each_provider(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    set_key(line, monkeypatch)
    with fake(line) as server:
        server.overloaded = 2
        ran = run(line, server, monkeypatch, "--first-pause", 0.01)
    assert ran.code == 0, ran.err


@pytest.mark.slow
@each(lambda line: like(line).moderates)
def test_a_moderated_prompt_at_each_provider(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    write("What is 6 * 7?", "Something forbidden")
    set_key(line, monkeypatch)
    with fake(line) as server:
        ran = run(line, server, monkeypatch)
    assert ran.code == 1
    (told,) = said(ran)
    assert told.startswith("grv: problem p1 failed: ")
    assert told.endswith("; reword the prompt, or leave this problem out")


@pytest.mark.slow
@every
def test_a_refused_field_at_each_provider(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    set_key(line, monkeypatch)
    with fake(line) as server:
        server.refuses = frozenset({"temperature"})
        ran = run(line, server, monkeypatch)
    assert ran.code == 0, ran.err
    assert f"{line.spec} refuses temperature: the server's own value holds" in said(ran)


ABILITIES = dict.fromkeys(("n", "logprobs", "seed", "schema", "usage"), True)
LACKS = {
    "OpenAI": {"n", "seed"},
    "Anthropic": {"n", "seed", "logprobs"},
    "OpenRouter": {"n"},
    "Ollama": {"n"},
}


@every
def test_the_doctor_says_what_each_server_can_do(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_key(line, monkeypatch)
    with fake(line) as server:
        server.text = lambda prompt, index: '{"sum": 2}'
        words = arguments(line, server, monkeypatch)
        where = words[words.index("--generator") :]
        ran = here("doctor", *where, "--json", "server.json")
        assert len(server.received) == 1
    assert (ran.code, ran.err) == (0, "")
    abilities = ABILITIES | dict.fromkeys(LACKS.get(line.provider, ()), False)
    abilities |= {"cost": line.provider == "OpenRouter"}
    assert json.loads(Path("server.json").read_text()) == {**abilities, "cancel": None}
    for name, can in abilities.items():
        word = "yes" if can else "no"
        assert re.search(rf"^{name} +{word} ", ran.out, re.MULTILINE)
