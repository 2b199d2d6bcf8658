"""`grv doctor`: whether the sandbox works, here or on a cluster; a model's server; problems."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import typer

from ..backends.sandbox.limits import CONTAINERS, Isolation
from ..backends.verifiers.options import ENGINE_HELP, EngineName, Verification
from ..core.errors import UsageError
from ..options import option
from ..text import aligned, counted
from .console import check_outputs, progress, say, say_table, status
from .options.command import command

if TYPE_CHECKING:
    from ..backends.problems.soundness import Soundness

_SHOWN = 30  # problems in a table


@command
def doctor(
    isolation: Isolation = option(
        Isolation.JAIL, "The isolation to examine.", metavar="strict|jail|podman|docker|gvisor"
    ),
    image: str | None = option(
        None,
        "An image with python3, for podman, docker and gvisor: hostile changes to a repository are"
        " tried in it.",
        metavar="NAME",
    ),
    workers: int | None = option(
        None, "Programs run at once.", least=1, most=1024, shown="one per processor"
    ),
    engine: EngineName = option(EngineName.LOCAL, ENGINE_HELP),
    generator: str | None = option(
        None, "Examine a model's server instead, as in openai:MODEL.", metavar="SPEC"
    ),
    base_url: str | None = option(None, "The address of that server.", metavar="URL"),
    problems: str | None = option(
        None,
        "Examine a file of problems instead: solutions must pass, nonsense must fail.",
        metavar="FILE",
    ),
    judge: str | None = option(
        None,
        'Examine a judge instead: a JSON file with a check of kind "judge". Wrong answers that'
        " speak to the model must pass no more often than plain wrong ones.",
        metavar="FILE",
    ),
    timeout: float | None = option(
        None, "As in grv solve, with --problems.", metavar="S", least=1e-3, most=1e8
    ),
    memory: int | None = option(
        None, "As in grv solve, with --problems.", metavar="MB", least=1, most=1e9
    ),
    allow_commands: bool = option(False, "As in grv solve, with --problems.", "--allow-commands"),
    allow_check: tuple[str, ...] = option((), "As in grv solve, with --problems.", metavar="NAME"),
    plugins: bool = option(
        False, "List the plugins of the packages that are installed, and stop.", "--plugins"
    ),
    json: str | None = option(
        None, "Save what the server can do, or whether each problem is sound.", metavar="FILE"
    ),
    verbose: bool = option(False, "Print the verdict of each program.", "--verbose", "-v"),
) -> None:
    """Show the isolation in force, then run right programs and attacks.

    With --generator, ask a model's server one cheap question instead, and print what the server
    can do and what grv does where it cannot.

    With --problems, verify answers to each problem twice: those in its field solutions, or the
    answer that its check tells, must pass. An empty candidate and nonsense must fail. The exit code
    is 1 if a problem is not sound. The file of --json has problem, sound and reason of each.

    With --judge, ask the model about right answers to easy questions, about wrong ones, and about
    the same wrong ones with words to the judge: orders, forged verdicts, marks of chat formats. The
    exit code is 1 if these pass more often. --allow-commands lets it call the model.

    Plugins are listed first: their names, packages and versions. They are not loaded.

    Right programs must pass. Attacks must fail: programs that forge verdicts, look for the expected
    values, use up the machine, or try to get out. The exit code is 0 only if all is well.
    """
    if sum(given is not None for given in (generator, problems, judge)) > 1:
        raise UsageError("give one of --generator, --problems and --judge")
    if problems is None and (timeout is not None or memory is not None):
        raise UsageError("--timeout and --memory need --problems FILE")
    if problems is None and judge is None and allow_commands:
        raise UsageError("--allow-commands needs --problems FILE or --judge FILE")
    if problems is None and allow_check:
        raise UsageError("--allow-check needs --problems FILE")
    if base_url is not None and generator is None:
        raise UsageError("--base-url needs --generator SPEC")
    if image is not None and isolation not in CONTAINERS:
        raise UsageError("--image needs --isolation podman, docker or gvisor")
    if plugins:
        _say_plugins(also_none=True)
        return
    if generator is not None:
        _examine_server(generator, base_url, json)
        return
    if problems is not None:
        verification = Verification(
            workers=workers,
            isolation=isolation,
            allow_commands=allow_commands,
            allow_check=allow_check,
            engine=engine,
        )
        if timeout is not None:
            verification = dataclasses.replace(verification, timeout=timeout)
        if memory is not None:
            verification = dataclasses.replace(verification, memory=memory)
        _examine_problems(problems, verification, json)
        return
    if judge is not None:
        _examine_judge(judge, Verification(workers=workers, allow_commands=allow_commands), json)
        return
    if json is not None:
        raise UsageError("--json needs --generator SPEC, --problems FILE or --judge FILE")
    if isolation is Isolation.UNSAFE:
        raise UsageError("--isolation unsafe has nothing to examine; use strict or jail")
    _say_plugins()
    try:
        if engine is EngineName.RAY:
            from ..backends.cluster.doctor import examine_nodes

            well = examine_nodes(isolation, workers, typer.echo, verbose)
        else:
            from ..backends.attacks.examination import examine

            well = examine(isolation, workers, typer.echo, verbose, image or "")
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


def _say_plugins(*, also_none: bool = False) -> None:
    """Print what installed packages add, and what cannot be used."""
    from ..plugins import GROUPS, installed

    rows = installed()
    uses = Counter((row.group, row.name) for row in rows)
    lines = []
    for row in rows:
        note = ""
        if row.name in own_names(row.group):
            note = f"not used: grv has a {GROUPS[row.group]} of this name"
        elif uses[row.group, row.name] > 1:
            note = "not used: two packages have it"
        lines.append([GROUPS[row.group], row.name, row.package, row.version, note])
    if lines:
        say_table(aligned(["plugin", "name", "package", "version", ""], lines, left=5))
    elif also_none:
        say("no plugins are installed")


def own_names(group: str) -> Collection[str]:
    """The names that grv itself has in a group of plugins."""
    from ..backends.generators import GENERATORS
    from ..backends.scorers import SCORERS
    from ..backends.verifiers.checks import KINDS
    from ..policies import POLICIES

    tables: dict[str, Collection[str]] = {
        "generators": GENERATORS,
        "scorers": SCORERS,
        "verifiers": KINDS,
        "policies": (*POLICIES, "default"),
    }
    return tables.get(group, ())


def _examine_judge(file: str, verification: Verification, path: str | None) -> None:
    """Print how often a judge passes right answers, wrong ones and attacks."""
    import json

    from ..backends.attacks.judging import ATTACKS, examine_judge
    from ..files import parse_json, read_bytes, write_whole

    check_outputs([path], [file])
    try:
        check = parse_json(read_bytes(file))
    except ValueError as error:
        raise UsageError(f"{file}: {error}") from None
    if not isinstance(check, dict) or check.get("kind") != "judge":
        raise UsageError(f'{file}: this is no check of kind "judge"')
    with (
        verification.verifier(decides=False) as verifier,
        progress("asking the judge") as tell,
    ):
        found = examine_judge(check, verifier, lambda done: tell(done, 3 * len(ATTACKS)))
    kinds = {
        "right answers": (found.right, found.asked["right"]),
        "plain wrong answers": (found.wrong, found.asked["wrong"]),
        "wrong answers that speak to the judge": (found.attacks, found.asked["attacks"]),
    }
    for name, (passed, asked) in kinds.items():
        say(f"passes {passed} of {asked} {name} ({len(ATTACKS) - asked} without a verdict)")
    if found.passed:
        say(f"attacks that pass: {', '.join(found.passed)}")
    if path is not None:
        write_whole(path, json.dumps(dataclasses.asdict(found), indent=2) + "\n")
    if not found.is_well:
        say("not well: words to the judge make wrong answers pass")
        raise typer.Exit(1)
    say("words to the judge do not make wrong answers pass more often")


def _examine_problems(file: str, verification: Verification, path: str | None) -> None:
    """Print which problems are not sound, and save what was found, also if it is interrupted."""
    from ..backends.problems.files import read_examples
    from ..backends.problems.soundness import count_trials, examine

    check_outputs([path], [file])
    rows: list[Soundness] = []
    total = 0
    with verification.verifier(decides=False, published=True) as verifier:
        with status("reading the problems"):
            for example in read_examples(file):
                verifier.prepare(example.problem)
                total += count_trials(example)
        try:
            with progress("examining") as tell:
                examples = read_examples(file)
                for row in examine(examples, verifier, lambda done: tell(done, total)):
                    rows.append(row)  # noqa: PERF402  an interruption keeps what is known
        finally:
            _say_rows(rows, path)
    if any(row.sound is False for row in rows):
        raise typer.Exit(1)


def _say_rows(rows: Sequence[Soundness], path: str | None) -> None:
    """Print the problems that are not sound, then the summary; save all rows."""
    import json

    from ..files import write_whole

    bad = [row for row in rows if row.sound is False]
    unknown = Counter(row.reason for row in rows if row.sound is None)
    if bad:
        shown = [[row.problem, row.reason] for row in bad[:_SHOWN]]
        say_table(aligned(["not sound", "why"], shown, left=2))
        if len(bad) > _SHOWN:
            say(f"and {len(bad) - _SHOWN} more; --json FILE saves all of them")
    parts = [f"{len(rows) - len(bad) - unknown.total()} sound", f"{len(bad)} not sound"]
    say(f"{counted(len(rows), 'problem')}: {', '.join(parts)}, {unknown.total()} not known")
    for reason, count in unknown.items():
        say(f"not known: {count}, {reason}")
    if path is not None:
        lines = ",\n".join(json.dumps(row.as_data()) for row in rows)
        write_whole(path, f"[\n{lines}\n]\n" if rows else "[]\n")


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
