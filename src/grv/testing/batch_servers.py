"""Fakes of the batches of OpenAI and Anthropic, on loopback.

    with FakeOpenaiBatches(text=lambda prompt, index: "42", delay=0.5) as server:
        ...  # grv solve --batch --generator openai:fake --base-url server.url

A batch is over after `delay` seconds; then its requests are answered and charged, at half the
price. Each rule names the page of the provider's documentation that it was made from.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import parse_qs

from .servers import Counts, FakeAnthropic, FakeOpenai, FakeServer, Fault, Refusal

# What may happen to a request of a batch.
Fate = Literal["answered", "expired", "refused"]
_SHARE = 0.5


@dataclass
class SentBatch:
    """A batch that a fake received.

    Attributes:
        id: its id.
        requests: the bodies of the requests, by their ids.
        due: when it is over.
        metadata: what the client says about it.
        results: what became of each request, by its id; None before it is over.
        is_cancelled: whether the client has cancelled it.
    """

    id: str
    requests: Mapping[str, Mapping[str, Any]]
    due: float
    metadata: Mapping[str, str] = field(default_factory=dict)
    results: dict[str, tuple[Fate | Literal["cancelled"], Any]] | None = None
    is_cancelled: bool = False

    def count(self, *fates: str) -> int:
        """How many requests had one of these fates."""
        return sum(fate in fates for fate, _ in (self.results or {}).values())


class _Batching(FakeServer):
    """What both fakes share.

    Args:
        delay: seconds until a batch is over.
        fate: what happens to a request, given the number of its batch and its own number from 0.
        lost: numbers of batches that are accepted, while the response to the client is lost.
        accepted: is called with each batch that is accepted, before the response is sent.
        given: as in `FakeServer`.
    """

    def __init__(
        self,
        *given: Any,
        delay: float = 0.0,
        fate: Callable[[int, int], Fate] = lambda batch, request: "answered",
        lost: tuple[int, ...] = (),
        accepted: Callable[[SentBatch], None] = lambda batch: None,
        **options: Any,
    ) -> None:
        super().__init__(*given, **options)
        self.delay = delay
        self.fate = fate
        self.lost = lost
        self.accepted = accepted
        self.batches: list[SentBatch] = []
        self.served = 0  # requests that were answered
        self._files: dict[str, bytes] = {}

    def exchange(
        self, method: str, target: str, content: bytes, headers: Mapping[str, str]
    ) -> tuple[int, bytes, dict[str, str], Fault | None]:
        """The response to a request about batches; other requests are answered as usual."""
        path, _, query = target.partition("?")
        asked = {name: values[0] for name, values in parse_qs(query).items()}
        with self._lock:
            fault: Fault | None = None
            try:
                self.authorize(headers)
                number = len(self.batches)
                answer = self.batch_answer(method, path, content, asked)
                if len(self.batches) > number and number in self.lost:
                    fault = "lost"
                status = 200
            except Refusal as refusal:
                status = refusal.status
                answer = self.error(refusal)
        if answer is None:
            return super().exchange(method, target, content, headers)
        sent = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        return status, sent, {}, fault

    def finish(self) -> None:
        """Let all batches be over now."""
        with self._lock:
            for batch in self.batches:
                batch.due = 0.0
            self._process()

    def batch_answer(
        self, method: str, path: str, content: bytes, query: Mapping[str, str]
    ) -> Any:  # JSON data, bytes of a file, or None if the request is not about batches
        """The answer to a request about batches."""
        raise NotImplementedError

    def ask(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a request of a batch; a Refusal if the server refuses it."""
        raise NotImplementedError

    def _accept(self, batch: SentBatch) -> SentBatch:
        self.batches.append(batch)
        self.accepted(batch)
        return batch

    def _new(self, requests: Mapping[str, Mapping[str, Any]]) -> SentBatch:
        due = time.monotonic() + self.delay
        return SentBatch(f"batch_{len(self.batches):04}", requests, due)

    def _known(self, id: str) -> SentBatch:
        self._process()
        for batch in self.batches:
            if batch.id == id:
                return batch
        raise Refusal(404, type="not_found_error", message=f"No batch {id}")

    def _page(self, query: Mapping[str, str], after: str) -> tuple[list[SentBatch], bool]:
        """The batches of a list, the newest first, and whether there are more."""
        self._process()
        newest = self.batches[::-1]
        if after in query:
            ids = [batch.id for batch in newest]
            newest = newest[ids.index(query[after]) + 1 :]
        limit = int(query.get("limit", "20"))
        return newest[:limit], len(newest) > limit

    def _process(self) -> None:
        """Answer the requests of batches that are due."""
        for number, batch in enumerate(self.batches):
            if batch.results is None and (batch.is_cancelled or batch.due <= time.monotonic()):
                batch.results = {}
                for place, (id, body) in enumerate(batch.requests.items()):
                    batch.results[id] = self._result(batch, self.fate(number, place), body)

    def _result(
        self, batch: SentBatch, fate: Fate, body: Mapping[str, Any]
    ) -> tuple[Fate | Literal["cancelled"], Any]:
        if batch.is_cancelled:
            return "cancelled", None
        if fate == "refused":
            refusal = Refusal(500, type="api_error", message="Internal server error")
            return "refused", (500, self.error(refusal))
        if fate == "expired":
            return "expired", None
        self._counts = Counts()
        try:
            answer = self.ask(body)
        except Refusal as refusal:
            return "refused", (refusal.status, self.error(refusal))
        self.charged += _SHARE * self._counts.dollars(self.prices)
        self.served += 1
        return "answered", answer


class FakeOpenaiBatches(_Batching, FakeOpenai):
    """OpenAI's batches of chat completions, with the files they need.

    Args:
        invalid: why batches fail as a whole; empty if they do not.
        given: as for all fakes of batches.
    """

    def __init__(self, *given: Any, invalid: str = "", **options: Any) -> None:
        super().__init__(*given, **options)
        self.invalid = invalid

    def ask(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a request of a batch."""
        self.check(f"{self.prefix}{self.path}", body)
        return self.answer(body)

    def batch_answer(self, method: str, path: str, content: bytes, query: Mapping[str, str]) -> Any:
        """The answer to a request about files or batches."""
        parts = path.removeprefix(f"{self.prefix}/").split("/")
        match method, parts:
            # https://platform.openai.com/docs/api-reference/files/create
            case "POST", ["files"]:
                return self._uploaded(content)
            # https://platform.openai.com/docs/api-reference/files/retrieve-contents
            case "GET", ["files", id, "content"]:
                return self._file(id)
            # https://platform.openai.com/docs/api-reference/batch/create
            case "POST", ["batches"]:
                return self._object(self._created(json.loads(content)))
            # https://platform.openai.com/docs/api-reference/batch/list
            case "GET", ["batches"]:
                batches, has_more = self._page(query, "after")
                data = [self._object(batch) for batch in batches]
                return {"object": "list", "data": data, "has_more": has_more}
            # https://platform.openai.com/docs/api-reference/batch/retrieve
            case "GET", ["batches", id]:
                return self._object(self._known(id))
            # https://platform.openai.com/docs/api-reference/batch/cancel
            case "POST", ["batches", id, "cancel"]:
                batch = self._known(id)
                batch.is_cancelled = batch.results is None
                return self._object(batch)
        return None

    def _uploaded(self, content: bytes) -> dict[str, Any]:
        # https://platform.openai.com/docs/api-reference/files/create: a form with the purpose.
        if b'name="purpose"\r\n\r\nbatch\r\n' not in content:
            raise Refusal(400, type="invalid_request_error", message="'purpose' is required")
        found = re.search(
            rb'name="file"; filename="[^"]*"\r\n[^\r]*\r\n\r\n(.*)\r\n--', content, 16
        )
        assert found is not None
        id = f"file-{len(self._files)}"
        self._files[id] = found[1]
        return {"id": id, "object": "file", "bytes": len(found[1]), "purpose": "batch"}

    def _created(self, body: Mapping[str, Any]) -> SentBatch:
        # https://platform.openai.com/docs/api-reference/batch/create: the fields.
        if body.get("completion_window") != "24h" or "endpoint" not in body:
            raise Refusal(400, type="invalid_request_error", message="'24h' is the only window")
        lines = [json.loads(line) for line in self._files[body["input_file_id"]].splitlines()]
        # https://platform.openai.com/docs/guides/batch: all requests have the endpoint of the
        # batch, and ids of their own.
        requests = {line["custom_id"]: line["body"] for line in lines}
        if len(requests) < len(lines) or {line["url"] for line in lines} != {body["endpoint"]}:
            raise Refusal(400, type="invalid_request_error", message="Invalid input file")
        batch = self._new(requests)
        batch.metadata = body.get("metadata") or {}
        if self.invalid:
            batch.results = {}  # none of its requests is answered or charged
        return self._accept(batch)

    def _object(self, batch: SentBatch) -> dict[str, Any]:
        # https://platform.openai.com/docs/api-reference/batch/object
        status = "in_progress"
        if batch.results is not None:
            # https://platform.openai.com/docs/guides/batch: a batch that is not completed in time
            # moves to expired; what was answered is in the output file, and is charged.
            status = "expired" if batch.count("expired") else "completed"
        if batch.is_cancelled:
            status = "cancelling" if batch.results is None else "cancelled"
        failed = batch.count("expired", "refused", "cancelled")
        # https://platform.openai.com/docs/guides/batch: a batch whose input file fails the
        # validation has the status failed, and errors.
        errors = {"object": "list", "data": [{"code": "invalid", "message": self.invalid}]}
        if self.invalid:
            status = "failed"
        return {
            "id": batch.id,
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "errors": errors if self.invalid else None,
            "completion_window": "24h",
            "status": status,
            "output_file_id": f"output-{batch.id}" if batch.count("answered") else None,
            "error_file_id": f"error-{batch.id}" if failed else None,
            "request_counts": {
                "total": len(batch.requests),
                "completed": batch.count("answered"),
                "failed": failed,
            },
            "metadata": dict(batch.metadata),
        }

    def _file(self, id: str) -> bytes:
        kind, _, name = id.partition("-")
        batch = self._known(name)
        lines = []
        for request, (fate, result) in (batch.results or {}).items():
            if (kind == "output") == (fate == "answered"):
                lines.append(json.dumps(self._line(request, fate, result)))
        return "\n".join(lines).encode()

    def _line(self, request: str, fate: str, result: Any) -> dict[str, Any]:
        # https://platform.openai.com/docs/api-reference/batch/request-output
        line: dict[str, Any] = {"id": f"batch_req_{request[-8:]}", "custom_id": request}
        match fate:
            case "answered":
                response = {"status_code": 200, "request_id": request, "body": result}
                return {**line, "response": response, "error": None}
            case "refused":
                code, body = result
                response = {"status_code": code, "request_id": request, "body": body}
                return {**line, "response": response, "error": None}
        # The same page: a request that was not executed has an error and no response.
        message = "This request could not be executed before the completion window expired."
        return {**line, "response": None, "error": {"code": f"batch_{fate}", "message": message}}


class FakeAnthropicBatches(_Batching, FakeAnthropic):
    """Anthropic's batches of messages."""

    def ask(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a request of a batch."""
        self.check(f"{self.prefix}/v1/messages", body)
        return self.answer(body)

    def batch_answer(self, method: str, path: str, content: bytes, query: Mapping[str, str]) -> Any:
        """The answer to a request about batches."""
        root = f"{self.prefix}/v1/messages/batches"
        if not path.startswith(root):
            return None
        match method, path.removeprefix(root).split("/")[1:]:
            # https://platform.claude.com/docs/en/api/creating-message-batches
            case "POST", []:
                return self._object(self._created(json.loads(content)))
            # https://platform.claude.com/docs/en/api/listing-message-batches
            case "GET", []:
                batches, has_more = self._page(query, "after_id")
                return {"data": [self._object(batch) for batch in batches], "has_more": has_more}
            # https://platform.claude.com/docs/en/api/retrieving-message-batches
            case "GET", [id]:
                return self._object(self._known(id))
            # https://platform.claude.com/docs/en/api/retrieving-message-batch-results
            case "GET", [id, "results"]:
                return self._results(self._known(id))
            # https://platform.claude.com/docs/en/api/canceling-message-batches
            case "POST", [id, "cancel"]:
                batch = self._known(id)
                batch.is_cancelled = batch.results is None
                return self._object(batch)
        return None

    def _created(self, body: Mapping[str, Any]) -> SentBatch:
        # https://platform.claude.com/docs/en/api/creating-message-batches: ids of 1 to 64 letters,
        # digits, hyphens and underscores, unique in the batch. There are no metadata.
        ids = [request["custom_id"] for request in body["requests"]]
        if body.keys() - {"requests"} or not all(re.fullmatch(r"[\w-]{1,64}", id) for id in ids):
            raise Refusal(400, type="invalid_request_error", message="requests: invalid")
        if len(set(ids)) < len(ids):
            raise Refusal(400, type="invalid_request_error", message="custom_id: not unique")
        requests = {request["custom_id"]: request["params"] for request in body["requests"]}
        return self._accept(self._new(requests))

    def _object(self, batch: SentBatch) -> dict[str, Any]:
        # https://platform.claude.com/docs/en/api/retrieving-message-batches: the fields. The
        # counts are 0 until the batch has ended.
        status = "canceling" if batch.is_cancelled else "in_progress"
        is_over = batch.results is not None
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "ended" if is_over else status,
            "request_counts": {
                "processing": 0 if is_over else len(batch.requests),
                "succeeded": batch.count("answered"),
                "errored": batch.count("refused"),
                "canceled": batch.count("cancelled"),
                "expired": batch.count("expired"),
            },
            "results_url": f"{self.url}/v1/messages/batches/{batch.id}/results",
        }

    def _results(self, batch: SentBatch) -> bytes:
        if batch.results is None:
            raise Refusal(404, type="not_found_error", message="The batch has no results yet")
        lines = []
        # The same page: the results may be in any order.
        for request, (fate, result) in reversed(batch.results.items()):
            lines.append(
                json.dumps({"custom_id": request, "result": self._result_of(fate, result)})
            )
        return "\n".join(lines).encode()

    def _result_of(self, fate: str, result: Any) -> dict[str, Any]:
        # https://platform.claude.com/docs/en/build-with-claude/batch-processing: the four types of
        # results. Only those that succeeded are billed.
        match fate:
            case "answered":
                return {"type": "succeeded", "message": result}
            case "refused":
                return {"type": "errored", "error": result[1]}
            case "expired":
                return {"type": "expired"}
        return {"type": "canceled"}
