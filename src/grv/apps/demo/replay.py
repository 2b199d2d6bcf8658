"""`grv demo --replay`: the comparison on the log that the package ships, and what it shows."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from ..compare import heading
from ..console import say

if TYPE_CHECKING:
    from ...experiments.comparison import Comparison


def show_replay() -> None:
    """Replay the log that comes with grv, and print what a policy saves."""
    from ...experiments.compare import compare
    from ...experiments.rows import DEFAULT_ROWS
    from ...logs.readers import read_log

    with resources.as_file(resources.files("grv") / "data" / "sample.csv") as path:
        comparison = compare(DEFAULT_ROWS, read_log(str(path)))
    first, *others = heading(comparison)
    shown = [
        f"sample.csv{first[first.index(': ') :]}",
        *others,
        "",
        *comparison.table().split("\n"),
        "",
    ]
    say(*shown, *_saved(comparison))


def _saved(comparison: Comparison) -> list[str]:
    """The result in sentences."""
    cheap, all_of_them, single = (
        comparison[name] for name in ("adaptive", "verify-all", "difficulty-1")
    )
    return [
        "Every row except uniform-matched always finds a verified answer. Here generating a",
        "candidate costs 1 and verifying one costs 10. The average cost of a problem is:",
        f"  {all_of_them.cost:6.0f}  if candidates are verified in order of arrival"
        f" ({all_of_them.verified:.0f} verifications)",
        f"  {single.cost:6.0f}  if every problem gets the same number of candidates, {single.m}",
        f"  {cheap.cost:6.0f}  with adaptive, which knows nothing in advance"
        f" ({cheap.generated:.0f} generated, {cheap.verified:.0f} verified)",
        f"That is {1 - cheap.cost / all_of_them.cost:.0%} less than verifying everything, and"
        f" {1 - cheap.cost / single.cost:.0%} less than the same number for all.",
        "",
        "These candidates are synthetic. For your own: grv compare LOG --score NAME --costs 1,10",
    ]
