"""Compares ways to use several generators, on a log with the candidates of all of them."""

from .compare import compare_generators
from .table import GeneratorComparison, GeneratorRow

__all__ = ["GeneratorComparison", "GeneratorRow", "compare_generators"]
