"""Predictions of SWE-bench, and the reports of its harness, as candidates of a log; and back.

A file of predictions has one patch per instance, without a label. The report of a run of the
harness says which instances it resolved. The first report labels the first file of predictions,
and so on: with several files, an instance has several candidates.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..backends.verifiers.repo.diff_lines import UnreadableDiff
from ..backends.verifiers.repo.diffs import diff_in
from ..core.errors import LogError, UsageError
from ..files import json_lines, parse_json, replacing, shown

_LABELS = {"resolved_ids": True, "unresolved_ids": False, "empty_patch_ids": False}
_LARGEST = 1 << 30


def is_prediction(record: Mapping[str, Any]) -> bool:
    """Whether a row is a prediction of SWE-bench."""
    return "model_patch" in record and "instance_id" in record


def prediction(record: Mapping[str, Any]) -> dict[str, Any]:
    """A prediction with the fields of a log."""
    patch = record["model_patch"]
    return {**record, "problem": record["instance_id"], "text": patch if patch is not None else ""}


def is_report(path: str) -> bool:
    """Whether a file is a report of the harness."""
    return (
        path.endswith(".json")
        and isinstance(_content(path), dict)
        and "resolved_ids" in _content(path)
    )


def labels(path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The labels of a report; instances that ended with an error have none."""
    report = _content(path)
    for name, passed in _LABELS.items():
        listed = report.get(name) or []
        if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
            raise LogError(f"{name} must be a list of instances, not {shown(listed)}", path=path)
        for instance in listed:
            yield 1, {"problem": instance, "passed": passed}


def is_collection(path: str) -> bool:
    """Whether a file is a JSON list or map of predictions, as the harness also takes them."""
    if not path.endswith(".json"):
        return False
    content = _content(path)
    rows = list(content.values()) if isinstance(content, dict) else content
    return (
        isinstance(rows, list)
        and bool(rows)
        and all(isinstance(row, dict) and is_prediction(row) for row in rows)
    )


def collected(path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The predictions of such a file."""
    content = _content(path)
    rows = list(content.values()) if isinstance(content, dict) else content
    for number, row in enumerate(rows, 1):
        yield number, prediction(row)


def _content(path: str) -> Any:
    try:
        with open(path, "rb") as file:
            return parse_json(file.read(_LARGEST))
    except (OSError, ValueError):
        return None


@dataclass
class Written:
    """What became predictions, and the problems that did not, by reason."""

    count: int = 0
    left_out: dict[str, list[str]] = field(default_factory=dict)


def write_predictions(paths: Sequence[str], out: str, model: str) -> Written:
    """Write the verified answers of grv as predictions of a model.

    Raises:
        UsageError: there is none.
    """
    written = Written()
    with replacing(out) as temporary, temporary.open("w", encoding="utf-8") as file:
        for path in paths:
            for line, record in json_lines(path):
                name = record.get("problem")
                if not isinstance(name, str) or "answer" not in record:
                    said = "no answer of grv solve: it needs the fields problem and answer"
                    raise LogError(said, path=path, line=line)
                reason = _why_not(record)
                if reason:
                    written.left_out.setdefault(reason, []).append(name)
                    continue
                row = {
                    "instance_id": name,
                    "model_name_or_path": model,
                    "model_patch": diff_in(record["answer"]),
                }
                file.write(json.dumps(row) + "\n")
                written.count += 1
        if not written.count:
            reasons = "; ".join(written.left_out) or "the files are empty"
            raise UsageError(f"no answer can be written as a prediction: {reasons}")
    return written


def _why_not(record: Mapping[str, Any]) -> str:
    if not record.get("answer_verified"):
        return "no verified answer"
    try:
        diff_in(str(record["answer"]))
    except UnreadableDiff:
        return "an answer that is no diff"
    return ""
