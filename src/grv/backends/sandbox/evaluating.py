"""Refuses tests that evaluate a candidate's answer: they would run the candidate's code.

A test may evaluate texts of its own, and arithmetic that a candidate answers with, as in
`eval(candidate(4, 6, 8)) == 24`. Names in such an answer must not mean values of the test, or an
answer could name the expected value; `eval` with names of its own is fine. It may read plain data
with `json` or `ast.literal_eval`.
"""

from __future__ import annotations

import builtins
import os
import re
import sys
from collections.abc import Callable, Container, Sequence
from typing import Any

_HARMLESS = (
    "Expression",
    "Constant",
    "Name",
    "Load",
    "Tuple",
    "List",
    "Dict",
    "Set",
    "BinOp",
    "UnaryOp",
    "BoolOp",
    "Compare",
    "IfExp",
    "operator",
    "unaryop",
    "boolop",
    "cmpop",
)
_WORDS = ("eval", "exec", "compile", "builtins", "import_module", "pickle", "runpy", "timeit")
_LONGEST = 100_000
_WORD = re.compile(r"\w+")
_ONLY_TREE = 0x400  # ast.PyCF_ONLY_AST
_parse = compile


def may_evaluate(source: str) -> bool:
    """Whether a test has a word that every way to evaluate a text needs."""
    return any(word in source for word in _WORDS)


class EvaluatedAnswer(BaseException):
    """The test is at fault: it evaluates an answer. Not an Exception: no test catches it."""


class EvaluationGuard:
    """Watches what a test evaluates, once it has an answer. `source` is the test's own text."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._folder = os.path.dirname(os.getcwd())
        self._texts: set[str] = set()
        self._words: set[str] = set()  # answers that are a name or a number
        self._is_active = False

    def install(self) -> None:
        """Replace `eval`, `exec` and `compile`, and watch `pickle`."""
        for function in (eval, exec):
            setattr(builtins, function.__name__, self._evaluating(function))
        builtins.compile = self._compiling
        sys.addaudithook(self._audit)

    def answered(self, value: Any) -> None:
        """Note the texts in an answer."""
        self._is_active = True
        waiting = [value]
        while waiting:
            item = waiting.pop()
            if isinstance(item, str):
                if _WORD.fullmatch(item.strip()):
                    self._words.add(item.strip())
                elif len(item) > 1:
                    self._texts.add(item)
            elif isinstance(item, (bytes, bytearray)):
                waiting.append(bytes(item).decode("utf-8", "surrogateescape"))
            elif isinstance(item, (list, tuple, set, frozenset)):
                waiting.extend(item)
                if len(item) > 1 and all(isinstance(part, str) for part in item):
                    waiting += ["".join(item), " ".join(item)]
            elif isinstance(item, dict):
                waiting.extend([*item.keys(), *item.values()])

    def _check(self, source: Any, scopes: Sequence[Container[str]] = ()) -> None:
        """Raise EvaluatedAnswer if a text uses an answer that may do more than arithmetic.

        `scopes` contain the names of the test's own values, if the text can mean them.
        """
        if not self._is_active or not isinstance(source, (str, bytes, bytearray)):
            return
        text = source if isinstance(source, str) else bytes(source).decode("utf-8", "replace")
        used = [answer for answer in self._texts if answer in text]
        used += self._words.intersection(_WORD.findall(text))
        is_own = text in self._source and text.strip() not in (self._texts | self._words)
        if is_own or _is_harmless(text, scopes):
            return
        is_changed = bool(scopes) and bool(self._texts | self._words) and self._calls_others(text)
        if not is_changed and all(_is_harmless(answer, scopes) for answer in used):
            return
        if _parsed(text, "exec") is not None:
            raise EvaluatedAnswer("it evaluates an answer; compare it, or use ast.literal_eval")

    def _calls_others(self, text: str) -> bool:
        """Whether a text calls what the test's own text does not name: from a changed answer."""
        import ast

        tree = _parsed(text, "exec")
        named = set(_WORD.findall(self._source))
        for node in () if tree is None else ast.walk(tree):
            match node:
                case ast.Call(func=ast.Name(id=name)) | ast.Attribute(attr=name):
                    if name not in named:
                        return True
        return False

    def _evaluating(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(source: Any, *scopes: Any, **options: Any) -> Any:
            visible: Sequence[Container[str]] = ()
            if not scopes and "globals" not in options:
                frame = sys._getframe(1)  # noqa: SLF001
                scopes = (frame.f_globals, frame.f_locals)
                visible = () if self._is_library(frame.f_code.co_filename) else scopes
            self._check(source, visible)
            return function(source, *scopes, **options)

        return guarded

    def _compiling(self, source: Any, filename: Any, mode: str, *rest: Any, **options: Any) -> Any:
        flags = rest[0] if rest else options.get("flags", 0)
        if not flags & _ONLY_TREE and not self._is_library(filename):
            frame = sys._getframe(1)  # noqa: SLF001
            self._check(source, (frame.f_globals, frame.f_locals))
        if len(rest) < 2 and "dont_inherit" not in options:
            options["dont_inherit"] = True
        return _parse(source, filename, mode, *rest, **options)

    def _is_library(self, path: Any) -> bool:
        return os.path.isabs(path) and not str(path).startswith(self._folder)

    def _audit(self, event: str, _: tuple[Any, ...]) -> None:
        if self._is_active and event == "pickle.find_class":
            raise EvaluatedAnswer("it unpickles objects after an answer")


def _parsed(text: str, mode: str) -> Any:
    """The syntax tree of a text; None if it is no program."""
    try:
        return _parse(text.strip(), "<answer>", mode, _ONLY_TREE, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _is_harmless(text: str, scopes: Sequence[Container[str]]) -> bool:
    """Whether a text is an expression that calls nothing, and names nothing of the scopes."""
    import ast

    tree = _parsed(text, "eval") if len(text) <= _LONGEST else None
    harmless = tuple(getattr(ast, name) for name in _HARMLESS)
    if tree is None:
        return False
    for node in ast.walk(tree):
        if not isinstance(node, harmless):
            return False
        if isinstance(node, ast.Name) and any(node.id in scope for scope in scopes):
            return False
    return True
