"""What the commands share: reading options, showing progress."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ..core.errors import UsageError
from ..core.values import Costs


def parse_costs(text: str) -> Costs:
    """The price list that `G,V` stands for."""
    parts = text.split(",")
    try:
        generate, verify = (float(part) for part in parts)
    except ValueError as error:
        raise UsageError(
            f"--costs {text}: give two numbers, the cost to generate and to verify, as in 1,10"
        ) from error
    return Costs(generate, verify)


def parse_width(text: str) -> int | None:
    """How many verifications are in flight at once; None for `all`."""
    if text == "all":
        return None
    try:
        width = int(text)
    except ValueError:
        width = 0
    if width < 1:
        raise UsageError(f"--width {text}: give a whole number from 1 on, or all")
    return width


def choice(option: str, text: str, allowed: Sequence[str]) -> str:
    """The text, if it is one of those allowed."""
    if text not in allowed:
        raise UsageError(f"{option} {text}: give one of {', '.join(allowed)}")
    return text


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on the terminal's error stream, gone when the work is done; silent elsewhere."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def listed(names: Sequence[str], most: int = 12) -> str:
    """Names apart by commas, the rest counted."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
