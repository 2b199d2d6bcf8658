"""A log: scores and labels of many candidates of many problems, as typed arrays.

A missing score ranks last. A missing label is an error unless the caller accepts it. A key with
contradictory labels is not a class. `readers.py` reads files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .. import html
from ..core.errors import LogError, UsageError
from ..core.values import REFUTED_CODE, Measured

_SHOWN = 10  # problems that a notebook shows


@dataclass(frozen=True, eq=False)
class LoggedProblem:
    """The candidates of one problem, in order of their candidate number.

    Attributes:
        id: the problem's name.
        scores: `[candidates]`, -inf if unscored.
        passed: `[candidates]`, whether each passed.
        keys: `[candidates]` numbers of equivalence classes, -1 for none; or None without keys.
        unscored: the number of candidates without a score.
        contradictory: the names of keys with both labels, which are not classes.
        generate_costs: `[candidates]`, if the log has them.
        verify_costs: `[candidates]`, if the log has them.
        second: `[candidates]`, second scores for a cascade, -inf if unscored.
        refuted: `[candidates]`, whether each was refuted without verification; or None if none is.
        shared: `[candidates]`, whether each has a verdict that cost nothing in the recorded run; or
            None if none has.
        unknown: `[candidates]`, whether the label is missing; `passed` is False there. None if all
            labels are known.
        alike: `[candidates]`; a failure is evidence against candidates with the same number. None
            if that is the score.
        generators: `[candidates]`, the number of the generator in `Log.generators`; None unless the
            log was read by generator.
        expected: what a search for the problem is expected to cost, if the log predicts it.
        stages: `[candidates]`, the stages of each verification, None for none; or None if the log
            has no stages.
    """

    id: str
    scores: NDArray[np.float64]
    passed: NDArray[np.bool_]
    keys: NDArray[np.int32] | None = None
    unscored: int = 0
    contradictory: tuple[str, ...] = ()
    generate_costs: NDArray[np.float64] | None = None
    verify_costs: NDArray[np.float64] | None = None
    second: NDArray[np.float64] | None = None
    refuted: NDArray[np.bool_] | None = None
    unknown: NDArray[np.bool_] | None = None
    alike: NDArray[np.float64] | None = None
    generators: NDArray[np.int32] | None = None
    shared: NDArray[np.bool_] | None = None
    expected: float | None = None
    stages: NDArray[np.object_] | None = None

    def __post_init__(self) -> None:
        flags = (self.passed, self.refuted, self.unknown, self.generators, self.shared)
        prices = (self.generate_costs, self.verify_costs)
        more = [each for each in (self.second, self.alike) if each is not None]
        columns = (*flags, self.keys, *prices, self.stages, *more)
        if any(each is not None and len(each) != len(self.scores) for each in columns):
            raise UsageError(f"the columns of problem {self.id!r} differ in length")
        if any(np.isnan(scores).any() for scores in (self.scores, *more)):
            raise UsageError(f"a score of problem {self.id!r} is NaN; use -inf for no score")
        if self.refuted is not None and (self.refuted & self.passed).any():
            raise UsageError(f"a candidate of problem {self.id!r} passed although it is refuted")

    def __len__(self) -> int:
        return len(self.scores)

    def __repr__(self) -> str:
        counts = f"{len(self)} candidates, {int(self.passed.sum())} passed"
        return f"<LoggedProblem {self.id!r}: {counts}>"

    def codes(self, *, keyed: bool) -> NDArray[np.int32] | None:
        """The classes that a search uses: `REFUTED_CODE` for refuted candidates, -1 for none.

        Other keys count only if `keyed`. None if there is no class.
        """
        keys = self.keys if keyed else None
        if self.refuted is None:
            return keys
        others = np.int32(-1) if keys is None else keys
        return np.where(self.refuted, np.int32(REFUTED_CODE), others)

    @property
    def solvable(self) -> bool:
        """Whether any candidate is known to have passed."""
        return bool(self.passed.any())

    @property
    def pass_rate(self) -> float:
        """The share of candidates that passed."""
        return float(self.passed.mean())

    @cached_property
    def levels(self) -> NDArray[np.int32]:
        """`[candidates]`: 0 for the best score, 1 for the next distinct one, and so on."""
        return _levels(self.scores)

    @cached_property
    def alike_levels(self) -> NDArray[np.int32]:
        """`[candidates]`: the same of `alike`."""
        return self.levels if self.alike is None else _levels(self.alike)


def _levels(scores: NDArray[np.float64]) -> NDArray[np.int32]:
    _, inverse = np.unique(-scores, return_inverse=True)
    return inverse.astype(np.int32)


@dataclass(frozen=True, eq=False)
class Log:
    """Problems with their candidates, sorted by problem id.

    Attributes:
        problems: at least one.
        score: the name of the score that ranks.
        second: the name of the second score, for cascades, if there is one.
        path: the file, for messages.
        unlabelled: the number of candidates without a label.
        bare: the names of problems without candidates, or whose candidates were all dropped.
        reading: the options that it was read with.
        unpriced: the number of unknown costs; each is replaced by the mean of the others.
        censored: whether a search chose what to generate and to verify.
        alike: the name of the column of `LoggedProblem.alike`; None if it is the score.
        generators: the names of the generators, if the log was read by generator.
        published: the number of candidates whose label is that of the paper's published code, for
            comparison with the paper only.
        judged: the number of candidates whose label is that of a check that errs.

    Examples:
        >>> import grv
        >>> columns = {
        ...     "problem": ["a", "a"],
        ...     "candidate": [0, 1],
        ...     "score": [0.1, 0.9],
        ...     "passed": [0, 1],
        ... }
        >>> log = grv.Log.from_frame(columns)
        >>> log.candidates, len(log.solvable)
        (2, 1)
    """

    problems: tuple[LoggedProblem, ...]
    score: str = "score"
    path: str = ""
    unlabelled: int = 0
    bare: tuple[str, ...] = ()
    reading: Mapping[str, str | bool | None] = field(default_factory=dict)
    second: str | None = None
    unpriced: int = 0
    censored: bool = False
    alike: str | None = None
    generators: tuple[str, ...] = ()
    published: int = 0
    judged: int = 0
    _by_id: dict[str, LoggedProblem] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        given: object = self.problems
        if not isinstance(given, Sequence) or not all(
            isinstance(each, LoggedProblem) for each in given
        ):
            raise UsageError(
                f"a log is made of LoggedProblem values, not of a {type(given).__name__}:"
                " Log.load reads a file, Log.from_frame a data frame"
            )
        if not self.problems:
            raise UsageError(f"{self.path or 'the log'} has no problems")
        by_id = {problem.id: problem for problem in self.problems}
        if len(by_id) < len(self.problems):
            raise UsageError(f"{self.path or 'the log'} has two problems with the same name")
        if not all(map(len, self.problems)):
            raise UsageError(f"{self.path or 'the log'} has a problem without candidates")
        object.__setattr__(self, "_by_id", by_id)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        score: str | None = None,
        second: str | None = None,
        rewards: str | os.PathLike[str] | None = None,
        unlabelled: Literal["error", "fail", "drop", "bound"] = "error",
        alike: str | None = None,
    ) -> Log:
        """Read a Parquet, JSON-lines or CSV file, or a pair of published ones; see `read_log`.

        If a log is censored, missing labels are no error: `compare` gives bounds for it.
        """
        from .readers import read_log

        paired = None if rewards is None else os.fspath(rewards)
        return read_log(
            os.fspath(path),
            score=score,
            second=second,
            rewards=paired,
            unlabelled=unlabelled,
            may_bound=True,
            alike=alike,
        )

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        score: str | None = None,
        second: str | None = None,
        unlabelled: Literal["error", "fail", "drop", "bound"] = "error",
        alike: str | None = None,
    ) -> Log:
        """The log in a pandas or polars data frame or a pyarrow table.

        It has the columns of a log file, one row per candidate; other columns do not matter.

        Args:
            frame: the data frame, or a mapping of column names to values.
            score: the column that ranks; optional if there is only one.
            second: the column with second scores, for cascades.
            unlabelled: what to do about candidates without a label, as in `load`.
            alike: the column of `LoggedProblem.alike`, if it is not the score.
        """
        from .readers import log_of_frame

        return log_of_frame(frame, score=score, second=second, unlabelled=unlabelled, alike=alike)

    def __repr__(self) -> str:
        counts = f"{len(self.problems)} problems, {len(self.solvable)} solvable"
        return f"<Log {self.path!r}: {counts}, {self.candidates} candidates, score {self.score}>"

    def _repr_html_(self) -> str:
        counts = [
            ("problems", len(self.problems) + len(self.bare)),
            ("solvable", len(self.solvable)),
            ("candidates", self.candidates),
            ("without a label", self.unlabelled),
            ("without a score", sum(problem.unscored for problem in self.problems)),
            ("score", self.score),
            ("keys", "yes" if self.has_keys else "no"),
            ("censored", "yes" if self.censored else "no"),
        ]
        shown = [(p.id, len(p), int(p.passed.sum())) for p in self.problems[:_SHOWN]]
        more = len(self.problems) - len(shown)
        return html.whole(
            html.title(f"Log: {self.path}" if self.path else "Log"),
            html.table([name for name, _ in counts], [[value for _, value in counts]], left=0),
            html.table(("problem", "candidates", "known passes"), shown),
            html.paragraph(f"and {more} more problems") if more else "",
        )

    def __getitem__(self, id: str) -> LoggedProblem:
        return self._by_id[id]

    @property
    def candidates(self) -> int:
        """The number of candidates."""
        return sum(len(problem) for problem in self.problems)

    @property
    def solvable(self) -> tuple[LoggedProblem, ...]:
        """The problems with at least one pass."""
        return tuple(problem for problem in self.problems if problem.solvable)

    @property
    def unsolvable(self) -> tuple[LoggedProblem, ...]:
        """The problems without a pass."""
        return tuple(problem for problem in self.problems if not problem.solvable)

    @property
    def mean_costs(self) -> tuple[float | None, float | None]:
        """The mean costs of generating and of verifying a candidate; None if not in the log."""

        def mean(columns: Sequence[NDArray[np.float64] | None]) -> float | None:
            known = [column for column in columns if column is not None]
            return float(np.concatenate(known).mean()) if known else None

        return (
            mean([problem.generate_costs for problem in self.problems]),
            mean([problem.verify_costs for problem in self.problems]),
        )

    @property
    def mean_failure_cost(self) -> float | None:
        """The mean cost of the verifications that failed; None if the log does not have it."""
        return self._mean_verify_cost(passed=False)

    @property
    def mean_pass_cost(self) -> float | None:
        """The mean cost of the verifications that passed; None if the log does not have it."""
        return self._mean_verify_cost(passed=True)

    def _mean_verify_cost(self, *, passed: bool) -> float | None:
        chosen = []
        for problem in self.problems:
            if problem.verify_costs is not None:
                wanted = problem.passed == passed
                for flags in (problem.refuted, problem.unknown):
                    wanted &= True if flags is None else ~flags
                chosen.append(problem.verify_costs[wanted])
        costs = np.concatenate(chosen) if chosen else np.array([])
        return float(costs.mean()) if len(costs) else None

    @property
    def measured(self) -> Measured:
        """Measured costs, with their means as the first estimates."""
        generate, verify = self.mean_costs
        if generate and verify:
            failure = self.mean_failure_cost or verify
            return Measured(generate, max(verify, failure), failure=failure)
        what, mean = ("verify_cost", verify) if generate else ("generate_cost", generate)
        wrong = "is missing" if mean is None else "is always 0"
        raise LogError(
            f"column {what!r} {wrong}: give first estimates, as in --costs measured:1,10",
            path=self.path,
        )

    @property
    def refuted(self) -> int:
        """The number of candidates that were refuted without verification."""
        columns = [problem.refuted for problem in self.problems]
        return sum(int(column.sum()) for column in columns if column is not None)

    @property
    def staged(self) -> int:
        """The number of candidates whose verification is recorded by its stages."""
        columns = [problem.stages for problem in self.problems if problem.stages is not None]
        return sum(sum(each is not None for each in column) for column in columns)

    def without_refutations(self) -> Log:
        """The log in which refuted candidates are verified, and fail, like others."""
        problems = tuple(replace(problem, refuted=None) for problem in self.problems)
        return replace(self, problems=problems, reading={**self.reading, "refute": False})

    @property
    def is_bounded(self) -> bool:
        """Whether labels are missing, so that costs can only be bounded."""
        return any(problem.unknown is not None for problem in self.problems)

    def completed(self, passed: bool) -> Log:
        """The log if all candidates without a label had passed, or had failed."""
        problems = tuple(
            problem
            if problem.unknown is None
            else replace(
                problem,
                passed=problem.passed | problem.unknown if passed else problem.passed,
                unknown=None,
            )
            for problem in self.problems
        )
        return replace(self, problems=problems)

    def require_labels(self) -> None:
        """Refuse a log with missing labels, for a caller that needs all of them."""
        if self.is_bounded:
            raise LogError(
                f"{self.unlabelled} candidates have no label, and this needs all labels: read the"
                " log with --unlabelled fail or drop",
                path=self.path,
            )

    @property
    def has_keys(self) -> bool:
        """Whether the log has keys."""
        return any(problem.keys is not None for problem in self.problems)


def classes(
    keys: Sequence[str | None], passed: NDArray[np.integer | np.bool_]
) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """The numbers of the classes of one problem, -1 for none; and the contradictory keys.

    A key whose candidates have both labels is not a class: its candidates get -1. Labels may also
    be -1 for unknown; a key with known and unknown labels is no class either.

    >>> classes(["a", "b", None, "b"], np.array([True, True, False, False]))
    (array([ 0, -1, -1, -1], dtype=int32), ('b',))
    """
    numbers: dict[str, int] = {}
    labels: dict[str, set[int]] = {}
    for key, label in zip(keys, passed.tolist(), strict=True):
        if key is not None:
            numbers.setdefault(key, len(numbers))
            labels.setdefault(key, set()).add(int(label))
    mixed = [key for key, seen in labels.items() if len(seen) > 1]
    for key in mixed:
        numbers[key] = -1
    contradictory = tuple(sorted(key for key in mixed if {0, 1} <= labels[key]))
    coded = [-1 if key is None else numbers[key] for key in keys]
    return np.array(coded, dtype=np.int32), contradictory
