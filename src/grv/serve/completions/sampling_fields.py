"""How candidates are sampled: the fields of a request that dialects share, by any name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...backends.generators.sampling import EFFORTS
from ...files import shown
from ..errors import wrong
from ..fields import number, whole

_MOST_STOPS = 16
_LONGEST_STOP = 1000  # characters: every call of the search sends them
_LARGEST_SEED = 2**62  # each candidate has a seed of its own, counted from this one


def randomness(given: Mapping[str, Any]) -> dict[str, Any]:
    """`temperature` and `top_p`, which all dialects call so."""
    return {
        "temperature": number(given, "temperature", least=0, most=100),
        "top_p": number(given, "top_p", least=1e-9, most=1),
    }


def tokens(given: Mapping[str, Any], most: int | None, *names: str) -> int | None:
    """The most tokens of a candidate: not more than the server's file allows."""
    for name in names:
        if (found := whole(given, name, most=most)) is not None:
            return found
    return None


def seed(given: Mapping[str, Any]) -> int | None:
    """The seed."""
    return whole(given, "seed", least=-_LARGEST_SEED, most=_LARGEST_SEED)


def effort(given: Any, name: str) -> str | None:
    """How much the model thinks."""
    if given is None:
        return None
    if not isinstance(given, str) or given not in EFFORTS:
        there = ", ".join(EFFORTS)
        raise wrong(name, f"must be one of {there}, not {shown(given)}")
    return given


def stops(given: Any, name: str) -> tuple[str, ...] | None:
    """The texts that end a candidate."""
    if given is None:
        return None
    texts = [given] if isinstance(given, str) else given
    fits = isinstance(texts, list) and len(texts) <= _MOST_STOPS
    if not fits or not all(isinstance(each, str) and each for each in texts):
        raise wrong(name, f"must be a text or a list of up to {_MOST_STOPS} texts")
    if any(len(each) > _LONGEST_STOP for each in texts):
        raise wrong(name, f"must have at most {_LONGEST_STOP} characters in each text")
    return tuple(texts)
