"""Verify with an HTTP server: checks of kind "http".

`{"kind": "http", "url": "http://localhost:9000/verify", "data": {...}}`. The server receives
`{"problem": id, "prompt": ..., "candidate": text, "check": {...}}` by POST, and answers with status
200 and `{"verdict": "passed" | "failed" | "broken", "reason": "...", "evidence": {...}}`. `reason`
and `evidence` are optional. Any other answer is a `VerifierError`.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from ...core.errors import UsageError, VerifierError
from ...core.values import Verdict
from ...files import shown as shown_value
from ..http.json_client import JsonClient
from ..http.secrets import key_in
from ..http.web import shown
from ..protocols import Finding, Problem, Usage, foreign_evidence
from .checks import TextCheck

if TYPE_CHECKING:
    import httpx2

KEY = "VERIFIER_API_KEY"
_VERDICTS = {verdict.value: verdict for verdict in Verdict}


class HttpCheck(TextCheck):
    """Asks a server about a candidate's text.

    The environment variable VERIFIER_API_KEY holds the key, if the server needs one. `seconds` is
    the time limit for one candidate; `transport` replaces the network in tests.
    """

    judged_by = 0

    def __init__(
        self,
        problem: Problem,
        url: str,
        *,
        seconds: float = 60.0,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._problem = problem
        self._seconds = seconds
        self._client = JsonClient(
            url,
            key_in(KEY),
            key_name=KEY,
            backend=f"http:{shown(url)}",
            error=VerifierError,
            seconds=seconds,
            transport=transport,
        )

    @classmethod
    def of(cls, problem: Problem) -> HttpCheck:
        """The check of a problem; its `limits.seconds` replace the 60 seconds."""
        url = problem.check.get("url")
        if not isinstance(url, str):
            raise UsageError(f"url must be an address, not {shown_value(url)}")
        seconds = problem.check.get("limits", {}).get("seconds", 60.0)
        return cls(problem, url, seconds=float(seconds))

    def compare(self, text: str) -> Finding:
        """The server's finding; a VerifierError if there is none."""
        return asyncio.run(self._ask(text))

    async def _ask(self, text: str) -> Finding:
        problem = self._problem
        client = self._client
        started = time.monotonic()
        body = {"problem": problem.id, "prompt": problem.prompt, "candidate": text}
        try:
            async with asyncio.timeout(self._seconds):
                reply = await client.post({**body, "check": dict(problem.check)}, problem.id)
        except TimeoutError as exc:
            message = f"no answer within {self._seconds:g} seconds"
            raise client.failure(message, problem.id) from exc
        finally:
            await client.aclose()
        if reply.status != 200:
            raise client.failure(reply.message, problem.id, reply.cause)
        try:
            return _finding(client.data(reply, problem.id), time.monotonic() - started)
        except ValueError as exc:
            raise client.failure(str(exc), problem.id) from None


def _finding(answer: Any, seconds: float) -> Finding:
    """The finding in an answer; a `ValueError` if there is none."""
    if not isinstance(answer, dict):
        raise ValueError(f"the answer must be a record, not {shown_value(answer)}")
    verdict = answer.get("verdict")
    reason = answer.get("reason", "")
    evidence = answer.get("evidence", {})
    if not isinstance(verdict, str) or verdict not in _VERDICTS:
        raise ValueError(f"verdict must be passed, failed or broken, not {shown_value(verdict)}")
    if not isinstance(reason, str) or not isinstance(evidence, dict):
        raise ValueError("reason must be a string, and evidence a record")
    return Finding(_VERDICTS[verdict], reason, foreign_evidence(evidence), Usage(seconds=seconds))
