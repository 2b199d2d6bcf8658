"""Generate, rank, verify: a verified answer from a language model for the least money."""

__version__ = "0.1.0"
