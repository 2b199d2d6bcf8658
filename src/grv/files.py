"""Files: read within bounds, replaced atomically.

Every reader of JSON, TOML and lines uses this module. Files are not trusted: the length of lines
and files, the depth of nesting and the size of numbers are checked first. A record becomes a
dataclass only if each value has the type that the field declares. Errors are a short `ValueError`,
or a `LogError` that names the file and the line.
"""

from __future__ import annotations

import functools
import gzip
import json
import math
import os
import re
import stat
import tempfile
import types
import zlib
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import (
    IO,
    Any,
    AnyStr,
    Literal,
    TypeGuard,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from .core.errors import LogError, UsageError

LONGEST_LINE = 64 << 20  # bytes or characters; also the size limit of a file with one record
DEEPEST = 128  # levels of nested lists and records
MOST_VALUES = 5_000_000  # values in one JSON text, which take about 100 bytes each
MOST_UNPACKED = 1 << 30  # bytes that any packed file may unpack to
UNPACKED_RATIO = 50  # how many bytes one byte of it may unpack to, above that
LARGEST_INT = 2**63
_SQLITE = b"SQLite format 3\0"
_SHOWN = 60
_SYSTEM = (("/", "dev"), ("/", "proc"))  # folders whose links are the system's

_Kind = TypeVar("_Kind")


def parse_json(text: str | bytes, *, finite: bool = False, deepest: int = DEEPEST) -> Any:
    """Parse untrusted JSON; with `finite`, refuse NaN and infinite numbers.

    >>> parse_json('{"score": 1e999}', finite=True)
    Traceback (most recent call last):
    ValueError: a number is not finite

    Raises:
        ValueError: the text is not JSON, nested too deep, or has too many values.
    """
    if len(text) > MOST_VALUES:  # a value takes at least a character
        _check_values(text)
    try:
        found = _loaded(text) if not finite else json.loads(text, **_FINITE)
    except json.JSONDecodeError as error:
        raise ValueError(error.msg.removesuffix(" starting at")) from error
    except UnicodeDecodeError as error:
        raise ValueError("not UTF-8 text") from error
    except RecursionError as error:
        raise ValueError(f"nested more than {deepest} levels deep") from error
    except _NotFiniteError as error:
        raise ValueError("a number is not finite") from error
    except ValueError as error:
        raise ValueError("a number has too many digits") from error
    _check_depth(found, text, deepest)
    return found


def _loaded(text: str | bytes) -> Any:
    """What `json.loads` returns; an object in text is read without its other steps."""
    if isinstance(text, str) and text[:1] == "{":
        try:
            found, end = _DECODER.raw_decode(text)
        except json.JSONDecodeError:
            end = -1
        if end == len(text):
            return found
    return json.loads(text)


_DECODER = json.JSONDecoder()


class _NotFiniteError(Exception):
    """NaN, Infinity or 1e999."""


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _NotFiniteError
    return number


_FINITE: dict[str, Any] = {"parse_float": _finite, "parse_constant": _finite}


_NESTED = frozenset((dict, list))  # the only ones in JSON


def _check_depth(found: Any, text: str | bytes, deepest: int) -> None:
    """Refuse nesting that recursive code could not handle."""
    if isinstance(text, str):
        opened = text.count("[") + text.count("{")
    else:
        opened = text.count(b"[") + text.count(b"{")
    if opened <= deepest:
        return
    level = [found] if isinstance(found, dict | list) else []
    for _ in range(deepest):
        level = [
            value
            for each in level
            for value in (each.values() if type(each) is dict else each)
            if type(value) in _NESTED
        ]
        if not level:
            return
    raise ValueError(f"nested more than {deepest} levels deep")


# Texts of JSON, some in a row, or what is between them. Nothing is tried twice: time is linear.
_PARTS = re.compile(rb'(?:"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z))++|[^"]++', re.DOTALL)


def _check_values(text: str | bytes) -> None:
    """Refuse a JSON text whose values would take far more memory than the text."""
    whole = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if sum(map(whole.count, _BEFORE_VALUES)) <= MOST_VALUES:
        return
    count = 0
    for part in _PARTS.finditer(whole):
        found = part.group()
        if not found.startswith(b'"'):
            count += sum(map(found.count, _BEFORE_VALUES))
        if count > MOST_VALUES:
            raise ValueError(f"more than {MOST_VALUES:,} values")


_BEFORE_VALUES = (b",", b":", b"[", b"{")


def bounded_lines(file: IO[AnyStr], path: str) -> Iterator[AnyStr]:
    """The lines of an open file; a line longer than `LONGEST_LINE` is an error."""
    number = 0
    while line := file.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise LogError(f"a line of more than {LONGEST_LINE >> 20} MB", path=path, line=number)
        yield line


def json_lines(path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The number and the record of each line; blank lines are skipped. Names in .gz are gzip."""
    try:
        file = gzip.open(path) if path.endswith(".gz") else open(path, "rb")  # noqa: SIM115
    except (OSError, ValueError) as error:
        raise LogError(f"cannot be read: {error_line(error)}", path=path) from error
    with file:
        for number, line in enumerate(_read(file, path), 1):
            if not line.strip():
                continue
            yield number, json_record(line, path, number)


_ONE_PER_LINE = "write one object per line, as jq -c '.[]' does with a list"


def json_record(line: bytes, path: str, number: int) -> dict[str, Any]:
    """The record of a line; a `LogError` names its place."""
    try:
        record = parse_json(line)
    except ValueError as error:
        hint = f"; {_ONE_PER_LINE}" if line.strip() in (b"[", b"{") else ""
        raise LogError(f"not a line of JSON: {error}{hint}", path=path, line=number) from error
    if not isinstance(record, dict):
        hint = f"; {_ONE_PER_LINE}" if isinstance(record, list) else ""
        message = f"a line must be an object, not {_kind_of(record)}{hint}"
        raise LogError(message, path=path, line=number)
    return record


def _read(file: IO[bytes] | gzip.GzipFile, path: str) -> Iterator[bytes]:
    """The lines; a read or decompression failure becomes a `LogError`."""
    unpacked = 0
    try:
        most = _most_unpacked(file.fileno()) if isinstance(file, gzip.GzipFile) else math.inf
        for line in bounded_lines(cast(IO[bytes], file), path):
            unpacked += len(line)
            if unpacked > most:
                raise LogError(
                    f"unpacks to more than {most:,} bytes; refused: if you trust it, unpack it"
                    " with gunzip",
                    path=path,
                )
            yield line
    except (OSError, EOFError, zlib.error) as error:
        raise LogError(f"cannot be read: {error_line(error)}", path=path) from error


def _most_unpacked(descriptor: int) -> int:
    return max(MOST_UNPACKED, UNPACKED_RATIO * os.fstat(descriptor).st_size)


Layout = tuple[bytes | re.Pattern[bytes], ...]
TEXT = re.compile(
    rb'(?:[^"\\\n]++|\\.)*+\\?'
)  # inside the quotes of a JSON string, perhaps cut off


def is_torn(line: bytes, layout: Layout) -> bool:
    """Whether a last line without a line break can be a record of ours that was cut off.

    Args:
        line: the line; complete JSON was not cut off.
        layout: how our records begin: literal parts, and patterns for the values between them.
    """
    try:
        parse_json(line)
    except ValueError:
        pass
    else:
        return False
    for part in layout:
        if isinstance(part, bytes):
            there = line[: len(part)]
            if there != part[: len(line)]:
                return False
            line = line[len(part) :]
        else:
            match = part.match(line)
            line = line[match.end() if match else 0 :]
        if not line:
            return True
    return True


def read_bytes(path: str) -> bytes:
    """The content of a file with one record: at most `LONGEST_LINE` bytes."""
    try:
        with open(path, "rb") as file:
            content = file.read(LONGEST_LINE + 1)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read: {error_line(error)}") from error
    if len(content) > LONGEST_LINE:
        raise UsageError(f"{path}: more than {LONGEST_LINE >> 20} MB")
    return content


def read_toml(path: str) -> dict[str, Any]:
    """The tables of a TOML file."""
    content = read_bytes(path)
    try:
        import tomllib

        tables = tomllib.loads(content.decode())
        _check_characters(tables)
        return tables
    except RecursionError as error:
        raise UsageError(f"{path}: not TOML: nested too deep") from error
    except ValueError as error:  # also for invalid UTF-8 and numbers
        raise UsageError(f"{path}: not TOML: {error}") from error


def _check_characters(tables: dict[str, Any]) -> None:
    """Refuse null characters: paths and command arguments cannot contain them."""
    waiting: list[Any] = [tables]
    while waiting:
        match waiting.pop():
            case dict() as table:
                waiting += [*table, *table.values()]
            case list() as values:
                waiting += values
            case str(text) if "\0" in text:
                raise ValueError(f"a null character in {shown(text)}")


def is_sqlite(path: str) -> bool:
    """Whether a file is an SQLite database, which every ledger is; judged by its first bytes."""
    if not os.path.isfile(path):
        return False  # to open a pipe is to wait, and what is read from it is gone
    try:
        with open(path, "rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except (OSError, ValueError):
        return False  # the caller reads the file next, and reports the error


def is_number(value: object) -> TypeGuard[float]:
    """Whether an untrusted value is a number that is finite as a float."""
    if type(value) is float:  # nearly always
        return math.isfinite(value)
    if type(value) is int and -LARGEST_INT < value < LARGEST_INT:
        return True
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def typed(kind: type[_Kind], record: object) -> _Kind:
    """The dataclass that a JSON record describes; unknown fields are ignored.

    Raises:
        ValueError: a field is missing, or has a value of another type.
    """
    if type(record) is not dict and not isinstance(record, Mapping):
        raise ValueError(f"must be a record, not {shown(record)}")
    values = {}
    for name, read, is_needed, exact in _fields(cast(Hashable, kind)):
        value = record.get(name, MISSING)
        if type(value) is exact:  # nearly always
            values[name] = value
        elif value is not MISSING:
            values[name] = read(value, name)
        elif is_needed:
            raise ValueError(f"{name!r} is missing")
    return kind(**values)


_Reader = Callable[[Any, str], Any]  # of a value and its name


@functools.cache
def _fields(kind: Hashable) -> list[tuple[str, _Reader, bool, type]]:
    """The fields of a dataclass.

    Each has its name, what reads values, whether it has no default, and the type whose values need
    no reading.
    """
    hints = get_type_hints(kind)
    return [
        (
            each.name,
            _reader(hints[each.name]),
            each.default is MISSING and each.default_factory is MISSING,
            _exact(hints[each.name]),
        )
        for each in fields(kind)  # type: ignore[arg-type]
    ]


def _exact(kind: Any) -> type:
    """The type whose values are right for an annotation as they are; `_Never` if there is none.

    An integer is not: it may be too large.
    """
    if kind in (str, float, bool):
        return cast(type, kind)
    is_optional = get_origin(kind) in (Union, types.UnionType) and types.NoneType in get_args(kind)
    return types.NoneType if is_optional else _Never


class _Never:
    """The type of no value."""


@functools.cache
def _reader(kind: Any) -> _Reader:
    """What converts values to an annotation: lists become tuples, records become dataclasses."""
    origin = get_origin(kind)
    parts = get_args(kind)
    if isinstance(kind, type) and is_dataclass(kind):
        return functools.partial(_read_record, kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return lambda value, name: kind(value)
    if origin in (Union, types.UnionType):
        return functools.partial(_read_one_of, parts)
    if origin is tuple:
        return functools.partial(_read_tuple, parts)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return functools.partial(_read_mapping, parts)
    return functools.partial(_read_plain, kind, origin, parts)


def _read_record(kind: type[Any], value: Any, name: str) -> Any:
    if isinstance(value, kind):  # the caller has read it
        return value
    if isinstance(value, Mapping):
        return typed(kind, value)
    raise _cannot_be(name, value)


def _read_one_of(parts: tuple[Any, ...], value: Any, name: str) -> Any:
    if value is None and types.NoneType in parts:
        return None
    for part in parts:
        try:
            return _reader(part)(value, name)
        except ValueError:
            continue
    raise _cannot_be(name, value)


def _read_tuple(parts: tuple[Any, ...], value: Any, name: str) -> tuple[Any, ...]:
    if isinstance(value, list | tuple):
        if parts[-1] is Ellipsis:
            if parts[0] is float and all([type(each) is float for each in value]):
                return tuple(value)  # many log-probabilities
            read = _reader(parts[0])
            return tuple([read(each, name) for each in value])
        if len(value) == len(parts):
            pairs = zip(value, parts, strict=True)
            return tuple([_reader(part)(each, name) for each, part in pairs])
    raise _cannot_be(name, value)


def _read_mapping(parts: tuple[Any, ...], value: Any, name: str) -> dict[Any, Any]:
    if not isinstance(value, Mapping):
        raise _cannot_be(name, value)
    if parts == (str, Any) and all([type(key) is str for key in value]):
        return dict(value)
    read_key, read_value = map(_reader, parts)
    return {read_key(key, name): read_value(each, name) for key, each in value.items()}


def _read_plain(kind: Any, origin: Any, parts: tuple[Any, ...], value: Any, name: str) -> Any:
    if type(value) is kind and (kind is not int or -LARGEST_INT < value < LARGEST_INT):
        return value  # nearly always
    if not _plain(value, kind, origin, parts):
        raise _cannot_be(name, value)
    return float(value) if kind is float else value


def _cannot_be(name: str, value: Any) -> ValueError:
    return ValueError(f"{name!r} cannot be {shown(value)}")


def _plain(value: Any, kind: Any, origin: Any, parts: tuple[Any, ...]) -> bool:
    """Whether a value has a type without parts, such as `int` or a `Literal`."""
    if kind is Any:
        return True
    kind = getattr(kind, "__supertype__", kind)  # of a `NewType`
    if origin is Literal:
        return any(type(value) is type(part) and value == part for part in parts)
    if kind is int:
        return isinstance(value, int) and type(value) is not bool and abs(value) < LARGEST_INT
    if kind is float:
        small = isinstance(value, int) and type(value) is not bool and abs(value) < LARGEST_INT
        return small or isinstance(value, float)
    return isinstance(kind, type) and isinstance(value, kind)


def shown(value: object) -> str:
    """A value as messages quote it; a long one is cut."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested too deep, or an integer with too many digits
        text = f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _kind_of(value: object) -> str:
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return {list: "a list", str: "text", type(None): "null"}.get(type(value), "a number")


def error_line(error: BaseException, *, named: bool = False, most: int = 300) -> str:
    """What an exception of the system, a library or a user's function says, in one line.

    >>> error_line(FileNotFoundError(2, "No such file or directory"))
    'No such file or directory'
    >>> error_line(ZeroDivisionError("division by zero"), named=True)
    'ZeroDivisionError: division by zero'

    Args:
        error: the exception.
        named: whether its class comes first.
        most: the length, in characters, at which the line is cut.
    """
    name = type(error).__name__
    try:
        said = " ".join(str(error).split())
    except Exception:  # __str__ may be a user's code
        said = ""
    if not named:
        return (getattr(error, "strerror", None) or said or name)[:most]
    return (f"{name}: {said}" if said else name)[:most]


@contextmanager
def replacing(
    path: str | os.PathLike[str], *, through_link: bool = False, private: bool = False
) -> Iterator[Path]:
    """A temporary path to write to; it replaces `path` when the block ends without an error.

    The temporary file is in the same folder, with the permissions of a new file; if `private`, only
    its owner may read it. If `path` is not a regular file (a terminal, a pipe), it is written to
    directly. If it is a link, the link is replaced, never the file that it leads to, unless the
    caller says that it knows that file.
    """
    target = temporary = _target(path, through_link=through_link)
    try:
        if not _is_special(target):
            temporary = _new_beside(target)
        yield temporary
        if temporary != target:
            temporary.chmod(0o600 if private else 0o666 & ~_umask())
            os.replace(temporary, target)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error_line(error)}") from error
    finally:
        if temporary != target:
            temporary.unlink(missing_ok=True)


def check_writable(path: str | os.PathLike[str], *, through_link: bool = False) -> None:
    """Refuse a file that cannot be replaced, before any work is done for it."""
    target = _target(path, through_link=through_link)
    if target.is_symlink() and target.is_file() and not _is_special(target):
        raise UsageError(
            f"{path}: a link to {os.path.realpath(path)}, which is not replaced: name that file"
            " itself, or remove the link"
        )
    try:
        if not _is_special(target):
            _new_beside(target).unlink()
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error_line(error)}") from error


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Replace the file's content, atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def check_same(descriptor: int, path: str | os.PathLike[str]) -> None:
    """Refuse to write on to a file that is not at its path any more: it would be lost.

    Raises:
        UsageError: it was deleted, moved or replaced since it was opened.
    """
    opened = os.fstat(descriptor)
    if not stat.S_ISREG(opened.st_mode):
        return  # a terminal or a pipe
    try:
        there = os.path.samestat(opened, os.stat(path))
    except OSError:
        there = False
    if not there:
        raise UsageError(
            f"{path}: deleted, moved or replaced while this command wrote to it; run the same"
            " command again"
        )


def _target(path: str | os.PathLike[str], *, through_link: bool = False) -> Path:
    """The file to replace; the path itself if it is not a regular file."""
    given = Path(path)
    if given.is_dir():
        raise UsageError(f"{path}: cannot be written: it is a folder")
    follow = through_link or given.parts[:2] in _SYSTEM  # /dev/stdout is a link
    return Path(os.path.realpath(path)) if follow and not _is_special(given) else given


def _is_special(target: Path) -> bool:
    """Whether the path exists and is not a regular file."""
    return target.exists() and not target.is_file()


def _new_beside(target: Path) -> Path:
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    os.close(handle)
    return Path(name)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
