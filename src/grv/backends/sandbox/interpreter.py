"""Makes a forked child look like a freshly started interpreter.

The zygote has imported what programs use most, and it has a stack of its own frames. A program must
notice neither. One that uses `collections.abc` after `import collections` crashes elsewhere, and
one that recurses 990 levels deep works elsewhere. So a child runs a program from the boot script's
frame (worker.py), with the modules that a fresh interpreter has loaded. It finds other modules in
the zygote's memory when it imports them.

The zygote imports this module before all others, and records which module imports which.
"""

from __future__ import annotations

import _frozen_importlib_external as files
import builtins
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import CodeType, ModuleType
    from typing import Any
else:
    ModuleType = type(sys)

_Spec = type(sys.__spec__)
PROGRAM = 5  # the descriptor of the file for the program, which is closed before it runs
_STDOUT_FAILED = 120  # the exit code of an interpreter that cannot flush its output
_own = __name__.partition(".")[0]
_import = builtins.__import__
_fresh: set[str] = set()  # the modules that a fresh interpreter has loaded
_needs: dict[str, set[str]] = {}  # what each module imports when it is loaded
_hidden: dict[str, ModuleType] = {}


def _recording_import(
    name: str,
    globals: Mapping[str, Any] | None = None,
    locals: Mapping[str, Any] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> ModuleType:
    module = _import(name, globals, locals, fromlist or (), level)
    if globals and sys._getframe(1).f_code.co_name == "<module>":  # noqa: SLF001
        package = str(globals.get("__package__") or "")
        for _ in range(level - 1):
            package = package.rpartition(".")[0]
        full = f"{package}.{name}".strip(".") if level else name
        inner = (f"{full}.{item}" for item in fromlist or ())
        found = {full, *(item for item in inner if item in sys.modules)}
        _needs.setdefault(str(globals["__name__"]), set()).update(found)
    return module


def record_imports() -> None:
    """Note which modules are loaded now, and which ones each further module imports."""
    _fresh.update(sys.modules)
    builtins.__import__ = _recording_import


def hide_modules() -> None:
    """Hide modules that a program could use without importing them, until it imports them.

    Those are inner modules that their package does not load itself, such as `collections.abc`, and
    the modules that import them.
    """
    builtins.__import__ = _import
    loaded = [name for name in sys.modules if name not in _fresh and name != _own]
    hidden = {name for name in loaded if _is_extra(name)}
    while more := {name for name in loaded if _needs.get(name, set()) & hidden} - hidden:
        hidden |= more
    for name in hidden:
        _hidden[name] = sys.modules.pop(name)
        if _is_extra(name):
            parent, _, child = name.rpartition(".")
            delattr(sys.modules.get(parent) or _hidden[parent], child)
    for name in hidden & _needs.keys():
        _needs[name] &= hidden  # the others are never looked for again
    sys.meta_path.insert(0, _Finder)  # type: ignore[arg-type]


def _is_extra(name: str) -> bool:
    """Whether it is an inner module of the library's that its package does not load itself."""
    parent, _, child = name.rpartition(".")
    package = sys.modules.get(parent) or _hidden.get(parent)
    is_own = name.partition(".")[0] == _own
    if not parent or is_own or name in _needs.get(parent, ()):
        return False
    return child in getattr(package, "__dict__", {})


def rehearse_finding() -> None:
    """Import a hidden module, as many children do."""
    name = "grv_rehearsal"
    _hidden[name] = ModuleType(name)
    __import__(name)
    del sys.modules[name]


class _Finder:
    """Finds hidden modules, with all that they import."""

    @classmethod
    def find_spec(cls, name: str, path: object = None, target: object = None) -> object:
        if name not in _hidden:
            return None
        return _Spec(name, cls)  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: Any) -> ModuleType:
        module = _hidden[spec.name]
        spec.loader_state = getattr(module, "__spec__", None)
        return module

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        spec = module.__spec__
        assert spec is not None
        module.__spec__ = spec.loader_state
        _show(spec.name)


def _show(name: str) -> None:
    """Show a module, its package, and what they import."""
    module = _hidden.pop(name, None)
    if module is None:
        return
    sys.modules[name] = module
    parent, _, child = name.rpartition(".")
    if parent:
        _show(parent)
        setattr(sys.modules[parent], child, module)
    for needed in _needs.get(name, ()):
        _show(needed)


def program_file(box: str) -> str:
    """The file of a program. It is beside the current directory, and not writable."""
    return os.path.join(box, "main.py")


class Task:
    """What a child does: it runs a program, then deals with its end."""

    program: CodeType
    namespace: dict[str, Any]

    def finish(self, error: BaseException | None) -> int:
        """Deal with the end of the program; the exit code of the process."""
        raise NotImplementedError


class Script:
    """A program as a file that the interpreter was started with, or that was imported.

    Attributes:
        path: its file, above the current directory.
        namespace: the global names of its module.
    """

    def __init__(self, name: str, source: str) -> None:
        folder = os.getcwd()
        self.path = program_file(os.path.dirname(folder))
        self._data = source.encode("utf-8", "surrogatepass")
        self.module: ModuleType | None = ModuleType(name)
        self.namespace = self.module.__dict__
        loader = files.SourceFileLoader(name, self.path)
        is_main = name == "__main__"
        self.namespace |= {"__file__": self.path, "__loader__": loader, "__cached__": None}
        if is_main:
            self.namespace |= {"__builtins__": builtins, "__annotations__": {}}
        else:
            spec = _Spec(name, loader, origin=self.path)
            builtin_names = builtins.__dict__
            self.namespace |= {"__builtins__": builtin_names, "__spec__": spec, "__package__": ""}
            sys.modules["__main__"] = ModuleType("__main__")
        sys.modules[name] = self.module
        sys.argv = [self.path]
        sys.orig_argv = [sys.executable, self.path]
        sys.path.insert(0, folder)

    def compile(self) -> CodeType:
        """The program's code; raises what the interpreter raises."""
        try:
            os.ftruncate(PROGRAM, 0)
            os.pwrite(PROGRAM, self._data, 0)
        except OSError:
            pass  # the disk is full: a program rarely reads its own text
        os.close(PROGRAM)
        return compile(self._data, self.path, "exec", dont_inherit=True)

    def forget(self) -> None:
        """Drop the module, as the interpreter does at its end: objects may have finalizers."""
        sys.modules.pop("__main__", None)
        self.module = None
        self.namespace = {}


def exit_code(end: SystemExit) -> int:
    """The exit code of an interpreter that a SystemExit ends."""
    code = end.code
    if code is None:
        return 0
    if not isinstance(code, int):
        return 1
    return code & 0xFF if abs(code) < 1 << 31 else 0xFF


def flush(streams: Iterable[Any]) -> int:
    """Flush the standard streams as the interpreter does at its end; its exit code."""
    code = 0
    for stream in streams:
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except BaseException:
            code = _STDOUT_FAILED
    return code


def leave(task: Task, error: BaseException | None) -> None:
    """End the process with a task's exit code."""
    code = 1
    try:
        code = task.finish(error)
    finally:
        os._exit(code)
