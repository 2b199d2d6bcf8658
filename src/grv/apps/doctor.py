"""`grv doctor`: whether the sandbox works on this machine."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

from ..backends.sandbox.limits import Isolation
from ..core.errors import UsageError
from ..options import option
from .options.command import command

if TYPE_CHECKING:
    from ..backends.attacks.suite import Trial


@command
def doctor(
    isolation: Isolation = option(
        Isolation.JAIL, "The isolation to examine.", metavar="strict|jail"
    ),
    workers: int | None = option(
        None, "Programs run at once.", least=1, most=1024, shown="one per processor"
    ),
    verbose: bool = option(False, "Print the verdict of each program.", "--verbose", "-v"),
) -> None:
    """Show the isolation in force, then run right programs and attacks.

    Right programs must pass. Attacks must fail: programs that forge verdicts, look for the expected
    values, use up the machine, or try to get out. The exit code is 0 only if all is well.
    """
    from ..backends.attacks import suite
    from ..backends.sandbox.isolation.seccomp import NOT_YET_RUN
    from ..backends.verifiers.pool import CheckVerifier

    if isolation is Isolation.UNSAFE:
        raise UsageError("--isolation unsafe has nothing to examine; use strict or jail")
    typer.echo(f"Python {platform.python_version()} ({sys.executable})")
    typer.echo(f"Linux {platform.release()}, {platform.machine()}")
    try:
        with CheckVerifier(workers=workers, isolation=isolation) as verifier:
            typer.echo(f"isolation {verifier.in_force}")
            if verifier.in_force.seccomp in NOT_YET_RUN:
                typer.echo("  this architecture's filter has never run on a real machine")
            for name, reason in verifier.in_force.missing.items():
                typer.echo(f"  without {name}: {reason}")
            right = _printed(
                "right programs that pass", suite.run_right_programs(verifier), verbose
            )
        with (
            suite.Surroundings() as around,
            CheckVerifier(
                workers=workers, isolation=isolation, limits=suite.LIMITS, refute=False
            ) as verifier,
        ):
            held = _printed("attacks that are held", suite.run_attacks(verifier, around), verbose)
            damage = around.damage()
            folders = verifier.folders()
            verifier.close()
            damage += [f"left behind: {thing}" for thing in suite.left_behind(folders)]
    except UsageError as exc:
        typer.echo(f"grv: {exc}", err=True)
        raise typer.Exit(1) from None
    for line in damage:
        typer.echo(f"DAMAGE {line}")
    if not (right and held and not damage):
        typer.echo("not well: do not verify untrusted programs on this machine")
        raise typer.Exit(1)
    typer.echo("all is well")


def _printed(what: str, trials: Iterable[Trial], verbose: bool) -> bool:
    """Print the trials; whether all are ok."""
    total = good = 0
    for trial in trials:
        total += 1
        good += trial.ok
        verdict, reason = trial.finding.verdict.value, trial.finding.reason
        if verbose or not trial.ok:
            mark = "ok  " if trial.ok else "BAD "
            typer.echo(f"  {mark}{trial.name}: {verdict}{f' ({reason})' if reason else ''}")
    typer.echo(f"{good} of {total} {what}")
    return good == total
