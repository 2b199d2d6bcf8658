"""The command `grv`: all commands, and the one place that turns exceptions into messages."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
import traceback
import warnings
from collections.abc import Collection, Iterator, Sequence
from typing import Any, TextIO

import typer
import typer.core

from .. import __version__
from ..core.errors import GrvError, LedgerError
from ..options import did_you_mean
from ..own_code import blamed, raised
from ..text import visible
from .options.all_commands import COMMANDS, GROUPS, TRACED
from .options.command import AsGiven, Sections

_VERSION = f"grv {__version__}"
_HELP = (
    "Find a verified answer from a language model for the least money.\n\n"
    "Generate, rank, verify: grv decides for each problem when to generate more candidates and when"
    " to pay for verifying the best one. grv solve does it live; grv compare replays it on logs of"
    " earlier candidates, scores and verdicts."
)
_NO_MEMORY = (
    "out of memory: lower --workers, --concurrency or --jobs, or use a larger machine, and run the"
    " same command again"
)
_NO_MEMORY_LINE = f"grv: {_NO_MEMORY}\n".encode()
_REFUSED = re.compile(
    "failed to map segment|cannot allocate memory|can't start new thread", re.IGNORECASE
)
_EPILOG = (
    "Start with: grv demo. Exit codes: 0 done, 1 the answer is no, 2 bad usage or input,"
    " 130 interrupted."
)


class _Groups(AsGiven, typer.core.TyperGroup):
    """Lists the commands in groups."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each group under its name."""
        width = max(map(len, self.commands))
        for group, names in GROUPS.items():
            with formatter.section(group):
                rows = [(name.ljust(width), COMMANDS[name].summary) for name in names]
                formatter.write_dl(rows)


def application(names: Collection[str] = tuple(COMMANDS)) -> typer.Typer:
    """The command line. Only the commands of these names are loaded; the others are names."""
    app = typer.Typer(
        name="grv",
        cls=_Groups,
        help=_HELP,
        epilog=_EPILOG,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    for name, command in COMMANDS.items():
        loaded = command.load() if name in names else _not_loaded
        if isinstance(loaded, typer.Typer):
            app.add_typer(loaded, name=name)
        else:
            app.command(name, short_help=command.summary, cls=Sections)(loaded)
    app.callback(invoke_without_command=True)(_root)
    return app


def _not_loaded() -> None:
    """Stands for a command that this process does not run."""


# The base class of all errors in a command line; typer does not export it.
_BadCommandLine = next(
    each for each in typer.BadParameter.__mro__ if each.__name__ == "ClickException"
)


def _root(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and stop."),
) -> None:
    if version:
        typer.echo(_VERSION)
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _open_missing_streams() -> None:
    """Give a process that was started without standard streams, as by some daemons, empty ones."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code. Every error becomes one line."""
    _open_missing_streams()
    words = list(sys.argv[1:] if arguments is None else arguments)
    wanted = [word for word in words if not word.startswith("-")][:1]
    try:
        if words == ["--version"]:  # typer would load pydantic to read it
            typer.echo(_VERSION)
            return 0
        command = typer.main.get_command(application(wanted))
        # `command.main` would handle Ctrl-C and a closed pipe differently.
        with (
            _warnings_in_one_line(),
            _traced(wanted),
            command.make_context("grv", words) as context,
        ):
            command.invoke(context)
        sys.stdout.flush()
        return 0
    except typer.Exit as end:
        return end.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return _print_error("interrupted", 130)
    except GrvError as error:
        return _print_error(f"{error}{_other_file(error)}", 2)
    except OSError as error:
        _discard_output()
        if isinstance(error, BrokenPipeError):
            return 0  # the reader closed the pipe: `grv ... | head`
        return _print_error(f"{error.filename or 'output'}: {error.strerror}", 2)
    except MemoryError:
        return _print_error(_NO_MEMORY, 2)
    except Exception as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # typer does not export it
            typer.echo(str(error), err=True)
            return 2
        if isinstance(error, _BadCommandLine):
            return _print_error(_usage(error, wanted), 2)
        if os.environ.get("GRV_DEBUG"):
            traceback.print_exc()
        if _lacks_memory(error):
            return _print_error(_NO_MEMORY, 2)
        if blamed(error):
            return _print_error(raised(error), 2)
        return _print_error(
            f"this is a bug in grv: {type(error).__name__}: {error}"
            " (set GRV_DEBUG=1 for the traceback)",
            2,
        )


def _traced(wanted: Sequence[str]) -> contextlib.AbstractContextManager[None]:
    """Export the spans of a command that searches, if the environment says where they go."""
    if "OTEL_TRACES_EXPORTER" not in os.environ or not TRACED.intersection(wanted):
        return contextlib.nullcontext()
    from .traces import exported

    return exported()


def end_without_memory(ended: threading.ExceptHookArgs) -> None:
    """End the process if a thread has died for lack of memory.

    Its caller would wait without end. What was paid for is in the ledger. Nothing is done here that
    needs memory.
    """
    if ended.exc_type is MemoryError:
        os.write(2, _NO_MEMORY_LINE)
        os._exit(2)
    threading.__excepthook__(ended)


def _lacks_memory(error: BaseException) -> bool:
    """Whether the system refused memory or a thread, which libraries report in many ways."""
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        cause = waiting.pop()
        if cause is None or id(cause) in seen:
            continue
        seen.add(id(cause))
        if isinstance(cause, MemoryError) or _REFUSED.search(str(cause)):
            return True
        waiting += [cause.__cause__, cause.__context__, *getattr(cause, "exceptions", ())]
    return False


@contextlib.contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Print warnings as errors are printed: one line each."""

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        _print_error(f"warning: {message}", 0)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _other_file(error: GrvError) -> str:
    """A hint if a file does not exist or is not a ledger, and there is one that may be meant."""
    match error, error.__cause__:
        case LedgerError(path=str(path)), _ if path:
            return f"; did you mean {path}.ledger?" if os.path.isfile(f"{path}.ledger") else ""
        case _, FileNotFoundError(filename=str(path)):
            folder, name = os.path.split(path)
            stem, ending = os.path.splitext(name)
            with contextlib.suppress(OSError):
                there = [each for each in os.listdir(folder or ".") if each.endswith(ending)]
                return did_you_mean(stem, {os.path.splitext(each)[0]: each for each in there})
    return ""


def _usage(error: Exception, wanted: Sequence[str]) -> str:
    """What is wrong with the command line, and where the help is.

    Some errors do not know their command; it is `wanted` if there is one of that name.
    """
    # `getattr`, because typer does not export the class.
    context = getattr(error, "ctx", None)
    where = " ".join(["grv", *(name for name in wanted if name in COMMANDS)])
    where = getattr(context, "command_path", where)
    message = str(getattr(error, "format_message", error.__str__)()).rstrip(".")
    return f"{message} (see {where} --help)"


def _discard_output() -> None:
    """Discard output that cannot be flushed, so that the interpreter's end is silent."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_error(message: str, code: int) -> int:
    from ..backends.http.web import without_secrets

    line = visible(without_secrets(" ".join(message.split())))
    with contextlib.suppress(OSError):  # the terminal is gone
        print(f"grv: {line}", file=sys.stderr)
    return code
