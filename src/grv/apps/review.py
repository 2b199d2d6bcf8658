"""`grv review`: give verdicts on candidates that wait for a person, in a terminal."""

from __future__ import annotations

import math
import os
from contextlib import closing
from typing import TYPE_CHECKING

import typer

from ..core.errors import LedgerError
from ..options import option
from .console import say, user_name
from .options.command import command
from .runs import LEDGER

if TYPE_CHECKING:
    from ..serve.review.desk import Desk
    from ..serve.review.leases import Lease
    from ..serve.review.queue import ReviewItem

_KEYS = {"p": "pass", "f": "fail", "c": "cannot tell"}
_HELP = "p pass, f fail, c cannot tell, s skip, q quit; a note may follow: f the date is wrong"


@command
def review(
    ledger: str = option(..., LEDGER, argument=True, metavar="LEDGER"),
    reviewer: str | None = option(
        None, "Your name in the ledger.", "--as", metavar="NAME", shown="your login name"
    ),
    item: str | None = option(
        None,
        "Review this candidate, also to correct its verdict: SEARCH:NUMBER.",
        metavar="ITEM",
    ),
) -> None:
    """Review candidates that wait for a person: checks of kind "human".

    Each one is shown with its problem, the question and the rubric; scores and other verdicts are
    hidden. While you look at it, no other reviewer gets it. Your time is measured and recorded with
    the verdict, your name and your note. Those whose review saves most money come first.

    \b
    grv review answers.jsonl.ledger
    grv review answers.jsonl.ledger --item 1f0c5e4b7a2d9c8e6f3a1b2c:0
    """
    from ..ledger.opening import is_address, open_ledger, refuse_password
    from ..serve.review.desk import Desk
    from ..serve.review.queue import ItemId

    refuse_password(ledger)
    if not is_address(ledger) and not os.path.exists(ledger):  # to open it would make it
        raise LedgerError(f"{ledger}: no such ledger", path=ledger)
    name = reviewer or user_name()
    with closing(open_ledger(ledger)) as opened:
        desk = Desk(opened, silence=math.inf)
        done = 0
        skipped = set[ItemId]()
        wanted = None if item is None else ItemId.parse(item)
        while True:
            if wanted is not None:
                item_lease = desk.open(name, wanted, of_others=True)
            elif (next_lease := desk.next(name, skipped)) is not None:
                item_lease = next_lease
            else:
                break
            lease, shown = item_lease
            try:
                saying = _asked(desk, lease, shown)
            finally:
                desk.leases.end(lease)
            done += saying not in ("", "quit")
            skipped.add(shown.id)
            if saying == "quit" or wanted is not None:
                break
        waiting = len(desk.queue.waiting())
    say(f"{done} reviewed; {waiting} wait for a person")


def _asked(desk: Desk, lease: Lease, item: ReviewItem) -> str:
    """Show a candidate and write the verdict; what was said: "" to skip, "quit" to stop."""
    from ..serve.review.desk import Refused

    _show(item)
    while True:
        word, _, note = typer.prompt(f"[{_HELP}]", prompt_suffix="\n> ").strip().partition(" ")
        if word in ("s", "q"):
            return "" if word == "s" else "quit"
        if word not in _KEYS:
            continue
        try:
            desk.give(item.id, lease.secret, _KEYS[word], reviewer=lease.reviewer, note=note)
        except Refused as refused:
            say(str(refused))
            return ""
        return _KEYS[word]


def _show(item: ReviewItem) -> None:
    say("", f"{item.problem} ({item.id})", "")
    say(*item.prompt.splitlines(), "")
    say("candidate:", *(f"  | {line}" for line in item.text.expandtabs(4).splitlines()), "")
    say(item.check.question, *(f"  - {point}" for point in item.check.rubric))
