"""Past problems, from which a prior is learned. Some of their candidates may have no label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..backends.protocols import LARGEST_SCORE
from ..core.errors import UsageError
from ..logs.columns import LABEL, WHOLE
from ..logs.log import Log, LoggedProblem
from ..logs.readers import REQUIRED, read_log
from ..logs.tables import ColumnTable, read_table

# amounts between these are money; others come from a ledger or a log that was edited
_LEAST = 1e-100
_MOST = 1e100


@dataclass(frozen=True)
class Payments:
    """What was paid for a past problem, if that was measured: sums, and for how many.

    Attributes:
        generated: the candidates.
        generating: what they cost.
        verified: the verifications.
        verifying: what they cost.
        failed: those of them that are known to have failed.
        failing: what these cost.
    """

    generated: int = 0
    generating: float = 0.0
    verified: int = 0
    verifying: float = 0.0
    failed: int = 0
    failing: float = 0.0

    def __add__(self, other: Payments) -> Payments:
        return Payments(
            self.generated + other.generated,
            self.generating + other.generating,
            self.verified + other.verified,
            self.verifying + other.verifying,
            self.failed + other.failed,
            self.failing + other.failing,
        )

    @property
    def prices(self) -> tuple[float, ...]:
        """The mean prices, as `Prior.prices`; none if the sums cannot be amounts of money."""
        sums = (self.generating, self.verifying, self.failing)
        counts = (self.generated, self.verified, self.failed)
        if not all(_LEAST < paid < _MOST for paid in sums) or not all(counts):
            return ()
        return tuple(paid / count for paid, count in zip(sums, counts, strict=True))


def mean_prices(problems: Sequence[PastProblem]) -> tuple[float, ...]:
    """The mean prices of the problems whose payments were measured; empty if there are none."""
    paid = [problem.payments for problem in problems if problem.payments is not None]
    return sum(paid, Payments()).prices


@dataclass(frozen=True, eq=False)
class PastProblem:
    """One past problem.

    Attributes:
        id: the problem's id.
        scores: `[candidates]`, -inf if there is no score.
        passed: `[candidates]`, whether the candidate is known to have passed.
        labelled: `[candidates]`, whether the candidate has a label.
        keys: `[candidates]`, key numbers, -1 for none; None without keys.
        refuted: `[candidates]`, whether it was refuted without verification; None if none was.
        alike: `[candidates]`, as `LoggedProblem.alike`; None if that is the score.
        payments: what was paid for them; None if that was not measured.
    """

    id: str
    scores: NDArray[np.float64]
    passed: NDArray[np.bool_]
    labelled: NDArray[np.bool_]
    keys: NDArray[np.int32] | None = None
    refuted: NDArray[np.bool_] | None = None
    alike: NDArray[np.float64] | None = None
    payments: Payments | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "scores", _bounded(self.scores))
        if self.alike is not None:
            object.__setattr__(self, "alike", _bounded(self.alike))

    @property
    def ties(self) -> NDArray[np.float64]:
        """`[candidates]`: where equal, a failure of one is evidence against the other."""
        return self.scores if self.alike is None else self.alike

    @property
    def verified(self) -> NDArray[np.bool_]:
        """`[candidates]`, whether a verification gave the label."""
        return self.labelled if self.refuted is None else self.labelled & ~self.refuted

    @property
    def is_hopeless(self) -> bool:
        """Whether all candidates have a label, and none passed."""
        return bool(self.labelled.all() and not self.passed.any())


def _bounded(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores whose differences are finite; NaN is no score.

    A file or an older ledger may have others.
    """
    scores = np.where(np.isnan(scores), -np.inf, scores) if np.isnan(scores).any() else scores
    large = np.isfinite(scores) & (np.abs(scores) > LARGEST_SCORE)
    return np.where(large, np.sign(scores) * LARGEST_SCORE, scores) if large.any() else scores


@dataclass(frozen=True, eq=False)
class History:
    """Past problems, all with the same score.

    Attributes:
        problems: the problems that can be learned from.
        score: the name of the score.
        alike: the name of the column of `PastProblem.alike`; empty if it is the score.
        sources: the files.
        left_out: the number of problems whose candidates all have a label and all failed.
    """

    problems: tuple[PastProblem, ...]
    score: str
    sources: tuple[str, ...] = ()
    left_out: int = 0
    alike: str = ""

    @classmethod
    def of(cls, problems: Sequence[PastProblem], score: str, sources: Sequence[str]) -> History:
        """A history of the problems that can be learned from."""
        kept = [p for p in problems if p.labelled.any() and not p.is_hopeless]
        if not any(problem.labelled.any() for problem in problems):
            raise UsageError(
                f"{', '.join(sources) or 'the history'}: no candidate has a label, so there is"
                " nothing to learn from"
            )
        if not any(problem.passed.any() for problem in kept):
            raise UsageError(
                f"{', '.join(sources) or 'the history'}: no candidate passed, so there is nothing"
                " to learn from"
            )
        hopeless = sum(problem.is_hopeless for problem in problems)
        return cls(tuple(kept), score, tuple(sources), hopeless)


def past(log: Log, labelled: Mapping[str, NDArray[np.bool_]] | None = None) -> list[PastProblem]:
    """The problems of a log. By default all candidates have a label.

    If labels are missing, keys are dropped: a log ignores a key if some of its candidates passed
    and others are not known to have passed.
    """
    if labelled is None and log.is_bounded:
        labelled = {
            p.id: np.ones(len(p), dtype=np.bool_) if p.unknown is None else ~p.unknown
            for p in log.problems
        }
    if labelled is None:
        every = [np.ones(len(problem), dtype=np.bool_) for problem in log.problems]
        return [
            PastProblem(
                problem.id,
                problem.scores,
                problem.passed,
                known,
                problem.keys,
                problem.refuted,
                problem.alike,
                _payments(problem, known),
            )
            for problem, known in zip(log.problems, every, strict=True)
        ]
    return [
        PastProblem(
            problem.id,
            problem.scores,
            problem.passed,
            labelled[problem.id],
            refuted=problem.refuted,
            alike=problem.alike,
            payments=_payments(problem, labelled[problem.id]),
        )
        for problem in log.problems
    ]


def _payments(problem: LoggedProblem, labelled: NDArray[np.bool_]) -> Payments | None:
    """What the candidates of a logged problem cost, if the log says it."""
    generating = problem.generate_costs
    verifying = problem.verify_costs
    if generating is None or verifying is None:
        return None
    verified = labelled if problem.refuted is None else labelled & ~problem.refuted
    failed = verified & ~problem.passed
    return Payments(
        len(problem),
        float(generating.sum()),
        int(verified.sum()),
        float(verifying[verified].sum()),
        int(failed.sum()),
        float(verifying[failed].sum()),
    )


def read_past(
    path: str, score: str | None = None, alike: str | None = None
) -> tuple[list[PastProblem], str]:
    """The problems of a file, with or without labels, and the name of the score."""
    log = read_log(path, score=score, unlabelled="fail", alike=alike)
    if not log.unlabelled:
        return past(log), log.score
    return past(log, _labelled(read_table(path))), log.score


def _labelled(table: ColumnTable) -> dict[str, NDArray[np.bool_]]:
    """Which candidates of each problem have a label; the table has been checked before."""
    rows: dict[str, list[tuple[int, bool]]] = {}
    columns = [table.columns[name].tolist() for name in REQUIRED]
    refuted = table.columns.get("refuted", np.zeros(table.rows, dtype=np.bool_)).tolist()
    for problem, candidate, label, sure in zip(*columns, refuted, strict=True):
        known = LABEL.read(label) >= 0 or LABEL.read(sure) > 0
        rows.setdefault(str(problem), []).append((int(WHOLE.read(candidate)), known))
    return {id: np.array([known for _, known in sorted(each)]) for id, each in rows.items()}
