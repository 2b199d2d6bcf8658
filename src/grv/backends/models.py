"""Options that name the models of a live run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ..core.errors import UsageError
from ..core.values import Cascade
from ..options import Family, option
from ..parsing import parse_cascade, parse_score
from .scorers.reward_options import Reward

GENERATORS: Mapping[str, str] = MappingProxyType(
    {
        "openai:MODEL": "a chat model behind an OpenAI-compatible endpoint",
        "openai-text:MODEL": "plain completions of such an endpoint, for base models",
        "embedded": "SmolLM2-135M on this machine, continuing the prompt's text",
        "embedded-chat": "the same, with the prompt as a user's message",
        "FILE.py:NAME": "a function of your own",
    }
)
SCORERS: Mapping[str, str] = MappingProxyType(
    {
        "logprob": "the mean log-probability of a candidate's tokens",
        "logprob-sum": "the sum of them",
        "logprob-min": "the minimum of them",
        "length": "shorter candidates first",
        "judge:MODEL": "a chat model asked yes or no: the log-probability of yes against no",
        "score:URL": "a reward model behind vLLM's /score",
        "classify:URL": "a reward model behind vLLM's /classify",
        "pooling:URL[:last|min|mean|product]": "one behind /pooling, and how steps combine",
        "trained:LEDGER": "fitted to the verdicts of a ledger; or a file of grv learn --scorer",
        "FILE.py:NAME": "a function of your own",
    }
)
REWARDS = ("score", "classify", "pooling")  # the scorers that are reward models


@dataclass(frozen=True, kw_only=True)
class Models(Family):
    """Which models generate and score."""

    generator: str = option(
        ..., f"The model that generates: {', '.join(GENERATORS)}.", metavar="SPEC", code=True
    )
    base_url: str | None = option(None, "An OpenAI-compatible endpoint.", metavar="URL")
    score: str = option(
        "logprob",
        f"What ranks candidates: {', '.join(SCORERS)}. Or cascade(logprob, score:URL, top=4,"
        " cost=0.5): every candidate gets the first score; before each verification the best 4 also"
        " get the second score, for 0.5 each.",
        metavar="SPEC",
        parse=parse_score,
        code=True,
    )
    score_model: str | None = option(
        None, "The model that a reward server with several models uses.", metavar="MODEL"
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
        if self.reward != Reward() and not {*kinds} & {*REWARDS}:
            flag = min(self.reward.changed()).replace("_", "-")
            forms = ", ".join(f"{each}:URL" for each in REWARDS)
            raise UsageError(f"--{flag} needs a reward model: --score {forms}")

    @property
    def scores(self) -> tuple[str, str | None]:
        """The first score, and the second one of a cascade."""
        first, second, _ = parse_cascade(self.score) or (self.score, None, None)
        return first, second

    @property
    def cascade(self) -> Cascade | None:
        """How the second score is used."""
        found = parse_cascade(self.score)
        return None if found is None else found[2]
