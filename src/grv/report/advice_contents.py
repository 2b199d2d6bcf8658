"""What to buy, and how long it takes: the tables of these parts, and what their columns mean."""

from __future__ import annotations

from .schema import COST, COSTS, LOG, POLICY, SOLVED, Figure, cost, number, percent, text
from .table import Column

ADVICE_FIGURES = (
    Figure(
        "which_policy",
        "Which policy should I use?",
        "Policies that could run live, cheapest first among those that solve most; in what share of"
        " resamples of the problems each is the cheapest.",
        "A bar for each policy: in what share of resamples it is the cheapest.",
        (
            *(LOG, COSTS, POLICY, COST, SOLVED),
            percent("cheapest", "cheapest", "share of resamples in which it is the cheapest"),
            number("against_best", "× best", "cost over that of the cheapest policy", 2),
            number("low", "from", "lower end of its 95 % interval", 2),
            number("high", "to", "upper end of its 95 % interval", 2),
            text("words", "verdict", "in words"),
        ),
        "advice",
    ),
    Figure(
        "pays_for_itself",
        "Does this score pay for itself?",
        "Each policy beside verifying in order of arrival, which needs no score: what it saves,"
        " what a score is worth for each candidate, and from which cost ratio on it saves at all.",
        "For each policy an interval of the cost ratio from which on it is cheaper.",
        (
            *(LOG, COSTS, POLICY, COST),
            cost("in_order", "in order", "mean cost of verifying in order of arrival"),
            percent("saving", "saves", "of the cost of verifying in order", 1),
            percent("low", "from", "lower end of the 95 % interval", 1),
            percent("high", "to", "upper end of the 95 % interval", 1),
            Column(
                *("worth", "worth a candidate", "cost"),
                "what could be paid for each score until nothing is saved",
                digits=3,
            ),
            number("break_even", "break-even", "cost ratio from which on it is cheaper", 2),
            number("break_even_low", "from", "lower end of the 95 % interval", 2),
            number("break_even_high", "to", "upper end of the 95 % interval", 2),
            text("words", "of the ratios tried", "at which it is cheaper, and at which surely"),
        ),
        "advice",
    ),
    Figure(
        "better_score",
        "What would a better score save?",
        "The log with its score made worse by noise or better by knowing more: the mean AUC it then"
        " has, and what the policies cost.",
        "For each policy a curve of the cost against the AUC, with the score as it is marked.",
        (
            *(LOG, COSTS, text("change", "change", "what was done to the score")),
            number("auc", "AUC", "mean over problems", 3),
            *(POLICY, COST, percent("saving", "saves", "of its cost with the score as it is")),
            *(SOLVED, number("now", "now", "1 for the score as it is, else 0")),
        ),
        "advice",
    ),
    Figure(
        "cheaper_verifier",
        "What would a cheaper verifier save?",
        "Costs with verification at a fraction of its price, each policy knowing the new price.",
        "For each policy a curve of the cost against the price of a verification.",
        (
            *(LOG, COSTS, percent("price", "verifier's price", "relative to the price list", 0)),
            *(POLICY, COST, percent("saving", "saves", "of its cost at the full price")),
        ),
        "advice",
    ),
)

TIME_FIGURES = (
    Figure(
        "rounds",
        "Time beside money",
        "How often each policy waits for results, and how long a trial takes where it is known how"
        " long a round takes.",
        "A point for each policy: cost across, rounds or seconds up.",
        (
            *(LOG, COSTS, POLICY, COST, number("rounds", "rounds", "mean number of rounds", 1)),
            number("generate_rounds", "generating", "mean rounds of generation", 1),
            number("verify_rounds", "verifying", "mean rounds of verification", 1),
            Column("seconds", "time", "number", "mean time of a trial", unit="s", digits=1),
        ),
        "time",
        needs_candidates=False,
    ),
    Figure(
        "unsolved",
        "What unsolved problems cost",
        "The mean cost of a trial on problems of which no candidate passes: a search without a"
        " budget spends all that the log has.",
        "A bar for each policy: spending on solvable and on unsolvable problems.",
        (
            *(LOG, COSTS, POLICY),
            number("problems", "unsolvable", "problems without any pass"),
            COST,
            cost("solvable_cost", "solvable", "mean cost of a trial on a solvable problem"),
            percent("share", "of all spending", "spent on unsolvable problems"),
            cost("per_solved", "per answer", "all spending over the problems solved"),
        ),
        "time",
    ),
)
