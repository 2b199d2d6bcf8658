"""A dialect: how one interface of a provider writes requests and answers.

A dialect is three pure functions (the body of a request, the drafts of an answer, the usage of an
answer) and some data. `DialectGenerator` does the rest, the same for all: it sends the requests,
and finds out once what a server refuses.
"""

from __future__ import annotations

import copy
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self
from urllib.parse import quote

from ...core.errors import BackendError, GeneratorError, UsageError
from ...options import from_arguments
from ..http.endpoint import Endpoint, said, status
from ..http.faults import REWORD, THIS_CALL, Cause, blamed, complaint, of_response
from ..http.service import Service
from ..http.web import REFUSED
from ..protocols import Draft, Problem, Usage
from .chat import Message, keys_in, messages_of
from .completions import FailedInside, Moderated, billed, seed_of
from .sampling import EFFORTS, Sampling, check_batch

KEY_INSIDE = "the answer contains a whole key, so grv has not kept its text"

# What a server may refuse, and what a run does without it.
INSTEAD: Mapping[str, str] = {
    "logprobs": "--score auto, the default, trains a score on the run's verdicts instead",
    "n": "grv sends one request for each candidate, side by side",
    "seed": "other runs get other candidates",
    "stop": "candidates do not end at --stop",
    "temperature": "the server's own value holds",
    "top_p": "the server's own value holds",
}
_OTHER_NAME = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_UNKNOWN = re.compile(
    r"unsupported|unknown|unrecognized|unexpected|extra|instead"
    r"|not (?:supported|permitted|allowed)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Request:
    """What a request asks for. A dialect leaves out what is None.

    Attributes:
        model: the model's name.
        messages: a chat.
        prompt: the same as one text, for models that continue a text.
        n: the number of candidates.
        logprobs: whether the log-probabilities of tokens are needed.
        tops: how many likely tokens to name at each place, with their log-probabilities.
        limit_name: the field for `max_tokens`, where servers of one dialect differ.
    """

    model: str
    messages: Sequence[Message] = ()
    prompt: str = ""
    n: int = 1
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    logprobs: bool = False
    effort: str | None = None
    response_format: Mapping[str, Any] | None = None
    limit_name: str = "max_tokens"
    tops: int = 1

    def has(self, option: str) -> bool:
        """Whether the request contains what a server may refuse."""
        value = getattr(self, option)
        return value > 1 if option == "n" else value not in (None, (), False)


@dataclass(frozen=True)
class Dialect:
    """One interface.

    Attributes:
        name: the name in specifications.
        service: how the provider is reached.
        path: the path of requests; {model} stands for the model's name.
        body: the body of a request. A ValueError says what it cannot express.
        texts: the drafts of an answer, without what they used; a ValueError if there are none.
        usage: what an answer used. The tokens of the prompt include those from a cache.
        names: for each option that a server may refuse, what it may be called in errors.
        chat: whether it takes messages; otherwise one text.
        lacks: options that it cannot express.
        most: the most candidates of a request.
        least: the least limit of tokens that a request may have.
        usual: the limit of requests that name none, if the dialect always sends one.
        likely: the tokens with which an answer could have begun, with their log-probabilities.
        formats: the types of `--response-format` that it can express.
        efforts: the levels of `--effort` that it can express.
        reduced: what is kept of an item of a large answer.
        items: items in the list of an answer besides one for each candidate.
        tools: whether it takes tools, messages about them and calls of them in the form of
            OpenAI's chats.
    """

    name: str
    service: Service
    path: str
    body: Callable[[Request], dict[str, Any]]
    texts: Callable[[object], list[Draft]]
    usage: Callable[[object], Usage]
    names: Mapping[str, Sequence[str]]
    chat: bool = True
    lacks: frozenset[str] = frozenset()
    most: int | None = None
    least: int = 1
    usual: int | None = None
    likely: Callable[[object], dict[str, float]] = lambda answer: {}
    formats: tuple[str, ...] = ("text", "json_object", "json_schema")
    efforts: tuple[str, ...] = EFFORTS
    reduced: Callable[[Any], Any] = lambda item: item
    items: int = 0
    tools: bool = False


@dataclass
class _Learned:
    """What generators with the same connections have learned about their server.

    Attributes:
        batch: the most candidates of a request.
        refused: options that the server refuses.
        limit_name: the field for the most tokens, if it is not the usual one.
        notices: one line for each, for the user.
    """

    batch: int | None
    refused: set[str] = field(default_factory=set)
    limit_name: str | None = None
    notices: list[str] = field(default_factory=list)


class DialectClient:
    """Asks a model, and finds out once what its server refuses.

    Args:
        dialect: how its server writes requests and answers.
        model: the model's name.
        backend: the name for errors.
        error: the class of errors that failures become.
        base_url: the address of a server; None is the provider's own.
        sampling: temperature, seed and so on.
        logprobs: whether to ask for the tokens' log-probabilities.
        batch: how many candidates to ask for in one request at most.
        tops: how many likely tokens to ask for at each place.

    Raises:
        UsageError: a parameter makes no sense, or there is neither a key nor an address.
    """

    def __init__(
        self,
        dialect: Dialect,
        model: str,
        *,
        backend: str,
        error: type[BackendError],
        base_url: str | None,
        sampling: Sampling,
        logprobs: bool,
        batch: int | None = None,
        tops: int = 1,
    ) -> None:
        if not model:
            raise UsageError(f"name the model, as in {backend}MODEL")
        check_batch(batch)
        self.sampling = sampling
        self.dialect = dialect
        self.model = model
        self.logprobs = logprobs
        self.tops = tops
        limits = [most for most in (batch, dialect.most) if most is not None]
        self._learned = _Learned(min(limits, default=None))
        self._check(self.sampling)
        self._endpoint = Endpoint(
            base_url,
            backend=backend,
            error=error,
            hidden=keys_in(self.sampling.extra_body),
            service=dialect.service,
        )

    def _check(self, sampling: Sampling) -> None:
        """Refuse options that this dialect cannot express and that change what is asked."""
        name = self.dialect.name
        if not self.dialect.chat and (sampling.system or sampling.effort):
            flag = "--system" if sampling.system else "--effort"
            chat = f"openai:{self.model}, not {name}:{self.model}"
            raise UsageError(f"{flag} needs a chat model: {chat}")
        form = (sampling.response_format or {"type": "text"})["type"]
        if form not in self.dialect.formats:
            there = ", ".join(self.dialect.formats)
            raise UsageError(f"--response-format: {name} has no {form}; it has {there}")
        if sampling.max_tokens is not None and sampling.max_tokens < self.dialect.least:
            raise UsageError(f"--max-tokens: {name} takes no limit below {self.dialect.least}")
        if sampling.effort is not None and sampling.effort not in self.dialect.efforts:
            there = ", ".join(self.dialect.efforts)
            raise UsageError(f"--effort: {name} has no {sampling.effort}; it has {there}")

    @property
    def batch(self) -> int | None:
        """How many candidates one request asks for at most."""
        return self._learned.batch

    @batch.setter
    def batch(self, batch: int | None) -> None:
        self._learned.batch = batch

    @property
    def notices(self) -> Sequence[str]:
        """What the server cannot do, and what happens instead: one line each, for the user."""
        return self._learned.notices

    @property
    def refused(self) -> frozenset[str]:
        """The options that the server has refused so far."""
        return frozenset(self._learned.refused)

    @property
    def shown(self) -> str | None:
        """The address without secrets."""
        return self._endpoint.shown

    @property
    def server(self) -> str:
        """Whose limits hold for its requests: the host and the model."""
        return f"{self.model} at {self._endpoint.place}"

    def sampled(self, sampling: Sampling) -> Self:
        """The same model and connections, with another sampling."""
        made = copy.copy(self)
        made.sampling = sampling
        return made

    async def answer(self, problem: Problem, n: int, *, first: int = 0) -> tuple[Any, float]:
        """The server's answer as JSON data, and the seconds that it took."""
        request = self._request(problem, n, first)
        tried: dict[str, BackendError] = {}
        while True:
            started = time.monotonic()
            try:
                answer = await self._send(request, problem)
                return answer, time.monotonic() - started
            except BackendError as error:
                option = self._refused_by(error, request, tried)
                if option is None:
                    raise
                failed = error
            if option in tried:  # it is blamed, and leaving it out has not helped
                self._forget(option)
                raise tried[option]
            tried[option] = failed
            self._learn(option, request)
            request = self._request(problem, n, first)

    def unreadable(self, exc: ValueError, problem_id: str) -> BackendError:
        """The error for an answer that cannot be read."""
        return self._endpoint.failure(str(exc), problem_id)

    def failed_inside(self, exc: FailedInside, problem_id: str) -> BackendError:
        """The error for an answer that says that the server failed. It may be paid for."""
        cause = THIS_CALL
        if exc.status is not None:
            cause = replace(of_response(exc.status, str(exc), {}), unpaid=False)
        return self._endpoint.failure(str(exc), problem_id, cause)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()

    def _refused_by(
        self, error: BackendError, request: Request, tried: Mapping[str, Any]
    ) -> str | None:
        """The option that an error response names; None if it does not name one."""
        return self._refused_in(status(error), said(error), request, tried)

    def _refused_in(
        self, code: int | None, body: str, request: Request, tried: Mapping[str, Any]
    ) -> str | None:
        """The option that the body of a response with this status refuses."""
        if code not in REFUSED:
            return None
        limit = request.limit_name
        is_named = request.max_tokens is not None and blamed(body, {limit: [limit]}) is not None
        # An error that names the field is about its name, or about its value.
        if is_named and "max_tokens" not in tried and _UNKNOWN.search(body):
            return "max_tokens"
        names = {
            option: names
            for option, names in self.dialect.names.items()
            if option in tried or request.has(option)
        }
        return blamed(body, names)

    def _learn(self, option: str, request: Request) -> None:
        """Remember what the server refuses, and say it."""
        learned = self._learned
        if option == "max_tokens":
            learned.limit_name = _OTHER_NAME[request.limit_name]
            return
        learned.refused.add(option)
        if option == "n":
            learned.batch = 1
        self._note(option, "refuses")

    def _forget(self, option: str) -> None:
        """Take back that the server refuses an option."""
        self._learned.refused.discard(option)
        line = self._line(option, "refuses")
        if line in self._learned.notices:
            self._learned.notices.remove(line)

    def _line(self, option: str, verb: str) -> str:
        return f"{self.dialect.name}:{self.model} {verb} {option}: {INSTEAD.get(option, '')}"

    def _note(self, option: str, verb: str) -> None:
        line = self._line(option, verb)
        if line not in self._learned.notices:
            self._learned.notices.append(line)

    def _body(self, request: Request, problem: Problem) -> dict[str, Any]:
        """The body of a request; an error if the dialect cannot express it."""
        try:
            self._check(self.sampling)
            return merged(self.dialect.body(request), self.sampling.extra_body or {})
        except (ValueError, UsageError) as exc:
            cause = Cause(final=True, unpaid=True)
            raise self._endpoint.failure(str(exc), problem.id, cause) from None

    async def _send(self, request: Request, problem: Problem) -> Any:
        body = self._body(request, problem)
        model = self.model if "/" in self.model else f"models/{self.model}"
        path = self.dialect.path.replace("{model}", quote(model, safe="/"))
        return await self._endpoint.ask(
            path,
            body,
            problem.id,
            choices=request.n + self.dialect.items,
            reduce=self.dialect.reduced,
        )

    def _request(self, problem: Problem, n: int, first: int) -> Request:
        sampling = self.sampling
        limit = next(iter(self._endpoint.cut(1, chat=self.dialect.chat)))
        chat = messages_of(problem, sampling.system) if self.dialect.chat else ()
        seed = None
        if sampling.seed is not None:
            seed = seed_of(sampling.seed, problem.id, first)
        request = Request(
            self.model,
            chat,
            problem.prompt,
            min(n, self.batch or n),
            sampling.temperature,
            sampling.top_p,
            sampling.max_tokens,
            sampling.stop,
            seed,
            self.logprobs,
            sampling.effort,
            sampling.response_format,
            self._learned.limit_name or limit,
            self.tops,
        )
        missing = self._learned.refused | self.dialect.lacks
        nothing = {option: _NOTHING[option] for option in missing}
        return replace(request, **nothing)


@dataclass(frozen=True)
class Prepared:
    """A request with its body."""

    request: Request
    body: Mapping[str, Any]


class DialectGenerator(DialectClient):
    """Requests candidates from a model, with one request per call.

    Args:
        dialect: how its server writes requests and answers.
        model: the model's name.
        base_url: the address of a server; None is the provider's own.
        sampling: temperature, seed and so on. Without a seed, candidates differ from run to run.
        logprobs: whether to ask for the tokens' log-probabilities.
        batch: how many candidates to ask for in one request at most. Becomes 1 when the server
            turns out to ignore or to refuse more.
        options: the fields of `Sampling`, instead of `sampling`.

    Raises:
        UsageError: a parameter makes no sense, or there is neither a key nor an address.
    """

    def __init__(
        self,
        dialect: Dialect,
        model: str,
        *,
        base_url: str | None = None,
        sampling: Sampling | None = None,
        logprobs: bool = True,
        batch: int | None = None,
        **options: Any,
    ) -> None:
        if sampling is None:
            options = {"seed": None, **options}
        super().__init__(
            dialect,
            model,
            backend=f"{dialect.name}:{model}",
            error=GeneratorError,
            base_url=base_url,
            sampling=from_arguments(Sampling, sampling, options),
            logprobs=logprobs,
            batch=batch,
        )
        if "stop" in dialect.lacks and self.sampling.stop:
            self._note("stop", "has no")

    def __repr__(self) -> str:
        """Everything that decides what the candidates are, and no secret."""
        return (
            f"DialectGenerator({self.dialect.name!r}, {self.model!r},"
            f" base_url={self._endpoint.shown!r}, {self.sampling}, logprobs={self.logprobs})"
        )

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> Sequence[Draft]:
        """Up to `n` drafts, with one request; a GeneratorError if there is no readable answer.

        If the server refuses an option that can be left out, one more request is made without it.
        """
        if n < 1:
            raise UsageError(f"n must be at least 1, not {n}")
        asked = min(n, self.batch or n)
        try:
            answer, seconds = await self.answer(problem, asked, first=first)
            return self.read(answer, problem, asked, seconds)
        except BackendError as error:
            error.at_most = min(n, self.batch or n)
            raise

    def read(
        self, answer: object, problem: Problem, n: int, seconds: float = 0.0
    ) -> Sequence[Draft]:
        """The drafts of an answer to a request for `n` of them."""
        made = self._made(answer, problem, n, seconds)
        if len(made) == 1 < n:
            self.batch = 1
        return [self._checked(draft) for draft in made]

    def prepared(self, problem: Problem, n: int, first: int) -> Prepared:
        """A request that is sent later, in a batch."""
        request = self._request(problem, min(n, self.batch or n), first)
        return Prepared(request, self._body(request, problem))

    def learn_from(self, code: int, body: str, request: Request) -> bool:
        """Whether an error response refuses an option that later requests leave out."""
        option = self._refused_in(code, body, request, {})
        if option is None:
            return False
        if option == "max_tokens" and self._learned.limit_name not in (None, request.limit_name):
            return True  # another response has said so already
        self._learn(option, request)
        return True

    def refusal(self, code: int, body: str, problem: Problem) -> BackendError:
        """The error of an error response inside a batch. Such a request is not billed."""
        cause = replace(of_response(code, body, {}), unpaid=True)
        return self._endpoint.failure(f"status {code}: {complaint(body)}", problem.id, cause)

    @property
    def endpoint(self) -> Endpoint[BackendError]:
        """The server."""
        return self._endpoint

    def _made(self, answer: object, problem: Problem, n: int, seconds: float) -> list[Draft]:
        """The drafts of one answer, with what they used."""
        try:
            texts = self.dialect.texts(answer)[: min(n, self.batch or n)]
            return billed(texts, self.dialect.usage(answer), seconds)
        except Moderated as exc:
            cause = Cause(final=True, hint=REWORD)
            raise self._endpoint.failure(str(exc), problem.id, cause) from None
        except FailedInside as exc:
            raise self.failed_inside(exc, problem.id) from None
        except ValueError as exc:
            raise self.unreadable(exc, problem.id) from self._endpoint.cause(exc)

    def _checked(self, draft: Draft) -> Draft:
        """The draft as it is; without its text, if that contains a key."""
        if self._endpoint.secrets.has_key(draft.reasoning):
            draft = replace(draft, reasoning="")
        said = draft.log if draft.broken else draft.text
        if not self._endpoint.secrets.has_key(said):
            return draft
        return Draft("", None, draft.usage, broken=KEY_INSIDE)


_NOTHING: Mapping[str, Any] = {
    "logprobs": False,
    "n": 1,
    "seed": None,
    "stop": (),
    "temperature": None,
    "top_p": None,
}


def merged(body: dict[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """The body with further fields; those inside an object are added to it.

    >>> merged({"config": {"seed": 1}}, {"config": {"topK": 5}})
    {'config': {'seed': 1, 'topK': 5}}
    """
    result = dict(body)
    for name, value in more.items():
        own = result.get(name)
        if isinstance(own, dict) and isinstance(value, Mapping):
            result[name] = merged(own, value)
        else:
            result[name] = value
    return result


def image_data(url: str) -> tuple[str, str] | None:
    """The media type and the base64 data of an image inside an address; None for another address.

    >>> image_data("data:image/png;base64,iVBO")
    ('image/png', 'iVBO')
    """
    match = re.fullmatch(r"data:([\w/+.-]+);base64,(.*)", url, re.DOTALL)
    return None if match is None else (match[1], match[2])


def image_url(part: Mapping[str, Any]) -> str | None:
    """The address of a part of a message that is an image, in the form of OpenAI's chats."""
    match part:
        case {"type": "image_url", "image_url": {"url": str(url)} | str(url)}:
            return url
        case _:
            return None


def split_system(messages: Sequence[Message]) -> tuple[str, list[Message]]:
    """The text of the system messages, and the other messages."""
    system: list[str] = []
    others: list[Message] = []
    for message in messages:
        if message["role"] in ("system", "developer"):
            content = message["content"]
            parts = [{"text": content}] if isinstance(content, str) else content
            system += [str(part.get("text", "")) for part in parts]
        else:
            others.append(message)
    return "\n\n".join(system), others


def schema_of(form: Mapping[str, Any] | None) -> Any:
    """The schema of a response format in OpenAI's form; None if it has none."""
    match form:
        case {"json_schema": {"schema": schema}}:
            return schema
        case _:
            return None
