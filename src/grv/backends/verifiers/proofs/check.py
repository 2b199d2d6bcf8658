"""Verify a proof: checks of kind "proof".

`{"kind": "proof", "system": "metamath", "theory": "$c ...", "statement": "th $p |- t = t"}`. Each
system is a class of its own: what a candidate may contain, and which programs check it. A candidate
is read here first. It can only fill the place of the proof: what it is put into comes from the
record. The programs run in the second jail, and their answers are read here.
"""

from __future__ import annotations

import abc
import importlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from ....core.errors import UsageError
from ....core.values import Verdict
from ....files import shown
from ....text import checksum
from ...protocols import Finding, Problem, Usage
from ...sandbox.limits import DEFAULT_LIMITS, RunLimits
from ..answers import code_in, one_of, spoken
from ..checks import WholeTextCheck
from ..languages.toolchains import NotInstalled
from ..programs.findings import clean, failed
from ..worker_pair import WorkerPair

# The systems, with the module and the class of each.
SYSTEMS: Mapping[str, tuple[str, str]] = {
    "lean": (".lean", "LeanProof"),
    "metamath": (".metamath", "MetamathProof"),
    "smt": (".smt", "SmtProof"),
}
_LARGEST = 16 << 20  # characters of a theory
_LONGEST = 1 << 20  # characters of a candidate: it is read outside of the jail


class NoProof(Exception):
    """A text has nothing in it that could be a proof; the message says why."""


@dataclass(frozen=True)
class ProofCheck(WholeTextCheck):
    """Passes a text with a proof of a statement.

    Attributes:
        theory: what the proof may use.
        statement: what must be proved.
        axioms: what the proof may rest on; None if the record does not say.
        limits: what each program may use.
    """

    is_jailed: ClassVar[bool] = True
    is_limited: ClassVar[bool] = True
    languages: ClassVar[tuple[str, ...]] = ()  # what code blocks with a proof call the language

    theory: str
    statement: str
    axioms: tuple[str, ...] | None = None
    limits: RunLimits = DEFAULT_LIMITS

    @classmethod
    def of(cls, problem: Problem, limits: RunLimits = DEFAULT_LIMITS) -> ProofCheck:
        """The check of a problem; a UsageError names the field that is wrong."""
        record = problem.check
        module, name = SYSTEMS[one_of(record, "system", tuple(SYSTEMS))]
        kind = getattr(importlib.import_module(module, __package__), name)
        theory = record.get("theory", "")
        statement = record.get("statement")
        for field, value in (("theory", theory), ("statement", statement)):
            if not isinstance(value, str):
                said = "is missing" if value is None else f"must be a text, not {shown(value)}"
                raise UsageError(f"{field} {said}")
            if len(value) > _LARGEST:
                raise UsageError(f"{field} has more than {_LARGEST >> 20} million characters")
        axioms = record.get("axioms")
        if axioms is not None:
            if not isinstance(axioms, list) or not all(isinstance(each, str) for each in axioms):
                raise UsageError(f"axioms must be a list of texts, not {shown(axioms)}")
            axioms = tuple(axioms)
        made = kind(theory, statement, axioms, kind.allowed(record, limits))
        made.check_record()
        return cast(ProofCheck, made)

    @classmethod
    def allowed(cls, record: Mapping[str, Any], limits: RunLimits) -> RunLimits:
        """The limits in force."""
        return limits

    @abc.abstractmethod
    def check_record(self) -> None:
        """Raise a UsageError that names the field that is wrong."""

    @abc.abstractmethod
    def proof_in(self, code: str) -> str:
        """The proof in a candidate's code, as the programs get it; raises NoProof."""

    @abc.abstractmethod
    def checked(self, proof: str, pair: WorkerPair, seed: int) -> Finding:
        """The finding on a proof."""

    def read(self, text: str) -> str:
        """The proof in a candidate's text; raises NoProof if there cannot be one.

        It is in the last code block of the system's language, or else of none, or is the text.
        """
        if len(text) > min(_LONGEST, self.limits.output_bytes):
            raise NoProof("is too long")
        answer = spoken(text)
        blocks = code_in(answer, self.languages)
        code = blocks[-1] if blocks else answer
        if not code.strip():
            raise NoProof("has no proof")
        return self.proof_in(code)

    def identity(self, text: str) -> str:
        """A checksum of the proof."""
        try:
            return checksum(self.read(text))
        except NoProof:
            return checksum(text)

    def key(self, text: str) -> str | None:
        """Texts with the same proof fail together."""
        return f"proof:{self.identity(text)}"

    def reading(self, text: str, verdict: Verdict) -> dict[str, str]:
        """The proof that passed."""
        return {"answer_value": self.read(text)} if verdict is Verdict.PASSED else {}

    def refutation(self, text: str) -> str | None:
        """Why a text cannot be a proof, from reading it alone."""
        try:
            self.read(text)
        except NoProof as reason:
            return str(reason)
        return None

    def worst_seconds(self) -> float:
        """Both programs, each with its full limit, and what is done once for a check."""
        return 4 * self.limits.seconds

    def judge(self, text: str, pair: WorkerPair, seed: int = 0) -> Finding:
        """The finding on a candidate's text."""
        started = time.monotonic()
        try:
            proof = self.read(text)
        except NoProof as reason:
            return failed(str(clean(str(reason))))
        try:
            finding = self.checked(proof, pair, seed)
        except NotInstalled as missing:  # other problems are judged all the same
            return broken(str(missing))
        evidence = clean(finding.evidence) | {"isolation": str(pair.tools.in_force)}
        usage = Usage(seconds=time.monotonic() - started)
        return Finding(finding.verdict, finding.reason, evidence, usage)


def broken(reason: str, **evidence: Any) -> Finding:
    """The finding if the candidate is not at fault."""
    return Finding(Verdict.BROKEN, str(clean(reason)), evidence)
