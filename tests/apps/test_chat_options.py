"""What a chat model is sent: system messages, chats per problem, formats, further fields."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.commands import here, records, refuses
from support.servers import FaultyServer, Status

CHECK = {"kind": "math", "answer": "42"}
CHAT = [
    {"role": "system", "content": "Answer with a number."},
    {"role": "user", "content": "What is 6 * 7?"},
]
SECRET = "sk-of-mine-0123456789"


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with FaultyServer(text=lambda _, seed: "\\boxed{42}") as up:
        yield up


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write({"problem": "a", "prompt": "What is 6 * 7?", "check": CHECK})
    return tmp_path


def write(*problems: dict[str, Any]) -> None:
    Path("problems").write_text("".join(json.dumps(each) + "\n" for each in problems))


def solve(server: FaultyServer, *more: object) -> list[object]:
    where = ("--base-url", server.url, "--generator", "openai:m", "--out", "out")
    return ["solve", "problems", *where, "--budget", 100, *more]


def test_system_format_stops_and_further_fields_are_sent(server: FaultyServer) -> None:
    extra = {"top_k": 20, "chat_template_kwargs": {"enable_thinking": False}}
    given = ("--system", "Be brief.", "--stop", "END", "--extra-body", json.dumps(extra))
    assert here(*solve(server, *given, "--response-format", "json_object")).code == 0
    body = server.received[0].body
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is 6 * 7?"},
    ]
    assert body["response_format"] == {"type": "json_object"}
    assert body["stop"] == ["END"]
    assert {name: body[name] for name in extra} == extra


def test_a_job_file_gives_them_as_tables(server: FaultyServer) -> None:
    Path("job.toml").write_text(
        '[solve]\nsystem = "Be brief."\n[solve.extra_body]\ntop_k = 20\n'
        '[solve.response_format]\ntype = "json_schema"\n'
        'json_schema = {name = "answer", schema = {type = "object"}}\n'
    )
    assert here(*solve(server, "--job", "job.toml")).code == 0
    body = server.received[0].body
    assert body["top_k"] == 20
    assert body["response_format"]["json_schema"]["name"] == "answer"


def test_a_problem_may_be_a_chat(server: FaultyServer) -> None:
    write(
        {"problem": "a", "messages": CHAT, "check": CHECK},
        {"problem": "b", "messages": CHAT[1:], "check": CHECK},
    )
    assert here(*solve(server, "--system", "Be brief.", "--concurrency", 1)).code == 0
    sent = {tuple(m["content"] for m in r.body["messages"]) for r in server.received}
    assert sent == {
        ("Answer with a number.", "What is 6 * 7?"),  # its own system message wins
        ("Be brief.", "What is 6 * 7?"),
    }


@pytest.mark.slow
def test_another_chat_or_system_message_is_another_search(server: FaultyServer) -> None:
    asked = [{"role": "user", "content": "6 * 7"}, {"role": "user", "content": "now"}]
    other = [{"role": "user", "content": "6 * 7\n\nuser: now"}]
    for chat, system in ((asked, ""), (other, ""), (asked, "Be brief.")):
        write({"problem": "a", "messages": chat, "check": CHECK})
        Path("out").unlink(missing_ok=True)
        assert here(*solve(server, "--system", system)).code == 0
    assert "3 searches" in here("runs", "list", "out.ledger").out


def test_a_judge_and_a_reward_model_read_the_chat(server: FaultyServer) -> None:
    write({"problem": "a", "messages": CHAT, "check": CHECK})
    assert here(*solve(server, "--score", f"classify:{server.root}")).code == 0
    scored = next(r.body for r in server.received if r.path.endswith("/classify"))
    assert [m["role"] for m in scored["messages"]] == ["system", "user", "assistant"]
    Path("out").unlink()
    here(*solve(server, "--score", "judge:j"))
    judged = next(r.prompt for r in server.received if r.body.get("model") == "j")
    assert "system: Answer with a number.\n\nuser: What is 6 * 7?" in judged


@pytest.mark.slow
def test_no_key_of_a_request_gets_into_the_ledger_or_onto_the_screen() -> None:
    extra = json.dumps({"api_key": SECRET, "top_k": 1, "nested": [{"access_token": SECRET}]})
    refusing = Status(400, message=f"unknown field: api_key={SECRET}")
    with FaultyServer(lambda _: refusing, text=lambda *_: "\\boxed{42}") as server:
        ran = here(*solve(server, "--extra-body", extra, "--attempts", 1))
        assert ran.code
        assert SECRET not in ran.out + ran.err
        assert server.received[0].body["api_key"] == SECRET
    for name in ("out", "out.ledger", "out.ledger-wal"):
        assert not Path(name).exists() or SECRET.encode() not in Path(name).read_bytes()
    assert "'api_key': '***', 'top_k': 1" in here("runs", "show", "out.ledger", "a").out


def test_options_at_their_defaults_are_not_in_the_ledger(server: FaultyServer) -> None:
    here(*solve(server))
    shown = here("runs", "show", "out.ledger", "a").out
    assert "extra_body" not in shown
    assert "system" not in shown
    assert records(Path("out"))[0]["outcome"] == "solved"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--extra-body", "top_k=20"), "not JSON"),
        (("--extra-body", "[1]"), "give a JSON object"),
        (("--extra-body", '{"n": 4}'), "n is a field that grv sets itself"),
        (("--extra-body", '{"stop": "x"}'), "stop has an option of its own, --stop"),
        (("--response-format", '{"schema": {}}'), "give a type, as in json_object"),
        (("--generator", "openai-text:m", "--system", "x"), "--system needs a chat model"),
        (("--stop", ""), "a text that ends a candidate cannot be empty"),
    ],
)
def test_what_no_request_can_have_is_refused(
    server: FaultyServer, given: tuple[str, ...], said: str
) -> None:
    refuses(solve(server, *given), said)
    assert not server.received


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        ({"messages": "hello"}, "problems:1: 'messages' must be a list of messages, not 'hello'"),
        ({"messages": []}, "'messages' must be a list of messages, not []"),
        ({"messages": [{"role": "user"}]}, "problems:1: messages[0] must be"),
        ({"messages": CHAT, "prompt": "x"}, "problems:1: give 'prompt' or 'messages', not both"),
    ],
    ids=str,
)
def test_a_wrong_chat_is_refused_with_its_line(
    server: FaultyServer, problem: dict[str, Any], said: str
) -> None:
    write({"problem": "a", "check": CHECK, **problem})
    refuses(solve(server), said)


def test_a_chat_needs_a_chat_model(server: FaultyServer) -> None:
    write({"problem": "a", "messages": CHAT, "check": CHECK})
    refuses(solve(server, "--generator", "openai-text:m"), "problem a has messages, which need a")
