"""Options that name the models of a live run."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.values import Cascade
from ..options import Family, option
from ..parsing import parse_cascade, parse_score


@dataclass(frozen=True, kw_only=True)
class Models(Family):
    """Which models generate and score."""

    generator: str = option(
        ..., "openai:MODEL, openai-text:MODEL, embedded or embedded-chat.", metavar="SPEC"
    )
    base_url: str | None = option(None, "An OpenAI-compatible endpoint.", metavar="URL")
    score: str = option(
        "logprob",
        "logprob, logprob-sum, logprob-min, length, judge:MODEL, score:URL, classify:URL,"
        " pooling:URL; or cascade(logprob, score:URL, top=4, cost=0.5): before one of the best 4 is"
        " verified, the second score ranks them, for 0.5 each.",
        metavar="SPEC",
        parse=parse_score,
    )
    score_model: str | None = option(
        None, "The model that a reward server with several models uses.", metavar="MODEL"
    )
    score_step: str = option(
        "", "The token at which a process reward model reads its rewards, as in <extra_0>."
    )

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
