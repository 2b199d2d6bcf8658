"""Several generators for one problem: one search each, and a rule for who acts next."""

from .choosing import Cold, Learned
from .joint import JointPrior, ProblemType
from .portfolio import Chooser, Member, Portfolio, Request
from .shares import equal_shares, root_shares

__all__ = [
    "Chooser",
    "Cold",
    "JointPrior",
    "Learned",
    "Member",
    "Portfolio",
    "ProblemType",
    "Request",
    "equal_shares",
    "root_shares",
]
