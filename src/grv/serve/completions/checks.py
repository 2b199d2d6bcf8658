"""Checks of requests: only data, within the limits of the server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ...backends.protocols import Problem
from ...backends.sandbox.limits import RunLimits
from ...backends.verifiers.calibration import FIELDS as ERROR_FIELDS
from ...backends.verifiers.checks import DATA_KINDS, KINDS, MEMBER_COST, records_in
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
_USUAL_VARIANTS = 25  # of the data of a query, if its check does not say
_OTHER_RUNS = 6.0  # of a query on no variant, or of the programs that check a proof
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
    """Refuse a check of a client that is more than data, or may use more than is allowed.

    What holds for one check holds for all checks of a group together.
    """
    whole, *members = records_in(given)
    for record in (whole, *members):
        _check_kind(record)
        _check_limits(record, allowed)
    seconds = _seconds(whole, allowed.seconds)  # those of a group hold for its checks
    work = [_work(record, seconds) for record in members or [whole]]
    times = _repeat(whole) if members else 1.0
    tests = times * sum(each.tests for each in work)
    taken = times * sum(each.runs * each.seconds for each in work)
    place = f"{PARAM}.checks" if members else f"{PARAM}.tests"
    if tests > _MOST_TESTS:
        problem = f"must have at most {_MOST_TESTS} tests, counted with repeat, not {tests:g}"
        raise wrong(place, problem)
    most = max(_MOST_SECONDS, allowed.seconds)  # one test may always take its limit
    if taken > most:
        many = f"{tests:g} tests, counted with repeat,"
        many += f" of {work[0].seconds:g} s each" if not members else " and what else is run"
        few = "send fewer tests, or lower limits.seconds"
        problem = f"{many} may take {taken:g} s; the limit is {most:g} s: {few}"
        raise wrong(place, problem)


@dataclass(frozen=True)
class _Work:
    """What one verification by a check may do: its tests, and runs of so many seconds."""

    tests: float
    runs: float
    seconds: float


def _work(check: Mapping[str, Any], seconds: float) -> _Work:
    """The work of a check; `seconds` is the limit of a run if the check sets none."""
    repeat = _repeat(check)
    tests = check.get("tests")
    count = repeat * len(tests) if isinstance(tests, list) else 0.0
    variants = check.get("variants", _USUAL_VARIANTS)
    match check.get("kind"):
        case "sql":
            runs = repeat * (variants if is_number(variants) else 0.0) + _OTHER_RUNS
        case "proof":
            runs = repeat * _OTHER_RUNS
        case _:
            runs = count or repeat
    return _Work(count, runs, _seconds(check, seconds))


def _repeat(check: Mapping[str, Any]) -> float:
    repeat = check.get("repeat", 1)
    return max(1.0, repeat) if is_number(repeat) else 1.0


def _seconds(check: Mapping[str, Any], default: float) -> float:
    given = check.get("limits")
    value = given.get("seconds") if isinstance(given, Mapping) else None
    return float(value) if is_number(value) else default


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
    own = KINDS[kind].not_for_guests if isinstance(kind, str) else ()
    for name in (*ERROR_FIELDS, MEMBER_COST, *own):
        if name in check:
            why = "is only for checks of the server: it names a program or a file, or trusts them"
            if name == MEMBER_COST:
                why = "is only for checks of the server: what a check costs is billed"
            raise wrong(f"{PARAM}.{name}", why)


def _check_limits(check: Mapping[str, Any], allowed: RunLimits) -> None:
    """Refuse limits above those of the server. Mistakes of other kinds are found later."""
    if len(check) > _MOST_FIELDS:
        raise wrong(PARAM, f"must have at most {_MOST_FIELDS} fields, not {len(check)}")
    repeat = check.get("repeat", 1)
    if is_number(repeat) and repeat > _MOST_REPEATS:
        raise wrong(f"{PARAM}.repeat", f"must be at most {_MOST_REPEATS}, not {shown(repeat)}")
    given = check.get("limits", {})
    for each in fields(RunLimits):
        value = given.get(each.name) if isinstance(given, Mapping) else None
        most = getattr(allowed, each.name)
        if each.name == "cpu_seconds" and most is None:
            most = allowed.seconds
        if is_number(value) and value > most:
            raise wrong(f"{PARAM}.limits.{each.name}", f"must be at most {most:g}, not {value:g}")


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
