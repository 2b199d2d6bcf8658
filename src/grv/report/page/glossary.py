"""What the names on a page mean, in a sentence each."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable

from ...core.errors import UsageError
from ...policies import DEFAULT, POLICIES, spec

_DEFAULT = next(name for name, kind in POLICIES.items() if type(DEFAULT) is kind)
_MEANINGS = {
    "hindsight": "knows all verdicts: the cheapest pair for each trial; a baseline, not a policy",
    "adaptive": "the paper's policy: generate, verify the best, and double the spending",
    "adaptive-all": "adaptive, paying for whole steps, as in the published experiments",
    "verify-all": "verifies every candidate in order of arrival; needs no score",
    "uniform-matched": "one pair for all problems: the best that costs no more than adaptive",
    "alternate": "alternates: verifies one candidate blindly, then the best of several",
    "balanced": "verifies the best whenever generation has cost as much as a verification",
    "hedged": "verifies the best of several, and sometimes one blindly",
    "varied": "alternate, but after failures at one score it tries other scores",
    "learned": "verifies the candidates that past data says are worth it, with a guard",
    "known-law": "knows the distribution of scores and verdicts; the best policy for it",
    "centered-star": "verifies the fewest candidates that tell whether any of a batch passes",
    "fixed": "generates m candidates and verifies the best k, on every problem",
    "threshold": "verifies each candidate whose score reaches the threshold, as it arrives",
    "default": f"the policy of grv solve: {_DEFAULT}",
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
    described = inspect.getdoc(POLICIES[name]) if name in POLICIES else ""
    return _MEANINGS.get(name) or (described or "").partition("\n")[0]


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
