"""The embedded model as a judge: the second reward of the small run."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from typing import Any

from grv import Draft, Problem
from grv.backends.generators.embedded import serve
from grv.scorers import Judge


class LocalJudge:
    """Asks a server of the embedded model, which listens on loopback and only knows our key."""

    def __init__(self) -> None:
        self._server: Any = None
        self._judge: Judge | None = None

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Any]:
        """One score per draft."""
        if self._judge is None:
            key = secrets.token_urlsafe()
            os.environ["OPENAI_API_KEY"] = key  # of this process only
            self._server = serve(keys=[key])
            self._judge = Judge("smollm2", base_url=f"{self._server.listening_address}/v1")
        return await self._judge.score(problem, drafts)


judge = LocalJudge()
