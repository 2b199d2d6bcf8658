"""Reads priors from files, and policies whose specification names such a file."""

from __future__ import annotations

from functools import lru_cache

from ..core.errors import UsageError
from ..core.search import Policy
from ..policies import spec
from ..policies.learned.prior import Prior, from_text


def load_prior(path: str) -> Prior:
    """The prior in a file that `grv learn` wrote."""
    try:
        with open(path, "rb") as file:
            content = file.read()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(
            f"{path}: cannot be read: {reason}; make a prior with grv learn"
        ) from error
    return _parsed(path, content)


@lru_cache(maxsize=32)
def _parsed(path: str, content: bytes) -> Prior:
    return from_text(content.decode(errors="replace"), path)


def parse_policy(text: str) -> Policy:
    """The policy that a specification names; `learned('prior.json')` reads the file."""
    return spec.parse(text, load=load_prior)
