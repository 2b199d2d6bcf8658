"""What `grv serve` refuses before it listens, and what its help teaches."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

import openai
import pytest

from support.commands import here, refuses
from support.serving import RIGHT, Model, check, key_hash, serving, write_job

URL = "http://127.0.0.1:9/v1"


def refused(tmp_path: Path, *words: str, more: tuple[object, ...] = ()) -> str:
    job = tmp_path / "job.toml"
    return refuses(["serve", job, "--port", 0, "--ledger", tmp_path / "l", *more], *words)


def test_another_address_needs_clients(tmp_path: Path) -> None:
    write_job(tmp_path, URL)
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.invalid"):
        refused(tmp_path, f"--host {host}", "--clients FILE", more=("--host", host))
    assert not (tmp_path / "l").exists()


def test_a_profile_without_a_budget_is_refused(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(f'generator = "openai:m"\nbase-url = "{URL}"\n')
    refused(tmp_path, "profile m: give a budget")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["[profiles]"], ["profiles must be tables, as in [profiles.large]"]),
        (["[profiles.a]", "total-budget = 3", "[profiles.b]"], ["total-budget is for all"]),
        (["[profiles.a]", "generatr = 3"], ["unknown option generatr; did you mean generator?"]),
        (["[profiles.a]", 'check = "x"'], ["profile a: check x is not in [checks], which has"]),
        (["[checks.x]", 'kind = "maths"'], ["profile m: [checks.x]", "did you mean math?"]),
        (["checks = 3"], ["checks"]),
        (
            ["[checks.x]", 'kind = "command"', 'argv = ["true"]'],
            ["[checks.x]", "runs the command", "--allow-commands"],
        ),
        (['verifier = "my.py:f"'], ["verifier names code", "--allow-commands"]),
        (['require = "any"'], ["--require any: give one of verified, judged, best"]),
        (['policy = "bst"'], ["unknown policy 'bst'"]),
    ],
)  # fmt: skip
def test_a_wrong_job_file_is_one_line(tmp_path: Path, lines: list[str], words: list[str]) -> None:
    write_job(tmp_path, URL, *lines)
    refused(tmp_path, *words)


def test_a_job_file_for_another_command_is_refused(tmp_path: Path) -> None:
    job = tmp_path / "job.toml"
    job.write_text('[solve]\ngenerator = "openai:m"\n')

    refuses(
        ["serve", job, "--ledger", tmp_path / "l"],
        "has options of other commands only, in [solve]; those of grv serve stand in [serve]",
    )


def test_measured_and_listed_costs_do_not_mix(tmp_path: Path) -> None:
    write_job(tmp_path, URL, "[profiles.a]", "[profiles.b]", 'costs = "measured:1,2"')
    refused(tmp_path, "measured costs are dollars: all profiles need them, or none")


def test_a_port_that_is_taken_is_one_line(tmp_path: Path) -> None:
    write_job(tmp_path, URL)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused(tmp_path, f"cannot listen on 127.0.0.1 port {port}", more=("--port", port))


def test_a_ledger_is_needed_and_its_address_has_no_password(tmp_path: Path) -> None:
    job = write_job(tmp_path, URL)
    refuses(["serve", job], "--ledger LEDGER is required")
    address = "postgresql://me:secret@127.0.0.1/x"
    said = refuses(["serve", job, "--ledger", address], "leave the password out")
    assert "secret" not in said


def test_without_the_extra_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    refuses(["serve", write_job(tmp_path, URL), "--ledger", tmp_path / "l"], "[serve]")


def test_the_help_teaches() -> None:
    said = here("serve", "--help").out
    for word in ("job.toml", "curl", '"grv"', "422", "429", "--clients", "--total-budget"):
        assert word in said


@pytest.mark.slow
def test_own_code_serves_too(tmp_path: Path) -> None:
    """A generator and a verifier of the user's; requests need no check then."""
    (tmp_path / "my.py").write_text(
        "def make(problem):\n    return problem.prompt + '!'\n"
        "def is_right(problem, text):\n    return text.endswith('!')\n"
    )
    code = {"generator": f"{tmp_path}/my.py:make", "verifier": f"{tmp_path}/my.py:is_right"}
    options = {**code, "score": "length", "budget": 20}
    lines = [f"{name} = {json.dumps(value)}" for name, value in options.items()]
    (tmp_path / "job.toml").write_text("\n".join(lines))
    with serving(tmp_path, "--allow-commands") as server:
        with openai.OpenAI(base_url=server.url, api_key="x", max_retries=0) as client:
            (name,) = [each.id for each in client.models.list()]
            said = client.completions.create(model=name, prompt="yes")
            assert (name, said.choices[0].text) == ("make", "yes!")
            with pytest.raises(openai.BadRequestError, match="verifies by itself"):
                client.completions.create(model=name, prompt="yes", extra_body={"grv": check()})
        assert server.stop() == 0


@pytest.mark.slow
def test_a_profile_may_have_a_check_for_requests_without_one(tmp_path: Path) -> None:
    lines = ["[checks.sum]", 'kind = "math"', 'answer = "42"']
    lines += ("[profiles.chat]", 'check = "sum"', "[profiles.other]")
    (tmp_path / "clients.toml").write_text(f'[clients.page]\nkey = "{key_hash("k" * 20)}"\n')
    with Model(every=2) as model:
        write_job(tmp_path, model, *lines)
        more = ("--clients", tmp_path / "clients.toml", "--host", "0.0.0.0")
        with (
            serving(tmp_path, *more) as server,
            openai.OpenAI(
                base_url=server.url.replace("0.0.0.0", "127.0.0.1"), api_key="k" * 20
            ) as client,
        ):
            said = client.completions.create(model="chat", prompt="hi")
            assert said.choices[0].text == RIGHT
            with pytest.raises(openai.BadRequestError, match=r"grv.check: is missing.*sum"):
                client.completions.create(model="other", prompt="hi")
