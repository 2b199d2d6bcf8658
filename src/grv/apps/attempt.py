"""`grv attempt`: have coding agents try a task in a repository until its tests pass."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import typer

from ..core.errors import RunStopped
from ..files import write_whole
from .console import say, say_table, status
from .options.attempts import AttemptOptions
from .options.command import command

if TYPE_CHECKING:
    from .attempt_lines import Tell
    from .attempt_plan import AttemptResult


@command
def attempt(options: AttemptOptions) -> None:
    """Have coding agents try a task in this repository until its tests pass.

    Each attempt works in a fresh copy of the commit; nothing in your tree changes. grv verifies
    what it made: the tests as they were before the attempt, in the jail. A green run that changed
    the tests is not green. The first attempt that passes is accepted, and no more is spent.

    Attempts are left as branches grv/TASK/N. Exit code 1: none was accepted. If a run stops for any
    reason, the same command continues it and pays for no finished attempt again.

    \b
    grv attempt fix.md --verify 'pytest -q' --agent claude --budget 5usd
    grv attempt fix.md --verify 'pytest -q tests/' --protect tests/ --agent claude:haiku \\
        --agent claude:opus --price claude:haiku=0.05 --price claude:opus=0.60 --budget 5usd --apply
    grv attempt fix.md --verify 'go test ./...' --agent './agent.sh --fast' --attempts 4
    """
    import anyio

    from ..runtime.interrupts import until_interrupted
    from ..runtime.tasks import raise_first
    from .attempt_plan import prepared

    tell = partial(say, err=True)
    with prepared(options, tell) as plan:

        async def work() -> None:
            with status("working") as show:
                plan.show = show
                plan.solution = await plan.search()

        async def main() -> bool:
            try:
                return await until_interrupted(work, plan.caller, tell)
            except BaseExceptionGroup as errors:
                raise_first(errors)
            finally:
                await plan.aclose()

        try:
            interrupted = anyio.run(main)
        except RunStopped:
            _report(plan.result(), options)
            raise
        result = plan.result()
    _report(result, options)
    if interrupted:
        raise KeyboardInterrupt
    if result.accepted is None:
        raise typer.Exit(1)


async def attempt_task(options: AttemptOptions, tell: Tell = lambda line: None) -> AttemptResult:
    """Have agents try a task, for programs and servers. Who calls it has consented to the agents.

    `tell` is told in a line what happens.
    """
    import anyio
    import anyio.to_thread

    from .attempt_plan import prepared

    with prepared(options, tell) as plan:
        try:
            plan.solution = await plan.search()
        finally:
            with anyio.CancelScope(shield=True):
                await plan.aclose()
        return await anyio.to_thread.run_sync(plan.result)


def _report(result: AttemptResult, options: AttemptOptions) -> None:
    """Print the bill, and write the file."""
    from .attempt_lines import bill_of, summary_lines

    if result.rows:
        say_table(bill_of(result.rows))
    say(*summary_lines(result))
    if options.out is not None:
        write_whole(options.out, f"{json.dumps(result.as_data(), indent=2)}\n")
