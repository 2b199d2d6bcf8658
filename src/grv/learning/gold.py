"""Candidates with gold labels: what the errors of a check are measured on.

They come from a log with texts, from a ledger, or from the solutions in a file of problems. In a
ledger, the verdicts of checks that do not err are labels, and so are those of people, who see
neither scores nor other verdicts. Verdicts of a check that errs are no labels.

`ask_people` puts candidates of a log into a new ledger, where they wait for reviewers.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..backends.problems.files import read_examples
from ..backends.protocols import JUDGED
from ..core.errors import UsageError
from ..core.values import Verdict
from ..ledger.entries import Entry, Intended, Made, Parked, Scored, Started
from ..ledger.opening import is_ledger, open_ledger
from ..ledger.tables import TableLedger
from ..ledger.view import SearchView
from ..text import checksum
from .trained.texts import log_texts

_LABELS = {Verdict.PASSED: True, Verdict.FAILED: False}


@dataclass(frozen=True, slots=True)
class GoldCandidate:
    """A candidate and its label.

    Attributes:
        problem: the name of its problem.
        prompt: what was asked.
        text: the candidate.
        right: the label; None if there is none.
        number: counts candidates with the same text and problem, from 0.
    """

    problem: str
    prompt: str
    text: str
    right: bool | None
    number: int = 0

    @property
    def place(self) -> tuple[str, str, int]:
        """What tells it from the others: the same in every order."""
        return self.problem, checksum(self.text), self.number


def gold_candidates(path: str, solutions: str | None = None) -> list[GoldCandidate]:
    """The candidates of a log or a ledger, and the solutions in a file of problems."""
    found = _of_ledger(path) if is_ledger(path) else _of_log(path)
    if not found:
        raise UsageError(f"{path}: it has no candidates with texts")
    if solutions is not None:
        prompts = {each.problem: each.prompt for each in found}
        for example in read_examples(solutions):
            prompt = prompts.get(example.problem.id, example.problem.prompt)
            found += [
                GoldCandidate(example.problem.id, prompt, text, True) for text in example.solutions
            ]
    return _numbered(found)


def _of_log(path: str) -> list[GoldCandidate]:
    found = []
    for past in log_texts(path):
        labels = zip(past.arrivals, past.passed.tolist(), past.verified.tolist(), strict=True)
        for arrival, passed, is_known in labels:
            right = bool(passed) if is_known else None
            found.append(GoldCandidate(past.id, past.prompt, arrival.text, right))
    return found


def _of_ledger(path: str) -> list[GoldCandidate]:
    ledger = open_ledger(path, read_only=True)
    found = []
    for search in ledger.searches():
        view = SearchView(ledger.read(search.id))
        if view.started is None:
            continue
        for id in sorted(view.made):
            if view.made[id].broken:
                continue
            verdict = view.found.get(id)
            is_gold = verdict is not None and JUDGED not in verdict.evidence
            right = _LABELS.get(verdict.verdict) if verdict is not None and is_gold else None
            text = view.made[id].text
            found.append(GoldCandidate(view.started.problem, view.prompt, text, right))
    return sorted(found, key=lambda each: (each.problem, checksum(each.text)))


def _numbered(candidates: Iterable[GoldCandidate]) -> list[GoldCandidate]:
    counts: defaultdict[tuple[str, str], int] = defaultdict(int)
    numbered = []
    for each in candidates:
        name = (each.problem, each.text)
        numbered.append(
            GoldCandidate(each.problem, each.prompt, each.text, each.right, counts[name])
        )
        counts[name] += 1
    return numbered


def ask_people(
    candidates: Sequence[GoldCandidate],
    ledger: TableLedger,
    question: Mapping[str, Any],
    number: int,
    seed: int = 0,
) -> int:
    """Put some candidates without a label into a ledger, where they wait for reviewers.

    They are drawn from all problems alike, so that few problems do not decide the rates. The same
    call again adds nothing.

    Args:
        candidates: to draw from.
        ledger: where they wait.
        question: the check of kind "human".
        number: how many to draw.
        seed: of the draw.

    Returns:
        how many were added.
    """
    by_problem: defaultdict[str, list[GoldCandidate]] = defaultdict(list)
    for candidate in candidates:
        if candidate.right is None and candidate.number == 0:
            by_problem[candidate.problem].append(candidate)
    generator = random.Random(seed)
    waiting = [generator.sample(some, len(some)) for _, some in sorted(by_problem.items())]
    chosen: list[GoldCandidate] = []
    while any(waiting) and len(chosen) < number:
        for some in generator.sample(waiting, len(waiting)):
            if some and len(chosen) < number:
                chosen.append(some.pop())
    there = {search.id for search in ledger.searches()}
    added = 0
    for candidate in chosen:
        problem, text, _ = candidate.place
        search = checksum(f"label {problem} {text}")[:24]
        if search not in there:
            ledger.append(search, _entries(candidate, question))
            added += 1
    return added


def _entries(candidate: GoldCandidate, question: Mapping[str, Any]) -> list[Entry]:
    check = json.dumps(dict(question), sort_keys=True)
    return [
        Started(candidate.problem, {"costs": [0.0, 1.0, 0.0]}, candidate.prompt, check),
        Intended("generate", (0,)),
        Made(0, candidate.text),
        Scored(0, None),
        Intended("verify", (0,)),
        Parked("verify", (0,), str(question["question"])),
    ]
