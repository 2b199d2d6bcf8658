"""Reviewers and their tokens, from the environment variable GRV_REVIEWERS.

    GRV_REVIEWERS="ann:TOKEN bob:TOKEN"

A file of clients may name reviewers too, with `review = true`. Only hashes of tokens are kept.
"""

from __future__ import annotations

import hmac
import os
import re
from collections.abc import Mapping

from ...core.errors import UsageError
from ..clients import hash_of

VARIABLE = "GRV_REVIEWERS"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_SHORTEST = 16


class Reviewers:
    """Finds the reviewer with a token, by its hash."""

    def __init__(self, tokens: Mapping[str, str]) -> None:
        self._digests = {name: hash_of(token) for name, token in tokens.items()}

    def __bool__(self) -> bool:
        return bool(self._digests)

    def __call__(self, digest: bytes) -> str | None:
        """The name of the reviewer whose token has this hash; None if there is none.

        The time tells nothing about tokens.
        """
        found = None
        for name, own in self._digests.items():
            if hmac.compare_digest(own, digest):
                found = name
        return found


def from_environment() -> Reviewers:
    """The reviewers that the environment names. No message repeats a token."""
    tokens: dict[str, str] = {}
    for word in re.split(r"[\s,]+", os.environ.get(VARIABLE, "").strip()):
        if not word:
            continue
        name, colon, token = word.partition(":")
        if not colon or not _NAME.fullmatch(name):
            raise UsageError(f"{VARIABLE}: expected NAME:TOKEN, separated by spaces")
        if len(token) < _SHORTEST:
            raise UsageError(
                f"{VARIABLE}: the token of {name} needs at least {_SHORTEST} characters"
            )
        tokens[name] = token
    return Reviewers(tokens)
