"""verl: `compute_score` for its reward managers.

    reward.custom_reward_function.path=pkg://grv.adapters.verl
    reward.custom_reward_function.name=compute_score

The check comes from `data_source` and `ground_truth`: rows of `grv collect --format rlvr`, answers
in mathematics, and tests of programs, as `grv problems verl` reads them. verl calls `compute_score`
for many completions at once; its manager `batch`, before version 0.9, calls `compute_scores` with
all of a step. Every completion gets its own verdict; nothing is chosen. verl has no missing score:
a broken verdict counts 0 and is marked, so that it can be masked.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..backends.problems.verl import check_of
from ..backends.verifiers.options import Verification
from ..core.values import Verdict
from ..runtime.rewards import Completion, StepVerifier

Score = dict[str, float]


async def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
    *,
    verdicts: str | None = None,
    deadline: float = math.inf,
    workers: int | None = None,
    **_: Any,
) -> Score:
    """The score of one completion: 1 if it passes, and whether its verdict is broken.

    Args:
        data_source: whose rule decides; `grv` if the ground truth is a check.
        solution_str: what the model wrote.
        ground_truth: the answer, the tests, or a check as JSON text.
        extra_info: further fields of the row, which are not used.
        verdicts: a file that remembers verdicts. This and the following come from verl's
            `reward_kwargs`.
        deadline: the seconds for this completion.
        workers: the checks that run at once.

    Examples:
        >>> import asyncio
        >>> from grv.adapters.verl import compute_score
        >>> asyncio.run(compute_score("openai/gsm8k", "#### 4", "4"))
        {'score': 1.0, 'broken': 0.0}
    """
    verifier = _verifier(verdicts, deadline, workers)
    (verdict,) = await verifier.verify([_completion(data_source, solution_str, ground_truth)])
    return _score(verdict)


def compute_scores(
    data_sources: Sequence[str],
    solution_strs: Sequence[str],
    ground_truths: Sequence[Any],
    extra_infos: Sequence[Any] = (),
    *,
    verdicts: str | None = None,
    deadline: float = math.inf,
    workers: int | None = None,
    **_: Any,
) -> list[Score]:
    """The scores of all completions of a step, in their order, for verl's batch manager.

    The arguments are those of `compute_score`, in the plural; the deadline is for all of them.
    """
    given = map(_completion, data_sources, solution_strs, ground_truths)
    return [_score(each) for each in _verifier(verdicts, deadline, workers).verify_now([*given])]


@functools.cache
def _verifier(verdicts: str | None, deadline: float, workers: int | None) -> StepVerifier:
    """The verifier of this process with these settings."""
    return StepVerifier(Verification(workers=workers), verdicts, deadline)


def _completion(source: str, text: str, truth: Any) -> Completion:
    return Completion(text, check_of(source, truth))


def _score(verdict: Verdict) -> Score:
    passed = verdict is Verdict.PASSED
    return {"score": float(passed), "broken": float(verdict is Verdict.BROKEN)}
