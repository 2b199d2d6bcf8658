"""The examples on pages of the guide, for tests that run them where their frameworks are."""

from __future__ import annotations

import re

from support.environments import ROOT

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: str, language: str = "python") -> list[str]:
    """The Python on a page of the guide, or what it has of another language, block by block."""
    text = (ROOT / "docs" / "guide" / page).read_text(encoding="utf-8")
    return [content for found, content in _FENCE.findall(text) if found == language]
