"""TRL: a reward for `GRPOTrainer` and its siblings that verifies every completion of a step.

    GRPOTrainer(..., reward_funcs=reward())

A completion that passes its check has the reward 1.0, one that fails 0.0, and one whose verdict is
broken None, which TRL leaves out of the reward. Nothing is chosen, so gradients are not biased:
every completion gets its own true verdict, and only those with equal texts or keys share one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..backends.problems.verl import check_of
from ..backends.verifiers.options import Verification
from ..core.errors import UsageError
from ..core.values import Verdict
from ..runtime.rewards import Check, Completion, StepVerifier, check_in, joined, prompt_of, text_of

_REWARDS = {Verdict.PASSED: 1.0, Verdict.FAILED: 0.0, Verdict.BROKEN: None}


@dataclass
class VerifiedReward:
    """An asynchronous reward function, which TRL calls once per step. It can be pickled.

    Attributes:
        checks: what every completion must pass, besides the check of its row.
        column: the column of the dataset with the check of each row.
        verifier: gives the verdicts.
    """

    checks: tuple[Check, ...] = ()
    column: str = "check"
    verifier: StepVerifier = field(default_factory=StepVerifier)
    __name__ = "verified"  # in TRL's metrics

    async def __call__(
        self, prompts: Sequence[Any], completions: Sequence[Any], **columns: Any
    ) -> list[float | None]:
        """One reward per completion, in their order."""
        given = [
            Completion(text_of(said), self._check(place, columns), prompt_of(asked))
            for place, (asked, said) in enumerate(zip(prompts, completions, strict=True))
        ]
        return [_REWARDS[verdict] for verdict in await self.verifier.verify(given)]

    # TRL before 1.16 asks `inspect.iscoroutinefunction`, which knows functions only: an object is
    # one of these if it has their attributes.
    __code__ = __call__.__code__
    __defaults__ = __kwdefaults__ = None

    def _check(self, place: int, columns: Mapping[str, Any]) -> Check:
        """All checks of a row: those of the reward, and its own."""
        own: list[Check] = []
        if self.column in columns:
            own.append(check_in(columns[self.column][place], f"column {self.column}"))
        elif "reward_model" in columns:
            source = columns["data_source"][place] if "data_source" in columns else ""
            own.append(check_of(source, columns["reward_model"][place]["ground_truth"]))
        checks = [*self.checks, *own]
        if not checks:
            raise UsageError(
                f"the dataset has no column {self.column}: give checks to reward(), or name the"
                " column with the checks"
            )
        return joined(checks)

    def close(self) -> None:
        """Stop the workers."""
        self.verifier.close()


def reward(
    *checks: Check,
    column: str = "check",
    verdicts: str | Path | None = None,
    deadline: float = math.inf,
    judged: bool = False,
    verification: Verification = Verification(),  # noqa: B008 (a frozen value)
) -> VerifiedReward:
    """A reward function for TRL.

    Args:
        checks: what every completion must pass.
        column: the column with the check of each row, as JSON text or as a record. Rows of
            `grv collect --format rlvr` have theirs in `reward_model`.
        verdicts: a file that remembers verdicts, so that a step that is repeated after a stop runs
            nothing again.
        deadline: the seconds for one step. Completions without a verdict by then have no reward.
        judged: whether checks that err may decide.
        verification: how checks are run.

    Examples:
        >>> import asyncio
        >>> from grv.adapters.trl import reward
        >>> verified = reward({"kind": "math", "answer": "4"})
        >>> asyncio.run(verified(prompts=["2 + 2 ="] * 2, completions=["4", "5"]))
        [1.0, 0.0]
    """
    verifier = StepVerifier(verification, verdicts, deadline, judged)
    return VerifiedReward(checks, column, verifier)
