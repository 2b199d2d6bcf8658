r"""Prompts from a file: templates with examples, and the texts that end a candidate.

```toml
stop = ["\nProblem:"]
prompt = '''Problem: What is 1 + 1?
Solution: 2

Problem: {question}
Solution:'''
```

Instead of `prompt`, a table `[prompts]` may have a template for each kind of check.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...core.errors import UsageError
from ...files import read_toml, shown
from ..protocols import Problem

_NAMES = {"stop", "prompt", "prompts"}


@dataclass(frozen=True)
class Prompts:
    """Templates with {question} and {code}, and the texts that end a candidate.

    Attributes:
        path: the file.
        templates: by kind of check; "" is for every other kind.
        stop: the texts that end a candidate.
    """

    path: str
    templates: Mapping[str, str]
    stop: tuple[str, ...] = ()

    @classmethod
    def load(cls, path: str) -> Prompts:
        """Read a file; a UsageError says what is wrong with it."""
        table = read_toml(path)
        if unknown := sorted(table.keys() - _NAMES):
            raise UsageError(f"{path}: unknown {', '.join(unknown)}; there are stop and prompt")
        by_kind: Any = table.get("prompts", {})
        if not isinstance(by_kind, dict):
            raise UsageError(f"{path}: prompts must be a table, [prompts]")
        templates = dict(by_kind) | ({"": table["prompt"]} if "prompt" in table else {})
        for template in templates.values():
            if not isinstance(template, str) or "{question}" not in template:
                raise UsageError(f"{path}: a prompt is text with {{question}} in it")
        if not templates:
            raise UsageError(f"{path}: there is no prompt")
        stop: Any = table.get("stop", [])
        if not isinstance(stop, list) or not all(isinstance(s, str) and s for s in stop):
            raise UsageError(f"{path}: stop must be a list of texts, not {shown(stop)}")
        return cls(path, templates, tuple(stop))

    def of(self, problem: Problem) -> Problem:
        """The problem with its prompt from the template."""
        kind = str(problem.check.get("kind", ""))
        template = self.templates.get(kind, self.templates.get(""))
        if template is None:
            there = ", ".join(self.templates)
            raise UsageError(
                f"{self.path}: no prompt for problem {problem.id!r}, whose check is {kind!r};"
                f" there are {there}"
            )
        if not problem.question:
            raise UsageError(
                f"{self.path}: problem {problem.id!r} has no question; write the file of problems"
                " again with grv problems, or add the field"
            )
        prompt = filled(template, problem.question, problem.code)
        return dataclasses.replace(problem, prompt=prompt, messages=())


def filled(template: str, question: str, code: str = "") -> str:
    """The template with the problem in it. Braces in the problem are not replaced."""
    before, mark, after = template.partition("{question}")
    return (
        before.replace("{code}", code) + (question if mark else "") + after.replace("{code}", code)
    )
