"""What `grv attempt` prints: what happens while attempts run, and the bill."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ..backends.protocols import Usage
from ..core.values import REFUTED
from ..ledger.entries import Entry, Found, Intended, Made, Scored
from ..runtime.attempts import AttemptRow, reason_of, spoken
from ..text import aligned, counted, shortened

if TYPE_CHECKING:
    from .attempt_plan import AttemptResult

Tell = Callable[[str], None]
_LONGEST_REASON = 80  # characters


class AttemptLines:
    """Says what happens in a search, entry by entry: a listener of its ledger.

    Args:
        search: the search's id; entries of others are left out.
        names: the names of agents by those of generators.
        numbers: the numbers of attempts that began before, by candidate.
        tell: is told what has happened.
        show: is told what happens now.
    """

    def __init__(
        self,
        search: str,
        names: Mapping[str, str],
        numbers: Mapping[int, int],
        tell: Tell,
        show: Tell,
    ) -> None:
        self._search = search
        self._names = [*names.values()]
        self._tell = tell
        self._show = show
        self._numbers = dict(numbers)

    def __call__(self, search: str, entries: Sequence[Entry]) -> None:
        """Say what these entries are about."""
        if search != self._search:
            return
        for entry in entries:
            match entry:
                case Intended("generate", candidates):
                    for candidate in candidates:
                        self._numbers.setdefault(candidate, len(self._numbers) + 1)
                        self._show(f"{self._attempt(candidate)} runs")
                case Intended("verify", candidates):
                    for candidate in candidates:
                        self._show(f"{self._attempt(candidate)}: its tests run")
                case Made(candidate, usage=usage, broken=broken):
                    reason = _short(broken.removeprefix(f"{self._agent(candidate)}: "))
                    after = f": {reason}" if broken else ""
                    self._tell(f"{self._attempt(candidate)} ended, {_amounts(usage)}{after}")
                case Scored(candidate, key=key, reason=reason) if key == REFUTED:
                    self._tell(f"{self._attempt(candidate)} refuted: {_short(reason)}")
                case Found(candidate, verdict):
                    reason = _short(reason_of(entry))
                    after = f": {reason}" if reason else ""
                    self._tell(f"{self._attempt(candidate)} {spoken(verdict)}{after}")

    def _agent(self, candidate: int) -> str:
        return self._names[candidate % len(self._names)]

    def _attempt(self, candidate: int) -> str:
        number = self._numbers.get(candidate, candidate + 1)
        return f"attempt {number} ({self._agent(candidate)})"


def bill_of(rows: Sequence[AttemptRow]) -> str:
    """The attempts as a table: what each cost, and what came of it."""
    head = ("attempt", "agent", "verdict", "branch", "why", "minutes", "tests s", "dollars")
    cells = [
        (
            str(row.number),
            row.agent,
            row.verdict,
            row.branch or "-",
            _short(row.reason),
            f"{row.seconds / 60:.1f}",
            f"{row.verify_seconds:.1f}",
            "unknown" if row.dollars is None else f"{row.dollars:.4g}",
        )
        for row in rows
    ]
    return aligned(head, cells, left=5)


def summary_lines(result: AttemptResult) -> list[str]:
    """What came of the task, and what to do next."""
    tried = f"{counted(len(result.rows), 'attempt')} for {result.dollars:.4g} dollars"
    if result.unknown == len(result.rows):
        tried = f"{counted(result.unknown, 'attempt')} of unknown cost"
    elif result.unknown:
        tried += f", of which {result.unknown} did not say what they cost"
    lines = []
    if result.accepted is None:
        why = f": {result.message}" if result.message else ""
        lines.append(f"no attempt was accepted ({result.outcome}{why}); {tried}")
    else:
        lines.append(f"attempt {result.accepted} is accepted; {tried}")
        if result.applied:
            lines.append("its diff is applied to your files, and not committed")
        else:
            said = f" ({result.message})" if result.message else ""
            line = (
                f"its diff is the branch {result.branch}{said}: see"
                f" git diff HEAD...{result.branch}, take it with git merge {result.branch}"
            )
            lines.append(line if said else f"{line}, or run the same command with --apply")
    lines += [f"kept: {folder}" for folder in result.folders]
    lines.append(f"{result.ledger} has what was paid for")
    return lines


def _amounts(usage: Usage) -> str:
    dollars = "cost unknown" if usage.dollars is None else f"{usage.dollars:.4g} dollars"
    return f"{usage.seconds:.0f} s, {dollars}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return shortened(line, _LONGEST_REASON)
