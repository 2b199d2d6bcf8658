"""Whether the score is any good: the tables of this part, and what their columns mean."""

from __future__ import annotations

from .schema import COSTS, LOG, PASS_RATE, POLICY, PROBLEM, PROBLEMS, Figure, number, percent, text

SCORE_FIGURES = (
    Figure(
        "rank_pass",
        "Pass rate by rank",
        "How often the candidate at each rank passes, on average over the solvable problems that"
        " have so many candidates; 1 is the best score. Candidates of equal score share their"
        " ranks.",
        "A falling cloud of points, pass rate against rank, with a rolling mean through it.",
        (
            *(LOG, number("rank", "rank", "the middle rank of the row, 1 is the best", 1)),
            number("ranks", "ranks", "how many neighbouring ranks the row averages"),
            PASS_RATE,
            percent("rolling", "rolling mean", "over neighbouring ranks; the notes say how many"),
            PROBLEMS,
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
            *(LOG, number("k", "k", "how many candidates")),
            percent("by_score", "by score", "the k best hold a pass"),
            percent("at_random", "at random", "k at random hold a pass"),
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
            number("from", "from", "lower end of the bin", 2),
            number("to", "to", "upper end of the bin, part of the last bin only", 2),
            PROBLEMS,
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
            *(LOG, PROBLEMS, number("mean", "mean", "mean AUC", 3)),
            number("low", "from", "lower end of the 95 % interval of the mean", 3),
            number("high", "to", "its upper end", 3),
            number("median", "median", "median AUC", 3),
            number("lower_quartile", "lower quartile", "a quarter of the problems are below", 3),
            number("upper_quartile", "upper quartile", "a quarter of the problems are above", 3),
            percent("above_chance", "above chance", "share of problems with AUC above 0.5"),
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
            *(LOG, PROBLEM, number("passed", "passed", "candidates that pass")),
            number("failed", "failed", "candidates that fail"),
            number("auc", "AUC", "ties count half; none without both kinds", 3),
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
            *(LOG, text("verdict", "verdict", "`passed` or `failed`")),
            number("from", "from", "lower end of the bin", 4),
            number("to", "to", "upper end of the bin", 4),
            number("candidates", "candidates", "in the bin, of that verdict"),
            percent("share", "share", "of all candidates of that verdict"),
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
            *(LOG, number("from", "from", "the lowest score of the bin", 4)),
            number("to", "to", "the highest score of the bin", 4),
            number("score", "score", "the mean score of the bin", 4),
            number("candidates", "candidates", "in the bin"),
            number("passed", "passed", "of them"),
            PASS_RATE,
            percent("low", "from", "lower end of the 95 % interval", 2),
            percent("high", "to", "upper end of the 95 % interval", 2),
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
            *(LOG, percent("from", "from", "lower end of the bin of places, 0 % is the worst")),
            percent("to", "to", "upper end; 100 % is the best"),
            PASS_RATE,
            percent("low", "from", "lower end of the 95 % interval over problems", 2),
            percent("high", "to", "upper end of the 95 % interval over problems", 2),
            percent("isotonic", "isotonic fit", "the closest curve that never falls", 2),
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
            *(LOG, PROBLEMS, percent("fall", "largest fall", "of the pass rate", 2)),
            percent("low", "from", "lower end of the 95 % interval over problems", 2),
            percent("high", "to", "upper end of the 95 % interval over problems", 2),
            percent("falls_from", "from place", "the middle of the bin it falls from"),
            percent("falls_to", "to place", "the middle of the bin it falls to"),
            percent("by_chance", "by chance", "how often chance alone makes such a fall", 1),
            number("violated", "violated", "problems whose own fall is below 5 % by chance"),
            number("inverted", "inverted", "problems with an AUC below one half"),
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
            *(LOG, PROBLEM, percent("fall", "largest fall", "of the pass rate", 1)),
            percent("low", "from", "lower end of the 95 % interval", 1),
            percent("high", "to", "upper end of the 95 % interval", 1),
            percent("by_chance", "by chance", "how often chance alone makes such a fall", 1),
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
            text("rests_on", "rests on", "what the policy's promise needs of the score"),
            number("misled", "× in order, misled", "cost ratio where the score misleads", 2),
            number("low", "from", "lower end of its 95 % interval over problems", 2),
            number("high", "to", "upper end of its 95 % interval over problems", 2),
            number("others", "× in order, others", "cost ratio on the other problems", 2),
            text("verdict", "verdict", "in words"),
        ),
        "score",
    ),
)
