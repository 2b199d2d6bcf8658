"""The contents of a report: every table, its columns, and what each of them means.

Tables are long: a row for each log (`log`) and price list (`costs`) where that makes a difference,
so that a drawing filters and colours by columns. Computed elsewhere in this room; drawn elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from .table import Cell, Column, Table

Part = Literal["costs", "score", "advice", "time"]


@dataclass(frozen=True)
class Figure:
    """What one table of a report holds, whatever the log.

    Attributes:
        name: of the table.
        title: for people.
        caption: how to read it.
        alt: what a drawing of it shows.
        columns: in order.
        part: what question it belongs to.
        draws: whether it is drawn; others are read as tables, or hold the summary of a drawn one.
        needs_candidates: whether a saved comparison is not enough to make it.
        across: the column whose values become groups of columns, in tables that are set side by
            side.
        spread: the columns of each such group.
    """

    name: str
    title: str
    caption: str
    alt: str
    columns: tuple[Column, ...]
    part: Part
    draws: bool = True
    needs_candidates: bool = True
    across: str = ""
    spread: tuple[str, ...] = field(default=())

    def table(self, rows: list[tuple[Cell, ...]], notes: list[str]) -> Table:
        """The table with these rows, set side by side if it is one of that kind."""
        made = Table(
            *(self.name, self.title, self.caption, self.alt, self.columns),
            tuple(rows),
            tuple(dict.fromkeys(notes)),
        )
        return made.across(self.across, self.spread) if self.across else made


LOG = Column("log", "log", "text", "which log, or which score of a log")
COSTS = Column("costs", "costs", "text", "the price list: cost to generate, cost to verify")
POLICY = Column("policy", "policy", "text", "the policy or baseline, as `grv compare` names it")
PROBLEM = Column("problem", "problem", "text", "the problem's name")
COST = Column("cost", "cost", "cost", "the mean cost of a trial", digits=1)
RATIO = Column(
    "ratio", "× adaptive", "number", "the mean cost over that of adaptive, paired", digits=2
)
LOW = Column("low", "from", "number", "lower end of the 95 % interval", digits=2)
HIGH = Column("high", "to", "number", "upper end of the 95 % interval", digits=2)
SOLVED = Column("solved", "solved", "percent", "the share of trials solved", digits=1)
GENERATED = Column("generated", "generated", "number", "the mean number generated", digits=1)
VERIFIED = Column("verified", "verified", "number", "the mean number verified", digits=1)
PASS_RATE = Column("pass_rate", "pass rate", "percent", "the share that passes", digits=2)
RHO = Column(
    *("rho", "cost ratio", "number", "cost to verify over cost to generate, c_ver / c_gen"),
    digits=2,
)


def _number(name: str, label: str, meaning: str, digits: int = 0) -> Column:
    return Column(name, label, "number", meaning, digits=digits)


def _percent(name: str, label: str, meaning: str, digits: int = 1) -> Column:
    return Column(name, label, "percent", meaning, digits=digits)


def _cost(name: str, label: str, meaning: str) -> Column:
    return Column(name, label, "cost", meaning, digits=1)


def _text(name: str, label: str, meaning: str) -> Column:
    return Column(name, label, "text", meaning)


_M = _number("m", "m", "candidates generated, where one pair serves all problems")
_K = _number("k", "k", "candidates verified, likewise")
_TRIALS = _number("trials", "trials", "how many trials: a problem in one order is one")
_PROBLEMS = _number("problems", "problems", "how many problems")

COST_FIGURES = (
    Figure(
        "summary",
        "What each policy would have cost",
        "Means over trials, a problem in one order being a trial; all rows see the same orders. The"
        " ratio is to adaptive, with a 95 % interval over problems.",
        "A bar for the mean cost of each policy, by price list.",
        (
            *(LOG, COSTS, POLICY, GENERATED, VERIFIED, COST, RATIO, LOW, HIGH, SOLVED),
            *(_M, _K, _TRIALS),
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
            *(LOG, COSTS, POLICY, _PROBLEMS, COST),
            _cost("first_cost", "cost on the first", "the mean cost on the first log"),
            _number("against", "× the first", "the cost over that on the first log", 2),
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
            _number("orders", "orders", "over how many orders the pair is averaged"),
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
            _number("groups", "groups", "how many groups of difficulty; none for other rows"),
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
            *(LOG, COSTS, POLICY, _number("group", "group", "from 1, hardest first"), _PROBLEMS),
            _percent("from", "pass rate from", "the lowest pass rate in the group", 2),
            _percent("to", "to", "the highest", 2),
            *(_M, _K),
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
            _text("series", "series", "`best uniform pair`, or the name of a policy"),
            _text("kind", "kind", "`curve`: a step that holds up to the next one; or `mark`"),
            *(COST, SOLVED, _M, _K),
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
            *(LOG, COSTS, _number("place", "place", "of the last trial of the row, from 1")),
            _number("trials", "trials", "how many neighbouring trials the row averages"),
            _text("problem", "problem", "whose trials they are; empty where of several"),
            _cost("hindsight", "hindsight", "mean cost of hindsight"),
            _cost("adaptive", "adaptive", "mean cost of adaptive"),
            _percent("failed", "matched pair fails", "share of the trials that it fails"),
            _cost("median", "adaptive, median", "median of neighbouring trials"),
            _cost("low", "lower quartile", "a quarter of the neighbouring trials cost less"),
            _cost("high", "upper quartile", "a quarter of the neighbouring trials cost more"),
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
            _number("in_order", "× in order", "the cost over that of verifying in order", 2),
            _number("in_order_low", "from", "lower end of the 95 % interval", 2),
            _number("in_order_high", "to", "upper end of the 95 % interval", 2),
            SOLVED,
        ),
        "costs",
    ),
)

SCORE_FIGURES = (
    Figure(
        "rank_pass",
        "Pass rate by rank",
        "How often the candidate at each rank passes, on average over the solvable problems that"
        " have so many candidates; 1 is the best score. Candidates of equal score share their"
        " ranks.",
        "A falling cloud of points, pass rate against rank, with a rolling mean through it.",
        (
            *(LOG, _number("rank", "rank", "the middle rank of the row, 1 is the best", 1)),
            _number("ranks", "ranks", "how many neighbouring ranks the row averages"),
            PASS_RATE,
            _percent("rolling", "rolling mean", "over neighbouring ranks; the notes say how many"),
            _PROBLEMS,
        ),
        "score",
    ),
    Figure(
        "coverage",
        "Do the k best hold a pass?",
        "The share of solvable problems of which the k best candidates by score hold a pass,"
        " beside k candidates drawn at random (hypergeometric), in expectation over ties.",
        "Two rising curves against k on a logarithmic axis, by score above, at random below.",
        (
            *(LOG, _number("k", "k", "how many candidates")),
            _percent("by_score", "by score", "the k best hold a pass"),
            _percent("at_random", "at random", "k at random hold a pass"),
        ),
        "score",
    ),
    Figure(
        "auc",
        "Does the score rank? AUC by problem",
        "How many problems have which AUC: the chance that a candidate that passes outscores one"
        " that fails, ties counting half. One half is chance.",
        "A histogram of AUC over problems, with lines at chance, the mean and the median.",
        (
            LOG,
            _number("from", "from", "lower end of the bin", 2),
            _number("to", "to", "upper end of the bin, part of the last bin only", 2),
            _PROBLEMS,
        ),
        "score",
    ),
    Figure(
        "auc_summary",
        "AUC over problems",
        "Over the problems that have both passes and failures. The interval of the mean is over"
        " problems.",
        "A table with one row a log.",
        (
            *(LOG, _PROBLEMS, _number("mean", "mean", "mean AUC", 3)),
            _number("low", "from", "lower end of the 95 % interval of the mean", 3),
            _number("high", "to", "its upper end", 3),
            _number("median", "median", "median AUC", 3),
            _number("lower_quartile", "lower quartile", "a quarter of the problems are below", 3),
            _number("upper_quartile", "upper quartile", "a quarter of the problems are above", 3),
            _percent("above_chance", "above chance", "share of problems with AUC above 0.5"),
        ),
        "score",
        draws=False,
    ),
    Figure(
        "auc_problems",
        "AUC of each problem",
        "The problems one by one.",
        "A table with one row a problem.",
        (
            *(LOG, PROBLEM, _number("passed", "passed", "candidates that pass")),
            _number("failed", "failed", "candidates that fail"),
            _number("auc", "AUC", "ties count half; none without both kinds", 3),
        ),
        "score",
        draws=False,
    ),
    Figure(
        "score_distribution",
        "Scores of candidates that pass and of those that fail",
        "What share of the candidates of each verdict has which score. All problems together.",
        "Two histograms of the score, one for each verdict, one over the other.",
        (
            *(LOG, _text("verdict", "verdict", "`passed` or `failed`")),
            _number("from", "from", "lower end of the bin", 4),
            _number("to", "to", "upper end of the bin", 4),
            _number("candidates", "candidates", "in the bin, of that verdict"),
            _percent("share", "share", "of all candidates of that verdict"),
        ),
        "score",
    ),
    Figure(
        "calibration",
        "How often does a score pass?",
        "Candidates of all problems in bins of equal number by score, and the share that passes"
        " with its 95 % Wilson interval.",
        "Points with intervals, pass rate against score.",
        (
            *(LOG, _number("from", "from", "the lowest score of the bin", 4)),
            _number("to", "to", "the highest score of the bin", 4),
            _number("score", "score", "the mean score of the bin", 4),
            _number("candidates", "candidates", "in the bin"),
            _number("passed", "passed", "of them"),
            PASS_RATE,
            _percent("low", "from", "lower end of the 95 % interval", 2),
            _percent("high", "to", "upper end of the 95 % interval", 2),
        ),
        "score",
    ),
    Figure(
        "monotonicity",
        "Is a higher score never worse?",
        "Pass rate by place in the problem's own ranking, averaged over solvable problems, and the"
        " closest curve that never falls (isotonic). Adaptive policies rest on such a curve.",
        "Points of the pass rate against the quantile of the score, with a rising step curve.",
        (
            *(LOG, _percent("from", "from", "lower end of the bin of places, 0 % is the worst")),
            _percent("to", "to", "upper end; 100 % is the best"),
            PASS_RATE,
            _percent("low", "from", "lower end of the 95 % interval over problems", 2),
            _percent("high", "to", "upper end of the 95 % interval over problems", 2),
            _percent("isotonic", "isotonic fit", "the closest curve that never falls", 2),
        ),
        "score",
    ),
    Figure(
        "monotonicity_summary",
        "The largest fall of the pass rate",
        "How much the pass rate falls at most from a lower to a higher bin of scores, and how often"
        " a score that never falls would show as much by chance.",
        "A table with one row a log.",
        (
            *(LOG, _PROBLEMS, _percent("fall", "largest fall", "of the pass rate", 2)),
            _percent("low", "from", "lower end of the 95 % interval over problems", 2),
            _percent("high", "to", "upper end of the 95 % interval over problems", 2),
            _percent("falls_from", "from place", "the middle of the bin it falls from"),
            _percent("falls_to", "to place", "the middle of the bin it falls to"),
            _percent("by_chance", "by chance", "how often chance alone makes such a fall", 1),
            _number("violated", "violated", "problems whose own fall is below 5 % by chance"),
            _number("inverted", "inverted", "problems with an AUC below one half"),
        ),
        "score",
        draws=False,
    ),
    Figure(
        "monotonicity_problems",
        "The largest fall, problem by problem",
        "The same for each solvable problem on its own; the interval resamples its candidates.",
        "A table with one row a problem.",
        (
            *(LOG, PROBLEM, _percent("fall", "largest fall", "of the pass rate", 1)),
            _percent("low", "from", "lower end of the 95 % interval", 1),
            _percent("high", "to", "upper end of the 95 % interval", 1),
            _percent("by_chance", "by chance", "how often chance alone makes such a fall", 1),
        ),
        "score",
        draws=False,
    ),
    Figure(
        "distrust",
        "Which policy to distrust where the score misleads",
        "Cost over that of verifying in order of arrival, on the problems where the score misleads"
        " (a fall that chance does not explain, or AUC below one half) and on the others.",
        "For each policy two points around 1: problems where the score misleads, and the others.",
        (
            *(LOG, COSTS, POLICY),
            _text("rests_on", "rests on", "what the policy's promise needs of the score"),
            _number("misled", "× in order, misled", "cost ratio where the score misleads", 2),
            _number("low", "from", "lower end of its 95 % interval over problems", 2),
            _number("high", "to", "upper end of its 95 % interval over problems", 2),
            _number("others", "× in order, others", "cost ratio on the other problems", 2),
            _text("verdict", "verdict", "in words"),
        ),
        "score",
    ),
)

ADVICE_FIGURES = (
    Figure(
        "which_policy",
        "Which policy should I use?",
        "Policies that could run live, cheapest first among those that solve most; in what share of"
        " resamples of the problems each is the cheapest.",
        "A bar for each policy: in what share of resamples it is the cheapest.",
        (
            *(LOG, COSTS, POLICY, COST, SOLVED),
            _percent("cheapest", "cheapest", "share of resamples in which it is the cheapest"),
            _number("against_best", "× best", "cost over that of the cheapest policy", 2),
            _number("low", "from", "lower end of its 95 % interval", 2),
            _number("high", "to", "upper end of its 95 % interval", 2),
            _text("words", "verdict", "in words"),
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
            _cost("in_order", "in order", "mean cost of verifying in order of arrival"),
            _percent("saving", "saves", "of the cost of verifying in order", 1),
            _percent("low", "from", "lower end of the 95 % interval", 1),
            _percent("high", "to", "upper end of the 95 % interval", 1),
            Column(
                *("worth", "worth a candidate", "cost"),
                "what could be paid for each score until nothing is saved",
                digits=3,
            ),
            _number("break_even", "break-even", "cost ratio from which on it is cheaper", 2),
            _number("break_even_low", "from", "lower end of the 95 % interval", 2),
            _number("break_even_high", "to", "upper end of the 95 % interval", 2),
            _text("words", "of the ratios tried", "at which it is cheaper, and at which surely"),
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
            *(LOG, COSTS, _text("change", "change", "what was done to the score")),
            _number("auc", "AUC", "mean over problems", 3),
            *(POLICY, COST, _percent("saving", "saves", "of its cost with the score as it is")),
            *(SOLVED, _number("now", "now", "1 for the score as it is, else 0")),
        ),
        "advice",
    ),
    Figure(
        "cheaper_verifier",
        "What would a cheaper verifier save?",
        "Costs with verification at a fraction of its price, each policy knowing the new price.",
        "For each policy a curve of the cost against the price of a verification.",
        (
            *(LOG, COSTS, _percent("price", "verifier's price", "relative to the price list", 0)),
            *(POLICY, COST, _percent("saving", "saves", "of its cost at the full price")),
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
            *(LOG, COSTS, POLICY, COST, _number("rounds", "rounds", "mean number of rounds", 1)),
            _number("generate_rounds", "generating", "mean rounds of generation", 1),
            _number("verify_rounds", "verifying", "mean rounds of verification", 1),
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
            _number("problems", "unsolvable", "problems without any pass"),
            COST,
            _cost("solvable_cost", "solvable", "mean cost of a trial on a solvable problem"),
            _percent("share", "of all spending", "spent on unsolvable problems"),
            _cost("per_solved", "per answer", "all spending over the problems solved"),
        ),
        "time",
    ),
)

FIGURES = (*COST_FIGURES, *SCORE_FIGURES, *ADVICE_FIGURES, *TIME_FIGURES)
BY_NAME = {figure.name: figure for figure in FIGURES}
