"""Backends that make candidates. To add one, write a file and add an entry to `GENERATORS`.

A generator has the method `generate` of `protocols.Generator`. An entry of the table gives its form
on the command line, a few words about it, and how it is made. Its module is imported only when it
is used. The help of `--generator`, the guide's table and the tests come from the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ...core.errors import UsageError
from ..protocols import Generator
from ..table import Entry, table
from .sampling import Sampling

if TYPE_CHECKING:
    from .dialect import Dialect


DIALECTS = ("openai", "responses", "anthropic", "gemini")  # interfaces that take chats
INTERFACES = (*DIALECTS, "openai-text")
PRICE_SHARE = 0.5  # of the list price, for what is asked in a batch
# What people write for servers with one of these interfaces, and what to write instead.
INSTEAD_OF = {
    "azure": "openai:DEPLOYMENT --base-url https://RESOURCE.openai.azure.com/openai/v1",
    "openrouter": "openai:VENDOR/MODEL --base-url https://openrouter.ai/api/v1",
    "ollama": "openai:MODEL --base-url http://localhost:11434/v1",
    "vllm": "openai:MODEL --base-url http://localhost:8000/v1",
    "sglang": "openai:MODEL --base-url http://localhost:30000/v1",
    "llama.cpp": "openai:MODEL --base-url http://localhost:8080/v1",
    "claude": "anthropic:MODEL",
    "google": "gemini:MODEL",
}


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


def dialect_named(name: str) -> Dialect:
    """The dialect of chats with this name, one of `DIALECTS`."""
    match name:
        case "responses":
            from .responses import RESPONSES

            return RESPONSES
        case "anthropic":
            from .anthropic import ANTHROPIC

            return ANTHROPIC
        case "gemini":
            from .gemini import GEMINI

            return GEMINI
        case _:
            from .openai import CHAT

            return CHAT


def _of_dialect(name: str, model: str, options: GeneratorOptions) -> Generator:
    from .dialect import DialectGenerator

    return DialectGenerator(
        dialect_named(name),
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


def _command(argument: str, options: GeneratorOptions) -> Generator:
    _refuse_address(f"command:{argument}", options)
    from .command import Agent, CommandGenerator

    return CommandGenerator(Agent.of_command(argument))


def _agent(argument: str, options: GeneratorOptions) -> Generator:
    _refuse_address(f"agent:{argument}", options)
    from .command import Agent, CommandGenerator
    from .recipes import recipe_named

    name, _, model = argument.partition(":")
    return CommandGenerator(Agent.of_recipe(recipe_named(name), model))


def _harbor(argument: str, options: GeneratorOptions) -> Generator:
    _refuse_address(f"harbor:{argument}", options)
    from .harbor import HarborGenerator

    return HarborGenerator(argument)


def _none(argument: str, options: GeneratorOptions) -> Generator:
    _refuse_address("none", options)
    from .no_candidates import NoCandidates

    return NoCandidates()


def _refuse_address(spec: str, options: GeneratorOptions) -> None:
    if options.base_url is not None:
        raise UsageError(f"{spec} is a program and has no base URL; did you mean openai:...?")


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
            "responses:MODEL",
            "a model behind OpenAI's Responses interface",
            partial(_of_dialect, "responses"),
        ),
        GeneratorEntry(
            "anthropic:MODEL",
            "a model behind Anthropic's Messages interface",
            partial(_of_dialect, "anthropic"),
        ),
        GeneratorEntry(
            "gemini:MODEL",
            "a model behind Google's Gemini interface",
            partial(_of_dialect, "gemini"),
        ),
        GeneratorEntry(
            "embedded",
            "SmolLM2-135M on this machine, continuing the prompt's text",
            _embedded,
            for_chats="embedded-chat",
        ),
        GeneratorEntry(
            "embedded-chat", "the same, with the prompt as a user's message", _embedded_chat
        ),
        GeneratorEntry(
            "command:PROGRAM",
            "a program of your own, which runs with your rights: its output, or its diff",
            _command,
        ),
        GeneratorEntry(
            "agent:NAME[:MODEL]", "a coding agent by its recipe: claude, codex and others", _agent
        ),
        GeneratorEntry(
            "harbor:AGENT[:MODEL]", "an agent of Harbor, for checks of kind harbor", _harbor
        ),
        GeneratorEntry("none", "no candidates, for grv mcp that only verifies", _none),
    ],
)
