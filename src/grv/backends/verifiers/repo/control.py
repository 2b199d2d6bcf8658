"""The control: the same tests under the same names, rewritten so that each must fail.

A candidate that makes its tests pass by force, by changing pytest, unittest, reports or the test
functions, makes these pass too, and so gives itself away. A candidate that is right fails them, as
everybody does. A test runs as it is written, and fails when it is done, whatever it returns.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping

from .protection import test_file

_GO = re.compile(r"^func (Test\w*)\((\w+) \*testing\.T\) \{", re.MULTILINE)
_RUST = re.compile(
    r"(#\[(?:\w+::)?test\]\s*(?:#\[[^\]]*\]\s*)*(?:pub\s+)?(?:async\s+)?fn\s+(\w+)\s*\(\s*\)[^{;]*\{)"
)
_FAILS = "struct GrvControl; impl Drop for GrvControl { fn drop(&mut self) { panic!(); } }"
_LARGEST = 4 << 20  # characters of a file of tests


def rewritten(path: str, text: str) -> tuple[str, frozenset[str]]:
    """A file of tests whose tests fail, and their names; without names, nothing was rewritten.

    >>> text, names = rewritten("test_a.py", "def test_one(): assert True")
    >>> sorted(names)
    ['test_one']
    """
    ending = path.rpartition(".")[2]
    if ending not in _REWRITERS or len(text) > _LARGEST:
        return text, frozenset()
    return _REWRITERS[ending](text)


def is_rewritten(test: str, names: Mapping[str, frozenset[str]]) -> bool:
    """Whether a test, as a runner names it, was rewritten. `names` are those of each file.

    >>> is_rewritten("test_a.py::TestX::test_m[1]", {"test_a.py": frozenset({"TestX.test_m"})})
    True
    """
    file = test_file(test)
    plain = test.partition("[")[0].partition("::")[2]
    if file in names:
        parts = plain.replace("::", ".").split(".")
        return ".".join(parts[-2:]) in names[file]
    others = [found for path, found in names.items() if not path.endswith(".py")]
    return any(plain.rpartition("::")[2] in found for found in others)


def _python(text: str) -> tuple[str, frozenset[str]]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text, frozenset()
    names: set[str] = set()
    for function, group in _functions(tree):
        names.add(f"{group}.{function.name}" if group else function.name)
        # In a class of unittest its own assertion must fail; in others there is none, and an
        # AttributeError is raised.
        first = function.args.args[0].arg if group and function.args.args else ""
        failing = f"{first}.assertEqual(0, 1)" if first else "assert 0 == 1"
        body = ast.Try(function.body, [], [], ast.parse(failing).body)
        function.body = [body]
    return ast.unparse(ast.fix_missing_locations(tree)), frozenset(names)


def _functions(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, str]]:
    """The tests of a module, each with the name of its class."""
    groups = [(tree.body, "")]
    groups += [(node.body, node.name) for node in tree.body if isinstance(node, ast.ClassDef)]
    for body, group in groups:
        for node in body:
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef() if node.name.startswith("test"):
                    yield node, group


def _go(text: str) -> tuple[str, frozenset[str]]:
    names = frozenset(match[1] for match in _GO.finditer(text))
    return _GO.sub(r'\g<0> defer \g<2>.Error("control");', text), names


def _rust(text: str) -> tuple[str, frozenset[str]]:
    names = frozenset(match[2] for match in _RUST.finditer(text))
    return _RUST.sub(rf"\g<1> {_FAILS} let _grv_control = GrvControl;", text), names


_REWRITERS: Mapping[str, Callable[[str], tuple[str, frozenset[str]]]] = {
    "py": _python,
    "go": _go,
    "rs": _rust,
}
