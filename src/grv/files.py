"""Files replaced whole: either the old one or the new one is there, never half of one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .core.errors import UsageError


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A path to write to, moved over `path` when the block ends without an error.

    The new file lies beside the old one until then, with the rights that a new file would have.
    What is there and is no regular file (a terminal, a pipe) is written to directly.
    """
    target = temporary = _target(path)
    try:
        if not _is_special(target):
            temporary = _new_beside(target)
        yield temporary
        if temporary != target:
            temporary.chmod(0o666 & ~_umask())
            os.replace(temporary, target)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        if temporary != target:
            temporary.unlink(missing_ok=True)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse, before any work is done for it, a file that could not be replaced afterwards."""
    target = _target(path)
    try:
        if not _is_special(target):
            _new_beside(target).unlink()
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Replace the file's content, atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _target(path: str | os.PathLike[str]) -> Path:
    """The file that the path leads to, or the path itself where that is no regular file."""
    given = Path(path)
    if given.is_dir():
        raise UsageError(f"{path}: cannot be written: it is a folder")
    return given if _is_special(given) else Path(os.path.realpath(path))


def _is_special(target: Path) -> bool:
    """Whether something is there that is no regular file."""
    return target.exists() and not target.is_file()


def _new_beside(target: Path) -> Path:
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    os.close(handle)
    return Path(name)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
