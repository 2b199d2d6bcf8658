"""Whether problems are sound: right answers pass, wrong ones fail, and verdicts do not change.

A budget is wasted on a problem that no answer can solve, and money is wasted on answers that pass
without being right. `examine` finds both before a model is paid.

Each problem gets its solutions, an empty candidate, and nonsense. Where candidates are programs,
some nonsense is a program that runs. Each of them is verified twice.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.values import Verdict
from ...files import shown
from ..protocols import Finding, Problem
from ..verifiers.pool import CheckVerifier
from .files import Example

_AT_ONCE = 32  # problems that are examined together
_NONSENSE = "Colourless green ideas sleep furiously."
_NOTHING = {  # programs that do nothing
    "c": "int main(void) { return 0; }",
    "cpp": "int main() { return 0; }",
    "go": "package main\n\nfunc main() {}",
    "java": "public class Main { public static void main(String[] arguments) {} }",
    "javascript": "void 0;",
    "python": "pass",
    "rust": "fn main() {}",
    "typescript": "void 0;",
}


@dataclass(frozen=True, slots=True)
class Soundness:
    """Whether a problem is sound.

    Attributes:
        problem: its name.
        sound: None if there was no right answer to try, or nobody here can judge one.
        reason: what is wrong, or what is not known; "" if it is sound.
    """

    problem: str
    sound: bool | None
    reason: str = ""

    def as_data(self) -> dict[str, Any]:
        """The fields by name."""
        return {"problem": self.problem, "sound": self.sound, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class _Trial:
    """A candidate, what to call it, and whether it is right."""

    name: str
    text: str
    is_right: bool


def examine(
    examples: Iterable[Example],
    verifier: CheckVerifier,
    tell: Callable[[int], None] = lambda done: None,
) -> Iterator[Soundness]:
    """Whether each problem is sound, in order. `tell` gets the number of candidates verified."""
    done = itertools.count(1)
    source = iter(examples)
    while chunk := list(itertools.islice(source, _AT_ONCE)):
        trials = [_trials(example) for example in chunk]
        first = _findings(chunk, trials, verifier, lambda: tell(next(done)))
        verifier.forget()
        second = _findings(chunk, trials, verifier, lambda: tell(next(done)))
        for at, example in enumerate(chunk):
            rounds = list(zip(trials[at], first[at], second[at], strict=True))
            yield _judged(example.problem, rounds)


def count_trials(example: Example) -> int:
    """How many candidates are verified for a problem."""
    return 2 * len(_trials(example))


def _trials(example: Example) -> list[_Trial]:
    check = example.problem.check
    if check.get("kind") == "human":
        return []
    solutions = example.solutions or _solutions(check)
    several = len(solutions) > 1
    trials = [
        _Trial(f"solution {number}" if several else "the solution", text, True)
        for number, text in enumerate(solutions, 1)
    ]
    trials.append(_Trial("an empty candidate", "", False))
    wrong = dict.fromkeys([_NONSENSE, *_nonsense(check)])
    return trials + [_Trial(f"the candidate {shown(text)}", text, False) for text in wrong]


def _solutions(check: Mapping[str, Any]) -> list[str]:
    """Right answers that the check itself tells, if it does."""
    match check:
        case {"kind": "math", "answer": str(answer)}:
            is_marked = "\\boxed" in answer or "####" in answer
            return [answer if is_marked else f"\\boxed{{{answer}}}"]
        case {"kind": "sql", "reference": str(reference)}:
            return [f"```sql\n{reference}\n```"]
        case {"kind": "text", "equals": str(text)}:
            return [text]
        case {"kind": "text"} if "matches" not in check:
            said = [*check.get("contains_all", ()), *check.get("contains_any", ())[:1]]
            said += [check["number"]] if "number" in check else []
            return ["\n".join(map(str, said))] if said else []
    return []


def _nonsense(check: Mapping[str, Any]) -> list[str]:
    """Wrong answers of the form that a check expects."""
    match check:
        case {"kind": "stdin"}:
            return ['print("colourless")']
        case {"kind": "function" | "asserts", "entry_point": str(name)}:
            return [f'def {name}(*arguments, **named):\n    return "colourless"\n']
        case {"kind": "run", "language": str(language)}:
            return [_NOTHING[language]] if language in _NOTHING else []
        case {"kind": "math"}:
            return ["\\boxed{-987654321.125}"]
        case {"kind": "sql"}:
            return ["SELECT 'colourless'"]
        case {"kind": "all" | "first", "checks": list(parts)}:
            return [text for part in parts for text in _nonsense(part)]
    return []


def _findings(
    chunk: Sequence[Example],
    trials: Sequence[Sequence[_Trial]],
    verifier: CheckVerifier,
    tell: Callable[[], None],
) -> list[list[Finding]]:
    """The findings on all candidates of some problems."""
    jobs = [
        ((at, number), example.problem, trial.text)
        for at, example in enumerate(chunk)
        for number, trial in enumerate(trials[at])
    ]
    found: dict[tuple[int, int], Finding] = {}
    for tag, judged in verifier.find_all(jobs):
        found[tag] = judged.finding
        tell()
    return [[found[at, number] for number in range(len(trials[at]))] for at in range(len(chunk))]


def _judged(problem: Problem, rounds: Sequence[tuple[_Trial, Finding, Finding]]) -> Soundness:
    """What the findings of both rounds say about a problem."""
    if not rounds:
        return Soundness(problem.id, None, "a person decides")
    for trial, first, second in rounds:
        if first.verdict is not second.verdict:
            reason = f"flaky: {trial.name} {_said(first)}, then {_said(second)}"
            return Soundness(problem.id, False, reason)
        expected = Verdict.PASSED if trial.is_right else Verdict.FAILED
        if first.verdict is not expected:
            return Soundness(problem.id, False, f"{trial.name} {_said(first)}")
    if not any(trial.is_right for trial, _, _ in rounds):
        return Soundness(problem.id, None, "no solution to try; wrong candidates fail")
    return Soundness(problem.id, True)


def _said(finding: Finding) -> str:
    verdict = "is broken" if finding.verdict is Verdict.BROKEN else finding.verdict.value
    return f"{verdict} ({finding.reason})" if finding.reason else verdict
