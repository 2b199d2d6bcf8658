"""Verify with a resources server of NeMo Gym: checks of kind "gym".

`{"kind": "gym", "row": {"expected_answer": "42"}}`. The server is the one that the operator names
with `--gym`; no file of problems and no client can name it. It receives by POST at `/verify` the
fields of `row`, the request (`responses_create_params`) and the candidate as its answer
(`response`), and returns the same with a `reward`. The verdict is that of the server.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit, urlunsplit

from ...core.errors import UsageError, VerifierError
from ...core.values import Verdict
from ...files import is_number
from ...files import shown as shown_value
from ..http.json_client import JsonClient
from ..http.secrets import key_in
from ..http.web import address, shown
from ..protocols import Finding, Problem, Usage
from .checks import TextCheck

KEY = "VERIFIER_API_KEY"
_PATH = "/verify"
_OURS = ("response", "reward")
_SECONDS = 60.0
_FAILED = "_ng_failure_class"  # the server says that it could not verify
_WHY = "_ng_failure_judge_error"


@dataclass(frozen=True)
class GymCheck(TextCheck):
    """Asks a resources server about a candidate's text.

    The environment variable VERIFIER_API_KEY holds the key, if the server needs one.

    Attributes:
        problem: the problem.
        row: what the server verifies with, such as `expected_answer`.
        passes: the least reward with which a candidate passes.
        seconds: the time limit for one candidate.
        server: its address; empty until the operator's is known.
    """

    judged_by: ClassVar[int] = 0

    problem: Problem
    row: Mapping[str, Any]
    passes: float = 1.0
    seconds: float = _SECONDS
    server: str = ""

    @classmethod
    def of(cls, problem: Problem) -> GymCheck:
        """The check of a problem; its `limits.seconds` replace the 60 seconds."""
        record = problem.check
        row = record.get("row", {})
        if not isinstance(row, Mapping):
            raise UsageError(f"row must be a record, not {shown_value(row)}")
        for name in _OURS:
            if name in row:
                raise UsageError(f"row.{name}: grv sets this field itself")
        passes = record.get("passes", 1.0)
        if not is_number(passes):
            raise UsageError(
                f"passes must be the least reward of a pass, not {shown_value(passes)}"
            )
        seconds = record.get("limits", {}).get("seconds", _SECONDS)
        return cls(problem, dict(row), float(passes), float(seconds))

    def at_gym(self, address: str | None) -> Self:
        """The same check with the operator's server."""
        if address is None:
            raise UsageError(
                f"problem {self.problem.id}: a check of kind gym needs the address of a resources"
                " server: give --gym URL"
            )
        return replace(self, server=endpoint(address))

    def content(self) -> str:
        """Another server may have another opinion."""
        return shown(self.server)

    def compare(self, text: str) -> Finding:
        """The server's finding; a VerifierError if there is none."""
        return asyncio.run(self._ask(text))

    async def _ask(self, text: str) -> Finding:
        name = self.problem.id
        client = JsonClient(
            self.server,
            key_in(KEY),
            key_name=KEY,
            backend=f"gym:{shown(self.server)}",
            error=VerifierError,
            seconds=self.seconds,
        )
        started = time.monotonic()
        try:
            async with asyncio.timeout(self.seconds):
                reply = await client.post(request_of(self.problem, self.row, text), name)
        except TimeoutError as exc:
            raise client.failure(f"no answer within {self.seconds:g} seconds", name) from exc
        finally:
            await client.aclose()
        if reply.status != 200:
            raise client.failure(reply.message, name, reply.cause)
        try:
            return self._finding(client.data(reply, name), time.monotonic() - started)
        except ValueError as exc:
            raise client.failure(str(exc), name) from None

    def _finding(self, answer: Any, seconds: float) -> Finding:
        """The finding in an answer; a `ValueError` if there is none."""
        reward = answer.get("reward") if isinstance(answer, Mapping) else None
        if not is_number(reward):
            raise ValueError(f"the answer must have a reward, not {shown_value(reward)}")
        used = Usage(seconds=seconds)
        if answer.get(_FAILED):
            why = " ".join(str(answer.get(_WHY) or answer[_FAILED]).split())[:200]
            return Finding(Verdict.BROKEN, f"judged by gym: it could not verify: {why}", {}, used)
        verdict = Verdict.PASSED if reward >= self.passes else Verdict.FAILED
        evidence = {"judged_by": "gym", "reward": float(reward)}
        return Finding(verdict, f"judged by gym: reward {reward:g}", evidence, used)


def endpoint(server: str) -> str:
    """The address of requests to a server, given its own; a UsageError if that is none.

    >>> endpoint("http://localhost:9000")
    'http://localhost:9000/verify'
    """
    parts = urlsplit(address(server))
    path = parts.path.rstrip("/")
    if not path.endswith(_PATH):
        path += _PATH
    return urlunsplit(parts._replace(path=path))


def request_of(problem: Problem, row: Mapping[str, Any], text: str) -> dict[str, Any]:
    """What the server receives: the row, the request, and the candidate as its answer."""
    messages = problem.messages or ({"role": "user", "content": problem.prompt},)
    said = {"type": "output_text", "text": text, "annotations": []}
    message = {
        "id": "candidate",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [said],
    }
    response = {
        "id": "candidate",
        "object": "response",
        "created_at": 0,
        "model": "candidate",
        "output": [message],
        "parallel_tool_calls": False,
        "tool_choice": "none",
        "tools": [],
    }
    asked = {"responses_create_params": {"input": [dict(each) for each in messages]}}
    return {**asked, **row, "response": response}
