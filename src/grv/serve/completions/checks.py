"""Checks of requests: only data, within the limits of the server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ...backends.protocols import Problem
from ...backends.sandbox.limits import RunLimits
from ...backends.verifiers.calibration import FIELDS as ERROR_FIELDS
from ...backends.verifiers.checks import DATA_KINDS, KINDS, records_in
from ...core.errors import UsageError
from ...files import is_number, shown
from ...options import did_you_mean
from ..errors import ApiError, wrong
from ..profiles import Profile

PARAM = "grv.check"
_MOST_FIELDS = 100
_MOST_REPEATS = 10
_MOST_TESTS = 10_000  # of one verification
_MOST_SECONDS = 3600.0  # that one verification may hold a worker if every test takes its full limit
_PLACE = re.compile(r"problem .*?, (check[\w.\[\]]*): (.*)", re.DOTALL)


def named_or_own(profile: Profile, given: Any) -> tuple[Mapping[str, Any], str]:
    """The check of a request and its name, which is empty if the request has its own."""
    if profile.own_verifier:
        if given is not None:
            raise wrong(PARAM, f"{profile.name} verifies by itself; leave the check out")
        return {}, ""
    if given is None:
        if not profile.check:
            raise wrong(PARAM, _missing(profile))
        given = profile.check
    if isinstance(given, str):
        if given not in profile.checks:
            hint = did_you_mean(given, [*profile.checks])
            raise wrong(PARAM, f"there is no check {shown(given)}{hint}")
        return profile.checks[given], given
    if not isinstance(given, Mapping):
        raise wrong(PARAM, f"must be a check or the name of one, not {shown(given)}")
    check_guest(given, profile.run_limits)
    return given, ""


def check_guest(given: Mapping[str, Any], allowed: RunLimits) -> None:
    """Refuse a check of a client that is more than data, or may use more than is allowed."""
    runs = 0.0
    for record in records_in(given):
        _check_kind(record)
        runs += _check_limits(record, allowed)
    if runs > _MOST_TESTS:
        problem = f"must have at most {_MOST_TESTS} tests, counted with repeat, not {runs:g}"
        raise wrong(f"{PARAM}.checks", problem)


def _missing(profile: Profile) -> str:
    named = f"; {profile.name} has the checks {', '.join(profile.checks)}" if profile.checks else ""
    return (
        'is missing: say how an answer is verified, as in {"kind": "math", "answer": "42"}' + named
    )


def _check_kind(check: Mapping[str, Any]) -> None:
    """Refuse checks that run commands or call servers: only the server's file may name those."""
    kind = check.get("kind")
    if isinstance(kind, str) and kind not in DATA_KINDS:
        there = ", ".join(DATA_KINDS)
        hint = did_you_mean(kind, DATA_KINDS)
        raise wrong(f"{PARAM}.kind", f"must be one of {there}, not {shown(kind)}{hint}")
    for name in (*ERROR_FIELDS, *KINDS[kind].not_for_guests) if isinstance(kind, str) else ():
        if name in check:
            why = "is only for checks of the server: it names a program or a file, or trusts them"
            raise wrong(f"{PARAM}.{name}", why)


def _check_limits(check: Mapping[str, Any], allowed: RunLimits) -> float:
    """Refuse limits above those of the server; the number of tests, counted with repeat.

    Mistakes of other kinds are found later.
    """
    if len(check) > _MOST_FIELDS:
        raise wrong(PARAM, f"must have at most {_MOST_FIELDS} fields, not {len(check)}")
    repeat = check.get("repeat", 1)
    if is_number(repeat) and repeat > _MOST_REPEATS:
        raise wrong(f"{PARAM}.repeat", f"must be at most {_MOST_REPEATS}, not {shown(repeat)}")
    tests = check.get("tests")
    runs = len(tests) * (repeat if is_number(repeat) else 1) if isinstance(tests, list) else 0
    if runs > _MOST_TESTS:
        problem = f"must have at most {_MOST_TESTS} tests, counted with repeat, not {runs:g}"
        raise wrong(f"{PARAM}.tests", problem)
    given = check.get("limits", {})
    for each in fields(RunLimits):
        value = given.get(each.name) if isinstance(given, Mapping) else None
        most = getattr(allowed, each.name)
        if each.name == "cpu_seconds" and most is None:
            most = allowed.seconds
        if is_number(value) and value > most:
            raise wrong(f"{PARAM}.limits.{each.name}", f"must be at most {most:g}, not {value:g}")
    value = given.get("seconds") if isinstance(given, Mapping) else None
    _check_time(runs, float(value) if is_number(value) else allowed.seconds, allowed)
    return runs


def _check_time(runs: float, seconds: float, allowed: RunLimits) -> None:
    """Refuse a check that could hold a worker for hours. One test may always take its limit."""
    most = max(_MOST_SECONDS, allowed.seconds)
    if runs * seconds > most:
        raise wrong(
            f"{PARAM}.tests",
            f"{runs:g} tests, counted with repeat, of {seconds:g} s each may take"
            f" {runs * seconds:g} s; the limit is {most:g} s: send fewer tests, or lower"
            " limits.seconds",
        )


def prepare(profile: Profile, problem: Problem) -> None:
    """Parse the check; a mistake is an ApiError that names the field. May take long: it compiles.

    The name of a problem is made by the server and means nothing to the client.
    """
    try:
        profile.prepare(problem)
    except UsageError as error:
        raise named_error(error) from error


def named_error(error: UsageError) -> ApiError:
    """The mistake in a check as an error that names its field."""
    match = _PLACE.fullmatch(str(error))
    return wrong(PARAM, str(error)) if match is None else wrong(f"grv.{match[1]}", match[2])
