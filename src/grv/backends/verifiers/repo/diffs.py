"""Reads a candidate that changes files: a git diff, a unified diff, or whole files in fences.

A diff is read as `git apply` reads it: the counts of a hunk must be right, its lines must be in the
file. So what was verified is what a user gets who applies the same text. Nothing is guessed; what
cannot be read is `UnreadableDiff`, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from .binary import BinaryPatch, binary_patch
from .diff_lines import DiffLines, UnreadableDiff

LARGEST = 8 << 20  # characters of a candidate
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_FENCE = re.compile(r"^(?P<indent> {0,3})(?P<ticks>`{3,}|~{3,})(?P<info>[^`\n]*)$")
_DIFFS = ("diff", "patch", "udiff")
_PATH = re.compile(r"[\w.@+-][\w.@+/ -]*\.\w+|[\w.@+-]+(?:/[\w.@+-]+)+|Makefile|Dockerfile")
_NAMED = re.compile(r"^(?:#{1,6} +|[*]{1,2}|File: *|Path: *)?`?(?P<path>[^`*\n]+?)`?[*]{0,2}:?$")
_REGULAR = {"100644": 0o644, "100755": 0o755}
_ESCAPES = {"n": 10, "t": 9, "r": 13, "a": 7, "b": 8, "f": 12, "v": 11, '"': 34, "\\": 92}


@dataclass(frozen=True, slots=True)
class Hunk:
    """One place of a file that changes.

    Attributes:
        start: its first line before.
        old: its lines before.
        new: its lines after.
        changed: how many lines are added or removed.
    """

    start: int
    old: tuple[bytes, ...]
    new: tuple[bytes, ...]
    changed: int = 0


@dataclass(frozen=True, slots=True)
class FileChange:
    """What happens to one file.

    Attributes:
        old: its path before; None if it is new.
        new: its path after; None if it is removed.
        hunks: what changes in it.
        content: the whole new content, in place of hunks.
        mode: its new permissions, 0o644 or 0o755; None if they stay.
        keeps_old: whether the file at the old path stays: the new one is a copy.
        binary: the new content in git's binary form, in place of hunks.
    """

    old: str | None
    new: str | None
    hunks: tuple[Hunk, ...] = ()
    content: bytes | None = None
    mode: int | None = None
    keeps_old: bool = False
    binary: BinaryPatch | None = None


@dataclass(frozen=True, slots=True)
class ReadCandidate:
    """The changes of a candidate, and how its text was read."""

    changes: tuple[FileChange, ...]
    form: str


def read(text: str) -> ReadCandidate:
    """The changes in a candidate's text.

    Raises:
        UnreadableDiff: there are none, or they cannot be read.
    """
    if len(text) > LARGEST:
        raise UnreadableDiff(f"it has more than {LARGEST:,} characters")
    blocks = list(_fenced(text))
    if (given := _diff(text, blocks)) is not None:
        return ReadCandidate(_changes(given[0]), given[1])
    if any(not block.is_closed for block in blocks):
        raise UnreadableDiff("a fence is not closed")
    files = tuple(change for block in blocks for change in _whole_file(block))
    if not files:
        raise UnreadableDiff("it has no diff, and no fence that names a file")
    names = [change.new for change in files]
    if len(set(names)) < len(names):
        raise UnreadableDiff("it has a file twice")
    return ReadCandidate(files, "whole files")


def diff_in(text: str) -> str:
    """The diff in a candidate's text, without what stands around its fence.

    Raises:
        UnreadableDiff: there is none.
    """
    given = _diff(text, list(_fenced(text)))
    if given is None:
        raise UnreadableDiff("it has no diff")
    return given[0]


def _diff(text: str, blocks: Sequence[_Block]) -> tuple[str, str] | None:
    """The diff in a text, and how it was found; None if there is none."""
    fenced = [block.text for block in blocks if block.info.lower() in _DIFFS]
    if fenced:
        return "".join(fenced), "diff in a fence"
    return (text, "diff") if _has_diff(text) else None


@dataclass(frozen=True, slots=True)
class _Block:
    """A block between fences: what stands behind the opening one, its text, the line before."""

    info: str
    text: str
    before: str
    is_closed: bool


def _fenced(text: str) -> Iterator[_Block]:
    lines = text.split("\n")
    index = 0
    before = ""
    while index < len(lines):
        opening = _FENCE.match(lines[index].rstrip("\r"))
        if opening is None:
            before = lines[index].strip() or before
            index += 1
            continue
        closing = re.compile(f" {{0,3}}{opening['ticks'][0]}{{{len(opening['ticks'])},}}[ \t\r]*")
        end = index + 1
        while end < len(lines) and not closing.fullmatch(lines[end]):
            end += 1
        content = "".join(f"{line}\n" for line in lines[index + 1 : end])
        yield _Block(opening["info"].strip(), content, before, end < len(lines))
        before = ""
        index = end + 1


def _whole_file(block: _Block) -> Iterator[FileChange]:
    """The file of a block that names one, in its first line or in the line before."""
    _, _, behind = block.info.replace(":", " ", 1).partition(" ")
    named = _NAMED.match(block.before)
    for path in (behind.strip(), block.info, named["path"].strip() if named else ""):
        if _PATH.fullmatch(path):
            yield FileChange(path, path, content=_bytes(block.text))
            return


def _has_diff(text: str) -> bool:
    return bool(re.search(r"^(?:diff --git |--- [^\n]+\n\+\+\+ )", text, re.MULTILINE))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _changes(text: str) -> tuple[FileChange, ...]:
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    reader = DiffLines(lines)
    found: list[FileChange] = []
    while not reader.at_end:
        if reader.starts("diff --git "):
            found.append(_git_file(reader))
        elif _is_plain_header(reader):
            found.append(_plain_file(reader))
        elif _HUNK.match(reader.current):
            raise UnreadableDiff("a hunk has no file")
        else:
            reader.index += 1
    if not found:
        raise UnreadableDiff("its diff changes no file")
    return tuple(found)


def _is_plain_header(reader: DiffLines) -> bool:
    after = reader.lines[reader.index + 1 : reader.index + 3]
    is_pair = reader.starts("--- ") and len(after) == 2 and after[0].startswith("+++ ")
    return is_pair and _HUNK.match(after[1]) is not None


def _plain_file(reader: DiffLines) -> FileChange:
    old, new = _names(reader)
    return _checked(FileChange(old, new, _hunks(reader)))


def _names(reader: DiffLines) -> tuple[str | None, str | None]:
    """The two names of `---` and `+++`, without the prefixes that git adds."""
    old = _name(reader.current[4:])
    new = _name(reader.lines[reader.index + 1][4:])
    reader.index += 2
    return _without_prefixes(old, new)


def _without_prefixes(old: str | None, new: str | None) -> tuple[str | None, str | None]:
    has_prefixes = (old is None or old.startswith("a/")) and (new is None or new.startswith("b/"))
    if not has_prefixes:
        return old, new
    return (None if old is None else old[2:], None if new is None else new[2:])


def _name(text: str) -> str | None:
    """A file name of a header, without a date behind it; None for /dev/null."""
    text = text.rstrip("\r")
    name = _unquoted(text) if text.startswith('"') else text.partition("\t")[0]
    return None if name == "/dev/null" else name


def _unquoted(text: str) -> str:
    """A name that git wrote in quotation marks."""
    match = re.match(r'"((?:[^"\\]|\\.)*)"', text)
    if match is None:
        raise UnreadableDiff(f"a file name cannot be read: {text[:80]}")
    found = bytearray()
    for part in re.finditer(r"\\([0-7]{3})|\\(.)|([^\\]+)", match[1]):
        octal, letter, plain = part.groups()
        if octal is not None:
            found.append(int(octal, 8) & 0xFF)
        elif letter is not None:
            if letter not in _ESCAPES:
                raise UnreadableDiff(f"a file name cannot be read: {text[:80]}")
            found.append(_ESCAPES[letter])
        else:
            found += plain.encode("utf-8", "surrogateescape")
    return found.decode("utf-8", "surrogateescape")


@dataclass(slots=True)
class _Header:
    """What the lines between `diff --git` and the first hunk say."""

    old: str | None
    new: str | None
    mode: int | None = None
    is_new: bool = False
    is_removed: bool = False
    source: str | None = None
    target: str | None = None
    copies: bool = False
    other: dict[str, str] = field(default_factory=dict)


def _git_file(reader: DiffLines) -> FileChange:
    header = _header(reader)
    hunks: tuple[Hunk, ...] = ()
    if reader.starts("--- "):
        if not reader.lines[reader.index + 1 : reader.index + 2] or not reader.lines[
            reader.index + 1
        ].startswith("+++ "):
            raise UnreadableDiff("a line --- has no line +++ behind it")
        old, new = _names(reader)
        if (old is None and not header.is_new) or (new is None and not header.is_removed):
            raise UnreadableDiff("the header of a file contradicts its names")
        for named, said in ((old, header.old), (new, header.new)):
            if named is not None and said is not None and named != said:
                raise UnreadableDiff(f"one file has two names: {said} and {named}")
        header.old = old if old is not None else header.old
        header.new = new if new is not None else header.new
        hunks = _hunks(reader)
    binary = binary_patch(reader) if reader.starts("GIT binary patch") else None
    old = header.source if header.source is not None else header.old
    new = header.target if header.target is not None else header.new
    if old is None or new is None:
        raise UnreadableDiff("a file has no name")
    change = FileChange(old, new, hunks, None, header.mode, header.copies, binary)
    if header.is_new:
        change = replace(change, old=None)
    if header.is_removed:
        change = replace(change, new=None)
    return _checked(change)


def _header(reader: DiffLines) -> _Header:
    old, new = _names_of_both(reader.current[len("diff --git ") :].rstrip("\r"))
    header = _Header(old, new)
    reader.index += 1
    while not reader.at_end:
        line = reader.current.rstrip("\r")
        word, _, value = line.rpartition(" ")
        match word:
            case "old mode":
                _mode(value)
            case "new mode":
                header.mode = _mode(value)
            case "new file mode":
                header.is_new = True
                header.mode = _mode(value)
            case "deleted file mode":
                header.is_removed = True
            case _ if line.startswith(("rename from ", "copy from ")):
                header.copies = line.startswith("copy")
                header.source = _plain_name(line.partition(" from ")[2])
            case _ if line.startswith(("rename to ", "copy to ")):
                header.target = _plain_name(line.partition(" to ")[2])
            case _ if line.startswith(("index ", "similarity index ", "dissimilarity index ")):
                if re.search(r" (?:120000|160000)$", line):
                    raise UnreadableDiff("it changes a symbolic link or a submodule")
            case _ if line.startswith("Binary files "):
                raise UnreadableDiff("it has a binary file without its content: git diff --binary")
            case _:
                return header
        reader.index += 1
    return header


def _plain_name(text: str) -> str:
    return _unquoted(text) if text.startswith('"') else text


def _mode(value: str) -> int:
    if value not in _REGULAR:
        kinds = {"120000": "a symbolic link", "160000": "a submodule"}
        raise UnreadableDiff(f"it makes {kinds.get(value, f'a file of mode {value[:10]}')}")
    return _REGULAR[value]


def _names_of_both(text: str) -> tuple[str | None, str | None]:
    """The names of a line `diff --git`; None if only later lines can tell."""
    if text.startswith('"'):
        first = re.match(r'"(?:[^"\\]|\\.)*"', text)
        if first is None:
            raise UnreadableDiff(f"a file name cannot be read: {text[:80]}")
        rest = text[first.end() :].strip()
        return _without_prefixes(_unquoted(text), _plain_name(rest))
    middle = len(text) // 2
    if len(text) % 2 and text[middle] == " ":
        old, new = _without_prefixes(text[:middle], text[middle + 1 :])
        if old == new:
            return old, new
    return None, None


def _checked(change: FileChange) -> FileChange:
    if change.old is None and change.new is None:
        raise UnreadableDiff("a file is neither there before nor after")
    if change.old is None and any(hunk.old for hunk in change.hunks):
        raise UnreadableDiff(f"it makes {change.new}, and removes lines from it")
    if change.new is None and any(hunk.new for hunk in change.hunks):
        raise UnreadableDiff(f"it removes {change.old}, and keeps lines of it")
    return change


def _hunks(reader: DiffLines) -> tuple[Hunk, ...]:
    found: list[Hunk] = []
    while not reader.at_end and (header := _HUNK.match(reader.current)):
        reader.index += 1
        found.append(_hunk(reader, header))
    if not found:
        raise UnreadableDiff("a file has names and no hunk")
    if reader.starts("+", "-") and not reader.starts("--- ", "-- ") and reader.current != "--":
        raise UnreadableDiff("a hunk has more lines than its header says")
    return tuple(found)


def _hunk(reader: DiffLines, header: re.Match[str]) -> Hunk:
    start, before, _, after = (1 if part is None else int(part) for part in header.groups())
    old: list[bytes] = []
    new: list[bytes] = []
    sides: list[list[bytes]] = []  # those that the last line belongs to
    changed = 0
    while len(old) < before or len(new) < after or reader.starts("\\"):
        if reader.at_end:
            raise UnreadableDiff("a hunk is cut off, or its header counts wrong")
        line = reader.current
        reader.index += 1
        content = _bytes(line[1:] + "\n")
        match line[:1]:
            case " " | "":
                sides = [old, new]
            case "-":
                sides = [old]
            case "+":
                sides = [new]
            case "\\":
                for side in sides:
                    side[-1] = side[-1].removesuffix(b"\n")
                sides = []
                continue
            case _:
                raise UnreadableDiff("a hunk is cut off, or its header counts wrong")
        changed += len(sides) == 1
        for side in sides:
            side.append(content)
        if len(old) > before or len(new) > after:
            raise UnreadableDiff("a hunk is cut off, or its header counts wrong")
    return Hunk(start, tuple(old), tuple(new), changed)
