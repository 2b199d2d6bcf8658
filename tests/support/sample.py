"""The sample log of the package; `python tests/support/sample.py` writes it again."""

from __future__ import annotations

import csv
import io
from importlib import resources

from grv.testing.worlds import population


def sample_csv() -> str:
    """Forty problems like those of a real log, a hundred candidates each, as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["problem", "candidate", "passed", "score"])
    for problem in population("humaneval", problems=40, candidates=100, seed=2026).problems:
        labelled = zip(problem.passed.tolist(), problem.scores.tolist(), strict=True)
        for candidate, (passed, score) in enumerate(labelled):
            writer.writerow([problem.id, candidate, int(passed), f"{score:.2f}"])
    return text.getvalue()


if __name__ == "__main__":
    path = resources.files("grv") / "data" / "sample.csv"
    with resources.as_file(path) as file:
        file.write_text(sample_csv(), encoding="utf-8")
