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
from typing import Any, NoReturn

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
# They evaluate what they generate, from names that they have checked.
_GENERATORS = ("dataclasses", "collections")
_LONGEST = 100_000
_WORD = re.compile(r"\w+")
_FROZEN = "<frozen "  # where the importer is
_ONLY_TREE = 0x400  # ast.PyCF_ONLY_AST
_parse = compile


class EvaluatedAnswer(BaseException):
    """The test is at fault: it evaluates an answer. Not an Exception: no test catches it."""


class EvaluationGuard:
    """Watches what a test evaluates, once it has an answer. `source` is the test's own text.

    Libraries may evaluate an answer for the test, as `code` and `doctest` do. What else they
    evaluate may contain an answer by chance, such as ", ": it counts if it is a program.

    Attributes:
        refused: the last refusal: a library may have caught it.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._folder = os.path.dirname(os.getcwd())
        self._texts: set[str] = set()
        self._words: set[str] = set()  # answers that are a name or a number
        self._is_active = False
        self.refused: EvaluatedAnswer | None = None

    def install(self) -> None:
        """Replace `eval`, `exec` and `compile`, and watch `pickle` and `marshal`."""
        for function in (eval, exec):
            setattr(builtins, function.__name__, self._evaluating(function))
        builtins.compile = self._compiling
        sys.addaudithook(self._audit)

    def answered(self, value: Any) -> None:
        """Note the texts in an answer."""
        self._is_active = True
        waiting = [value]
        seen = set()
        while waiting:
            item = waiting.pop()
            if isinstance(item, (list, dict, set)):
                if id(item) in seen:
                    continue
                seen.add(id(item))
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

    def _check(self, source: Any, scopes: Sequence[Container[str]], *, by_library: bool) -> None:
        """Raise EvaluatedAnswer if a text uses an answer that may do more than arithmetic.

        `scopes` contain the names of the test's own values, if the text can mean them.
        """
        text = _text(source) if self._is_active else ""
        is_own = text in self._source and text.strip() not in (self._texts | self._words)
        if not text.strip() or is_own or _is_harmless(text, scopes):
            return
        is_text = isinstance(source, (str, bytes, bytearray))
        answers = self._texts if is_text else {*map(_unparsed, self._texts)}
        used = [answer for answer in answers if answer in text]
        if by_library:
            used = [answer for answer in used if _parsed(answer, "exec") is not None]
        else:
            used += self._words.intersection(_WORD.findall(text))
        is_piece = any(text.strip() in answer for answer in answers)
        is_changed = bool(scopes) and bool(self._texts | self._words) and self._calls_others(text)
        is_refused = is_piece or is_changed or not all(_is_harmless(each, scopes) for each in used)
        if is_refused and _parsed(text, "exec") is not None:
            self._refuse("it evaluates an answer; compare it, or use ast.literal_eval")

    def _refuse(self, message: str) -> NoReturn:
        self.refused = EvaluatedAnswer(message)
        raise self.refused

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
            frame = sys._getframe(1)  # noqa: SLF001
            by_library = self._is_library(frame.f_code.co_filename)
            visible: Sequence[Container[str]] = ()
            if not scopes and "globals" not in options:
                scopes = (frame.f_globals, frame.f_locals)
                visible = () if by_library else scopes
            if frame.f_globals.get("__name__") not in _GENERATORS:
                self._check(source, visible, by_library=by_library)
            return function(source, *scopes, **options)

        return guarded

    def _compiling(self, source: Any, filename: Any, mode: str, *rest: Any, **options: Any) -> Any:
        flags = rest[0] if rest else options.get("flags", 0)
        if not flags & _ONLY_TREE and not self._is_library(filename):
            frame = sys._getframe(1)  # noqa: SLF001
            by_library = self._is_library(frame.f_code.co_filename)
            visible = () if by_library else (frame.f_globals, frame.f_locals)
            self._check(source, visible, by_library=by_library)
        if len(rest) < 2 and "dont_inherit" not in options:
            options["dont_inherit"] = True
        return _parse(source, filename, mode, *rest, **options)

    def _is_library(self, path: Any) -> bool:
        if str(path).startswith(_FROZEN):
            return True
        return os.path.isabs(path) and not str(path).startswith(self._folder)

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if not self._is_active:
            return
        if event == "exec" and getattr(args[0], "co_filename", "").endswith("/__main__.py"):
            self._refuse("it runs the program of a package after an answer")
        if event == "pickle.find_class":
            self._refuse("it unpickles objects after an answer")
        if event == "marshal.loads" and not _is_importing():
            self._refuse("it unmarshals code after an answer")


def _is_importing() -> bool:
    """Whether an audited event is the importer's."""
    return sys._getframe(2).f_code.co_filename.startswith(_FROZEN)  # noqa: SLF001


def _text(source: Any) -> str:
    """The text of what is evaluated; "" if it is code that was compiled before."""
    if isinstance(source, str):
        return source
    if isinstance(source, (bytes, bytearray)):
        return bytes(source).decode("utf-8", "replace")
    if type(source).__module__ not in ("ast", "_ast"):
        return ""
    import ast

    return ast.unparse(source)


def _unparsed(answer: str) -> str:
    """The text of an answer that was parsed."""
    import ast

    tree = _parsed(answer, "exec") if len(answer) <= _LONGEST else None
    return answer if tree is None else ast.unparse(tree)


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
