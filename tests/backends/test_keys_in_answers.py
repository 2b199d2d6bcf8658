"""A candidate's text is never changed. One that contains a whole key is dropped."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grv.backends.generators.openai import KEY_INSIDE, OpenaiGenerator
from grv.backends.http.secrets import KEYS, Secrets, is_key
from grv.backends.protocols import Draft, Problem
from grv.core.errors import BackendError
from grv.core.values import DROPPED
from grv.ledger.entries import Made, Scored
from grv.ledger.opening import open_ledger
from grv.runtime.complaints import Complaints
from support.commands import Ran, here, records
from support.encodings import ENCODINGS
from support.servers import FaultyServer, Received, Status

REAL = "sk-proj-0123456789abcdefXYZ"
PLACEHOLDERS = [
    "EMPTY",
    "x",
    "12345678",
    "none",
    "dummy",
    "ollama",
    "lm-studio",
    "token-abc123",
    "sk-no-key-required",
    "no-api-key-required",
    "YOUR_API_KEY_HERE",
    "your-openai-api-key",
    "sk-xxxxxxxxxxxxxxxxxxxxxxxx",
    "0000000000000000",
    "not-a-real-key-at-all"[:14],
    "sk-not-a-real-key",
    "NoApiKeyIsNeeded",
    "insert your key here",
    "****************",
    "1234567890123456",
    "sk-000000000000000000000000",
    "hf_xxxxxxxxxxxxxxxxxxxxxxxx",
    "sk-proj-xxxxxxxxxxxxxxxx",
    "your-api-key-goes-here",
    "sk-dummy-key-for-local-model",
    "ollama-local-server",
    "this-is-not-used-here",
]
PROGRAMS = [
    "EMPTY = 0\ndef f(x):\n    return EMPTY + 2 * x\n",
    "def required(x):\n    return x\n",
    "The answer is \\boxed{12345678}.",
    "xyz\tprint(none, dummy, ollama, '0000000000000000', 'sk-no-key-required')\n",
    "%45MPTY &amp; \\u0045MPTY RU1QVFk= 454d505459",
]


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*KEYS, "OPENAI_CUSTOM_HEADERS"):
        monkeypatch.delenv(name, raising=False)


def answers(texts: Sequence[str], url: str = "{}", **options: Any) -> list[Draft]:
    """What the generator makes of a server's texts."""

    def said(request: Received, seed: int) -> str:
        return texts[seed]

    with FaultyServer(text=said) as server:
        where = server.url.replace("http://", url.partition("{}")[0] or "http://")
        generator = OpenaiGenerator("m", base_url=where + url.partition("{}")[2], **options)
        return asyncio.run(ask(generator, len(texts)))


async def ask(generator: OpenaiGenerator, n: int) -> list[Draft]:
    try:
        return [*await generator.generate(Problem("p", "?"), n)]
    finally:
        await generator.aclose()


@pytest.mark.parametrize("key", PLACEHOLDERS)
def test_with_a_placeholder_for_a_key_texts_arrive_as_they_are(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in KEYS:
        monkeypatch.setenv(name, key)
    texts = [*PROGRAMS, key, f"before {key} after"]
    assert [draft.text for draft in answers(texts)] == texts


@pytest.mark.parametrize(
    "name", [each for each in ENCODINGS if each not in ("cut short", "its end")]
)
def test_an_answer_with_a_whole_key_is_dropped_and_the_others_arrive_as_they_are(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", REAL)
    texts = ["right", f"key: {ENCODINGS[name](REAL)}!", f"a piece: {REAL[:-1]}"]
    first, second, third = answers(texts)
    assert (first.text, third.text) == (texts[0], texts[2])
    assert (second.text, second.logprobs, second.broken) == ("", None, KEY_INSIDE)
    assert second.usage.completion_tokens > 0  # it was paid for


def test_a_key_is_known_however_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    longer = REAL + "-and-more"
    other = "reward-0123456789abcdef"
    header = "hdr-0123456789abcdefgh"
    monkeypatch.setenv("OPENAI_API_KEY", f"  {REAL}\n")  # as `$(cat file)` in quotes leaves it
    monkeypatch.setenv("REWARD_API_KEY", other)
    monkeypatch.setenv("VERIFIER_API_KEY", longer)
    monkeypatch.setenv(
        "OPENAI_CUSTOM_HEADERS", f"Authorization: Bearer {header}\nx-shown: {'y' * 20}z"
    )
    extra: dict[str, Any] = {"api_key": "extra-0123456789abcdef", "top_k": 20}
    texts = [REAL, longer, other, header, "y" * 20 + "z", extra["api_key"], "2024-05-01-preview"]
    texts += ["p4ssw0rd/0123456789", quote("p4ssw0rd/0123456789", safe=""), "tok-0123456789abcdef"]
    url = "http://me:p4ssw0rd%2F0123456789@{}?token=tok-0123456789abcdef&v=2024-05-01-preview"
    made = answers(texts, url, extra_body=extra)
    kept = [text for text, draft in zip(texts, made, strict=True) if not draft.broken]
    assert kept == ["y" * 20 + "z", "2024-05-01-preview"]
    assert [draft.text for draft in made if not draft.broken] == kept


def test_basic_credentials_in_a_header_are_a_key_in_every_form(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = "marianne:p4ssw0rd-0123456789"
    encoded = ENCODINGS["base64"](plain)
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", f"authorization: Basic {encoded}")
    made = answers([plain, encoded, "p4ssw0rd-0123456789", "marianne"])
    assert [bool(draft.broken) for draft in made] == [True, True, True, False]


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        (REAL, False),
        ("sk-hunter2", False),
        ("EMPTY", True),
        ("x", True),
        ("sk-no-key-required", True),
    ],
)
def test_errors_hide_keys_that_are_keys(
    key: str, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    said = f"the index of the {key} text"
    with FaultyServer([Status(500, message=said)]) as server:
        generator = OpenaiGenerator("m", base_url=server.url)
        with pytest.raises(BackendError) as caught:
            asyncio.run(ask(generator, 1))
    assert (said in str(caught.value)) is shown
    assert ("***" in str(caught.value)) is not shown


_KEYS = st.sampled_from([*PLACEHOLDERS, REAL, "hunter2hunter2", "k" * 9 + "0123456789"])
_PIECES = st.sampled_from(
    [*PLACEHOLDERS, REAL, REAL[3:], REAL[:-2], "%", "\\u0041", "&lt;", "def f"]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(_KEYS),
    st.lists(_PIECES | st.text()).map("".join),
    st.sampled_from([*ENCODINGS.values()]),
)
def test_only_a_whole_real_key_drops_a_text(
    keys: list[str], text: str, encode: Callable[[str], str]
) -> None:
    try:
        said = encode(text)
    except UnicodeEncodeError:
        said = text
    dropped = Secrets.of(None, *keys).has_key(said)
    real = [key for key in keys if is_key(key)]
    if not real:
        assert not dropped
    if any(key in said for key in real):
        assert dropped


def test_a_placeholder_is_no_key_and_whatever_is_long_and_not_one_is() -> None:
    assert not any(map(is_key, PLACEHOLDERS))
    assert is_key("apikey" * 30 + "!q")  # at once: nothing is read in two ways
    assert all(map(is_key, [REAL, "very-secret-0123456789", "correct-horse-battery-staple"]))


def solve(server: FaultyServer, folder: Path, *more: object) -> Ran:
    where = ["--base-url", server.url, "--out", folder / "out", "--policy", "verify-all"]
    return here(
        "solve", folder / "in.jsonl", "--generator", "openai:m", *where, "--budget", 100, *more
    )


def test_a_dropped_candidate_is_paid_for_and_its_text_is_in_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", REAL)
    check = {"kind": "math", "answer": "5"}
    line = {"problem": "p", "prompt": "?", "check": check}
    (tmp_path / "in.jsonl").write_text(json.dumps(line))
    marker = "SurroundingText"
    said = iter([f"{marker} {REAL} \\boxed{{5}}", "\\boxed{4}", "\\boxed{5}", "\\boxed{5}"])
    with FaultyServer(text=lambda request, seed: next(said)) as server:
        ran = solve(server, tmp_path)
        again = solve(server, tmp_path)
        asked = sum(request.body.get("n", 1) for request in server.received)
    assert (ran.code, again.code) == (0, 0), ran
    (answer,) = records(tmp_path / "out")
    assert answer["answer"] == "\\boxed{5}"
    assert (answer["generated"], answer["verified"], answer["refuted"]) == (asked, 2, 0)
    assert answer["cost"] == asked + 20
    assert "1 of the first" in ran.err
    assert "dropped as broken" in ran.err
    shown = here("runs", "show", tmp_path / "out.ledger", "p", "--full")
    assert f"dropped as broken: {KEY_INSIDE}" in shown.out
    exported = here("runs", "export", tmp_path / "out.ledger", "-o", tmp_path / "log.csv")
    assert exported.code == 0, exported
    rows = (tmp_path / "log.csv").read_text().splitlines()
    assert len(rows) == 1 + asked
    assert rows[1].split(",")[:3] == ["p", "0", ""]  # a candidate without a label
    ledger = open_ledger(str(tmp_path / "out.ledger"), read_only=True)
    (summary,) = ledger.searches()
    entries = ledger.read(summary.id)
    assert summary.paid == answer["cost"]
    ledger.close()
    assert [each.broken for each in entries if isinstance(each, Made)][:2] == [KEY_INSIDE, ""]
    assert next(each.key for each in entries if isinstance(each, Scored)) == DROPPED
    printed = ran.out + ran.err + shown.out + exported.out + exported.err
    files = [path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(marker in each or REAL in each for each in [printed, *files])


@pytest.mark.slow
def test_a_dropped_candidate_is_never_the_best_one_and_never_a_label(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", REAL)
    line = {"problem": "p", "prompt": "?", "check": {"kind": "math", "answer": "5"}}
    (tmp_path / "in.jsonl").write_text(json.dumps(line))
    with FaultyServer(text=lambda request, seed: f"{REAL} \\boxed{{5}}") as server:
        ran = solve(server, tmp_path, "--score", "length")
        out = tmp_path / "log.csv"
        live = [tmp_path / "in.jsonl", "--generator", "openai:m", "--base-url", server.url]
        collected = here("collect", *live, "-n", 4, "--out", out, "--score", "length")
    assert ran.code != 0
    assert REAL not in ran.out + ran.err + collected.out + collected.err
    for path in filter(Path.is_file, tmp_path.rglob("*")):
        assert REAL not in path.read_bytes().decode("latin-1")
    assert "dropped as broken" in ran.err
    rows = [row.split(",")[2] for row in out.read_text().splitlines()[1:]]
    assert rows == [""] * 4


def test_a_run_whose_answers_are_all_dropped_stops_and_says_why() -> None:
    complaints = Complaints()
    lines: list[str] = []
    complaints.tell = lines.append
    assert complaints.of_drafts([Draft("", broken=KEY_INSIDE)] * 49) is None
    why = complaints.of_drafts([Draft("", broken=KEY_INSIDE)])
    assert why is not None
    assert "dropped as broken" in why
    assert len(lines) == 1
