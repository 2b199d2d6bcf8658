"""The openai client before `grv serve` before a real model on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openai
import pytest

from support.serving import serving

pytestmark = pytest.mark.slow


def test_a_real_model_is_served(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(
        'generator = "embedded"\ncosts = "1,2"\nbudget = 60\nmax-tokens = 8\nstop = ["\\n"]\n'
    )
    test = "def check(candidate):\n    assert candidate(2, 3) == 5\n"
    check = {"kind": "asserts", "entry_point": "add", "test": test}
    prompt = 'def add(a, b):\n    """Return the sum of a and b."""\n    return'
    with (
        serving(tmp_path) as server,
        openai.OpenAI(base_url=server.url, api_key="x", max_retries=0, timeout=240) as client,
    ):
        made = client.completions.create(
            model="embedded", prompt=prompt, extra_body={"grv": {"check": check}}
        )
        found: Any = made.model_extra
        assert found["grv"]["verified"] is True
        assert "a" in made.choices[0].text
        assert made.usage is not None
        assert made.usage.completion_tokens >= found["grv"]["bill"]["generated"]
        chunks = client.completions.create(
            model="embedded", prompt=prompt, stream=True, extra_body={"grv": {"check": check}}
        )
        assert "".join(each.choices[0].text for each in chunks if each.choices) == (
            made.choices[0].text
        )
        with pytest.raises(openai.BadRequestError, match="use /v1/completions"):
            client.chat.completions.create(
                model="embedded",
                messages=[{"role": "user", "content": "hi"}],
                extra_body={"grv": {"check": check}},
            )
