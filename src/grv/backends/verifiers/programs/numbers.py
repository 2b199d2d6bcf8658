"""Numbers that a candidate returned, compared with an expected one: exactly, and in linear time.

A node is the candidate's word and may be of any size. So nothing here takes more time than in
proportion to it: no greatest common divisors, no conversions between binary and decimal of what the
candidate chose the length of.
"""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from typing import Any

from ...sandbox import plain

_Number = int | float | Decimal | tuple[int, int]  # the pair is a fraction in lowest terms


def same_number(expected: int | float, node: Any, tolerance: float) -> bool:
    """Whether a node is the expected number; with the tolerance where that is a float."""
    try:
        got = _number(node)
        if got is None:
            return False
        if _is_exactly(expected, got):
            return True
        return isinstance(expected, float) and _is_close(expected, got, tolerance)
    except (plain.PlainError, InvalidOperation, OverflowError, ValueError):
        return False  # no number, or one beyond all floats


def _number(node: Any) -> _Number | None:
    match node:
        case int():
            return node
        case ["n", text]:
            return plain.integer(text)
        case ["f", text]:
            return plain.real(text)
        case ["D", str(text)]:
            return Decimal(text)
        case ["F", upper, lower]:
            match _number(upper), _number(lower):
                case int(numerator), int(denominator) if denominator > 0:
                    return numerator, denominator
    return None


def _is_exactly(expected: int | float, got: _Number) -> bool:
    if isinstance(got, tuple):  # what is not in lowest terms was no fraction of Python's
        return math.isfinite(expected) and got == expected.as_integer_ratio()
    if isinstance(got, Decimal) and got.is_nan():
        return False
    return bool(got == expected)


def _is_close(expected: float, got: _Number, tolerance: float) -> bool:
    """Whether the float nearest to it is close enough."""
    nearest = got[0] / got[1] if isinstance(got, tuple) else float(got)
    if math.isnan(expected):
        return math.isnan(nearest)
    if not tolerance or math.isinf(expected):
        return False
    return math.isclose(expected, nearest, rel_tol=tolerance, abs_tol=tolerance)
