"""The clients of others, unmodified, before a real server: those of Anthropic, LangChain, LiteLLM.

LiteLLM's gateway is also put behind a server, before the model.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

from support.pythons import Python, make_environment
from support.servers import Received
from support.serving import RIGHT, Model, Server, check, serving, write_job
from support.tools import calls_weather

pytestmark = pytest.mark.soak  # it installs packages

KEY = "sk-0123456789abcdef0123456789abcdef"  # of the gateway
# LiteLLM asks the network for prices otherwise.
VARIABLES = {"no_proxy": "*", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
PROGRAM = Path(__file__).parents[1] / "support" / "gateway_clients.py"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with the clients, and without grv."""
    folder = tmp_path_factory.mktemp("clients")
    return interpreter(folder, "anthropic", "langchain-openai", "langchain-anthropic")


@pytest.fixture(scope="module")
def litellm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with LiteLLM and its gateway, and without grv."""
    return interpreter(tmp_path_factory.mktemp("litellm"), "litellm[proxy]")


def interpreter(folder: Path, *packages: str) -> Path:
    """An interpreter with packages of an index."""
    version = ".".join(map(str, sys.version_info[:3]))
    try:
        made = make_environment(folder, Python(version, Path(sys.executable)), packages)
    except RuntimeError as error:
        pytest.skip(f"no package index: {str(error).splitlines()[-1][:200]}")
    return made.program("python")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("serve")
    with Model(every=3, script=calls_weather) as model:
        write_job(folder, model, policy="fixed(6, 6)")
        with serving(folder) as up:
            yield up


def environ() -> dict[str, str]:
    """The variables of a client. No key of the machine is among them."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return kept | VARIABLES


def ask(python: Path, server: Server, kind: str) -> dict[str, Any]:
    ran = subprocess.run(
        [str(python), str(PROGRAM), kind, server.root],
        env=environ(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])  # LiteLLM prints more
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


class Varied(Model):
    """Its right answers are written in different ways, if it is asked so."""

    def _numbered(self, request: Received, seed: int) -> str:
        text = super()._numbered(request, seed)
        return f"{text}, say {seed % 2} of us" if "ways" in request.prompt else text


@pytest.mark.timeout(900)
def test_litellm_before_it(litellm: Path, tmp_path: Path) -> None:
    named = ("[checks.sum]", 'kind = "math"', 'answer = "42"')
    with Varied(every=3, script=calls_weather) as model:
        write_job(tmp_path, model, *named, check="sum", policy="fixed(6, 6)")
        with serving(tmp_path) as up:
            found = ask(litellm, up, "litellm")
    assert found == {
        "plain": [RIGHT, True],
        "streamed": RIGHT,
        "call": ["weather", {"city": "Oslo"}],
        "final": RIGHT,
        "responses": RIGHT,
        "two": 2,
        "message": RIGHT,
        "error": True,
    }


@contextmanager
def gateway(litellm: Path, folder: Path, model: Model) -> Iterator[str]:
    """LiteLLM's gateway before a model; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    given = {"model": "openai/m", "api_base": model.url, "api_key": "none"}
    listed = [{"model_name": "m", "litellm_params": given}]
    settings = {"model_list": listed, "general_settings": {"master_key": KEY}}
    (folder / "gateway.yaml").write_text(json.dumps(settings))
    words = ["--config", "gateway.yaml", "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(
        [str(litellm.with_name("litellm")), *words],
        cwd=folder,
        env=environ(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + 300
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health/liveliness").close()
                break
            except OSError:
                assert process.poll() is None
                assert time.monotonic() < until
                time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()


@pytest.mark.timeout(900)
def test_litellm_behind_it(litellm: Path, tmp_path: Path) -> None:
    with Model(every=3) as model, gateway(litellm, tmp_path, model) as url:
        write_job(tmp_path, url, policy="fixed(6, 6)")
        with (
            serving(tmp_path, env={"OPENAI_API_KEY": KEY}) as up,
            openai.OpenAI(base_url=up.url, api_key="any", max_retries=0) as client,
        ):
            asked: Any = [{"role": "user", "content": "plain"}]
            answer = client.chat.completions.create(
                model="m", messages=asked, extra_body={"grv": check()}
            )
    assert answer.choices[0].message.content == RIGHT
    told: Any = answer.model_extra
    assert told["grv"]["verified"] is True
    assert sum(model.served.values()) == told["grv"]["bill"]["generated"]
