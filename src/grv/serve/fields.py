"""The fields of what a client sends: every mistake is an `ApiError` that names its field."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..files import is_number, shown
from ..options import did_you_mean
from .errors import ApiError, wrong


def record(value: Any, param: str, what: str) -> dict[str, Any]:
    """A JSON object without the fields that are null."""
    if not isinstance(value, Mapping):
        message = f"{what} must be a JSON object, not {shown(value)}"
        raise ApiError(400, message, code="invalid_value", param=param or None)
    return {name: each for name, each in value.items() if each is not None}


def only(given: Mapping[str, Any], before: str, known: Sequence[str]) -> None:
    """Refuse fields that are not known; `before` is what stands before their names."""
    for name in given:
        if name not in known:
            param = f"{before}{name}"
            problem = f"unknown field{did_you_mean(name, known)}"
            raise ApiError(400, f"{param}: {problem}", code="unknown_parameter", param=param)


def flag(given: Mapping[str, Any], name: str) -> bool:
    """A field that is true or false; false if it is missing."""
    value = given.get(name, False)
    if not isinstance(value, bool):
        raise wrong(name, f"must be true or false, not {shown(value)}")
    return value


def number(
    given: Mapping[str, Any],
    name: str,
    before: str = "",
    *,
    least: float,
    most: float | None = None,
    fits: Callable[[Any], bool] = is_number,
    what: str = "a number",
) -> float | None:
    """A number of a request, if it has one."""
    value = given.get(name)
    if value is None:
        return None
    if not fits(value) or value < least or (most is not None and value > most):
        limits = f" of at least {least:g}" if most is None else f" from {least:g} to {most:g}"
        raise wrong(f"{before}{name}", f"must be {what}{limits}, not {shown(value)}")
    return float(value) if what == "a number" else value


def whole(
    given: Mapping[str, Any], name: str, *, least: int = 1, most: int | None = None
) -> int | None:
    """A whole number of a request, if it has one."""

    def fits(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and value < 2**63

    found = number(given, name, least=least, most=most, fits=fits, what="a whole number")
    return None if found is None else int(found)
