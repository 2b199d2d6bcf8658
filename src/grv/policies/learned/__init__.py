"""The policy `learned`, which decides by a prior fitted to history, and its parts."""

from .policy import Learned

__all__ = ["Learned"]
