"""Results that arrive but are of no use: drafts without text, drafts without score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...backends.protocols import Draft, Score

FIRST = 50  # results that decide whether a run makes sense


@dataclass
class _Kind:
    """A kind of complaint: how many results have it, of how many."""

    what: str
    advice: str
    affected: int = 0
    seen: int = 0


class Complaints:
    """Counts useless results. Each kind is reported once, and again in the summary.

    Attributes:
        tell: reports one line. By default it does nothing.
    """

    def __init__(self) -> None:
        self.tell: Callable[[str], None] = lambda line: None
        self._told_parked = False
        self._texts = _Kind(
            "have no text",
            "check --max-tokens and the model: a model that thinks first may use up all tokens",
        )
        self._scores = _Kind(
            "have no score", "check the scorer, or choose another one, such as --score length"
        )

    def parked(self) -> None:
        """Say once that verdicts come from outside."""
        if not self._told_parked:
            self._told_parked = True
            self.tell(
                "candidates wait for a person: review them with grv review LEDGER, or on the page"
                " of grv dashboard LEDGER --review"
            )

    def of_drafts(self, drafts: Sequence[Draft]) -> str | None:
        """Count drafts without text; return why to stop, if the first `FIRST` are all like that."""
        empty = sum(not draft.text.strip() for draft in drafts)
        return self._count(self._texts, empty, len(drafts), "")

    def of_scores(self, drafts: Sequence[Draft], scores: Sequence[Score]) -> str | None:
        """Count drafts without score; return why to stop, if the first `FIRST` are all like that.

        A draft without text does not count.
        """
        known = [score for draft, score in zip(drafts, scores, strict=False) if draft.text.strip()]
        missing = [score for score in known if score.value is None]
        reason = missing[0].reason if missing else ""
        return self._count(self._scores, len(missing), len(known), reason)

    def summary(self) -> list[str]:
        """One line per kind of complaint."""
        return [
            f"{kind.affected} of {kind.seen} candidates {kind.what}; {kind.advice}"
            for kind in (self._texts, self._scores)
            if kind.affected
        ]

    def _count(self, kind: _Kind, affected: int, seen: int, reason: str) -> str | None:
        why = f" ({reason})" if reason else ""
        if affected and not kind.affected:
            first = kind.seen + seen
            self.tell(f"{affected} of the first {first} candidates {kind.what}{why}; {kind.advice}")
        kind.affected += affected
        kind.seen += seen
        if kind.affected == kind.seen >= FIRST:
            return f"the first {kind.seen} candidates {kind.what}{why}: {kind.advice}"
        return None
