"""`grv review`: give verdicts on candidates that wait for a person, in a terminal."""

from __future__ import annotations

import getpass
import time
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING

import typer

from ...core.errors import UsageError
from ...options import option
from ..console import say
from ..options.command import command
from ..runs import LEDGER

if TYPE_CHECKING:
    from ...ledger.tables import TableLedger
    from ...serve.review.queue import Item, ItemId

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
    from ...ledger.opening import open_ledger, refuse_password
    from ...serve.review.queue import ItemId, Queue

    refuse_password(ledger)
    name = reviewer or getpass.getuser()
    with closing(open_ledger(ledger)) as opened:
        queue, done, skipped = Queue(opened), 0, set[ItemId]()
        wanted = None if item is None else ItemId.parse(item)
        while (shown := _claimed(opened, queue.waiting, skipped, wanted)) is not None:
            try:
                found = queue.item(shown)
                if found is None:
                    raise UsageError(f"{ledger}: no candidate {shown} waits for a person")
                saying = _asked(opened, found, name, correcting=wanted is not None)
            finally:
                opened.release(shown.claim)
            done += saying not in ("", "quit")
            skipped.add(shown)
            if saying == "quit" or wanted is not None:
                break
        waiting = len(queue.waiting())
    say(f"{done} reviewed; {waiting} wait for a person")


def _claimed(
    ledger: TableLedger,
    waiting: Callable[[], list[ItemId]],
    skipped: set[ItemId],
    wanted: ItemId | None,
) -> ItemId | None:
    """The next candidate that no other reviewer has."""
    if wanted is not None:
        if not ledger.claim(wanted.claim):
            raise UsageError(f"{wanted}: another reviewer has it")
        return wanted
    return next(
        (each for each in waiting() if each not in skipped and ledger.claim(each.claim)), None
    )


def _asked(ledger: TableLedger, item: Item, reviewer: str, *, correcting: bool) -> str:
    """Show a candidate and write the verdict; what was said: "" to skip, "quit" to stop."""
    from ...serve.review.verdicts import record

    _show(item)
    started = time.monotonic()
    while True:
        word, _, note = typer.prompt(f"[{_HELP}]", prompt_suffix="\n> ").strip().partition(" ")
        if word in ("s", "q"):
            return "" if word == "s" else "quit"
        if word not in _KEYS:
            continue
        there = record(
            ledger,
            item.id,
            _KEYS[word],
            reviewer=reviewer,
            note=note,
            seconds=time.monotonic() - started,
            correcting=correcting,
        )
        if not there:
            say("there is a verdict already; --item corrects it")
            return ""
        return _KEYS[word]


def _show(item: Item) -> None:
    say("", f"{item.problem} ({item.id})", "")
    say(*item.prompt.splitlines(), "")
    say("candidate:", *(f"  | {line}" for line in item.text.expandtabs(4).splitlines()), "")
    say(item.check.question, *(f"  - {point}" for point in item.check.rubric))
