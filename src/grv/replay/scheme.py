"""How orders are drawn."""

from __future__ import annotations

import enum


class Scheme(enum.StrEnum):
    """How orders are drawn.

    `stable` draws each order from the seed, the problem's id and the order's number, so that adding
    a problem does not change the orders of other problems. `paper` is the scheme of the published
    experiment: one random generator, the solvable problems sorted by id, one permutation per order,
    in sequence. `logged` is the order of the log, the only one in which the candidates of a live
    run really arrived.
    """

    STABLE = "stable"
    PAPER = "paper"
    LOGGED = "logged"
