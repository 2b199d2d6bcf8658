"""Several generators for one problem: one search each, and a rule for who acts next."""

from .choosing import ByExpectedPasses, BySpending
from .joint import JointPrior, ProblemType
from .portfolio import Chooser, Member, MemberAction, Portfolio, steered_by
from .shares import equal_shares, root_shares

__all__ = [
    "ByExpectedPasses",
    "BySpending",
    "Chooser",
    "JointPrior",
    "Member",
    "MemberAction",
    "Portfolio",
    "ProblemType",
    "equal_shares",
    "root_shares",
    "steered_by",
]
