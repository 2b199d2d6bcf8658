"""Problems from a file: JSON lines with `problem`, `prompt` and `check`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ...core.errors import UsageError
from ..protocols import Problem


def read_problems(path: str) -> Iterator[Problem]:
    """The problems of a file, each once; a mistake is named with its line."""
    seen: dict[str, int] = {}
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    problem = _problem(f"{path}:{number}", line)
                    if problem.id in seen:
                        raise UsageError(
                            f"{path}:{number}: problem {problem.id!r} is also on line"
                            f" {seen[problem.id]}"
                        )
                    seen[problem.id] = number
                    yield problem
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    if not seen:
        raise UsageError(f"{path}: there are no problems in this file")


def _problem(place: str, line: bytes) -> Problem:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{place}: not a line of JSON") from error
    if not isinstance(record, dict):
        raise UsageError(f"{place}: a problem is an object with problem, prompt and check")
    name, prompt, check = (record.get(field) for field in ("problem", "prompt", "check"))
    if isinstance(name, bool) or not isinstance(name, str | int) or name == "":
        raise UsageError(f"{place}: 'problem' must be a name, not {_shown(name)}")
    if not isinstance(prompt, str):
        raise UsageError(f"{place}: 'prompt' must be text, not {_shown(prompt)}")
    if not isinstance(check, dict):
        raise UsageError(f"{place}: 'check' must be an object, not {_shown(check)}")
    return Problem(str(name), prompt, check)


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
