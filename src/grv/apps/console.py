"""What the commands share: reading options, showing progress."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import typer

from ..core.errors import UsageError
from ..core.values import Cascade, Costs, Latency, Measured
from ..files import check_writable
from ..text import visible

_LEAST, _MOST = 1e-100, 1e100  # sums of such costs are still numbers
MOST = 1_000_000  # of anything that is counted: more would never end, or not fit
_UNBOUNDED = ("--seed",)


MEASURED = "measured"


def parse_prices(text: str) -> Costs:
    """The price list that `G,V` stands for, or `measured:G,V`, a first guess."""
    name, _, guess = text.partition(":")
    if name != MEASURED:
        return parse_costs(text)
    costs = parse_costs(guess, text)
    return Measured(costs.generate, costs.verify)


def parse_costs(text: str, given: str | None = None, option: str = "--costs") -> Costs:
    """The price list that `G,V` stands for, which may be part of what was `given`."""
    given = f"{option} {text if given is None else given}"
    generate, verify = _pair(
        f"{given}: give two numbers, the cost to generate and to verify, as in 1,10", text
    )
    try:
        costs = Costs(generate, verify)
    except UsageError as error:
        raise UsageError(f"{given}: {error}") from error
    if not all(_LEAST <= cost <= _MOST for cost in (generate, verify)):
        raise UsageError(f"{given}: give costs from {_LEAST:g} to {_MOST:g}")
    return costs


def parse_latency(text: str) -> Latency:
    """The seconds that rounds take, which `G,V` or, with second scores, `G,V,S` stands for."""
    try:
        seconds = [float(part) for part in text.split(",")]
    except ValueError:
        seconds = []
    if len(seconds) not in (2, 3):
        raise UsageError(
            f"--latency {text}: give two numbers, the seconds that a batch generated and a round of"
            " verification take, as in 20,60; or three, the last for a round of second scores"
        )
    try:
        return Latency(*seconds)
    except UsageError as error:
        raise UsageError(f"--latency {text}: {error}") from error


def _pair(complaint: str, text: str) -> tuple[float, float]:
    """Two numbers apart by a comma."""
    try:
        first, second = (float(part) for part in text.split(","))
    except ValueError as error:
        raise UsageError(complaint) from error
    return first, second


def parse_value(text: str) -> float:
    """What an answer is worth."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not value >= 0:
        raise UsageError(
            f"--value {text}: give what a solved problem is worth, in the unit of the costs,"
            " not negative"
        )
    return value


_CASCADE = re.compile(r"\s*cascade\s*\((.*)\)\s*", re.DOTALL)


def parse_cascade(text: str | None) -> tuple[str, str, Cascade] | None:
    """The two scores and the rule of `cascade(first, second, top=4, cost=0.5)`; None if it is none.

    >>> parse_cascade("cascade(logprob, judge:m, top=4)")
    ('logprob', 'judge:m', Cascade(top=4, cost=0.0))
    """
    match = _CASCADE.fullmatch(text or "")
    if match is None:
        return None
    parts = [part.strip() for part in match[1].split(",")]
    named = dict(part.replace(" ", "").split("=", 1) for part in parts[2:] if "=" in part)
    wrong = f"--score {text}: write cascade(first, second, top=4, cost=0.5)"
    try:
        top, cost = int(named.pop("top")), float(named.pop("cost", "0"))
    except (KeyError, ValueError) as error:
        raise UsageError(wrong) from error
    if named or not all(parts[:2]) or not all("=" in part for part in parts[2:]):
        raise UsageError(wrong)
    try:
        return parts[0], parts[1], Cascade(top, cost)
    except UsageError as error:
        raise UsageError(f"--score {text}: {error}") from error


def parse_width(text: str) -> int | None:
    """How many verifications are in flight at once; None for `all`."""
    if text == "all":
        return None
    try:
        return parse_whole("--width", text)
    except UsageError as error:
        raise UsageError(f"{error}, or all") from error


def parse_whole(option: str, text: str, least: int = 1, most: int | None = None) -> int:
    """The whole number that an option was given."""
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least or (most is not None and number > most):
        limit = "on" if most is None else f"to {most}"
        raise UsageError(f"{option} {text}: give a whole number from {least} {limit}")
    if option not in _UNBOUNDED and number > MOST:
        raise UsageError(f"{option} {text}: give at most {MOST:,}")
    return number


def choice(option: str, text: str, allowed: Sequence[str]) -> str:
    """The text, if it is one of those allowed."""
    if text not in allowed:
        raise UsageError(f"{option} {text}: give one of {', '.join(allowed)}")
    return text


def check_outputs(
    outputs: Sequence[str | None],
    inputs: Sequence[str | None],
    specs: Sequence[str | None] = (),
) -> None:
    """Refuse, before any work, to write where one cannot, or over what is being read.

    Args:
        outputs: the files that will be replaced.
        inputs: the files that are read.
        specs: of policies and scores, which may name files too: learned('prior.json').
    """
    used = {os.path.realpath(path) for path in [*inputs, *_named(specs)] if path is not None}
    for path in outputs:
        if path is None:
            continue
        if "\0" in path:
            raise UsageError(f"{path!r}: no file can have this name")
        check_writable(path)
        if os.path.exists(path) and not os.path.isfile(path):
            continue  # a terminal or a pipe takes it all
        if os.path.realpath(path) in used:
            raise UsageError(f"{path}: given twice; it would be overwritten")
        used.add(os.path.realpath(path))


def _named(specs: Sequence[str | None]) -> list[str]:
    """The files that specifications name: quoted, or as a whole."""
    given = [spec for spec in specs if spec]
    return given + [path for spec in given for path in re.findall(r"""['"]([^'"]+)['"]""", spec)]


def say(*lines: str, err: bool = False) -> None:
    """Print lines, each as one line: what others wrote cannot move the cursor or fake a line."""
    stream = sys.stderr if err else sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    for line in lines:
        shown = visible(line).encode(encoding, "backslashreplace").decode(encoding)
        typer.echo(shown, err=err)


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on the terminal's error stream, gone when the work is done; silent elsewhere."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(escape(visible(what)), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def status(what: str) -> Iterator[Callable[[str], None]]:
    """A line on the terminal's error stream that says how far it is; silent elsewhere."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status(what) as line:
        yield lambda text: line.update(escape(visible(f"{what}: {text}")))


def parse_number(option: str, text: str, *, least: float, most: float = math.inf) -> float:
    """The number that an option was given."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not least <= number <= most:
        limit = "on" if most == math.inf else f"to {most:g}"
        raise UsageError(f"{option} {text}: give a number from {least:g} {limit}")
    return number


def listed(names: Sequence[str], most: int = 12) -> str:
    """Names apart by commas, the rest counted."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
