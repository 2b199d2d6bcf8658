"""Jobs of Harbor: a folder for each job, and in it a folder for each trial with its `result.json`.

A trial is a candidate, and its task is the problem. The label is a reward of the verifier: 1
passes, less fails. `generate_cost` is what the agent cost, in dollars, as its provider or Harbor
says, and `verify_seconds` how long the verifier ran. Harbor's fields are those of version 0.25.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from ..core.errors import LogError, UsageError
from ..files import is_number, parse_json, shown

_RESULT = "result.json"
_STARTED = "trial.log"  # a trial that has this file and no result has not ended
_LARGEST = 256 << 20  # bytes of one result: it may contain every token of the agent
_DEEPEST = 2  # folders between the given one and a trial


class JobReader:
    """Reads jobs of one agent and model.

    Args:
        label: the reward that labels; None if there is only one, or one that is called `reward`.
        hour: dollars per hour of the machine that ran the verifier; None if it is unknown.

    Attributes:
        notes: sentences about what the reader decided.
    """

    def __init__(self, label: str | None = None, hour: float | None = None) -> None:
        self.label = label
        self.hour = hour
        self.notes: list[str] = []
        self._read: dict[str, list[tuple[int, dict[str, Any]]]] = {}
        self._agents: dict[str, Path] = {}
        self._checksums: dict[str, tuple[str, Path]] = {}

    def trials(self, path: str) -> list[tuple[int, dict[str, Any]]]:
        """The number and the fields of each trial of a folder, in the order of their starts."""
        if path not in self._read:
            self._read[path] = list(enumerate(self._entries(path), 1))
        return self._read[path]

    def _entries(self, path: str) -> list[dict[str, Any]]:
        found: list[tuple[str, str, dict[str, Any]]] = []
        unfinished = 0
        for place in _trials(Path(path)):
            if not (place / _RESULT).exists():
                unfinished += 1
                continue
            result = _result(place / _RESULT)
            if result is None:
                continue
            entry = self._entry(place / _RESULT, result)
            found.append((str(result.get("started_at") or ""), str(place), entry))
        if not found:
            message = "no trials of Harbor: no folder with a result.json that has a trial_name"
            raise LogError(message, path=path)
        entries = [entry for _, _, entry in sorted(found, key=lambda each: each[:2])]
        self._tell(path, entries, unfinished)
        return entries

    def _entry(self, place: Path, result: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a trial."""
        problem = result.get("task_name")
        if not isinstance(problem, str) or not problem:
            raise LogError(f"task_name must be a text, not {shown(problem)}", path=str(place))
        self._check_agent(place, result)
        self._check_task(place, problem, str(result.get("task_checksum")))
        steps = _steps(result)
        contexts = [step.get("agent_result") for step in steps]
        agent_seconds = _total([_seconds(step.get("agent_execution")) for step in steps])
        verify_seconds = _total([_seconds(step.get("verifier")) for step in steps])
        tokens = _total([_number(context, "n_output_tokens") for context in contexts])
        entry: dict[str, Any] = {
            "problem": problem,
            "passed": self._label(place, result),
            "score_tokens": None if tokens is None else -tokens,
            "score_seconds": None if agent_seconds is None else -agent_seconds,
            "generate_cost": _total([_number(context, "cost_usd") for context in contexts]),
            "verify_seconds": verify_seconds,
        }
        if self.label is not None:
            entry[self.label] = entry["passed"]
        if self.hour is not None and verify_seconds is not None:
            entry["verify_cost"] = verify_seconds * self.hour / 3600
        return entry

    def _check_agent(self, place: Path, result: Mapping[str, Any]) -> None:
        info = _record(result.get("agent_info"))
        model = _record(info.get("model_info")).get("name")
        name = "/".join(str(part) for part in (info.get("name"), model) if part)
        self._agents.setdefault(name or "unknown", place)
        if len(self._agents) > 1:
            raise UsageError(
                f"the trials are of several agents or models ({', '.join(self._agents)}): convert"
                " the jobs of each into a log of its own"
            )

    def _check_task(self, place: Path, problem: str, checksum: str) -> None:
        known, where = self._checksums.setdefault(problem, (checksum, place))
        if known != checksum:
            raise LogError(
                f"the task {problem!r} is another one than in {where}: convert the jobs apart",
                path=str(place),
            )

    def _label(self, place: Path, result: Mapping[str, Any]) -> bool | None:
        """Whether the trial has passed; None without a reward."""
        rewards = _record(_record(result.get("verifier_result")).get("rewards"))
        if not rewards:
            return None
        name = self.label or ("reward" if "reward" in rewards else "")
        if not name and len(rewards) == 1:
            name = next(iter(rewards))
        if name not in rewards:
            there = ", ".join(map(str, rewards))
            raise UsageError(f"{place}: the rewards are {there}: choose one with --passed")
        reward = rewards[name]
        if not is_number(reward):
            raise LogError(f"a reward must be a number, not {shown(reward)}", path=str(place))
        return bool(reward >= 1)

    def _tell(self, path: str, entries: list[dict[str, Any]], unfinished: int) -> None:
        unlabelled = sum(entry["passed"] is None for entry in entries)
        unpriced = sum(entry["generate_cost"] is None for entry in entries)
        notes = []
        if unfinished:
            notes.append(f"{unfinished} trials have not ended and are left out.")
        if unlabelled:
            notes.append(f"{unlabelled} trials have no reward, and so no label.")
        if unpriced:
            notes.append(f"{unpriced} trials do not say what they cost.")
        if self.hour is None:
            notes.append("verify_cost is unknown: give the price of an hour, as in --hour 0.2.")
        self.notes += [f"{path}: {note}" for note in notes]


def _trials(folder: Path) -> Iterator[Path]:
    """The folders of trials. Links are not followed."""
    for place, names, files in os.walk(folder, followlinks=False):
        depth = len(Path(place).relative_to(folder).parts)
        names[:] = sorted(names) if depth < _DEEPEST else []
        if _RESULT in files or _STARTED in files:
            yield Path(place)


def _result(path: Path) -> dict[str, Any] | None:
    """What a file says about a trial; None if it is about a job."""
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _LARGEST:
            message = f"not a file of at most {_LARGEST >> 20} MB"
            raise LogError(message, path=str(path))
        data = parse_json(path.read_bytes().decode("utf-8"), finite=True)
    except (OSError, ValueError) as error:
        raise LogError(f"not readable as JSON: {error}", path=str(path)) from error
    if not isinstance(data, dict) or "trial_name" not in data:
        return None
    return data


def _steps(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The parts of a trial that have results: its steps, or the trial itself."""
    steps = result.get("step_results")
    if _record(result.get("agent_result")) or not isinstance(steps, list) or not steps:
        return [result]
    return [_record(step) for step in steps]


def _record(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _number(record: Any, name: str) -> float | None:
    value = _record(record).get(name)
    return float(value) if is_number(value) and value >= 0 else None


def _total(amounts: list[float | None]) -> float | None:
    """The sum of what is known; None if nothing is."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known else None


def _seconds(timing: Any) -> float | None:
    """How long a phase took; None if it has not ended."""
    times = [_record(timing).get(name) for name in ("started_at", "finished_at")]
    try:
        start, end = (datetime.fromisoformat(str(each)) for each in times)
        return max(0.0, (end - start).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return None
