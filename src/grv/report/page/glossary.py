"""What the names on a page mean, in a sentence each."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...core.errors import UsageError
from ...policies import POLICIES, spec, summary

_BASELINES = {
    "hindsight": "Knows all verdicts: the cheapest pair for each trial. A baseline, not a policy.",
    "adaptive-all": "adaptive, paying for whole steps, as the published experiments do.",
    "uniform-matched": "One pair for all problems: the best that costs no more than adaptive.",
}
_DIFFICULTY = re.compile(r"difficulty-\d+")
_NOTIONS = (
    ("pair", "the number of candidates to generate, and the number of the best to verify"),
    ("trial", "one problem, with its candidates in one random order"),
    ("resample", "problems drawn again with replacement, to see what chance could change"),
    ("AUC", "the probability that a candidate that passes outscores one that fails; 0.5 is chance"),
)


def meaning(policy: str) -> str:
    """What a row of a comparison is; empty for an unknown name."""
    if _DIFFICULTY.fullmatch(policy):
        return "knows pass rates: K groups of similar problems, each with its own pair"
    try:
        name, _, _ = spec.split(policy)
    except UsageError:
        return ""
    return _BASELINES.get(name) or (summary(POLICIES[name]) if name in POLICIES else "")


def meaning_of_prices(costs: str) -> str:
    """What a price list is."""
    if costs == "measured":
        return "the cost of each candidate, as recorded in the log"
    generate, _, verify = costs.partition(",")
    return f"{generate} to generate (and score) a candidate, {verify} to verify one"


def glossary(policies: Iterable[str], costs: Iterable[str]) -> list[tuple[str, str]]:
    """Names and meanings: price lists, policies, notions. Difficulty groups are one entry."""
    found = {f"costs {each}": meaning_of_prices(each) for each in costs}
    for policy in policies:
        name = "difficulty-K" if _DIFFICULTY.fullmatch(policy) else policy
        found.setdefault(name, meaning(policy))
    return [*((name, text) for name, text in found.items() if text), *_NOTIONS]
