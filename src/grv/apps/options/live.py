"""What the live commands share: their options, and the backends that the options stand for."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...backends.generators.sampling import Sampling
from ...backends.models import Models
from ...backends.sandbox.limits import Isolation
from ...backends.verifiers.options import Verification
from ...options import Family, option
from ...parsing import parse_cascade
from ...runtime.options import Calls

if TYPE_CHECKING:
    from ...backends.problems.prompts import Prompts
    from ...backends.protocols import Problem
    from ...runtime.executor import Backends
    from ...runtime.solve import SolveOptions


@dataclass(frozen=True, kw_only=True)
class LiveOptions(Family):
    """The options of every live command."""

    problems: str = option(
        ...,
        'A file of problems, JSON lines with "problem", "prompt" and "check".',
        argument=True,
        metavar="PROBLEMS",
    )
    prompts: str | None = option(
        None,
        "A TOML file with the template of the prompts, which may contain examples, and with the"
        " texts that end a candidate (unless --stop is given).",
        metavar="FILE",
    )
    out: str = option(..., "Where the results go.", "--out", "-o", metavar="FILE")
    ledger: str | None = option(
        None,
        "Where grv records what is paid for: a file, or postgresql://USER@HOST/DATABASE.",
        metavar="LEDGER",
        shown="OUT.ledger",
    )
    keys: bool = option(True, "If a candidate fails, do not verify equivalent ones.")
    models: Models = field(default_factory=lambda: Models(generator=""))
    sampling: Sampling = field(default_factory=Sampling)
    calls: Calls = field(default_factory=Calls)
    verification: Verification = field(default_factory=Verification)

    @property
    def ledger_path(self) -> str:
        """The ledger: as given, or beside the results."""
        return self.ledger if self.ledger is not None else f"{self.out}.ledger"

    @property
    def written(self) -> tuple[str, ...]:
        """The files that the run writes; a ledger in a database is none."""
        from ...ledger.opening import is_address, refuse_password

        if is_address(self.ledger_path):
            refuse_password(self.ledger_path)
            return (self.out,)
        return (self.out, self.ledger_path)

    @property
    def about(self) -> dict[str, Any]:
        """What determines candidates, scores and verdicts; see `SearchConfig.about`.

        It goes into the ledger, so addresses are without credentials.
        """
        from ...backends.http.web import shown

        models = dataclasses.asdict(self.models)
        del models["reward"]  # at their defaults, these options are not in older ledgers
        models |= self.models.reward.changed()
        sampling = self.sampling_with_stops
        return {**models, **dataclasses.asdict(sampling)} | {
            "score": _named_score(self.models.score),
            "base_url": None if self.models.base_url is None else shown(self.models.base_url),
            "stop": list(sampling.stop),
        }

    @cached_property
    def _prompts(self) -> Prompts | None:
        from ...backends.problems.prompts import Prompts

        return None if self.prompts is None else Prompts.load(self.prompts)

    @property
    def sampling_with_stops(self) -> Sampling:
        """How candidates are sampled, with the stops of the file of prompts if there are no own."""
        if self._prompts is None or self.sampling.stop:
            return self.sampling
        return dataclasses.replace(self.sampling, stop=self._prompts.stop)

    def read_problems(self) -> list[Problem]:
        """The problems, with the prompts of the file of prompts if there is one."""
        from ...backends.problems.files import read_problems

        found = list(read_problems(self.problems))
        for problem in found if self.models.reward.score_question else ():
            self.models.reward.asked(problem)
        return found if self._prompts is None else list(map(self._prompts.of, found))


def _named_score(score: str) -> str:
    """The score as a ledger knows it. The size of a cascade does not change what scores are."""
    from ...backends.specs import named

    cascade = parse_cascade(score)
    if cascade is not None:
        return f"cascade({_named_score(cascade[0])}, {_named_score(cascade[1])})"
    return named(score)


def check_resources(options: LiveOptions) -> None:
    """Refuse a run that this machine cannot carry, before the first call."""
    from ...backends.callables import processors
    from ...runtime.faults.machine import check_machine

    workers = options.verification.workers or processors()
    check_machine(options.calls.concurrency, workers, options.written)


@contextmanager
def backends_of(options: LiveOptions, problems: Sequence[Problem]) -> Iterator[Backends]:
    """The generator, scorers and verifier. Every mistake in a check is found before any work."""
    from ...backends import specs
    from ...runtime.executor import Backends

    models = options.models
    first, second = models.scores

    def scorer(spec: str) -> Any:
        return specs.scorer(
            spec,
            base_url=models.base_url,
            model=models.score_model,
            step=models.score_step,
            reward=models.reward,
        )

    with options.verification.verifier() as verifier:
        for problem in problems:
            verifier.prepare(problem)
        generator = specs.generator(
            models.generator,
            base_url=models.base_url,
            sampling=options.sampling_with_stops,
            logprobs=any((each or "").startswith("logprob") for each in (first, second)),
            batch=None if models.generator.startswith("embedded") else 8,
        )
        key = verifier.key if options.keys else None
        again = None if second is None else scorer(second)
        yield Backends(generator, scorer(first), verifier, key, again)


def search_options(backends: Backends, about: Mapping[str, Any]) -> SolveOptions:
    """The options of `grv.solve_many` for these backends, under this name in the ledger."""
    options: SolveOptions = {
        "generator": backends.generator,
        "scorer": backends.scorer,
        "verifier": backends.verifier,
    }
    options["second_scorer"] = backends.second
    options["keys"] = backends.key is not None
    options["identity"] = about
    return options


def unprotected_lines(options: Verification, problems: Sequence[Problem]) -> list[str]:
    """One line for each way in which answers were verified without protection."""
    from ...backends.verifiers.command import is_command, unprotected

    lines = []
    if commands := unprotected(problems):
        lines.append(f"unprotected: ran the commands of checks with your rights: {commands}")
    if options.isolation is Isolation.UNSAFE and not all(map(is_command, problems)):
        lines.append("unprotected: ran programs with your rights (--isolation unsafe)")
    return lines
