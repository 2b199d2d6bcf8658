"""What the converters of all formats share: a record with its place, and what becomes of it.

Nothing in a record is executed, and each field is checked before it is used. A record with a
missing or wrong field is a UsageError. One that is well formed, but that no check of ours can
judge, raises `NotConverted`; it is counted and named, never dropped in silence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.errors import UsageError
from ...files import LONGEST_LINE, is_number, parse_json, shown
from ..protocols import Problem
from .prompts import filled

LARGEST = LONGEST_LINE  # unpacked bytes of the tests in one record: a problem is a line of a file
SOLUTIONS = 3  # right answers that are kept of a record; some have hundreds
_FEWEST_SECONDS = 1e-3
_MOST_SECONDS = 3600.0
_MOST_MEGABYTES = 1 << 20

MATH_PROMPT = "{question}\n\nReason step by step, and put the final answer within \\boxed{}.\n\n"
STDIN_PROMPT = (
    "{question}\n\nWrite a Python program that reads the input from standard input and prints the"
    " answer.\n\n```python\n"
)
FUNCTION_PROMPT = (
    "{question}\n\nComplete this Python program.\n\n```python\n{code}\n```\n\n```python\n"
)
CODE_PROMPT = "{code}"

# The languages of checks of kind "run", as people write them.
LANGUAGES: Mapping[str, str] = {
    "c": "C",
    "cpp": "C++",
    "go": "Go",
    "java": "Java",
    "javascript": "JavaScript",
    "python": "Python",
    "rust": "Rust",
    "typescript": "TypeScript",
}


class NotConverted(Exception):
    """A record that no check can judge. The message says why, without the name of the record."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the user wants of a conversion.

    Attributes:
        prompt: a template with {question} or {code}, instead of the format's own.
        match: how answers in mathematics are compared: equivalent, exact or published.
        language: the language in which contest problems are to be solved.
        databases: the folder of the databases; None looks beside the file.
        time_factor: what the time limits of a dataset are multiplied by.
        partial: whether a promptfoo test is converted without the assertions that cannot be.
        repositories: the folder of clones of repositories; None is "repositories".
        largest: how many bytes the tests of a record may unpack to.
    """

    prompt: str | None = None
    match: str = "equivalent"
    language: str = "python"
    databases: str | None = None
    time_factor: float = 1.0
    partial: bool = False
    repositories: str | None = None
    largest: int = LARGEST


@dataclass(frozen=True, slots=True)
class Converted:
    """A problem, its difficulty if the dataset states it, and right answers to it.

    Attributes:
        problem: the problem.
        difficulty: as the dataset names it.
        solutions: right answers, for `grv doctor --problems`. No model is shown them.
        notes: what was left out of the record, for the summary.
    """

    problem: Problem
    difficulty: str | None = None
    solutions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Skipped:
    """A record that was not converted: its place, as FILE:ROW, and why."""

    place: str
    reason: str


class Record:
    """A record of a dataset, and where it is.

    Attributes:
        data: untrusted data, checked field by field.
        path: the file.
        number: its row in the file, from 1.
        source: the name of the file without folder and ending.
    """

    def __init__(self, data: Mapping[str, Any], path: str, number: int, source: str) -> None:
        self.data = data
        self.path = path
        self.number = number
        self.source = source

    @property
    def place(self) -> str:
        """Where it is, for messages."""
        return f"{self.path}:{self.number}"

    @property
    def row(self) -> str:
        """A name for a record that has none; rows are counted from 0, as the datasets do."""
        return f"{self.source}/{self.number - 1}"

    def field(self, name: str, kind: Any) -> Any:
        """The value of a field, which must have this type."""
        value = self.data.get(name)
        if not isinstance(value, kind) or isinstance(value, bool):
            there = ", ".join(map(str, self.data))
            raise UsageError(
                f"field {name} is missing or has the wrong type; there are {there[:200]}"
            )
        return value

    def text(self, name: str, default: str | None = None) -> str:
        """The text of a field; the default if it is missing or null."""
        if default is not None and self.data.get(name) is None:
            return default
        return str(self.field(name, str))

    def name(self, *names: str) -> str:
        """The first of these fields that can name a problem; the row if none can."""
        for name in names:
            value = self.data.get(name)
            if isinstance(value, int | str) and not isinstance(value, bool) and str(value).strip():
                return str(value)
        return self.row

    def part(self, name: str) -> Record:
        """The record in a field; an empty one if it is missing or null."""
        value = self.data.get(name)
        if value is not None and not isinstance(value, Mapping):
            raise UsageError(f"field {name} must be a record, not {shown(value)}")
        return Record(value or {}, self.path, self.number, self.source)

    def parsed(self, name: str, largest: int = LARGEST) -> Any:
        """The value of a field that may be JSON in a text; None if it is missing or empty."""
        value = self.data.get(name)
        if not isinstance(value, str):
            return value
        if len(value) > largest:
            raise too_large(name, largest)
        return parsed(value, name) if value.strip() else None


def parsed(text: str, name: str) -> Any:
    """The JSON in the text of a field."""
    try:
        return parse_json(text)
    except ValueError as error:
        raise UsageError(f"{name} is not JSON: {error}") from error


def too_large(name: str, largest: int) -> UsageError:
    """The error of a field that unpacks to too much."""
    return UsageError(
        f"{name} unpacks to more than {largest:,} bytes, the limit: leave this record out, or"
        " raise the limit in Python with read_dataset(..., largest=BYTES)"
    )


def limits(seconds: float | None, megabytes: float | None, factor: float = 1.0) -> dict[str, Any]:
    """The field `limits` of a check, as a part of its record; empty if nothing is known."""
    found: dict[str, float] = {}
    if seconds is not None:
        found["seconds"] = round(seconds * factor, 3)
    if megabytes is not None:
        found["memory_mb"] = max(1, round(megabytes))
    return {"limits": found} if found else {}


def usable_seconds(value: float) -> bool:
    """Whether a time limit makes sense."""
    return is_number(value) and _FEWEST_SECONDS <= value <= _MOST_SECONDS


def usable_megabytes(value: float) -> bool:
    """Whether a memory limit makes sense."""
    return is_number(value) and 1 <= value <= _MOST_MEGABYTES


def kept(solutions: Sequence[Any]) -> tuple[str, ...]:
    """The first right answers of a record."""
    texts = [each for each in solutions if isinstance(each, str) and each.strip()]
    return tuple(texts[:SOLUTIONS])


def chat(
    record: Record, name: str, messages: Sequence[Mapping[str, Any]], wanted: Wanted, check: Any
) -> Problem:
    """A problem that is asked in a chat; with a prompt of one's own, its last question alone."""
    question = next((each["content"] for each in reversed(messages) if each["role"] == "user"), "")
    if wanted.prompt is not None:
        return Problem(name, filled(wanted.prompt, question), check, question)
    return Problem(name, check=check, question=question, messages=tuple(messages))


def chat_messages(value: Any, name: str) -> list[dict[str, str]]:
    """The messages of a chat, texts only.

    Parts of a message are joined. A picture or a sound in it cannot be sent to every model, and no
    check looks at it: such a record is not converted.
    """
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    if not isinstance(value, list) or not value:
        raise UsageError(f"field {name} must be a text or a list of messages, not {shown(value)}")
    return [_message(each, f"{name}[{at}]") for at, each in enumerate(value)]


def _message(value: Any, name: str) -> dict[str, str]:
    match value:
        case {"role": str(role), "content": str(content)}:
            return {"role": role, "content": content}
        case {"role": str(role), "content": list(parts)}:
            return {"role": role, "content": "\n".join(_parts(parts, name))}
        case {"type": str(kind)} if kind != "message":
            raise NotConverted(f"a conversation with {kind}")
    raise UsageError(f'field {name} must be {{"role": ..., "content": ...}}, not {shown(value)}')


def _parts(parts: list[Any], name: str) -> Iterator[str]:
    for part in parts:
        match part:
            case {"type": "text" | "input_text" | "output_text", "text": str(text)}:
                yield text
            case {"type": str(kind)}:
                raise NotConverted(f"a message with {kind}")
            case _:
                raise UsageError(f"field {name}: a part of a message cannot be {shown(part)}")
