"""How the coding agents that people use are run without a person: a table.

A recipe says which command runs an agent once, where its output has the cost, the tokens and its
last words, and what is switched off. It is data: to add an agent, add a line to `RECIPES`.

None of these agents was run where grv is developed: they need accounts. Each recipe was made from
the documentation or a recorded output that it names, and is tested with a stand-in that prints
output of that form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ...core.errors import UsageError
from ...files import is_number
from ...options import did_you_mean
from ..protocols import Usage

Format = Literal["json", "lines", "file", "text"]
Tokens = Mapping[str, tuple[str, ...]]  # a field of `Usage` -> the places whose numbers add up
_OPTIONS = "{options}"


@dataclass(frozen=True)
class RunReport:
    """Where an agent says what a run cost, and what it said last.

    A place is the names of fields with dots between them, from the outside in. `*` stands for every
    field of a record; the numbers add up.

    Attributes:
        format: "json": standard output is one record. "lines": one record per line; the numbers of
            all lines add up. "file": the record is in the file that `{report}` names. "text": plain
            text.
        cost: the place of the dollars; for plain text, a regular expression whose last match in
            the output counts. Empty if the agent does not say them.
        tokens: the places of the tokens, for the price list.
        said: the place of its last words; empty if they are the end of the output.
    """

    format: Format = "text"
    cost: str = ""
    tokens: Tokens = field(default_factory=dict)
    said: str = ""

    def read(self, output: str, file: str = "") -> tuple[Usage, str]:
        """What a run used, as far as it is said, and its last words."""
        if self.format == "text":
            found = re.findall(self.cost, output) if self.cost else []
            return Usage(dollars=_amount(found[-1]) if found else None), output
        records = list(_records(self.format, file if self.format == "file" else output))
        costs = [amount for record in records for amount in _numbers(record, self.cost)]
        tokens = {
            name: int(sum(n for place in places for r in records for n in _numbers(r, place)))
            for name, places in self.tokens.items()
        }
        words = [text for record in records for text in _texts(record, self.said)]
        dollars = sum(costs) if costs else None
        return Usage(dollars=dollars, **tokens), words[-1] if words else output


@dataclass(frozen=True)
class Recipe:
    """How one agent is run.

    In arguments, `{task}` is the text of the task, `{file}` the path of a file with it, `{report}`
    the path of a file for the report, `{scratch}` a folder for the agent's own files, `{model}` the
    model and `{most}` the most dollars that the run may cost. The task is its standard input too.
    Arguments for model and limit stand at the end, or where the command has `{options}`.

    Attributes:
        name: what users write.
        command: the program and its arguments.
        report: where cost and last words are.
        model: arguments that choose a model; empty if the environment does.
        most: arguments that limit what a run may cost; empty if the agent has no such limit.
        set: variables of its environment.
        unset: variables that it must not see.
        provider: who charges for the tokens, as genai-prices names it; empty if that depends.
        off: what the arguments switch off, and why, in a sentence.
        source: where the form of its output is described.
        read: the day on which that was read.
    """

    name: str
    command: tuple[str, ...]
    report: RunReport
    model: tuple[str, ...] = ()
    most: tuple[str, ...] = ()
    set: Mapping[str, str] = field(default_factory=dict)
    unset: tuple[str, ...] = ()
    provider: str = ""
    off: str = ""
    source: str = ""
    read: str = ""

    def arguments(self, model: str, most: float | None) -> tuple[str, ...]:
        """The command for a model and a limit; placeholders of the run are still in it."""
        chosen = tuple(part.replace("{model}", model) for part in self.model) if model else ()
        limit = () if most is None else tuple(p.replace("{most}", f"{most:g}") for p in self.most)
        place = self.command.index(_OPTIONS) if _OPTIONS in self.command else len(self.command)
        return (*self.command[:place], *limit, *chosen, *self.command[place + 1 :])


_READ = "2026-11-18"

RECIPES: Mapping[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            "claude",
            (
                "claude",
                "-p",
                "--output-format",
                "json",
                "--permission-mode",
                "bypassPermissions",
                "--strict-mcp-config",
                "--no-session-persistence",
            ),
            RunReport(
                "json",
                cost="total_cost_usd",
                tokens={
                    "prompt_tokens": (
                        "usage.input_tokens",
                        "usage.cache_creation_input_tokens",
                        "usage.cache_read_input_tokens",
                    ),
                    "completion_tokens": ("usage.output_tokens",),
                    "cached_tokens": ("usage.cache_read_input_tokens",),
                    "cache_write_tokens": ("usage.cache_creation_input_tokens",),
                },
                said="result",
            ),
            model=("--model", "{model}"),
            most=("--max-budget-usd", "{most}"),
            unset=("CLAUDECODE",),  # it refuses to run inside another session
            provider="anthropic",
            off="questions about permissions, MCP servers of other projects, the session's record",
            source="https://code.claude.com/docs/en/headless; the fields of a recorded result:"
            " https://docs.rs/claude-code, struct ClaudeResponse",
            read=_READ,
        ),
        Recipe(
            "codex",
            (
                "codex",
                "exec",
                _OPTIONS,
                "--json",
                "--ephemeral",
                "--sandbox",
                "workspace-write",
                "-",
            ),
            RunReport(
                "lines",
                tokens={
                    "prompt_tokens": ("usage.input_tokens",),
                    "cached_tokens": ("usage.cached_input_tokens",),
                    "completion_tokens": ("usage.output_tokens",),
                    "reasoning_tokens": ("usage.reasoning_output_tokens",),
                },
                said="item.text",
            ),
            model=("--model", "{model}"),
            provider="openai",
            off="the session's record; its commands may write below its folder only",
            source="https://github.com/openai/codex, codex-rs/exec/src/exec_events.rs (pull 4309):"
            " turn.completed has usage, item.completed has item.text",
            read=_READ,
        ),
        Recipe(
            "mini",
            ("mini", "--yolo", "--exit-immediately", "--task", "{task}", "--output", "{report}"),
            RunReport("file", cost="info.model_stats.instance_cost", said="info.submission"),
            model=("--model", "{model}"),
            most=("--cost-limit", "{most}"),
            set={"MSWEA_CONFIGURED": "true", "MSWEA_SILENT_STARTUP": "1"},
            off="confirmation of each command and of the end, the questions of the first start",
            source="https://github.com/SWE-agent/mini-swe-agent at 02e25f7,"
            " src/minisweagent/run/mini.py; its trajectory format mini-swe-agent-1.1",
            read=_READ,
        ),
        Recipe(
            "openhands",
            ("openhands", "--headless", "--json", "--file", "{file}"),
            RunReport("lines", said="content"),
            off="its terminal page and all questions; it does not print what a run cost, so give"
            " generate_call or generate_minute in --prices",
            source="https://docs.openhands.dev/openhands/usage/cli/headless",
            read=_READ,
        ),
        Recipe(
            "aider",
            (
                "aider",
                "--message-file",
                "{file}",
                "--yes-always",
                "--no-auto-commits",
                "--no-dirty-commits",
                "--no-gitignore",
                "--no-check-update",
                "--no-analytics",
                "--no-pretty",
                "--no-stream",
                "--chat-history-file",
                "{scratch}/chat.md",
                "--input-history-file",
                "{scratch}/input",
            ),
            RunReport("text", cost=r"Cost: \$[\d.,]+ message, \$([\d.,]+) session"),
            model=("--model", "{model}"),
            off="commits, changes of .gitignore, its history files in the tree, the check for"
            " updates, analytics",
            source="https://aider.chat/docs/scripting.html; the line of costs:"
            " https://github.com/Aider-AI/aider, aider/coders/base_coder.py, show_usage_report",
            read=_READ,
        ),
        Recipe(
            "gemini",
            ("gemini", "--output-format", "json", "--approval-mode", "yolo"),
            RunReport(
                "json",
                tokens={
                    "prompt_tokens": ("stats.models.*.tokens.prompt",),
                    "cached_tokens": ("stats.models.*.tokens.cached",),
                    "completion_tokens": (
                        "stats.models.*.tokens.candidates",
                        "stats.models.*.tokens.thoughts",
                    ),
                    "reasoning_tokens": ("stats.models.*.tokens.thoughts",),
                },
                said="response",
            ),
            model=("--model", "{model}"),
            provider="google",
            off="questions about permissions",
            source="https://geminicli.com/docs/cli/headless",
            read=_READ,
        ),
    )
}


def recipe_named(name: str) -> Recipe:
    """The recipe of an agent; a UsageError if there is none of that name."""
    if name not in RECIPES:
        hint = did_you_mean(name, list(RECIPES))
        raise UsageError(
            f"no recipe for the agent {name!r}{hint} (there are: {', '.join(RECIPES)});"
            " or give a command of your own, with a space in it or the path of a program"
        )
    return RECIPES[name]


def _records(format: Format, text: str) -> Iterator[Mapping[str, Any]]:
    """The records in an output; what is no record is left out.

    A single record begins at the first line with a brace: warnings may stand before it.
    """
    lines = text.splitlines()
    pieces: Sequence[str] = lines
    if format != "lines":
        first = next((i for i, line in enumerate(lines) if line.startswith("{")), 0)
        pieces = ["\n".join(lines[first:])]
    for piece in pieces:
        try:
            record = json.loads(piece)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, Mapping):
            yield record


def _numbers(record: object, place: str) -> Iterator[float]:
    for value in _values(record, place):
        if is_number(value) and 0 <= value < 1e15:
            yield float(value)


def _texts(record: object, place: str) -> Iterator[str]:
    for value in _values(record, place):
        if isinstance(value, str):
            yield value


def _values(record: object, place: str) -> Iterator[object]:
    """What stands at a place of a record."""
    if not place:
        return
    name, _, rest = place.partition(".")
    if not isinstance(record, Mapping):
        return
    inner = record.values() if name == "*" else [record[name]] if name in record else []
    for value in inner:
        if rest:
            yield from _values(value, rest)
        else:
            yield value


def _amount(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None
