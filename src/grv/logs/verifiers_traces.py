"""Traces of PrimeIntellect's verifiers: the lines of `traces.jsonl`, one for each rollout.

A line is an episode: its task, and the trace of each agent. The rollout of one agent is a
candidate, and its task is the problem. The label is a reward: a score of 1 passes, less fails. The
fields are those of verifiers 0.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..core.errors import LogError, UsageError
from ..files import is_number
from ..text import is_name


def is_episode(record: Mapping[str, Any]) -> bool:
    """Whether a line is one of verifiers."""
    return isinstance(record.get("traces"), list) and isinstance(record.get("task"), Mapping)


class TraceReader:
    """Reads rollouts of one model.

    Args:
        label: the reward that labels; None if there is only one.

    Attributes:
        notes: sentences about what the reader decided.
    """

    def __init__(self, label: str | None = None) -> None:
        self.label = label
        self.notes: list[str] = []
        self._models: dict[str, None] = {}

    def samples(
        self, path: str, line: int, record: Mapping[str, Any]
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """The line and the fields of the rollout in a line."""
        try:
            entry = self._entry(record)
        except ValueError as error:
            raise LogError(str(error), path=path, line=line) from error
        if len(self._models) > 1:
            raise UsageError(
                f"the traces are of several models ({', '.join(self._models)}): convert those of"
                " each model into a log of its own"
            )
        yield line, entry

    def _entry(self, record: Mapping[str, Any]) -> dict[str, Any]:
        traces = [trace for trace in record["traces"] if isinstance(trace, Mapping)]
        if len(traces) > 1:
            raise ValueError(f"the rollout has {len(traces)} agents; grv reads those of one agent")
        trace = traces[0] if traces else {}
        calls = _listed(trace.get("calls"))
        models = [call.get("model") for call in calls if isinstance(call, Mapping)]
        self._models |= dict.fromkeys(str(model) for model in models if model)
        rewards = trace.get("rewards")
        scores = {
            str(name): reward["score"]
            for name, reward in (rewards.items() if isinstance(rewards, Mapping) else ())
            if isinstance(reward, Mapping) and is_number(reward.get("score"))
        }
        is_whole = record.get("ok") is True and bool(trace)
        passed = self._label(scores) if is_whole else None
        metrics = trace.get("metrics")
        entry: dict[str, Any] = dict(metrics) if isinstance(metrics, Mapping) else {}
        entry |= scores
        entry |= {"problem": _problem(record["task"]), "passed": passed, "text": _reply(trace)}
        entry["verify_seconds"] = _seconds(trace)
        if self.label is not None:
            entry[self.label] = passed
        return entry

    def _label(self, scores: Mapping[str, float]) -> bool | None:
        if self.label is None and len(scores) > 1:
            raise ValueError(f"choose the reward that labels with --passed ({', '.join(scores)})")
        name = self.label or next(iter(scores), "")
        if name not in scores:
            return None
        note = f"The reward {name} labels the candidates: 1 passes, less fails."
        if note not in self.notes:
            self.notes.append(note)
        return scores[name] >= 1


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _problem(task: Mapping[str, Any]) -> str:
    """The name of a task: its key, or else its hash, or what its row says."""
    data = task.get("data")
    row = data if isinstance(data, Mapping) else {}
    for name in (task.get("key"), task.get("hash"), row.get("id"), row.get("name"), row.get("idx")):
        if is_name(name):
            return str(name)
    raise ValueError("the task has no key, hash, id or idx")


def _reply(trace: Mapping[str, Any]) -> str | None:
    """The agent's answer: the last message that the model made."""
    if isinstance(trace.get("root_reply"), str):
        return str(trace["root_reply"])
    for node in reversed(_listed(trace.get("nodes"))):
        message = node.get("message") if isinstance(node, Mapping) else None
        if isinstance(message, Mapping) and message.get("role") == "assistant":
            content = message.get("content")
            return content if isinstance(content, str) else None
    return None


def _seconds(trace: Mapping[str, Any]) -> float | None:
    """How long the rewards took; None if it is unknown."""
    timing = trace.get("timing")
    span = timing.get("scoring") if isinstance(timing, Mapping) else None
    if not isinstance(span, Mapping):
        return None
    start = span.get("start")
    end = span.get("end")
    if not is_number(start) or not is_number(end) or not end > start:
        return None
    return float(end - start)
