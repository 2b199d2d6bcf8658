"""Reads what `inside.py` reports, and what other runners print. No report is believed by itself.

A report counts if it has the code of the secret and the number that comes next. So a candidate that
prints reports, writes files of results, ends the process with exit code 0, or leaves something for
the end of the process, changes nothing: a test that is not reported has failed, and so has a run
that does not report its end.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from .inside import MARK
from .protection import test_file

WHOLE = "all tests"  # the name of a run that does not tell its tests
_LINE = re.compile(rb"^%s ([0-9a-f]{32}) (\d{1,9} [0-9a-f -]*)$" % MARK.encode(), re.MULTILINE)
_MOST_TESTS = 200_000
_CARGO = re.compile(
    r"^test (?P<name>\S+)(?: - should panic)? \.\.\. (?P<end>ok|FAILED|ignored)", re.M
)
_CARGO_SUITE = re.compile(r"^\s*(?:Running|Doc-tests) (?P<name>.+?)(?: \(.*\))?$", re.M)
_GO_ENDS = {"pass": "passed", "fail": "failed", "skip": "skipped"}


@dataclass(frozen=True, slots=True)
class TestEnd:
    """How one test ended: "passed", "failed", "skipped", "expected" (a failure) or "unfinished"."""

    outcome: str
    seconds: float = 0.0
    text: str = ""


@dataclass
class Results:
    """What one run of the tests has shown.

    Attributes:
        started: whether the runner started, before it loaded the code that it tests.
        finished: its exit code; None if it did not get to its end.
        missing: what the machine lacks; "" if nothing.
        tests: the tests by name.
        broken: files that could not be loaded, with the reason.
        written: the file of results.
        replaced: what tests run with that the candidate has replaced, with its file.
    """

    started: bool = False
    finished: int | None = None
    missing: str = ""
    tests: dict[str, TestEnd] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    written: bytes = b""
    replaced: dict[str, str] = field(default_factory=dict)

    def of_file(self, file: str) -> Results:
        """The part that is about one file of tests."""
        return replace(
            self,
            tests={name: end for name, end in self.tests.items() if test_file(name) == file},
            broken={name: text for name, text in self.broken.items() if test_file(name) == file},
        )

    def seconds_by_file(self) -> dict[str, float]:
        """How long the tests of each file took, in the order in which they ran."""
        found: dict[str, float] = {}
        for name, end in self.tests.items():
            file = test_file(name)
            found[file] = found.get(file, 0.0) + end.seconds
        return found


def reports(printed: bytes, secret: bytes) -> Iterator[list[str]]:
    """The reports in what a run printed, in order, up to the first that is missing."""
    number = 0
    for match in _LINE.finditer(printed):
        code, line = match.groups()
        expected = hashlib.blake2b(line, key=secret, digest_size=16).hexdigest()
        first, *parts = line.split(b" ")
        if int(first) != number or not hmac.compare_digest(expected.encode(), code):
            continue
        number += 1
        yield [_text(part) for part in parts]


def _text(part: bytes) -> str:
    return "" if part == b"-" else bytes.fromhex(part.decode()).decode("utf-8", "replace")


def read_reports(printed: bytes, secret: bytes) -> Results:
    """The results in what a run printed."""
    results = Results()
    for report in reports(printed, secret):
        match report:
            case ["started", *_]:
                results.started = True
            case ["missing", text]:
                results.missing = text
            case ["broken", name, text]:
                results.broken[name] = text
            case ["seconds", name, seconds]:
                _add(results.tests, name, TestEnd("", float(seconds)))
            case ["test", name, outcome, seconds, text]:
                _add(results.tests, name, TestEnd(outcome, float(seconds), text))
            case ["results", piece]:
                results.written += bytes.fromhex(piece)
            case ["replaced", name, path]:
                results.replaced[name] = path
            case ["finished", code]:
                results.finished = int(code)
    results.tests = {
        name: end if end.outcome else replace(end, outcome="unfinished")
        for name, end in results.tests.items()
    }
    return results


def _add(tests: dict[str, TestEnd], name: str, end: TestEnd) -> None:
    """Add a part of a test; the worst part counts, and a test that is run twice must pass twice."""
    known = tests.get(name)
    if known is None:
        if len(tests) < _MOST_TESTS:
            tests[name] = end
        return
    order = ("", "passed", "expected", "skipped", "failed")
    worst = max((known, end), key=lambda each: order.index(each.outcome))
    tests[name] = replace(worst, seconds=known.seconds + end.seconds)


def read_go(printed: str) -> dict[str, TestEnd]:
    """The tests in what `go test -json` prints, as PACKAGE::TEST."""
    found: dict[str, TestEnd] = {}
    for line in printed.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        match event:
            case {"Action": "pass" | "fail" | "skip" as action, "Package": str(package)}:
                name = f"{package}::{event.get('Test', WHOLE)}"
                elapsed = event.get("Elapsed", 0.0)
                seconds = elapsed if isinstance(elapsed, int | float) else 0.0
                _add(found, name, TestEnd(_GO_ENDS[action], seconds if "Test" in event else 0.0))
    return found


def read_cargo(printed: str) -> dict[str, TestEnd]:
    """The tests in what `cargo test` prints, as SUITE::TEST."""
    ends = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}
    found: dict[str, TestEnd] = {}
    suite = ""
    for line in printed.splitlines():
        if start := _CARGO_SUITE.match(line):
            suite = start["name"]
        elif test := _CARGO.match(line):
            _add(found, f"{suite}::{test['name']}", TestEnd(ends[test["end"]]))
    return found


def read_junit(content: bytes) -> Mapping[str, TestEnd] | None:
    """The tests of a JUnit file, as CLASS.NAME; None if it is none."""
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        return None
    try:
        root = ElementTree.fromstring(content)
    except (ElementTree.ParseError, ValueError, RecursionError):
        return None
    found: dict[str, TestEnd] = {}
    for case in root.iter("testcase"):
        group = case.get("classname", "")
        name = f"{group}.{case.get('name', '')}" if group else case.get("name", "")
        outcome = "passed"
        text = ""
        for child in case:
            if child.tag in ("failure", "error"):
                outcome = "failed"
                text = (child.get("message") or child.text or "")[:1000]
            elif child.tag == "skipped" and outcome == "passed":
                outcome = "skipped"
        try:
            seconds = max(0.0, float(case.get("time", "0").replace(",", "")))
        except ValueError:
            seconds = 0.0
        _add(found, name, TestEnd(outcome, seconds, text))
    return found
