"""Verify with the function of a plugin: checks whose kind another package adds.

The function takes the problem and a candidate's text and returns True, False, a verdict or a
finding. It runs in a thread, with the user's rights; the text is only data to it.
"""

from __future__ import annotations

import inspect
import time
from dataclasses import dataclass, replace
from typing import ClassVar

from ...core.errors import UsageError
from ...own_code import Code
from ...text import checksum
from ..callables import check_signature, finding_of
from ..protocols import Finding, Problem, Usage
from .checks import TextCheck


@dataclass(frozen=True)
class PluginCheck(TextCheck):
    """Asks the function of a plugin about a candidate's text."""

    judged_by: ClassVar[int] = 0

    code: Code
    problem: Problem

    @classmethod
    def of(cls, code: Code, problem: Problem) -> PluginCheck:
        """The check of a problem; a UsageError if the plugin is no function for it."""
        if not callable(code.value) or inspect.iscoroutinefunction(code.value):
            raise UsageError(f"{code.name}: a check must be a plain function, not async")
        check_signature(code.value, ("problem", "text"), code.name)
        return cls(code, problem)

    def compare(self, text: str) -> Finding:
        """The finding on a candidate's text."""
        started = time.monotonic()
        try:
            said = self.code.value(self.problem, text)
        except (Exception, SystemExit) as error:
            said = error
        finding = finding_of(said)
        if finding.usage == Usage():
            finding = replace(finding, usage=Usage(seconds=time.monotonic() - started))
        return finding

    def content(self) -> str:
        """A checksum of the package's name and version: another one may judge otherwise."""
        return checksum(self.code.digest)
