"""What the verdicts of a search say about its candidates, also about those never verified."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.values import Verdict
from .entries import Found, Made, Scored

OWN_KEYS = "own_keys"  # in `Started.about`: the user's key promises equal verdicts both ways


def class_of(scored: Mapping[int, Scored], id: int) -> str | int:
    """The candidate's class: its key, or its id if it has no key."""
    score = scored.get(id)
    return id if score is None or score.key is None else score.key


def verdicts_from(
    made: Mapping[int, Made],
    scored: Mapping[int, Scored],
    found: Mapping[int, Found],
    *,
    own_keys: bool,
) -> dict[int, int]:
    """For each candidate with a conclusive verdict, the candidate whose verification gave it.

    That is the candidate itself, if it was verified, or else one of its class: one with the same
    text, or one that failed. If the user's own key defines the classes, it may also be one that
    passed.
    """
    decided = [id for id in sorted(found) if found[id].verdict is not Verdict.BROKEN]
    passed = [id for id in reversed(decided) if found[id].verdict is Verdict.PASSED]
    failed = [id for id in reversed(decided) if found[id].verdict is Verdict.FAILED]
    by_text = {(class_of(scored, id), made[id].text): id for id in reversed(decided)}
    by_class = {class_of(scored, id): id for id in failed}
    if own_keys:
        by_class = {class_of(scored, id): id for id in passed} | by_class
    labels = {id: id for id in decided}
    for id, entry in made.items():
        name = class_of(scored, id)
        other = by_text.get((name, entry.text), by_class.get(name))
        if other is not None:
            labels.setdefault(id, other)
    return labels
