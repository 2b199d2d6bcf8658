"""What is promised about the cost of each policy: one table, which all documents quote.

A row says against what the cost is compared, in which setting, with which constant, and whether
that is proven, checked by computation, or open. `grv theory promises` prints the table.
`docs/theory/promises.md` explains it, and `tests/policies/test_promises.py` tries each row.

The letters are those of `docs/theory`: rho is the price of a failed verification in candidates, n
the candidates that a round of Alternate chooses from, F the factor of a guard, k the number of
answers. J* is the lowest cost if the law is known; it uses no keys. Verify-all is the policy of
that name on the same candidates: it uses keys and refutations wherever the policy has them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Literal

from ..theory.constants import (
    SMALL_RATIO_EXCESS,
    alternate_against_verify_all,
    alternate_constant,
    balanced_constant,
    hedged_against_verify_all,
)
from ..theory.guard import FACTOR, cold_guard_constant, guarded_width_factor

Against = Literal["J*", "verify-all"]
Status = Literal["proven", "checked", "open"]
Constant = Callable[[float], float]

SETTINGS = {
    "usual": "one verification at a time, one answer, the costs of the price list, candidates"
    " without end that are independent of each other, neither keys nor refutations",
    "keys": "as usual, with right keys and refutations",
    "a generator that ends": "as usual, with or without keys; candidates in random order",
    "width": "as usual, several verifications at a time, with the ramp and without overlap",
    "random phase": "as with a width, with a ramp that begins at a random place; in the mean over"
    " places too",
    "k answers": "as usual, k answers; every pass is a new one",
    "measured costs": "as usual, but the true costs are constant and not known",
    "second scores": "as usual, with a cascade; the price of second scores is not counted",
    "failure price": "as usual; failed verifications cost rho, passed ones no less",
    "stages": "as usual, but verifications in stages cost different amounts",
    "batch": "as usual, in a batch of problems, in any order of their steps",
    "scores of the pool": "as usual, but a score depends on other candidates",
}
USUAL = "usual"


@dataclass(frozen=True, slots=True)
class Promise:
    """One row: the cost is at most `constant` times `against`.

    Attributes:
        policy: its specification.
        setting: one of `SETTINGS`.
        against: what the cost is compared with.
        constant: the formula; empty if there is none.
        status: whether this is proven, checked by computation, or open: then no bound is promised.
        statement: the promise in words.
        value: the constant at a ratio, if it is a number.
    """

    policy: str
    setting: str
    against: Against
    constant: str
    status: Status
    statement: str
    value: Constant | None = field(default=None, compare=False, repr=False)

    def record(self) -> dict[str, str]:
        """The row without its function, for JSON."""
        return {name: each for name, each in asdict(self).items() if name != "value"}


class _Rows:
    """The rows of one policy, as they are written down."""

    def __init__(self, policy: str) -> None:
        self._policy = policy
        self.rows: list[Promise] = []

    def proven(
        self, setting: str, against: Against, constant: str, value: Constant | None, statement: str
    ) -> None:
        self._add(setting, against, constant, "proven", statement, value)

    def checked(self, setting: str, against: Against, constant: str, statement: str) -> None:
        self._add(setting, against, constant, "checked", statement, None)

    def open(self, setting: str, against: Against, statement: str) -> None:
        self._add(setting, against, "", "open", statement, None)

    def completed(self) -> tuple[Promise, ...]:
        """The rows in the order of `SETTINGS`; what was not said is open."""
        said = {(row.setting, row.against) for row in self.rows}
        against: tuple[Against, ...] = ("J*", "verify-all")
        for setting in SETTINGS:
            for each in against:
                if (setting, each) not in said:
                    self.open(setting, each, _WHY_OPEN.get((setting, each), "nothing is proven"))
        places = list(SETTINGS)
        return tuple(sorted(self.rows, key=lambda row: (places.index(row.setting), row.against)))

    def _add(
        self,
        setting: str,
        against: Against,
        constant: str,
        status: Status,
        statement: str,
        value: Constant | None,
    ) -> None:
        row = Promise(self._policy, setting, against, constant, status, statement, value)
        self.rows.append(row)


_WHY_OPEN = {
    ("a generator that ends", "J*"): "J* is for candidates without end",
    ("scores of the pool", "J*"): "J* is for scores that belong to one candidate each",
    ("stages", "J*"): "if the price of a failure does not depend on the candidate: failure price",
    ("stages", "verify-all"): "if the price of a failure does not depend on the candidate:"
    " failure price",
}
_MONOTONE = "if higher scores pass no less often"
_NO_KEYS_J = "the J* that uses no keys"
_LIKE_FAILURES = "as usual: a pass is paid for once, and verify-all pays for it too"
_LIKE_ALONE = "as usual: other problems do not change what a search does"


def _carry_over(rows: _Rows, against: Against) -> None:
    """Settings in which the bound of the usual one holds, by a line of proof."""
    usual = next(row for row in rows.rows if (row.setting, row.against) == (USUAL, against))
    said = {(row.setting, row.against) for row in rows.rows}
    for setting, why in (("failure price", _LIKE_FAILURES), ("batch", _LIKE_ALONE)):
        if (setting, against) not in said:
            rows.proven(setting, against, usual.constant, usual.value, why)


def _balanced() -> tuple[Promise, ...]:
    rows = _Rows("balanced")
    constant = "2 - 1 / (1 + rho)"
    rows.proven(
        USUAL,
        "J*",
        constant,
        balanced_constant,
        f"in the mean at most {constant} J* {_MONOTONE} ({SMALL_RATIO_EXCESS:g} more for rho below"
        " 1/67); no policy has a smaller constant",
    )
    rows.open(USUAL, "verify-all", "no bound: a misleading score costs any multiple")
    rows.proven("keys", "J*", constant, balanced_constant, f"in the mean, against {_NO_KEYS_J}")
    rows.proven(
        "width",
        "J*",
        f"3 ({constant})",
        lambda rho: 3 * balanced_constant(rho),
        "the ramp costs less than 3 times as much; without keys",
    )
    rows.proven(
        "random phase",
        "J*",
        f"2 ({constant})",
        lambda rho: 2 * balanced_constant(rho),
        "in the mean the ramp costs less than twice as much; without keys",
    )
    rows.proven(
        "k answers",
        "J*",
        f"k ({constant}), and several_answers_excess(rho)",
        balanced_constant,
        "in the mean; the excess is (1 - rho) / 2 for rho below 1, 0 for whole rho, 1 otherwise",
    )
    rows.checked(
        "k answers",
        "J*",
        f"k ({constant})",
        "in the mean, for rho from 1 on; at some 590 ratios up to 2,800",
    )
    _carry_over(rows, "J*")
    return rows.completed()


_BLIND = "1 + (n + rho) / (1 + rho)"
_RANDOM = "5/3"


def _any_score(rows: _Rows) -> None:
    """What holds for the blind slots of Alternate and Varied."""
    value = alternate_against_verify_all
    mean = "in the mean, for any score"
    rows.proven(
        USUAL,
        "verify-all",
        _BLIND,
        value,
        f"in the mean at most {_BLIND} times verify-all, which is below 3, for any score",
    )
    rows.proven("keys", "verify-all", _BLIND, value, f"{mean}; verify-all has the same keys")
    rows.proven("k answers", "verify-all", f"k ({_BLIND})", value, f"{mean}; k times one answer")
    rows.proven("measured costs", "verify-all", _BLIND, value, f"{mean}, whatever the guess was")
    rows.proven(
        "second scores", "verify-all", _BLIND, value, f"{mean}: new ones are never replaced"
    )
    rows.proven(
        "scores of the pool",
        "verify-all",
        _BLIND,
        value,
        f"{mean}: new ones are verified whatever their score",
    )
    wide = "33/13"
    rows.proven(
        "width",
        "verify-all",
        f"{wide} ({_BLIND})",
        lambda rho: 33 / 13 * value(rho),
        f"{mean}; the ramp costs less than {wide} times as much; without keys",
    )
    rows.proven(
        "random phase",
        "verify-all",
        f"{_RANDOM} ({_BLIND})",
        lambda rho: 5 / 3 * value(rho),
        f"{mean}; in the mean the ramp costs less than {_RANDOM} times as much; without keys",
    )
    _carry_over(rows, "verify-all")


def _alternate() -> tuple[Promise, ...]:
    rows = _Rows("alternate")
    constant = "1 + 2 rho / (1 + n)"
    value = alternate_constant
    rows.proven(
        USUAL, "J*", constant, value, f"in the mean at most {constant} J*, below 3, {_MONOTONE}"
    )
    rows.proven("keys", "J*", constant, value, f"in the mean, against {_NO_KEYS_J}")
    rows.proven("k answers", "J*", f"k ({constant})", value, "in the mean; k times one answer")
    rows.proven("measured costs", "J*", constant, value, "in the mean, whatever the guess was")
    rows.proven(
        "width",
        "J*",
        f"33/13 ({constant})",
        lambda rho: 33 / 13 * value(rho),
        "the ramp costs less than 33/13 times as much; without keys",
    )
    rows.proven(
        "random phase",
        "J*",
        f"{_RANDOM} ({constant})",
        lambda rho: 5 / 3 * value(rho),
        f"in the mean the ramp costs less than {_RANDOM} times as much; without keys",
    )
    _any_score(rows)
    rows.open("a generator that ends", "verify-all", "the rest is verified best first")
    _carry_over(rows, "J*")
    return rows.completed()


def _varied(factor: float = math.inf) -> tuple[Promise, ...]:
    if math.isfinite(factor):
        return _guarded_varied(factor)
    rows = _Rows("varied")

    def three(rho: float) -> float:
        return 3.0 if rho >= 1.5 else 1 + rho

    rows.proven(USUAL, "J*", "3", three, f"in the mean at most 3 J* {_MONOTONE}")
    rows.proven("keys", "J*", "3", three, f"in the mean, against {_NO_KEYS_J}")
    rows.proven("measured costs", "J*", "3", three, "in the mean, whatever the guess was")
    rows.proven(
        "width",
        "J*",
        "33/13 * 3",
        lambda rho: 33 / 13 * three(rho),
        "the ramp costs less than 33/13 times as much; without keys",
    )
    rows.proven(
        "random phase",
        "J*",
        f"{_RANDOM} * 3",
        lambda rho: 5 / 3 * three(rho),
        f"in the mean the ramp costs less than {_RANDOM} times as much; without keys",
    )
    _any_score(rows)
    rows.proven(
        "a generator that ends",
        "verify-all",
        f"{_BLIND}, and n + rho",
        alternate_against_verify_all,
        "in the mean over orders, for any score; the n + rho only if refuted candidates come late",
    )
    _carry_over(rows, "J*")
    return rows.completed()


def _guarded_varied(factor: float) -> tuple[Promise, ...]:
    rows = _Rows(f"varied(factor={factor:g})")
    least = cold_guard_constant(factor)
    constant = f"(3 F + 1) / (F - 1) = {least:.3g}"
    rows.proven(
        USUAL, "J*", constant, lambda _: least, f"in the mean at most {least:.3g} J* {_MONOTONE}"
    )
    rows.proven("keys", "J*", constant, lambda _: least, f"in the mean, against {_NO_KEYS_J}")
    _guarded_width(rows, "J*", least, "in the mean")
    _on_every_sequence(rows, factor)
    _carry_over(rows, "J*")
    return rows.completed()


def _guarded_width(rows: _Rows, against: Against, least: float, when: str) -> None:
    """What a width adds to the constant of a guarded search."""
    ramp = guarded_width_factor()
    random = guarded_width_factor(random_phase=True)
    constant = f"{ramp:g} * {least:.3g} = {ramp * least:.3g}"
    rows.proven("width", against, constant, lambda _: ramp * least, f"{when}; without keys")
    rows.proven(
        "random phase",
        against,
        f"{random:g} * {least:.3g} = {random * least:.3g}",
        lambda _: random * least,
        f"{when}, and in the mean over places; without keys",
    )


def _on_every_sequence(rows: _Rows, factor: float) -> None:
    """What the second guard promises."""
    constant = f"F = {factor:g}"
    every = "on every sequence of candidates, for any score"

    def value(_: float) -> float:
        return factor

    rows.proven(
        USUAL,
        "verify-all",
        constant,
        value,
        f"at most {factor:g} times verify-all {every}",
    )
    for setting in ("keys", "a generator that ends", "scores of the pool"):
        rows.proven(setting, "verify-all", constant, value, every)
    rows.proven("second scores", "verify-all", constant, value, f"{every}: never the oldest")
    rows.proven(
        "measured costs",
        "verify-all",
        f"{constant}, and the first verdict",
        value,
        f"{every}; what comes up to the first verdict that is paid for is added",
    )
    _guarded_width(rows, "verify-all", factor, every)
    _carry_over(rows, "verify-all")


def _learned(name: str, factor: float) -> tuple[Promise, ...]:
    rows = _Rows(name)
    constant = f"F = {factor:g}"

    def value(_: float) -> float:
        return factor

    rows.proven(USUAL, "J*", constant, value, f"in the mean at most {factor:g} J* {_MONOTONE}")
    rows.proven("keys", "J*", constant, value, f"in the mean, against {_NO_KEYS_J}")
    rows.proven(
        "measured costs",
        "J*",
        f"{constant}, and the first verdict",
        value,
        "in the mean; what comes up to the first verdict that is paid for is added",
    )
    _guarded_width(rows, "J*", factor, "in the mean")
    if name == "learning":
        newer = "a search of a shared budget may take a newer prior"
        rows.open("batch", "J*", newer)
        rows.proven(
            "batch",
            "verify-all",
            f"3 F = {3 * factor:g}",
            lambda _: 3 * factor,
            f"on every sequence of candidates, for any score; {newer}",
        )
    _on_every_sequence(rows, factor)
    _carry_over(rows, "J*")
    return rows.completed()


def _hedged(alpha: float = 0.5, every: int = 4) -> tuple[Promise, ...]:
    usual = (alpha, every) == (0.5, 4)
    rows = _Rows("hedged" if usual else f"hedged({alpha:g}, {every})")
    constant = f"1 + {every} (g + rho) / (1 + rho)"

    def value(rho: float) -> float:
        return hedged_against_verify_all(rho, alpha, every)

    rows.proven(
        USUAL,
        "verify-all",
        constant,
        value,
        f"in the mean at most {constant} times verify-all, for any score; g is the size of a round",
    )
    rows.proven("keys", "verify-all", constant, value, "in the mean; verify-all has the same keys")
    _carry_over(rows, "verify-all")
    return rows.completed()


def _only_usual(policy: str, constant: str, value: Constant | None, statement: str) -> _Rows:
    rows = _Rows(policy)
    rows.proven(USUAL, "J*", constant, value, statement)
    return rows


def _verify_all() -> tuple[Promise, ...]:
    statement = f"in the mean at most (1 + rho) J* {_MONOTONE}"
    rows = _only_usual("verify-all", "1 + rho", lambda rho: 1 + rho, statement)
    rows.proven("keys", "J*", "1 + rho", lambda rho: 1 + rho, f"against {_NO_KEYS_J}")
    _carry_over(rows, "J*")
    return rows.completed()


def _of_the_paper(name: str) -> tuple[Promise, ...]:
    constant, statement = {
        "adaptive": ("400", f"at most 400 J* {_MONOTONE} (Theorem 4.2)"),
        "known-law": ("1", "J* on average, and no policy costs less (Theorem 3.2)"),
        "threshold": ("1", f"J* for the best t, {_MONOTONE} (Lemma C.1)"),
        "centered-star": (
            "6 min(s_0, rho)",
            "at most 6 min(s_0, c_ver / c_rew) J* if c_ver >= c_rew (Theorem 6.3)",
        ),
    }[name]
    return _only_usual(name, constant, None, statement).completed()


def promises_of(name: str, **parameters: float) -> tuple[Promise, ...]:
    """The rows of a policy, given those of its parameters that matter; empty if there are none."""
    match name:
        case "balanced":
            return _balanced()
        case "alternate":
            return _alternate()
        case "varied":
            return _varied(**parameters)
        case "learned":
            factor = parameters.get("factor", FACTOR)
            spec = name if factor == FACTOR else f"{name}(factor={factor:g})"
            return _learned(spec, factor)
        case "learning":
            return _learned(name, FACTOR)
        case "hedged":
            alpha = parameters.get("alpha", 0.5)
            return _hedged(alpha, int(parameters.get("every", 4)))
        case "verify-all":
            return _verify_all()
        case "adaptive" | "known-law" | "threshold" | "centered-star":
            return _of_the_paper(name)
    return ()


def sentence(rows: tuple[Promise, ...]) -> str:
    """What is proven in the usual setting, in words; empty if nothing is."""
    kept = [row for row in rows if row.setting == USUAL and row.status == "proven"]
    return "; ".join(row.statement for row in kept)


TABLE_OF: tuple[tuple[str, dict[str, float]], ...] = (
    ("balanced", {}),
    ("alternate", {}),
    ("varied", {}),
    ("varied", {"factor": FACTOR}),
    ("learned", {}),
    ("learning", {}),
    ("hedged", {}),
    ("verify-all", {}),
    ("adaptive", {}),
    ("known-law", {}),
    ("threshold", {}),
    ("centered-star", {}),
)


def promises() -> tuple[Promise, ...]:
    """The whole table."""
    return tuple(row for name, parameters in TABLE_OF for row in promises_of(name, **parameters))
