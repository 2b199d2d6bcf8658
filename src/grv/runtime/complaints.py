"""Results that arrive but are of no use: drafts without text, drafts without score."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..backends.generators.completions import CALLS_OFFERED, ONLY_THOUGHT
from ..backends.scorers.auto import BY_GIVEN, BY_LOGPROB, BY_TRAINED, RANKS_LAST, UNRANKED
from ..backends.scorers.logprob import NO_LOGPROBS

if TYPE_CHECKING:
    from ..backends.protocols import Draft, Score

_SHARE_CUT = 0.5  # of the candidates that end in the middle, from which on the user hears of it
_LEAST_CUT = 4
FIRST = 50  # results that decide whether a run makes sense
_TRAINS = (
    "the generator returns no log-probabilities, so grv trains a score on the verdicts in this"
    " ledger, from 6 finished problems on (--score auto)"
)
_RANKED = {
    BY_LOGPROB: "score: log-probabilities, which the generator returns (--score auto)",
    UNRANKED: f"score: none yet; {_TRAINS}",
    BY_GIVEN: f"score: that of --alike for now; {_TRAINS}",
    BY_TRAINED: "score: trained on the verdicts in this ledger (--score auto)",
}


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
        inform: the same for a line about a run that is as it should be.
        tells_broken: whether broken drafts are reported; not if each one is reported elsewhere.
    """

    def __init__(self) -> None:
        self.tell: Callable[[str], None] = lambda line: None
        self.inform: Callable[[str], None] = lambda line: None
        self.tells_broken = True
        self._told_parked = False
        self._ranked: set[str] = set()
        self._notices: list[str] = []
        self._texts = _Kind(
            "have no text",
            "check --max-tokens and the model: a model that thinks first may use up all tokens",
        )
        self._scores = _Kind(
            "have no score", "check the scorer, or choose another one, such as --score length"
        )
        self._broken = _Kind(
            "were dropped as broken",
            "check what answers there: their texts contain a key, or are too long",
        )
        self._thoughts = _Kind(
            "were dropped", "raise --max-tokens, or think less with --effort low"
        )
        self._cut = _Kind(
            "were cut off in the middle, because their tokens ran out",
            "give a larger --max-tokens",
        )
        self._told_cut = False

    def parked(self, ledger: str) -> None:
        """Say once that verdicts come from outside, through this ledger."""
        if not self._told_parked:
            self._told_parked = True
            self.tell(
                f"candidates wait for a person: review them with grv review {ledger}, or on the"
                f" page of grv dashboard {ledger} --review"
            )

    def ranked(self, score: str) -> None:
        """Say what the score `auto` stands for, once for each; empty says nothing."""
        if score and score not in self._ranked:
            self._ranked.add(score)
            report = self.inform if score == BY_LOGPROB else self.tell
            report(_RANKED[score])

    def of_drafts(self, drafts: Sequence[Draft]) -> str | None:
        """Count drafts without text; return why to stop, if the first `FIRST` are all like that.

        Drafts whose text could not be kept are a kind of their own.
        """
        drafts = [draft for draft in drafts if draft.broken != CALLS_OFFERED]
        reasons = [draft.broken for draft in drafts if draft.broken]
        thoughts = reasons.count(ONLY_THOUGHT)
        why = self._count(self._thoughts, thoughts, len(drafts), ONLY_THOUGHT)
        broken = [reason for reason in reasons if reason != ONLY_THOUGHT]
        others = self._count(
            self._broken,
            len(broken),
            len(drafts),
            next(iter(broken), ""),
            is_silent=not self.tells_broken,
        )
        why = why or others
        kept = [draft for draft in drafts if not draft.broken]
        self._count_cut(kept)
        empty = [draft for draft in kept if not draft.text or draft.text.isspace()]
        return why or self._count(self._texts, len(empty), len(kept), "")

    def of_scores(self, drafts: Sequence[Draft], scores: Sequence[Score]) -> str | None:
        """Count drafts without score; return why to stop, if the first `FIRST` are all like that.

        A draft without text does not count. If it is log-probabilities that are missing, the first
        response tells: nobody should pay for more. But a search with the score `auto` whose first
        response had some goes on: a candidate without a score ranks last.
        """
        texts = [draft.text for draft in drafts]
        counted = [
            score for text, score in zip(texts, scores, strict=False) if text and not text.isspace()
        ]
        missing = [score for score in counted if score.value is None]
        reason = missing[0].reason if missing else ""
        reasons = {score.reason for score in missing}
        first: float = FIRST
        if RANKS_LAST in reasons:
            first = math.inf
        elif reasons == {NO_LOGPROBS}:
            first = 1
        return self._count(self._scores, len(missing), len(counted), reason, first)

    def summary(self) -> list[str]:
        """One line per kind of complaint, and each notice."""
        counted = [
            f"{kind.affected} of {kind.seen} candidates {kind.what}; {kind.advice}"
            for kind in (self._broken, self._thoughts, self._texts, self._scores)
            if kind.affected
        ]
        cut = [self._cut_line()] if self._told_cut else []
        return [*counted, *cut, *self._notices]

    @property
    def lacks_tokens(self) -> bool:
        """Whether half of the candidates ended before their answer, for want of tokens."""
        thoughts = self._thoughts
        return self._told_cut or 0 < thoughts.seen <= 2 * thoughts.affected

    def _count_cut(self, drafts: Sequence[Draft]) -> None:
        """Count candidates that end in the middle, and say once if many do.

        They are verified all the same: a model that continues a text has often answered by then.
        """
        self._cut.affected += sum(draft.is_cut for draft in drafts)
        self._cut.seen += len(drafts)
        many = max(_LEAST_CUT, _SHARE_CUT * self._cut.seen)
        if self._cut.affected >= many and not self._told_cut:
            self._told_cut = True
            self.tell(self._cut_line())

    def _cut_line(self) -> str:
        cut = self._cut
        return f"{cut.affected} of {cut.seen} candidates {cut.what}; {cut.advice}"

    def notice(self, lines: Iterable[str]) -> None:
        """Say what a server cannot do: each line once, and again in the summary."""
        for line in lines:
            if line not in self._notices:
                self._notices.append(line)
                self.tell(line)

    def _count(
        self,
        kind: _Kind,
        affected: int,
        seen: int,
        reason: str,
        first: float = FIRST,
        *,
        is_silent: bool = False,
    ) -> str | None:
        why = f" ({reason})" if reason else ""
        is_new = affected and not kind.affected
        kind.affected += affected
        kind.seen += seen
        stops = kind.affected == kind.seen >= first
        if is_new and not stops and not is_silent:
            self.tell(
                f"{affected} of the first {kind.seen} candidates {kind.what}{why}; {kind.advice}"
            )
        if stops:
            return f"the first {kind.seen} candidates {kind.what}{why}: {kind.advice}"
        return None
