"""`grv problems`: a file of problems from a published dataset."""

from __future__ import annotations

import enum
import json
from collections import Counter
from collections.abc import Sequence

from ..core.errors import UsageError
from ..options import option
from ..text import counted
from .console import check_outputs, listed, say, status
from .options.command import command

_SHOWN_EVERY = 100  # records
_NAMED = 5  # records that are named for each reason


class Match(enum.StrEnum):
    """How answers are compared."""

    EQUIVALENT = "equivalent"
    EXACT = "exact"
    PUBLISHED = "published"


@command
def problems(
    format: str = option(
        ...,
        "Which format: hmmt, livecodebench, humaneval, verl, taco, apps, codecontests, bird,"
        " spider, multipl-e, lean, promptfoo, nemo-gym, swe-bench or harbor.",
        argument=True,
        metavar="FORMAT",
    ),
    files: tuple[str, ...] = option(
        ...,
        "Its files, as published: .jsonl, .json, .parquet, .yaml; .jsonl and .json also with .gz;"
        " of harbor the folder with its tasks.",
        argument=True,
        metavar="FILE...",
    ),
    out: str = option(
        ..., "Problems for grv solve and grv collect.", "--out", "-o", metavar="FILE"
    ),
    difficulty: str | None = option(
        None,
        "Only these, separated by commas: medium,hard. As the dataset names them.",
        metavar="NAMES",
    ),
    match: Match = option(
        Match.EQUIVALENT,
        "How answers in mathematics are compared; published reads and compares them as the paper's"
        " published code does.",
    ),
    language: str = option(
        "python",
        "The language of programs (taco, apps, codecontests, verl, nemo-gym): python, c, cpp, java,"
        " javascript, typescript, go or rust.",
        metavar="NAME",
    ),
    databases: str | None = option(
        None,
        "The folder with ID/ID.sqlite (bird, spider, nemo-gym).",
        metavar="FOLDER",
        shown="beside the file",
    ),
    time_factor: float = option(
        1.0,
        "Multiply the time limits of the dataset, which were set for other machines and often for"
        " C++.",
        metavar="X",
        least=1e-3,
        most=1e3,
    ),
    partial: bool = option(
        False,
        "Convert tests of promptfoo without the assertions that cannot be converted.",
        "--partial",
    ),
    repositories: str | None = option(
        None,
        "The folder with clones of repositories, OWNER__NAME each (swe-bench).",
        metavar="FOLDER",
        shown="repositories",
    ),
    prompt: str | None = option(
        None,
        "The prompt for models, with {question} and {code} as placeholders.",
        shown="by format",
    ),
) -> None:
    """Make a file of problems from a published dataset.

    What no check can judge is left out, counted and named. Right answers of a dataset go to the
    field solutions, which no model sees: grv doctor --problems tries them.

    Nothing in a file is executed. Hidden tests of LiveCodeBench, published as pickles, are scanned.

    \b
    grv problems hmmt hmmt_feb_2024.parquet hmmt_feb_2025.parquet --match published \\
        -o hmmt.jsonl
    grv problems livecodebench test.jsonl --difficulty medium,hard -o livecodebench.jsonl
    grv problems humaneval HumanEval.jsonl.gz -o humaneval.jsonl
    grv problems codecontests test.parquet --language cpp -o contests.jsonl
    grv problems bird dev.json --databases dev_databases -o bird.jsonl
    grv problems harbor tasks/ -o tasks.jsonl
    grv problems swe-bench test.parquet --repositories clones -o swe.jsonl
    """
    from ..backends.problems.datasets import FORMATS, Skipped, read_dataset
    from ..backends.problems.files import record_of
    from ..files import replacing
    from ..options import did_you_mean

    if format not in FORMATS:
        hint = did_you_mean(format, list(FORMATS))
        raise UsageError(
            f"FORMAT {format}: give one of {', '.join(FORMATS)}{hint}; for other data, write a line"
            " of JSON per problem, as grv init server does"
        )
    check_outputs([out], files)
    wanted = None if difficulty is None else [name.strip() for name in difficulty.split(",")]
    summary = _Summary()
    found = read_dataset(
        format,
        files,
        prompt=prompt,
        match=match.value,
        language=language,
        databases=databases,
        time_factor=time_factor,
        partial=partial,
        repositories=repositories,
    )
    with replacing(out) as temporary, temporary.open("w", encoding="utf-8") as file:
        with status("reading") as tell:
            for number, item in enumerate(found, 1):
                if number % _SHOWN_EVERY == 0:
                    tell(counted(number, "record"))
                if isinstance(item, Skipped):
                    summary.skip(item.place, item.reason)
                elif wanted is not None and item.difficulty not in wanted:
                    summary.left_out[item.difficulty] += 1
                else:
                    summary.keep(item.problem.id, item.difficulty, item.solutions, item.notes)
                    file.write(json.dumps(record_of(item.problem, item.solutions)) + "\n")
        if not summary.kept:
            raise UsageError(summary.nothing(difficulty))
    for line in summary.lines(out, by_difficulty=wanted is not None):
        say(line)


class _Summary:
    """What was converted and what was not."""

    def __init__(self) -> None:
        self.kept: Counter[str | None] = Counter()
        self.left_out: Counter[str | None] = Counter()
        self.skipped: dict[str, list[str]] = {}
        self.notes: dict[str, list[str]] = {}
        self.solved = 0

    def keep(
        self, name: str, difficulty: str | None, solutions: Sequence[str], notes: Sequence[str]
    ) -> None:
        """Count a problem."""
        self.kept[difficulty] += 1
        self.solved += bool(solutions)
        for note in dict.fromkeys(notes):
            self.notes.setdefault(note, []).append(name)

    def skip(self, place: str, reason: str) -> None:
        """Count a record that was not converted."""
        self.skipped.setdefault(reason, []).append(place)

    def nothing(self, difficulty: str | None) -> str:
        """Why there is no problem at all."""
        if self.left_out:
            return (
                f"--difficulty {difficulty}: no problem has it; there are {_counted(self.left_out)}"
            )
        return f"no problem can be converted: {'; '.join(_reasons(self.skipped))}"

    def lines(self, out: str, *, by_difficulty: bool) -> list[str]:
        """The summary for people."""
        total = self.kept.total()
        names = f" ({_counted(self.kept)})" if by_difficulty else ""
        lines = [f"{out}: {counted(total, 'problem')}{names}"]
        if self.solved:
            lines.append(f"with solutions: {self.solved}; try them: grv doctor --problems {out}")
        if self.left_out:
            lines.append(f"left out: {_counted(self.left_out)}")
        lines += [f"not converted: {line}" for line in _reasons(self.skipped)]
        lines += [f"converted without: {line}" for line in _reasons(self.notes)]
        return lines


def _reasons(found: dict[str, list[str]]) -> list[str]:
    """Reasons with their counts and the first names, the most frequent one first."""
    by_count = sorted(found.items(), key=lambda item: -len(item[1]))
    return [f"{len(names)}, {reason}: {listed(names, _NAMED)}" for reason, names in by_count]


def _counted(counts: Counter[str | None]) -> str:
    return ", ".join(f"{count} {name or 'without difficulty'}" for name, count in counts.items())
