"""Details of lighteval: the rows of its `details_TASK_TIME.parquet`.

A row has one document (`doc`), the model's response with all its texts (`model_response`), and the
metrics of both (`metric`). A metric labels a text only if a row has one text: with several samples
it sums them up. The fields are those of lighteval 0.13.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..core.errors import LogError
from ..text import is_name

_PARTS = ("doc", "model_response", "metric")


def is_detail(record: Mapping[str, Any]) -> bool:
    """Whether a row is one of lighteval."""
    return all(isinstance(record.get(name), Mapping) for name in _PARTS)


class DetailReader:
    """Reads details.

    Args:
        label: the metric that labels; None if there is only one.

    Attributes:
        notes: sentences about what the reader decided.
    """

    def __init__(self, label: str | None = None) -> None:
        self.label = label
        self.notes: list[str] = []

    def samples(
        self, path: str, line: int, record: Mapping[str, Any]
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """The line and the fields of each text in a row."""
        doc = record["doc"]
        metrics = {name: each for name, each in record["metric"].items() if each is not None}
        texts = record["model_response"].get("text")
        try:
            if not isinstance(texts, list) or not texts:
                raise ValueError(
                    "the row has no text: grv compares samples of tasks that generate text, not"
                    " log-likelihoods of given choices"
                )
            problem = _problem(doc)
            passed = self._label(metrics) if len(texts) == 1 else None
        except ValueError as error:
            raise LogError(str(error), path=path, line=line) from error
        if len(texts) > 1:
            self._note(
                "Rows with several texts have no label for each of them, only metrics of all. Add a"
                " file with labels (problem, candidate, passed)."
            )
        for text in texts:
            entry = {**metrics, "problem": problem, "text": text, "passed": passed}
            if self.label is not None:
                entry[self.label] = passed
            yield line, entry

    def _label(self, metrics: Mapping[str, Any]) -> Any:
        if self.label is None and len(metrics) != 1:
            names = ", ".join(map(str, metrics)) or "none"
            raise ValueError(f"choose the metric that labels with --passed (metrics: {names})")
        name = self.label or next(iter(metrics))
        self._note(f"The metric {name} labels the candidates.")
        return metrics.get(name)

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def _problem(doc: Mapping[str, Any]) -> str:
    name = doc.get("id")
    if not is_name(name) or name == "":
        raise ValueError("the document has no id")
    task = doc.get("task_name")
    return f"{task}/{name}" if isinstance(task, str) and task else str(name)
