"""What a function of the user's said before it was edited is not what it says now."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import grv

SOURCE = """
def generate(problem):
    return "It is 4."

def score(problem, text):
    return 0.0

def verify(problem, text):
    return {verdict}
"""


def module(path: Path, verdict: str) -> ModuleType:
    path.write_text(SOURCE.format(verdict=verdict), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def solved(own: ModuleType, ledger: Path) -> grv.Solution:
    return grv.solve_now(
        "2 + 2",
        generator=own.generate,
        scorer=own.score,
        verifier=own.verify,
        budget=30,
        ledger=ledger,
    )


def test_the_verdict_of_a_verifier_that_was_edited_is_not_used(tmp_path: Path) -> None:
    ledger = tmp_path / "run.ledger"
    assert solved(module(tmp_path / "first.py", "True"), ledger).verified
    edited = module(tmp_path / "second.py", "False")
    assert not solved(edited, ledger).verified
