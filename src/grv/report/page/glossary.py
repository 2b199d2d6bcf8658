"""What the names on a page mean, in a sentence each."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...core.errors import UsageError
from ...policies import DEFAULT, POLICIES, spec

_DEFAULT = next(name for name, kind in POLICIES.items() if type(DEFAULT) is kind)
_MEANINGS = {
    "hindsight": "knows all verdicts: the cheapest pair for each trial; a yardstick, no policy",
    "adaptive": "the paper's policy: generate, verify the best, and double what is spent",
    "adaptive-all": "adaptive, paying for whole steps, as the published experiments do",
    "verify-all": "verifies every candidate in order of arrival; needs no score",
    "uniform-matched": "one pair for all problems: the best that costs no more than adaptive does",
    "alternate": "in turns: one candidate verified unseen, and the best of several",
    "balanced": "verifies the best as soon as generating has cost as much as a verification",
    "hedged": "verifies the best of several, and at times one unseen",
    "varied": "alternate, but a score that has failed makes way for another",
    "learned": "verifies what history says is worth it, with a guard",
    "known-law": "knows how scores and verdicts are distributed, and needs no more",
    "centered-star": "verifies the fewest that tell whether any candidate of a batch passes",
    "fixed": "generates so many and verifies the best so many, whatever the problem",
    "threshold": "verifies a candidate if its score reaches the threshold, as they arrive",
    "default": f"what grv solve uses: {_DEFAULT}",
}
_DIFFICULTY = re.compile(r"difficulty-\d+")
_NOTIONS = (
    ("pair", "how many candidates to generate, and how many of the best to verify"),
    ("trial", "one problem, with its candidates arriving in one random order"),
    ("resample", "the problems drawn anew, with repetition: what chance could have changed"),
    ("AUC", "the chance that a candidate that passes outscores one that fails; 0.5 is chance"),
)


def meaning(policy: str) -> str:
    """What a row of a comparison is; nothing where nobody knows."""
    if _DIFFICULTY.fullmatch(policy):
        return "knows pass rates: so many groups of like problems, each with its own pair"
    try:
        name, _, _ = spec.split(policy)
    except UsageError:
        return ""
    return _MEANINGS.get(name, "")


def meaning_of_prices(costs: str) -> str:
    """What a price list is."""
    if costs == "measured":
        return "what the log says that each candidate cost"
    generate, _, verify = costs.partition(",")
    return f"{generate} to generate (and score) a candidate, {verify} to verify one"


def glossary(policies: Iterable[str], costs: Iterable[str]) -> list[tuple[str, str]]:
    """Names and meanings, price lists first; the groups of difficulty are one entry."""
    found = [(f"costs {each}", meaning_of_prices(each)) for each in costs]
    for policy in policies:
        name = "difficulty-K" if _DIFFICULTY.fullmatch(policy) else policy
        if meaning(policy) and name not in dict(found):
            found.append((name, meaning(policy)))
    return [*found, *_NOTIONS]
