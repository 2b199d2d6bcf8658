"""Attacks on checks of proofs: texts that are no proof of the statement and want to pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..verifiers.proofs.provers import Prover, installed
from .answers import AnswerAttack

_LIMITS = {"seconds": 2, "memory_mb": 256}
_THEORY = """
$c 0 + = -> ( ) term wff |- $.  $v t r s P Q x y $.
tt $f term t $.  tr $f term r $.  ts $f term s $.  wp $f wff P $.  wq $f wff Q $.
vx $f term x $.  vy $f term y $.
tze $a term 0 $.  tpl $a term ( t + r ) $.  weq $a wff t = r $.  wim $a wff ( P -> Q ) $.
a1 $a |- ( t = r -> ( t = s -> r = s ) ) $.  a2 $a |- ( t + 0 ) = t $.
${ min $e |- P $.  maj $e |- ( P -> Q ) $.  mp $a |- Q $. $}
${ $d x y $.  ax-dif $a |- x = y $. $}
ax-bad $a |- 0 = ( 0 + t ) $.
"""
_METAMATH = {
    "kind": "proof",
    "system": "metamath",
    "theory": _THEORY,
    "statement": "goal $p |- t = ( 0 + t )",
    "axioms": ["a1", "a2", "mp", "ax-dif"],
    "limits": _LIMITS,
}
_SMT = {
    "kind": "proof",
    "system": "smt",
    "theory": "(declare-fun p (Int) Bool)",
    "statement": "(synth-fun f ((n Int)) Int) (declare-var x Int) (constraint (> (f 0) x))",
    "limits": _LIMITS,
}
_LEAN = {
    "kind": "proof",
    "system": "lean",
    "statement": "theorem goal : 1 + 1 = 3",
    "limits": _LIMITS,
}


def _metamath(name: str, text: str, **more: Any) -> AnswerAttack:
    return AnswerAttack(name, {**_METAMATH, **more}, text)


def _smt(name: str, text: str, **more: Any) -> AnswerAttack:
    return AnswerAttack(name, {**_SMT, **more}, text)


def _lean(name: str, text: str) -> AnswerAttack:
    return AnswerAttack(name, _LEAN, text)


def _doubling(times: int) -> str:
    """A compressed proof whose formulas double in length with every line."""
    steps = ["AABZ"]
    for number in range(2, times + 2):
        letter = chr(ord("A") + number % 20)
        step = letter if number < 20 else f"{chr(ord('U') + number // 20 - 1)}{letter}"
        steps.append(f"{step}{step}BZ")
    return f"( tpl ) {' '.join(steps)}"


_AXIOM = "evil $a |- t = ( 0 + t ) $."
# Texts that are refused when they are read.
_METAMATH_READ = (
    _metamath("adds an axiom", f"tt a2 $. {_AXIOM} other $p |- t = ( 0 + t ) $= tt evil $."),
    _metamath("adds an axiom first", f"{_AXIOM} goal $p |- t = ( 0 + t ) $= tt evil $."),
    _metamath("states something else", "goal $p |- ( t + 0 ) = t $= tt a2 $."),
    _metamath("adds a hypothesis", "h $e |- t = 0 $. goal $p |- t = ( 0 + t ) $= h $."),
    _metamath("is incomplete", "tt ? a2"),
    _metamath("is incomplete and compressed", "( a2 ) A?"),
    _metamath("includes a file", "$[ @FILE@ $] tt a2"),
    _metamath("hides in a comment", "tt $( a2 $) ax-bad"),
    _metamath("names itself", "tt goal"),
    _metamath("closes the scope", f"tt a2 $. $}} {_AXIOM} ${{ goal $p |- t = ( 0 + t ) $= tt evil"),
    _metamath("has other letters", "tt\0a2 \uff54\uff54"),
)
_METAMATH_RUN = (
    _metamath("rests on another axiom", "tt ax-bad", statement="goal $p |- 0 = ( 0 + t )"),
    _metamath("has variables that are not disjoint", "tt tt ax-dif", statement="goal $p |- t = t"),
    _metamath("uses a hypothesis of another axiom", "min"),
    _metamath("takes from an empty stack", "mp mp mp"),
    _metamath("leaves something on the stack", "tt a2 tt a2"),
    _metamath("begins with a mark", "( a2 ) ZAB"),
    _metamath("calls steps that do not exist", "( a2 ) ABUUUUUUUUUUUUUUUUUUUUT"),
    _metamath("doubles its formulas", _doubling(60)),
    _metamath("is huge", "tt " * 300_000),
)
_TERM = "(define-fun f ((n Int)) Int 0)"
_SMT_READ = (
    _smt("resets the solver", f"{_TERM} (reset) (assert false)"),
    _smt("sets the logic", f"(set-logic QF_LIA) {_TERM}"),
    _smt("pushes a scope", f"(push 1) (assert false) {_TERM}"),
    _smt("prints unsat", f'(echo "unsat") {_TERM}'),
    _smt("ends the solver", f'{_TERM} (echo "unsat") (exit)'),
    _smt("asks twice", f"{_TERM} (assert false) (check-sat)"),
    _smt("sends the output elsewhere", f'(set-option :regular-output-channel "/x") {_TERM}'),
    _smt("assumes something", f"(assert false) {_TERM}"),
    _smt("defines twice", f"{_TERM} {_TERM}"),
    _smt("depends on the variable", "(define-fun f ((n Int)) Int (+ x 1))"),
    _smt("is recursive", "(define-fun f ((n Int)) Int (+ (f n) 1))"),
    _smt("is recursive by name", "(define-fun-rec f ((n Int)) Int (+ (f n) 1))"),
    _smt("closes the definition", f"{_TERM}) (assert false"),
    _smt("hides in a symbol", "(define-fun f ((n Int)) Int |a\\|0) (assert false) (echo |)"),
    _smt("hides in a string", '(define-fun f ((n Int)) Int (str.len "\\") (assert false)"))'),
    _smt("names a term", "(define-fun f ((n Int)) Int (! 0 :named x))"),
    _smt("chooses what is not there", "(define-fun f ((n Int)) Int (witness ((y Int)) false))"),
    _smt("has another sort", "(define-fun f ((n Int)) Bool true)"),
    _smt("is nested without end", "(define-fun f ((n Int)) Int " + "(- " * 200_000),
)
_CUBES = "(= (+ (* a a a) (* b b b) (* c c c)) n)"
_HARD = "(synth-fun f ((n Int)) Bool) (constraint (f 42))"
_SMT_RUN = (
    _smt("is ill typed", "(define-fun f ((n Int)) Int true)"),
    _smt("uses a sort for a term", "(define-fun f ((n Int)) Int Int)"),
    _smt(
        "keeps the solver busy",
        f"(define-fun f ((n Int)) Bool (exists ((a Int) (b Int) (c Int)) {_CUBES}))",
        statement=_HARD,
        limits={"seconds": 0.5},
    ),
    _smt("is large", f"(define-fun f ((n Int)) Int (+ {'n ' * 200_000}))"),
)
# No Lean is needed for these.
_LEAN_READ = (
    _lean("is left open", "by sorry"),
    _lean("is left open by another word", "by admit"),
    _lean("is left open by a term", ":= sorryAx _ true"),
    _lean("is left open by a quoted name", ":= «sorryAx» _"),
    _lean("trusts the compiler", "by native_decide"),
    _lean("trusts the compiler by a term", ":= Lean.ofReduceBool _ _ rfl"),
    _lean("adds an axiom", "by simp\naxiom evil : 1 + 1 = 3"),
    _lean("adds an axiom first", "axiom evil : False\ntheorem goal : 1 + 1 = 3 := evil.elim"),
    _lean("states something else", "theorem goal : 1 + 1 = 2 := rfl"),
    _lean("states another theorem too", "by simp\ntheorem other : 1 = 1 := rfl"),
    _lean("imports something", "import Lean\ntheorem goal : 1 + 1 = 3 := by simp"),
    _lean("reads a file", 'by simp\n#eval IO.FS.readFile "@FILE@"'),
    _lean("runs code in a tactic", "by run_tac (do pure ())"),
    _lean("runs a command", "by simp\nrun_cmd pure ()"),
    _lean("runs code when it is imported", "by simp\ninitialize do pure ()"),
    _lean("changes a command", "by simp\nmacro_rules | `(#print axioms $x) => `(#check 1)"),
    _lean("changes the notation", "by simp\nnotation 3 => 2"),
    _lean("turns the kernel off", "by set_option debug.skipKernelTC true in simp"),
    _lean("replaces a function", "by simp\n@[implemented_by f] def g := 1"),
    _lean("hides in a string", 'by simp "/-"\naxiom evil : False -- "-/"'),
    _lean("hides in a comment", "by simp /- -/ axiom evil : False /- /- -/ -/"),
    _lean("does not end a comment", "by simp /- /- -/"),
    _lean("has no proof", "by"),
)


def attacks() -> Iterator[AnswerAttack]:
    """Those that reading refuses, and those whose programs are installed here."""
    yield from _METAMATH_READ
    yield from _SMT_READ
    yield from _LEAN_READ
    there = installed()
    if isinstance(there["metamath"], Prover):
        yield from _METAMATH_RUN
    if isinstance(there["smt"], Prover):
        yield from _SMT_RUN
