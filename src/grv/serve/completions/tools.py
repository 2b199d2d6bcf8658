"""Tools: a client offers them, the model may call them, and the client runs them.

The server runs none. The first response of the model may call tools; such a response is returned as
it is, and nothing verifies it. If it is a text, it is the first candidate of a search for the final
answer, whose other candidates may not call tools.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...backends.generators.completions import CALLS_OFFERED, CALLS_TOOLS
from ...backends.generators.sampling import Sampling
from ...backends.protocols import Draft, Generator, Problem
from ...core.pool import Pool
from ...core.values import Costs, Generate, Step
from ...files import parse_json, shown
from ..errors import wrong
from ..fields import only
from .dialect import ToolCall
from .formats import parse_schema

NO_CALLS = "none"
CHOICES = ("auto", "required", NO_CALLS)
_MOST = 128
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_LONGEST_DESCRIPTION = 100_000


@dataclass(frozen=True)
class OneTurn:
    """Generates one response and stops: it may call tools."""

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        """Yield the one step."""
        yield Generate(1, "one response, which may call tools", lambda _: 0)


@dataclass(frozen=True)
class ToolTurns:
    """A generator whose first draft may call tools, and no other.

    Args:
        first: is asked for the first draft.
        others: is asked for the others.
    """

    first: Generator
    others: Generator

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> Sequence[Draft]:
        """The first draft alone, or up to `n` of the others."""
        if first:
            return await self.others.generate(problem, n, first=first)
        drafts = await self.first.generate(problem, 1, first=0)
        return [
            dataclasses.replace(draft, broken=CALLS_OFFERED)
            if draft.broken == CALLS_TOOLS
            else draft
            for draft in drafts
        ]

    def __getattr__(self, name: str) -> Any:
        """What the runtime asks a generator besides: that of the others."""
        if name in ("first", "others") or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.others, name)


def without_calls(sampling: Sampling) -> Sampling:
    """The same sampling, with tools that may not be called."""
    fields = {**(sampling.extra_body or {}), "tool_choice": NO_CALLS}
    fields.pop("parallel_tool_calls", None)
    return dataclasses.replace(sampling, extra_body=fields)


def calls_of(draft: Draft) -> tuple[str, list[ToolCall]]:
    """What a draft says that calls tools: a text, which may be empty, and the calls."""
    said = parse_json(draft.log)
    return said["text"], [ToolCall(**call) for call in said["calls"]]


def calls_tools(draft: Draft | None) -> bool:
    """Whether a draft calls tools that the client has offered."""
    return draft is not None and draft.broken == CALLS_OFFERED


def tool_of(
    name: Any, place: str, *, description: Any = None, schema: Any = None, strict: Any = None
) -> dict[str, Any]:
    """A tool in the form of OpenAI's chats; an error names its place in the request."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise wrong(f"{place}.name", "must be up to 128 letters, digits, ., _ and -")
    function: dict[str, Any] = {"name": name}
    if description is not None:
        if not isinstance(description, str) or len(description) > _LONGEST_DESCRIPTION:
            raise wrong(f"{place}.description", "must be a text, and not too long")
        function["description"] = description
    if schema is not None:
        function["parameters"] = parse_schema(schema, f"{place}.schema")
    if strict is not None:
        if not isinstance(strict, bool):
            raise wrong(f"{place}.strict", f"must be true or false, not {shown(strict)}")
        function["strict"] = strict
    return {"type": "function", "function": function}


def tool_list(given: Any) -> list[Any]:
    """The tools of a request, before they are read."""
    if not isinstance(given, list) or len(given) > _MOST:
        raise wrong("tools", f"must be a list of at most {_MOST} tools")
    return given


def named(name: Any, tools: Sequence[Mapping[str, Any]], place: str) -> dict[str, Any]:
    """The choice of one tool, by its name."""
    if name not in [tool["function"]["name"] for tool in tools]:
        raise wrong(place, f"there is no tool {shown(name)}")
    return {"type": "function", "function": {"name": name}}


def offered(
    tools: Sequence[Mapping[str, Any]], choice: Any, parallel: Any, place: str = "tool_choice"
) -> tuple[dict[str, Any], bool]:
    """What reaches the model about tools, and whether it may call them."""
    if not tools:
        if choice not in (None, "auto", NO_CALLS):
            raise wrong(place, "there are no tools")
        return {}, False
    fields: dict[str, Any] = {"tools": list(tools), "tool_choice": choice or "auto"}
    if parallel is not None:
        if not isinstance(parallel, bool):
            raise wrong("parallel_tool_calls", f"must be true or false, not {shown(parallel)}")
        fields["parallel_tool_calls"] = parallel
    return fields, choice != NO_CALLS


def chat_tools(given: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """The tools of a chat; see `offered`."""
    tools = []
    for index, tool in enumerate(tool_list(given.get("tools", []))):
        place = f"tools[{index}]"
        match tool:
            case {"type": "function", "function": dict(function), **more} if not more:
                known = ("name", "description", "parameters", "strict")
                only(function, f"{place}.function.", known)
                tools.append(
                    tool_of(
                        function.get("name"),
                        f"{place}.function",
                        description=function.get("description"),
                        schema=function.get("parameters"),
                        strict=function.get("strict"),
                    )
                )
            case _:
                raise wrong(place, 'must be {"type": "function", "function": {"name": ...}}')
    match given.get("tool_choice"):
        case {"type": "function", "function": {"name": name, **inner}, **more} if not (
            inner or more
        ):
            choice: Any = named(name, tools, "tool_choice")
        case None | str() as choice if choice in (None, *CHOICES):
            pass
        case other:
            there = ", ".join(CHOICES)
            raise wrong("tool_choice", f"must be {there} or a function, not {shown(other)}")
    return offered(tools, choice, given.get("parallel_tool_calls"))
