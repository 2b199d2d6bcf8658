"""`grv demo`: the comparison on the log that the package ships, and what it means."""

from __future__ import annotations

from importlib import resources

import typer

from .compare import heading


def demo() -> None:
    """Replay the log that comes with grv, and say in plain words what was saved."""
    from ..replay.compare import compare
    from ..replay.readers import read_log
    from ..replay.rows import DEFAULT_ROWS

    with resources.as_file(resources.files("grv") / "data" / "sample.csv") as path:
        log = read_log(str(path))
    comparison = compare(DEFAULT_ROWS, log)
    first, *others = heading(comparison)
    typer.echo("\n".join(["sample.csv" + first[first.index(":") :], *others, ""]))
    typer.echo(comparison.table())
    cheap, everything, single = (
        comparison[name] for name in ("adaptive", "verify-all", "difficulty-1")
    )
    typer.echo(
        f"""
Every trial is solved. Generating a candidate costs 1 here, verifying one costs 10.
- To verify candidates as they come costs {everything.cost:.0f} a problem: {everything.verified:.0f} verifications.
- One number of candidates for all problems costs {single.cost:.0f}: {single.m} generated for each.
- Adaptive, knowing nothing in advance, costs {cheap.cost:.0f}: {cheap.generated:.0f} generated, the best {cheap.verified:.0f} verified.
That saves {1 - cheap.cost / everything.cost:.0%} of verifying everything, and {1 - cheap.cost / single.cost:.0%} of one size for all.

The candidates are synthetic. Try your own: grv compare LOG --score NAME --costs 1,10"""
    )
