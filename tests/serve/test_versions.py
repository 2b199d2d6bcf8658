"""Other clients, each in an environment of its own: openai 2, LangChain. Needs a registry."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest

from support.serving import Model, serving, write_job

pytestmark = pytest.mark.soak

_ASK = """
import asyncio, sys
import openai

CHECK = {"grv": {"check": {"kind": "math", "answer": "42"}}}
HELLO = [{"role": "user", "content": "hello"}]
client = openai.OpenAI(base_url=sys.argv[1], api_key="x", max_retries=0)
made = client.chat.completions.create(model="m", messages=HELLO, extra_body=CHECK)
assert made.model_extra["grv"]["verified"] is True
stream = client.chat.completions.create(
    model="m", messages=HELLO, stream=True, stream_options={"include_usage": True}, extra_body=CHECK
)
chunks = list(stream)
texts = [each.choices[0].delta.content for each in chunks if each.choices]
assert texts[0] == made.choices[0].message.content
assert chunks[-1].usage.total_tokens == made.usage.total_tokens
try:
    client.chat.completions.create(model="m", messages=HELLO)
except openai.BadRequestError as error:
    assert error.param == "grv.check"
else:
    raise AssertionError

async def ask():
    async with openai.AsyncOpenAI(base_url=sys.argv[1], api_key="x") as client:
        made = await client.completions.create(model="m", prompt="hello", extra_body=CHECK)
        return made.model_extra["grv"]["verified"]

assert asyncio.run(ask()) is True
assert openai.__version__.startswith("2.")
"""


_LANGCHAIN = """
import sys
from langchain_openai import ChatOpenAI

CHECK = {"grv": {"check": {"kind": "math", "answer": "42"}}}
chat = ChatOpenAI(base_url=sys.argv[1], api_key="x", model="m", extra_body=CHECK, max_retries=0)
made = chat.invoke("hello")
assert "42" in made.content, made
assert made.usage_metadata["total_tokens"] > 0
assert "".join(each.content for each in chat.stream("hello")) == made.content
"""


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("package", "script"),
    [("openai>=2,<3", _ASK), ("langchain-openai", _LANGCHAIN)],
    ids=["openai 2", "langchain"],
)
def test_other_clients_work(tmp_path: Path, package: str, script: str) -> None:
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    python = tmp_path / "env" / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", package]
    if subprocess.run(install, capture_output=True, check=False).returncode:
        pytest.skip(f"{package} cannot be installed here")
    with Model(every=2) as model:
        write_job(tmp_path, model)
        with serving(tmp_path) as server:
            ran = subprocess.run(
                [str(python), "-c", script, server.url], capture_output=True, text=True, check=False
            )
    assert ran.returncode == 0, ran.stderr
