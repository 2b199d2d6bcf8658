"""PrimeIntellect's `verifiers`: a `Rubric` of its version 0.3 and older, and rewards of its tasks.

    vf.SingleTurnEnv(dataset=dataset, rubric=rubric())

Since version 0.4 a task has methods with `@vf.reward`; theirs is `verified`:

    @vf.reward
    async def passes(self, trace):
        return await verified(trace, self.data.check)

Both count 1.0 for a pass and 0.0 for a failure. A broken verdict is an error: a task's trace then
has no reward, and a rubric logs it and counts 0.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..backends.verifiers.options import Verification
from ..core.errors import UsageError, VerifierError
from ..core.values import Verdict
from ..runtime.rewards import Check, Completion, StepVerifier, check_in, joined, prompt_of, text_of


def rubric(
    *checks: Check,
    verdicts: str | Path | None = None,
    deadline: float = math.inf,
    verification: Verification = Verification(),  # noqa: B008 (a frozen value)
) -> Any:
    """A `Rubric` whose reward is the verdict of a check.

    Args:
        checks: what every completion must pass, besides the check in the field `info` of its row
            (`info["check"]`, a record or JSON text).
        verdicts: a file that remembers verdicts.
        deadline: the seconds for one completion.
        verification: how checks are run.
    """
    made = getattr(importlib.import_module("verifiers"), "Rubric", None)
    if made is None:
        raise UsageError("verifiers has no rubrics since version 0.4: use verified() in a task")
    verifier = StepVerifier(verification, verdicts, deadline)

    async def passes(prompt: Any, completion: Any, info: Any = None, **_: Any) -> float:
        own = info.get("check") if isinstance(info, Mapping) else None
        every = [*checks, *([] if own is None else [check_in(own, "info.check")])]
        if not every:
            raise UsageError("a row has no check: give checks to rubric(), or info with a check")
        return await _value(
            verifier, Completion(text_of(completion), joined(every), prompt_of(prompt))
        )

    return made(funcs=[passes])


async def verified(trace: Any, check: Check | str, *, verdicts: str | None = None) -> float:
    """The reward of a task's trace: whether the last reply passes a check.

    Args:
        trace: a `Trace` of verifiers.
        check: a record or JSON text.
        verdicts: a file that remembers verdicts.
    """
    replies = trace.assistant_messages
    text = trace.root_reply
    if text is None:
        text = (replies[-1].content or "") if replies else ""
    completion = Completion(text, check_in(check, "check"))
    return await _value(_verifier(verdicts), completion)


@functools.cache
def _verifier(verdicts: str | None) -> StepVerifier:
    """The verifier of this process."""
    return StepVerifier(verdicts=verdicts)


async def _value(verifier: StepVerifier, completion: Completion) -> float:
    (verdict,) = await verifier.verify([completion])
    if verdict is Verdict.BROKEN:
        raise VerifierError("the verdict is broken: it says nothing about the completion")
    return float(verdict is Verdict.PASSED)
