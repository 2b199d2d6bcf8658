"""Findings on programs that did not answer, or answered badly.

A candidate's answer is never trusted. Whatever its shape, size or encoding, it can only fail the
candidate that sent it.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Any

from ....core.values import Verdict
from ...protocols import Finding
from ...sandbox.limits import End
from ...sandbox.run import Run

_LONGEST = 1000  # characters of one piece of evidence


def failed(reason: str, **evidence: Any) -> Finding:
    """A failure with its evidence."""
    return Finding(Verdict.FAILED, reason, evidence)


def raised(message: Mapping[str, Any], **evidence: Any) -> Finding:
    """The finding on a program that raised, from its own report."""
    names, said, line = (message.get(name) for name in ("raised", "message", "line"))
    listed = names[:50] if isinstance(names, list) else []
    kinds = [name[:100] for name in listed if isinstance(name, str)]
    text = f"{kinds[0] if kinds else 'exception'}: {said[:300] if isinstance(said, str) else ''}"
    is_line = type(line) is int and abs(line) < 1 << 31
    shown = {"exception": text} | ({"line": line} if is_line else {}) | evidence
    if "MemoryError" in kinds:
        return Finding(Verdict.FAILED, "memory", shown)
    compiled = message.get("compiled", True)
    return Finding(Verdict.FAILED, "exception" if compiled else "syntax error", shown)


def refused(answer: Mapping[str, Any], **evidence: Any) -> Finding:
    """The finding on a program whose answer could not be sent."""
    large = answer["refused"] == "too large"
    return failed("output limit" if large else "malformed answer", **evidence)


def silent(run: Run, end: End, seconds: float, **evidence: Any) -> Finding:
    """The finding on a program without an answer; broken if the program is not the cause."""
    match end:
        case End.STARVED:
            return Finding(Verdict.BROKEN, end.value, evidence)
        case End.TIMEOUT:
            return failed("timeout", seconds=seconds, **run.clock.used(), **evidence)
        case End.TOO_LARGE:
            return failed("output limit", **evidence)
        case End.MALFORMED:
            return failed("malformed answer", **evidence)
    ended = run.wait(0.5)
    if ended is not None and ended.cause == "stopped":
        return Finding(Verdict.BROKEN, "called off")
    ended = ended or run.end()  # it still runs, but will not answer
    if run.out_of_cpu:
        return failed("timeout", cpu_seconds=round(ended.cpu_seconds, 2), **evidence)
    if ended.cause == "memory":
        return failed("memory", **evidence)
    if ended.cause in ("threads", "files"):
        return failed(f"too many {ended.cause}", **evidence)
    if ended.signal and not ended.cause:
        return failed("crash", signal=signal_name(ended.signal), **evidence)
    return failed("no answer", exit_code=ended.exit_code, **evidence)


def signal_name(number: int) -> str:
    """The name of a signal; most real-time signals only have a number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def clean(evidence: Any) -> Any:
    """Evidence that every file and database can store: of limited size, valid UTF-8."""
    match evidence:
        case str():
            cut = evidence[:_LONGEST]
            return cut.encode("utf-8", "backslashreplace").decode("utf-8")
        case None | bool() | int() | float():
            return evidence
        case list() | tuple():
            return [clean(item) for item in evidence[:_LONGEST]]
        case Mapping():
            return {clean(str(name)): clean(value) for name, value in evidence.items()}
    return clean(str(evidence))
