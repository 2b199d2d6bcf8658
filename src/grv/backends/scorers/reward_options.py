"""What a reward model reads, and what it returns."""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from ...core.errors import UsageError
from ...options import Family, option
from ..protocols import Problem


class Split(enum.StrEnum):
    """Where the steps of a candidate end, for a process reward model."""

    PARAGRAPHS = "paragraphs"
    PARAGRAPHS_OR_LINES = "paragraphs-or-lines"


@dataclass(frozen=True)
class Reward(Family):
    """What a reward model reads, and what it returns. The names begin as those of `Models`.

    Examples:
        >>> import grv
        >>> grv.scorers.RewardOptions(score_system="You are a strict judge.").score_system
        'You are a strict judge.'
    """

    TITLE: ClassVar[str] = "Reward models"

    score_system: str = option(
        "", "The system message before the problem, for a reward model that reads messages."
    )
    score_question: bool = option(
        False,
        "Show a reward model the bare question of a problem instead of the prompt for the"
        " generator.",
    )
    score_split: Split = option(
        Split.PARAGRAPHS,
        "Where --score-step adds its token: after each paragraph; or after each line of a candidate"
        " that has only one paragraph.",
    )
    score_raw: bool = option(
        False, "Ask a reward model for its output without the final activation: logits."
    )
    score_tokens: int | None = option(
        None,
        "The most tokens that a reward model reads; the server cuts off the rest at the end.",
        least=1,
        most=1 << 40,
    )

    def changed(self) -> dict[str, Any]:
        """The options that differ from their defaults, as plain data."""
        default = Reward()
        return {
            name: str(value) if isinstance(value, enum.Enum) else value
            for name, value in dataclasses.asdict(self).items()
            if value != getattr(default, name)
        }

    def asked(self, problem: Problem) -> str:
        """What the model is told about the problem; a UsageError if the problem does not say it."""
        if self.score_question and not problem.question:
            raise UsageError(
                f"--score-question: problem {problem.id!r} has no question; write the file of"
                " problems again with grv problems, or add the field"
            )
        return problem.question if self.score_question else problem.prompt

    def messages(self, problem: Problem) -> list[Mapping[str, Any]]:
        """The same as messages: those of the problem, if it is a chat."""
        if problem.messages and not self.score_question:
            start = problem.messages[0].get("role") == "system" and bool(self.score_system)
            return [*problem.messages[start:]]
        return [{"role": "user", "content": self.asked(problem)}]

    def request(self) -> dict[str, Any]:
        """The fields of a request, by vLLM's names."""
        fields: dict[str, Any] = {"use_activation": False} if self.score_raw else {}
        if self.score_tokens is not None:
            fields |= {"truncate_prompt_tokens": self.score_tokens, "truncation_side": "right"}
        return fields

    def steps(self, text: str) -> list[str]:
        """The steps of a candidate, without empty ones."""
        return [step for part in _SPLITS[self.score_split](text) if (step := part.strip())]


def _or_lines(text: str) -> list[str]:
    paragraphs = [part for part in text.split("\n\n") if part.strip()]
    return paragraphs if len(paragraphs) > 1 else text.split("\n")


_SPLITS: Mapping[Split, Callable[[str], list[str]]] = MappingProxyType(
    {
        Split.PARAGRAPHS: re.compile(r"\n\s*\n").split,
        Split.PARAGRAPHS_OR_LINES: _or_lines,
    }
)
