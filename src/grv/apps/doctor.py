"""`grv doctor`: whether the sandbox works on this machine, on a cluster; or a model's server."""

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
    generator: str | None = option(
        None, "Examine a model's server instead, as in openai:MODEL.", metavar="SPEC"
    ),
    base_url: str | None = option(None, "The address of that server.", metavar="URL"),
    json: str | None = option(None, "Save what that server can do.", metavar="FILE"),
    verbose: bool = option(False, "Print the verdict of each program.", "--verbose", "-v"),
) -> None:
    """Show the isolation in force, then run right programs and attacks.

    With --generator, ask a model's server one cheap question instead, and print what the server
    can do and what grv does where it cannot.

    Right programs must pass. Attacks must fail: programs that forge verdicts, look for the expected
    values, use up the machine, or try to get out. The exit code is 0 only if all is well.
    """
    if generator is not None:
        _examine_server(generator, base_url, json)
        return
    if base_url is not None or json is not None:
        flag = "--base-url" if base_url is not None else "--json"
        raise UsageError(f"{flag} needs --generator SPEC")
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


def _examine_server(spec: str, base_url: str | None, path: str | None) -> None:
    """Print what a model's server can do, and save it."""
    import asyncio
    import json

    from ..backends.by_name import generator
    from ..backends.generators.dialect import DialectGenerator
    from ..backends.generators.examination import Abilities, examine, question
    from ..core.errors import GeneratorError
    from ..files import check_writable, write_whole
    from ..own_code import is_code

    made = None if is_code(spec) else generator(spec, base_url=base_url, sampling=question())
    if not isinstance(made, DialectGenerator):
        raise UsageError(f"{spec} has no server to ask; name one, as in --generator openai:MODEL")
    if path is not None:
        check_writable(path)

    async def ask() -> Abilities:
        try:
            return await examine(made)
        finally:
            await made.aclose()

    try:
        abilities = asyncio.run(ask())
    except GeneratorError as error:
        hint = f"; {error.hint}" if error.hint else ""
        raise UsageError(f"{spec}: {error}{hint}") from None
    for line in abilities.lines():
        typer.echo(line)
    if path is not None:
        write_whole(path, json.dumps(abilities.as_data(), indent=2) + "\n")
