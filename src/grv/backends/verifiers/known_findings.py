"""Findings of this process, so that programs with equal keys are run once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace

from ...conditions import Conditions
from ...core.values import Verdict
from ..protocols import Finding, Usage
from .byte_cache import ByteCache, size_of
from .engine import CALLED_OFF

_MOST_BYTES = 16 << 20  # about 15,000 findings on short answers
_AROUND = 200  # bytes of a finding besides its texts and its evidence
Place = tuple[Conditions, str]  # and the key, or the identity of another program of the key


@dataclass(frozen=True, slots=True)
class _Known:
    """A finding, and the identity of the program that was run for it."""

    finding: Finding
    identity: str

    def holds_for(self, identity: str) -> bool:
        """Whether a program with an equal key and this identity has the same finding.

        Programs with equal keys share failures. A pass holds only for the program that ran.
        """
        verdict = self.finding.verdict
        return verdict is Verdict.FAILED or (
            verdict is Verdict.PASSED and self.identity == identity
        )


class KnownFindings:
    """Findings by place. Any thread may use it.

    Args:
        most_bytes: how much memory all findings may take.
    """

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._lock = threading.Lock()
        self._most_bytes = most_bytes
        self._found: ByteCache[Place, _Known] = ByteCache(most_bytes)
        self._running: dict[Place, Future[_Known]] = {}

    @property
    def size(self) -> int:
        """About how many bytes the findings take."""
        return self._found.size

    def forget(self) -> None:
        """Forget all findings, so that a candidate is verified again."""
        with self._lock:
            self._found = ByteCache(self._most_bytes)

    def once(self, place: Place, identity: str, ask: Callable[[], Finding]) -> Finding:
        """The known finding if it holds for this identity, otherwise what `ask` finds.

        Callers with an equal place wait for the first one.
        """
        mine: Future[_Known] = Future()
        with self._lock:
            known = self._found.get(place)
            running = mine if known is not None else self._running.setdefault(place, mine)
        if running is not mine:
            known = running.result()
        if known is None:
            return self._ask(place, identity, ask, mine)
        if known.holds_for(identity):
            return replace(known.finding, usage=Usage(), shared=True)
        if known.finding.verdict is Verdict.PASSED:  # another program of the same key
            return self.once((place[0], identity), identity, ask)
        return ask()

    def _ask(
        self, place: Place, identity: str, ask: Callable[[], Finding], mine: Future[_Known]
    ) -> Finding:
        finding = CALLED_OFF
        try:
            finding = ask()
            return finding
        finally:
            known = _Known(finding, identity)
            with self._lock:
                del self._running[place]
                if finding.verdict is not Verdict.BROKEN:
                    self._found.put(place, known, _size(place, known))
            mine.set_result(known)


def _size(place: Place, known: _Known) -> int:
    finding = known.finding
    texts = [place[0].check, place[1], known.identity, finding.reason]
    return _AROUND + size_of(texts) + size_of(finding.evidence)
