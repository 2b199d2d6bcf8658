"""`grv problems`: a file of problems out of a published dataset."""

from __future__ import annotations

import json
from collections import Counter

import typer

from ..core.errors import UsageError
from .console import check_outputs, choice, say


def problems(
    dataset: str = typer.Argument(metavar="hmmt|livecodebench|humaneval", help="Which dataset."),
    files: list[str] = typer.Argument(
        metavar="FILE", help="Its files, as published: .jsonl, .jsonl.gz or .parquet."
    ),
    out: str = typer.Option(
        ..., "--out", "-o", metavar="FILE", help="Problems for grv solve and grv collect."
    ),
    difficulty: str = typer.Option(
        None, metavar="NAMES", help="Only these, apart by commas: medium,hard (livecodebench)."
    ),
    match: str = typer.Option(
        "equivalent", metavar="equivalent|exact", help="How answers are compared (hmmt)."
    ),
    prompt: str = typer.Option(
        None,
        metavar="TEXT",
        help="What models are given, with {question} and {code} where those go."
        "  [default: by dataset]",
    ),
) -> None:
    """Make a file of problems out of a published dataset.

    Hidden tests of LiveCodeBench, published as pickles, are read without running them.

    \b
    grv problems hmmt hmmt_feb_2024.parquet hmmt_feb_2025.parquet --match exact -o hmmt.jsonl
    grv problems livecodebench test.jsonl --difficulty medium,hard -o livecodebench.jsonl
    grv problems humaneval HumanEval.jsonl.gz -o humaneval.jsonl
    """
    from ..backends.problems.datasets import DATASETS, read_dataset
    from ..files import replacing

    choice("DATASET", dataset, tuple(DATASETS))
    choice("--match", match, ("equivalent", "exact"))
    check_outputs([out], files)
    wanted = None if difficulty is None else [name.strip() for name in difficulty.split(",")]
    kept: Counter[str | None] = Counter()
    left_out: Counter[str | None] = Counter()
    with replacing(out) as temporary, temporary.open("w", encoding="utf-8") as file:
        for each in read_dataset(dataset, files, prompt=prompt, match=match):
            if wanted is not None and each.difficulty not in wanted:
                left_out[each.difficulty] += 1
                continue
            kept[each.difficulty] += 1
            problem = each.problem
            record = {"problem": problem.id, "prompt": problem.prompt, "check": dict(problem.check)}
            file.write(json.dumps(record) + "\n")
        if not kept:
            raise UsageError(f"--difficulty {difficulty}: none is; there are {_counted(left_out)}")
    say(f"{out}: {kept.total()} problems" + (f" ({_counted(kept)})" if wanted else ""))
    if left_out:
        say(f"left out: {_counted(left_out)}")


def _counted(counts: Counter[str | None]) -> str:
    return ", ".join(f"{count} {name or 'without difficulty'}" for name, count in counts.items())
