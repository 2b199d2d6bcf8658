"""Proofs in Lean 4, by the user's toolchain.

`theory` is the beginning of the file: imports and `open`. `statement` is the theorem without its
proof, `theorem NAME ... : ...`. A candidate is the proof: `by` and tactics, or tactics alone, or
`:=` and a term. It may repeat the beginning and the statement. Commands, strings and what runs code
are refused before Lean sees them.

Three runs in the jail, each a process of its own:

    lean -o     compiles the theory and the statement with the candidate's proof
    lean        prints the axioms of the theorem, from a file of ours that imports the result
    leanchecker checks the compiled proof again with Lean's kernel, if it is installed

The theorem may rest on the axioms of the record only. They are printed at the end of the first run,
too: from 4.30 on, Lean may list too few of an imported theorem (lean4 issue 15226). What the first
run prints could be forged, so that it can only add axioms to those of the second.

Packages such as Mathlib are found in LEAN_PATH: `lake env grv verify ...` in the folder of a
project sets it.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ....core.errors import UsageError
from ....core.values import Verdict
from ....files import shown
from ...protocols import Finding
from ...sandbox.isolation.tool_jail import BUILT
from ...sandbox.limits import RunLimits
from ...sandbox.tool_worker import Grants, Step
from ..languages.building import ended
from ..programs.findings import failed
from ..worker_pair import WorkerPair
from .check import NoProof, ProofCheck, broken
from .provers import Prover, prover

AXIOMS = ("propext", "Classical.choice", "Quot.sound")  # of Lean itself
_LIMITS = RunLimits(seconds=120.0, memory_mb=8192, files_mb=256, threads=256)
_MODULE = "GrvProof"
_ASKING = "GrvAxioms"
_STATEMENT = re.compile(r"\s*(?:theorem|lemma)\s+([^\W\d][\w.'₀-₉]*)(?=[\s:({\[⦃])")
_OPENING = re.compile(r'/-|--|"')
_INSIDE = re.compile(r"/-|-/")
_WORD = re.compile(r"[#@]?[^\W\d][\w.'!?]*|@\[|«")
# Words that begin a command, or that only a command contains.
_COMMANDS = """abbrev attribute axiom builtin_initialize class declare_syntax_cat def deriving elab
    elab_rules end example export import inductive infix infixl infixr init_quot initialize instance
    instance_priority irreducible_def lemma local macro macro_rules mutual namespace noncomputable
    notation notation3 opaque partial postfix prefix prelude private protected public section
    simproc structure syntax theorem universe unseal variable module meta scoped binder_predicate
    register_option add_decl_doc"""
# Parts of names that leave a proof open, trust what is not proved, or run code.
_UNSOUND = "sorry admit sorryAx native_decide native ofReduceBool ofReduceNat"
_CODE = """run_tac run_cmd run_meta run_elab by_elab unsafe unsafeIO unsafeCast implemented_by
    extern initialize macro_rules elab_rules skipKernelTC trustCompiler dbg_trace unsafeBaseIO
    unsafeEIO"""
_OPTIONS = ("maxHeartbeats", "maxRecDepth", "synthInstance.maxHeartbeats")
_ANSWER = re.compile(
    r"'(?P<name>[^'\n]+'*)'\s+(?:depends\s+on\s+axioms:\s+\[(?P<axioms>[^\[\]]*)\]"
    r"|does\s+not\s+depend\s+on\s+any\s+axioms)"
)


@dataclass(frozen=True)
class LeanProof(ProofCheck):
    """A proof in Lean 4; `axioms` are names, None allows those of Lean itself."""

    languages: ClassVar[tuple[str, ...]] = ("lean", "lean4")

    @classmethod
    def allowed(cls, record: Mapping[str, Any], limits: RunLimits) -> RunLimits:
        """Lean needs more than other programs: the record's limits change these."""
        return _LIMITS.with_(record.get("limits", {}))

    def check_record(self) -> None:
        """Raise a UsageError that names the field that is wrong."""
        if not self._name:
            raise UsageError(f"statement must be theorem NAME ..., not {shown(self.statement)}")
        try:
            bare = without_comments(self._claim)
        except NoProof as problem:
            raise UsageError(f"statement: {problem}") from None
        if re.search(r":(?!=)", bare) is None:
            raise UsageError("statement says nothing: it has no colon")
        for axiom in self.axioms or ():
            if not re.fullmatch(r"[^\W\d][\w.'!?]*", axiom):
                raise UsageError(f"axioms: {shown(axiom)} is no name")

    @functools.cached_property
    def _claim(self) -> str:
        """The statement without the beginning of a proof, as files of problems often have it."""
        return without_proof(self.statement)

    @functools.cached_property
    def _name(self) -> str:
        """The name of the theorem."""
        found = _STATEMENT.match(self.statement)
        return found[1] if found else ""

    @property
    def _question(self) -> str:
        return f"#print axioms {self._name}\n"

    @functools.cached_property
    def _lines_of_theory(self) -> list[list[str]]:
        try:
            theory = without_comments(self.theory)
        except NoProof:  # it has strings, as notations do
            theory = self.theory
        return [line.split() for line in theory.splitlines()]

    def proof_in(self, code: str) -> str:
        """The proof, from `by` or from a term on."""
        bare = without_comments(code)
        place = _end_of_statement(bare, without_comments(self._claim))
        if place is not None:
            before = [line.split() for line in bare[: place[0]].splitlines() if line.strip()]
            if any(line not in self._lines_of_theory for line in before):
                raise NoProof("has something before the theorem that the theory does not have")
            code = code[place[1] :]
            bare = bare[place[1] :]
            if not bare.lstrip().startswith(":="):
                raise NoProof("states something else than the statement")
        if bare.lstrip().startswith(":="):
            start = bare.index(":=") + 2
            code = code[start:]
            bare = bare[start:]
        elif not re.match(r"\s*by\b", bare):
            code = f"by\n{code}"
        if not bare.strip() or bare.split() == ["by"]:
            raise NoProof("has no proof")
        _check_words(code, bare)
        return code.rstrip()

    def checked(self, proof: str, pair: WorkerPair, seed: int) -> Finding:
        """The finding of Lean, of the list of axioms, and of the second check."""
        program = prover("lean")
        source = f"{self.theory}\n\n{self._claim} := {proof.lstrip()}\n\n{self._question}"
        compiling = _step(pair, program, program.path, "-o", f"{_MODULE}.olean", f"{_MODULE}.lean")
        files = {f"{_MODULE}.lean": source}
        with pair.tools.step(
            "build", compiling, self.limits, files=files, joins=True, clears=True
        ) as run:
            problem = ended(pair.tools, run, self.limits, "the proof is wrong")
            said = bytes(run.output).decode("utf-8", "replace")
        if problem is not None:
            return problem
        inside = [axiom for answer in _ANSWER.finditer(said) for axiom in _names(answer)]
        imported = self._axioms(program, pair)
        if isinstance(imported, Finding):
            return imported
        axioms = sorted({*inside, *imported})
        allowed = AXIOMS if self.axioms is None else self.axioms
        extra = [name for name in axioms if name not in allowed]
        if extra:
            return failed("rests on other axioms", axioms=extra)
        evidence = {"axioms": axioms, "checked_by": str(program)}
        if not program.second:
            return Finding(Verdict.PASSED, "", {**evidence, "second_check": "not installed"})
        again = _step(pair, program, program.second, _MODULE)
        with pair.tools.step("program", again, self.limits, joins=True) as run:
            problem = ended(pair.tools, run, self.limits, "the second check refuses the proof")
        if problem is not None:
            return problem
        second = os.path.basename(program.second)
        return Finding(Verdict.PASSED, "", {**evidence, "second_check": second})

    def _axioms(self, program: Prover, pair: WorkerPair) -> list[str] | Finding:
        """The axioms that the compiled theorem rests on, or why they are not known."""
        files = {f"{_ASKING}.lean": f"import {_MODULE}\n\n{self._question}"}
        asking = _step(pair, program, program.path, f"{_ASKING}.lean")
        with pair.tools.step("program", asking, self.limits, files=files) as run:
            problem = ended(pair.tools, run, self.limits, "lean does not find the theorem")
            if problem is not None:
                return problem
            said = bytes(run.output).decode("utf-8", "replace")
        answer = _ANSWER.fullmatch(said.strip())
        if answer is None or answer["name"] != self._name:
            return broken("lean did not list the axioms of the theorem", said=said[:900])
        return _names(answer)


def _names(answer: re.Match[str]) -> list[str]:
    """The axioms in an answer of `#print axioms`."""
    return (answer["axioms"] or "").replace(",", " ").split()


def _step(pair: WorkerPair, program: Prover, *argv: str) -> Step:
    """A program of the toolchain, which finds compiled files in the box and in LEAN_PATH."""
    packages = [path for path in os.environ.get("LEAN_PATH", "").split(os.pathsep) if path]
    packages = [os.path.realpath(path) for path in packages if os.path.isdir(path)]
    grants = Grants((*program.grants.readable, *packages), program.grants.executable)
    return Step(argv, grants, {"LEAN_PATH": os.pathsep.join([pair.tools.path(BUILT), *packages])})


def without_comments(code: str) -> str:
    """Code with spaces in place of its comments; raises NoProof if they cannot be told.

    Strings are refused: a comment could begin in one.
    """
    parts: list[str] = []
    place = 0
    while (found := _OPENING.search(code, place)) is not None:
        parts.append(code[place : found.start()])
        match found[0]:
            case '"':
                raise NoProof("a proof must not have strings")
            case "--":
                end = code.find("\n", found.end())
                place = len(code) if end < 0 else end
            case _:
                place = _end_of_comment(code, found.end())
        parts.append(re.sub(r"[^\n]", " ", code[found.start() : place]))
    return "".join([*parts, code[place:]])


def _end_of_comment(code: str, place: int) -> int:
    """Where a comment ends that has begun before this place. Comments nest."""
    depth = 1
    while depth:
        found = _INSIDE.search(code, place)
        if found is None:
            raise NoProof("a comment does not end")
        depth += 1 if found[0] == "/-" else -1
        place = found.end()
    return place


def without_proof(statement: str) -> str:
    """A statement without `:= by sorry` or a part of it at its end.

    >>> without_proof("theorem a : True := by sorry")
    'theorem a : True'
    """
    text = statement.rstrip()
    for ending in ("sorry", "by"):
        text = text.removesuffix(ending).rstrip()
    return text.removesuffix(":=").rstrip() if text.endswith(":=") else statement.rstrip()


def _end_of_statement(code: str, claim: str) -> tuple[int, int] | None:
    """Where the statement begins and ends in code without comments; None if it is not there."""
    pattern = r"\s*".join(map(re.escape, re.findall(r"\w+|\S", claim)))
    found = re.search(rf"(?<![^\s]){pattern}(?=\s*:=)", code)
    if found is not None:
        return found.span()
    if re.search(r"^\s*(?:theorem|lemma|example)\b", code, re.MULTILINE):
        raise NoProof("states something else than the statement")
    return None


def _check_words(code: str, bare: str) -> None:
    """Refuse what is more than a proof. Words that run code are refused in comments too."""
    commands, unsound, running = (set(words.split()) for words in (_COMMANDS, _UNSOUND, _CODE))
    for word in _WORD.findall(code):
        if not running.isdisjoint(word.lstrip("#@").split(".")) or word.startswith("#eval"):
            raise NoProof(f"must not have {shown(word)}")
    for word in _WORD.findall(bare):
        parts = word.lstrip("@").split(".")
        is_command = word.startswith("#") or word in ("@[", "«") or parts[0] in commands
        if is_command:
            raise NoProof(f"is more than a proof: it has {shown(word)}")
        if not unsound.isdisjoint(parts):
            raise NoProof(f"is incomplete or not checked: it has {shown(word)}")
    for option in re.findall(r"\bset_option\s+(\S*)", bare):
        if option not in _OPTIONS:
            raise NoProof(f"must not set {shown(option)}")
