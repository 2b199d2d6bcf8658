"""Writes docs/research/real-logs.json: what each policy costs on two public logs.

python bench/real_logs.py FOLDER                  # a minute or more for each score
python bench/real_logs.py FOLDER score_codet      # one score; the others are kept

The folder holds humaneval_codegen16b.parquet (CodeGen-16B on HumanEval, published with CodeT, MIT)
and otis_aime_pool.parquet (answers of 55 models to mock AIME, Epoch AI, CC-BY 4.0). Every candidate
costs 1, every verification 10, and an answer that has failed is not verified again in any row.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import grv

OUT = Path(__file__).parents[1] / "docs" / "research" / "real-logs.json"
LOGS = {
    "humaneval": ("humaneval_codegen16b.parquet", ("codet", "gentests_frac", "text_lr", "neglen")),
    "aime": ("otis_aime_pool.parquet", ("text_lr", "votes_loro", "neglen")),
}
POLICIES = ("verify-all", "difficulty-1", "adaptive", "balanced", "varied", "learning", "hindsight")
ORDERS = 10


def rows_of(comparison: dict[str, Any]) -> dict[str, dict[str, float]]:
    """What is kept of a comparison: by policy, its cost and its ratio to verify-all."""
    shown = ("generated", "verified", "cost", "ratio", "low", "high", "solved")
    return {row["policy"]: {name: row[name] for name in shown} for row in comparison["rows"]}


def main() -> None:
    """Compare, and write."""
    folder = Path(sys.argv[1])
    wanted = set(sys.argv[2:])
    found = json.loads(OUT.read_text(encoding="utf-8")) if OUT.exists() else {}
    for name, (file, scores) in LOGS.items():
        for score in scores:
            if wanted and f"score_{score}" not in wanted:
                continue
            log = grv.Log.load(folder / file, score=f"score_{score}")
            made = grv.compare(
                POLICIES, log, (1, 10), orders=ORDERS, keys=True, baseline="verify-all"
            )
            record = {
                "problems": made.log.solvable,
                "orders": ORDERS,
                "rows": rows_of(made.to_json()),
            }
            found[f"{name} {score}"] = record
            OUT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
