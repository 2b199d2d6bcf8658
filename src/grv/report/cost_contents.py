"""What policies cost: the tables of this part of a report, and what their columns mean."""

from __future__ import annotations

from .schema import (
    COST,
    COSTS,
    GENERATED,
    HIGH,
    LOG,
    LOW,
    PAIR_K,
    PAIR_M,
    PASS_RATE,
    POLICY,
    PROBLEM,
    PROBLEMS,
    RATIO,
    RHO,
    SOLVED,
    TRIALS,
    VERIFIED,
    Figure,
    cost,
    number,
    percent,
    text,
)

COST_FIGURES = (
    Figure(
        "summary",
        "What each policy would have cost",
        "Means over trials, a problem in one order being a trial; all rows see the same orders. The"
        " ratio is to adaptive, with a 95 % interval over problems.",
        "A bar for the mean cost of each policy, by price list.",
        (
            *(LOG, COSTS, POLICY, GENERATED, VERIFIED, COST, RATIO, LOW, HIGH, SOLVED),
            *(PAIR_M, PAIR_K, TRIALS),
        ),
        "costs",
        needs_candidates=False,
    ),
    Figure(
        "ratio_ablation",
        "Costs by price list",
        "The mean cost of each policy, relative to adaptive at the same price list, and the share"
        " solved.",
        "A table of policies by price list.",
        (LOG, POLICY, COSTS, COST, RATIO, SOLVED),
        "costs",
        draws=False,
        needs_candidates=False,
        across="costs",
        spread=("cost", "ratio", "solved"),
    ),
    Figure(
        "per_log",
        "Costs by log",
        "The mean cost of each policy on each log, relative to adaptive on the same log, and the"
        " share solved; below, how many problems each log has.",
        "A table of policies by log.",
        (COSTS, POLICY, LOG, COST, RATIO, SOLVED),
        "costs",
        draws=False,
        needs_candidates=False,
        across="log",
        spread=("cost", "ratio", "solved"),
    ),
    Figure(
        "paired",
        "Logs against the first, on the problems they share",
        "The mean cost of each policy on this log over that on the first one, on the problems that"
        " are solvable in both, with a 95 % interval over those problems.",
        "For each policy a point and an interval for each further log, around 1.",
        (
            *(LOG, COSTS, POLICY, PROBLEMS, COST),
            cost("first_cost", "cost on the first", "the mean cost on the first log"),
            number("against", "× the first", "the cost over that on the first log", 2),
            *(LOW, HIGH),
        ),
        "costs",
    ),
    Figure(
        "optimal_pairs",
        "What would have been enough, problem by problem",
        "For each problem the cheapest pair that finds a pass, averaged over many orders: how many"
        " candidates to generate, and how many of the best to verify. Dashed: pairs of equal cost.",
        "A point for each problem: generated across, verified up, both on logarithmic axes,"
        " coloured by cost, over faint lines of equal cost.",
        (
            *(LOG, COSTS, PROBLEM, PASS_RATE, GENERATED, VERIFIED, COST),
            number("orders", "orders", "over how many orders the pair is averaged"),
        ),
        "costs",
    ),
    Figure(
        "difficulty",
        "Costs relative to adaptive, by number of difficulty groups",
        "Baselines that know each problem's pass rate and give each group of similar problems its"
        " own pair. Hindsight knows the very order. The numbers have the other policies, too.",
        "The ratio of each baseline's cost to adaptive's against the number of groups, with"
        " intervals, and lines for the rows without groups.",
        (
            *(LOG, COSTS, POLICY),
            number("groups", "groups", "how many groups of difficulty; none for other rows"),
            *(COST, RATIO, LOW, HIGH, SOLVED),
        ),
        "costs",
        needs_candidates=False,
    ),
    Figure(
        "groups",
        "The difficulty groups",
        "For each number of groups, the groups that are cheapest together: their pass rates, and"
        " the pair each gets. Hardest first.",
        "A table of groups.",
        (
            *(LOG, COSTS, POLICY, number("group", "group", "from 1, hardest first"), PROBLEMS),
            percent("from", "pass rate from", "the lowest pass rate in the group", 2),
            percent("to", "to", "the highest", 2),
            *(PAIR_M, PAIR_K),
        ),
        "costs",
        draws=False,
        needs_candidates=False,
    ),
    Figure(
        "budget_curve",
        "Solved rate against budget",
        "The curve is the best single pair within each mean cost, chosen knowing the answers; the"
        " marks are the policies at their mean costs.",
        "A rising step curve of the share solved against cost, with a mark for each policy.",
        (
            *(LOG, COSTS),
            text("series", "series", "`best uniform pair`, or the name of a policy"),
            text("kind", "kind", "`curve`: a step that holds up to the next one; or `mark`"),
            *(COST, SOLVED, PAIR_M, PAIR_K),
        ),
        "costs",
    ),
    Figure(
        "trials",
        "Trial by trial",
        "What each trial costs with adaptive (points; the line is their rolling median, the band"
        " the middle half) and in hindsight, trials sorted by the latter. Shaded: trials that the"
        " single pair of the same mean cost as adaptive does not solve.",
        "Points of adaptive's cost over sorted trials on a logarithmic axis, with a rolling median"
        " and a band, above the rising curve of hindsight; shades where the matched pair fails.",
        (
            *(LOG, COSTS, number("place", "place", "of the last trial of the row, from 1")),
            number("trials", "trials", "how many neighbouring trials the row averages"),
            text("problem", "problem", "whose trials they are; empty where of several"),
            cost("hindsight", "hindsight", "mean cost of hindsight"),
            cost("adaptive", "adaptive", "mean cost of adaptive"),
            percent("failed", "matched pair fails", "share of the trials that it fails"),
            cost("median", "adaptive, median", "median of neighbouring trials"),
            cost("low", "lower quartile", "a quarter of the neighbouring trials cost less"),
            cost("high", "upper quartile", "a quarter of the neighbouring trials cost more"),
        ),
        "costs",
    ),
    Figure(
        "sensitivity",
        "Costs by cost ratio",
        "Each policy where verifying costs so many times what generating does, relative to adaptive"
        " or to verifying in order of arrival, with 95 % intervals, which may leave the picture.",
        "A curve for each policy: relative cost against the cost ratio, on a logarithmic axis.",
        (
            *(LOG, POLICY, RHO, COST, RATIO, LOW, HIGH),
            number("in_order", "× in order", "the cost over that of verifying in order", 2),
            number("in_order_low", "from", "lower end of the 95 % interval", 2),
            number("in_order_high", "to", "upper end of the 95 % interval", 2),
            SOLVED,
        ),
        "costs",
    ),
)
