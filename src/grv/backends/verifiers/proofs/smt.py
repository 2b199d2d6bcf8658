"""Proofs by a solver: a candidate is a definition, such as an invariant, a witness or a bound.

The notation is SMT-LIB's, and SyGuS's for the statement. `theory` declares and defines. `axioms`
are terms that are assumed. `statement` names the functions that a candidate defines (`synth-fun`),
variables (`declare-var`) and what must hold for all values of them (`constraint`). A candidate is a
`define-fun` for each function. The solver gets, in this order:

    the theory; (assert AXIOM) for each; the candidate's definitions;
    the variables, as constants; (assert (not (and CONSTRAINT ...))); (check-sat)

The candidate passes if the solver prints `unsat` and nothing else. Nothing of a candidate reaches
the solver but definitions with the names and sorts of the statement, whose bodies are terms of
known symbols. They stand before the variables, so that they cannot depend on them.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from ....core.errors import UsageError
from ....core.values import Verdict
from ....files import shown
from ...protocols import Finding
from ...sandbox.limits import RunLimits
from ...sandbox.tool_worker import Step
from ..languages.building import ended
from ..programs.findings import failed
from ..worker_pair import WorkerPair
from .check import NoProof, ProofCheck, broken
from .provers import prover

Expression = str | tuple["Expression", ...]

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+|;[^\n\r]*)
    |(?P<bracket>[()])
    |(?P<atom>[A-Za-z0-9~!@$%^&*_+=<>.?/:#-]+)
    |(?P<text>"[ !#-\[\]-~]*")
    |(?P<quoted>\|[ !-\[\]-{}~]*\|)""",
    re.VERBOSE,
)
_NAME = re.compile(r"[A-Za-z~$%^&*_+=<>?/-][A-Za-z0-9~!@$%^&*_+=<>.?/-]*")
_CONSTANT = re.compile(r'[0-9]+(?:\.[0-9]+)?|#x[0-9A-Fa-f]+|#b[01]+|".*"')
_DEEPEST = 2000
_END = ")"
_DECLARING = (
    "set-logic",
    "declare-sort",
    "define-sort",
    "declare-datatype",
    "declare-datatypes",
    "declare-const",
    "declare-fun",
    "define-const",
    "define-fun",
    "define-fun-rec",
    "define-funs-rec",
)
# The symbols of SMT-LIB that a candidate may use, besides those of the theory.
_CORE = "true false not => and or xor = distinct ite let forall exists match _ as Bool"
_NUMBERS = "Int Real + - * / div mod abs <= < >= > to_real to_int is_int divisible"
_ARRAYS = "Array select store const is String RegLan"
_BITS = "BitVec concat extract repeat zero_extend sign_extend rotate_left rotate_right"
_KNOWN = frozenset(f"{_CORE} {_NUMBERS} {_ARRAYS} {_BITS}".split())
_FAMILIES = re.compile(r"bv[a-z0-9]+|str\.[a-z_0-9.<>=+-]+|re\.[a-z_0-9+*.]+")
_PREPARING = 5.0  # seconds at most for a look at the axioms
_FILE = "proof.smt2"


def parse(text: str) -> list[Expression]:
    """The expressions of a text; a ValueError says what is wrong."""
    stack: list[list[Expression]] = [[]]
    place = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise ValueError(f"{shown(text[place : place + 20])} cannot be read")
        place = found.end()
        if found.lastgroup == "space":
            continue
        token = found[0]
        if token == "(":
            stack.append([])
            if len(stack) > _DEEPEST:
                raise ValueError("it is nested too deep")
        elif token == ")":
            if len(stack) == 1:
                raise ValueError("it has a ) too many")
            closed = tuple(stack.pop())
            stack[-1].append(closed)
        else:
            stack[-1].append(token)
    if len(stack) > 1:
        raise ValueError("a ) is missing")
    return stack[0]


def written(expression: Expression) -> str:
    """An expression as text, on one line."""
    parts: list[str] = []
    waiting: list[Expression] = [expression]
    while waiting:
        item = waiting.pop()
        is_end = item is _END
        if parts and parts[-1] != "(" and not is_end:
            parts.append(" ")
        if isinstance(item, str):
            parts.append(item)
        else:
            parts.append("(")
            waiting.append(_END)
            waiting.extend(reversed(item))
    return "".join(parts)


@dataclass(frozen=True)
class Signature:
    """A function that a candidate defines: its name, the sorts of its arguments, its sort."""

    name: str
    arguments: tuple[Expression, ...]
    sort: Expression


@dataclass(frozen=True)
class Statement:
    """What must hold for the functions that a candidate defines."""

    functions: tuple[Signature, ...]
    variables: tuple[tuple[str, Expression], ...]
    constraints: tuple[Expression, ...]


class _Known:
    """What is found out about a check once."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.is_prepared = False
        self.problem: Finding | None = None


@dataclass(frozen=True)
class SmtProof(ProofCheck):
    """A definition for which the constraints hold; `axioms` are terms that are assumed."""

    languages: ClassVar[tuple[str, ...]] = ("smt", "smt2", "smtlib", "smt-lib", "sygus", "lisp")

    _known: _Known = field(default_factory=_Known, compare=False, repr=False)

    def check_record(self) -> None:
        """Raise a UsageError that names the field that is wrong."""
        for command in _commands(self.theory, "theory"):
            if command[0] not in _DECLARING:
                said = f"{shown(command[0])} is no declaration: {', '.join(_DECLARING)}"
                raise UsageError(f"theory: {said}")
        for axiom in self.axioms or ():
            if len(_expressions(axiom, "axioms")) != 1:
                raise UsageError(f"axioms: {shown(axiom)} is not one term")
        _ = self._statement

    @functools.cached_property
    def _statement(self) -> Statement:
        functions: list[Signature] = []
        variables: list[tuple[str, Expression]] = []
        constraints: list[Expression] = []
        for command in _commands(self.statement, "statement"):
            match command:
                case ("synth-fun", str(name), tuple(parameters), sort) if _NAME.fullmatch(name):
                    sorts = _sorts(parameters)
                    if sorts is None:
                        raise UsageError(f"statement: the arguments of {name} must be (NAME SORT)")
                    functions.append(Signature(name, sorts, sort))
                case ("declare-var", str(name), sort) if _NAME.fullmatch(name):
                    variables.append((name, sort))
                case ("constraint", term):
                    constraints.append(term)
                case _:
                    forms = "(synth-fun NAME ((x SORT) ...) SORT), (declare-var NAME SORT) and"
                    said = f"{forms} (constraint TERM), not {shown(written(command))}"
                    raise UsageError(f"statement is made of {said}")
        if not functions or not constraints:
            raise UsageError("statement needs at least one synth-fun and one constraint")
        names = [each.name for each in functions]
        if len(set(names)) != len(names):
            raise UsageError("statement: a function is there twice")
        return Statement(tuple(functions), tuple(variables), tuple(constraints))

    @functools.cached_property
    def _symbols(self) -> frozenset[str]:
        """The symbols of the theory."""
        return frozenset(_atoms(tuple(_expressions(self.theory, "theory"))))

    def proof_in(self, code: str) -> str:
        """The definitions, a line for each, in the order of the statement."""
        try:
            commands = parse(code)
        except ValueError as problem:
            raise NoProof(str(problem)) from None
        match commands:
            case [tuple(inner)] if inner and isinstance(inner[0], tuple):
                commands = list(inner)  # as solvers print a list of definitions
        found: dict[str, str] = {}
        wanted = {each.name: each for each in self._statement.functions}
        for command in commands:
            match command:
                case ("define-fun", str(name), tuple(parameters), sort, body) if name in wanted:
                    if name in found:
                        raise NoProof(f"defines {name} twice")
                    found[name] = self._definition(wanted[name], parameters, sort, body)
                case _:
                    names = ", ".join(wanted)
                    raise NoProof(f"only (define-fun ...) of {names} may be there")
        for name in wanted:
            if name not in found:
                raise NoProof(f"does not define {name}")
        return "\n".join(found[name] for name in wanted)

    def _definition(
        self,
        wanted: Signature,
        parameters: tuple[Expression, ...],
        sort: Expression,
        body: Expression,
    ) -> str:
        if _sorts(parameters) != wanted.arguments or sort != wanted.sort:
            raise NoProof(f"{wanted.name} has other arguments or another sort")
        names = [str(each[0]) for each in parameters]
        if len(set(names)) != len(names) or not all(map(_NAME.fullmatch, names)):
            raise NoProof(f"the arguments of {wanted.name} need different names")
        bound = {*names, *_bound(body)}
        for atom in _atoms(body):
            is_known = atom in bound or atom in _KNOWN or atom in self._symbols
            if not is_known and not _CONSTANT.fullmatch(atom) and not _FAMILIES.fullmatch(atom):
                raise NoProof(f"uses {shown(atom)}, which the theory does not have")
        return written(("define-fun", wanted.name, parameters, sort, body))

    def checked(self, proof: str, pair: WorkerPair, seed: int) -> Finding:
        """The finding on the definitions."""
        if (problem := self._prepared(pair)) is not None:
            return problem
        lines = [*self._beginning(), *proof.splitlines(), *self._end(), "(check-sat)"]
        said = _solved(lines, pair, self.limits)
        if isinstance(said, Finding):
            return said
        program = str(prover("smt"))
        match said.strip():
            case "unsat":
                return Finding(Verdict.PASSED, "", {"checked_by": program})
            case "sat":
                return failed("a constraint does not hold", checked_by=program)
            case "unknown" | "timeout":
                return failed("the solver does not know", checked_by=program)
        return failed("the solver refuses it", said=said[:900], checked_by=program)

    def _beginning(self) -> Iterator[str]:
        for command in _commands(self.theory, "theory"):
            yield written(command)
        for axiom in self.axioms or ():
            yield f"(assert {written(_expressions(axiom, 'axioms')[0])})"

    def _end(self) -> Iterator[str]:
        for name, sort in self._statement.variables:
            yield f"(declare-const {name} {written(sort)})"
        terms = " ".join(map(written, self._statement.constraints))
        yield f"(assert (not (and {terms} true)))"

    def _prepared(self, pair: WorkerPair) -> Finding | None:
        """What is wrong with the record: found out once, without a candidate."""
        with self._known.lock:
            if not self._known.is_prepared:
                self._known.problem = self._look(pair)
                self._known.is_prepared = self._known.problem is None
            return self._known.problem

    def _look(self, pair: WorkerPair) -> Finding | None:
        functions = [
            written(("declare-fun", each.name, each.arguments, each.sort))
            for each in self._statement.functions
        ]
        lines = [*self._beginning(), *functions, *self._end()]
        quick = self.limits.with_({"seconds": min(_PREPARING, self.limits.seconds)})
        said = _solved(lines, pair, quick)
        if isinstance(said, Finding):
            return broken(f"theory, axioms or statement: {said.reason}", **said.evidence)
        if said.strip():
            return broken("theory, axioms or statement: the solver refuses it", said=said[:900])
        if not self.axioms:
            return None
        said = _solved([*self._beginning(), "(check-sat)"], pair, quick)
        if isinstance(said, str) and said.strip() == "unsat":
            return broken("axioms contradict each other: everything would pass")
        return None


def _solved(lines: Sequence[str], pair: WorkerPair, limits: RunLimits) -> str | Finding:
    """What the solver prints, or why it did not end."""
    program = prover("smt")
    beginning: list[str] = []
    options = ("-smt2",)
    if program.name == "cvc5":  # without a logic it prints advice
        beginning = [] if lines[0].startswith("(set-logic ") else ["(set-logic ALL)"]
        options = ("--lang=smt2",)
    step = Step((program.path, *options, _FILE), program.grants)
    files = {_FILE: "\n".join([*beginning, *lines, ""])}
    with pair.tools.step("program", step, limits, files=files, clears=True) as run:
        problem = ended(pair.tools, run, limits, "the solver refuses it")
        return bytes(run.output).decode("utf-8", "replace") if problem is None else problem


def _expressions(text: str, name: str) -> list[Expression]:
    try:
        return parse(text)
    except ValueError as problem:
        raise UsageError(f"{name}: {problem}") from None


def _commands(text: str, name: str) -> list[tuple[Expression, ...]]:
    commands: list[tuple[Expression, ...]] = []
    for command in _expressions(text, name):
        if isinstance(command, str) or not command:
            raise UsageError(f"{name}: {shown(written(command))} is no command")
        commands.append(command)
    return commands


def _sorts(parameters: tuple[Expression, ...]) -> tuple[Expression, ...] | None:
    """The sorts of parameters `((x SORT) ...)`; None if they are none."""
    sorts: list[Expression] = []
    for parameter in parameters:
        match parameter:
            case (str(), sort):
                sorts.append(sort)
            case _:
                return None
    return tuple(sorts)


def _atoms(expression: Expression) -> Iterator[str]:
    """All atoms of an expression."""
    waiting = [expression]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        else:
            waiting.extend(item)


def _bound(expression: Expression) -> Iterator[str]:
    """The names that an expression binds, in `let`, `forall`, `exists` and `match`."""
    waiting = [expression]
    while waiting:
        match waiting.pop():
            case ("let" | "forall" | "exists", tuple(bindings), body):
                for binding in bindings:
                    match binding:
                        case (str(name), value):
                            if _NAME.fullmatch(name):
                                yield name
                            waiting.append(value)
                waiting.append(body)
            case ("match", term, tuple(cases)):
                for each in cases:
                    match each:
                        case (pattern, value):
                            yield from filter(_NAME.fullmatch, _atoms(pattern))
                            waiting.append(value)
                waiting.append(term)
            case tuple(parts):
                waiting.extend(parts)
