"""What the commands share: output, progress, checks of output files."""

from __future__ import annotations

import getpass
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, TextIO

import typer

from ..core.errors import UsageError
from ..files import check_writable
from ..own_code import named_in
from ..text import visible

if TYPE_CHECKING:
    from rich.progress import Progress

    from ..runtime.calls import Caller


def user_name() -> str:
    """The login name of the user; in a container, a user may have a number only."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid-{os.getuid()}"


def check_outputs(
    outputs: Sequence[str | None],
    inputs: Sequence[str | None],
    specs: Sequence[str | None] = (),
    *,
    continued: bool = False,
) -> None:
    """Refuse, before any work, outputs that cannot be written or that would overwrite an input.

    Args:
        outputs: the files to write.
        inputs: the files to read.
        specs: policies and scores, which may name files too: learned('prior.json').
        continued: whether the outputs go on with files of the same kind. They may be links, because
            files of another kind are refused.
    """
    used = {os.path.realpath(path) for path in [*inputs, *_named(specs)] if path is not None}
    for path in outputs:
        if path is None:
            continue
        if "\0" in path:
            raise UsageError(f"{path!r}: no file can have this name")
        check_writable(path, through_link=continued)
        if os.path.exists(path) and not os.path.isfile(path):
            continue  # a terminal or a pipe
        if os.path.realpath(path) in used:
            raise UsageError(f"{path}: given twice; it would be overwritten: choose another name")
        used.add(os.path.realpath(path))


def _named(specs: Sequence[str | None]) -> list[str]:
    """The files that specifications name: in quotes, or as the whole text."""
    filled = [spec for spec in specs if spec]
    code = [file for spec in filled for file, _ in named_in(spec)]
    quoted = [path for spec in filled for path in re.findall(r"""['"]([^'"]+)['"]""", spec)]
    return filled + code + quoted


def say(*lines: str, err: bool = False) -> None:
    """Print lines. Control characters are escaped, so that no text can move the cursor."""
    for line in lines:
        _print(line, err=err)


def _print(line: str, *, err: bool = False, styled: Callable[[str], str] | None = None) -> None:
    stream = sys.stderr if err else sys.stdout
    shown = _shown(line, stream)
    # `typer.echo` would write into a progress bar
    print(shown if styled is None or not _in_colour() else styled(shown), file=stream, flush=True)


def _shown(line: str, stream: TextIO) -> str:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return visible(line).encode(encoding, "backslashreplace").decode(encoding)


# How an outcome or a verdict looks in a table: as arguments of `typer.style`.
COLOURS = {
    **dict.fromkeys(("solved", "passed"), "green"),
    **dict.fromkeys(
        ("judged", "unfinished", "out of budget", "finished", "exhausted", "broken"), "yellow"
    ),
    "failed": "red",
}
_OUTCOME = re.compile(rf"(?<= )({'|'.join(COLOURS)})(?= )")


def say_table(table: str) -> None:
    """Print a table. On a terminal the head is bold and outcomes have a colour."""
    head, *rows = table.split("\n")
    say_head(head)
    say_rows(*rows)


def say_head(head: str) -> None:
    """Print the head of a table."""
    _print(head, styled=partial(typer.style, bold=True))


def say_rows(*rows: str) -> None:
    """Print rows of a table."""
    for row in rows:
        _print(row, styled=_coloured)


def _coloured(row: str) -> str:
    return _OUTCOME.sub(lambda found: typer.style(found[1], COLOURS[found[1]]), row, count=1)


def _in_colour() -> bool:
    """Whether standard output is a terminal whose user has not switched colours off."""
    dull = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not dull


@contextmanager
def progress(
    what: str, waiting: Callable[[], str] = lambda: ""
) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on standard error, if that is a terminal. It disappears at the end.

    `waiting` returns what the work waits for; it is shown below the bar.
    """
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.markup import escape

    with waiting_bar(waiting)(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(escape(visible(what)), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def waiting_bar(waiting: Callable[[], str]) -> type[Progress]:
    """A progress bar with a second line: what the work waits for, if it waits."""
    from rich.console import RenderableType
    from rich.progress import Progress
    from rich.text import Text

    class Bar(Progress):
        def get_renderables(self) -> Iterable[RenderableType]:
            yield from super().get_renderables()
            if text := waiting():
                yield Text(visible(text))

    return Bar


def report(caller: Caller) -> None:
    """Report outages and complaints of live calls on standard error.

    A progress bar shows outages itself, so on a terminal only complaints are printed. Elsewhere
    a run that is as it should be says nothing there.
    """
    tell = partial(say, err=True)
    caller.complaints.tell = tell
    if sys.stderr.isatty():
        caller.complaints.inform = tell
    else:
        caller.outages.tell = tell


@contextmanager
def status(what: str) -> Iterator[Callable[[str], None]]:
    """A status line on standard error, if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status(what) as line:
        yield lambda text: line.update(escape(visible(f"{what}: {text}")))


def listed(names: Sequence[str], most: int = 12) -> str:
    """Names separated by commas; of many, the number of the rest."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
