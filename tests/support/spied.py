"""Sends hostile requests to a server in this process, and reports what the process opened.

    python -m support.spied FOLDER COUNT        requests to `grv serve`
    python -m support.spied FOLDER COUNT dialects  the same in other dialects
    python -m support.spied FOLDER COUNT rows      requests to `grv verify --serve`
    python -m support.spied FOLDER COUNT tools     calls of tools of `grv mcp`

A spy cannot be removed, so this runs in a process of its own. It prints one line of JSON: how many
requests were answered with which status, and what was opened, connected to or started meanwhile.
"""

from __future__ import annotations

import copy
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import anyio
from starlette.types import ASGIApp

from grv.backends.generators.openai import CHAT
from grv.backends.generators.sampling import Sampling
from grv.backends.protocols import Draft, Problem, Score
from grv.backends.sandbox.limits import RunLimits
from grv.backends.verifiers.pool import CheckVerifier
from grv.core.limits import Limits
from grv.core.values import Costs
from grv.ledger.sqlite import SqliteLedger
from grv.runtime.calls import Caller
from grv.runtime.executor import Backends
from grv.serve.app import Application, ServerTimes
from grv.serve.clients import ANYONE, Clients
from grv.serve.door import Door, DoorBounds
from grv.serve.errors import ApiError
from grv.serve.events import Events
from grv.serve.gym import GymApplication
from grv.serve.mcp.tools import Tools
from grv.serve.metrics import Metrics
from grv.serve.profiles import Profile, SearchPlan
from grv.serve.searches import Searches, ServerBounds

MARK = "guestmark"
# What these events say is reported. `open` also tells of modules that are loaded late.
WATCHED = (
    "open",
    "socket.connect",
    "socket.getaddrinfo",
    "socket.gethostbyname",
    "socket.sendto",
    "sqlite3.connect",
    "sqlite3.load_extension",
    "subprocess.Popen",
    "os.exec",
    "os.posix_spawn",
    "os.system",
    "os.listdir",
    "os.scandir",
    "ctypes.dlopen",
    "exec",
    "import",
)
TEXTS = (
    f"/etc/{MARK}",
    f"../../{MARK}",
    f"file:///{MARK}",
    f"{MARK}.ledger",
    f"postgresql://{MARK}@127.0.0.1:1/{MARK}",
    f"postgres://{MARK}@127.0.0.1:1/{MARK}?passfile=/etc/{MARK}",
    f"http://127.0.0.1:1/{MARK}",
    f"//127.0.0.1:1/{MARK}",
    f"learning('postgresql://{MARK}@127.0.0.1:1/{MARK}')",
    f"learning(('{MARK}.ledger', 'postgresql://{MARK}@127.0.0.1:1/x'))",
    f"learning(history='{MARK}.ledger')",
    f"learning(b'{MARK}')",
    f"learned('{MARK}.json')",
    f"learned(prior='/etc/{MARK}')",
    f"centered-star('{MARK}.npy')",
    f"known-law(('{MARK}',), (1,))",
    f"fixed('{MARK}', 1)",
    f"{MARK}.py:Policy",
    f"{MARK}.py:f('x')",
    f"trained:{MARK}.ledger",
    f"openai:{MARK}",
    f"pooling:http://127.0.0.1:1/{MARK}",
    f"data:image/svg+xml;base64,{MARK}",
    f"{MARK}\x00/etc/passwd",
    f"\\\\127.0.0.1\\{MARK}",
)
WHOLE: dict[str, Any] = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "s", "name": "n"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "t"},
                {
                    "type": "image_url",
                    "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"},
                },
            ],
        },
    ],
    "temperature": 0.5,
    "top_p": 0.5,
    "max_tokens": 5,
    "seed": 1,
    "stop": ["x"],
    "stream": False,
    "stream_options": {"include_usage": True},
    "frequency_penalty": 0,
    "presence_penalty": 0,
    "reasoning_effort": "low",
    "user": "u",
    "metadata": {"a": "b"},
    "store": False,
    "service_tier": "auto",
    "n": 1,
    "tools": [
        {
            "type": "function",
            "function": {"name": "f", "description": "d", "parameters": {"type": "object"}},
        }
    ],
    "tool_choice": "none",
    "parallel_tool_calls": False,
    "modalities": ["text"],
    "response_format": {
        "type": "json_schema",
        "json_schema": {
            "name": "n",
            "description": "d",
            "strict": True,
            "schema": {
                "type": "object",
                "title": "t",
                "properties": {"a": {"$ref": "#/$defs/b"}, "c": {"enum": ["x"], "pattern": "p"}},
                "required": ["a"],
                "$defs": {"b": {"anyOf": [{"type": "string"}, {"const": 1}]}},
                "additionalProperties": False,
            },
        },
    },
    "grv": {
        "check": {"kind": "math", "answer": "42"},
        "policy": "fixed(2, 1)",
        "costs": "1,10",
        "budget": 50,
        "value": 100,
        "require": "best",
        "deadline": 20,
        "fresh": "f",
    },
}
RESPONSE: dict[str, Any] = {
    "model": "grv/m",
    "instructions": "i",
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "t"}]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "o"},
        {
            "role": "user",
            "content": [{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}],
        },
    ],
    "max_output_tokens": 5,
    "temperature": 0.5,
    "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}},
    "reasoning": {"effort": "low", "summary": "auto"},
    "include": ["reasoning.encrypted_content"],
    "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}],
    "tool_choice": {"type": "function", "name": "f"},
    "store": False,
    "truncation": "disabled",
    "stream": False,
    "grv": WHOLE["grv"],
}
MESSAGE: dict[str, Any] = {
    "model": "m",
    "max_tokens": 5,
    "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": "t"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {"a": "b"}}],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c", "content": "o", "is_error": False},
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"},
                },
            ],
        },
    ],
    "stop_sequences": ["x"],
    "thinking": {"type": "disabled"},
    "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {}}},
    "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object"}}],
    "tool_choice": {"type": "tool", "name": "f"},
    "metadata": {"user_id": "u"},
    "stream": False,
    "grv": WHOLE["grv"],
}
# By path.
OTHERS = {"/v1/responses": RESPONSE, "/v1/messages": MESSAGE}
ROW: dict[str, Any] = {
    "responses_create_params": {"input": [{"role": "user", "content": "t"}]},
    "response": {
        "output": [
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "\\boxed{42}"}],
            }
        ]
    },
    "expected_answer": "42",
}
FUNCTION = {"kind": "function", "entry_point": "f", "tests": [{"args": [1], "expected": 1}]}


VERIFY: dict[str, Any] = {
    "candidate": "It is \\boxed{42}",
    "check": {"kind": "math", "answer": "42"},
    "problem": "p",
    "model": "m",
    "budget": 50,
    "deadline": 20,
}
SOLVE: dict[str, Any] = {
    "problem": "What is it?",
    "model": "m",
    **WHOLE["grv"],
    **{name: WHOLE[name] for name in ("temperature", "top_p", "max_tokens", "seed", "stop")},
}


class Fake:
    """A model whose every answer is right, and its scores. It takes tools, and calls none."""

    dialect = CHAT

    def sampled(self, sampling: Sampling) -> Fake:
        return self

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> Sequence[Draft]:
        return [Draft("It is \\boxed{42}") for _ in range(n)]

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        return [Score(0.0) for _ in drafts]


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of each value in a request."""
    inner = data.items() if isinstance(data, dict) else enumerate(data) if path_of(data) else ()
    for name, value in inner:
        yield (*path, name)
        yield from places(value, (*path, name))


def path_of(data: Any) -> bool:
    return isinstance(data, list)


def forms(text: str) -> list[Any]:
    """A text as a value, and inside what a careless server would follow."""
    return [
        text,
        [text],
        {text: text},
        {"$ref": text},
        {"$dynamicRef": text, "$id": text, "$schema": text, "$import": [text]},
        {"kind": "http", "url": text},
        {"kind": "command", "argv": [text]},
        {"kind": "human", "question": text},
        {"type": "image_url", "image_url": {"url": text}},
        {"type": "json_schema", "json_schema": {"schema": {"$ref": text}}, "url": text},
    ]


def changed(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A request with another value in a place."""
    made = copy.deepcopy(data)
    holder = made
    for name in path[:-1]:
        holder = holder[name]
    holder[path[-1]] = value
    return made


def requests(count: int) -> Iterator[tuple[str, Any]]:
    """Address and body of hostile requests: every text in every place, then more forms of them."""
    whole = [WHOLE, changed(WHOLE, ("grv", "check"), FUNCTION)]
    more = [changed(WHOLE, ("grv", name), "x") for name in ("base_url", "history", "prior")]
    known = [(body, path) for body in (*whole, *more) for path in places(body)]
    every = [(body, path, text) for body, path in known for text in TEXTS]
    chosen = random.Random(0)
    chosen.shuffle(every)
    policies = [(WHOLE, ("grv", "policy"), text) for text in TEXTS]
    for body, path, text in (policies + every)[:count]:
        form = text if chosen.random() < 0.5 else chosen.choice(forms(text))
        said = changed(body, path, form)
        if chosen.random() < 0.2:
            said = {name: value for name, value in said.items() if name != "messages"}
            yield "/v1/completions", {"prompt": text, **said}
        else:
            yield "/v1/chat/completions", said


def other_requests(count: int) -> Iterator[tuple[str, Any]]:
    """The same for the other dialects."""
    known = [(path, place) for path, body in OTHERS.items() for place in places(body)]
    every = [(path, place, text) for path, place in known for text in TEXTS]
    chosen = random.Random(0)
    chosen.shuffle(every)
    for path, place, text in every[:count]:
        form = text if chosen.random() < 0.5 else chosen.choice(forms(text))
        yield path, changed(OTHERS[path], place, form)


def rows(count: int) -> Iterator[tuple[str, Any]]:
    """The same for `grv verify --serve`: hostile rows."""
    more = ("gt_sql", "sql_context", "db_id", "schema_str", "verifier_metadata", "header")
    whole = [ROW, {**ROW, "check": FUNCTION}, *({**ROW, name: "x"} for name in more)]
    every = [(body, place, text) for body in whole for place in places(body) for text in TEXTS]
    chosen = random.Random(0)
    chosen.shuffle(every)
    for body, place, text in every[:count]:
        form = text if chosen.random() < 0.5 else chosen.choice(forms(text))
        yield "/verify", changed(body, place, form)


def tool_calls(count: int) -> Iterator[tuple[str, Any]]:
    """Tools and hostile arguments: every text in every place, then more forms of them."""
    whole = [("verify", VERIFY), ("verify", changed(VERIFY, ("check",), FUNCTION))]
    whole += [("solve", SOLVE), ("solve", changed(SOLVE, ("check",), FUNCTION))]
    whole += [("status", {"search": "x"}), ("attempt", {"task": "x", "repository": "x"})]
    extra = ("base_url", "repository", "ledger", "argv", "path", "generator", "agent")
    whole += [("verify", {**VERIFY, name: "x"}) for name in extra]
    every = [
        (tool, body, path, text) for tool, body in whole for path in places(body) for text in TEXTS
    ]
    chosen = random.Random(0)
    chosen.shuffle(every)
    for tool, body, path, text in every[:count]:
        form = text if chosen.random() < 0.5 else chosen.choice(forms(text))
        yield (tool if chosen.random() < 0.99 else text), changed(body, path, form)


async def call(tools: Tools, name: str, arguments: Any) -> int:
    """The status of a call."""

    async def report(steps: float, message: str) -> None:
        pass

    try:
        await tools.call(name, arguments, ANYONE, report)
    except ApiError as error:
        return error.status if "\n" not in str(error) else 0
    return 200


async def ask(app: ASGIApp, path: str, body: Any) -> int:
    """The status of a request."""
    content = json.dumps(body).encode()
    mark = f"/etc/{MARK}".encode()
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"policy=" + mark,
        "headers": [
            (b"host", b"localhost"),
            (b"content-type", b"application/json"),
            (b"x-base-url", b"http://127.0.0.1:1/" + mark),
            (b"x-forwarded-host", mark),
            (b"referer", b"file://" + mark),
        ],
        "client": ("127.0.0.1", 1),
        "scheme": "http",
    }
    messages = [{"type": "http.request", "body": content, "more_body": False}]
    status = 0

    async def receive() -> Any:
        if messages:
            return messages.pop()
        await anyio.sleep_forever()
        return None

    async def send(message: Any) -> None:
        nonlocal status
        status = message.get("status", status)

    await app(scope, receive, send)
    return status


async def work(folder: Path, count: int, what: str) -> dict[str, Any]:
    """Answer the requests under the eyes of a spy."""
    seen: list[str] = []
    ready = False

    def spy(event: str, given: tuple[Any, ...]) -> None:
        if ready and event in WATCHED:
            said = repr(given)[:300]
            loads = event in ("import", "exec", "os.listdir", "os.scandir", "open")
            if not loads or MARK in said or "psycopg" in said:
                seen.append(f"{event} {said}")

    sys.addaudithook(spy)
    fake, sampling = Fake(), Sampling()
    with CheckVerifier(workers=1) as verifier, (folder / "events").open("w") as log:
        backends = Backends(fake, fake, verifier, verifier.key)
        plan = SearchPlan(costs=Costs(1, 10), limits=Limits(budget=50))
        profile = Profile("m", backends, {}, sampling, Caller(), plan)
        ledger = SqliteLedger(folder / "ledger")
        events = Events(log)
        searches = Searches(ledger, 1e9, ServerBounds(), events, detailed=True)
        door = Door(DoorBounds(), keys=False)
        metrics = Metrics(ledger, 1e9)
        app = Application({"m": profile}, Clients(), searches, metrics, door, events, ServerTimes())
        tools = Tools({"m": profile}, searches, ledger)
        found: Counter[int] = Counter()
        async with searches.open():
            for name, given in (("verify", VERIFY), ("solve", SOLVE), ("status", {})):
                await call(tools, name, given)
            for body in (WHOLE, changed(WHOLE, ("grv", "check"), FUNCTION)):
                await ask(app, "/v1/chat/completions", body)  # what is loaded late is loaded now
            for path, body in OTHERS.items():
                assert await ask(app, path, body) == 200, path
            gym = GymApplication(verifier, RunLimits(), Clients(), door, events, 30)
            assert await ask(gym, "/verify", ROW) == 200
            ready = True
            if what == "tools":
                for name, given in tool_calls(count):
                    found[await call(tools, name, given)] += 1
            elif what == "rows":
                for path, body in rows(count):
                    found[await ask(gym, path, body)] += 1
            else:
                made = requests(count) if what == "requests" else other_requests(count)
                for path, body in made:
                    found[await ask(app, path, body)] += 1
            ready = False
        ledger.close()
    return {"statuses": found, "seen": seen, "postgres": "psycopg" in sys.modules}


if __name__ == "__main__":
    folder, number, what = (*sys.argv[1:], "requests")[:3]
    print(json.dumps(anyio.run(work, Path(folder), int(number), what)))
