"""Servers that send more than they should: choices of any length, endless and packed bodies."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import random
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from grv.backends.generators.completions import TOO_LARGE, drafts, reduced
from grv.backends.generators.openai import OpenaiGenerator
from grv.backends.http import bodies
from grv.backends.http.bodies import AnswerReader
from grv.backends.protocols import Problem
from grv.core.errors import GeneratorError
from grv.ledger.entries import Made, Scored
from grv.ledger.sqlite import SqliteLedger
from support.commands import grv, records, write_problems
from support.servers import FaultyServer, Received

PROBLEM = Problem("p", "Solve p.")


def choice(index: int, text: str, tokens: int = 3) -> dict[str, Any]:
    content = [
        {"token": '"}]\\', "logprob": -0.5 * at, "top_logprobs": [{"token": "é"}]}
        for at in range(tokens)
    ]
    message = {"role": "assistant", "content": text, "reasoning": [{"a": ["[", "{"]}]}
    return {"index": index, "message": message, "logprobs": {"content": content}}


def answer(*texts: str) -> dict[str, Any]:
    return {
        "id": "x",
        "nested": {"choices": [{"text": "not a choice"}]},
        "choices": [choice(at, text) for at, text in enumerate(texts)],
        "usage": {"prompt_tokens": 5, "completion_tokens": 30},
    }


TEXTS = ('quotes " and \\ and \\"', "brackets ]}]}{[", "é \U0001f600 \u2028", "", "plain " * 50)


@pytest.mark.parametrize("seed", range(20))
def test_a_large_answer_in_pieces_has_the_same_drafts_as_a_small_one(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    whole = json.dumps(answer(*TEXTS), ensure_ascii=chance.random() < 0.5).encode()
    expected = drafts(json.loads(whole), most=5)
    monkeypatch.setattr(bodies, "_SMALL", chance.choice([0, 100]))
    reader = AnswerReader(5, reduced)
    at = 0
    while at < len(whole):
        size = chance.choice([1, 1, 2, 7, 1000])
        reader.add(whole[at : at + size])
        at += size
    assert drafts(reader.answer(), most=5) == expected


def test_a_choice_above_the_limit_is_a_broken_candidate_and_is_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bodies, "_SMALL", 0)
    monkeypatch.setattr(bodies, "LARGEST_CHOICE", 2000)
    reader = AnswerReader(3, reduced)
    whole = json.dumps(answer("short", "x" * 100_000, "another")).encode()
    for at in range(0, len(whole), 64):
        reader.add(whole[at : at + 64])
        assert len(reader._kept) + len(reader._item) < 5000  # noqa: SLF001 - what it holds
    made = drafts(reader.answer(), most=3)
    assert [draft.text for draft in made] == ["short", "", "another"]
    assert [draft.broken for draft in made] == ["", TOO_LARGE, ""]


@pytest.mark.parametrize("small", [0, 1 << 20])
def test_choices_that_nobody_asked_for_are_left_out_and_paid_for(
    small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "_SMALL", small)
    reader = AnswerReader(2, reduced)
    reader.add(json.dumps(answer(*map(str, range(50)))).encode())
    made = drafts(reader.answer(), most=2)
    assert [draft.text for draft in made] == ["0", "1"]
    assert sum(draft.usage.completion_tokens for draft in made) == 30


@pytest.mark.parametrize("damage", [b"", b"}", b'"', b"[1", b'{"choices": [{"a": ]}]}'])
def test_a_large_answer_that_is_not_json_is_an_error(
    damage: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "_SMALL", 0)
    reader = AnswerReader(2, reduced)
    reader.add(damage or b"<html>")
    with pytest.raises(ValueError, match=r"\w"):
        reader.answer()


@contextlib.asynccontextmanager
async def serving(head: str, body: Iterator[bytes]) -> AsyncIterator[tuple[str, list[int]]]:
    """A server that sends a head and a body of any length; its address, and how much it sent."""
    sent = [0]

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(head.encode())
            for part in body:
                writer.write(part)
                await writer.drain()
                sent[0] += len(part)
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", sent


async def failure(head: str, body: Iterator[bytes]) -> tuple[str, int, int]:
    """The error of a generator, the bytes that were sent, and the most memory that Python took."""
    async with serving(head, body) as (url, sent):
        generator = OpenaiGenerator("m", base_url=url)
        tracemalloc.start()
        try:
            with pytest.raises(GeneratorError) as caught:
                await generator.generate(PROBLEM, 1)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
            await generator.aclose()
    return str(caught.value), sent[0], peak


def endless(beginning: bytes, part: bytes) -> Iterator[bytes]:
    yield beginning
    while True:
        yield part


OK = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
BODIES = {
    "a text": b'{"choices": [{"text": "',
    "choices": b'{"choices": [',
    "not JSON": b"",
}


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("kind", BODIES)
async def test_an_endless_answer_ends_at_the_limit_and_is_never_held_whole(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grv.backends.http.endpoint.LARGEST_CHOICE", 16 << 20)
    monkeypatch.setattr(bodies, "LARGEST_CHOICE", 2 << 20)
    monkeypatch.setattr(bodies, "_SMALL", 1 << 18)
    part = b'{"text": "y"},' * 5000 if kind == "choices" else b"x" * 65536
    message, sent, peak = await failure(f"{OK}\r\n", endless(BODIES[kind], part))
    assert "an answer of more than" in message
    assert sent < 64 << 20
    assert peak < 16 << 20


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_packed_answer_is_unpacked_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grv.backends.http.endpoint.LARGEST_CHOICE", 4 << 20)
    packed = gzip.compress(b'{"choices": [{"text": "' + b"x" * (200 << 20))
    head = f"{OK}Content-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n"
    message, _, peak = await failure(head, iter([packed]))
    assert "an answer of more than" in message
    assert peak < 40 << 20


@pytest.mark.anyio
async def test_an_encoding_that_was_not_asked_for_is_refused() -> None:
    head = f"{OK}Content-Encoding: zstd\r\nContent-Length: 4\r\n\r\n"
    message, _, _ = await failure(head, iter([b"\x28\xb5\x2f\xfd"]))
    assert message == "an answer in the encoding zstd, which was not asked for"


@pytest.mark.anyio
async def test_an_answer_may_be_packed() -> None:
    packed = gzip.compress(json.dumps(answer("fine")).encode())
    head = f"{OK}Content-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n"
    async with serving(head, iter([packed[:50], packed[50:]])) as (url, _):
        generator = OpenaiGenerator("m", base_url=url)
        (draft,) = await generator.generate(PROBLEM, 1)
        await generator.aclose()
    assert draft.text == "fine"


@pytest.mark.anyio
async def test_of_an_endless_error_the_beginning_is_read() -> None:
    head = "HTTP/1.1 500 No\r\nContent-Type: text/plain\r\n\r\n"
    message, sent, peak = await failure(head, endless(b"it broke ", b"x" * 65536))
    assert message.startswith("status 500: it broke xxx")
    assert sent < 16 << 20
    assert peak < 16 << 20


@pytest.mark.slow
def test_a_candidate_that_is_too_long_is_dropped_and_the_search_goes_on(tmp_path: Path) -> None:
    problems = write_problems(tmp_path / "problems", ["a"], seen=tmp_path / "seen")
    made: list[int] = []

    def text(request: Received, seed: int) -> str:
        made.append(seed)
        return f"right {'x' * 600_000}" if len(made) < 4 else "right"

    with FaultyServer(text=text) as server:
        ran = grv(
            "solve",
            problems,
            "--allow-commands",
            "--generator",
            "openai:m",
            "--seed",
            1,
            "--base-url",
            server.url,
            "--out",
            tmp_path / "out",
            "--longest-candidate",
            1000,
            "--ledger",
            tmp_path / "ledger",
            "--costs",
            "1,2",
            "--budget",
            100,
        )
    assert ran.code == 0, ran
    assert "dropped as broken" in ran.out
    (record,) = records(tmp_path / "out")
    assert (record["outcome"], record["answer"]) == ("solved", "right")
    ledger = SqliteLedger(tmp_path / "ledger", read_only=True)
    (search,) = ledger.searches()
    entries = ledger.read(search.id)
    broken = [each for each in entries if isinstance(each, Made) and each.broken]
    assert len(broken) == 3
    assert all(each.text == "" and "--longest-candidate is 1,000" in each.broken for each in broken)
    assert sum(isinstance(each, Scored) and each.key == "grv:dropped" for each in entries) == 3
    assert ledger.check() == []
    ledger.close()
    assert (tmp_path / "ledger").stat().st_size < 200_000
