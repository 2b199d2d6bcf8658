"""A server for the live commands, in a process of its own: right, wrong and broken answers."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

from support.servers import (
    Cut,
    Drop,
    Empty,
    Fault,
    FaultyServer,
    Fewer,
    NoLogprobs,
    NotNumbers,
    Received,
    Say,
    Status,
)

from .corpus import TEXTS
from .mutations import json_text, spoilt_json

REFUSALS = (Status(500), Status(429, "0"), Status(400, message="\x1b[2Jno"), Status(401))
BODIES = (Say(), Say("[" * 5000), Say("9" * 5000), Say("\x00"), Say("{}"))
FAULTS: tuple[Fault, ...] = (
    *REFUSALS,
    *BODIES,
    Drop(),
    Drop(midway=True),
    Cut(),
    Fewer(),
    Empty(),
    NoLogprobs(),
    NotNumbers(),
)
GOOD = {
    "choices": [
        {
            **{"index": 0, "message": {"content": "5"}},
            **{"logprobs": {"content": [{"logprob": -1.0, "top_logprobs": []}]}},
        }
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    "data": [{"index": 0, "score": 0.5, "probs": [0.5, 0.5]}],
}


def serve() -> None:
    """Serve until standard input is closed; the address is printed."""
    numbers = itertools.count()

    def fault(_: Received) -> Fault | None:
        random = Random(next(numbers))
        if random.randrange(4):
            return None
        return random.choice((*FAULTS, Say(json_text(spoilt_json(GOOD, random)))))

    def text(request: Received, seed: int) -> str:
        return TEXTS[seed % len(TEXTS)]

    with FaultyServer(fault, text=text) as server:
        print(server.url, flush=True)
        sys.stdin.read()


@contextmanager
def served() -> Iterator[str]:
    """The address of such a server."""
    program = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve; serve()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address, "the server did not start"
        yield address
        process.communicate("")
