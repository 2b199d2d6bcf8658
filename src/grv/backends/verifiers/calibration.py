"""Checks that err: what is known about their errors, and whether they may decide a search.

The field `errors` of a check says how often one call errs, or the field `calibration` names the
file that `grv calibrate` writes. A calibration holds for one check, one model and one grading
prompt. It is bound to them by checksums, and is refused for any other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...core.errors import UsageError
from ...files import is_number, parse_json, shown
from ...text import checksum
from ...theory.confirmations import Errors
from ..protocols import Problem

FORMAT = "grv calibration 1"
LEAST_AGREEMENT = 0.85  # with the gold labels, before a check may decide alone
_LARGEST = 100_000  # bytes of a calibration
PERSISTENT = 0.2  # from this correlation on, asking again does not help


@dataclass(frozen=True, slots=True)
class Rate:
    """A measured probability, its interval of 95 %, and the number of candidates behind it."""

    mean: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, data: object, name: str) -> Rate:
        """The rate in a file; a UsageError names what is wrong."""
        if not isinstance(data, Mapping):
            raise UsageError(f"{name} must be a record, not {shown(data)}")
        values = [data.get(field) for field in ("mean", "low", "high")]
        count = data.get("n")
        is_count = isinstance(count, int) and not isinstance(count, bool) and count >= 0
        if not all(is_number(value) and 0 <= value <= 1 for value in values) or not is_count:
            raise UsageError(f"{name} needs mean, low, high (from 0 to 1) and n")
        mean, low, high = (float(value) for value in values if value is not None)
        if not low <= mean <= high:
            raise UsageError(f"{name}: its mean {mean:g} is outside of {low:g} to {high:g}")
        assert isinstance(count, int)
        return cls(mean, low, high, count)


@dataclass(frozen=True, slots=True)
class Bias:
    """A measured difference of two rates, its interval of 95 %, and the number of candidates."""

    mean: float
    low: float
    high: float
    n: int

    @property
    def is_certain(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low > 0 or self.high < 0

    @classmethod
    def of(cls, data: object, name: str) -> Bias:
        """The bias in a file; a UsageError names what is wrong."""
        match data:
            case {"mean": mean, "low": low, "high": high, "n": int(n)}:
                if all(is_number(each) for each in (mean, low, high)):
                    return cls(float(mean), float(low), float(high), n)
        raise UsageError(f"{name} needs mean, low, high and n")


@dataclass(frozen=True, slots=True)
class PanelMember:
    """The errors of one model of a panel alone."""

    model: str
    false_pass: Rate
    false_fail: Rate

    @classmethod
    def of(cls, data: object) -> PanelMember:
        """The member in a file; a UsageError names what is wrong."""
        if not isinstance(data, Mapping) or not isinstance(data.get("model"), str):
            raise UsageError("members must be records with a model")
        return cls(
            data["model"],
            Rate.of(data.get("false_pass"), "members: false_pass"),
            Rate.of(data.get("false_fail"), "members: false_fail"),
        )


@dataclass(frozen=True, slots=True)
class Binding:
    """What a calibration holds for; the fields are those of `Calibration`."""

    check: str
    model: str
    prompt_sha256: str


# The fields of a judge's record that are the same for all problems. Of other checks, only the kind
# is: their tests and answers differ from problem to problem.
_COMMON = ("kind", "model", "votes", "url", "temperature", "rubric")


def binding(problem: Problem) -> Binding:
    """What a calibration of a problem's check holds for."""
    from .judge import PROMPT_SHA256

    record = problem.check
    if record.get("kind") != "judge":
        return Binding(checksum(json.dumps([str(record.get("kind"))])), "", "")
    common = {name: record[name] for name in _COMMON if name in record}
    model = record.get("model")
    models = model if isinstance(model, list) else [model]
    text = json.dumps(common, sort_keys=True)
    return Binding(checksum(text), ", ".join(map(str, models)), PROMPT_SHA256)


@dataclass(frozen=True, slots=True)
class Calibration:
    """The errors of one check.

    Attributes:
        check: a checksum of the check's record, without what differs between problems.
        model: the model that judges; empty if none does.
        prompt_sha256: the checksum of the grading prompt; empty if there is none.
        false_pass: how often one call passes a wrong candidate.
        false_fail: how often one call fails a right candidate.
        agreement: how often one call agrees with the gold label; None without gold labels.
        persistent: the correlation of two calls' errors on one candidate, from 0 to 1. At 1 the
            same candidate is judged wrong every time. None if each candidate was judged once.
        length_bias: the difference in mean length, in standard deviations, between candidates that
            it passed wrongly and those that it failed rightly; None if there are too few.
        position_bias: how much more often a candidate passes if "pass" is named before "fail"; None
            if it was not measured.
        members: the models of a panel alone. The rates above are those of their votes together, as
            measured: models err on the same candidates.
    """

    check: str
    model: str
    prompt_sha256: str
    false_pass: Rate
    false_fail: Rate
    agreement: Rate | None
    persistent: float | None
    length_bias: float | None = None
    position_bias: Bias | None = None
    members: tuple[PanelMember, ...] = ()

    @property
    def errors(self) -> Errors:
        """The errors to assume: the upper ends of the intervals."""
        return Errors(self.false_pass.high, self.false_fail.high)

    @property
    def is_persistent(self) -> bool:
        """Whether another call on the same candidate repeats its errors, as far as is known."""
        return self.persistent is None or self.persistent >= PERSISTENT

    def why_not_alone(self, least: float = LEAST_AGREEMENT) -> str:
        """Why the check may not decide alone; empty if it may."""
        if self.agreement is None and self.model:
            return "a judge needs gold labels: without them, errors that persist are not seen"
        if self.agreement is not None and self.agreement.low < least:
            shown = f"{self.agreement.low:.0%}"
            return f"it may agree with the gold labels in {shown} only; {least:.0%} are needed"
        if self.false_pass.high + self.false_fail.high >= 1:
            return "its errors may be so frequent that its verdict says nothing"
        if self.is_persistent:
            return "its errors persist: asking again gives the same wrong verdict"
        return ""

    def to_text(self) -> str:
        """The file."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=2) + "\n"

    @classmethod
    def of(cls, data: object) -> Calibration:
        """The calibration in a file's data; a UsageError says what is wrong."""
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            raise UsageError("this is no calibration of grv calibrate")
        texts = {name: data.get(name) for name in ("check", "model", "prompt_sha256")}
        for name, text in texts.items():
            if not isinstance(text, str):
                raise UsageError(f"{name} must be a string, not {shown(text)}")
        numbers: dict[str, float | None] = {}
        for name in ("persistent", "length_bias"):
            value: Any = data.get(name)
            if value is not None and not is_number(value):
                raise UsageError(f"{name} must be a number or null, not {shown(value)}")
            numbers[name] = value
        agreement = data.get("agreement")
        position = data.get("position_bias")
        members = data.get("members", [])
        if not isinstance(members, list):
            raise UsageError(f"members must be a list, not {shown(members)}")
        return cls(
            str(texts["check"]),
            str(texts["model"]),
            str(texts["prompt_sha256"]),
            Rate.of(data.get("false_pass"), "false_pass"),
            Rate.of(data.get("false_fail"), "false_fail"),
            None if agreement is None else Rate.of(agreement, "agreement"),
            numbers["persistent"],
            numbers["length_bias"],
            None if position is None else Bias.of(position, "position_bias"),
            tuple(map(PanelMember.of, members)),
        )

    @classmethod
    def read(cls, path: str) -> Calibration:
        """The calibration in a file; a UsageError names the file."""
        try:
            return cls.of(parse_json(Path(path).read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise UsageError(f"{path}: {error}") from None
        except UsageError as error:
            raise UsageError(f"{path}: {error}") from None

    @property
    def erring(self) -> Erring:
        """What a search needs to know of it."""
        why = self.why_not_alone()
        return Erring(None if why else self.errors, why)

    def refuse_other(self, given_for: Binding) -> None:
        """Refuse a check, a model or a grading prompt that was not calibrated."""
        pairs = {
            "model": (self.model, given_for.model),
            "grading prompt": (self.prompt_sha256, given_for.prompt_sha256),
            "check": (self.check, given_for.check),
        }
        for name, (known, given) in pairs.items():
            if known != given:
                told = f" ({known} was, {given} was not)" if name == "model" else ""
                raise UsageError(
                    f"the calibration is for another {name}{told}; run grv calibrate again"
                )


FIELDS = ("errors", "calibration")  # of the record of any check
_ADVICE = (
    'measure it with grv calibrate, or put a surer check behind it: {"kind": "first", "checks":'
    " [THIS CHECK, A SURER ONE]}"
)


@dataclass(frozen=True, slots=True)
class Erring:
    """That a check errs.

    Attributes:
        errors: how often one call errs; None if it may not decide a search.
        why_not: why it may not; empty if it may.
    """

    errors: Errors | None
    why_not: str = ""

    def refuse(self, place: str) -> None:
        """Raise a UsageError if the check may not decide a search."""
        if self.why_not:
            raise UsageError(f"{place}: it may not decide alone: {self.why_not}; {_ADVICE}")


def erring_of(problem: Problem) -> Erring | None:
    """What the record of a problem's check says about its errors; None if it does not err.

    Raises:
        UsageError: a field is wrong, or the calibration is for another check.
    """
    record = problem.check
    is_judge = record.get("kind") == "judge"
    if "errors" in record and "calibration" in record:
        raise UsageError("give errors or a calibration, not both")
    if any(name in record for name in FIELDS) and record.get("repeat", 1) != 1:
        raise UsageError("repeat does not go with errors: they say how often to repeat")
    if "calibration" in record:
        path = record["calibration"]
        if not isinstance(path, str):
            raise UsageError(f"calibration must be the name of a file, not {shown(path)}")
        _check_named(path)
        calibration = Calibration.read(path)
        calibration.refuse_other(binding(problem))
        return calibration.erring
    if "errors" in record:
        if is_judge and not record.get("temperature"):
            why = "at temperature 0 it repeats its verdict, so asking again does not help"
            return Erring(None, f"{why}; give a temperature")
        return Erring(_errors(record["errors"]))
    return Erring(None, "nobody knows how often it errs") if is_judge else None


def _check_named(path: str) -> None:
    """Refuse a file that a file of problems may not name: it comes from anywhere."""
    here = Path.cwd().resolve()
    named = (here / path).resolve()
    if Path(path).is_absolute() or not named.is_relative_to(here):
        raise UsageError("calibration must name a file below the current folder")
    if not named.is_file() or named.stat().st_size > _LARGEST:
        raise UsageError(f"{path}: there is no calibration of at most {_LARGEST:,} bytes")


def _errors(given: object) -> Errors:
    if not isinstance(given, Mapping) or not given:
        raise UsageError(f"errors must be a record with false_pass, not {shown(given)}")
    for name, value in given.items():
        if name not in ("false_pass", "false_fail"):
            raise UsageError(f"errors.{name}: no such field; there are false_pass, false_fail")
        if not is_number(value):
            raise UsageError(f"errors.{name} must be a number, not {shown(value)}")
    return Errors(float(given.get("false_pass", 0.0)), float(given.get("false_fail", 0.0)))
