"""The examples on pages of the guide, for tests that run them where their frameworks are."""

from __future__ import annotations

import re

from support.environments import ROOT

_FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> list[str]:
    """The Python on a page of the guide, one text for each block."""
    return _FENCE.findall((ROOT / "docs" / "guide" / page).read_text(encoding="utf-8"))
