"""Verified completions over HTTP, for every OpenAI client; and review by people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import loader

if TYPE_CHECKING:
    from .review.desk import Desk as Desk
    from .review.desk import Refused as Refused

_HOMES = {
    "Desk": "review.desk",
    "Refused": "review.desk",
}

__all__ = [
    "Desk",
    "Refused",
]

__getattr__ = loader(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
