"""Checks the part of Theorem 7 that is proved by computer, for every n; a few seconds.

    python docs/prove_varied.py

docs/theory/varied.md says what is proved, and how.
"""

from __future__ import annotations

import sys

from grv.theory.proofs.varied_proof import BY_HAND, prove


def main() -> None:
    """Print what was proved; exit 1 if something was not."""
    proofs = {n: prove(n) for n in range(2, BY_HAND)}
    missing = {n: proof.violated for n, proof in proofs.items() if not proof.holds}
    if missing:
        sys.exit(f"not proved, with a violation where one was seen: {missing}")
    cells = sum(proof.cells for proof in proofs.values())
    print(f"proved for n from 2 to {BY_HAND - 1}: at most 3 J*, on {cells:,} cells of q")


if __name__ == "__main__":
    main()
