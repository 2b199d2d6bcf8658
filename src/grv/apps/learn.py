"""`grv learn`: a prior, or a score, from earlier logs and ledgers."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..core.errors import UsageError
from ..options import option
from ..parallel import Parallel
from ..text import counted
from .console import check_outputs, progress, say, status
from .options.command import command

if TYPE_CHECKING:
    from ..learning.history import History, PastProblem
    from ..learning.trained.texts import PastTexts
    from ..policies.learned.prior import Evidence, Prior

# fewer problems with a pass, or labels, are little evidence
FEW_PROBLEMS = 20
FEW_LABELS = 200


@command
def learn(
    parallel: Parallel,
    logs: tuple[str, ...] = option(
        ...,
        "Logs (Parquet, JSON lines or CSV), and ledgers of live runs.",
        argument=True,
        metavar="LOG...",
    ),
    out: str = option(..., "The prior or the scorer, in JSON.", "--out", "-o", metavar="FILE"),
    score: tuple[str, ...] = option(
        (),
        "The column that ranks candidates, or the scorer of a ledger. Repeatable: grv then learns a"
        " combination of the columns.",
        metavar="NAME",
    ),
    name: str | None = option(
        None, "The name of the score where the prior will be used.", metavar="NAME"
    ),
    alike: str | None = option(
        None,
        "A column of numbers: if a candidate fails, others with the same number are expected to"
        " fail too. Default: the score; for a combination, the column whose equal values agree most"
        " on labels. A ledger has its own.",
        metavar="COLUMN",
    ),
    scorer: bool = option(
        False,
        "Train a score on the candidates' texts and verdicts instead. A log needs a column text,"
        " and may have prompt, key and logprob. --score then names scores that it uses too.",
        "--scorer",
    ),
) -> None:
    """Learn from history when to verify: a prior for the policy learned. Or train a score.

    Labels may be missing: a live run stops at its first pass. A problem whose candidates are all
    labelled and all failed is left out.

    \b
    grv learn log.parquet --score score_reward -o prior.json
    grv compare other.parquet --score score_reward --policy "learned('prior.json')"
    grv learn answers.jsonl.ledger -o prior.json
    grv solve problems.jsonl --policy "learned('prior.json')" --generator openai:qwen2.5-coder
    grv learn log.parquet --score a --score b -o both.json
    grv compare other.parquet --score both.json --policy "learned('both.json')"
    grv learn answers.jsonl.ledger --scorer -o scorer.json
    grv solve problems.jsonl --score trained:scorer.json --generator openai:qwen2.5-coder
    """
    _check(logs, out, score, "scorer" if scorer else "prior")
    if scorer:
        if name is not None or alike is not None:
            raise UsageError("--name and --alike are for priors; leave them out with --scorer")
        _train(logs, score, out)
        return
    from ..files import write_whole

    with progress("learning") as tell:
        prior = _learned(logs, score, name, alike, tell, parallel.jobs)
    write_whole(out, prior.to_text())
    say(*_told(prior, out, prior.hash))


def _check(logs: Sequence[str], out: str, scores: Sequence[str], what: str) -> None:
    """Refuse files and scores that contradict each other, before any work."""
    check_outputs([out], logs)
    if len({os.path.realpath(path) for path in logs}) < len(logs):
        raise UsageError("the same file is given twice: its evidence would count twice")
    if not out.endswith(".json"):
        raise UsageError(f"{out}: the name of a {what} ends in .json")
    if len(set(scores)) < len(scores):
        raise UsageError("--score: the same score is given twice")


def _learned(
    logs: Sequence[str],
    scores: Sequence[str],
    name: str | None,
    alike: str | None,
    tell: Callable[[int, int], None],
    jobs: int | None,
) -> Prior:
    """The prior, from one score or from a combination of several."""
    from ..comparing.tune import learn as learn_prior
    from ..learning.score_combination import combine, combined_name, with_alike

    if len(scores) > 1:
        pasts = [_history(logs, each, alike).problems for each in scores]
        parts, problems = combine(list(scores), pasts)
        chosen = alike
        if chosen is None:
            chosen, problems = with_alike(scores, pasts, problems)
        history = _named(problems, name or combined_name(list(scores)), logs)
        history = dataclasses.replace(history, alike=chosen)
        return dataclasses.replace(learn_prior(history, tell, jobs=jobs), parts=parts)
    history = _history(logs, scores[0] if scores else None, alike)
    named = dataclasses.replace(history, score=name or history.score, alike=alike or "")
    return learn_prior(named, tell, jobs=jobs)


def _named(problems: Sequence[PastProblem], score: str, logs: Sequence[str]) -> History:
    from ..learning.history import History

    if problems and not any(x > -math.inf for each in problems for x in each.scores):
        raise UsageError(f"{', '.join(logs)}: no candidate has the score {score!r}")
    return History.of(problems, score, logs)


def _history(logs: Sequence[str], score: str | None, alike: str | None) -> History:
    """The history of one score over all files."""
    from ..learning.history import read_past
    from ..learning.ledger_history import ledger_past
    from ..ledger.address import OperatorAddress
    from ..ledger.opening import is_ledger

    problems: list[PastProblem] = []
    names: dict[str, str] = {}
    for path in map(OperatorAddress, logs):
        if is_ledger(path) and alike is not None:
            raise UsageError(f"{path}: a ledger has its own values of alike; leave out --alike")
        past, name = ledger_past(path, score) if is_ledger(path) else read_past(path, score, alike)
        problems.extend(past)
        names.setdefault(name, path)
    if len(names) > 1:
        listed = ", ".join(f"{name!r} in {path}" for name, path in names.items())
        raise UsageError(f"the files have different scores: {listed}; choose one with --score")
    return _named(problems, next(iter(names)), logs)


def _told(prior: Prior, out: str, hash: str) -> list[str]:
    """What was learned, and from how much evidence."""
    evidence = prior.evidence
    lines = [
        f"{out}: for the score {prior.score}, hash {hash}",
        f"evidence: {counted(evidence.problems, 'problem')}, {evidence.passed} of them with a pass;"
        f" {evidence.labels} labels of {evidence.candidates} candidates, worth"
        f" {math.floor(evidence.effective)} independent ones",
    ]
    if evidence.censored:
        lines.append(f"censored, some labels missing: {evidence.censored} problems")
    if evidence.left_out:
        lines.append(f"left out, all labels known and none passed: {evidence.left_out} problems")
    if prior.parts:
        weights = ", ".join(f"{part.weight:.2g} {part.score}" for part in prior.parts)
        lines.append(f"combination, on a common scale: {weights}")
    if prior.alike:
        lines.append(f"failures count against candidates with the same {prior.alike}")
    if prior.prices:
        generate, verify, failure = prior.prices
        lines.append(
            f"paid on average: {generate:.3g} for a candidate, {verify:.3g} for a verification,"
            f" {failure:.3g} for one that failed; --costs measured begins with these"
        )
    if few := _little(evidence):
        lines.append(f"little evidence: {few}; its estimates may be far off")
    lines.append(f"use it with --policy \"learned('{out}')\"")
    return lines


def _little(evidence: Evidence) -> str:
    """Why the evidence is too little; empty if it is enough."""
    if evidence.passed < FEW_PROBLEMS:
        return f"fewer than {FEW_PROBLEMS} problems with a pass"
    if evidence.effective < FEW_LABELS:
        return f"labels worth fewer than {FEW_LABELS}"
    return ""


def _train(logs: Sequence[str], given: Sequence[str], out: str) -> None:
    """Train a score, write it, and say what it is worth on problems that it was not fitted to."""
    from ..files import write_whole
    from ..learning.trained.fit import fit
    from ..learning.trained.texts import read_texts

    with status("training"):
        problems = [each for path in logs for each in read_texts(path, given)]
        model = fit([problem.training() for problem in problems], given, logs)
        write_whole(out, model.to_text())
        worth = _worth(problems, given, model.alike, is_log=not any(map(_is_ledger, logs)))
    evidence = model.evidence
    lines = [
        f"{out}: a score, hash {model.hash}",
        f"evidence: {evidence.labels} verdicts on {evidence.problems} problems, {evidence.passed}"
        " of them passes",
    ]
    if given:
        parts = ", ".join(f"{each.weight:.2g} {each.name}" for each in model.given)
        lines.append(f"given scores, on a common scale: {parts}")
    if model.alike:
        lines.append(f"failures count against candidates with the same {model.alike}")
    lines += worth
    if evidence.labels < FEW_LABELS:
        lines.append(f"little evidence: fewer than {FEW_LABELS} verdicts; it may rank badly")
    say(*lines, f"use it with --score trained:{out}" + (f" --alike {given[0]}" if given else ""))


def _is_ledger(path: str) -> bool:
    from ..ledger.opening import is_ledger

    return is_ledger(path)


def _worth(
    problems: Sequence[PastTexts], given: Sequence[str], alike: str, *, is_log: bool
) -> list[str]:
    """What a score is worth out of sample, in sentences; none if that is not known."""
    from ..comparing.evaluate import cost, in_order, ranking
    from ..learning.trained.cross_fit import cross_fitted

    if is_log:
        how = "cross-fitted"
        scores = cross_fitted(problems, given)
        share = ranking(problems, scores)
    else:
        how = "in order of arrival"
        share = ranking(problems, in_order(problems, given))
    if share is None:
        return ["what it is worth is unknown: too few problems have both a pass and a failure"]
    lines = [f"a pass ranks above a failure of its problem {share} of the time ({how}; chance 0.5)"]
    complete = is_log and all(problem.verified.all() for problem in problems)
    if complete and sum(bool(problem.passed.any()) for problem in problems) >= FEW_PROBLEMS:
        lines += [
            f"learned with it, at 1,{ratio}: {cost(problems, scores, ratio, alike)} of the cost of"
            f" verify-all ({how})"
            for ratio in (10, 30)
        ]
    return lines
