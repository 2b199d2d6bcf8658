"""`grv init`: what it writes runs, and overwrites nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from grv.apps.init import STARTS
from support.commands import grv, here, refuses
from support.servers import FaultyServer

ANSWERS = {"17": "\\boxed{42}", "double": "def double(x):\n    return 2 * x\n"}


@pytest.mark.parametrize("have", STARTS)
def test_files_are_written_once(have: str, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    assert here("init", have, "--folder", folder).code == 0
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    assert "exists; give another --folder" in refuses(["init", have, "--folder", folder])
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert before["job.toml"].startswith(b"#:schema ./job.schema.json\n")
    assert "job.schema.json" in before


def test_a_single_file_that_exists_stops_all(tmp_path: Path) -> None:
    (tmp_path / "problems.jsonl").symlink_to(tmp_path / "nowhere")

    assert "problems.jsonl: exists" in refuses(["init", "server", "--folder", tmp_path])
    assert [path.name for path in tmp_path.iterdir()] == ["problems.jsonl"]


def test_another_start_is_refused_with_a_hint() -> None:
    assert "did you mean server" in refuses(["init", "servr"], "server, log, agent")


@pytest.mark.slow
def test_what_is_written_for_a_server_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    here("init", "server")
    checked = grv("doctor", "--problems", "problems.jsonl")

    def text(request: object, seed: int) -> str:
        return next(text for word, text in ANSWERS.items() if word in str(request))

    with FaultyServer(text=text) as server:
        job = (tmp_path / "job.toml").read_text()
        (tmp_path / "job.toml").write_text(job.replace("http://localhost:8000/v1", server.url))
        ran = grv("solve", "--job", "job.toml")

    assert checked.code == 0, checked.out
    assert ran.code == 0, ran.err
    assert (tmp_path / "answers.jsonl").read_text().count('"outcome": "solved"') == 2


@pytest.mark.slow
def test_what_is_written_for_a_log_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    here("init", "log")
    ran = grv("compare", "log.csv", "--job", "job.toml")

    assert ran.code == 0, ran.err
    assert "hindsight" in ran.out


@pytest.mark.slow
def test_what_is_written_for_an_agent_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    here("init", "agent")
    assert os.access(tmp_path / "agent.sh", os.X_OK)
    refused = grv("solve", "--job", "job.toml")
    ran = grv("solve", "--job", "job.toml", "--allow-commands")

    assert refused.code == 2
    assert "--allow-commands" in refused.err
    assert ran.code == 0, ran.err
    assert (tmp_path / "answers.jsonl").read_text().count('"outcome": "solved"') == 2
