"""`grv calibrate`: how often a check errs, from candidates whose labels are known."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
    from ..learning.gold import GoldCandidate

_NEEDED_WITHOUT_LABELS = 3  # calls on each candidate
_QUESTION = "Is this a right and complete answer to the problem?"


@command
def calibrate(
    verification: Verification,
    log: str = option(
        ...,
        "A log with a column text, or a ledger. Its labels are taken to be right; verdicts of"
        " checks that err are no labels.",
        argument=True,
        metavar="LOG",
    ),
    check: str = option(
        ...,
        "A JSON file with the check, or a file of problems with the checks of all.",
        "--check",
        metavar="FILE",
    ),
    out: str = option(
        ..., "The calibration, in JSON; with --ask, a ledger.", "--out", "-o", metavar="FILE"
    ),
    calls: int = option(
        3, "Calls on each candidate. Two or more show whether errors persist.", least=1, most=100
    ),
    most: int | None = option(None, "Use at most this many candidates per problem.", least=1),
    solutions: str | None = option(
        None,
        "A file of problems whose field solutions has right answers: further gold labels.",
        metavar="FILE",
    ),
    ask: int | None = option(
        None,
        "Call nothing. Put N candidates without a label into the ledger --out, for people: they"
        " label them blind with grv review or on the page of grv dashboard. Then give that ledger"
        " as LOG.",
        metavar="N",
        least=1,
    ),
    question: str = option(_QUESTION, "With --ask: what people are asked.", metavar="TEXT"),
    seed: int = option(0, "Seed of the order in which candidates are judged.", least=0),
) -> None:
    """Measure how often a check passes wrong candidates and fails right ones.

    Gold labels are those of the log: from tests, from answers, or from people. A flaky check needs
    none: if no candidate has a label, errors are found from disagreements between calls. A judge
    needs labels: it may make the same mistake every time.

    Candidates are judged in random order. Half of the calls name the verdicts in the other order:
    so position bias is measured. Each model of a panel is called, and their votes are counted
    together, because models err on the same candidates.

    The verdicts are written to FILE.calls as they come. The same command continues. Exit code 1:
    the check may not decide alone.

    \b
    grv calibrate log.parquet --check judge.json -o calibration.json
    {"kind": "judge", "model": "openai:gpt-4o-mini", "calibration": "calibration.json"}
    grv calibrate log.parquet --check judge.json --ask 100 -o labels.ledger
    grv review labels.ledger
    grv calibrate labels.ledger --check judge.json -o calibration.json
    """
    from ..backends.verifiers.calibration import Calibration
    from ..files import write_whole
    from ..learning.gold import gold_candidates

    check_outputs([out], [log, check, solutions], continued=ask is not None)
    records = _Records.read(check)
    candidates = gold_candidates(log, solutions)
    if most is not None:
        candidates = _first_of_each(candidates, most)
    if ask is not None:
        _ask(candidates, records, out, ask, question, seed)
        return
    problems = {each.problem: records.problem(each) for each in candidates}
    voices = _voices(next(iter(problems.values())))
    verdicts = _call_all(verification, problems, candidates, voices, f"{out}.calls", calls, seed)
    found = measured(next(iter(problems.values())), candidates, verdicts)
    write_whole(out, found.to_text())
    judged = _together(candidates, verdicts, voices)
    say(*_told(found, judged, voices, verification.wrong), f"{out}: the calibration")
    reason = Calibration.read(out).why_not_alone()
    if reason:
        say(f"it may not decide alone: {reason}", _ADVICE)
        raise typer.Exit(1)


_ADVICE = (
    'put a surer check behind it: {"kind": "first", "checks": [THIS CHECK, A SURER ONE]} verifies'
    " only what this one passes"
)


def _first_of_each(candidates: Sequence[GoldCandidate], most: int) -> list[GoldCandidate]:
    """The first candidates of each problem."""
    counts: dict[str, int] = {}
    chosen = []
    for candidate in candidates:
        counts[candidate.problem] = counts.get(candidate.problem, 0) + 1
        if counts[candidate.problem] <= most:
            chosen.append(candidate)
    return chosen


def _ask(
    candidates: Sequence[GoldCandidate],
    records: _Records,
    path: str,
    number: int,
    question: str,
    seed: int,
) -> None:
    """Put candidates into a ledger, where they wait for people."""
    from contextlib import closing

    from ..learning.gold import ask_people
    from ..ledger.opening import open_ledger

    rubric = (records.common or {}).get("rubric", [])
    record: dict[str, Any] = {"kind": "human", "question": question}
    record |= {"rubric": rubric} if rubric else {}
    with closing(open_ledger(path)) as ledger:
        added = ask_people(candidates, ledger, record, number, seed)
    say(
        f"{path}: {counted(added, 'candidate')} more for people to label: grv review {path}, or the"
        f" page of grv dashboard {path}"
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

    def problem(self, candidate: GoldCandidate) -> Problem:
        """The problem of a candidate, with its check."""
        from ..backends.protocols import Problem

        name = candidate.problem
        record = self.common if self.common is not None else self.by_problem.get(name)
        if record is None:
            raise UsageError(f"{self.path}: no check for problem {name}")
        bare = {field: value for field, value in record.items() if field != "calibration"}
        return Problem(name, candidate.prompt, bare)


@dataclass(frozen=True)
class _Voices:
    """Who is called: the check as it is, or each model of a panel alone.

    Attributes:
        models: the models of a panel; one name, which does not matter, for another check.
        votes: how many of them must pass a candidate.
    """

    models: tuple[str, ...]
    votes: int

    @property
    def is_panel(self) -> bool:
        return len(self.models) > 1

    def problem(self, problem: Problem, voice: int) -> Problem:
        """The problem with the check of one voice."""
        if not self.is_panel:
            return problem
        record = {name: value for name, value in problem.check.items() if name != "votes"}
        alone = {**record, "model": self.models[voice]}
        return replace(problem, check=alone)

    def together(self, said: Sequence[Verdict]) -> Verdict:
        """The verdict of all voices, as the check gives it."""
        if sum(each is Verdict.PASSED for each in said) >= self.votes:
            return Verdict.PASSED
        return Verdict.BROKEN if Verdict.BROKEN in said else Verdict.FAILED


def _voices(problem: Problem) -> _Voices:
    record = problem.check
    given = record.get("model")
    if record.get("kind") != "judge" or not isinstance(given, list):
        return _Voices(("",), 1)
    return _Voices(tuple(map(str, given)), int(record.get("votes", len(given) // 2 + 1)))


# By candidate and voice, the verdicts of the calls in their order.
_Verdicts = Mapping[tuple[tuple[str, str, int], int], Sequence[Verdict]]


def _call_all(
    verification: Verification,
    problems: Mapping[str, Problem],
    candidates: Sequence[GoldCandidate],
    voices: _Voices,
    record: str,
    calls: int,
    seed: int,
) -> _Verdicts:
    """Call the check on each candidate as often as is asked; what was called before counts."""
    from ..files import check_same

    verdicts: dict[tuple[tuple[str, str, int], int], list[Verdict]] = {
        (candidate.place, voice): []
        for candidate in candidates
        for voice in range(len(voices.models))
    }
    for call, verdict in _recorded(record):
        if call in verdicts:
            verdicts[call].append(verdict)
    texts = {candidate.place: candidate for candidate in candidates}
    order = random.Random(seed).sample([*verdicts], len(verdicts))
    total = calls * len(verdicts)
    done = sum(min(calls, len(each)) for each in verdicts.values())
    asked = {
        (name, voice): voices.problem(problem, voice)
        for name, problem in problems.items()
        for voice in range(len(voices.models))
    }
    with (
        verification.verifier(decides=False) as verifier,
        Path(record).open("a", encoding="utf-8") as file,
        progress("calling the check") as tell,
    ):
        for problem in asked.values():
            verifier.prepare(problem)
        for number in range(calls):
            verifier.forget()  # or it would answer from memory
            jobs = (
                ((place, voice), asked[place[0], voice], texts[place].text)
                for place, voice in order
                if len(verdicts[place, voice]) <= number
            )
            for (place, voice), judged in verifier.find_all(jobs, seed=number):
                verdict = judged.finding.verdict
                verdicts[place, voice].append(verdict)
                line = {"problem": place[0], "text": place[1], "number": place[2]}
                check_same(file.fileno(), record)
                file.write(json.dumps({**line, "voice": voice, "verdict": verdict.value}) + "\n")
                file.flush()
                done += 1
                tell(done, total)
    return verdicts


def _recorded(path: str) -> Iterator[tuple[tuple[tuple[str, str, int], int], Verdict]]:
    """The verdicts of an earlier run of the same command."""
    from ..files import json_lines

    if not Path(path).exists():
        return
    if not Path(path).is_file():
        raise UsageError(f"{path}: not a file; name another --out")
    for _, line in json_lines(path):
        match line:
            case {
                "problem": str(problem),
                "text": str(text),
                "number": int(number),
                "voice": int(voice),
                "verdict": str(verdict),
            } if verdict in {each.value for each in Verdict}:
                yield ((problem, text, number), voice), Verdict(verdict)
            case _:
                raise UsageError(f"{path}: this is no record of grv calibrate; name another --out")


def _judged(candidate: GoldCandidate, verdicts: Sequence[Verdict]) -> JudgedCandidate:
    """A candidate with the verdicts of its calls; those with an odd number were swapped."""
    from ..learning.calibrating import JudgedCandidate
    from ..theory.confirmations import CallCounts

    swapped = verdicts[1::2]
    return JudgedCandidate(
        candidate.problem,
        candidate.right,
        verdicts.count(Verdict.PASSED),
        sum(each is not Verdict.BROKEN for each in verdicts),
        len(candidate.text),
        CallCounts(swapped.count(Verdict.PASSED), swapped.count(Verdict.FAILED)),
    )


def _alone(
    candidates: Sequence[GoldCandidate], verdicts: _Verdicts, voice: int
) -> list[JudgedCandidate]:
    """The candidates as one voice has judged them."""
    return [_judged(each, verdicts[each.place, voice]) for each in candidates]


def _together(
    candidates: Sequence[GoldCandidate], verdicts: _Verdicts, voices: _Voices
) -> list[JudgedCandidate]:
    """The candidates as all voices together have judged them, call by call."""
    judged = []
    for candidate in candidates:
        own = [verdicts[candidate.place, voice] for voice in range(len(voices.models))]
        joint = [voices.together(said) for said in zip(*own, strict=False)]
        judged.append(_judged(candidate, joint))
    return judged


def measured(
    problem: Problem, candidates: Sequence[GoldCandidate], verdicts: _Verdicts
) -> Calibration:
    """The calibration of a problem's check, from all candidates."""
    from ..backends.verifiers.calibration import Calibration, PanelMember, binding
    from ..learning import calibrating

    bound = binding(problem)
    voices = _voices(problem)
    judged = _together(candidates, verdicts, voices)
    labelled = [each for each in judged if each.right is not None]
    members: tuple[PanelMember, ...] = ()
    if labelled:
        false_pass = calibrating.false_passes(labelled)
        false_fail = calibrating.false_failures(labelled)
        agreement = calibrating.agreement(labelled)
        persistent = calibrating.persistence(labelled)
        if voices.is_panel:
            members = tuple(
                PanelMember(
                    model, calibrating.false_passes(alone), calibrating.false_failures(alone)
                )
                for voice, model in enumerate(voices.models)
                if (alone := _alone(candidates, verdicts, voice))
            )
    else:
        rates = calibrating.flaky_rates(judged)
        if rates is None:
            raise UsageError(
                f"no candidate has a label: give at least --calls {_NEEDED_WITHOUT_LABELS}, and a"
                " check whose errors vary from call to call"
            )
        false_pass = rates.false_pass
        false_fail = rates.false_fail
        agreement = None
        persistent = 0.0
    is_judge = bool(bound.model)
    return Calibration(
        bound.check,
        bound.model,
        bound.prompt_sha256,
        false_pass,
        false_fail,
        agreement,
        persistent,
        calibrating.length_bias(judged),
        calibrating.position_bias(judged) if is_judge else None,
        members,
    )


def _told(
    found: Calibration, candidates: list[JudgedCandidate], voices: _Voices, wrong: float
) -> list[str]:
    """The calibration in words."""
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
    lines += _panel_lines(found, voices)
    if found.agreement is None:
        lines.append("errors that persist are not seen without labels")
    elif found.persistent is not None:
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
    bias = found.position_bias
    if bias is not None:
        meaning = "it prefers a place" if bias.is_certain else "no preference is seen"
        lines.append(
            f"passes more often by {bias.mean:+.3f} [{bias.low:+.3f}, {bias.high:+.3f}] if pass is"
            f" named first: {meaning}"
        )
    return lines + _label_lines(found, wrong)


def _panel_lines(found: Calibration, voices: _Voices) -> list[str]:
    """What each model of a panel does alone, and what their errors have in common."""
    from ..learning.calibrating import as_a_panel

    lines = [
        f"  {member.model} alone: passes a wrong one {_shown(member.false_pass)}, fails a right one"
        f" {member.false_fail.mean:.3f}"
        for member in found.members
    ]
    if found.members:
        product = as_a_panel([each.false_pass.mean for each in found.members], voices.votes)
        lines.append(
            f"  with {voices.votes} of {len(voices.models)} votes: {found.false_pass.mean:.3f} as"
            f" measured, {product:.3f} if the models erred independently"
        )
    return lines


def _label_lines(found: Calibration, wrong: float) -> list[str]:
    """How many labels are missing."""
    from ..backends.verifiers.calibration import LEAST_AGREEMENT, Rate
    from ..learning.calibrating import labels_needed
    from ..theory.confirmations import passes_needed

    lines = []
    agreement = found.agreement
    if agreement is not None and agreement.low < LEAST_AGREEMENT <= agreement.mean:
        errors = Rate(1 - agreement.mean, 1 - agreement.high, 1 - agreement.low, agreement.n)
        missing = labels_needed(errors, 1 - LEAST_AGREEMENT)
        if missing:
            lines.append(
                f"about {counted(missing, 'more label')} would show that it agrees with"
                f" {LEAST_AGREEMENT:.0%} of the labels, if the rate stays"
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
    elif not found.why_not_alone():
        needed = passes_needed(1, found.errors, wrong)
        lines.append(
            f"for --wrong {wrong:g}, the first candidate of a search needs"
            f" {counted(needed, 'pass')}"
        )
        missing = None
        if needed > 1:  # below this rate, one pass less is enough
            missing = labels_needed(found.false_pass, (wrong / 2) ** (1 / (needed - 1)))
        if missing:
            lines.append(
                f"about {counted(missing, 'more label')} of wrong candidates would show that one"
                " pass less is enough, if the rate stays"
            )
    return lines


def _shown(rate: Rate) -> str:
    if rate.n == 0:
        return "unknown: no labels"
    return f"{rate.mean:.3f} [{rate.low:.3f}, {rate.high:.3f}] on {counted(rate.n, 'candidate')}"
