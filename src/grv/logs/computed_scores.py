"""Scores that are computed from the candidates, for files that have none.

`logprob` is the mean log-probability of the tokens, `length` prefers shorter texts, and `votes`
counts the candidates of a problem with the same key.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ..backends.protocols import LARGEST_SCORE
from ..files import is_number
from .lookup import look_up

COMPUTED = ("logprob", "length", "votes")
LOGPROBS = ("logprobs", "token_logprobs")  # a list of numbers, one per token
VOTES_NOTE = (
    "score_votes counts all candidates of the log that have the same key. A live search has fewer"
    " to count, so its votes are a worse score."
)


def length_of(entry: Mapping[str, Any], names: Sequence[str]) -> float | None:
    """Minus the number of characters of the text; None without a text."""
    text = look_up(entry, names)
    return -float(len(text)) if isinstance(text, str) and text.strip() else None


def logprob_of(entry: Mapping[str, Any]) -> float | None:
    """The mean log-probability of the tokens; None if there are none."""
    values = look_up(entry, LOGPROBS)
    if isinstance(values, Mapping):  # as OpenAI's API has them: {"content": [{"logprob": ...}]}
        content = values.get("content")
        tokens = content if isinstance(content, list) else []
        values = [each.get("logprob") for each in tokens if isinstance(each, Mapping)]
    if not isinstance(values, list) or not values:
        return None
    if not all(is_number(value) and abs(value) <= LARGEST_SCORE for value in values):
        return None
    return math.fsum(values) / len(values)


def votes(problems: Sequence[Any], keys: Sequence[str | None]) -> list[float | None]:
    """For each candidate, how many of its problem have its key; None without a key.

    >>> votes(["a", "a", "a", "b"], ["x", "x", None, "x"])
    [2.0, 2.0, None, 1.0]
    """
    counts = Counter(zip(problems, keys, strict=True))
    pairs = zip(problems, keys, strict=True)
    return [None if key is None else float(counts[problem, key]) for problem, key in pairs]
