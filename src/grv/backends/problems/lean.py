"""Theorems to prove in Lean 4: miniF2F, ProofNet, PutnamBench and sets written like them."""

from __future__ import annotations

import re

from ...core.errors import UsageError
from ..protocols import Problem
from .prompts import filled
from .records import Converted, NotConverted, Record, Wanted, kept

LEAN_PROMPT = (
    "Prove this theorem in Lean 4. Use neither sorry nor new axioms.\n\n```lean4\n{code}\n```\n\n"
    "{question}\n\nAnswer with the whole file.\n\n```lean4\n"
)
# By set: the fields of the header, of the statement and of the words.
_HEADERS = ("header", "lean4_src_header", "lean_header")
_STATEMENTS = ("formal_statement", "lean4_formalization", "lean4_statement")
_WORDS = ("informal_prefix", "informal_stmt", "nl_statement", "informal_statement", "problem")
_PROOFS = ("formal_proof", "lean4_proof", "proof")
_END = re.compile(r"\s*(?::=\s*(?:by\s*)?)?(?:sorry\s*)?\Z")
_THEOREM = re.compile(
    r"^[ \t]*(?:private\s+|noncomputable\s+)*(?:theorem|lemma)\s+\S", re.MULTILINE
)
_IMPORT = re.compile(r"^import\s", re.MULTILINE)
_HEADER = "import Mathlib\n"


def lean(record: Record, wanted: Wanted) -> Converted:
    """A theorem of a set in Lean 4."""
    return theorem(record, wanted, record.name("name", "id", "uuid"))


def theorem(record: Record, wanted: Wanted, name: str) -> Converted:
    """The problem of proving the theorem in a record."""
    text = _first(record, _STATEMENTS)
    if text is None:
        there = ", ".join(map(str, record.data))[:200]
        raise UsageError(f"no field {' or '.join(_STATEMENTS)}; there are {there}")
    last = None
    for last in _THEOREM.finditer(text):  # noqa: B007
        pass
    if last is None:
        raise NotConverted("no theorem or lemma with a name")
    before = text[: last.start()]
    statement = _END.sub("", text[last.start() :]).rstrip()
    header = _first(record, _HEADERS) or ""
    theory = f"{header.rstrip()}\n\n{before.strip()}".strip()
    if not _IMPORT.search(theory):
        theory = f"{_HEADER}\n{theory}".strip()
    check = {"kind": "proof", "system": "lean", "theory": f"{theory}\n", "statement": statement}
    code = f"{theory}\n\n{statement} := by\n  sorry"
    question = (_first(record, _WORDS) or "").strip()
    prompt = filled(wanted.prompt or LEAN_PROMPT, question, code)
    proofs = [record.data.get(field) for field in _PROOFS]
    return Converted(Problem(name, prompt, check, question, code), solutions=kept(proofs))


def _first(record: Record, names: tuple[str, ...]) -> str | None:
    """The first of these fields that has a text."""
    for name in names:
        value = record.data.get(name)
        if isinstance(value, str) and value.strip():
            return value
    return None
