r"""Proofs in Metamath.

`theory` is a database. `statement` is the theorem without its proof, with its hypotheses in front:
`min $e |- P $. maj $e |- ( P -> Q ) $. th $p |- Q`. A candidate is the proof: labels, or a
compressed proof. It may repeat the statement.

Two programs must agree: our own verifier (jailed_metamath.py), which also finds the axioms that a
proof rests on, and `metamath`, which also checks the proofs in the theory.
"""

from __future__ import annotations

import functools
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ....core.errors import UsageError
from ....core.values import Verdict
from ....files import shown
from ...protocols import Finding
from ...sandbox import plain
from ...sandbox.limits import End
from ...sandbox.tool_worker import Step
from ..languages.building import ended
from ..programs.checks import call, load, loading
from ..programs.findings import failed, silent
from ..worker_pair import WorkerPair
from .check import NoProof, ProofCheck, broken
from .provers import prover

_LABEL = re.compile(r"[A-Za-z0-9._-]+")
_LABELLED = ("$a", "$e", "$f", "$p")
_FILE = "proof.mm"
_COMMANDS = ("set scroll continuous", f"read {_FILE}", "verify proof *", "exit")
_VERIFIED = re.compile(r"^All proofs in the database were verified in [0-9.]+ s\.$", re.MULTILINE)
_COMPLAINT = re.compile(r"^\?|^Warning", re.MULTILINE)
_AT = re.compile(r'^\?Error on line .* label "([^"]*)"', re.MULTILINE)
_ENTRY = "answer"


@dataclass(frozen=True)
class MetamathProof(ProofCheck):
    """A proof in Metamath; `axioms` are labels, None allows all of the theory's."""

    languages: ClassVar[tuple[str, ...]] = ("metamath", "mm")

    def check_record(self) -> None:
        """Raise a UsageError that names the field that is wrong."""
        if not self.theory.strip():
            raise UsageError("theory is missing")
        for name, text in (("theory", self.theory), ("statement", self.statement)):
            if not text.isascii():
                raise UsageError(f"{name} must be ASCII, as Metamath is")
        if "$[" in self.theory:
            raise UsageError("theory must be whole: put in the text of the file that $[ includes")
        self._check_statement()
        for label in self.axioms or ():
            if label not in self._labels:
                raise UsageError(f"axioms: the theory has no {shown(label)}")

    def _check_statement(self) -> None:
        """The statement has hypotheses, each ended by `$.`, and then the theorem."""
        *hypotheses, theorem = _parts(self.statement.split(), "$.")
        if theorem[1:2] != ["$p"] or not _LABEL.fullmatch(theorem[0]) or len(theorem) < 3:
            said = "LABEL $p MATH, with hypotheses in front and without $= and $."
            raise UsageError(f"statement must be {said}, not {shown(' '.join(theorem))}")
        if theorem[0] in self._labels:
            raise UsageError(f"statement: the theory already has {theorem[0]}")
        for part in hypotheses:
            known = part[:1] in (["$d"], ["$v"]) or part[1:2] in (["$e"], ["$f"])
            if not known:
                raise UsageError(f"statement: {shown(' '.join(part))} is no hypothesis")
        for part in [*hypotheses, theorem]:
            formula = part[1:] if part[0] in ("$d", "$v") else part[2:]
            if any(token.startswith("$") for token in formula):
                raise UsageError(f"statement: {shown(' '.join(part))} has a keyword too many")

    @functools.cached_property
    def _labels(self) -> frozenset[str]:
        """The labels of the theory."""
        labels = set()
        before = ""
        is_comment = False
        for token in self.theory.split():
            if token == "$(":
                is_comment = True
            elif token == "$)":
                is_comment = False
            elif not is_comment:
                if token in _LABELLED:
                    labels.add(before)
                before = token
        return frozenset(labels)

    @functools.cached_property
    def _hypotheses(self) -> frozenset[str]:
        """The labels of the statement's own hypotheses."""
        parts = _parts(self.statement.split(), "$.")[:-1]
        return frozenset(part[0] for part in parts if part[1:2] in (["$e"], ["$f"]))

    def proof_in(self, code: str) -> str:
        """The labels of the proof, on lines of moderate length."""
        tokens = self._bare(code.split())
        if not tokens:
            raise NoProof("has no proof")
        if any("?" in token for token in tokens):
            raise NoProof("is incomplete: it has ?")
        for token in tokens:
            if token not in ("(", ")") and not _LABEL.fullmatch(token):
                raise NoProof(f"a proof is made of labels, not of {shown(token)}")
        labels = tokens
        if tokens[0] == "(":
            if ")" not in tokens:
                raise NoProof("has no end of the list of labels: )")
            labels = tokens[1 : tokens.index(")")]
            letters = tokens[tokens.index(")") + 1 :]
            if not all(re.fullmatch("[A-Z]+", token) for token in letters):
                raise NoProof("a compressed proof is made of capitals")
        for label in labels:
            if label not in self._labels and label not in self._hypotheses:
                raise NoProof(f"names {shown(label)}, which the theory does not have")
        return "\n".join(textwrap.wrap(" ".join(tokens), 78, break_on_hyphens=False))

    def _bare(self, tokens: Sequence[str]) -> Sequence[str]:
        """The tokens of the proof, without the statement if a candidate repeats it."""
        if tokens[0] == "${" and tokens[-1] == "$}":
            tokens = tokens[1:-1]
        if tokens and tokens[-1] == "$.":
            tokens = tokens[:-1]
        if "$=" not in tokens:
            return tokens
        place = tokens.index("$=")
        whole = self.statement.split()
        theorem = _parts(whole, "$.")[-1]
        if list(tokens[:place]) not in (whole, theorem):
            raise NoProof("states something else than the statement")
        return tokens[place + 1 :]

    def checked(self, proof: str, pair: WorkerPair, seed: int) -> Finding:
        """The finding of both verifiers."""
        program = prover("metamath")
        answer = self._verified(proof, pair, seed)
        if isinstance(answer, Finding):
            return answer
        step = Step((program.path, *_COMMANDS), program.grants)
        files = {_FILE: f"{self.theory}\n${{\n{self.statement}\n$=\n{proof}\n$.\n$}}\n"}
        with pair.tools.step("program", step, self.limits, files=files, clears=True) as run:
            problem = ended(pair.tools, run, self.limits, "metamath ended early")
            if problem is not None:
                return problem
            said = bytes(run.output).decode("utf-8", "replace")
        if _COMPLAINT.search(said) or not _VERIFIED.search(said):
            if set(_AT.findall(said)) == {_parts(self.statement.split(), "$.")[-1][0]}:
                return failed("metamath refuses the proof", said=said[-900:])
            return broken("metamath does not accept the theory with this proof", said=said[-900:])
        return Finding(Verdict.PASSED, "", {**answer, "checked_by": f"grv, {program}"})

    def _verified(self, proof: str, pair: WorkerPair, seed: int) -> Finding | dict[str, Any]:
        """What our own verifier found out about a proof that it accepts, or the finding."""
        limits = self.limits
        request = {
            "theory": self.theory,
            "statement": " ".join(self.statement.split()),
            "proof": proof,
            "axioms": None if self.axioms is None else list(self.axioms),
        }
        order = loading(_source(), _ENTRY, limits, seed)
        with pair.candidate.run("candidate", limits, tests=2, first=order) as run:
            if (refusal := load(run, _ENTRY, limits)) is not None:
                return broken(f"the verifier failed: {refusal.reason}")
            run.clock.begin()
            reply = call(run, {"args": plain.encode([request])})
            if isinstance(reply, End):
                return silent(run, reply, limits.seconds)
        match _content(reply):
            case {"theory": str(said)}:
                return broken(f"theory or statement: {said}")
            case {"proof": str(said)}:
                return failed("the proof is wrong", message=said)
            case {"axioms": list(axioms), "steps": int(steps)}:
                return {"axioms": axioms, "steps": steps}
        if "raised" in reply:
            return failed("memory" if "MemoryError" in str(reply["raised"]) else "no answer")
        return broken("the verifier did not answer")


def _content(reply: Mapping[str, Any]) -> Any:
    try:
        return plain.decode(reply.get("value"))
    except plain.PlainError:
        return None


def _parts(tokens: Sequence[str], end: str) -> list[list[str]]:
    """The tokens between the ends; the last part may be empty."""
    parts: list[list[str]] = [[]]
    for token in tokens:
        if token == end:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


@functools.cache
def _source() -> str:
    """The program that runs in the jail."""
    return Path(__file__).with_name("jailed_metamath.py").read_text(encoding="utf-8")
