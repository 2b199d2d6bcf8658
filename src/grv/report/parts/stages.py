"""Which stage of a verification pays for itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ...logs.log import LoggedProblem
from ...logs.stages import LoggedStage
from ...theory.stages import least_spared
from .. import columns as c
from ..part import Dataset, Part, RowCollector, TableSchema
from ..table import Column

_MOST = 30  # stages that are shown, those that cost most
_COST = "the mean cost of a run; from a ledger in dollars, or in seconds if no stage has a price"

STAGES = TableSchema(
    name="stages",
    title="Which stage of a verification pays for itself?",
    caption="A stage that refutes only what a later one would refute too pays if and only if the"
    " share that it refutes exceeds its share of the price of what follows, up to the next failure."
    " That price is measured on the candidates that the stage passes and that fail later. A stage"
    " that alone can fail a candidate is needed, whatever it costs. Candidates with the same key"
    " share one verification.",
    alt="A table of stages.",
    columns=(
        c.LOG,
        c.text("stage", "stage", "the test or the check; a test by its place in the check"),
        c.number("runs", "runs", "how often it ran"),
        c.percent("refutes", "refutes", "the share of these runs that failed the candidate"),
        Column("cost", "cost", "cost", _COST, digits=4),
        c.percent("share", "of the price", "its share of what all verifications cost"),
        Column("spared", "spared", "cost", "the later stages, up to the next failure", digits=4),
        Column("least", "pays from", "cost", "what these must cost so that it pays", digits=4),
        c.text("words", "in words", "whether it pays for itself"),
    ),
)


@dataclass
class StageCount:
    """What a stage did in all verifications of a log.

    Attributes:
        runs: how often it ran.
        failures: how often it failed the candidate.
        cost: of all its runs.
        followed: what came after it, for each candidate that it passed and that failed later.
        left: for each candidate that it failed, what all stages cost that did not run, if there are
            any.
    """

    runs: int = 0
    failures: int = 0
    cost: float = 0.0
    followed: list[float] = field(default_factory=list)
    left: list[float] = field(default_factory=list)

    @property
    def refutes(self) -> float:
        """The share of runs that failed the candidate."""
        return self.failures / self.runs

    @property
    def mean_cost(self) -> float:
        """The mean cost of a run."""
        return self.cost / self.runs

    @property
    def mean_spared(self) -> float | None:
        """What later stages would have cost a candidate that it refuted, in the mean.

        A later stage would have failed it too, so not all of them would have run. If nothing that
        the stage passes fails later, all of them count. None if no stage follows.
        """
        known = self.followed or self.left
        return sum(known) / len(known) if known else None

    @property
    def words(self) -> str:
        """Whether it pays for itself."""
        least = least_spared(self.refutes, self.mean_cost)
        if least is None:
            return "refutes nothing: needed only if it can"
        if not self.mean_cost:
            return "free"
        spared = self.mean_spared
        if spared is None:
            return "needed: nothing follows that could fail the candidate"
        pays = "pays" if spared > least else "does not pay"
        return f"{pays}: what follows must cost more than {least:.3g}, and costs {spared:.3g}"


def counted_stages(problems: tuple[LoggedProblem, ...]) -> dict[str, StageCount]:
    """The stages of all problems, by name."""
    found: dict[str, StageCount] = defaultdict(StageCount)
    for problem in problems:
        listed = list(_verifications(problem))
        costs: dict[str, list[float]] = defaultdict(list)
        for stages in listed:
            for stage in stages:
                costs[stage.name].append(stage.cost)
        means = {name: sum(each) / len(each) for name, each in costs.items()}
        for stages in listed:
            has_failed = any(stage.failed for stage in stages)
            for place, stage in enumerate(stages):
                count = found[stage.name]
                count.runs += 1
                count.cost += stage.cost
                if stage.failed:
                    count.failures += 1
                    ran = {each.name for each in stages}
                    rest = means.keys() - ran
                    if rest:
                        count.left.append(sum(means[name] for name in rest))
                elif has_failed:
                    count.followed.append(sum(each.cost for each in stages[place + 1 :]))
    return dict(found)


def _verifications(problem: LoggedProblem) -> Iterator[tuple[LoggedStage, ...]]:
    """The stages of each verification that ran: a log has them for all candidates that share it."""
    if problem.stages is None:
        return
    is_shared = problem.shared if problem.shared is not None else np.zeros(len(problem))
    keys = problem.keys if problem.keys is not None else np.full(len(problem), -1)
    seen: set[int] = set()
    for stages, shared, key in zip(problem.stages, is_shared, keys.tolist(), strict=True):
        if stages and not shared and key not in seen:
            yield stages
            if key >= 0:
                seen.add(key)


def add_log(rows: RowCollector, dataset: Dataset) -> None:
    """One row per stage."""
    found = counted_stages(dataset.log.problems)
    if not found:
        text = "the log has no column stage_costs, which grv collect writes."
        rows.note(STAGES, f"{dataset.name}: {text}")
        return
    total = sum(count.cost for count in found.values())
    dearest = sorted(found, key=lambda name: -found[name].cost)[:_MOST]
    for name in [name for name in found if name in dearest]:
        count = found[name]
        rows.add(
            STAGES,
            dataset.name,
            name,
            count.runs,
            count.refutes,
            count.mean_cost,
            count.cost / total if total else 0.0,
            count.mean_spared,
            least_spared(count.refutes, count.mean_cost),
            count.words,
        )
    if len(found) > _MOST:
        rows.note(STAGES, f"{dataset.name}: the {_MOST} of {len(found)} stages that cost most.")


PART = Part("advice", (STAGES,), of_log=add_log, needs_pass=False)
