"""Checks of kind "proof": right proofs pass, wrong ones fail, and attacks are held."""

from __future__ import annotations

import itertools
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grv.backends.attacks import answers, proofs, suite
from grv.backends.protocols import Draft, Finding, Problem
from grv.backends.verifiers.checks import parse_check
from grv.backends.verifiers.pool import CheckVerifier
from grv.backends.verifiers.proofs import jailed_metamath, provers
from grv.backends.verifiers.proofs.lean import without_comments, without_proof
from grv.backends.verifiers.proofs.provers import Prover, installed
from grv.backends.verifiers.proofs.smt import parse, written
from grv.core.errors import UsageError
from grv.core.values import Verdict
from grv.testing import FakeLean, LeanAnswer
from support.examples import examples

pytestmark = pytest.mark.slow
THEORY = """
$( A theory of sums. $)
$c 0 + = -> ( ) term wff |- $.
$v t r s P Q $.
tt $f term t $.  tr $f term r $.  ts $f term s $.  wp $f wff P $.  wq $f wff Q $.
tze $a term 0 $.
tpl $a term ( t + r ) $.
weq $a wff t = r $.
wim $a wff ( P -> Q ) $.
a1 $a |- ( t = r -> ( t = s -> r = s ) ) $.
a2 $a |- ( t + 0 ) = t $.
${
  min $e |- P $.
  maj $e |- ( P -> Q ) $.
  mp $a |- Q $.
$}
"""
PROOF = (
    "tt tze tpl tt weq tt tt weq tt a2 tt tze tpl tt weq tt tze tpl tt weq tt tt weq wim"
    " tt a2 tt tze tpl tt tt a1 mp mp"
)
COMPRESSED = "( tze tpl weq a2 wim a1 mp ) ABCZADZAADZAEZJJKFLIAAGHH"
REFLEXIVE = {
    "kind": "proof",
    "system": "metamath",
    "theory": THEORY,
    "statement": "th1 $p |- t = t",
}
# With a theorem, whose proof rests on the axioms; and with variables that must be disjoint.
EXTENDED = {**REFLEXIVE, "theory": f"{THEORY}\nth1 $p |- t = t $= {PROOF} $."}
SYMMETRIC = {
    **EXTENDED,
    "statement": "sym.1 $e |- t = r $.  sym $p |- r = t",
}
BACK = "tt tt weq tr tt weq tt th1 tt tr weq tt tt weq tr tt weq wim sym.1 tt tr tt a1 mp mp"
DISJOINT = {
    **REFLEXIVE,
    "theory": f"{THEORY}\n$v x y $. vx $f term x $. vy $f term y $.\n"
    "${ $d x y $. dif $a |- x = y $. $}",
    "statement": "$d t r $.  two $p |- t = r",
}


def needs(system: str) -> None:
    found = installed()[system]
    if not isinstance(found, Prover):
        pytest.skip(found)


@pytest.fixture(scope="module")
def verifier() -> Iterator[CheckVerifier]:
    with CheckVerifier(workers=1, limits=suite.LIMITS) as verifier:
        yield verifier


def find(verifier: CheckVerifier, check: dict[str, Any], text: str) -> Finding:
    return verifier.find(Problem("p", check=check), text)


@pytest.mark.parametrize(
    ("check", "text", "verdict", "said"),
    [
        (REFLEXIVE, PROOF, Verdict.PASSED, ""),
        (REFLEXIVE, COMPRESSED, Verdict.PASSED, ""),
        (REFLEXIVE, f"Here it is:\n```metamath\n{PROOF}\n```\n", Verdict.PASSED, ""),
        (REFLEXIVE, f"th1 $p |- t = t $= {PROOF} $.", Verdict.PASSED, ""),
        (REFLEXIVE, f"<think>tt a2?</think>{PROOF} $.", Verdict.PASSED, ""),
        (REFLEXIVE, PROOF.removesuffix(" mp"), Verdict.FAILED, "the stack has 4 formulas"),
        (REFLEXIVE, PROOF.replace("a1", "a2"), Verdict.FAILED, ""),
        (REFLEXIVE, COMPRESSED[:-1], Verdict.FAILED, ""),
        (REFLEXIVE, "tt a2", Verdict.FAILED, "it proves |- ( t + 0 ) = t"),
        (REFLEXIVE, "tt tt weq", Verdict.FAILED, "it proves wff t = t"),
        (SYMMETRIC, BACK, Verdict.PASSED, ""),
        (SYMMETRIC, f"${{ {SYMMETRIC['statement']} $= {BACK} $. $}}", Verdict.PASSED, ""),
        (SYMMETRIC, "sym.1", Verdict.FAILED, "it proves |- t = r"),
        (DISJOINT, "tt tr dif", Verdict.PASSED, ""),
        ({**DISJOINT, "statement": "two $p |- t = r"}, "tt tr dif", Verdict.FAILED, "disjoint"),
        ({**DISJOINT, "statement": "$d t r $. two $p |- t = t"}, "tt tt dif", Verdict.FAILED, ""),
    ],
)
def test_proofs_in_metamath(
    verifier: CheckVerifier, check: dict[str, Any], text: str, verdict: Verdict, said: str
) -> None:
    needs("metamath")
    finding = find(verifier, check, text)
    assert finding.verdict is verdict, finding
    assert said in finding.evidence.get("message", "")


@pytest.mark.parametrize(
    ("axioms", "verdict"),
    [(["a1", "a2", "mp"], "passed"), (["a1", "a2"], "failed"), ([], "failed"), (None, "passed")],
)
def test_a_proof_rests_on_the_axioms_of_the_theorems_that_it_uses(
    verifier: CheckVerifier, axioms: list[str] | None, verdict: str
) -> None:
    needs("metamath")
    check = SYMMETRIC if axioms is None else {**SYMMETRIC, "axioms": axioms}
    finding = find(verifier, check, BACK)
    assert finding.verdict.value == verdict
    if verdict == "passed":
        assert finding.evidence["axioms"] == ["a1", "a2", "mp"]
    else:
        assert "rests on" in finding.evidence["message"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"theory": f"{THEORY} ${{"}, "theory or statement: ${ without $}"),
        ({"theory": f"{THEORY} bad $a |- z = z $."}, "z is no constant"),
        ({"theory": f"{THEORY} th0 $p |- t = t $= tt a2 $."}, "metamath does not accept"),
        ({"theory": f"{THEORY} th0 $p |- t = t $= ? $."}, "metamath does not accept"),
        ({"statement": "th1 $p |- z = t"}, "z in the statement is not known"),
    ],
)
def test_a_wrong_theory_is_broken(
    verifier: CheckVerifier, changes: dict[str, str], said: str
) -> None:
    needs("metamath")
    finding = find(verifier, {**REFLEXIVE, **changes}, PROOF)
    assert finding.verdict is Verdict.BROKEN
    assert said in finding.reason


DAMAGED = [(REFLEXIVE, PROOF), (REFLEXIVE, COMPRESSED), (SYMMETRIC, BACK), (DISJOINT, "tt tr dif")]


@pytest.mark.parametrize(
    ("check", "proof"), DAMAGED, ids=["long", "compressed", "back", "disjoint"]
)
def test_our_verifier_agrees_with_metamath_on_damaged_proofs(
    tmp_path: Path, check: dict[str, str], proof: str
) -> None:
    needs("metamath")
    rng = random.Random(7)
    labels = [*set(PROOF.split()), "tr", "ts", *proof.split()]
    agreed = {True: 0, False: 0}
    for _ in range(2 * examples(25)):
        tokens = proof.split()
        letters = list(tokens[-1])
        for _ in range(rng.choice((0, 1, 1, 2))):
            if proof == COMPRESSED:
                letters[rng.randrange(len(letters))] = rng.choice("ABCDEFGHIJKLMNZU")
            else:
                tokens[rng.randrange(len(tokens))] = rng.choice(labels)
        tokens[-1] = "".join(letters) if proof == COMPRESSED else tokens[-1]
        damaged = " ".join(tokens)
        request = {"theory": check["theory"], "statement": check["statement"], "proof": damaged}
        request["statement"] = " ".join(check["statement"].split())
        ours = "steps" in jailed_metamath.answer({**request, "axioms": None})
        text = f"{check['theory']}\n${{ {check['statement']} $= {damaged} $. $}}\n"
        (tmp_path / "x.mm").write_text(text)
        said = subprocess.run(
            ["metamath", "read x.mm", "verify proof *", "exit"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert ours == ("?Error" not in said and "Warning" not in said), (damaged, said)
        agreed[ours] += 1
    assert min(agreed.values()) > 0


INVARIANT: dict[str, Any] = {
    "kind": "proof",
    "system": "smt",
    "theory": "(define-fun next ((x Int)) Int (+ x 2))",
    "statement": "(synth-fun inv ((x Int)) Bool) (declare-var x Int) (constraint (inv 0))"
    " (constraint (=> (inv x) (inv (next x)))) (constraint (=> (inv x) (distinct x 7)))",
}
SQUARE = {
    "kind": "proof",
    "system": "smt",
    "statement": "(synth-fun root () Int) (constraint (= (* root root) 1764))",
}
LARGER: dict[str, Any] = {
    "kind": "proof",
    "system": "smt",
    "theory": "(declare-sort Thing 0) (declare-fun size (Thing) Int)",
    "axioms": ["(forall ((x Thing)) (>= (size x) 0))"],
    "statement": "(synth-fun larger ((a Thing) (b Thing)) Int) (declare-var x Thing)"
    " (declare-var y Thing) (constraint (>= (larger x y) (size x)))"
    " (constraint (>= (larger x y) (size y)))",
}


@pytest.mark.parametrize(
    ("check", "text", "verdict", "reason"),
    [
        (INVARIANT, "(define-fun inv ((n Int)) Bool (= (mod n 2) 0))", "passed", ""),
        (
            INVARIANT,
            "```smt2\n; even\n((define-fun inv ((x Int)) Bool\n (exists ((k Int))"
            " (= x (* 2 k)))))\n```",
            "passed",
            "",
        ),
        (
            INVARIANT,
            "(define-fun inv ((x Int)) Bool (>= x 0))",
            "failed",
            "a constraint does not hold",
        ),
        (INVARIANT, "(define-fun inv ((x Int)) Bool (next x))", "failed", "the solver refuses it"),
        (SQUARE, "(define-fun root () Int 42)", "passed", ""),
        (SQUARE, "(define-fun root () Int (- 42))", "passed", ""),
        (SQUARE, "(define-fun root () Int 41)", "failed", "a constraint does not hold"),
        (
            LARGER,
            "(define-fun larger ((a Thing) (b Thing)) Int (+ (size a) (size b)))",
            "passed",
            "",
        ),
        (
            LARGER,
            "(define-fun larger ((a Thing) (b Thing)) Int (let ((m (size a))) m))",
            "failed",
            "a constraint does not hold",
        ),
        (LARGER, "(define-fun larger ((a Thing) (b Thing)) Int (size x))", "failed", "uses 'x'"),
    ],
)
def test_definitions_that_a_solver_checks(
    verifier: CheckVerifier, check: dict[str, Any], text: str, verdict: str, reason: str
) -> None:
    needs("smt")
    finding = find(verifier, check, text)
    assert finding.verdict.value == verdict, finding
    assert reason in finding.reason


@pytest.mark.parametrize(
    ("check", "text", "verdict", "reason"),
    [
        (INVARIANT, "(define-fun inv ((n Int)) Bool (= (mod n 2) 0))", "passed", ""),
        (INVARIANT, "(define-fun inv ((n Int)) Bool true)", "failed", "a constraint does not hold"),
        (INVARIANT, "(define-fun inv ((n Int)) Bool (next n))", "failed", "the solver refuses it"),
        ({**INVARIANT, "axioms": ["false"]}, "(define-fun inv ((n Int)) Bool true)", "broken", ""),
        (SQUARE, "(define-fun root () Int 42)", "passed", ""),
        (LARGER, "(define-fun larger ((a Thing) (b Thing)) Int (size a))", "failed", ""),
    ],
)
def test_cvc5_is_the_solver_where_there_is_no_z3(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    check: dict[str, Any],
    text: str,
    verdict: str,
    reason: str,
) -> None:
    cvc5 = shutil.which("cvc5")
    if cvc5 is None:
        pytest.skip("no cvc5")
    (tmp_path / "cvc5").symlink_to(cvc5)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(provers, "in_environment", lambda name: None)
    with CheckVerifier(workers=1) as verifier:
        finding = find(verifier, check, text)
    assert finding.verdict.value == verdict, finding
    assert reason in finding.reason
    assert verdict != "passed" or finding.evidence["checked_by"].startswith("cvc5 ")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"axioms": ["(= 1 2)"]}, "axioms contradict each other"),
        ({"axioms": ["(size 3)"]}, "theory, axioms or statement"),
        ({"theory": "(define-fun next ((x Int)) Int y)"}, "theory, axioms or statement"),
    ],
)
def test_what_is_wrong_with_a_record_is_not_the_candidates_fault(
    verifier: CheckVerifier, changes: dict[str, Any], said: str
) -> None:
    needs("smt")
    finding = find(verifier, INVARIANT | changes, "(define-fun inv ((x Int)) Bool (>= x 0))")
    assert finding.verdict is Verdict.BROKEN
    assert said in finding.reason


def test_the_sum_of_the_parts_without_an_axiom_is_not_larger(verifier: CheckVerifier) -> None:
    needs("smt")
    text = "(define-fun larger ((a Thing) (b Thing)) Int (+ (size a) (size b)))"
    bare = {name: value for name, value in LARGER.items() if name != "axioms"}
    assert find(verifier, bare, text).verdict is Verdict.FAILED


def test_expressions_are_written_as_they_were_read() -> None:
    text = '(a (b "c ( )" |d ;e|) () f)'
    assert [written(each) for each in parse(text)] == [text]
    assert parse("; nothing\n ()") == [()]


COMMUTES = {
    "kind": "proof",
    "system": "lean",
    "theory": "import Mathlib\nopen Nat",
    "statement": "theorem commutes (a b : Nat) : a + b = b + a := by sorry",
}
ANSWERS = [
    LeanAnswer("omega", axioms="'commutes' depends on axioms: [propext]"),
    LeanAnswer("Nat.add_comm", axioms="'commutes' does not depend on any axioms"),
    LeanAnswer("trusting", axioms="'commutes' depends on axioms: [propext,\n Lean.ofReduceNat]"),
    LeanAnswer("decide", 1, "GrvProof.lean:4:3: error: failed to synthesize\n  Decidable"),
    LeanAnswer("hacked", axioms="'commutes' does not depend on any axioms", second=1),
    LeanAnswer("printing", axioms="'commutes' does not depend on any axioms\nand more"),
    LeanAnswer(
        "hiding",
        messages="GrvProof.lean:4:40: warning: unused variable `h`",
        axioms="'commutes' does not depend on any axioms",
        inside="'commutes' depends on axioms: [propext,\n Classical.choice,\n evil]",
    ),
    LeanAnswer(
        "forging",
        messages="'commutes' does not depend on any axioms",
        axioms="'commutes' depends on axioms: [evil]",
        inside="",
    ),
    LeanAnswer("renaming", axioms="'other' does not depend on any axioms"),
]


@pytest.mark.parametrize(
    ("text", "verdict", "reason"),
    [
        ("by omega", "passed", ""),
        ("  omega", "passed", ""),
        (":= Nat.add_comm a b", "passed", ""),
        ("```lean4\ntheorem commutes (a b : Nat) :\n    a+b = b+a := by omega\n```", "passed", ""),
        (
            "import Mathlib\n/-- It holds. -/\ntheorem commutes (a b : Nat) : a + b = b + a := by\n"
            "  -- not sorry\n  omega",
            "passed",
            "",
        ),
        ("by simp", "failed", "the proof is wrong"),
        ("by decide", "failed", "the proof is wrong"),
        ("by trusting", "failed", "rests on other axioms"),
        ("by hiding", "failed", "rests on other axioms"),
        ("by forging", "failed", "rests on other axioms"),
        ("by hacked", "failed", "the second check refuses the proof"),
        ("by printing", "broken", "lean did not list the axioms of the theorem"),
        ("by renaming", "broken", "lean did not list the axioms of the theorem"),
    ],
)
def test_what_lean_says_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, verdict: str, reason: str
) -> None:
    lean = FakeLean(tmp_path / "lean", ANSWERS)
    monkeypatch.setenv("PATH", f"{lean.programs}:/usr/bin:/bin")
    with CheckVerifier(workers=1) as verifier:
        finding = find(verifier, COMMUTES, text)
    assert (finding.verdict.value, finding.reason) == (verdict, reason)
    if verdict == "passed":
        assert finding.evidence["checked_by"] == "lean 4.24.0"
        assert finding.evidence["second_check"] == "leanchecker"


@pytest.mark.parametrize(
    ("axioms", "verdict"), [([], "failed"), (["propext"], "passed"), (["Quot.sound"], "failed")]
)
def test_axioms_of_lean_are_listed_by_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, axioms: list[str], verdict: str
) -> None:
    lean = FakeLean(tmp_path / "lean", ANSWERS, has_second=False)
    monkeypatch.setenv("PATH", f"{lean.programs}:/usr/bin:/bin")
    with CheckVerifier(workers=1) as verifier:
        finding = find(verifier, {**COMMUTES, "axioms": axioms}, "by omega")
    assert finding.verdict.value == verdict
    if verdict == "passed":
        assert finding.evidence["second_check"] == "not installed"


def test_without_lean_the_reason_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with CheckVerifier(workers=1) as verifier:
        finding = find(verifier, COMMUTES, "by omega")
    assert finding.verdict is Verdict.BROKEN
    assert finding.reason == "no lean for proofs in lean: install Lean 4 with elan"


def test_without_a_solver_the_reason_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(provers, "in_environment", lambda name: None)
    with CheckVerifier(workers=1) as verifier:
        finding = find(verifier, SQUARE, "(define-fun root () Int 42)")
    assert finding.verdict is Verdict.BROKEN
    assert "pip install 'generate-rank-verify[smt]'" in finding.reason


def test_a_theory_may_have_strings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lean = FakeLean(tmp_path / "lean", ANSWERS)
    monkeypatch.setenv("PATH", f"{lean.programs}:/usr/bin:/bin")
    notation = 'local notation "ℝ²" => ℝ × ℝ'
    text = f"{notation}\ntheorem commutes (a b : Nat) : a + b = b + a := by omega"
    with CheckVerifier(workers=1) as verifier:
        finding = find(verifier, {**COMMUTES, "theory": notation}, text.replace(notation, ""))
    assert finding.verdict is Verdict.PASSED


def test_comments_of_lean_nest() -> None:
    code = "a /- b /- c -/ d -/ e -- f /-\ng"
    bare = without_comments(code)
    assert bare.split() == ["a", "e", "g"]
    assert len(bare) == len(code)
    assert without_comments("/- a --/ b -/ c").split() == ["b", "-/", "c"]


@pytest.mark.parametrize(
    ("statement", "claim"),
    [
        ("theorem a : b := by\n  sorry\n", "theorem a : b"),
        ("theorem a : b :=by", "theorem a : b"),
        ("theorem a : b := sorry", "theorem a : b"),
        ("theorem a : b :=", "theorem a : b"),
        ("theorem a : standby", "theorem a : standby"),
        ("theorem a : b := c", "theorem a : b := c"),
    ],
)
def test_the_beginning_of_a_proof_is_left_out(statement: str, claim: str) -> None:
    assert without_proof(statement) == claim


@pytest.mark.parametrize(
    ("check", "text"),
    [
        ({**REFLEXIVE, "theory": THEORY + "$( " * 500_000}, PROOF),
        ({**REFLEXIVE, "statement": "th1 $p |- t = t" + " " * 500_000 + "x"}, "tt"),
        ({**INVARIANT, "theory": ";" * 500_000 + "\n" + "(" * 1000 + ")" * 1000}, "x"),
        (COMMUTES, "theorem " * 100_000),
        (COMMUTES, "/- " * 300_000),
        ({**COMMUTES, "statement": f"theorem a : {' ' * 500_000} x"}, "by " + " " * 900_000 + "x"),
    ],
    ids=["comments", "spaces", "brackets", "theorems", "openings", "long statement"],
)
@pytest.mark.timeout(60)  # quadratic time would be hours
def test_reading_ends(check: dict[str, Any], text: str) -> None:
    try:
        how = parse_check(Problem("p", check=check)).how
    except UsageError:
        return
    assert how.refutation(text) is None or how.key(text)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"system": "coq"}, "system must be one of lean, metamath, smt, not 'coq'"),
        ({"system": "metamath"}, "statement is missing"),
        ({"system": "metamath", "statement": "a $p b"}, "theory is missing"),
        (
            {**REFLEXIVE, "statement": "th1 $p |- t = t $= tt a2 $."},
            "statement must be LABEL $p MATH",
        ),
        ({**REFLEXIVE, "statement": "th1 $a |- t = t"}, "statement must be LABEL $p MATH"),
        ({**REFLEXIVE, "statement": "mp $p |- t = t"}, "statement: the theory already has mp"),
        ({**REFLEXIVE, "statement": "$c x $. th1 $p |- t"}, "statement: '$c x' is no hypothesis"),
        ({**REFLEXIVE, "theory": "$[ set.mm $]"}, "theory must be whole"),
        ({**REFLEXIVE, "theory": 3}, "theory must be a text, not 3"),
        ({**REFLEXIVE, "axioms": "mp"}, "axioms must be a list of texts, not 'mp'"),
        ({**REFLEXIVE, "axioms": ["mpp"]}, "axioms: the theory has no 'mpp'"),
        ({**REFLEXIVE, "axiom": ["mp"]}, "axiom: no such field"),
        ({**REFLEXIVE, "limits": {"second": 3}}, "limits: "),
        ({**INVARIANT, "theory": "(check-sat)"}, "theory: 'check-sat' is no declaration"),
        ({**INVARIANT, "theory": "(declare-sort"}, "theory: a ) is missing"),
        ({**INVARIANT, "axioms": ["true false"]}, "axioms: 'true false' is not one term"),
        ({**INVARIANT, "statement": "(constraint true)"}, "statement needs at least one synth-fun"),
        ({**INVARIANT, "statement": "(assert true)"}, "statement is made of (synth-fun"),
        ({**COMMUTES, "statement": "def f := 1"}, "statement must be theorem NAME"),
        ({**COMMUTES, "statement": "theorem f := 1"}, "statement says nothing"),
        ({**COMMUTES, "axioms": ["a b"]}, "axioms: 'a b' is no name"),
    ],
)
def test_a_wrong_record_names_the_field(record: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_check(Problem("p", check={"kind": "proof", **record}))
    assert str(caught.value).startswith("problem p, check")
    assert message in str(caught.value)


def test_what_is_no_proof_is_refuted_for_nothing(verifier: CheckVerifier) -> None:
    problem = Problem("p", check=REFLEXIVE)
    for text in ("", "tt ? a2", "mp a3", "It is clear."):
        assert verifier.refutation(problem, Draft(text)) is not None
    assert verifier.refutation(problem, Draft("mp mp")) is None
    one, same, other = (
        verifier.key(problem, Draft(text)) for text in (PROOF, f"```\n{PROOF}\n```", COMPRESSED)
    )
    assert one == same != other


def pigeons_without_room(holes: int) -> str:
    """A statement that is true, and that no solver of clauses shows in a short time."""
    names = [[f"p{pigeon}_{hole}" for hole in range(holes)] for pigeon in range(holes + 1)]
    housed = [f"(or {' '.join(row)})" for row in names]
    alone = [
        f"(not (and {one[hole]} {other[hole]}))"
        for hole in range(holes)
        for one, other in itertools.combinations(names, 2)
    ]
    variables = " ".join(f"(declare-var {name} Bool)" for row in names for name in row)
    clauses = " ".join([*housed, *alone])
    return f"(synth-fun f () Bool) {variables} (constraint (or f (not (and {clauses}))))"


def test_limits_and_repeat_work(verifier: CheckVerifier) -> None:
    needs("smt")
    hard = {**SQUARE, "statement": pigeons_without_room(12)}
    finding = find(verifier, {**hard, "limits": {"seconds": 0.5}}, "(define-fun f () Bool false)")
    assert (finding.verdict, finding.reason) == (Verdict.FAILED, "timeout")
    assert find(verifier, {**SQUARE, "repeat": 2}, "(define-fun root () Int 42)").verdict.value == (
        "passed"
    )
    finding = find(
        verifier, {**SQUARE, "limits": {"output_mb": 1e-5}}, "(define-fun root () Int 42)"
    )
    assert finding.reason == "refuted: is too long"


@pytest.fixture(scope="module")
def attacked() -> Iterator[CheckVerifier]:
    with CheckVerifier(workers=1, limits=suite.LIMITS, refute=False) as verifier:
        yield verifier


@pytest.mark.parametrize(
    "attack", list(proofs.attacks()), ids=lambda attack: f"{attack.check['system']}: {attack.name}"
)
def test_an_attack_on_a_check_of_proofs_is_held(
    attacked: CheckVerifier, attack: answers.AnswerAttack
) -> None:
    text = attack.text.replace("@FILE@", "/etc/passwd")
    finding = find(attacked, dict(attack.check), text)
    assert finding.verdict is Verdict.FAILED, finding


def test_there_are_enough_attacks() -> None:
    systems = [attack.check["system"] for attack in proofs.attacks()]
    for system in ("metamath", "smt", "lean"):
        if system == "lean" or isinstance(installed()[system], Prover):
            assert systems.count(system) >= 15
