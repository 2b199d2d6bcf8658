"""A part of a report, and the names that every file in `parts` needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from ..comparing.comparison import Comparison
from .dataset import Dataset
from .request import price_name
from .rows import RowCollector
from .schema import TableSchema

__all__ = ["Dataset", "Part", "Question", "RowCollector", "TableSchema", "price_name"]

Question = Literal["costs", "score", "advice", "time"]

QUESTIONS: dict[Question, str] = {
    "costs": "What it costs",
    "score": "Is the score any good?",
    "advice": "What should I buy?",
    "time": "Time and unsolved problems",
}


@dataclass(frozen=True)
class Part:
    """One table, or a few that are computed together.

    Attributes:
        question: the question of the page that the part answers.
        tables: in the order of the page.
        of_comparison: adds the rows of a comparison under the name of its log. A part without this
            function needs the candidates of a log, which a saved comparison does not have.
        of_log: adds the rows of a log.
        of_logs: adds the rows that relate several logs to each other.
        needs_pass: whether a log without any candidate that passes has nothing to show.
        stages: how many stages of progress `of_log` reports.
    """

    question: Question
    tables: tuple[TableSchema, ...]
    of_comparison: Callable[[RowCollector, str, Comparison], None] | None = None
    of_log: Callable[[RowCollector, Dataset], None] | None = None
    of_logs: Callable[[RowCollector, Sequence[Dataset]], None] | None = None
    needs_pass: bool = True
    stages: int = 0

    @property
    def describes_score(self) -> bool:
        """Whether the tables relate scores to verdicts, without any policy."""
        return self.question == "score" and not self.needs_pass
