"""The control: the same tests under the same names, rewritten so that each must fail.

A candidate that makes its tests pass by force, by changing pytest, unittest, reports or the test
functions, makes these pass too, and so gives itself away. A candidate that is right fails them, as
everybody does. A test runs as it is written, and fails when it is done, whatever it returns. In
Python it fails only if everything fails that tests assert with (probes.py).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from . import probes
from .protection import test_file

_GO = re.compile(r"^func (Test\w*)\((\w+) \*testing\.T\) \{", re.MULTILINE)
_RUST = re.compile(
    r"(#\[(?:\w+::)?test\]\s*(?:#\[[^\]]*\]\s*)*(?:pub\s+)?(?:async\s+)?fn\s+(\w+)\s*\(\s*\)[^{;]*\{)"
)
_FAILS = "struct GrvControl; impl Drop for GrvControl { fn drop(&mut self) { panic!(); } }"
# A last test, or a last statement; what is missing there fails as well.
_JAVASCRIPT = """
;{
  const grvControl = () => require("assert").equal(0, 1);
  if (typeof test === "function") test("control", grvControl);
  else if (typeof it === "function") it("control", grvControl);
  else grvControl();
}
"""
_LARGEST = 4 << 20  # characters of a file of tests
_PROBES = Path(probes.__file__).read_text(encoding="utf-8")
# Comparisons by other packages: some raise, some return whether it is so.
_ASSERTS = re.compile(r"assert_?(?!.*not)\w*(?:equal|close)|eq_", re.IGNORECASE)
_COMPARES = re.compile(r"(?:is|all)_?close|array_equ\w+", re.IGNORECASE)


def rewritten(path: str, text: str, paths: Collection[str] = ()) -> tuple[str, frozenset[str]]:
    """A file of tests whose tests fail, and their names; without names, nothing was rewritten.

    `paths` are the files of the commit: what they define is not used to compare.

    >>> text, names = rewritten("test_a.py", "def test_one(): assert True")
    >>> sorted(names)
    ['test_one']
    """
    ending = path.rpartition(".")[2]
    if ending not in _REWRITERS or len(text) > _LARGEST:
        return text, frozenset()
    return _REWRITERS[ending](text, paths)


def collected(text: str) -> frozenset[str]:
    """The test functions of a file in Python that pytest surely collects, if it can be loaded.

    >>> collected("def test_a(): pass")
    frozenset({'test_a'})
    """
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    plain = (ast.FunctionDef, ast.AsyncFunctionDef)
    classes = [node for node in body if isinstance(node, ast.ClassDef)]
    groups = [node.body for node in classes if node.name.startswith("Test") and not node.bases]
    for group in groups:
        if any(isinstance(node, plain) and node.name == "__init__" for node in group):
            group.clear()
    return frozenset(
        node.name
        for group in (body, *groups)
        for node in group
        if isinstance(node, plain)
        and node.name.startswith("test")
        and not any("fixture" in ast.unparse(each) for each in node.decorator_list)
    )


def is_rewritten(test: str, names: Mapping[str, frozenset[str]]) -> bool:
    """Whether a test, as a runner names it, was rewritten. `names` are those of each file.

    >>> is_rewritten("test_a.py::TestX::test_m[1]", {"test_a.py": frozenset({"TestX.test_m"})})
    True
    >>> is_rewritten("tests.test_a.TestX.test_m", {"tests/test_a.py": frozenset({"TestX.test_m"})})
    True
    """
    file = test_file(test)
    plain = test.partition("[")[0].partition("::")[2]
    if file in names:
        parts = plain.replace("::", ".").split(".")
        return ".".join(parts[-2:]) in names[file]
    if not plain:  # in a file of results, CLASS.NAME
        parts = test.partition("[")[0].split(".")
        return any(
            ".".join(parts[-2:]) in found or parts[-1] in found
            for path, found in names.items()
            if path.endswith(".py")
        )
    others = [found for path, found in names.items() if not path.endswith(".py")]
    return any(plain.rpartition("::")[2] in found for found in others)


def _python(text: str, paths: Collection[str]) -> tuple[str, frozenset[str]]:
    try:
        tree = ast.parse(text)
        comparisons = [*_comparisons(tree, paths)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text, frozenset()
    names: set[str] = set()
    for function, group in _functions(tree.body):
        names.add(f"{group}.{function.name}" if group else function.name)
        given = [*function.args.posonlyargs, *function.args.args]
        test = given[0].arg if group and given else None
        failing = f"assert _grv_probes['anything_holds']({test}, _grv_comparisons)"
        function.body = [ast.Try(function.body, [], [], ast.parse(failing).body)]
    tree.body += ast.parse(
        "_grv_probes = {'__name__': '_grv_probes'}\n"
        f"exec({_PROBES!r}, _grv_probes)\n"
        f"_grv_comparisons = ({''.join(f'lambda: {each}, ' for each in comparisons)})\n"
    ).body
    return ast.unparse(ast.fix_missing_locations(tree)), frozenset(names)


def _functions(
    body: Sequence[ast.stmt], group: str = ""
) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, str]]:
    """The tests of a module, each with the name of its class."""
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if node.name.startswith("test"):
                    yield node, group
            case ast.ClassDef():
                yield from _functions(node.body, node.name)
            case ast.If() | ast.Try() | ast.With():
                for block in ("body", "orelse", "finalbody"):
                    yield from _functions(getattr(node, block, []), group)
                for handler in getattr(node, "handlers", []):
                    yield from _functions(handler.body, group)


def _comparisons(tree: ast.Module, paths: Collection[str]) -> Iterator[str]:
    """Comparisons of 0 and 1 by functions of other packages that the tests use; each must fail."""
    own = {part.removesuffix(".py") for path in paths for part in path.split("/")}
    imported = {name for name, module in _imports(tree) if module not in own}
    called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for function in sorted(called):
        name = function.rpartition(".")[2]
        if function.partition(".")[0] not in imported:
            continue
        if _ASSERTS.fullmatch(name):
            yield f"{function}(0, 1)"
        elif _COMPARES.fullmatch(name):
            yield f"1 / (1 if {function}(0, 1) else 0)"


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The names that a module imports at its top level, each with the package it is from."""
    for node in tree.body:
        match node:
            case ast.Import():
                for name in node.names:
                    package = name.name.partition(".")[0]
                    yield name.asname or package, package
            case ast.ImportFrom(module=str(module), level=0):
                for name in node.names:
                    yield name.asname or name.name, module.partition(".")[0]


def _go(text: str, paths: Collection[str]) -> tuple[str, frozenset[str]]:
    names = frozenset(match[1] for match in _GO.finditer(text))
    return _GO.sub(r'\g<0> defer \g<2>.Error("control");', text), names


def _rust(text: str, paths: Collection[str]) -> tuple[str, frozenset[str]]:
    names = frozenset(match[2] for match in _RUST.finditer(text))
    return _RUST.sub(rf"\g<1> {_FAILS} let _grv_control = GrvControl;", text), names


def _javascript(text: str, paths: Collection[str]) -> tuple[str, frozenset[str]]:
    return text + _JAVASCRIPT, frozenset({"control"})


_REWRITERS: Mapping[str, Callable[[str, Collection[str]], tuple[str, frozenset[str]]]] = {
    "py": _python,
    "go": _go,
    "rs": _rust,
    **dict.fromkeys(("js", "cjs", "mjs", "jsx", "ts", "tsx"), _javascript),
}
