"""Bad input of `--engine ray`: one line, and nothing is started."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from pathlib import Path

import pytest

from grv.apps.solve import Options
from grv.backends.models import Models
from grv.backends.verifiers.options import EngineName, Verification
from grv.core.errors import UsageError
from support.commands import grv, here, refuses

CHECK = {"kind": "function", "entry_point": "f", "tests": [{"args": [1], "expected": 2}]}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    line = {"problem": "p", "prompt": "p", "check": CHECK, "candidates": ["def f(x): return 2"]}
    Path("candidates").write_text(json.dumps(line) + "\n")
    return tmp_path


VERIFY = ("verify", "candidates", "--engine", "ray", "--out", "labels")


def free_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def test_an_address_where_nothing_answers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    address = free_address()
    monkeypatch.setenv("RAY_ADDRESS", address)
    refuses(VERIFY, f"RAY_ADDRESS {address}: Connection refused", "ray start --head")
    assert not Path("labels").exists()
    ran = here("doctor", "--engine", "ray")
    assert (ran.code, ran.out) == (2, "")
    assert "Connection refused" in ran.err


@pytest.mark.parametrize("command", ["solve", "collect"])
def test_a_job_file_chooses_the_engine(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", free_address())
    Path("make.py").write_text("def make(problem):\n    return 'x'\n")
    Path("job.toml").write_text('engine = "ray"\n')
    problem = {"problem": "p", "prompt": "p", "check": CHECK}
    Path("problems").write_text(json.dumps(problem) + "\n")
    options = ["--generator", "make.py:make", "--score", "length", "--job", "job.toml"]
    more = ["-n", "1", "--out", "out.jsonl"] if command == "collect" else ["--out", "out.jsonl"]
    refuses([command, "problems", *options, *more], "RAY_ADDRESS", "Connection refused")
    assert not Path("out.jsonl").exists()
    assert not Path("out.jsonl.ledger").exists()


def test_a_server_that_is_not_ray_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            channel, _ = server.accept()
            with channel:
                channel.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{server.getsockname()[1]}")
        refuses(VERIFY, "what answers there is not Ray")
        thread.join()


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("ray://host", "run grv on a node of the cluster"),
        ("127.0.0.1", "give HOST:PORT"),
        ("127.0.0.1:many", "give HOST:PORT"),
        ("127.0.0.1:99999", "give HOST:PORT"),
        ("no-such-host.invalid:6379", "no-such-host.invalid"),
    ],
)
def test_an_address_that_is_none_is_refused(
    address: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", address)
    refuses(VERIFY, "RAY_ADDRESS ", words)


def test_without_the_extra_the_message_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    refuses(VERIFY, "--engine ray needs Ray: pip install 'generate-rank-verify[ray]'")
    assert not Path("labels").exists()


def test_an_engine_that_is_none_is_refused() -> None:
    refuses((*VERIFY[:3], "rays", *VERIFY[4:]), "--engine rays", "local, ray")
    with pytest.raises(UsageError, match="--engine dask: give one of local, ray"):
        Verification(engine="dask")  # type: ignore[arg-type]


def test_the_engine_does_not_change_the_name_of_a_search() -> None:
    def about(engine: EngineName) -> dict[str, object]:
        models = Models(generator="openai:m")
        options = Options(
            problems="p", out="o", models=models, verification=Verification(engine=engine)
        )
        return options.about

    assert about(EngineName.LOCAL) == about(EngineName.RAY)


@pytest.mark.slow
@pytest.mark.xdist_group("ray")
def test_a_ray_that_cannot_start_is_one_line(tmp_path: Path) -> None:
    long = tmp_path / ("far" * 40)  # too long for the names of Ray's sockets
    long.mkdir()
    ran = grv(*VERIFY, env={"TMPDIR": str(long)})
    assert (ran.code, ran.out) == (2, ""), ran
    assert ran.err.startswith("grv: Ray could not start: ")
    assert ran.err.count("\n") == 1
    assert os.listdir(long) == []
    assert not Path("labels").exists()
