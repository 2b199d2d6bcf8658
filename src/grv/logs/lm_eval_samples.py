"""Samples of lm-evaluation-harness: the lines of its `samples_TASK_TIME.jsonl`.

A line has the responses to one document (`resps`, all of them), what one filter made of them
(`filtered_resps`), and the metrics of that. A metric labels a response only if a line has one
response: with repeats, a filter such as a majority vote has merged them before they were judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..core.errors import LogError, UsageError
from ..files import shown
from ..text import is_name

_FILE = re.compile(r"samples_(.+)_\d{4}-\d\d-\d\dT[\d.\-:]+$")
_NO_ANSWER = "[invalid]"  # what its filters give if they find nothing


def is_lm_eval(record: Mapping[str, Any]) -> bool:
    """Whether a line is one of lm-evaluation-harness."""
    return "doc_id" in record and isinstance(record.get("resps"), list)


class SampleReader:
    """Reads samples.

    Args:
        label: the metric that labels; None if there is only one.
        filter: the filter whose metrics count; None if there is only one.

    Attributes:
        notes: sentences about what the reader decided.
    """

    def __init__(self, label: str | None = None, filter: str | None = None) -> None:
        self.label = label
        self.filter = filter
        self.notes: list[str] = []
        self._filters: dict[str, None] = {}  # of this file
        self._merged = False  # whether a line of this file has several responses
        self._documents: dict[str, tuple[str, Any]] = {}  # the file and hash of each problem

    def samples(
        self, path: str, line: int, record: Mapping[str, Any]
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """The line and the fields of each response in a line."""
        name = str(record.get("filter", "none"))
        self._filters[name] = None
        if name != (self.filter or next(iter(self._filters))):
            return
        try:
            texts = _responses(record["resps"])
            problem = _problem(path, record["doc_id"])
            self._check_document(path, problem, record.get("doc_hash"))
            self._merged |= len(texts) > 1
            passed = self._label(record) if len(texts) == 1 else None
        except ValueError as error:
            raise LogError(str(error), path=path, line=line) from error
        for text, key in zip(texts, _keys(record.get("filtered_resps"), len(texts)), strict=True):
            entry = {**record, "problem": problem, "text": text, "key": key, "passed": passed}
            if self.label is not None:
                entry[self.label] = passed
            yield line, entry

    def finish(self, path: str) -> None:
        """Check what only the whole file tells."""
        filters = list(self._filters)
        merged = self._merged
        self._filters = {}
        self._merged = False
        if not filters:
            return
        if self.filter is not None and self.filter not in filters:
            raise UsageError(f"{path}: no filter {self.filter!r}; there are {', '.join(filters)}")
        if merged:
            self._note(
                "Lines with several responses have no label for each of them, only one for what a"
                f" filter made of all ({', '.join(filters)}). Add a file with labels (problem,"
                " candidate, passed)."
            )
        elif self.filter is None and len(filters) > 1:
            raise UsageError(
                f"{path}: each filter has labels of its own: choose one with --filter"
                f" ({', '.join(filters)})"
            )
        else:
            self._note(
                f"The labels are those of the filter {self.filter or filters[0]!r}: they judge what"
                " it extracted, not the whole response."
            )

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def _label(self, record: Mapping[str, Any]) -> Any:
        if self.label is not None:
            return record.get(self.label)
        metrics = record.get("metrics")
        if not isinstance(metrics, list) or len(metrics) != 1:
            names = ", ".join(map(str, metrics)) if isinstance(metrics, list) else "not listed"
            raise ValueError(f"choose the metric that labels with --passed (metrics: {names})")
        return record.get(str(metrics[0]))

    def _check_document(self, path: str, problem: str, document: Any) -> None:
        before, seen = self._documents.setdefault(problem, (path, document))
        if seen != document:
            raise ValueError(f"{problem} is another document than in {before}")


def _responses(resps: list[Any]) -> list[str]:
    """The texts of a line."""
    requests = [request for request in resps if isinstance(request, list)]
    if len(resps) > 1 or any(isinstance(each, list) for request in requests for each in request):
        raise ValueError(
            "the responses are log-likelihoods of given choices, not samples: grv compares samples"
            " of tasks that generate text (generate_until)"
        )
    texts = resps[0] if resps and isinstance(resps[0], list) else resps
    if not all(isinstance(text, str) for text in texts):
        raise ValueError(f"'resps' must have lists of texts, not {shown(resps)}")
    return list(texts)


def _problem(path: str, document: Any) -> str:
    if not is_name(document):
        raise ValueError(f"'doc_id' must be a name or a whole number, not {shown(document)}")
    match = _FILE.fullmatch(Path(path).stem)
    return f"{match[1]}/{document}" if match else str(document)


def _keys(filtered: Any, count: int) -> list[Any]:
    """What the filter extracted, if it did so from each response."""
    while isinstance(filtered, list) and len(filtered) == 1 and isinstance(filtered[0], list):
        filtered = filtered[0]
    if not isinstance(filtered, list) or len(filtered) != count:
        return [None] * count
    return [
        value if isinstance(value, str) and value != _NO_ANSWER and len(value) <= 200 else None
        for value in filtered
    ]
