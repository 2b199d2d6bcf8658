"""`grv runs watch`: the searches of a ledger on the terminal, while other processes run them."""

from __future__ import annotations

import shutil
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..text import counted, visible
from .console import COLOURS, say

if TYPE_CHECKING:
    from rich.table import Table

    from ..ledger.rows import SearchSummary
    from ..ledger.tables import TableLedger

_HEAD = 3  # lines of the screen that are not searches


@dataclass(frozen=True)
class Watched:
    """What one look at a ledger shows.

    Attributes:
        states: the number of searches per outcome or state.
        paid: what was possibly paid for all of them.
        rows: summary and state of those that fit on the screen; first those without an outcome,
            then those that ended last.
    """

    states: Counter[str]
    paid: float
    rows: Sequence[tuple[SearchSummary, str]]

    @property
    def line(self) -> str:
        """The sums."""
        searches = sum(self.states.values())
        states = ", ".join(f"{count} {state}" for state, count in self.states.most_common())
        words = [counted(searches, "search"), states, f"{self.paid:g} possibly paid"]
        return ": ".join(words[:2]) + f"; {words[2]}" if searches else "no search yet"

    @classmethod
    def look(cls, ledger: TableLedger, most: int) -> Watched:
        """Read what the ledger holds now; `most` is the number of rows."""
        summaries = list(ledger.searches())
        open_ids = [each.id for each in summaries if each.outcome is None]
        so_far = ledger.so_far(open_ids)
        doing = ledger.doing(open_ids, {id for id in so_far if so_far[id].waiting})
        states = {each.id: each.outcome or doing[each.id] for each in summaries}
        summaries.sort(key=lambda each: (each.ended is not None, -(each.ended or each.started)))
        rows = []
        for each in summaries[:most]:
            if each.id in so_far:
                now = so_far[each.id]
                each = replace(each, generated=now.generated, verified=now.verified)
            rows.append((each, states[each.id]))
        return cls(Counter(states.values()), sum(each.paid for each in summaries), rows)


def watch(ledger: TableLedger, seconds: float) -> None:
    """Show the ledger until Ctrl-C; elsewhere than on a terminal, print a line when it changes."""
    if not sys.stdout.isatty():
        last = ""
        while True:
            line = Watched.look(ledger, 0).line
            if line != last:
                say(line)
            last = line
            time.sleep(seconds)
    from rich.console import Console
    from rich.live import Live

    console = Console(highlight=False)
    with Live(console=console, auto_refresh=False, screen=True) as live:
        while True:
            most = max(1, shutil.get_terminal_size().lines - _HEAD)
            live.update(table(Watched.look(ledger, most), ledger.path), refresh=True)
            time.sleep(seconds)


def table(watched: Watched, path: str) -> Table:
    """One screen. A long name is cut, never a number."""
    from rich.table import Table
    from rich.text import Text

    made = Table(
        box=None,
        expand=True,
        padding=(0, 1),
        title=Text(visible(f"{path}: {watched.line}"), no_wrap=True, overflow="ellipsis"),
        title_justify="left",
        title_style="bold",
    )
    made.add_column("problem", no_wrap=True, overflow="ellipsis", ratio=1)
    made.add_column("outcome", no_wrap=True)
    for name in ("generated", "verified", "possibly paid", "seconds"):
        made.add_column(name, justify="right", no_wrap=True)
    now = time.time()
    for summary, state in watched.rows:
        numbers = (summary.generated, summary.verified, summary.paid)
        end = now if state == "running" else summary.ended
        took = "" if end is None else f"{max(0.0, end - summary.started):.0f}"
        made.add_row(
            Text(visible(summary.problem)),
            Text(state, style=COLOURS.get(state, "")),
            *("" if number is None else f"{number:g}" for number in numbers),
            took,
        )
    return made
