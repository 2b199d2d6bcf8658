"""Reads the binary form of a git diff: new contents as they are, or made of parts of the old."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from .diff_lines import DiffLines, UnreadableDiff

LARGEST = 32 << 20  # bytes of one file
_MOST_UNPACKED = 64 << 20  # bytes of all files of a diff


@dataclass(frozen=True, slots=True)
class BinaryPatch:
    """The new content of a file, or how it is made of the old one.

    Attributes:
        before: the content that it is for, packed in the same way.
        after: the new one.
    """

    before: Packed
    after: Packed

    def applied(self, old: bytes) -> bytes:
        """The new content. Raises UnreadableDiff if the old one is another than it is for."""
        new = self.after.unpacked(old)
        if self.before.unpacked(new) != old:
            raise UnreadableDiff("a binary file is not the one that is changed")
        return new


@dataclass(frozen=True, slots=True)
class Packed:
    """A content as git packs it: as it is, or as a delta of another one."""

    is_delta: bool
    data: bytes

    def unpacked(self, other: bytes) -> bytes:
        """The content, given the other one."""
        return _delta(self.data, other) if self.is_delta else self.data


def binary_patch(reader: DiffLines) -> BinaryPatch:
    """The patch that begins with the line `GIT binary patch`: forward, and then backward."""
    reader.index += 1
    after = _packed(reader)
    return BinaryPatch(_packed(reader), after)


def _packed(reader: DiffLines) -> Packed:
    kind, _, count = reader.current.rstrip("\r").partition(" ")
    if kind not in ("literal", "delta") or not count.isdecimal() or int(count[:12]) > LARGEST:
        raise UnreadableDiff("a binary file cannot be read")
    size = int(count)
    reader.index += 1
    unpack = zlib.decompressobj()
    data = bytearray()
    try:
        while line := reader.current.rstrip("\r"):
            reader.index += 1
            first = ord(line[0])
            length = first - 64 if first <= 90 else first - 70  # A to Z, then a to z
            piece = base64.b85decode(line[1:])[:length]
            data += unpack.decompress(piece, size + 1 - len(data))
            if len(data) > size or unpack.unconsumed_tail:
                break
    except (ValueError, zlib.error):
        raise UnreadableDiff("a binary file cannot be read") from None
    reader.unpacked += size
    if reader.unpacked > _MOST_UNPACKED:
        raise UnreadableDiff(f"its binary files have more than {_MOST_UNPACKED:,} bytes together")
    if len(data) != size or not unpack.eof:
        raise UnreadableDiff("a binary file cannot be read")
    reader.index += 1
    return Packed(kind == "delta", bytes(data))


def _delta(delta: bytes, old: bytes) -> bytes:
    """What a delta makes of a content: it copies parts of it, and adds new ones."""
    reader = iter(delta)
    made = bytearray()
    try:
        before, after = _number(reader), _number(reader)
        if before != len(old) or after > LARGEST:
            raise UnreadableDiff("a binary file is not the one that is changed")
        for code in reader:
            if code & 128:
                start = sum(next(reader) << 8 * bit for bit in range(4) if code >> bit & 1)
                count = sum(next(reader) << 8 * bit for bit in range(3) if code >> 4 + bit & 1)
                made += old[start : start + (count or 65536)]
            else:
                made += bytes(next(reader) for _ in range(code))
            if len(made) > after:
                break
    except (StopIteration, RuntimeError):
        raise UnreadableDiff("a binary file cannot be read") from None
    if len(made) != after:
        raise UnreadableDiff("a binary file cannot be read")
    return bytes(made)


def _number(reader: Iterator[int]) -> int:
    number = shift = 0
    while shift < 64:
        byte = next(reader)
        number |= (byte & 127) << shift
        shift += 7
        if not byte & 128:
            break
    return number
