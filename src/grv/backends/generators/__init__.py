"""Backends that make candidates. To add one, write a file and add an entry to `GENERATORS`.

A generator has the method `generate` of `protocols.Generator`. An entry of the table gives its form
on the command line, a few words about it, and how it is made. Its module is imported only when it
is used. The help of `--generator`, the guide's table and the tests come from the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...core.errors import UsageError
from ..protocols import Generator
from ..table import Entry, table
from .sampling import Sampling

if TYPE_CHECKING:
    from .dialect import Dialect


@dataclass(frozen=True)
class GeneratorOptions:
    """What the command line says about generators.

    Attributes:
        base_url: the address of the server.
        sampling: how candidates are sampled.
        logprobs: whether the log-probabilities of tokens are needed.
        batch: the most candidates of a call; None leaves it to the generator.
    """

    base_url: str | None = None
    sampling: Sampling | None = None
    logprobs: bool = True
    batch: int | None = None


@dataclass(frozen=True)
class GeneratorEntry(Entry[GeneratorOptions, Generator]):
    """One generator of the command line.

    Attributes:
        for_chats: the form of the generator to use for problems with messages, if this one cannot
            read them; empty if it can.
    """

    for_chats: str = ""


def _openai(model: str, options: GeneratorOptions, *, chat: bool = True) -> Generator:
    from .openai import OpenaiGenerator

    return OpenaiGenerator(
        model,
        chat=chat,
        base_url=options.base_url,
        sampling=options.sampling,
        logprobs=options.logprobs,
        batch=options.batch,
    )


def _openai_text(model: str, options: GeneratorOptions) -> Generator:
    return _openai(model, options, chat=False)


def _responses(model: str, options: GeneratorOptions) -> Generator:
    from .responses import RESPONSES

    return _of_dialect(RESPONSES, model, options)


def _anthropic(model: str, options: GeneratorOptions) -> Generator:
    from .anthropic import ANTHROPIC

    return _of_dialect(ANTHROPIC, model, options)


def _gemini(model: str, options: GeneratorOptions) -> Generator:
    from .gemini import GEMINI

    return _of_dialect(GEMINI, model, options)


def _of_dialect(dialect: Dialect, model: str, options: GeneratorOptions) -> Generator:
    from .dialect import DialectGenerator

    return DialectGenerator(
        dialect,
        model,
        base_url=options.base_url,
        sampling=options.sampling,
        logprobs=options.logprobs,
        batch=options.batch,
    )


def _embedded(argument: str, options: GeneratorOptions, *, name: str = "embedded") -> Generator:
    if options.base_url is not None:
        raise UsageError(f"{name} is on this machine and has no base URL; did you mean openai:...?")
    from .embedded import PARALLEL, EmbeddedGenerator

    return EmbeddedGenerator(
        chat=name == "embedded-chat", sampling=options.sampling, batch=options.batch or PARALLEL
    )


def _embedded_chat(argument: str, options: GeneratorOptions) -> Generator:
    return _embedded(argument, options, name="embedded-chat")


# By name, in the order of the help.
GENERATORS = table(
    __name__,
    [
        GeneratorEntry(
            "openai:MODEL", "a chat model behind an OpenAI-compatible endpoint", _openai
        ),
        GeneratorEntry(
            "openai-text:MODEL",
            "plain completions of such an endpoint, for base models",
            _openai_text,
            for_chats="openai:MODEL",
        ),
        GeneratorEntry(
            "responses:MODEL", "a model behind OpenAI's Responses interface", _responses
        ),
        GeneratorEntry(
            "anthropic:MODEL", "a model behind Anthropic's Messages interface", _anthropic
        ),
        GeneratorEntry("gemini:MODEL", "a model behind Google's Gemini interface", _gemini),
        GeneratorEntry(
            "embedded",
            "SmolLM2-135M on this machine, continuing the prompt's text",
            _embedded,
            for_chats="embedded-chat",
        ),
        GeneratorEntry(
            "embedded-chat", "the same, with the prompt as a user's message", _embedded_chat
        ),
    ],
)
