"""Version 2 of the openai client, in an environment of its own. Needs a registry."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest

from support.serving import Model, serving, write_job

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
print(openai.__version__)
"""


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_version_2_of_the_client_works(tmp_path: Path) -> None:
    version = "openai>=2,<3"
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    python = tmp_path / "env" / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", version]
    if subprocess.run(install, capture_output=True, check=False).returncode:
        pytest.skip(f"{version} cannot be installed here")
    with Model(every=2) as model:
        write_job(tmp_path, model)
        with serving(tmp_path) as server:
            ran = subprocess.run(
                [str(python), "-c", _ASK, server.url], capture_output=True, text=True, check=False
            )
    assert ran.returncode == 0, ran.stderr
    print(ran.stdout)
