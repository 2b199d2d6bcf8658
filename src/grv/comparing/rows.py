"""The rows of a comparison: policies, and baselines that use the logged verdicts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..core.errors import UsageError
from ..core.search import Policy
from ..learning.prior_file import parse_policy, plugin_of
from ..own_code import is_code
from ..policies import DEFAULT, POLICIES, Learning, spec

DEFAULT_ROW = spec.spec(DEFAULT)  # the row of `default`: the policy has one name in all tables
DEFAULT_ROWS = (
    "hindsight",
    DEFAULT_ROW,
    "adaptive",
    "adaptive-all",
    "verify-all",
    "uniform-matched",
    "difficulty-1",
    "difficulty-2",
    "difficulty-3",
    "difficulty-5",
    "difficulty-10",
)

REFERENCE = "adaptive"  # the paper's policy
_BASELINES = (REFERENCE, DEFAULT_ROW)  # ratios are relative to the first that is a row

_DIFFICULTY = re.compile(r"difficulty-([0-9]+)")


@dataclass(frozen=True)
class PolicyRow:
    """A policy that can run live. `whole_steps` pays for whole steps, whatever the width."""

    policy: Policy
    whole_steps: bool = False


@dataclass(frozen=True)
class HindsightRow:
    """The cheapest pair that would have found a pass, for each order (SampleAware)."""


@dataclass(frozen=True)
class UniformRow:
    """The best single pair within the mean cost of adaptive."""


@dataclass(frozen=True)
class DifficultyRow:
    """The best pair for each of `groups` groups of difficulty (DAP_k)."""

    groups: int


RowKind = PolicyRow | HindsightRow | UniformRow | DifficultyRow


def learning_of(kind: RowKind | None) -> Learning | None:
    """The policy of a row that learns from one problem to the next; None for other rows."""
    if isinstance(kind, PolicyRow) and isinstance(kind.policy, Learning):
        return kind.policy
    return None


_named: dict[str, RowKind] = {}  # the rows that the operator named, by their texts


def row_name(text: str) -> str:
    """The name of the row that a text describes: its own name, not `default`.

    >>> row_name(" default ")
    'varied'
    """
    name = text.strip()
    return DEFAULT_ROW if name == "default" else name


def parse_row(text: str) -> RowKind:
    """The row that a text of the operator describes. It may name a file."""
    row = _named[text.strip()] = _parsed(text)
    return row


def _parsed(text: str) -> RowKind:
    if is_code(text):
        return PolicyRow(parse_policy(text))
    name, positional, named = spec.split(text)
    if name == "adaptive-all":
        policy = parse_policy(text.replace("adaptive-all", "adaptive", 1))
        return PolicyRow(policy, whole_steps=True)
    if name == "default" or name in POLICIES:
        return PolicyRow(parse_policy(text))
    row = _baseline(name)
    if row is None and plugin_of(text) is not None:
        return PolicyRow(parse_policy(text))
    if row is None:
        baselines = ("default", "adaptive-all", "hindsight", "uniform-matched", "difficulty-K")
        raise UsageError(spec.unknown("policy", name, [*POLICIES, *baselines]))
    if positional or named:
        raise UsageError(f"{name} takes no parameters: {text!r}")
    return row


def runs_live(name: str) -> bool:
    """Whether the row is a policy that can run live, with the usual accounting."""
    kind = kind_of(name)
    return isinstance(kind, PolicyRow) and not kind.whole_steps


def check_answers(rows: Iterable[tuple[str, RowKind]], answers: int) -> None:
    """Refuse rows of pairs and hindsight if several answers are wanted: they stop at one pass."""
    wrong = [name for name, kind in rows if not isinstance(kind, PolicyRow)]
    if answers > 1 and wrong:
        raise UsageError(f"--answers {answers}: only policies find several answers, not {wrong[0]}")


def completed(rows: Sequence[str], baseline: str | None = None) -> tuple[str, ...]:
    """The rows, and those that every comparison has: the default policy and the baseline.

    >>> completed(["verify-all"])
    ('verify-all', 'varied')
    """
    names = [row_name(text) for text in rows]
    for needed in (DEFAULT_ROW, *([] if baseline is None else [row_name(baseline)])):
        kind = parse_row(needed)
        if all(text != needed and parse_row(text) != kind for text in names):
            names.append(needed)
    return tuple(names)


def baseline_of(names: Sequence[str], wanted: str | None) -> str | None:
    """The name of the row that ratios are relative to.

    Without a wish it is `adaptive`, or else `varied`, or else none.
    """
    if wanted is None:
        return next((name for name in _BASELINES if name in names), None)
    wanted = row_name(wanted)
    if wanted in names:
        return wanted
    kind = parse_row(wanted)
    same = [name for name in names if kind_of(name) == kind]
    if not same:
        raise UsageError(f"baseline {wanted!r} is not a row; the rows are {', '.join(names)}")
    return same[0]


def kind_of(name: str) -> RowKind | None:
    """The row that a name describes; None if the name is the caller's own.

    The name may come from a saved comparison. So it opens no file, unless the operator named it.
    """
    if name.strip() in _named:
        return _named[name.strip()]
    try:
        _, positional, named = spec.split(name)
        plain = all(type(each) in (int, float) for each in (*positional, *named.values()))
        return _parsed(name) if plain and not is_code(name) else None
    except UsageError:
        return None


def _baseline(name: str) -> RowKind | None:
    """The baseline with this name; None if there is none."""
    if name == "hindsight":
        return HindsightRow()
    if name == "uniform-matched":
        return UniformRow()
    if match := _DIFFICULTY.fullmatch(name):
        groups = int(match[1])
        if groups < 1:
            raise UsageError(f"{name}: there must be at least one group")
        return DifficultyRow(groups)
    return None
