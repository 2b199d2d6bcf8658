"""`grv doctor`: whether the sandbox works on this machine, or on a cluster."""

from __future__ import annotations

import typer

from ..backends.sandbox.limits import Isolation
from ..backends.verifiers.options import ENGINE_HELP, EngineName
from ..core.errors import UsageError
from ..options import option
from .options.command import command


@command
def doctor(
    isolation: Isolation = option(
        Isolation.JAIL, "The isolation to examine.", metavar="strict|jail"
    ),
    workers: int | None = option(
        None, "Programs run at once.", least=1, most=1024, shown="one per processor"
    ),
    engine: EngineName = option(EngineName.LOCAL, ENGINE_HELP),
    verbose: bool = option(False, "Print the verdict of each program.", "--verbose", "-v"),
) -> None:
    """Show the isolation in force, then run right programs and attacks.

    Right programs must pass. Attacks must fail: programs that forge verdicts, look for the expected
    values, use up the machine, or try to get out. The exit code is 0 only if all is well.
    """
    if isolation is Isolation.UNSAFE:
        raise UsageError("--isolation unsafe has nothing to examine; use strict or jail")
    if engine is EngineName.RAY:
        from ..backends.cluster.doctor import examine_nodes as examine
    else:
        from ..backends.attacks.examination import examine

    try:
        well = examine(isolation, workers, typer.echo, verbose)
    except UsageError as exc:
        if engine is EngineName.RAY:  # there is no cluster; weak nodes are an answer
            raise
        typer.echo(f"grv: {exc}", err=True)
        raise typer.Exit(1) from None
    if not well:
        where = "this machine" if engine is EngineName.LOCAL else "these nodes"
        typer.echo(f"not well: do not verify untrusted programs on {where}")
        raise typer.Exit(1)
    typer.echo("all is well")
