"""`grv problems`: a file of problems from a published dataset."""

from __future__ import annotations

import enum
import json
from collections import Counter

from ..core.errors import UsageError
from ..options import option
from ..text import counted
from .console import check_outputs, say
from .options.command import command


class Match(enum.StrEnum):
    """How answers are compared."""

    EQUIVALENT = "equivalent"
    EXACT = "exact"


@command
def problems(
    dataset: str = option(
        ..., "Which dataset.", argument=True, metavar="hmmt|livecodebench|humaneval"
    ),
    files: tuple[str, ...] = option(
        ...,
        "Its files, as published: .jsonl, .jsonl.gz or .parquet.",
        argument=True,
        metavar="FILE...",
    ),
    out: str = option(
        ..., "Problems for grv solve and grv collect.", "--out", "-o", metavar="FILE"
    ),
    difficulty: str | None = option(
        None, "Only these, separated by commas: medium,hard (livecodebench).", metavar="NAMES"
    ),
    match: Match = option(Match.EQUIVALENT, "How answers are compared (hmmt)."),
    prompt: str | None = option(
        None,
        "The prompt for models, with {question} and {code} as placeholders.",
        shown="by dataset",
    ),
) -> None:
    """Make a file of problems from a published dataset.

    Hidden tests of LiveCodeBench, published as pickles, are read without executing them.

    \b
    grv problems hmmt hmmt_feb_2024.parquet hmmt_feb_2025.parquet --match exact -o hmmt.jsonl
    grv problems livecodebench test.jsonl --difficulty medium,hard -o livecodebench.jsonl
    grv problems humaneval HumanEval.jsonl.gz -o humaneval.jsonl
    """
    from ..backends.problems.datasets import DATASETS, read_dataset
    from ..backends.problems.files import record_of
    from ..files import replacing

    if dataset not in DATASETS:
        raise UsageError(f"DATASET {dataset}: give one of {', '.join(DATASETS)}")
    check_outputs([out], files)
    wanted = None if difficulty is None else [name.strip() for name in difficulty.split(",")]
    kept: Counter[str | None] = Counter()
    left_out: Counter[str | None] = Counter()
    with replacing(out) as temporary, temporary.open("w", encoding="utf-8") as file:
        for item in read_dataset(dataset, files, prompt=prompt, match=match.value):
            if wanted is not None and item.difficulty not in wanted:
                left_out[item.difficulty] += 1
                continue
            kept[item.difficulty] += 1
            file.write(json.dumps(record_of(item.problem)) + "\n")
        if not kept:
            raise UsageError(
                f"--difficulty {difficulty}: no problem has it; there are {_counted(left_out)}"
            )
    say(f"{out}: {counted(kept.total(), 'problem')}" + (f" ({_counted(kept)})" if wanted else ""))
    if left_out:
        say(f"left out: {_counted(left_out)}")


def _counted(counts: Counter[str | None]) -> str:
    return ", ".join(f"{count} {name or 'without difficulty'}" for name, count in counts.items())
