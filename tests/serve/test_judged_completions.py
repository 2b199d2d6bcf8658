"""A server whose check errs: judged answers are returned only to those who accept them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import openai
import pytest

from grv.testing.servers import FakeOpenai
from support.serving import serving, write_job

pytestmark = pytest.mark.slow


def model(prompt: str, index: int) -> str:
    """Answers 42, and judges that 42 is right."""
    if '"answer":' not in prompt:
        return "42"
    return json.dumps({"verdict": "pass" if json.loads(prompt)["answer"] == "42" else "fail"})


def test_a_judged_answer_is_returned_only_if_the_request_accepts_it(tmp_path: Path) -> None:
    with FakeOpenai(model) as upstream:
        judge = [
            "[checks.judge]",
            'kind = "judge"',
            'model = "openai:fake"',
            f'url = "{upstream.url}"',
            "temperature = 1",
            "errors = { false_pass = 0.1 }",
        ]
        write_job(
            tmp_path,
            upstream.url,
            *judge,
            generator="openai:fake",
            score="length",
            allow_commands=True,
        )

        def ask(client: openai.OpenAI, text: str, **grv: Any) -> Any:
            return client.chat.completions.create(
                model="fake",
                messages=[{"role": "user", "content": text}],
                extra_body={"grv": {"check": "judge", **grv}},
            )

        with (
            serving(
                tmp_path, "--allow-commands", env={"OPENAI_API_KEY": "sk-some-long-key"}
            ) as server,
            openai.OpenAI(base_url=server.url, api_key="x", max_retries=0) as client,
        ):
            accepted = ask(client, "What is 6 x 7?", require="judged")
            assert accepted.choices[0].message.content == "42"
            told = accepted.model_extra["grv"]
            assert (told["status"], told["verified"]) == ("judged", False)
            assert told["wrong_probability"] == 0.05
            with pytest.raises(openai.APIStatusError, match="judged, not verified"):
                ask(client, "What is 6 x 7?", require="verified")
            head = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            metrics = server.raw(head).decode()
            assert 'outcome="judged"} 1' in metrics
