"""The guide and the example: what they show works."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from grv.apps.options.command import arguments_of
from grv.apps.options.serving import check_profiles, profiles_of
from grv.apps.serve import serve
from grv.serve.clients import Clients
from grv.serve.completions.requests import GRV
from support.serving import Model, serving

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guide" / "serve.md").read_text(encoding="utf-8")
fences = runpy.run_path(str(ROOT / "tests" / "test_documents.py"))["fences"]


def shown(language: str) -> list[str]:
    found: list[str] = fences(ROOT / "docs" / "guide" / "serve.md", language)
    return found


def names(job: str) -> list[str]:
    """The profiles of a job file, made as `grv serve` makes them."""
    Path("job.toml").write_text(job)
    given = arguments_of(serve, {"job": "job.toml", "ledger": "ledger"})
    check_profiles(given["profiles"])
    with profiles_of(given["profiles"], given["calls"]) as made:
        return [*made]


@pytest.mark.slow
def test_the_first_server_of_the_guide_answers_its_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job, *_ = shown("toml")
    (block,) = shown("python")
    with Model() as model:
        (tmp_path / "job.toml").write_text(job.replace("http://localhost:8001/v1", model.url))
        with serving(tmp_path) as server:
            code = block.replace("http://localhost:8000/v1", server.url)
            exec(compile(code, "serve.md", "exec", dont_inherit=True), {"__name__": "page"})
    assert "\\boxed{42}" in capsys.readouterr().out


def test_the_other_files_of_the_guide_are_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MONITOR_KEY", "0123456789abcdef")
    _, several, clients, page = shown("toml")
    Path("clients.toml").write_text(clients)
    assert Clients.load("clients.toml", ["careful"]).known
    Path("check-style.sh").write_text("#!/bin/sh\nexit 0\n")
    Path("check-style.sh").chmod(0o755)
    assert names(several) == ["careful", "quick"]
    assert names(page) == ["checked-chat"]


def test_the_example_has_two_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "examples" / "serve.toml").read_text(encoding="utf-8")
    assert names(text) == ["verified", "chat"]


def test_the_guide_has_every_field_of_a_request() -> None:
    table = GUIDE.partition("## The request")[2].partition("## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == [*GRV]
