"""The columns of a log about the stages of a verification: which one failed, and what each cost."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from ..backends.protocols import Finding, Stage
from ..core.values import Verdict
from ..ledger.entries import Found
from .prices import Meter
from .record import SearchRecord

NAMES = ("failed_stage", "stage_costs")
REFUTATION = "refutation"  # the name of the stage in which a candidate is refuted for free


def stage_columns(record: SearchRecord, id: int, meter: Meter | None) -> dict[str, str]:
    """The columns of the candidate whose verification gave a verdict; empty without stages.

    With a meter, the costs add up to what the verification cost. Without one, they are the stages'
    own dollars, or seconds if no stage has a price.
    """
    if record.refuted(id):
        return {"failed_stage": REFUTATION, "stage_costs": json.dumps([[REFUTATION, 0.0]])}
    found = record.found.get(id)
    stages = () if found is None else _stages(found)
    if found is None or not stages:
        return {}
    total = None if meter is None else record.cost_of_verifying(meter, id)
    costs = _costs(stages, total)
    listed = [[stage.name, cost] for stage, cost in zip(stages, costs, strict=True)]
    failed = [stage.name for stage in stages if stage.verdict is Verdict.FAILED]
    is_passed = found.verdict is Verdict.PASSED
    return {
        "failed_stage": "" if is_passed or not failed else failed[-1],
        "stage_costs": json.dumps(listed),
    }


def _stages(found: Found) -> Sequence[Stage]:
    return Finding(found.verdict, evidence=found.evidence).stages


def _costs(stages: Sequence[Stage], total: float | None) -> list[float]:
    """What each stage cost: its own dollars, and its share of the rest by its seconds."""
    own = [stage.cost for stage in stages if stage.cost is not None]
    if total is None:
        if own:
            return [stage.cost or 0.0 for stage in stages]
        return [stage.seconds for stage in stages]
    known = math.fsum(own)
    if known > total:  # another price list, or a verdict that cost nothing
        return [(stage.cost or 0.0) * total / known for stage in stages]
    seconds = math.fsum(stage.seconds for stage in stages)
    shares = [stage.seconds / seconds if seconds else 1 / len(stages) for stage in stages]
    rest = total - known
    return [(stage.cost or 0.0) + rest * share for stage, share in zip(stages, shares, strict=True)]
