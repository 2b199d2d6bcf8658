"""Runs the tests of a repository. It is a program in the jail, and imports nothing of grv.

It reads one line of JSON from standard input: what to run, and a secret. It takes both from there,
and reports each test on the standard error that it was started with: a line with a number, hex
digits, and a code that needs the secret. Code of a candidate is first loaded afterwards. It finds
neither the secret nor the place where reports go in files, variables or arguments.

`pytest` and `unittest` run candidates in their own process, and such a candidate may look for the
secret in this process's memory, or change what is reported. Why that is not enough is in
results.py and control.py. A command of another runner is a process apart.
"""

from __future__ import annotations

import builtins
import functools
import hashlib
import json
import os
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

MARK = "grv-report"
_MOST_TEXT = 1000  # bytes about one failure
_PIECE = 1500  # bytes of a file in one report: a report is one write, which no other one divides
_LARGEST = 4 << 20  # bytes of a file of results
# Modules that run tests, or that tests compare with.
_MACHINERY = (
    "unittest",
    "pytest",
    "_pytest",
    "pluggy",
    "mock",
    "hypothesis",
    "doctest",
    "builtins",
    "math",
    "operator",
    "numpy.testing",
    "pandas._testing",
)
# Programs may add others, and replace some of them for reasons of their own.
_BUILTINS = frozenset(vars(builtins)) - {"__import__", "open", "print", "input"}
Send = Callable[..., None]


def channel(secret: bytes) -> Send:
    """A function that sends a report: texts, which the judge gets in order.

    It keeps all that it calls in variables of its own. What a candidate puts in place of functions
    of a module does not change what is sent.
    """
    place = os.dup(2)
    write = os.write
    code_of = hashlib.blake2b
    number = 0

    def send(*texts: str) -> None:
        nonlocal number
        parts = [text.encode("utf-8", "backslashreplace").hex() or "-" for text in texts]
        line = f"{number:d} {' '.join(parts)}"
        number += 1
        code = code_of(line.encode("ascii"), key=secret, digest_size=16).hexdigest()
        write(place, f"\n{MARK} {code} {line}\n".encode("ascii"))

    return send


def cut(text: str) -> str:
    """The end of a text."""
    return text.encode("utf-8", "replace")[-_MOST_TEXT:].decode("utf-8", "ignore")


def relocate(source: str, root: str) -> None:
    """Have packages that were installed from the repository come from the copy of it.

    `pip install --editable` writes the folder of the repository into `sys.path`, or into a finder.
    """
    if not source:
        return

    def moved(path: str) -> str:
        is_inside = path == source or path.startswith(source + os.sep)
        return root + path[len(source) :] if is_inside else path

    sys.path[:] = [moved(path) for path in sys.path]
    for name, module in list(sys.modules.items()):
        mapping = getattr(module, "MAPPING", None)
        if name.startswith("__editable__") and isinstance(mapping, dict):
            for package, path in mapping.items():
                mapping[package] = moved(path)


def changed_machinery(root: str, written: list[str]) -> Iterator[tuple[str, str]]:
    """What tests run with and files of the candidate have replaced, each with that file.

    `written` are the files that the candidate has made or changed, below `root`.
    """
    places = {os.path.join(root, path): path for path in written}

    def origin(value: Any) -> str:
        """The file of a function, or of the class of anything else; "" if it has none."""
        inner = value
        if isinstance(inner, (staticmethod, classmethod)):
            inner = inner.__func__
        elif isinstance(inner, property):
            inner = inner.fget
        elif isinstance(inner, functools.partial):
            inner = inner.func
        if isinstance(inner, types.FunctionType):
            return inner.__code__.co_filename
        kind = inner if isinstance(inner, type) else type(inner)
        return str(getattr(sys.modules.get(kind.__module__), "__file__", ""))

    def replaced(owner: str, values: dict[str, Any]) -> Iterator[tuple[str, str]]:
        for name, value in values.items():
            path = places.get(origin(value))
            if path is not None:
                yield f"{owner}.{name}", path

    def is_machinery(name: str) -> bool:
        return any(name == each or name.startswith(f"{each}.") for each in _MACHINERY)

    for name, module in list(sys.modules.items()):
        is_own = str(getattr(module, "__file__", "")).startswith(root + os.sep)
        if is_own or not is_machinery(name):
            continue
        parts = dict(vars(module))
        if module is builtins:
            parts = {part: parts[part] for part in _BUILTINS & parts.keys()}
        yield from replaced(name, parts)
        for part, value in parts.items():
            if isinstance(value, types.ModuleType):
                continue
            kind = value if isinstance(value, type) else type(value)
            if is_machinery(kind.__module__) and hasattr(value, "__dict__"):
                yield from replaced(f"{name}.{part}", dict(vars(value)))


def report_machinery(job: dict[str, Any], send: Send) -> None:
    """Report what files of the candidate have replaced."""
    for name, path in changed_machinery(job["root"], job["written"]):
        send("replaced", name, path)


class Reporter:
    """A plugin of pytest that reports what was collected and how each test ended."""

    def __init__(self, send: Send, job: dict[str, Any]) -> None:
        self._send = send
        self._job = job
        self._stops = job["stops"]
        self._required = frozenset(job["required"])
        self._session: Any = None

    def pytest_sessionstart(self, session: Any) -> None:
        """Note what can be stopped."""
        self._session = session

    def pytest_collectreport(self, report: Any) -> None:
        """Report what could not be collected."""
        if report.failed:
            self._send("broken", report.nodeid, cut(str(report.longrepr)))

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Report one part of a test: it passed only if all parts did."""
        outcome = report.outcome
        if hasattr(report, "wasxfail"):
            outcome = "expected" if outcome in ("skipped", "passed") else outcome
        if report.when != "call" and outcome == "passed":
            self._send("seconds", report.nodeid, f"{report.duration:.6f}")
            return
        text = cut(str(report.longrepr)) if report.failed else ""
        self._send("test", report.nodeid, outcome, f"{report.duration:.6f}", text)
        decides = not self._required or report.nodeid in self._required
        if self._stops and outcome == "failed" and decides:
            self._session.shouldfail = "a test that must pass has failed"

    def pytest_sessionfinish(self, session: Any, exitstatus: Any) -> None:
        """Report that all tests have ended."""
        report_machinery(self._job, self._send)
        self._send("finished", f"{int(exitstatus):d}")


def run_pytest(job: dict[str, Any], send: Send) -> None:
    """Run tests with pytest."""
    try:
        import pytest
    except ImportError as error:
        send("missing", f"{sys.executable}: {error}")
        return
    relocate(job["source"], job["root"])
    sys.path.insert(0, job["root"])
    arguments = [
        "-p",
        "no:cacheprovider",
        "-p",
        "no:randomly",
        f"--rootdir={job['root']}",
        *job["arguments"],
    ]
    if job["required"] or not job["stops"]:
        arguments.append("--continue-on-collection-errors")
    sys.argv = ["pytest", *arguments, *job["tests"]]
    reporter = Reporter(send, job)
    send("started", "pytest", pytest.__version__)
    pytest.main([*arguments, *job["tests"]], plugins=[reporter])


def run_unittest(job: dict[str, Any], send: Send) -> None:
    """Run tests with unittest."""
    import importlib
    import time
    import unittest

    relocate(job["source"], job["root"])
    sys.path.insert(0, job["root"])
    files: dict[str, str] = {}

    class Result(unittest.TestResult):
        """Reports each test when it has ended."""

        _started = 0.0
        _outcome = ""
        _text = ""

        def startTest(self, test: unittest.TestCase) -> None:
            super().startTest(test)
            self._started = time.monotonic()
            self._outcome = ""
            self._text = ""

        def stopTest(self, test: unittest.TestCase) -> None:
            super().stopTest(test)
            name = files.get(type(test).__module__) or _file_of(test, job["root"])
            seconds = f"{time.monotonic() - self._started:.6f}"
            send("test", f"{name}::{test.id()}", self._outcome or "failed", seconds, self._text)

        def _end(self, outcome: str, error: Any = None) -> None:
            if self._outcome != "failed":
                self._outcome = outcome
                self._text = "" if error is None else cut(f"{error[0].__name__}: {error[1]}")

        def addSuccess(self, test: unittest.TestCase) -> None:
            self._end("passed")

        def addSkip(self, test: unittest.TestCase, reason: str) -> None:
            self._end("skipped")

        def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:
            self._end("expected")

        def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
            self._end("failed")

        def addError(self, test: Any, err: Any) -> None:
            if isinstance(test, unittest.TestCase):
                self._end("failed", err)
            else:  # of a class or a module
                send("broken", str(test), cut(f"{err[0].__name__}: {err[1]}"))

        def addFailure(self, test: unittest.TestCase, err: Any) -> None:
            self._end("failed", err)

        def addSubTest(self, test: unittest.TestCase, subtest: Any, err: Any) -> None:
            if err is not None:
                self._end("failed", err)

    loader = unittest.TestLoader()
    suites = []
    send("started", "unittest", "")
    for path in job["tests"]:
        file, _, name = path.partition("::")
        module = _module(job["root"], file)
        try:
            importlib.import_module(module)
            suites.append(loader.loadTestsFromName(f"{module}.{name}" if name else module))
        except BaseException as error:
            send("broken", file, cut(f"{type(error).__name__}: {error}"))
            if not isinstance(error, Exception):
                raise
        files[module] = file
    if not job["tests"]:
        suites.append(_suite(loader, job["arguments"], job["root"]))
    result = Result()
    result.failfast = job["stops"] and not job["required"]
    for suite in suites:
        if not result.shouldStop:
            suite.run(result)
    report_machinery(job, send)
    send("finished", "0")


def _file_of(test: Any, root: str) -> str:
    """The file of a test, from the repository; "" if it is not in there."""
    place = getattr(sys.modules.get(type(test).__module__), "__file__", None) or ""
    return place[len(root) + 1 :] if place.startswith(root + os.sep) else ""


def _suite(loader: Any, arguments: list[str], root: str) -> Any:
    """The tests that the arguments of `python -m unittest` name; without any, all."""
    import argparse

    names = [part for part in arguments if not part.startswith("-")]
    if names and names[0] != "discover":
        return loader.loadTestsFromNames(
            [part.removesuffix(".py").replace("/", ".") for part in names]
        )
    parser = argparse.ArgumentParser()
    parser.add_argument("-s", "--start-directory", default=".")
    parser.add_argument("-p", "--pattern", default="test*.py")
    parser.add_argument("-t", "--top-level-directory", default=None)
    parser.add_argument("places", nargs="*")
    given, _ = parser.parse_known_args([part for part in arguments if part != "discover"])
    start, pattern, top = (*given.places, None, None, None)[:3]
    return loader.discover(
        os.path.join(root, start or given.start_directory),
        pattern or given.pattern,
        top or given.top_level_directory,
    )


def _module(root: str, file: str) -> str:
    """The name under which a file is imported; its folder is put on the path if it needs that."""
    parts = file.removesuffix(".py").split("/")
    packages = 0
    while packages < len(parts) - 1:
        folder = os.path.join(root, *parts[: len(parts) - 1 - packages])
        if not os.path.exists(os.path.join(folder, "__init__.py")):
            break
        packages += 1
    top = len(parts) - 1 - packages
    if top:
        sys.path.insert(0, os.path.join(root, *parts[:top]))
    return ".".join(parts[top:])


def run_command(job: dict[str, Any], send: Send) -> None:
    """Run a command, then report how it ended and the file of results that it wrote."""
    send("started", "command", "")
    try:
        done = subprocess.run(job["argv"], cwd=job["root"], stdin=subprocess.DEVNULL, check=False)
    except OSError as error:
        send("missing", f"{job['argv'][0]}: {error.strerror}")
        return
    for piece in _content(job["results"]):
        send("results", piece)
    send("finished", f"{done.returncode:d}")


def _content(path: str) -> Iterator[str]:
    if not path:
        return
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            content = file.read(_LARGEST)
    except OSError:
        return
    for start in range(0, len(content), _PIECE):
        yield content[start : start + _PIECE].hex()


def main() -> None:
    """Read the order, close where it came from, run the tests."""
    with open(0, "rb", closefd=False) as given:
        job = json.loads(given.read())
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    send = channel(bytes.fromhex(job.pop("secret")))
    sys.path[:] = [path for path in sys.path if path]
    {"pytest": run_pytest, "unittest": run_unittest}.get(job["runner"], run_command)(job, send)


if __name__ == "__main__":
    main()
