"""A profile that learns from one request to the next."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import openai
import pytest

from grv.ledger.entries import Started
from grv.ledger.sqlite import SqliteLedger
from support.serving import Model, check, serving, write_job

pytestmark = pytest.mark.slow


def policies(folder: Path) -> list[str]:
    """The policy of each search, in the order of their starts."""
    with closing(SqliteLedger(folder / "ledger", read_only=True)) as ledger:
        found = [ledger.read(each.id)[0] for each in ledger.searches()]
    return [str(each.about["policy"]) for each in found if isinstance(each, Started)]


def ask(url: str, text: str) -> Any:
    with openai.OpenAI(base_url=url, api_key="x", max_retries=0) as client:
        return client.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": text}],
            extra_body={"grv": check()},
        ).model_extra


def test_after_six_requests_history_decides_and_a_repeated_request_is_free(tmp_path: Path) -> None:
    with Model(every=3) as model:
        write_job(tmp_path, model, 'policy = "learning"')
        with serving(tmp_path) as server:
            for number in range(8):
                ask(server.url, f"request {number}")
            made = sum(model.served.values())
            ask(server.url, "request 7")
            assert sum(model.served.values()) == made
    found = policies(tmp_path)
    assert found[:6] == ["varied(factor=5.0)"] * 6
    assert all(each.startswith("learned(prior='history'") for each in found[6:])
    assert len(found) == 8
