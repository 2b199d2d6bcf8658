"""What the live commands share: options, job files, backends, and how they are interrupted."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from ..core.errors import UsageError
from ..files import read_toml
from .console import MOST, parse_cascade

if TYPE_CHECKING:
    from ..backends.protocols import Problem
    from ..backends.sandbox.limits import Limits
    from ..runtime.calls import Calls
    from ..runtime.executor import Backends
    from ..runtime.solve import SolveOptions

# Flags that mean the same in every live command. None stands for "not given": a job file may say.
PROBLEMS = typer.Argument(
    None, metavar="PROBLEMS", help='JSON lines: {"problem", "prompt", "check"}.'
)
GENERATOR = typer.Option(
    None, metavar="SPEC", help="openai:MODEL, openai-text:MODEL, embedded or embedded-chat."
)
SCORE = typer.Option(
    None,
    metavar="SPEC",
    help="logprob, logprob-sum, logprob-min, length, judge:MODEL, score:URL, classify:URL,"
    " pooling:URL; or cascade(logprob, score:URL, top=4, cost=0.5): the second one, at 0.5 each,"
    " only for the best 4 before one is verified.  [default: logprob]",
)
SCORE_MODEL = typer.Option(
    None, metavar="MODEL", help="Which model a reward server shall use, where it has several."
)
SCORE_STEP = typer.Option(
    None, metavar="TEXT", help="What a process reward model reads its rewards at: <extra_0>."
)
BASE_URL = typer.Option(None, metavar="URL", help="An OpenAI-compatible endpoint.")
TEMPERATURE = typer.Option(None, help="How freely tokens are chosen.  [default: 0.7]")
TOP_P = typer.Option(None, help="The share of probability they are chosen from.")
MAX_TOKENS = typer.Option(None, help="Where a candidate is cut.")
STOP = typer.Option(None, help="A text that ends a candidate. Repeatable.")
SEED = typer.Option(None, help="What candidates are drawn from.  [default: 0]")
CONCURRENCY = typer.Option(None, help="Calls in flight at once, over the whole run.  [default: 16]")
ATTEMPTS = typer.Option(None, help="How often a call is tried.  [default: 6]")
FIRST_PAUSE = typer.Option(
    None, help="Seconds before the second attempt; then twice as many.  [default: 0.5]"
)
CALL_TIMEOUT = typer.Option(None, help="Seconds until a call counts as failed.  [default: 600]")
LEDGER = typer.Option(None, metavar="FILE", help="What was paid for.  [default: OUT.ledger]")
KEYS = typer.Option(
    None, "--keys/--no-keys", help="Verify equivalent candidates once.  [default: keys]"
)
ISOLATION = typer.Option(
    None, metavar="strict|jail|unsafe", help="How far programs are kept in.  [default: jail]"
)
TIMEOUT = typer.Option(None, help="Seconds per test.  [default: 10]")
MEMORY = typer.Option(None, help="Megabytes per program.  [default: 1024]")
ALLOW_COMMANDS = typer.Option(
    None,
    "--allow-commands",
    help='Let checks of kind "command" run commands with your rights, and checks of kind "http"'
    " send candidates to servers.",
)
WORKERS = typer.Option(None, help="Programs at once.  [default: one a processor]")

# More would not fit, or be no number to a system call.
_MOST = {"workers": 1024, "concurrency": 10_000, "attempts": 1000, "width": MOST, "n": MOST}
_MOST |= {"memory": 1 << 30, "timeout": 10**8, "call_timeout": 10**8, "first_pause": 10**8}
_MOST |= {"max_tokens": 1 << 40}


@dataclass(frozen=True)
class LiveOptions:
    """What a live command was asked for, from the command line or from a job file."""

    problems: str = ""
    generator: str = ""
    score: str = "logprob"
    score_model: str | None = None
    score_step: str = ""
    out: str = ""
    base_url: str | None = None
    temperature: float = 0.7
    top_p: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int = 0
    concurrency: int = 16
    attempts: int = 6
    first_pause: float = 0.5
    call_timeout: float = 600.0
    ledger: str | None = None
    keys: bool = True
    isolation: str = "jail"
    timeout: float = 10.0
    memory: int = 1024
    workers: int | None = None
    allow_commands: bool = False

    @property
    def ledger_path(self) -> str:
        """The ledger: as given, or beside the answers."""
        return self.ledger if self.ledger is not None else f"{self.out}.ledger"

    @property
    def about(self) -> dict[str, Any]:
        """What makes candidates, scores and verdicts what they are; see `Job.about`.

        It goes into the ledger: addresses are without what may be secret in them.
        """
        from ..backends.http.web import shown

        names = ["generator", "score_model", "score_step", "temperature"]
        names += ["top_p", "max_tokens", "seed"]
        return {name: getattr(self, name) for name in names} | {
            "score": _named_score(self.score),
            "base_url": None if self.base_url is None else shown(self.base_url),
            "stop": list(self.stop),
        }

    def calls(self) -> Calls:
        """How calls are made."""
        from ..runtime.calls import Calls

        return Calls(self.concurrency, self.attempts, self.first_pause, self.call_timeout)


def _named_score(score: str) -> str:
    """The score as a ledger knows it. How many are scored again does not change what scores are."""
    from ..backends.specs import named

    cascade = parse_cascade(score)
    if cascade is not None:
        return f"cascade({_named_score(cascade[0])}, {_named_score(cascade[1])})"
    return named(score)


_Options = TypeVar("_Options", bound=LiveOptions)
_Table = dict[str, Any]  # TOML data from the user, checked against the options' fields


def read_job(job: str | None) -> _Table:
    """The options in a job file, none where there is none. `top-p` is also `top_p`."""
    if job is None:
        return {}
    return {name.replace("-", "_"): value for name, value in read_toml(job).items()}


def defaults_from_job(
    context: typer.Context, job: str | None, command: str, beside: Collection[str] = ()
) -> str | None:
    """Let the table of a job file that is named like the command say what flags do not.

    Args:
        context: of the command; its arguments are no options.
        job: the file.
        command: whose table it is.
        beside: what else may stand in the table.
    """
    if job is None:
        return None
    table = read_job(job).get(command)
    if not isinstance(table, dict):
        raise UsageError(f"{job}: there is no table [{command}]")
    names = {
        parameter.name
        for parameter in context.command.params
        if parameter.param_type_name == "option" and parameter.name != "job"
    }
    given = {n.replace("-", "_"): value for n, value in table.items() if n not in beside}
    unknown = given.keys() - names
    if unknown:
        raise UsageError(f"{job}: [{command}] has unknown option {', '.join(sorted(unknown))}")
    context.default_map = given
    return job


def options_of(
    kind: type[_Options], command: str, job: str | None, table: _Table, given: Mapping[str, Any]
) -> _Options:
    """Flags over the job file over the defaults."""
    unknown = table.keys() - {field.name for field in fields(kind)}
    if unknown:
        raise UsageError(f"{job}: unknown option {', '.join(sorted(unknown))}")
    for field in fields(kind):
        if field.name in table and not _fits(table[field.name], str(field.type)):
            raise UsageError(f"{job}: {field.name} = {table[field.name]!r} is not {field.type}")
        if field.name in table and str(field.type).startswith("float"):
            table[field.name] = float(table[field.name])  # 1 and 1.0 are the same run
    table = table | {name: value for name, value in given.items() if value not in (None, [])}
    table["stop"] = tuple(table.get("stop", ()))
    for name in ("problems", "generator", "out"):
        if not table.get(name):
            raise UsageError(f"what {name}? See grv {command} --help")
    for name, most in _MOST.items():
        if (table.get(name) or 0) > most:
            raise UsageError(f"{name} {table[name]}: give at most {most:,}")
    return kind(**table)


def _fits(value: object, annotation: str) -> bool:
    """Whether a value of a job file is what an option is declared to be."""
    kinds = {"str": str, "int": int, "float": int | float, "bool": bool}
    if annotation.startswith("tuple"):
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    kind = kinds[annotation.partition(" | ")[0]]
    return isinstance(value, kind) and isinstance(value, bool) == (kind is bool)


def limits_of(options: LiveOptions) -> Limits:
    """What programs may use where their check does not say."""
    from ..backends.sandbox.limits import Limits

    try:
        return Limits(seconds=options.timeout, memory_mb=options.memory)
    except ValueError as error:
        raise UsageError(str(error)) from error


@contextmanager
def backends_of(options: LiveOptions, problems: Sequence[Problem]) -> Iterator[Backends]:
    """Who generates, scores and verifies; every mistake in a check is told before any work."""
    from ..backends import specs
    from ..backends.verifiers.pool import CheckVerifier
    from ..runtime.executor import Backends
    from .verify import parse_isolation

    isolation, limits = parse_isolation(options.isolation), limits_of(options)
    first, second, _ = parse_cascade(options.score) or (options.score, None, None)
    with CheckVerifier(
        workers=options.workers,
        isolation=isolation,
        limits=limits,
        allow_commands=options.allow_commands,
    ) as verifier:
        for problem in problems:
            verifier.prepare(problem)
        generator = specs.generator(
            options.generator,
            base_url=options.base_url,
            temperature=options.temperature,
            top_p=options.top_p,
            max_tokens=options.max_tokens,
            stop=options.stop,
            seed=options.seed,
            logprobs=any((each or "").startswith("logprob") for each in (first, second)),
            batch=None if options.generator.startswith("embedded") else 8,
        )
        score = partial(
            specs.scorer,
            base_url=options.base_url,
            model=options.score_model,
            step=options.score_step,
        )
        key = verifier.key if options.keys else None
        again = None if second is None else score(second)
        yield Backends(generator, score(first), verifier, key, again)


def search_options(backends: Backends, about: Mapping[str, Any]) -> SolveOptions:
    """The options of `grv.solve_many` that say with what, and as what, problems are searched."""
    options: SolveOptions = {
        "generator": backends.generator,
        "scorer": backends.scorer,
        "verifier": backends.verifier,
    }
    options["second_scorer"] = backends.second
    options["keys"] = backends.key is not None
    options["identity"] = about
    return options


def protection(options: LiveOptions, problems: Sequence[Problem]) -> list[str]:
    """What verified answers without protection, a line each."""
    from ..backends.verifiers.command import is_command, unprotected

    lines = []
    if commands := unprotected(problems):
        lines.append(f"unprotected, with your rights, ran the commands of checks: {commands}")
    if options.isolation == "unsafe" and not all(map(is_command, problems)):
        lines.append("unprotected, with your rights, ran programs: isolation unsafe")
    return lines
