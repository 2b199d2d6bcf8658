"""What should I buy? A policy, a score, a better score, or a cheaper verifier."""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from ..core.values import Costs
from ..logs.log import Log, LoggedProblem
from .dataset import CHEAPER, HINDSIGHT, IN_ORDER, Study, Tried, price_name
from .rows import Sheets
from .score_tables import aucs_of
from .table import significant

Array = NDArray[np.float64]


def advice_tables(sheets: Sheets, study: Study) -> None:
    """The tables of one log."""
    for costs in study.costs:
        _which_policy(sheets, study, costs)
    _pays_for_itself(sheets, study)
    _better_score(sheets, study)
    _cheaper_verifier(sheets, study)
    if len(study.problems) < 2:
        text = f"{study.name}: one problem alone has no interval."
        sheets.note(("which_policy", "pays_for_itself"), text)


def _which_policy(sheets: Sheets, study: Study, costs: Costs) -> None:
    names = study.request.live
    if not names:
        sheets.note("which_policy", f"{study.name}: no policy was asked for that could run live.")
        return
    tried = {name: study.tried[costs, name] for name in names}
    most = max(each.row.solved for each in tried.values())
    able = [name for name in names if tried[name].row.solved >= most - 1e-9]
    able.sort(key=lambda name: tried[name].row.cost)
    shares = _cheapest(study, [tried[name] for name in able])
    best = tried[able[0]]
    others = sorted(set(names) - set(able), key=lambda name: tried[name].row.cost)
    for name in (*able, *others):
        row = tried[name].row
        ends = study.interval(tried[name], best) or (None, None)
        share = shares.get(able.index(name)) if name in able else None
        words = _words(name == able[0], share) if name in able else "solves fewer"
        head = (study.name, price_name(row.costs), name, row.cost, row.solved)
        sheets.add("which_policy", [(*head, share, row.cost / best.row.cost, *ends, words)])


def _cheapest(study: Study, tried: list[Tried]) -> dict[int, float]:
    """In what share of resamples each is the cheapest; equals share."""
    if len(study.problems) < 2:
        return {}
    totals = np.array([study.totals(each) for each in tried])
    wins = totals <= totals.min(axis=0) * (1 + 1e-12)
    shares = (wins / wins.sum(axis=0)).mean(axis=1)
    return {at: float(share) for at, share in enumerate(shares)}


def _words(first: bool, share: float | None) -> str:
    if not first:
        return ""
    if share is None:
        return "cheapest here"
    sure = "surely" if share >= 0.95 else "probably" if share >= 0.7 else "perhaps"
    return f"{sure} the cheapest"


def _pays_for_itself(sheets: Sheets, study: Study) -> None:
    names = [name for name in study.request.live if name != IN_ORDER]
    sheets.note(
        "pays_for_itself",
        "What a score is worth comes on top of the price list: the cost to generate is taken to be"
        " the same with and without scores. The break-even is interpolated between the ratios"
        " tried.",
    )
    for name in names:
        even, words = _break_even(study, name), _even_words(study, name)
        for costs in study.costs:
            tried, in_order = study.tried[costs, name], study.tried[costs, IN_ORDER]
            saving = 1 - tried.row.cost / in_order.row.cost
            ends = study.interval(tried, in_order)
            worth = (in_order.row.cost - tried.row.cost) / tried.row.generated
            head = (
                study.name,
                price_name(tried.row.costs),
                name,
                tried.row.cost,
                in_order.row.cost,
            )
            spread = (1 - ends[1], 1 - ends[0]) if ends else (None, None)
            row = (*head, saving, *spread, worth, *even, words)
            sheets.add("pays_for_itself", [row])
    if not names:
        text = f"{study.name}: no policy was asked for that uses the score and could run live."
        sheets.note("pays_for_itself", text)


def _break_even(study: Study, name: str) -> tuple[float | None, float | None, float | None]:
    """The cost ratio from which on the policy is cheaper than in order, and its interval."""
    rhos = np.array([costs.ratio for costs in study.range_of_costs])
    pairs = [
        (study.tried[costs, name], study.tried[costs, IN_ORDER]) for costs in study.range_of_costs
    ]
    now = np.array([[up.by_problem.sum() / down.by_problem.sum() for up, down in pairs]])
    here = float(break_even(rhos, now)[0])
    found = here if np.isfinite(here) else None
    if len(study.problems) < 2:
        return found, None, None
    ratios = np.array([study.totals(above) / study.totals(below) for above, below in pairs]).T
    low, high = np.quantile(break_even(rhos, ratios), [0.025, 0.975], method="nearest")
    return (
        found,
        float(low) if np.isfinite(low) else None,
        float(high) if np.isfinite(high) else None,
    )


def break_even(rhos: Array, ratios: Array) -> Array:
    """From which of the `rhos` on, `[n]`, relative costs `[n, rhos]` stay at 1 or below.

    Between the last one above and the next, by the logarithm; the first where none is above, and
    infinite where the last is.
    """
    places = np.log(rhos)
    above = ratios > 1
    last = ratios.shape[1] - 1 - above[:, ::-1].argmax(axis=1)  # of those above
    rows = np.arange(len(ratios))
    following = np.minimum(last + 1, ratios.shape[1] - 1)
    start, end = ratios[rows, last], ratios[rows, following]
    gap = np.where(start > end, start - end, 1.0)
    share = np.clip((start - 1) / gap, 0.0, 1.0)
    crossing = np.exp(places[last] + share * (places[following] - places[last]))
    crossing[~above.any(axis=1)] = rhos[0]
    crossing[above[:, -1]] = np.inf
    return np.asarray(crossing)


def _even_words(study: Study, name: str) -> str:
    """At which of the ratios tried the policy is cheaper than in order, and at which surely."""
    cheaper, surely = [], []
    for costs in study.range_of_costs:
        tried, in_order = study.tried[costs, name], study.tried[costs, IN_ORDER]
        if tried.row.cost >= in_order.row.cost:
            continue
        cheaper.append(costs.ratio)
        ends = study.interval(tried, in_order)
        if ends is not None and ends[1] < 1:
            surely.append(costs.ratio)
    if not cheaper:
        first, last = study.range_of_costs[0].ratio, study.range_of_costs[-1].ratio
        return f"dearer at every ratio tried from {first:g} to {last:g}"
    text = f"cheaper at {_listed(cheaper)}"
    return f"{text}, {'surely at ' + _listed(surely) if surely else 'nowhere surely'}"


def _listed(ratios: list[float]) -> str:
    return ", ".join(f"{ratio:g}" for ratio in ratios)


# What is done to the score: how much of it is replaced by noise, then how much higher passes are
# put, in standard deviations; infinitely much puts all of them first.
CHANGES: tuple[tuple[str, float, float], ...] = (
    ("noise only", 1.0, 0.0),
    ("70 % noise", 0.7, 0.0),
    ("as it is", 0.0, 0.0),
    ("passes 0.5 higher", 0.0, 0.5),
    ("passes 1 higher", 0.0, 1.0),
    ("passes 2 higher", 0.0, 2.0),
    ("perfect", 0.0, np.inf),
)


def changed(log: Log, noise: float, higher: float, seed: int) -> Log:
    """The log with another score: each problem's ranks as normal scores, changed.

    Args:
        log: whose candidates they are.
        noise: the share of the score that is replaced by standard normal noise, by variance its
            square.
        higher: how much is added to the score of a candidate that passes.
        seed: what noise is drawn from.
    """
    problems = [
        dataclasses.replace(
            problem, scores=_changed(problem, noise, higher, np.random.default_rng([seed, at]))
        )
        for at, problem in enumerate(log.problems)
    ]
    return dataclasses.replace(log, problems=tuple(problems))


def _changed(
    problem: LoggedProblem, noise: float, higher: float, generator: np.random.Generator
) -> Array:
    z = normal_scores(problem.scores)
    if noise:
        z = np.sqrt(1 - noise**2) * z + noise * generator.standard_normal(len(z))
    beyond = float(z.max() - z.min()) + 1.0
    return z + problem.passed * (higher if np.isfinite(higher) else beyond)


def normal_scores(scores: Array) -> Array:
    """Each score as the normal quantile of its place; equal scores have the middle of theirs."""
    _, level, size = np.unique(scores, return_inverse=True, return_counts=True)
    places = (np.cumsum(size) - size / 2) / len(scores)
    return np.array([_quantile(place) for place in places.tolist()])[level]


@lru_cache(maxsize=8192)  # problems of one size have the same places
def _quantile(place: float) -> float:
    return NormalDist().inv_cdf(place)


def _better_score(sheets: Sheets, study: Study) -> None:
    names = [name for name in study.request.live if name != IN_ORDER]
    if not names:
        text = f"{study.name}: no policy was asked for that uses the score and could run live."
        sheets.note("better_score", text)
        return
    for words, noise, higher in CHANGES:
        now = noise == higher == 0
        log = study.log if now else changed(study.log, noise, higher, study.request.seed)
        known = [value for value in aucs_of(log).values() if value is not None]
        mean = significant(float(np.mean(known))) if known else None
        rows = study.main.rows
        with study.progress.stage() as tell:
            if not now:
                rows = study.compare(names, study.costs, tell, log).rows
        for row in rows:
            if row.policy in names:
                was = study.tried[row.costs, row.policy].row.cost
                place = (study.name, price_name(row.costs), words, mean, row.policy)
                result = (row.cost, 1 - row.cost / was, row.solved, int(now))
                sheets.add("better_score", [(*place, *result)])
    sheets.note(
        "better_score",
        "Each problem's scores are turned into normal scores by their ranks. Noise replaces that"
        " share of them; or passes are put so many standard deviations higher; perfect puts all"
        " passes first. A real better score may err in other places.",
    )


def _cheaper_verifier(sheets: Sheets, study: Study) -> None:
    if len(study.plain_costs) < len(study.costs):
        text = f"{study.name}: where costs are measured, there is no one price to lower."
        sheets.note("cheaper_verifier", text)
    for costs in study.plain_costs:
        for price in (1.0, *CHEAPER):
            lowered = Costs(costs.candidate, costs.verify * price) if price < 1 else costs
            for name in study.curves:
                if name != HINDSIGHT:
                    was, cost = (study.tried[c, name].row.cost for c in (costs, lowered))
                    head = (study.name, price_name(costs), price, name)
                    sheets.add("cheaper_verifier", [(*head, cost, 1 - cost / was)])
