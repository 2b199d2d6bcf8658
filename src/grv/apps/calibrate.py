"""`grv calibrate`: how often a check errs, from candidates whose labels are known."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..backends.verifiers.options import Verification
from ..core.errors import UsageError
from ..core.values import Verdict
from ..options import option
from ..text import counted
from .console import check_outputs, progress, say
from .options.command import command

if TYPE_CHECKING:
    from ..backends.protocols import Problem
    from ..backends.verifiers.calibration import Calibration, Rate
    from ..learning.calibrating import JudgedCandidate
    from ..learning.trained.texts import PastTexts

_NEEDED_WITHOUT_LABELS = 3  # calls on each candidate


@command
def calibrate(
    verification: Verification,
    log: str = option(
        ...,
        "A log with a column text, or a ledger. Its labels are taken to be right.",
        argument=True,
        metavar="LOG",
    ),
    check: str = option(
        ...,
        "A JSON file with the check, or a file of problems with the checks of all.",
        "--check",
        metavar="FILE",
    ),
    out: str = option(..., "The calibration, in JSON.", "--out", "-o", metavar="FILE"),
    calls: int = option(
        3, "Calls on each candidate. Two or more show whether errors persist.", least=1, most=100
    ),
    most: int | None = option(None, "Use at most this many candidates per problem.", least=1),
) -> None:
    """Measure how often a check passes wrong candidates and fails right ones.

    Gold labels are those of the log: from tests, from answers, or from people. A flaky check needs
    none: if no candidate has a label, errors are found from disagreements between calls.

    The verdicts are written to FILE.calls as they come. The same command continues. Exit code 1:
    the check may not decide alone.

    \b
    grv calibrate log.parquet --check judge.json -o calibration.json
    {"kind": "judge", "model": "openai:gpt-4o-mini", "calibration": "calibration.json"}
    """
    from ..backends.verifiers.calibration import Calibration
    from ..files import write_whole
    from ..learning.trained.texts import read_texts

    record = f"{out}.calls"
    check_outputs([out], [log, check])
    past = read_texts(log)
    records = _Records.read(check)
    problems = {each.id: records.problem(each) for each in past}
    candidates = _judge(verification, problems, past, record, calls, most)
    first = next(iter(problems.values()))
    found = measured(first, candidates)
    write_whole(out, found.to_text())
    say(*_told(found, candidates, verification.wrong), f"{out}: the calibration")
    reason = Calibration.read(out).why_not_alone()
    if reason:
        say(f"it may not decide alone: {reason}", _ADVICE)
        raise typer.Exit(1)


_ADVICE = (
    'put a surer check behind it: {"kind": "first", "checks": [THIS CHECK, A SURER ONE]} verifies'
    " only what this one passes"
)


@dataclass(frozen=True)
class _Records:
    """The record of the check: one for all problems, or one for each."""

    path: str
    common: Mapping[str, Any] | None
    by_problem: Mapping[str, Mapping[str, Any]]

    @classmethod
    def read(cls, path: str) -> _Records:
        from ..backends.problems.files import read_problems
        from ..files import parse_json, read_bytes

        with contextlib.suppress(ValueError):
            data = parse_json(read_bytes(path))
            if isinstance(data, dict) and "kind" in data:
                return cls(path, data, {})
        return cls(path, None, {each.id: each.check for each in read_problems(path)})

    def problem(self, past: PastTexts) -> Problem:
        """A past problem with its check."""
        from ..backends.protocols import Problem

        record = self.common if self.common is not None else self.by_problem.get(past.id)
        if record is None:
            raise UsageError(f"{self.path}: no check for problem {past.id}")
        bare = {name: value for name, value in record.items() if name != "calibration"}
        return Problem(past.id, past.prompt, bare)


@dataclass
class _Counts:
    """The verdicts on one candidate so far."""

    verdicts: Counter[Verdict] = field(default_factory=Counter)

    @property
    def calls(self) -> int:
        return self.verdicts.total()


def _judge(
    verification: Verification,
    problems: Mapping[str, Problem],
    past: list[PastTexts],
    record: str,
    calls: int,
    most: int | None,
) -> list[JudgedCandidate]:
    """Call the check on each candidate as often as is asked; what was called before counts."""
    from ..learning.calibrating import JudgedCandidate

    texts = {
        (problem.id, number): arrival.text
        for problem in past
        for number, arrival in enumerate(problem.arrivals[:most])
    }
    counts = {place: _Counts() for place in texts}
    for place, verdict in _recorded(record):
        if place in counts:
            counts[place].verdicts[verdict] += 1
    total = calls * len(texts)
    done = sum(min(calls, each.calls) for each in counts.values())
    with (
        verification.verifier(decides=False) as verifier,
        Path(record).open("a", encoding="utf-8") as file,
        progress("calling the check") as tell,
    ):
        for problem in problems.values():
            verifier.prepare(problem)
        for number in range(calls):
            verifier.forget()  # or it would answer from memory
            jobs = (
                (place, problems[place[0]], text)
                for place, text in texts.items()
                if counts[place].calls <= number
            )
            for place, judged in verifier.find_all(jobs):
                verdict = judged.finding.verdict
                counts[place].verdicts[verdict] += 1
                line = {"problem": place[0], "candidate": place[1], "verdict": verdict.value}
                file.write(json.dumps(line) + "\n")
                file.flush()
                done += 1
                tell(done, total)
    candidates = []
    for each in past:
        labels = zip(each.passed.tolist(), each.verified.tolist(), strict=True)
        for number, (passed, is_known) in enumerate(list(labels)[:most]):
            verdicts = counts[each.id, number].verdicts
            given = verdicts[Verdict.PASSED] + verdicts[Verdict.FAILED]
            length = len(texts[each.id, number])
            right = bool(passed) if is_known else None
            candidates.append(
                JudgedCandidate(each.id, right, verdicts[Verdict.PASSED], given, length)
            )
    return candidates


def _recorded(path: str) -> Iterator[tuple[tuple[str, int], Verdict]]:
    """The verdicts of an earlier run of the same command."""
    from ..files import json_lines

    if not Path(path).exists():
        return
    for _, line in json_lines(path):
        match line:
            case {"problem": str(problem), "candidate": int(number), "verdict": str(verdict)}:
                yield (problem, number), Verdict(verdict)
            case _:
                raise UsageError(f"{path}: this is no record of grv calibrate; name another --out")


def measured(problem: Problem, candidates: list[JudgedCandidate]) -> Calibration:
    """The calibration of a problem's check, from all candidates."""
    from ..backends.verifiers.calibration import Calibration, Rate, binding
    from ..learning import calibrating

    bound = binding(problem)
    labelled = [each for each in candidates if each.right is not None]
    if labelled:
        false_pass = calibrating.false_passes(labelled)
        false_fail = calibrating.false_failures(labelled)
        agreement = calibrating.agreement(labelled)
        persistent = calibrating.persistence(labelled)
    else:
        errors = calibrating.errors_without_labels(candidates)
        if errors is None:
            raise UsageError(
                f"no candidate has a label: give at least --calls {_NEEDED_WITHOUT_LABELS}, and a"
                " check whose errors vary from call to call"
            )
        n = len(candidates)
        false_pass = Rate(errors.false_pass, 0.0, min(1.0, 2 * errors.false_pass), n)
        false_fail = Rate(errors.false_fail, 0.0, min(1.0, 2 * errors.false_fail), n)
        agreement = None
        persistent = 0.0
    return Calibration(
        bound.check,
        bound.model,
        bound.prompt_sha256,
        false_pass,
        false_fail,
        agreement,
        persistent,
        calibrating.length_bias(candidates),
    )


def _told(found: Calibration, candidates: list[JudgedCandidate], wrong: float) -> list[str]:
    """The calibration in words."""
    from ..learning.calibrating import labels_needed

    problems = len({each.problem for each in candidates})
    calls = sum(each.calls for each in candidates)
    lines = [
        f"{counted(len(candidates), 'candidate')} of {counted(problems, 'problem')},"
        f" {counted(calls, 'call')}",
        f"passes a wrong candidate: {_shown(found.false_pass)}",
        f"fails a right candidate:  {_shown(found.false_fail)}",
    ]
    if found.agreement is not None:
        lines.append(f"agrees with the labels:   {_shown(found.agreement)}")
    if found.persistent is not None:
        lines.append(
            f"errors of two calls on one candidate correlate by {found.persistent:.2f}"
            + (": asking again does not help" if found.is_persistent else "")
        )
    if found.length_bias is not None and abs(found.length_bias) > 0.5:
        longer = "longer" if found.length_bias > 0 else "shorter"
        lines.append(
            f"wrong candidates that pass are {longer} by {abs(found.length_bias):.1f} deviations:"
            " it judges by length"
        )
    if found.is_persistent:
        missing = labels_needed(found.false_pass, wrong)
        if missing is None:
            lines.append(
                f"no number of labels will show at most {wrong:g} wrong passes: it has more"
            )
        elif missing:
            lines.append(
                f"about {counted(missing, 'more label')} of wrong candidates would show at most"
                f" {wrong:g} wrong passes, if the rate stays"
            )
    return lines


def _shown(rate: Rate) -> str:
    if rate.n == 0:
        return "unknown: no labels"
    return f"{rate.mean:.3f} [{rate.low:.3f}, {rate.high:.3f}] on {counted(rate.n, 'candidate')}"
