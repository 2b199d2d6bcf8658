"""The user's own code by name: `my.py:score`, a function or a class of a Python file.

Such code runs with the user's rights, so a text alone never loads it: first the command line must
`allow` it. A file of problems, a saved comparison or a ledger can contain `evil.py:f` and nothing
happens. The file is compiled from its source; no cached bytecode is read or written.

A program that makes candidates, `command:./agent.sh` or `agent:claude`, runs with the user's rights
too. The same holds for it: `check_command` refuses what was not allowed.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import os
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from .core.errors import UsageError
from .files import error_line, read_bytes
from .options import did_you_mean

FORM = "FILE.py:NAME"
_NAMED = re.compile(r"(?<![^\s,('\"=])([^\s,()'\":]+\.py):([^\W\d]\w*)")
_PREFIX = "_own_code_"
_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep

_PROGRAMS = ("command:", "agent:", "harbor:")  # how specifications of programs begin

_allowed: set[tuple[str, str]] = set()
_allowed_commands: set[str] = set()
_modules: dict[tuple[str, str], ModuleType] = {}  # by file and digest
_files: dict[str, str] = {}  # the loaded files, as their code objects name them, and as users do


@dataclass(frozen=True)
class Code:
    """A function or a class of the user's.

    Attributes:
        name: the file without its folders, and the name in it: `my.py:score`.
        value: the function or the class.
        digest: a checksum of the file and of the files beside it that it imports. For a plugin it
            is the package and its version, and the name is that of the plugin.
    """

    name: str
    value: Any
    digest: str


def is_code(text: str) -> bool:
    """Whether a specification names code.

    >>> is_code("my.py:score"), is_code("logprob"), is_code("pooling:http://h/a.py:last")
    (True, False, False)
    """
    file = text.strip().partition(":")[0]
    return file.endswith(".py") and file.count("(") == file.count(")")  # not inside cascade(...)


def named_in(text: str) -> list[tuple[str, str]]:
    """The files and names that a specification contains.

    >>> named_in("cascade(my.py:cheap, lib/my.py:dear, top=4)")
    [('my.py', 'cheap'), ('lib/my.py', 'dear')]
    """
    if is_code(text):  # then the path may have spaces
        file, _, rest = text.strip().partition(":")
        return [(file, rest.partition("(")[0].strip())]
    return [(match[1], match[2]) for match in _NAMED.finditer(text)]


def allow(text: str) -> None:
    """Let the code be loaded or the program be run that a specification names: the user gave it."""
    if is_command(text):
        _allowed_commands.add(text.strip())
        return
    _allowed.update(named_in(text))


def is_command(text: str) -> bool:
    """Whether a specification names a program that runs with the user's rights.

    >>> is_command("command:./agent.sh"), is_command("agent:claude"), is_command("openai:m")
    (True, True, False)
    """
    return text.strip().startswith(_PROGRAMS)


def check_command(text: str) -> None:
    """Refuse to run a program that the user did not name; a UsageError says so."""
    if text.strip() not in _allowed_commands:
        raise UsageError(f"{text}: a program can only be named on the command line")


def load(text: str) -> Code:
    """The code that a specification names. A UsageError in one line says why it cannot be used."""
    file, _, name = text.strip().partition(":")
    if not name.isidentifier():
        raise UsageError(
            f"{text.strip().rstrip(':')}: name a function or a class of the file, as in"
            f" {file}:score"
        )
    if (file, name) not in _allowed:
        raise UsageError(f"{text}: code can only be named on the command line")
    digest, module = _loaded(file)
    if name not in vars(module):
        there = [each for each, value in vars(module).items() if _is_own(value, module)]
        hint = did_you_mean(name, there) or (f"; it has {', '.join(there)}" if there else "")
        raise UsageError(f"{file} has no {name}{hint}")
    return Code(f"{os.path.basename(file)}:{name}", getattr(module, name), digest)


def register(name: str, digest: str) -> None:
    """Treat an imported module as code of the user: messages blame it, ledgers name its digest."""
    module = sys.modules[name]
    file = os.path.realpath(module.__file__ or name)
    _modules[file, digest] = module
    _files[file] = os.path.basename(file)


def digest_of(value: object) -> str:
    """The checksum of the user's code that defines the class of a value; "" if grv does."""
    module = sys.modules.get(type(value).__module__)
    return next((digest for (_, digest), own in _modules.items() if own is module), "")


def digest_of_files(paths: Sequence[str]) -> str:
    """A checksum of files, and of the files beside Python files that these import; "" of none.

    Paths are not part of it: a folder may be moved.
    """
    digests = [_file_digest(path, _stamp(path)) for path in paths]
    return hashlib.blake2b("\n".join(digests).encode(), digest_size=16).hexdigest() if paths else ""


_Stamp = tuple[int, ...]


def _stamp(path: str) -> _Stamp:
    """What changes when a file does."""
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


@functools.lru_cache(maxsize=1024)
def _content_digest(path: str, stamp: _Stamp) -> str:
    """A checksum of the content of a file, which is read again when its stamp changes."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "blake2b").hexdigest()
    except OSError as error:
        return f"unreadable: {error.strerror}"


def _file_digest(path: str, stamp: _Stamp) -> str:
    local = _local_imports(os.path.realpath(path), stamp) if path.endswith(".py") else ()
    return " ".join(_content_digest(each, _stamp(each)) for each in (path, *local))


@functools.lru_cache(maxsize=1024)
def _local_imports(path: str, stamp: _Stamp) -> tuple[str, ...]:
    """The files beside a Python file that it imports."""
    try:
        source = Path(path).read_bytes()
    except OSError:
        return ()
    return tuple(sorted(map(str, _imported(source, Path(path).parent, {path}))))


def blamed(error: BaseException) -> str:
    """The last line of the user's code in a traceback, as `my.py:12`; "" if there is none."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename in _files]
    return f"{_files[own[-1].filename]}:{own[-1].lineno}" if own else ""


def last_line(error: BaseException) -> str:
    """The last line of a traceback outside grv and installed packages, as `my.py:12`."""
    frames = traceback.extract_tb(error.__traceback__)
    outside = [frame for frame in frames if not frame.filename.startswith(_PACKAGE)]
    own = [frame for frame in outside if not frame.filename.startswith(_installed())] or outside
    return f"{os.path.basename(own[-1].filename)}:{own[-1].lineno}" if own else ""


@functools.cache
def _installed() -> tuple[str, ...]:
    """The folders of the standard library and of installed packages."""
    import sysconfig

    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple(sysconfig.get_path(name) + os.sep for name in names)


def raised(error: BaseException) -> str:
    """An exception of the user's code in one line: `my.py:12: ZeroDivisionError: ...`."""
    place = blamed(error)
    return (f"{place}: " if place else "") + error_line(error, named=True)


def _loaded(file: str) -> tuple[str, ModuleType]:
    """The digest and the module of a file."""
    path = os.path.realpath(file)
    source = read_bytes(file)
    folder = os.path.dirname(path)
    local = sorted(_imported(source, Path(folder), {path}))
    parts = [source, *(read_bytes(str(each)) for each in local)]
    digest = hashlib.blake2b(b"\0".join(parts), digest_size=8).hexdigest()
    for each in (path, *map(str, local)):
        _files[each] = os.path.relpath(each) if each != path else file
    if (path, digest) not in _modules:
        if folder not in sys.path:
            sys.path.append(folder)  # at the end: its files do not replace installed modules
        _modules[path, digest] = _executed(file, path, source, digest)
    return digest, _modules[path, digest]


def _executed(file: str, path: str, source: bytes, digest: str) -> ModuleType:
    name = f"{_PREFIX}{Path(path).stem}_{digest}"
    spec = importlib.util.spec_from_loader(name, loader=None, origin=path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    module.__file__ = path
    sys.modules[name] = module  # dataclasses look their module up
    try:
        exec(compile(source, path, "exec", dont_inherit=True), vars(module))
    except SyntaxError as error:
        del sys.modules[name]
        place = f"{file}:{error.lineno or 1}" if error.filename == path else raised(error)
        raise UsageError(f"{place}: SyntaxError: {error.msg}") from error
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise UsageError(f"{raised(error)}; {file} cannot be imported") from error
    return module


def _imported(source: bytes, folder: Path, seen: set[str]) -> Iterator[Path]:
    """The files of the folder that a source imports, directly or not. A package counts whole."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    for name in {name.partition(".")[0] for name in _import_names(tree)}:
        if _is_elsewhere(name, folder):
            continue
        for each in (folder / f"{name}.py", *_package(folder / name)):
            if each.is_file() and str(each) not in seen:
                seen.add(str(each))
                yield each
                yield from _imported(each.read_bytes(), folder, seen)


def _is_elsewhere(name: str, folder: Path) -> bool:
    """Whether a module comes from another place than this folder, which is searched last."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return False
    if spec is None:
        return False
    places = [spec.origin] if spec.has_location else spec.submodule_search_locations or [""]
    return not any(folder in Path(place or "").parents for place in places)


def _package(folder: Path) -> Iterator[Path]:
    """The files of a package, without hidden folders."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(each for each in folders if each.isidentifier())
        yield from (Path(place, each) for each in sorted(files) if each.endswith(".py"))


def _import_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def _is_own(value: object, module: ModuleType) -> bool:
    """Whether a module defines a function or class itself, under a public name."""
    name = getattr(value, "__name__", "_")
    return (
        getattr(value, "__module__", None) == module.__name__
        and isinstance(name, str)
        and not name.startswith("_")
    )
