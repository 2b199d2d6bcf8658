"""Whole searches as JSON files; `python tests/support/golden.py FILE...` writes them again.

A file gives the policy, costs, budget, width and world of a search; its turns and its outcome are
computed from these. To add one, write a file without turns and outcome, and run the script on it.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

from grv.core.limits import Limits
from grv.core.pace import Pace
from grv.core.values import Costs, Generated, Turn, Verified
from grv.learning.prior_file import parse_policy
from grv.testing.drivers import run, words
from grv.testing.worlds import SIGNS, World


def renewed(text: str) -> str:
    """The file with its configuration, and with the turns and the outcome computed again."""
    kept = json.loads(text)
    budget = math.inf if kept["budget"] is None else kept["budget"]
    world = World.of(kept["world"])
    costs = Costs(**kept["costs"])
    search = run(
        parse_policy(kept["policy"]),
        costs,
        world,
        Limits(width=kept["width"], budget=budget, pace=Pace(overlap=False)),
    )
    assert search.outcome is not None
    bill = search.outcome.bill
    search_as_json = {
        **{name: kept[name] for name in ("policy", "costs", "budget", "width", "world")},
        "turns": [_line(turn) for turn in search.trace],
        "outcome": {
            "reason": search.outcome.reason.value,
            "answer": search.outcome.answer,
            "generated": bill.generated,
            "verified": bill.verified,
            "total": bill.total,
        },
    }
    return json.dumps(search_as_json, indent=2) + "\n"


def _line(turn: Turn) -> str:
    """What was asked, what was told, and why."""
    action, event = turn.action, turn.event
    if isinstance(event, Generated):
        told = f"{len(event.scores)} came"
    elif isinstance(event, Verified):
        told = " ".join(f"{id}{SIGNS[verdict]}" for id, verdict in event.verdicts.items())
    else:
        told = " ".join(f"{id}: {score:g}" for id, score in event.scores.items())
    return f"{words(action)}: {told} ({action.why})"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        Path(name).write_text(renewed(Path(name).read_text()))
