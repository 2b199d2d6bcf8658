"""Findings of this process, so that programs with equal keys are run once."""

from __future__ import annotations

import hashlib
import pickle
import threading
from array import array
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace

from ...conditions import Conditions
from ...core.values import Verdict
from ...usage import UNUSED
from ..protocols import Finding
from .byte_cache import ByteCache
from .engine import CALLED_OFF

_MOST_BYTES = 4 << 20  # about 7,000 findings on short answers
_AROUND = 300  # bytes in the cache besides those of a finding
_NAME = 16  # bytes of the name of a place
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

    A finding is kept pickled: it takes a third of the memory, in one piece.

    Args:
        most_bytes: how much memory all findings may take.
    """

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._lock = threading.Lock()
        self._most_bytes = most_bytes
        self._found: ByteCache[bytes, bytes] = ByteCache(most_bytes)
        self._running: dict[Place, Future[_Known]] = {}

    @property
    def size(self) -> int:
        """About how many bytes the findings take."""
        return self._found.size

    def forget(self) -> None:
        """Forget all findings, so that a candidate is verified again."""
        with self._lock:
            self._found = ByteCache(self._most_bytes)

    def rest(self) -> None:
        """Move all findings together.

        Each one lies where there was room under load, and would keep all memory around it. So they
        are joined, freed, and cut again.
        """
        with self._lock:
            names = b"".join(self._found.keys())
            content = b"".join(self._found.values())
            lengths = array("Q", map(len, self._found.values()))
            self._found = ByteCache(self._most_bytes)
            start = 0
            for number, length in enumerate(lengths):
                name = names[number * _NAME : (number + 1) * _NAME]
                self._found.put(name, content[start : start + length], _AROUND + length)
                start += length

    def once(self, place: Place, identity: str, ask: Callable[[], Finding]) -> Finding:
        """The known finding if it holds for this identity, otherwise what `ask` finds.

        Callers with an equal place wait for the first one.
        """
        mine: Future[_Known] = Future()
        name = _name(place)
        with self._lock:
            kept = self._found.get(name)
            running = mine if kept is not None else self._running.setdefault(place, mine)
        known: _Known | None = None if kept is None else pickle.loads(kept)
        if running is not mine:
            known = running.result()
        if known is None:
            return self._ask(place, identity, ask, mine)
        if known.holds_for(identity):
            return replace(known.finding, usage=UNUSED, shared=True)
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
            kept = b"" if finding.verdict is Verdict.BROKEN else _pickled(known)
            with self._lock:
                del self._running[place]
                if kept:
                    self._found.put(_name(place), kept, _AROUND + len(kept))
            mine.set_result(known)


def _pickled(known: _Known) -> bytes:
    """What is kept; nothing if the evidence of a user's own check cannot be pickled."""
    try:
        return pickle.dumps(known)
    except Exception:  # whatever its classes raise
        return b""


def _name(place: Place) -> bytes:
    """The name of a place in the cache: a key may be as long as a program."""
    conditions, key = place
    text = f"{conditions.check} {conditions.judge} {conditions.isolation} {key}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_NAME).digest()
