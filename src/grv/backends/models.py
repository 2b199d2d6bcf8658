"""Options that name the models of a live run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..core.errors import UsageError
from ..core.values import Cascade, Costs
from ..options import Family, from_table, option
from ..parsing import parse_cascade, parse_prices, parse_score
from .generators import DIALECTS, GENERATORS, INTERFACES, dialect_named
from .scorers import REWARDS, SCORERS
from .scorers.reward_options import Reward
from .table import forms

_NAME = re.compile(r"[\w.-]+")
# The fields of `Models` that ledgers of all versions store. Any other field is stored only if it is
# given, so that a field can be added: a search keeps its name, which is a hash of what is stored.
OLDEST = ("generator", "base_url", "score", "score_model", "score_step")
TABLES = "generators"  # the option with several generators by name


@dataclass(frozen=True, kw_only=True)
class NamedGenerator(Family):
    """One of several generators: a table `[generators.NAME]`."""

    generator: str = option(..., "The model that generates.", metavar="SPEC")
    costs: Costs = option(
        ...,
        "Cost of a candidate, of a verification, and of one that fails.",
        metavar="G,V[,F]",
        parse=parse_prices,
    )
    score: str | None = option(None, "What ranks its candidates.", metavar="SPEC")
    base_url: str | None = option(None, "Its endpoint.", metavar="URL")
    policy: str | None = option(None, "Decides within its search.", metavar="SPEC")


@dataclass(frozen=True)
class Generators:
    """Several generators by name."""

    by_name: Mapping[str, NamedGenerator] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.by_name)

    @property
    def specs(self) -> tuple[str, ...]:
        """All specifications that may name code."""
        each = [(own.generator, own.score, own.policy) for own in self.by_name.values()]
        return tuple(spec for specs in each for spec in specs if spec is not None)


def parse_generators(tables: Mapping[str, Any]) -> Generators:
    """The generators of a job file's tables, or of options given as NAME=VALUE."""
    found = {}
    for name, table in tables.items():
        if not _NAME.fullmatch(name):
            raise UsageError(f"{name!r} is no name: use letters, digits, - and .")
        if not isinstance(table, Mapping):
            raise UsageError(f"write a table for each generator, as in [generators.{name}]")
        if "generator" not in table:
            raise UsageError(f"{name} has no generator: give --generator {name}=SPEC")
        if "costs" not in table:
            raise UsageError(f"{name} has no costs: give --costs {name}=G,V")
        own = {str(each).replace("-", "_"): value for each, value in table.items()}
        try:
            found[name] = from_table(NamedGenerator, own)
        except UsageError as error:
            raise UsageError(f"{name}: {error}") from error
    return Generators(found)


@dataclass(frozen=True, kw_only=True)
class Models(Family):
    """Which models generate and score."""

    TITLE: ClassVar[str] = "Models and scores"

    generator: str = option(
        ...,
        f"The model that generates: {', '.join(forms(GENERATORS))}.",
        metavar="SPEC",
        code=True,
        named=TABLES,
    )
    base_url: str | None = option(
        None,
        "The address of the model's server; it ends where that of the official client does.",
        metavar="URL",
        named=TABLES,
        essential=True,
    )
    score: str = option(
        "auto",
        f"What ranks candidates: {', '.join(forms(SCORERS))}. auto takes log-probabilities if the"
        " server returns them. If not, it trains a score on the verdicts in this run's ledger; the"
        " first 6 problems have none. Or cascade(logprob, score:URL, top=4,"
        " cost=0.5): every candidate gets the first score; before each verification the best 4 also"
        " get the second score, for 0.5 each.",
        metavar="SPEC",
        parse=parse_score,
        code=True,
        named=TABLES,
    )
    score_model: str | None = option(
        None, "The model that a reward server with several models uses.", metavar="MODEL"
    )
    score_url: str | None = option(
        None,
        "The address of a judge's server. By default it is that of the generator, if both have the"
        " same interface, or else the provider's own.",
        metavar="URL",
    )
    score_step: str = option(
        "", "The token at which a process reward model reads its rewards, as in <extra_0>."
    )
    alike: str | None = option(
        None,
        "Another score, as in --score. If a candidate fails, varied and learned expect others with"
        " exactly the same number to fail too. A trained score uses it as a feature.",
        metavar="SPEC",
        code=True,
    )
    reward: Reward = field(default_factory=Reward)

    def __post_init__(self) -> None:
        super().__post_init__()
        given = (*self.scores, self.alike)
        kinds = [each.partition(":")[0] for each in given if each is not None]
        if "trained" in kinds[1:]:
            raise UsageError("a trained score must be the first one: --score trained:LEDGER")
        if self.score_url is not None and "judge" not in kinds:
            raise UsageError("--score-url needs a judge: --score judge:MODEL")
        if "auto" in kinds[1:]:
            raise UsageError("auto must be the first score: it may stand for a trained one")
        if self.reward != Reward() and not {*kinds} & {*REWARDS}:
            flag = min(self.reward.changed()).replace("_", "-")
            addresses = ", ".join(f"{each}:URL" for each in REWARDS)
            raise UsageError(f"--{flag} needs a reward model: --score {addresses}")

    @property
    def scores(self) -> tuple[str, str | None]:
        """The first score, and the second one of a cascade."""
        first, second, _ = parse_cascade(self.score) or (self.score, None, None)
        return first, second

    def whole_score(self, score: str) -> str:
        """The score; a judge without an interface gets that of the generator.

        With an address of its own, it is OpenAI's, which most servers speak.
        """
        name, _, argument = score.partition(":")
        own = self.generator.partition(":")[0]
        is_named = ":" in argument and argument.partition(":")[0] in DIALECTS
        if name != "judge" or is_named or own not in DIALECTS or self.score_url is not None:
            return score
        return f"judge:{own}:{argument}"

    def judge_url(self, score: str) -> str | None:
        """The address of the server that a score asks; None is the provider's own."""
        name, _, argument = self.whole_score(score).partition(":")
        if self.score_url is not None or name != "judge":
            return self.score_url or self.base_url
        dialect, colon, _ = argument.partition(":")
        if not colon or dialect not in DIALECTS:
            return self.base_url
        own = self.generator.partition(":")[0]
        is_same = own in INTERFACES and dialect_named(own).service == dialect_named(dialect).service
        return self.base_url if is_same else None

    @property
    def cascade(self) -> Cascade | None:
        """How the second score is used."""
        found = parse_cascade(self.score)
        return None if found is None else found[2]
