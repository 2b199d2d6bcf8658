"""The command `grv`: every command in one place, and the one frame that no traceback leaves."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

import click
import typer

from .. import __version__
from ..core.errors import GrvError
from . import compare, convert, demo, oracle, shells

app = typer.Typer(
    name="grv",
    help="Find a verified answer from a language model for the least money.\n\n"
    "Generate, rank, verify: grv decides for each prompt when to generate more candidates and when"
    " to pay for verifying the best one. These commands work on logs of what was generated, scored"
    " and verified before.",
    epilog="Start with: grv demo. Exit codes: 0 done, 1 the answer is no, 2 bad usage or input,"
    " 130 interrupted.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command("demo")(demo.demo)
app.command("compare")(compare.compare)
app.command("oracle")(oracle.oracle)
app.command("shells")(shells.shells)
app.command("convert")(convert.convert)


@app.callback(invoke_without_command=True)
def _root(
    version: bool = typer.Option(False, "--version", help="Print the version and stop."),
) -> None:
    if version:
        typer.echo(f"grv {__version__}")
        raise typer.Exit


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and leave with its exit code."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit code. Whatever goes wrong is said in one line."""
    command = typer.main.get_command(app)
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = command.main(args=given, prog_name="grv", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        typer.echo(error.format_message())
        return 0
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        where = context.command_path if context is not None else "grv"
        return _complain(f"{error.format_message()} (see {where} --help)", 2)
    except click.Abort:
        return _complain("interrupted", 130)
    except KeyboardInterrupt:
        return _complain("interrupted", 130)
    except GrvError as error:
        return _complain(str(error), 2)
    except BrokenPipeError:
        # The reader went away (`grv ... | head`); what is left to flush must not complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError:
        return _complain("out of memory", 2)
    except Exception as error:
        if os.environ.get("GRV_DEBUG"):
            traceback.print_exc()
        return _complain(
            f"this is a bug in grv: {type(error).__name__}: {error}"
            " (set GRV_DEBUG=1 for the traceback)",
            2,
        )


def _complain(message: str, code: int) -> int:
    line = " ".join(message.split())
    print(f"grv: {line}", file=sys.stderr)
    return code
