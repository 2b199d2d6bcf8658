"""Decide as history says: the policy `learned` and what it is made of."""

from .policy import Learned

__all__ = ["Learned"]
