"""The tools as a server of the Model Context Protocol, by the official package `mcp`."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

from ...core.errors import GrvError
from ..clients import Client
from ..errors import ApiError
from ..events import Events, Handler, place_of
from .tools import ToolCard, Tools

NAME = "grv"
_INSTRUCTIONS = (
    "verify gives a verdict on a candidate that does not depend on what the candidate says about"
    " itself. solve finds an answer that has passed a check. status tells what was spent."
)

Context = ServerRequestContext[Any, Any]
Count = Callable[[int], None]


@contextmanager
def _uncounted(context: Context) -> Iterator[Count]:
    """Count nothing."""
    yield lambda size: None


def protocol_server(
    tools: Tools,
    events: Events,
    client_of: Callable[[Context], Client],
    counted: Callable[[Context], AbstractContextManager[Count]] = _uncounted,
) -> Server[Any]:
    """A server that speaks the protocol.

    Args:
        tools: what it offers.
        events: is told of each call.
        client_of: the client that made a call.
        counted: counts a call until its end, and gives what is told about how many bytes its result
            has. Both may raise an ApiError.
    """
    library = logging.getLogger("mcp")
    library.handlers = [Handler(events)]
    library.propagate = False

    async def listed(
        context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        cards = tools.cards(client_of(context))
        return types.ListToolsResult(tools=[_tool(card) for card in cards])

    async def called(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        client = client_of(context)
        started = time.monotonic()
        status = 200

        async def report(steps: float, message: str) -> None:
            await context.session.report_progress(steps, None, message)

        try:
            with counted(context) as count:
                data = await tools.call(params.name, params.arguments, client, report)
                text = json.dumps(data)
                count(2 * len(text))  # the data are in a result twice
                return _result(text, data)
        except ApiError as error:
            status = error.status
            return _failure(error)
        except GrvError as error:
            failure = tools.searches.failure(error)
            status = failure.status
            return _failure(failure)
        except Exception as error:  # a mistake in one call must not end the connection
            status = 500
            events("bug", error=type(error).__name__, place=place_of(error))
            return _failure(ApiError(500, "this is a bug in grv", code="bug"))
        finally:
            events(
                "tool",
                tool=params.name[:40],
                client=client.name or None,
                status=status,
                seconds=round(time.monotonic() - started, 3),
            )

    return Server(
        NAME,
        version=tools.version,
        instructions=_INSTRUCTIONS,
        on_list_tools=listed,
        on_call_tool=called,
    )


def _tool(card: ToolCard) -> types.Tool:
    return types.Tool(
        name=card.name,
        title=card.title,
        description=card.description,
        input_schema=card.schema,
        annotations=types.ToolAnnotations(
            read_only_hint=card.only_reads,
            destructive_hint=False,
            idempotent_hint=True,
            open_world_hint=not card.only_reads,
        ),
    )


def _result(text: str, data: Mapping[str, Any]) -> types.CallToolResult:
    return types.CallToolResult(content=[_text(text)], structured_content=_sent(data))


def _failure(error: ApiError) -> types.CallToolResult:
    """An error that the model reads: one line."""
    body = error.body["error"]
    return types.CallToolResult(
        content=[_text(" ".join(body["message"].split()))],
        structured_content=_sent({"error": body}),
        is_error=True,
    )


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text.encode("utf-8", "replace").decode())


def _sent(data: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The data, if the protocol can carry it: a candidate may contain half a character.

    Then only the JSON in the text has it, as an escape.
    """
    try:
        json.dumps(data, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return None
    return data
