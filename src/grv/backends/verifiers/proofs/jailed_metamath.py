"""A verifier of Metamath proofs: what a check of kind "proof" runs in the jail.

The judge sends the text of this file to a jailed process, and calls `answer` there. It reads the
theory and the statement, verifies the proof of the statement, and lists the axioms that the proof
rests on. It does not verify the proofs in the theory: the program `metamath` does that.

The rules are those of the Metamath book, section 4.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

_LABEL = re.compile(r"[A-Za-z0-9._-]+\Z")
_SYMBOL = re.compile(r"[!-#%-~]+\Z")  # no "$"

Formula = tuple[str, ...]


class TheoryError(Exception):
    """The theory or the statement is not right."""


class ProofError(Exception):
    """The proof is not right."""


class Hypothesis(NamedTuple):
    """A hypothesis: `$f` gives a variable its type, `$e` is a condition."""

    label: str
    keyword: str
    formula: Formula


class Assertion(NamedTuple):
    """An axiom or a theorem.

    Attributes:
        keyword: `$a` or `$p`.
        formula: what it says.
        hypotheses: the mandatory ones, in order.
        disjoint: pairs of variables that must not share a variable.
        proof: the labels that its proof names.
    """

    keyword: str
    formula: Formula
    hypotheses: tuple[Hypothesis, ...]
    disjoint: frozenset[tuple[str, str]]
    proof: tuple[str, ...] = ()


class Scope:
    """What is declared between `${` and `$}`."""

    def __init__(self) -> None:
        self.variables: set[str] = set()
        self.hypotheses: list[Hypothesis] = []
        self.disjoint: set[tuple[str, str]] = set()


class MetamathDatabase:
    """What has been read so far."""

    def __init__(self) -> None:
        self.constants: set[str] = set()
        self.ever_variables: set[str] = set()
        self.scopes = [Scope()]
        self.typed: dict[str, str] = {}  # the types of the active variables
        self.active: dict[str, Hypothesis] = {}
        self.assertions: dict[str, Assertion] = {}
        self.labels: set[str] = set()
        self.types: set[str] = set()  # the types of variables

    def read(self, text: str) -> None:
        """Read statements."""
        tokens = _tokens(text)
        label = ""
        for token in tokens:
            if not token.startswith("$"):
                if label:
                    raise TheoryError(f"{label} is followed by {token}")
                if not _LABEL.match(token):
                    raise TheoryError(f"{token} is no label")
                label = token
                continue
            if bool(label) != (token in ("$f", "$e", "$a", "$p")):
                raise TheoryError(f"{token} with a label" if label else f"{token} without a label")
            self._statement(token, label, tokens)
            label = ""
        if label:
            raise TheoryError(f"{label} at the end")

    def _statement(self, keyword: str, label: str, tokens: Iterator[str]) -> None:
        scope = self.scopes[-1]
        if keyword == "${":
            self.scopes.append(Scope())
        elif keyword == "$}":
            self._close()
        elif keyword == "$c":
            if len(self.scopes) > 1:
                raise TheoryError("$c inside of a scope")
            for symbol in _until(tokens, "$."):
                self._new_symbol(symbol)
                self.constants.add(symbol)
        elif keyword == "$v":
            for symbol in _until(tokens, "$."):
                self._new_symbol(symbol)
                self.ever_variables.add(symbol)
                scope.variables.add(symbol)
        elif keyword == "$d":
            names = list(_until(tokens, "$."))
            if len(set(names)) != len(names) or not all(map(self._is_variable, names)):
                raise TheoryError("$d must name different variables")
            scope.disjoint |= {_pair(a, b) for a in names for b in names if a < b}
        elif keyword in ("$f", "$e"):
            self._hypothesis(label, keyword, tuple(_until(tokens, "$.")))
        elif keyword == "$a":
            formula = self._formula(tuple(_until(tokens, "$.")))
            self._add(label, self.assertion(keyword, formula))
        elif keyword == "$p":
            formula = self._formula(tuple(_until(tokens, "$=")))
            proof = tuple(_until(tokens, "$."))
            named = proof[1 : proof.index(")")] if proof[:1] == ("(",) and ")" in proof else proof
            self._add(label, self.assertion(keyword, formula, named))
        else:
            raise TheoryError(f"{keyword} is not known here")

    def _close(self) -> None:
        if len(self.scopes) == 1:
            raise TheoryError("$} without ${")
        closed = self.scopes.pop()
        for hypothesis in closed.hypotheses:
            del self.active[hypothesis.label]
            if hypothesis.keyword == "$f":
                del self.typed[hypothesis.formula[1]]

    def _new_symbol(self, symbol: str) -> None:
        if not _SYMBOL.match(symbol) or symbol in self.labels:
            raise TheoryError(f"{symbol} cannot be a symbol")
        if symbol in self.constants or self._is_variable(symbol):
            raise TheoryError(f"{symbol} is declared twice")

    def _is_variable(self, symbol: str) -> bool:
        """Whether a symbol is an active variable."""
        return any(symbol in scope.variables for scope in self.scopes)

    def _hypothesis(self, label: str, keyword: str, formula: Formula) -> None:
        if keyword == "$f":
            right = len(formula) == 2 and formula[0] in self.constants
            if not right or formula[1] in self.typed or not self._is_variable(formula[1]):
                raise TheoryError(f"{label} must give a type to a variable that has none")
            self.typed[formula[1]] = formula[0]
            self.types.add(formula[0])
        else:
            self._formula(formula)
        self._new_label(label)
        hypothesis = Hypothesis(label, keyword, formula)
        self.active[label] = hypothesis
        self.scopes[-1].hypotheses.append(hypothesis)

    def _formula(self, formula: Formula) -> Formula:
        if not formula or formula[0] not in self.constants:
            raise TheoryError("a formula must begin with a constant")
        for symbol in formula:
            if symbol not in self.constants and symbol not in self.typed:
                raise TheoryError(f"{symbol} is no constant and no variable with a type")
        return formula

    def _new_label(self, label: str) -> None:
        if label in self.labels or label in self.constants or label in self.ever_variables:
            raise TheoryError(f"the label {label} is taken")
        self.labels.add(label)

    def _add(self, label: str, assertion: Assertion) -> None:
        self._new_label(label)
        self.assertions[label] = assertion

    def assertion(self, keyword: str, formula: Formula, proof: Formula = ()) -> Assertion:
        """An assertion with its mandatory hypotheses, at this place."""
        everything = [each for scope in self.scopes for each in scope.hypotheses]
        said = [each.formula for each in everything if each.keyword == "$e"]
        used = {symbol for each in [formula, *said] for symbol in each if symbol in self.typed}
        mandatory = [each for each in everything if each.keyword == "$e" or each.formula[1] in used]
        disjoint = {pair for pair in self.disjoint() if used.issuperset(pair)}
        return Assertion(keyword, formula, tuple(mandatory), frozenset(disjoint), proof)

    def disjoint(self) -> set[tuple[str, str]]:
        """The active pairs of variables that must not share a variable."""
        return set().union(*(scope.disjoint for scope in self.scopes))


def _tokens(text: str) -> Iterator[str]:
    """The tokens of a text without comments."""
    source = iter(text.split())
    for token in source:
        if token == "$(":
            for other in source:
                if other == "$)":
                    break
                if "$(" in other or "$)" in other:
                    raise TheoryError("a comment inside of a comment")
            else:
                raise TheoryError("a comment does not end")
        elif token == "$[":
            raise TheoryError("$[ is not allowed")
        else:
            yield token


def _until(tokens: Iterator[str], end: str) -> Iterator[str]:
    """The tokens up to an end."""
    for token in tokens:
        if token == end:
            return
        if token.startswith("$"):
            raise TheoryError(f"{token} before {end}")
        yield token
    raise TheoryError(f"{end} is missing")


def _pair(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)


class ProofRun:
    """The proof of one assertion, run on a stack."""

    def __init__(self, database: MetamathDatabase, goal: Assertion) -> None:
        self._database = database
        self._goal = goal
        self._disjoint = database.disjoint()
        self._stack: list[Formula] = []
        self.used: set[str] = set()
        self.steps = 0

    def verify(self, tokens: Sequence[str]) -> None:
        """Raise ProofError if the tokens do not prove the goal."""
        if tokens[:1] == ["("]:
            self._compressed(tokens)
        else:
            for label in tokens:
                self._step(label)
        if len(self._stack) != 1:
            raise ProofError(f"at the end the stack has {len(self._stack)} formulas")
        if self._stack[0] != self._goal.formula:
            raise ProofError(f"it proves {_shown(self._stack[0])}")

    def _compressed(self, tokens: Sequence[str]) -> None:
        if ")" not in tokens:
            raise ProofError("the list of labels does not end")
        end = tokens.index(")")
        mandatory = [each.label for each in self._goal.hypotheses]
        named = list(tokens[1:end])
        if set(named) & set(mandatory) or len(set(named)) != len(named):
            raise ProofError("a label is listed that must not be, or twice")
        labels = [*mandatory, *named]
        marked: list[Formula] = []
        number = 0
        may_mark = False
        for letter in "".join(tokens[end + 1 :]):
            if letter == "Z":
                if not may_mark:
                    raise ProofError("Z at a wrong place")
                marked.append(self._stack[-1])
                may_mark = False
            elif "U" <= letter <= "Y":
                number = number * 5 + ord(letter) - ord("U") + 1
                may_mark = False
            elif "A" <= letter <= "T":
                number = number * 20 + ord(letter) - ord("A")
                may_mark = False
                if number < len(labels):
                    self._step(labels[number])
                    may_mark = labels[number] in self._database.assertions
                elif number - len(labels) < len(marked):
                    self._push(marked[number - len(labels)])
                else:
                    raise ProofError(f"step {number} does not exist")
                number = 0
            else:
                raise ProofError(f"{letter} is not allowed")
        if number:
            raise ProofError("the last step does not end")

    def _push(self, formula: Formula) -> None:
        self.steps += 1
        self._stack.append(formula)

    def _step(self, label: str) -> None:
        hypothesis = self._database.active.get(label)
        if hypothesis is not None:
            self._push(hypothesis.formula)
            return
        assertion = self._database.assertions.get(label)
        if assertion is None:
            raise ProofError(f"{label} is not known here")
        self.used.add(label)
        count = len(assertion.hypotheses)
        if count > len(self._stack):
            raise ProofError(f"{label} needs {count} formulas on the stack")
        given = self._stack[len(self._stack) - count :]
        del self._stack[len(self._stack) - count :]
        values: dict[str, Formula] = {}
        for hypothesis, formula in zip(assertion.hypotheses, given, strict=True):
            if hypothesis.keyword == "$f":
                if formula[0] != hypothesis.formula[0]:
                    raise ProofError(f"{label} needs a {hypothesis.formula[0]}")
                values[hypothesis.formula[1]] = formula[1:]
        for hypothesis, formula in zip(assertion.hypotheses, given, strict=True):
            if hypothesis.keyword == "$e" and formula != _replaced(hypothesis.formula, values):
                raise ProofError(f"{hypothesis.label} of {label} is not {_shown(formula)}")
        self._check_disjoint(label, assertion, values)
        self._push(_replaced(assertion.formula, values))

    def _check_disjoint(self, label: str, assertion: Assertion, values: dict[str, Formula]) -> None:
        typed = self._database.typed
        for one, other in assertion.disjoint:
            left = {symbol for symbol in values[one] if symbol in typed}
            right = {symbol for symbol in values[other] if symbol in typed}
            for a in left:
                for b in right:
                    if a == b or _pair(a, b) not in self._disjoint:
                        raise ProofError(f"{label} needs {a} and {b} to be disjoint")


def _replaced(formula: Formula, values: dict[str, Formula]) -> Formula:
    """A formula with its variables replaced."""
    result: list[str] = []
    for symbol in formula:
        value = values.get(symbol)
        if value is None:
            result.append(symbol)
        else:
            result += value
    return tuple(result)


def _shown(formula: Formula) -> str:
    return " ".join(formula[:60])[:300]


def axioms_of(database: MetamathDatabase, labels: set[str]) -> list[str]:
    """The axioms that some assertions rest on, without those that only make formulas."""
    waiting = [*labels]
    seen = set(labels)
    axioms = []
    while waiting:
        label = waiting.pop()
        assertion = database.assertions.get(label)
        if assertion is None:
            if label == "?":
                raise TheoryError("a proof in the theory is incomplete")
            continue  # a hypothesis
        if assertion.keyword == "$a" and assertion.formula[0] not in database.types:
            axioms.append(label)
        more = set(assertion.proof) - seen
        seen |= more
        waiting += more
    return sorted(axioms)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """What is wrong with the theory or the proof, or the axioms that the proof rests on."""
    database = MetamathDatabase()
    try:
        database.read(request["theory"])
        if len(database.scopes) > 1:
            raise TheoryError("${ without $}")
        database.scopes.append(Scope())
        head, _, formula = request["statement"].rpartition(" $p ")
        before, _, label = f" {head}".rpartition(" ")
        database.read(before)
        goal = database.assertion("$p", tuple(formula.split()))
        _check_goal(database, label, goal)
        proof = ProofRun(database, goal)
        proof.verify(request["proof"].split())
        axioms = axioms_of(database, proof.used)
    except TheoryError as error:
        return {"theory": str(error)}
    except ProofError as error:
        return {"proof": str(error)}
    allowed = request["axioms"]
    extra = [] if allowed is None else [label for label in axioms if label not in allowed]
    if extra:
        return {"proof": f"it rests on {', '.join(extra[:10])}"}
    return {"axioms": axioms, "steps": proof.steps}


def _check_goal(database: MetamathDatabase, label: str, goal: Assertion) -> None:
    if label in database.labels or not _LABEL.match(label):
        raise TheoryError(f"the label {label} is taken")
    if not goal.formula or goal.formula[0] not in database.constants:
        raise TheoryError("the statement must begin with a constant")
    for symbol in goal.formula:
        if symbol not in database.constants and symbol not in database.typed:
            raise TheoryError(f"{symbol} in the statement is not known")
