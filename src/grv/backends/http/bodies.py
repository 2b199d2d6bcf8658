"""Bodies of responses, within a size limit. None of them is held whole if it is large.

A server may send more than fits into memory: endless bytes, a few compressed ones that unpack to
gigabytes, choices of any length, more choices than it was asked for. So a body is unpacked in
pieces. A small answer is parsed as it is. Of a large one, every item of a top-level list (every
choice) is parsed by itself, reduced at once, and left out if it is too large.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any

from ...files import parse_json

if TYPE_CHECKING:
    import httpx2

LARGEST_CHOICE = 32 << 20  # bytes: 128,000 tokens with their log-probabilities take about 20 MB
ACCEPTED = "gzip"  # the encoding that requests accept
_UNASKED = 1000  # choices beyond those that were asked for
_SMALL = 2 << 20  # bytes of an answer that is parsed as it is
_PIECE = 1 << 20  # bytes that are unpacked at once
_SHOWN = 10_000  # bytes of an answer that may be in a message
_GZIP = 16 + zlib.MAX_WBITS
# of a text
_OUTSIDE = re.compile(rb'["{}\[\]]')
_INSIDE = re.compile(rb'["\\]')
_LEFT_OUT = {"too_large": True}
_ITEM = 2  # the depth of the items of a top-level list

Reduce = Callable[[Any], Any]


class BodyTooLarge(Exception):
    """A body is above its limit."""

    def __init__(self, most: int, what: str = "bytes") -> None:
        super().__init__(f"an answer of more than {most:,} {what}")


class OtherEncoding(Exception):
    """A body is encoded in a way that the request did not accept."""


async def pieces(response: httpx2.Response, most: int) -> AsyncIterator[bytes]:
    """The body of a response, unpacked in pieces; BodyTooLarge as soon as it is above the limit."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "", ACCEPTED):
        raise OtherEncoding(f"an answer in the encoding {encoding}, which was not asked for")
    unpack = _unpacked() if encoding == ACCEPTED else None
    size = 0
    async for part in response.aiter_raw():
        for piece in [part] if unpack is None else unpack(part):
            size += len(piece)
            if size > most:
                raise BodyTooLarge(most)
            yield piece


async def whole(response: httpx2.Response, most: int) -> bytes:
    """The body of a response of at most that size."""
    return b"".join([piece async for piece in pieces(response, most)])


def _unpacked() -> Callable[[bytes], Iterator[bytes]]:
    """Unpacks the parts of a compressed body, at most `_PIECE` bytes at once."""
    stream = zlib.decompressobj(_GZIP)

    def unpack(part: bytes) -> Iterator[bytes]:
        try:
            while part:
                yield stream.decompress(part, _PIECE)
                part = stream.unconsumed_tail
        except zlib.error as error:
            raise OtherEncoding(f"an answer that cannot be unpacked: {error}") from error

    return unpack


class AnswerReader:
    """Reads an answer in JSON from pieces of its body.

    Args:
        most: how many items of a list are kept.
        reduce: what is kept of an item of a large answer.
    """

    def __init__(self, most: int, reduce: Reduce) -> None:
        self._most = most
        self._reduce = reduce
        self._kept = bytearray()  # the answer, with a number in place of every item
        self._item = bytearray()
        self._items: list[Any] = []
        self._is_large = False
        self._wrong: ValueError | None = None
        self._depth = 0
        self._ended = 0  # items
        self._in_list = False  # whether what is at the depth of items is in a list
        self._in_text = False
        self._escaped = False  # whether the next character of a text is
        self._too_large = False  # whether the current item is

    def add(self, piece: bytes) -> None:
        """Read one more piece."""
        if not self._is_large:
            self._kept += piece
            if len(self._kept) <= _SMALL:
                return
            self._is_large = True
            piece = bytes(self._kept)
            self._kept.clear()
        self._scan(piece)

    @property
    def beginning(self) -> str:
        """How the answer begins, for messages."""
        return bytes(self._kept[:_SHOWN]).decode("utf-8", "replace")

    def answer(self) -> Any:
        """The answer; a large one without what `reduce` left out.

        An item that was too large is the record {"too_large": True}.

        Raises:
            ValueError: it is not JSON.
        """
        if self._wrong is not None:
            raise self._wrong
        found = parse_json(bytes(self._kept))
        if not (self._is_large and isinstance(found, dict)):
            return found
        return {name: self._filled(value) for name, value in found.items()}

    def _filled(self, value: Any) -> Any:
        """The value with items in place of their numbers."""
        if not isinstance(value, list):
            return value
        numbers = [each for each in value if type(each) is int]
        return [self._items[each] for each in numbers if 0 <= each < len(self._items)]

    def _scan(self, piece: bytes) -> None:
        start = at = 0
        while at < len(piece):
            if self._escaped:
                self._escaped = False
                at += 1
                continue
            match = (_INSIDE if self._in_text else _OUTSIDE).search(piece, at)
            if match is None:
                break
            at = match.end()
            match match[0]:
                case b"\\":
                    self._escaped = True
                case b'"':
                    self._in_text = not self._in_text
                case b"{" | b"[":
                    if self._depth == _ITEM and self._in_list:
                        self._add(piece[start : at - 1])
                        start = at - 1
                    self._depth += 1
                    if self._depth == _ITEM:
                        self._in_list = match[0] == b"["
                case _:
                    self._depth -= 1
                    if self._depth == _ITEM and self._in_list:
                        self._add(piece[start:at], inside=True)
                        start = at
                        self._end_item()
        self._add(piece[start:])

    def _add(self, part: bytes, *, inside: bool = False) -> None:
        if not (inside or (self._depth > _ITEM and self._in_list)):
            self._kept += part
            if len(self._kept) > LARGEST_CHOICE:
                raise BodyTooLarge(LARGEST_CHOICE)
        elif len(self._item) + len(part) <= LARGEST_CHOICE and not self._too_large:
            if len(self._items) < self._most:
                self._item += part
        else:
            self._too_large = True
            self._item.clear()

    def _parsed(self) -> Any:
        """The item that has ended. What is wrong with it is raised by `answer`."""
        try:
            return self._reduce(parse_json(bytes(self._item)))
        except ValueError as error:
            self._wrong = self._wrong or error
            return None

    def _end_item(self) -> None:
        self._kept += b"%d" % len(self._items)  # beyond the last one, there is no such item
        if len(self._items) < self._most:
            self._items.append(_LEFT_OUT if self._too_large else self._parsed())
        self._ended += 1
        if self._ended > self._most + _UNASKED:
            raise BodyTooLarge(self._most + _UNASKED, "choices")
        self._item.clear()
        self._too_large = False
