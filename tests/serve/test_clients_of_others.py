"""The clients of others, unmodified, before a real server: Anthropic's package, and LangChain's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.serving import RIGHT, Model, Server, serving, write_job
from support.tools import calls_weather

pytestmark = pytest.mark.soak  # it installs packages

PROGRAM = Path(__file__).parents[1] / "support" / "gateway_clients.py"
PACKAGES = ("anthropic", "langchain-openai", "langchain-anthropic")


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with the clients, and without grv."""
    folder = tmp_path_factory.mktemp("clients")
    venv.create(folder, with_pip=False, symlinks=True)
    made = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(made), "install", "--quiet", *PACKAGES]
    ran = subprocess.run(pip, capture_output=True, text=True)
    if ran.returncode:
        pytest.skip(f"no package index: {ran.stderr.strip().splitlines()[-1][:200]}")
    return made


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("serve")
    with Model(every=3, script=calls_weather) as model:
        write_job(folder, model, policy="fixed(6, 6)")
        with serving(folder) as up:
            yield up


def ask(python: Path, server: Server, kind: str) -> dict[str, Any]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    ran = subprocess.run(
        [str(python), str(PROGRAM), kind, server.root],
        env=kept | {"no_proxy": "*"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


@pytest.mark.timeout(600)
def test_the_client_of_anthropic(python: Path, server: Server) -> None:
    assert ask(python, server, "anthropic") == {
        "plain": [RIGHT, "end_turn", True],
        "valid": "message",
        "streamed": [RIGHT, RIGHT, True],
        "call": ["weather", {"city": "Oslo"}, "tool_use", "unverified"],
        "final": [RIGHT, True],
        "error": ["invalid_request_error", "finished"],
        "late": "invalid_request_error",
        "models": ["m"],
    }


@pytest.mark.timeout(600)
def test_the_clients_of_langchain(python: Path, server: Server) -> None:
    every = [RIGHT, RIGHT, "weather", {"city": "Oslo"}, RIGHT]
    found = ask(python, server, "langchain")
    assert found == {"chat": every, "responses": every, "messages": every}
