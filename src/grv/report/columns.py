"""Columns: one function per kind, and the columns that several tables share."""

from __future__ import annotations

from .table import Column


def number(name: str, label: str, meaning: str, digits: int = 0) -> Column:
    """A column of numbers."""
    return Column(name, label, "number", meaning, digits=digits)


def percent(name: str, label: str, meaning: str, digits: int = 1) -> Column:
    """A column of shares."""
    return Column(name, label, "percent", meaning, digits=digits)


def cost(name: str, label: str, meaning: str) -> Column:
    """A column of costs."""
    return Column(name, label, "cost", meaning, digits=1)


def text(name: str, label: str, meaning: str) -> Column:
    """A column of words."""
    return Column(name, label, "text", meaning)


LOG = text("log", "log", "the log, or the score of a log")
COSTS = text("costs", "costs", "the price list: cost to generate, cost to verify")
POLICY = text("policy", "policy", "the policy or baseline, as `grv compare` names it")
PROBLEM = text("problem", "problem", "the name of the problem")
COST = cost("cost", "cost", "the mean cost of a trial")
RATIO = number("ratio", "× baseline", "the mean cost divided by that of the baseline, paired", 2)
LOW = number("low", "from", "lower end of the 95 % interval", 2)
HIGH = number("high", "to", "upper end of the 95 % interval", 2)
SOLVED = percent("solved", "solved", "the share of trials solved")
GENERATED = number("generated", "generated", "the mean number of candidates generated", 1)
VERIFIED = number("verified", "verified", "the mean number of candidates verified", 1)
PASS_RATE = percent("pass_rate", "pass rate", "the share of candidates that pass", 2)
PASS_RATE_LOW = percent("low", "from", "lower end of the 95 % interval", 2)
PASS_RATE_HIGH = percent("high", "to", "upper end of the 95 % interval", 2)
PAIR_M = number("m", "m", "candidates generated, if all problems share one pair")
PAIR_K = number("k", "k", "candidates verified, if all problems share one pair")
PROBLEMS = number("problems", "problems", "the number of problems")
