"""Batches: many requests at once, answered within a day at half the price.

A batch has a name, which grv makes up, and an id, which the server gives. The name is recorded
before the batch is sent, so that it can be found again: `find` looks for the name. There are two
interfaces, as data flows rather than as names differ:

- OpenAI's: a file with the requests, a batch of this file, and one or two files with the results.
  A batch has metadata, so it is found by its name there.
  https://platform.openai.com/docs/guides/batch
- Anthropic's: the requests are the body, and the results are one file. A batch has no metadata, so
  it is found by the ids of its requests, which the results have.
  https://platform.claude.com/docs/en/build-with-claude/batch-processing
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol

import anyio

from ...core.errors import BackendError, GeneratorError, UsageError
from ...files import parse_json
from ..http.bodies import LARGEST_CHOICE
from ..http.endpoint import Endpoint
from ..protocols import Draft, Problem
from . import PRICE_SHARE
from .dialect import Dialect, DialectGenerator, Prepared

_LARGEST_FILE = 1 << 40  # bytes of results; each result has a limit of its own
_METADATA = "grv_batch"
_PAGE = "100"  # batches of a list that are read at once
_ID = re.compile(r"[\w.:-]{1,200}")
_SHORTEST_PAUSE = 0.2  # seconds between two looks at a batch; the pause grows
_GROWTH = 1.5

PartKind = Literal["answered", "refused", "expired", "cancelled", "missing"]


@dataclass(frozen=True)
class BatchPart:
    """What a batch has for one of its requests. Only an answer is billed.

    Attributes:
        kind: "refused" is an error response; "missing" means that the batch does not have the
            request, or that there is no such batch.
        answer: the answer, as it would have been to the request alone.
        status: the HTTP status of an error response.
        message: what an error response says.
    """

    kind: PartKind
    answer: Any = None
    status: int = 500
    message: str = ""


MISSING = BatchPart("missing")


@dataclass(frozen=True)
class BatchTicket:
    """Where the answer to a request will be.

    Attributes:
        batch: the name of the batch.
        request: the id of the request in it.
        before: the newest batch that the server had before, by its id; empty if that is unknown.
        id: the id of the batch; empty until the server has accepted it.
    """

    batch: str
    request: str
    before: str = ""
    id: str = ""


@dataclass(frozen=True)
class BatchState:
    """What a server says of a batch.

    Attributes:
        id: its id.
        is_over: whether it has its results.
        failure: why it was refused as a whole; empty if it was not.
        files: where the results are.
    """

    id: str
    is_over: bool = False
    failure: str = ""
    files: tuple[str, ...] = ()


class UndecidedBatch(Exception):
    """Whether there is a batch of this name is known only after another one has ended."""


class BatchInterface(Protocol):
    """The batches of a server. None of the methods retries."""

    most_requests: int
    most_bytes: int

    async def newest(self) -> str:
        """The id of the newest batch, where `find` stops; empty if it looks at all of them."""
        ...

    async def create(self, name: str, requests: Mapping[str, Mapping[str, Any]]) -> str:
        """Send a batch of request bodies by their ids; return its id."""
        ...

    async def find(self, ticket: BatchTicket) -> str | None:
        """The id of the batch that a ticket names, if the server has it.

        Raises:
            Undecided: ask again later.
        """
        ...

    async def state(self, id: str) -> BatchState:
        """How far a batch is."""
        ...

    def parts(self, state: BatchState) -> AsyncIterator[tuple[str, BatchPart]]:
        """The results of a batch that is over, by the ids of the requests."""
        ...

    async def cancel(self, id: str) -> None:
        """Cancel what is not answered yet."""
        ...


class _Server:
    """What both interfaces need: JSON and lines of JSON over one endpoint."""

    def __init__(self, endpoint: Endpoint[BackendError]) -> None:
        self._endpoint = endpoint

    async def _json(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        content = b"" if body is None else json.dumps(body).encode()
        return await self._parsed(method, path, content=content, **options)

    async def _parsed(self, method: str, path: str, **options: Any) -> Any:
        pieces = [piece async for piece in self._endpoint.exchange(method, path, **options)]
        try:
            return parse_json(b"".join(pieces))
        except ValueError:
            raise self._endpoint.failure(f"{path}: the response is not JSON", None) from None

    async def _lines(self, path: str) -> AsyncIterator[Any]:
        """The lines of a file of results, each parsed by itself. A damaged line is left out."""
        rest = b""
        async for piece in self._endpoint.exchange("GET", path, most=_LARGEST_FILE):
            *lines, rest = (rest + piece).split(b"\n")
            if len(rest) > LARGEST_CHOICE:
                raise self._endpoint.failure(f"{path}: a line of more than 32 MB", None)
            for line in lines:
                if (record := _record(line)) is not None:
                    yield record
        if (record := _record(rest)) is not None:
            yield record

    def _id(self, record: object, what: str = "batch") -> str:
        """The id of a batch or of a file. It becomes part of an address, so it must be simple."""
        match record:
            case {"id": str(id)} if _ID.fullmatch(id):
                return id
        raise self._endpoint.failure(f"the response has no id of a {what}", None)


def _record(line: bytes) -> Any:
    try:
        return parse_json(line) if line.strip() else None
    except ValueError:
        return None


class OpenaiBatches(_Server):
    """OpenAI's interface: /files and /batches."""

    # https://platform.openai.com/docs/guides/batch: the limits of a batch.
    most_requests = 50_000
    most_bytes = 200_000_000

    def __init__(self, endpoint: Endpoint[BackendError], dialect: Dialect) -> None:
        super().__init__(endpoint)
        self._path = f"/v1{dialect.path}"

    async def newest(self) -> str:
        """Nothing: a batch is found by its name, in whatever order batches are listed."""
        return ""

    async def create(self, name: str, requests: Mapping[str, Mapping[str, Any]]) -> str:
        """Send a file of the requests, then a batch of this file."""
        lines = [
            json.dumps({"custom_id": id, "method": "POST", "url": self._path, "body": body})
            for id, body in requests.items()
        ]
        content, content_type = _form(f"{name}.jsonl", "\n".join(lines).encode())
        file = await self._parsed("POST", "/files", content=content, content_type=content_type)
        body = {
            "input_file_id": self._id(file, "file"),
            "endpoint": self._path,
            "completion_window": "24h",
            "metadata": {_METADATA: name},
        }
        return self._id(await self._json("POST", "/batches", body))

    async def find(self, ticket: BatchTicket) -> str | None:
        """The batch with the name in its metadata."""
        async for record in self._listed():
            id = self._id(record)
            metadata = record.get("metadata")
            if isinstance(metadata, Mapping) and metadata.get(_METADATA) == ticket.batch:
                return id
        return None

    async def state(self, id: str) -> BatchState:
        """How far a batch is."""
        record = await self._json("GET", f"/batches/{id}")
        status = record.get("status") if isinstance(record, Mapping) else None
        if status == "failed":
            return BatchState(id, True, _first_error(record))
        files = [record.get(name) for name in ("output_file_id", "error_file_id")]
        known = tuple(file for file in files if isinstance(file, str) and _ID.fullmatch(file))
        return BatchState(id, status in ("completed", "expired", "cancelled"), files=known)

    async def parts(self, state: BatchState) -> AsyncIterator[tuple[str, BatchPart]]:
        """The results: one file has answers, the other one errors."""
        for file in state.files:
            async for record in self._lines(f"/files/{file}/content"):
                match record:
                    case {"custom_id": str(id), "response": {"status_code": 200, "body": answer}}:
                        yield id, BatchPart("answered", answer)
                    case {"custom_id": str(id), "response": {"status_code": int(code), **more}}:
                        said = json.dumps(more.get("body"))
                        yield id, BatchPart("refused", status=code, message=said)
                    case {"custom_id": str(id), "error": {"code": "batch_expired"}}:
                        yield id, BatchPart("expired")
                    case {"custom_id": str(id), "error": {"code": "batch_cancelled"}}:
                        yield id, BatchPart("cancelled")
                    case {"custom_id": str(id)}:
                        yield id, BatchPart("refused", message=json.dumps(record.get("error")))

    async def cancel(self, id: str) -> None:
        """Cancel what is not answered yet."""
        await self._json("POST", f"/batches/{id}/cancel")

    async def _listed(self) -> AsyncIterator[Any]:
        """All batches."""
        query = {"limit": _PAGE}
        while True:
            page = await self._json("GET", "/batches", query=query)
            match page:
                case {"data": [*records], **more}:
                    pass
                case _:
                    raise self._endpoint.failure("the list of batches cannot be read", None)
            for record in records:
                yield record
            if not records or not more.get("has_more"):
                return
            query["after"] = self._id(records[-1])


class AnthropicBatches(_Server):
    """Anthropic's interface: /v1/messages/batches."""

    # https://platform.claude.com/docs/en/build-with-claude/batch-processing: the limits of a batch.
    most_requests = 100_000
    most_bytes = 256_000_000
    _root: ClassVar[str] = "/v1/messages/batches"

    def __init__(self, endpoint: Endpoint[BackendError], dialect: Dialect) -> None:
        super().__init__(endpoint)

    async def newest(self) -> str:
        """The id of the newest batch; empty if there is none."""
        async for record in self._listed(limit="1"):
            return self._id(record)
        return ""

    async def create(self, name: str, requests: Mapping[str, Mapping[str, Any]]) -> str:
        """Send the requests."""
        listed = [{"custom_id": id, "params": body} for id, body in requests.items()]
        return self._id(await self._json("POST", self._root, {"requests": listed}))

    async def find(self, ticket: BatchTicket) -> str | None:
        """The batch whose results have the ids of the requests. Newer ones have to end first."""
        is_decided = True
        async for record in self._listed():
            id = self._id(record)
            if id == ticket.before:
                break
            state = _anthropic_state(id, record)
            if not state.is_over:
                is_decided = False
                continue
            async for request, _ in self.parts(state):
                if batch_of(request) == ticket.batch:
                    return id
                break  # all requests of a batch have its name
        if not is_decided:
            raise UndecidedBatch
        return None

    async def state(self, id: str) -> BatchState:
        """How far a batch is."""
        return _anthropic_state(id, await self._json("GET", f"{self._root}/{id}"))

    async def parts(self, state: BatchState) -> AsyncIterator[tuple[str, BatchPart]]:
        """The results, in one file."""
        async for record in self._lines(f"{self._root}/{state.id}/results"):
            match record:
                case {"custom_id": str(id), "result": {"type": "succeeded", "message": answer}}:
                    yield id, BatchPart("answered", answer)
                case {"custom_id": str(id), "result": {"type": "expired"}}:
                    yield id, BatchPart("expired")
                case {"custom_id": str(id), "result": {"type": "canceled"}}:
                    yield id, BatchPart("cancelled")
                case {"custom_id": str(id), "result": {"type": "errored", "error": error}}:
                    yield id, BatchPart("refused", status=_status(error), message=json.dumps(error))

    async def cancel(self, id: str) -> None:
        """Cancel what is not answered yet."""
        await self._json("POST", f"{self._root}/{id}/cancel")

    async def _listed(self, limit: str = _PAGE) -> AsyncIterator[Any]:
        """All batches, the newest first."""
        query = {"limit": limit}
        while True:
            page = await self._json("GET", self._root, query=query)
            match page:
                case {"data": [*records], **more}:
                    pass
                case _:
                    raise self._endpoint.failure("the list of batches cannot be read", None)
            for record in records:
                yield record
            if not records or not more.get("has_more"):
                return
            query["after_id"] = self._id(records[-1])


def _anthropic_state(id: str, record: object) -> BatchState:
    status = record.get("processing_status") if isinstance(record, Mapping) else None
    return BatchState(id, status == "ended")


# https://platform.claude.com/docs/en/api/errors: the status of each type of error.
_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "overloaded_error": 529,
}


def _status(error: object) -> int:
    """The HTTP status that an error would have had outside of a batch."""
    match error:
        case {"error": {"type": str(name)}} | {"type": str(name)}:
            return _STATUSES.get(name, 500)
    return 500


def _first_error(record: Mapping[str, Any]) -> str:
    match record:
        case {"errors": {"data": [{"message": str(message)}, *_]}}:
            return message
    return "no reason is given"


def _form(filename: str, content: bytes) -> tuple[bytes, str]:
    """A form with the file of a batch, and its content type."""
    boundary = uuid.uuid4().hex
    head = (
        f'--{boundary}\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        f'--{boundary}\r\ncontent-disposition: form-data; name="file"; filename="{filename}"\r\n'
        "content-type: application/jsonl\r\n\r\n"
    )
    tail = f"\r\n--{boundary}--\r\n"
    return head.encode() + content + tail.encode(), f"multipart/form-data; boundary={boundary}"


# By the name of the dialect.
_INTERFACES: Mapping[str, type[OpenaiBatches] | type[AnthropicBatches]] = {
    "openai": OpenaiBatches,
    "openai-text": OpenaiBatches,
    "responses": OpenaiBatches,
    "anthropic": AnthropicBatches,
}


BATCH_DIALECTS = tuple(_INTERFACES)


def new_name() -> str:
    """A name for a batch that no other one has."""
    return uuid.uuid4().hex


def request_id(name: str, number: int) -> str:
    """The id of a request of a batch: at most 64 letters, digits and hyphens."""
    return f"{name}-{number}"


def batch_of(request: str) -> str:
    """The name of the batch that a request belongs to."""
    return request.rpartition("-")[0]


class BatchedGenerator:
    """Asks a model in batches, at half the price. Answers may take up to a day.

    Choose it if nobody waits for the answers. `grv.solve_many` then asks for all candidates that
    its open problems need at that time in one batch, and finds a batch again if it is run again.

    Args:
        generator: asks a model of OpenAI or Anthropic, or of a server with the same interface.
        poll: the most seconds between two looks at a batch.
        settle: how many seconds a request to send a batch may still take effect after its
            process has died.

    Raises:
        UsageError: the generator's interface has no batches.

    Examples:
        >>> import grv
        >>> model = grv.generators.OpenAI("gpt-oss-20b", base_url="http://localhost:8000/v1")
        >>> grv.generators.Batched(model).model
        'gpt-oss-20b'
    """

    def __init__(
        self, generator: DialectGenerator, *, poll: float = 60.0, settle: float = 5.0
    ) -> None:
        dialect = getattr(generator, "dialect", None)
        if dialect is None or dialect.name not in _INTERFACES:
            known = ", ".join(f"{name}:MODEL" for name in _INTERFACES)
            raise UsageError(f"{generator!r} has no batches; these have: {known}")
        self.generator = generator
        self.interface: BatchInterface = _INTERFACES[dialect.name](generator.endpoint, dialect)
        self.poll = poll
        self.settle = settle

    def __repr__(self) -> str:
        """As without batches: they do not decide what the candidates are."""
        return repr(self.generator)

    def __getattr__(self, name: str) -> Any:
        """What the generator has besides: model, sampling, batch, notices."""
        if name == "generator":  # before it is set
            raise AttributeError(name)
        return getattr(self.generator, name)

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> Sequence[Draft]:
        """Up to `n` drafts, in a batch of one request."""
        prepared = self.generator.prepared(problem, n, first)
        name = new_name()
        id = await self.interface.create(name, {request_id(name, 0): prepared.body})
        state = await self.over(id)
        async for _, part in self.interface.parts(state):
            return self.drafts(part, problem, prepared, n)
        return self.drafts(MISSING, problem, prepared, n)

    async def over(self, id: str) -> BatchState:
        """Wait for the end of a batch; an error if it was refused as a whole."""
        for pause in pauses(self.poll):
            state = await self.interface.state(id)
            if state.failure:
                raise self.failed(state)
            if state.is_over:
                return state
            await anyio.sleep(pause)
        raise AssertionError  # there is always another pause

    def failed(self, state: BatchState) -> GeneratorError:
        """The error of a batch that was refused as a whole: nothing of it is billed."""
        message = f"the server refuses the batch {state.id}: {state.failure}"
        return GeneratorError(
            message,
            backend=self.generator.endpoint.backend,
            fault="stop",
            unpaid=True,
            hint="see what it says, or leave out --batch",
        )

    def drafts(
        self, part: BatchPart, problem: Problem, prepared: Prepared | None, n: int
    ) -> Sequence[Draft]:
        """The drafts of a part of a batch, billed at its price.

        `prepared` is the request; None if another process has sent it.

        Raises:
            BackendError: there are none. It is `final` if asking again does not help.
        """
        if part.kind == "answered":
            asked = n if prepared is None else prepared.request.n
            drafts = self.generator.read(part.answer, problem, asked)
            return [_at_batch_price(draft) for draft in drafts]
        if part.kind == "refused":
            error = self.generator.refusal(part.status, part.message, problem)
            request = (prepared or self.generator.prepared(problem, n, 0)).request
            is_learned = self.generator.learn_from(part.status, part.message, request)
            if is_learned or prepared is None:  # this process would ask otherwise
                error.final = False
                error.fault = "call"
            raise error
        why = {
            "expired": "the batch expired before this request was answered",
            "cancelled": "the batch was cancelled before this request was answered",
            "missing": "the batch was not sent",
        }
        raise GeneratorError(why[part.kind], problem_id=problem.id, unpaid=True)

    async def aclose(self) -> None:
        """Close the connections."""
        await self.generator.aclose()


def _at_batch_price(draft: Draft) -> Draft:
    return replace(draft, usage=replace(draft.usage, price_share=PRICE_SHARE))


def pauses(longest: float) -> Iterator[float]:
    """The seconds between looks at a batch: they grow up to the longest."""
    pause = min(_SHORTEST_PAUSE, longest)
    while True:
        yield pause
        pause = min(_GROWTH * pause, longest)
