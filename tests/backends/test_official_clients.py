"""The fakes of `grv.testing` against the official clients of the providers.

The clients are installed into an environment of their own, from a package index. They must read
what a fake sends, and their types must allow what grv sends.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import venv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grv.backends.by_name import generator
from grv.backends.generators.sampling import Sampling
from grv.backends.protocols import Problem
from grv.testing.compatible import COMPATIBLE
from grv.testing.servers import (
    FakeAnthropic,
    FakeGemini,
    FakeOpenai,
    FakeResponses,
    FakeServer,
    FakeText,
)

pytestmark = pytest.mark.soak  # it installs packages

PROGRAM = Path(__file__).parents[1] / "support" / "official_clients.py"
PACKAGES = ("openai", "anthropic", "google-genai")
KINDS: dict[str, type[FakeServer]] = {
    "openai": FakeOpenai,
    "responses": FakeResponses,
    "anthropic": FakeAnthropic,
    "gemini": FakeGemini,
    "openai-text": FakeText,
}
every = pytest.mark.parametrize("name", KINDS)
RIGHT = "sk-right-0123456789abcdef"
CUT = {
    "openai": "length",
    "responses": "max_output_tokens",
    "anthropic": "max_tokens",
    "gemini": "MAX_TOKENS",
    "openai-text": "length",
}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with the official clients, and without grv."""
    folder = tmp_path_factory.mktemp("clients")
    venv.create(folder, with_pip=False, symlinks=True)
    made = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(made), "install", "--quiet", *PACKAGES]
    ran = subprocess.run(pip, capture_output=True, text=True)
    if ran.returncode:
        pytest.skip(f"no package index: {ran.stderr.strip().splitlines()[-1][:200]}")
    return made


def run(python: Path, *words: str, given: str = "") -> str:
    """What the program prints. No key of the machine reaches it."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    ran = subprocess.run(
        [str(python), str(PROGRAM), *words],
        input=given,
        env=kept | {"no_proxy": "*"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def ask(
    python: Path,
    name: str,
    server: FakeServer,
    *,
    prompt: str = "how much is two and two",
    most: int = 100,
    model: str = "fake",
) -> dict[str, Any]:
    words = (name, server.url, RIGHT, model, prompt, str(most))
    read: dict[str, Any] = json.loads(run(python, *words))
    return read


@every
def test_answers_and_tokens(python: Path, name: str) -> None:
    with KINDS[name](
        lambda prompt, index: "it is four", key=RIGHT, thinks=20, cached=2, written=1
    ) as server:
        whole = ask(python, name, server)
        cut = ask(python, name, server, most=20)

    assert (whole["text"], cut["text"]) == ("it is four", None)
    assert cut["ended"] == CUT[name]
    assert (whole["prompt"], whole["cached"]) == (6, 2)
    assert whole.get("written", 1) == 1
    assert (whole["completion"], whole["reasoning"]) == (23, 20)
    assert (cut["completion"], cut["reasoning"]) == (20, 20)
    assert whole.get("logprobs", [-0.5] * 3) == [-0.5] * 3


@every
def test_errors(python: Path, name: str) -> None:
    with KINDS[name](key="another", overloaded=1) as server:
        wrong_key = ask(python, name, server)
        server.key = None
        overloaded = ask(python, name, server)
        unknown = ask(python, name, server, model="other")
        moderated = ask(python, name, server, prompt="forbidden things")

    assert wrong_key["status"] == (400 if name == "gemini" else 401)
    assert overloaded["status"] == (529 if name == "anthropic" else 429)
    assert unknown["status"] == 404
    for error in (wrong_key, overloaded, unknown):
        assert error["kind"]
        assert error["message"]
    if name == "anthropic":
        assert overloaded["error"] == "OverloadedError"
        assert moderated["ended"] == "refusal"
    elif name == "gemini":
        assert moderated["ended"] == "SAFETY"
    else:
        assert (moderated["status"], moderated["code"]) == (400, "invalid_prompt")


@pytest.mark.parametrize("like", COMPATIBLE)
def test_servers_with_the_interface_of_openai(python: Path, like: str) -> None:
    name = "azure" if like == "Azure, dated versions" else "openai"
    model = "DEPLOYMENT" if name == "azure" else "fake"
    differences = COMPATIBLE[like]
    with FakeOpenai(
        lambda prompt, index: "it is four", like=like, key=RIGHT, model=model, prices={"prompt": 1}
    ) as server:
        whole = ask(python, name, server, model=model)
        server.key = "another"
        wrong_key = ask(python, name, server, model=model)
        server.key = RIGHT
        server.overloaded = 1
        overloaded = ask(python, name, server, model=model)
        server.model = "other"
        unknown = ask(python, name, server, model=model)

    assert (whole["text"], whole["logprobs"]) == ("it is four", [-0.5] * 3)
    assert (whole["prompt"], whole["completion"]) == (6, 3)
    assert (whole["cost"] is not None) == differences.says_cost
    assert wrong_key.get("status", 200) == (401 if differences.key_headers else 200)
    assert overloaded["status"] in (429, 503)
    assert unknown.get("status", 200) in ((200,) if differences.any_model else (400, 404))


PIXEL = "data:image/png;base64,iVBORw0KGgo="
CHAT = Problem(
    "chat",
    messages=(
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": PIXEL}},
                {"type": "image_url", "image_url": {"url": "https://h/a.png"}},
            ],
        },
    ),
)
SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}}
FORMAT = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}


@pytest.mark.parametrize("name", [name for name in KINDS if name != "openai-text"])
def test_what_grv_sends(python: Path, name: str) -> None:
    sampling = Sampling(max_tokens=50, stop=("END",), effort="low", response_format=FORMAT, seed=1)
    with KINDS[name]() as server:

        async def send(sampling: Sampling) -> None:
            asked = generator(f"{name}:fake", base_url=server.url, sampling=sampling)
            await asked.generate(CHAT, 2)
            await asked.aclose()  # type: ignore[attr-defined]

        asyncio.run(send(replace(sampling, temperature=1.0)))
        asyncio.run(send(Sampling()))
        asyncio.run(send(Sampling(effort="none", system="Be brief.")))
        bodies = server.bodies

    assert len(bodies) == 3
    run(python, "check", name, given=json.dumps(bodies))


def test_what_grv_sends_for_plain_completions(python: Path) -> None:
    with FakeText() as server:
        asked = generator(
            "openai-text:fake",
            base_url=server.url,
            sampling=Sampling(max_tokens=50, stop=("END",), seed=1),
        )

        async def send() -> None:
            await asked.generate(Problem("p", "Once upon a time"), 2)
            await asked.aclose()  # type: ignore[attr-defined]

        asyncio.run(send())
        bodies = server.bodies
    assert len(bodies) == 1
    run(python, "check", "openai-text", given=json.dumps(bodies))
