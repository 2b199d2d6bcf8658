"""Fast paths: a policy over many orders of a problem at once.

Each is a special case of the engine and must equal it, ties included; a test holds them to that. A
policy without a kernel, or a case that its kernel does not cover, goes through the engine.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.search import Policy
from ...core.values import Bill, Cascade, Costs, Latency, Measured
from ...policies import Adaptive, Alternate, Balanced, Fixed, Hedged, Threshold, Varied, VerifyAll
from ...theory.decimals import exact_ratio
from ...theory.hindsight import available, cheapest_pair, least_checks
from ...theory.shells import shells
from ...theory.slots import Path, alternate_draws
from ...theory.variety import period
from ..engine import replayed
from ..orders import Batch
from .paths import Order, Run, Stage, run_stages
from .varied import Scored, run_varied


@dataclass(frozen=True, eq=False)
class Trials:
    """How a policy fared in several orders. All arrays are `[orders]`.

    Attributes:
        solved: whether a candidate passed.
        generated: candidates generated.
        verified: candidates verified.
        rounds: `[orders, 3]`, rounds of generation, verification and second scores; see `Rounds`.
        paid: what was paid, where these counts do not say.
        rescored: second scores, where there is a cascade.
    """

    solved: NDArray[np.bool_]
    generated: NDArray[np.int32]
    verified: NDArray[np.int32]
    rounds: NDArray[np.int32]
    paid: NDArray[np.float64] | None = None
    rescored: NDArray[np.int32] | None = None

    def costs(self, costs: Costs) -> NDArray[np.float64]:
        """What each trial cost: as paid, or else by the price list."""
        if self.paid is not None:
            return self.paid
        return self.generated * costs.candidate + self.verified * costs.verify

    def worth(self, value: float, costs: Costs) -> Trials:
        """The trials of somebody who knows what each will cost and leaves those worth less."""
        left = self.costs(costs) > value
        arrays = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        there = {name: array for name, array in arrays.items() if array is not None}
        return Trials(**{name: _patched(array, left, 0) for name, array in there.items()})

    def seconds(self, latency: Latency) -> NDArray[np.float64]:
        """How long each trial took."""
        seconds = np.array(dataclasses.astuple(latency))
        total: NDArray[np.float64] = self.rounds @ seconds
        return total


def in_flight(checks: NDArray[np.integer], width: int | None) -> NDArray[np.integer]:
    """Rounds of verification that a step takes of which so many candidates are verified."""
    return np.minimum(checks, 1) if width is None else -(-checks // width)


def rounds_of(
    generate: NDArray[np.integer] | int, verify: NDArray[np.integer]
) -> NDArray[np.int32]:
    """Rounds as `Trials` has them, from those of generation and those of verification."""
    rounds = np.zeros((len(verify), 3), dtype=np.int32)
    rounds[:, 0], rounds[:, 1] = generate, verify
    return rounds


def trials(
    policy: Policy,
    batch: Batch,
    costs: Costs,
    *,
    width: int | None,
    value: float = math.inf,
    cascade: Cascade | None = None,
) -> Trials:
    """The policy in every order of the batch, by its kernel if it has one that applies.

    None applies where costs are measured: what is paid for depends on what has been paid before.
    None knows of second scores.
    """
    applies = cascade is None and not isinstance(costs, Measured)
    kernel = KERNELS.get(type(policy)) if applies else None
    found = None if kernel is None else kernel(policy, batch, costs, width)
    if found is None:
        return engine_trials(policy, batch, costs, width=width, value=value, cascade=cascade)
    # Who solves it for no more than it is worth never thought of giving up; the end of the log
    # might change what is asked for.
    sure = found.solved & (found.costs(costs) <= value) & (found.generated < len(batch.problem))
    if math.isinf(value) or sure.all():
        return found
    rest = Batch(batch.problem, batch.orders[~sure], batch.keyed)
    other = engine_trials(policy, rest, costs, width=width, value=value)
    names = ("solved", "generated", "verified", "rounds")
    return Trials(*(_patched(getattr(found, n), ~sure, getattr(other, n)) for n in names))


def _patched(array: NDArray[Any], where: NDArray[np.bool_], new: Any) -> NDArray[Any]:
    """The array with other values in some places."""
    copy = array.copy()
    copy[where] = new
    return copy


def engine_trials(
    policy: Policy,
    batch: Batch,
    costs: Costs,
    *,
    width: int | None,
    value: float = math.inf,
    cascade: Cascade | None = None,
) -> Trials:
    """The policy in every order of the batch, by the engine."""
    searches = [
        replayed(
            policy,
            batch.problem,
            costs,
            order=order,
            value=value,
            cascade=cascade,
            width=width,
            keys=batch.keyed,
        )
        for order in batch.orders.tolist()
    ]
    outcomes = [search.outcome for search in searches if search.outcome is not None]
    found = Trials(
        np.array([outcome.solved for outcome in outcomes]),
        np.array([outcome.bill.generated for outcome in outcomes], dtype=np.int32),
        np.array([outcome.bill.verified for outcome in outcomes], dtype=np.int32),
        np.array([dataclasses.astuple(search.rounds) for search in searches], dtype=np.int32),
    )
    if cascade is not None:
        again = [outcome.bill.rescored for outcome in outcomes]
        found = dataclasses.replace(found, rescored=np.array(again, dtype=np.int32))
    if cascade is None and not isinstance(costs, Measured):
        return found
    return dataclasses.replace(found, paid=np.array([each.bill.total for each in outcomes]))


def least_checks_of(batch: Batch) -> NDArray[np.int32]:
    """`[orders, candidates]`: fewest verifications that find a pass; n + 1 where none does."""
    keys = batch.keys
    rows = [
        least_checks(batch.levels[i], batch.passed[i], None if keys is None else keys[i])
        for i in range(batch.size)
    ]
    return np.array(rows)


def paid_checks_of(
    batch: Batch, least: NDArray[np.int32], *, width: int | None
) -> NDArray[np.int32]:
    """`[orders, candidates]`: verifications that a pair (m, k) pays for if its k is large enough.

    A pair pays for the smaller of k and this: whole batches of `width` up to the one in which the
    first pass is, and all that there is to verify where none passes.
    """
    n = least.shape[1]
    keys = batch.keys
    if keys is None:
        there = np.broadcast_to(available(n), least.shape)
    else:
        there = np.array([available(n, row) for row in keys])
    if width is None:
        return there
    return np.where(least > n, there, np.minimum(there, -(-least // width) * width))


def hindsight_trials(
    batch: Batch, least: NDArray[np.int32], costs: Costs, *, width: int | None = None
) -> Trials:
    """The cheapest sufficient pair of each order; nothing is spent where no pair suffices."""
    if isinstance(costs, Measured):
        return _measured_hindsight(batch, least, costs, width=width)
    pairs = [cheapest_pair(row, costs) for row in least]
    solved = np.array([pair is not None for pair in pairs])
    checks = np.array([pair.k if pair else 0 for pair in pairs], dtype=np.int32)
    return Trials(
        solved,
        np.array([pair.m if pair else 0 for pair in pairs], dtype=np.int32),
        checks,
        rounds_of(solved.astype(np.int32), in_flight(checks, width)),
    )


def _measured_hindsight(
    batch: Batch, least: NDArray[np.int32], costs: Measured, *, width: int | None
) -> Trials:
    """The same, where each candidate has its own cost.

    Only numbers of candidates at which the best pass so far arrives need to be looked at: until the
    next one arrives, more candidates add to what is generated and to what is verified before the
    pass. (With keys they may also bring a cheaper one of a class, which is not looked for.)
    """
    rows = []
    for at, order in enumerate(batch.orders.tolist()):
        bills = [
            replayed(Fixed(m, k), batch.problem, costs, order=order, width=1, keys=batch.keyed).bill
            for m, k in _best_passes(batch, at, least[at])
        ]
        rows.append(min(bills, key=lambda bill: bill.total, default=Bill(0, 0, 0.0)))
    checks = np.array([bill.verified for bill in rows], dtype=np.int32)
    solved = checks > 0
    return Trials(
        solved,
        np.array([bill.generated for bill in rows], dtype=np.int32),
        checks,
        rounds_of(solved.astype(np.int32), in_flight(checks, width)),
        np.array([bill.total for bill in rows]),
    )


def _best_passes(batch: Batch, at: int, least: NDArray[np.int32]) -> Iterator[tuple[int, int]]:
    """The pairs at which a pass arrives that ranks above all passes before it."""
    best = None
    for place in np.flatnonzero(batch.passed[at]).tolist():
        level = int(batch.levels[at, place])
        if best is None or level < best:
            best = level
            yield place + 1, int(least[place])


def _fixed(policy: Fixed, batch: Batch, costs: Costs, width: int | None) -> Trials | None:
    m = min(policy.m, len(batch.problem))
    if batch.keys is not None:
        return _staged(batch, [Stage(policy.m, policy.k)], width)
    levels, passed = batch.levels[:, :m], batch.passed[:, :m]
    worst = np.iinfo(levels.dtype).max
    best = np.where(passed, levels, worst).min(axis=1, keepdims=True)
    answer = (passed & (levels == best)).argmax(axis=1)
    older = np.arange(m) < answer[:, None]
    place = 1 + np.count_nonzero((levels < best) | (older & (levels == best)), axis=1)
    solved = passed.any(axis=1) & (place <= policy.k)
    checks = np.full(batch.size, min(policy.k, m))
    if width is not None:
        checks = np.where(solved, np.minimum(-(-place // width) * width, checks), checks)
    rounds = rounds_of(1, in_flight(checks, width))
    return Trials(solved, np.full(batch.size, m, dtype=np.int32), checks.astype(np.int32), rounds)


def _verify_all(policy: VerifyAll, batch: Batch, costs: Costs, width: int | None) -> Trials | None:
    if batch.keys is not None:
        return _staged(batch, [Stage(1, blind=True)] * (len(batch.problem) + 1), width)
    return _stream(batch, np.ones_like(batch.passed))


def _threshold(policy: Threshold, batch: Batch, costs: Costs, width: int | None) -> Trials | None:
    if batch.keys is not None:
        return None
    return _stream(batch, (batch.problem.scores >= policy.t)[batch.orders])


def _stream(batch: Batch, chosen: NDArray[np.bool_]) -> Trials:
    """Verify the chosen candidates as they arrive, until one passes."""
    passes = batch.passed & chosen
    solved = np.asarray(passes.any(axis=1))
    generated = np.where(solved, passes.argmax(axis=1) + 1, passes.shape[1])
    verified = np.cumsum(chosen, axis=1)[np.arange(batch.size), generated - 1]
    # That there are no more candidates is known when one more was asked for.
    rounds = rounds_of(generated + ~solved, verified)
    return Trials(solved, generated.astype(np.int32), verified.astype(np.int32), rounds)


def _adaptive(policy: Adaptive, batch: Batch, costs: Costs, width: int | None) -> Trials | None:
    """Shell by shell, over the orders that are still searching; columns are ranks, best first."""
    if batch.keys is not None:
        return _staged(batch, _shell_stages(policy, costs, len(batch.problem)), width)
    arrival, n = batch.ranked, len(batch.problem)
    passes = np.take_along_axis(batch.passed, arrival, axis=1)
    waiting = np.ones(arrival.shape, dtype=np.bool_)
    left = np.arange(batch.size)
    solved = np.zeros(batch.size, dtype=np.bool_)
    generated = np.zeros(batch.size, dtype=np.int32)
    verified = np.zeros(batch.size, dtype=np.int32)
    rounds = np.zeros((batch.size, 3), dtype=np.int32)
    drawn, exhausted = 0, False
    for shell in shells(costs):
        asked = 0 if exhausted else 1
        exhausted |= drawn + shell.draws(policy.draws) > n
        drawn = min(n, drawn + shell.draws(policy.draws))
        place = np.cumsum(waiting & (arrival < drawn), axis=1, dtype=np.int32)
        chosen = waiting & (arrival < drawn) & (place <= shell.checks(policy.checks))
        hits = chosen & passes
        found = hits.any(axis=1)
        checks = chosen.sum(axis=1, dtype=np.int32)
        if width is not None:
            at = place[np.arange(len(left)), hits.argmax(axis=1)]
            checks = np.where(found, np.minimum(checks, -(-at // width) * width), checks)
        generated[left] = drawn
        verified[left] += checks
        solved[left] = found
        rounds[left] += rounds_of(asked, in_flight(checks, width))
        going = ~found
        waiting &= ~chosen
        if drawn == n:
            empty = going & ~waiting.any(axis=1)
            # That there are no more candidates is known when more were asked for.
            rounds[left[empty], 0] += not exhausted
            going &= ~empty
        if not going.any():
            break
        left, arrival = left[going], arrival[going]
        passes, waiting = passes[going], waiting[going]
    return Trials(solved, generated, verified, rounds)


def _shell_stages(policy: Adaptive, costs: Costs, candidates: int) -> Iterator[Stage]:
    """The shells, up to one that verifies everything."""
    drawn = 0
    for shell in shells(costs):  # pragma: no branch (there is always another)
        stage = Stage(shell.draws(policy.draws), shell.checks(policy.checks))
        yield stage
        drawn += stage.draws
        if drawn > candidates <= stage.checks:
            break


def _path(policy: Path, batch: Batch, costs: Costs, width: int | None) -> Trials:
    """Slot by slot; a slot is one verification, so the width makes no difference."""
    return _staged(batch, _slot_stages(policy, costs, len(batch.problem)), width=1)


@lru_cache(maxsize=256)  # problems of one log are often of one size
def _slot_stages(policy: Path, costs: Costs, candidates: int) -> tuple[Stage, ...]:
    """The slots until there is no more to generate; after that, the rest is verified."""
    drawn, stages = 0, []
    for slot in policy.slots(costs):  # pragma: no branch (there is always another)
        stages.append(Stage(slot.draws, 1, slot.blind))
        drawn += slot.draws
        if drawn > candidates:
            break
    return (*stages, Stage(0, candidates))


def _staged(batch: Batch, stages: Iterable[Stage], width: int | None) -> Trials:
    """A fixed schedule, in one order after the other."""
    keys = batch.keys
    classes = None if keys is None else np.take_along_axis(keys, batch.ranked, axis=1).tolist()
    orders = [
        Order(places, passed, classes[i] if classes else None)
        for i, (places, passed, _) in enumerate(batch.by_place)
    ]
    schedule = stages if isinstance(stages, tuple) else tuple(stages)
    return _summed([run_stages(schedule, order, width) for order in orders])


def _varied(policy: Varied, batch: Batch, costs: Costs, width: int | None) -> Trials | None:
    """One verification at a time, so the width makes no difference."""
    if batch.keys is not None:
        return None
    draws = alternate_draws(exact_ratio(costs))
    limit = period(draws.later) - 1
    scores = (-np.unique(-batch.problem.scores)).tolist()
    orders = (Scored(*order, scores) for order in batch.by_place)
    return _summed([run_varied(order, draws, limit) for order in orders])


def _summed(runs: list[Run]) -> Trials:
    return Trials(
        np.array([run.solved for run in runs]),
        np.array([run.generated for run in runs], dtype=np.int32),
        np.array([run.verified for run in runs], dtype=np.int32),
        rounds_of(*np.array([run.rounds for run in runs], dtype=np.int32).T),
    )


# A kernel takes the policy it is registered for, hence `Any`; it returns None for a case that it
# does not cover.
Kernel = Callable[[Any, Batch, Costs, int | None], Trials | None]
KERNELS: dict[type[Any], Kernel] = {
    Adaptive: _adaptive,
    Alternate: _path,
    Balanced: _path,
    Fixed: _fixed,
    Hedged: _path,
    Threshold: _threshold,
    Varied: _varied,
    VerifyAll: _verify_all,
}
