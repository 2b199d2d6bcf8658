"""What the names on a page mean, in a sentence each."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...core.errors import UsageError
from ...policies import DEFAULT, POLICIES, spec, summary

_DEFAULT = next(name for name, kind in POLICIES.items() if type(DEFAULT) is kind)
_BASELINES = {
    "hindsight": "Knows all verdicts: the cheapest pair for each trial. A yardstick, not a policy.",
    "adaptive-all": "adaptive, paying for whole steps, as the published experiments do.",
    "uniform-matched": "One pair for all problems: the best that costs no more than adaptive.",
    "default": f"What grv solve uses: {_DEFAULT}.",
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
    return _BASELINES.get(name) or (summary(POLICIES[name]) if name in POLICIES else "")


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
