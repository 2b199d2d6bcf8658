"""Theorems in Lean 4 without their proofs, such as miniF2F, ProofNet and PutnamBench."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...core.errors import UsageError
from ..protocols import Problem
from ..verifiers.proofs.lean import without_proof
from .prompts import filled
from .records import Converted, NotConverted, Record, Wanted

PROMPT = "{question}\n\nProve this theorem in Lean 4.\n\n```lean4\n{code} := by\n"
_STATEMENTS = ("formal_statement", "lean4_formalization", "lean4_statement")
_HEADERS = ("header", "lean4_src_header")
_INFORMAL = ("informal_prefix", "informal_statement", "nl_statement")
_THEOREM = re.compile(r"^(?:theorem|lemma)\s", re.MULTILINE)


def lean(record: Record, wanted: Wanted) -> Converted:
    """A theorem of a set in Lean 4."""
    name = record.name("name", "id")
    if name.isdecimal():
        name = f"{record.source}/{name}"
    check = check_of(record)
    question = _first(record, _INFORMAL).strip().removeprefix("/--").removesuffix("-/").strip()
    code = f"{check['theory']}\n\n{check['statement']}".strip()
    prompt = filled(wanted.prompt or PROMPT, question, code).lstrip("\n")
    return Converted(Problem(name, prompt, check, question or code, code))


def check_of(record: Record) -> dict[str, Any]:
    """The check of a theorem. What stands before it belongs to the theory."""
    text = _first(record, _STATEMENTS)
    if not text.strip():
        raise UsageError(f"there is none of the fields {', '.join(_STATEMENTS)}")
    theorems = list(_THEOREM.finditer(text))
    if not theorems:
        raise NotConverted("a statement that is no theorem")
    start = theorems[-1].start()
    before = text[:start].rstrip()
    if re.search(r"\bsorry\b", before):
        raise NotConverted("an answer is to be found besides the proof")
    theory = "\n".join(part for part in (_first(record, _HEADERS).strip(), before.strip()) if part)
    statement = without_proof(text[start:])
    if re.search(r"\bsorry\b", statement):
        raise NotConverted("a statement with sorry in it")
    return {"kind": "proof", "system": "lean", "theory": theory, "statement": statement}


def is_theorem(data: Mapping[str, Any]) -> bool:
    """Whether a record has a theorem in Lean."""
    return any(isinstance(data.get(name), str) for name in _STATEMENTS)


def _first(record: Record, names: tuple[str, ...]) -> str:
    """The first of some fields that is there; "" if there is none."""
    return next((record.text(name) for name in names if record.data.get(name) is not None), "")
