"""A server that repeats what it was sent, in every encoding: no secret gets past the backends."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from grv.backends.generators.openai import OpenaiGenerator
from grv.backends.http.secrets import HIDDEN, Secrets, secrets_of
from grv.backends.protocols import Draft, Problem
from grv.backends.scorers.judge import JudgeScorer
from grv.backends.scorers.reward_http import RewardScorer
from grv.backends.verifiers.http import HttpCheck
from grv.core.errors import BackendError
from support.commands import here
from support.encodings import ENCODINGS

KEY = "sk-Käy/+with=\"quotes' & 0123456789"
PLAIN_KEY = "sk-proj-0123456789abcdefXYZ"
USER, PASSWORD, TOKEN, FRAGMENT = "marianne", "hunter2/verysecret", "s/cr&t t0ken", "fragm3nt-x"
QUERY = f"token={quote(TOKEN, safe='')}&v=2"


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("secret", [KEY, PLAIN_KEY, PASSWORD, f"{USER}:{PASSWORD}", TOKEN])
def test_a_secret_is_hidden_in_every_encoding(encoding: str, secret: str) -> None:
    url = f"https://{USER}:{quote(PASSWORD, safe='')}@host/v1?{QUERY}#{FRAGMENT}"
    secrets = Secrets.of(url, KEY, PLAIN_KEY)
    said = ENCODINGS[encoding](secret)
    shown = secrets.hide(f"You said <<{said}>>, which is wrong")
    assert HIDDEN in shown
    assert shown.startswith("You said <<")
    assert shown.endswith(">>, which is wrong")
    assert _leaked(shown, secret) == ""


def _leaked(shown: str, secret: str) -> str:
    """A piece of a secret that is in the text, in one of the encodings."""
    pieces = [secret[at : at + 8] for at in range(len(secret) - 7)]
    for name, encode in ENCODINGS.items():
        if name.startswith(("base64", "hexa")):
            said = encode(secret)
            forms = [said[at : at + 12] for at in range(2, len(said) - 13)]
            forms = [form for form in forms if "QmVhcmVy" not in form]
        else:
            forms = [encode(piece).strip("'\"") for piece in pieces]
        for form in forms:
            if form in shown:
                return f"{form} ({name})"
    return ""


@example("00000000", "%", "", str)
@given(st.text(min_size=8), st.text(), st.text(), st.sampled_from([*ENCODINGS.values()][:2]))
def test_whatever_is_around_it(
    secret: str, before: str, after: str, encode: Callable[[str], str]
) -> None:
    try:
        said = encode(secret)
    except UnicodeEncodeError:
        return
    if "\\" in secret or "%" in secret or "&" in secret:
        return  # which may mean something else together with what is around it
    assert said not in Secrets([secret]).hide(before + said + after) or said in HIDDEN


@given(st.text())
def test_a_text_without_secrets_stays_as_it_is(text: str) -> None:
    assert Secrets([]).hide(text) == text
    assert Secrets(["no such text \x00\x01"]).hide(text) == text


def test_only_texts_of_data_are_changed() -> None:
    secrets = Secrets(["12345678"])
    data = {"a 12345678": [12345678, "x12345678", None, {"b": True}]}
    assert secrets.hide_all(data) == {"a ***": [12345678, "x***", None, {"b": True}]}


_SAID = st.lists(st.sampled_from(["12345678", "%31234567", "x", " ", "\\", "abc-]^", "&"])).map(
    "".join
)
_DATA = st.recursive(
    _SAID | st.none() | st.integers() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner) | st.dictionaries(_SAID, inner),
)


@given(_DATA, st.sampled_from([[], ["12345678"], ["x2"], ["abc-]^12345", "8x 8x 8x"]]))
def test_data_without_a_secret_is_not_copied_and_other_data_is(data: Any, texts: list[str]) -> None:
    secrets = Secrets(texts)
    assert secrets.hide_all(data) == secrets.copied(data)


@given(_SAID, st.sampled_from([["12345678"], ["x2"], ["abc-]^12345", "8x 8x 8x"]]))
def test_every_piece_of_a_secret_is_found(said: str, texts: list[str]) -> None:
    pieces = {text[at : at + 8] for text in texts for at in range(len(text) - 7)}
    shown = Secrets(texts).hide(said)
    assert not any(piece in shown for piece in pieces)
    if not any(piece in said for piece in pieces) and not {"%", "&", "\\"} & set(said):
        assert shown == said


def test_what_is_secret_in_an_address() -> None:
    assert secrets_of("http://host/score") == []
    assert secrets_of("http://[") == []
    assert "2" not in secrets_of("http://me:pw@host/?v=2")  # or every 2 would be hidden
    long = "x" * 100_000 + "\\" * 100_000 + "%25" * 50_000
    assert Secrets([KEY]).hide(long) == long


class _Echo(BaseHTTPRequestHandler):
    """Says everything it was sent, in all encodings, under the status in its path."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        header = self.headers.get("authorization", "")
        texts = [self.path, header, header.partition(" ")[2], *self.server.secrets]  # type: ignore[attr-defined]
        said = " ".join(encode(text) for text in texts for encode in ENCODINGS.values())
        answer = self.server.answer(said)  # type: ignore[attr-defined]
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(self.server.status)  # type: ignore[attr-defined]
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def echo(status: int, answer: Callable[[str], Any]) -> Iterator[str]:
    """The address of a server, with secrets in it."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Echo) as server:
        server.status, server.answer = status, answer  # type: ignore[attr-defined]
        server.secrets = [KEY, PLAIN_KEY, USER, PASSWORD, TOKEN, FRAGMENT]  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        user = f"{USER}:{quote(PASSWORD, safe='')}"
        yield f"http://{user}@127.0.0.1:{server.server_port}/v1?{QUERY}#{FRAGMENT}"
        server.shutdown()


def check(text: str) -> None:
    """No secret is in the text."""
    for secret in (PLAIN_KEY, PASSWORD, TOKEN, FRAGMENT):
        assert _leaked(text, secret) == "", text


def chat(said: str) -> Any:
    tops = [{"token": said, "logprob": -1.0}, {"token": "yes", "logprob": -2.0}]
    content = [{"token": said, "logprob": -1.0, "top_logprobs": tops}]
    choice = {"message": {"content": f"the answer is {said}"}, "logprobs": {"content": content}}
    return {"choices": [choice], "usage": {}}


ANSWERS: dict[str, tuple[int, Callable[[str], Any]]] = {
    "an error": (500, lambda said: {"error": {"message": said}}),
    "a refusal": (400, lambda said: {"detail": [said]}),
    "a wrong key": (401, lambda said: said.encode()),
    "no JSON": (200, lambda said: said.encode()),
    "no record": (200, lambda said: [said]),
    "another record": (200, lambda said: {"error": said, said: said}),
    "a completion": (200, chat),
    "a score": (200, lambda said: {"data": [{"score": said}]}),
    "no score": (200, lambda said: {"data": [{"points": said}]}),
    "a verdict": (
        200,
        lambda s: {"verdict": "failed", "reason": s, "evidence": {"x": [s, {s: s}]}},
    ),
    "no verdict": (200, lambda said: {"verdict": said}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ANSWERS)
def test_no_backend_repeats_a_secret(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", PLAIN_KEY)
    monkeypatch.setenv("REWARD_API_KEY", PLAIN_KEY)
    monkeypatch.setenv("VERIFIER_API_KEY", PLAIN_KEY)
    problem, draft = Problem("p", "?"), Draft("x")
    with echo(*ANSWERS[name]) as url:
        check_ = HttpCheck(problem, url)
        backends: list[tuple[Any, Callable[[Any], Any]]] = [
            (OpenaiGenerator("m", chat=True, base_url=url), lambda b: b.generate(problem, 1)),
            (JudgeScorer("m", base_url=url), lambda b: b.score(problem, [draft])),
            (RewardScorer(url, endpoint="score"), lambda b: b.score(problem, [draft])),
            (check_, lambda b: asyncio.to_thread(b.compare, draft.text)),
        ]
        for backend, ask in backends:
            check(repr(backend))
            try:
                said = asyncio.run(ask(backend))
            except BackendError as error:
                check(f"{error} {error!r} {error.__cause__!r} {error.backend}")
            else:
                check(f"{said!r} {json.dumps(said, default=repr)}")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["an error", "a completion", "no JSON", "another record"])
def test_neither_answers_nor_ledger_nor_terminal_have_a_secret(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", PLAIN_KEY)
    monkeypatch.setenv("REWARD_API_KEY", PLAIN_KEY)
    line = {"problem": "p", "prompt": "?", "check": {"kind": "math", "answer": "5"}}
    Path("in.jsonl").write_text(json.dumps(line))
    with echo(*ANSWERS[name]) as url:
        for out, score in (("one", "logprob"), ("two", f"score:{url}"), ("three", "judge:m")):
            live = ["in.jsonl", "--generator", "openai:m", "--base-url", url, "--score", score]
            calls = ["--attempts", "1", "--first-pause", "0", "--patience", "0"]
            said = [
                here("solve", *live, "--budget", "25", "--out", out, *calls),
                here("collect", *live, "-n", "2", "--out", f"{out}.csv", *calls),
                here("collect", *live, "-n", "2", "--out", f"{out}.csv", "--dry-run"),
                here("runs", "show", f"{out}.ledger", "p"),
                here("solve", *live[:-1], f"scor:{url}", "--out", out),
            ]
            check(" ".join(each.out + each.err for each in said))
    for path in tmp_path.rglob("*"):
        if path.is_file() and path.name != "in.jsonl":
            check(path.read_bytes().decode("latin-1"))


def test_what_is_no_address_is_not_repeated(tmp_path: Path) -> None:
    Path(tmp_path / "in.jsonl").write_text("{}")
    for url in (
        f"http://{USER}:{PASSWORD}@h/v1",
        f"ftp://x:{PLAIN_KEY}@h",
        f"http://h:{PLAIN_KEY}",
    ):
        for option in (["--base-url", url], ["--score", f"score:{url}"]):
            ran = here("solve", tmp_path / "in.jsonl", "--generator", "openai:m", *option)
            check(ran.err)
