"""Parses the `"check"` record of a problem. To add a kind of check, add an entry to `KINDS`.

Every mistake in a record is a UsageError of one line that names the problem and the field.
"""

from __future__ import annotations

import abc
import importlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from ...conditions import Conditions
from ...core.errors import UsageError
from ...core.values import Verdict
from ...files import parse_json, shown
from ...options import did_you_mean, misspelt
from ...plugins import load_check
from ...text import checksum
from ..http.web import shown as shown_address
from ..protocols import Finding, Problem
from ..sandbox.limits import Isolation, RunLimits
from .calibration import FIELDS as ERROR_FIELDS
from .calibration import Erring, erring_of
from .programs.checks import (
    AssertsCheck,
    FunctionCheck,
    FunctionTest,
    ProgramCheck,
    StdinCheck,
    StdinTest,
)
from .programs.published import PUBLISHED, PublishedCheck, PublishedTest
from .programs.syntax import LARGEST, parser_lock
from .suite import Suite, TestOrder
from .worker_pair import WorkerPair

if TYPE_CHECKING:
    from .judge_prices import JudgePrices, RequestPrice
    from .languages.completing import Completion
    from .run import Checker, OwnCommands

_MOST_REPEATS = 100
_LONGEST_NAME = 100  # of a file
_TOLERANCES = ("tolerance", "absolute_tolerance")
_LABELS = "labels"  # a field of the kinds that have a published harness

# The fields of the kinds whose candidates are programs.
_STDIN = ("tests", *_TOLERANCES, "prompt")
_FUNCTION = ("entry_point", *_STDIN)
_ASSERTS = ("entry_point", "test", "prompt", "in_place", "objects")
_AROUND = ("prefix", "suffix", "stop")
_RUN = ("language", "source", "build", "run", "tests", *_TOLERANCES, "checker", *_AROUND)


# The version of the judge. Raise it when a candidate may get another verdict, key or refutation
# than before: when programs are read, run or compared in another way, or answers in mathematics.
# Recorded verdicts of another version then no longer answer, and keys are made again.
JUDGE = 6
_PUBLISHED_JUDGE = 1000 + JUDGE  # with other keys: `"labels": "published"`


class WholeTextCheck(abc.ABC):
    """A check of a candidate's text as a whole, with or without a sandbox.

    Attributes:
        judged_by: the version of the judge; 0 if others judge: a command, a server, a person.
        is_jailed: whether it runs something of the candidate in the sandbox.
        is_limited: whether the limits of the record or of the user apply.
    """

    judged_by: ClassVar[int] = JUDGE
    is_jailed: ClassVar[bool] = False
    is_limited: ClassVar[bool] = False

    @abc.abstractmethod
    def judge(self, text: str, pair: WorkerPair, seed: int = 0) -> Finding:
        """The finding on a candidate's text."""

    def key(self, text: str) -> str | None:
        """Texts with equal keys fail together; None is in no class."""
        return f"text:{checksum(text)}"

    def identity(self, text: str) -> str:
        """A checksum of the whole text. A pass holds for texts with the same identity."""
        return checksum(text)

    def reading(self, text: str, verdict: Verdict) -> dict[str, str]:
        """How a text was read, as evidence. A text that is compared as a whole needs none."""
        return {}

    def refutation(self, text: str) -> str | None:
        """Why a text certainly fails, without verification; None if it may pass."""
        return None

    def failure(self, text: str) -> str | None:
        """Why a text fails, as far as a moment's work can tell; None if it may pass.

        It refutes for free in front of another check.
        """
        return self.refutation(text)

    @property
    def erring(self) -> Erring | None:
        """That it errs, if it consists of checks that do."""
        return None

    def suites(self) -> Iterator[Suite]:
        """What orders its tests, if there are several; those of the checks in it too."""
        suite = getattr(self, "suite", None)
        if isinstance(suite, Suite):
            yield suite

    def content(self) -> str:
        """A checksum of the files that the check uses; "" if it uses none."""
        return ""

    def conditions(self, digest: str, isolation: Isolation) -> Conditions:
        """The conditions of verdicts now; `digest` is a checksum of the record."""
        content = self.content()
        whole = checksum(f"{digest} {content}") if content else digest
        return Conditions(whole, self.judged_by, isolation.level if self.is_jailed else "")

    def worst_seconds(self) -> float:
        """How long one verification runs in the sandbox if it takes all its time."""
        return 0.0

    def priced(self, prices: JudgePrices) -> Self:
        """The same check; if it asks models, its findings say what that cost."""
        return self

    def at_gym(self, address: str | None) -> Self:
        """The same check; if it asks a resources server, with the one of the operator."""
        return self

    def dollars(self, price: RequestPrice, answer: int) -> float | None:
        """What one call costs besides this machine, given the bytes of the answer in a request.

        None if that is unknown.
        """
        return 0.0


class TextCheck(WholeTextCheck):
    """A check that needs no sandbox."""

    @abc.abstractmethod
    def compare(self, text: str) -> Finding:
        """The finding on a candidate's text. May be called from any thread."""

    def judge(self, text: str, pair: WorkerPair, seed: int = 0) -> Finding:
        """The finding on a candidate's text."""
        return self.compare(text)


Judging = ProgramCheck | WholeTextCheck


@dataclass(frozen=True)
class Check:
    """How the candidates of one problem are verified.

    Attributes:
        how: judges a candidate's text.
        repeat: the number of verifications of a candidate; it must pass each of them.
        digest: a checksum of the record, with the limits if it runs programs.
        erring: that its verdicts may be wrong; None if they are taken to be right.
    """

    how: Judging
    repeat: int
    digest: str
    erring: Erring | None = None

    def conditions(self, isolation: Isolation) -> Conditions:
        """The conditions of verdicts now: files that a check names may have changed."""
        if isinstance(self.how, PublishedCheck):
            return Conditions(self.digest, _PUBLISHED_JUDGE, isolation.level)
        if isinstance(self.how, ProgramCheck):
            return Conditions(self.digest, JUDGE, isolation.level)
        return self.how.conditions(self.digest, isolation)


class _Record:
    """A record with its position, for messages: `problem p7, check.tests[3].input: ...`."""

    def __init__(self, data: Any, place: str) -> None:
        self.place = place
        if not isinstance(data, Mapping):
            raise self.wrong("", f"must be a record, not {shown(data)}")
        self.data = data

    def wrong(self, name: str, problem: str) -> UsageError:
        return UsageError(f"{self.place}{'.' if name else ''}{name}: {problem}")

    def text(self, name: str, default: str | None = None) -> str:
        value = self.data.get(name, default)
        if not isinstance(value, str):
            problem = "is missing" if value is None else f"must be a string, not {shown(value)}"
            raise self.wrong(name, problem)
        return value

    def name(self, name: str) -> str:
        value = self.text(name)
        if not value.isidentifier():
            raise self.wrong(name, f"must be a name, not {shown(value)}")
        return value

    def number(self, name: str, default: float) -> float:
        value = self.data.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
            raise self.wrong(name, f"must be a number and not negative, not {shown(value)}")
        return float(value)

    def flag(self, name: str, otherwise: bool = False) -> bool:
        value = self.data.get(name, otherwise)
        if not isinstance(value, bool):
            raise self.wrong(name, f"must be true or false, not {shown(value)}")
        return value

    def each(self, name: str) -> list[_Record]:
        values = self.data.get(name)
        if not isinstance(values, list) or not values:
            problem = "is missing" if values is None else "must be a list with at least one test"
            raise self.wrong(name, problem)
        return [_Record(v, f"{self.place}.{name}[{i}]") for i, v in enumerate(values)]

    def only(self, *names: str) -> None:
        """Refuse unknown fields, so that no misspelt limit is ignored."""
        for name in self.data:
            if name not in names:
                hint = did_you_mean(str(name), names) or f"; there are {', '.join(names)}"
                raise self.wrong(str(name), f"no such field{hint}")


def parse_check(
    problem: Problem,
    defaults: RunLimits | None = None,
    order_tests: TestOrder = TestOrder.LEARNED,
) -> Check:
    """The check of a problem.

    Args:
        problem: the problem, with the record of its check.
        defaults: the limits that the record does not set.
        order_tests: in which order its tests run.
    """
    record = _Record(problem.check, f"problem {problem.id}, check")
    if wrong := misspelt(record.data, ("kind",)):
        raise record.wrong("", wrong)
    kind = record.text("kind")
    found = _kind(record, kind)
    repeat = record.data.get("repeat", 1)
    if isinstance(repeat, bool) or not isinstance(repeat, int) or not 1 <= repeat <= _MOST_REPEATS:
        raise record.wrong("repeat", f"must be between 1 and {_MOST_REPEATS}, not {shown(repeat)}")
    limits = _limits(record, defaults or RunLimits())
    try:
        erring = erring_of(problem)
    except UsageError as error:
        raise record.wrong("", str(error)) from None
    bare = {name: value for name, value in record.data.items() if name not in ERROR_FIELDS}
    how = found.parse(_Record(bare, record.place), limits, problem)
    for suite in how.suites():
        suite.order_tests = order_tests
    if erring is None and isinstance(how, WholeTextCheck):
        erring = how.erring
    seen = "\n".join(getattr(problem, name) for name in found.reads)
    try:
        is_limited = isinstance(how, ProgramCheck) or how.is_limited
        used = repr(limits) if is_limited else ""  # others set their own limits
        text = json.dumps([dict(record.data), used, seen], sort_keys=True)
        text += "" if erring is None else repr(erring)
    except (TypeError, ValueError) as exc:
        raise record.wrong("", f"is not JSON data: {exc}") from None
    return Check(how, repeat, checksum(text), erring)


def _kind(record: _Record, name: str) -> CheckKind:
    """The kind of a check: one of ours, or a plugin that the operator allows."""
    if name in KINDS:
        return KINDS[name]
    try:
        code = load_check(name)
    except UsageError as error:
        raise record.wrong("kind", str(error)) from None
    if code is None:
        hint = did_you_mean(name, list(KINDS))
        raise record.wrong("kind", f"must be one of {', '.join(KINDS)}, not {shown(name)}{hint}")

    def parse(record: _Record, limits: RunLimits, problem: Problem) -> Judging:
        from .plugin import PluginCheck

        return PluginCheck.of(code, problem)

    return CheckKind(parse)


def runs_programs(kind: str) -> bool:
    """Whether the candidates of a kind are programs. Those of a plugin's are texts."""
    return kind in KINDS and KINDS[kind].runs_programs


def errs(problem: Problem) -> bool:
    """Whether the check of a problem errs, as far as its record says: its verdicts are judged."""
    return bool(problem.check) and parse_check(problem).erring is not None


def _limits(record: _Record, defaults: RunLimits) -> RunLimits:
    changes = record.data.get("limits", {})
    if not isinstance(changes, Mapping):
        raise record.wrong("limits", f"must be a record, not {shown(changes)}")
    if wrong := misspelt(changes, [each.name for each in fields(RunLimits)]):
        raise record.wrong("limits", wrong)
    try:
        return defaults.with_(changes)
    except ValueError as exc:
        raise record.wrong("limits", str(exc)) from None


def _stdin(record: _Record, limits: RunLimits, problem: Problem) -> ProgramCheck:
    if "labels" in record.data:
        return _published(record, limits)
    record.only("kind", *_STDIN, "limits", "repeat")
    tests = []
    for test in record.each("tests"):
        test.only("input", "output")
        tests.append(StdinTest(test.text("input"), test.text("output")))
    return StdinCheck(
        tuple(tests),
        limits,
        record.number("tolerance", 1e-6),
        record.text("prompt", ""),
        record.number("absolute_tolerance", 0.0),
    )


def _run(record: _Record, limits: RunLimits, problem: Problem) -> Judging:
    from .run import RunCheck, RunTest

    record.only("kind", *_RUN, "limits", "repeat")
    own = None
    if "run" in record.data:
        own = _own_commands(record)
    elif "build" in record.data or "source" in record.data:
        raise record.wrong("run", "is missing; build and source belong to a run of your own")
    language = record.text("language", "" if own else None)
    checker = _checker(record)
    tests = []
    for test in record.each("tests"):
        test.only("input", "output")
        has_output = "output" in test.data or checker is None
        tests.append(RunTest(test.text("input"), test.text("output") if has_output else None))
    return RunCheck(
        _language(record, language) if language else "",
        tuple(tests),
        limits,
        record.number("tolerance", 1e-6),
        record.number("absolute_tolerance", 0.0),
        own,
        checker,
        _completion(record),
    )


def _completion(record: _Record) -> Completion:
    from .languages.completing import Completion

    stop: Any = record.data.get("stop", [])
    if not isinstance(stop, list) or not all(isinstance(text, str) and text for text in stop):
        raise record.wrong("stop", f"must be a list of texts, not {shown(stop)}")
    return Completion(record.text("prefix", ""), record.text("suffix", ""), tuple(stop))


def _language(record: _Record, language: str) -> str:
    from .languages.toolchains import LANGUAGES

    if language not in LANGUAGES:
        hint = did_you_mean(language, LANGUAGES)
        there = ", ".join(LANGUAGES)
        raise record.wrong("language", f"must be one of {there}, not {shown(language)}{hint}")
    return language


def _own_commands(record: _Record) -> OwnCommands:
    from .run import OwnCommands

    source = record.text("source")
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", source) or len(source) > _LONGEST_NAME:
        raise record.wrong("source", f"must be the name of a file, not {shown(source)}")
    build = _arguments(record, "build") if "build" in record.data else ()
    return OwnCommands(source, build, _arguments(record, "run"))


def _arguments(record: _Record, name: str) -> tuple[str, ...]:
    from .run import arguments

    value: Any = record.data.get(name)
    try:
        return arguments(value)
    except ValueError as exc:
        raise record.wrong(name, f"{exc}, not {shown(value)}") from None


def _checker(record: _Record) -> Checker | None:
    from .run import Checker

    if "checker" not in record.data:
        return None
    checker = _Record(record.data["checker"], f"{record.place}.checker")
    checker.only("language", "program")
    return Checker(_language(checker, checker.text("language")), checker.text("program"))


def _function(record: _Record, limits: RunLimits, problem: Problem) -> ProgramCheck:
    if "labels" in record.data:
        return _published(record, limits, record.name("entry_point"))
    record.only("kind", *_FUNCTION, "limits", "repeat")
    tests = tuple(_function_test(test) for test in record.each("tests"))
    return FunctionCheck(
        record.name("entry_point"),
        tests,
        limits,
        record.number("tolerance", 1e-9),
        record.text("prompt", ""),
        record.number("absolute_tolerance", 0.0),
    )


def _published(record: _Record, limits: RunLimits, entry_point: str = "") -> PublishedCheck:
    """A check of kind stdin or function with the labels of the paper's published harness."""
    named = ["entry_point"] if entry_point else []
    record.only("kind", "labels", "tests", *named, "limits", "repeat")
    if record.text("labels") != PUBLISHED:
        raise record.wrong("labels", f'can only be "{PUBLISHED}"')
    tests = []
    for test in record.each("tests"):
        if entry_point and "expected" in test.data:
            _function_test(test)
            tests.append(PublishedTest(test.data["args"], test.data["expected"]))
        else:
            test.only("input", "output")
            tests.append(PublishedTest(test.text("input"), test.text("output")))
    return PublishedCheck(tuple(tests), limits, entry_point)


def _function_test(test: _Record) -> FunctionTest:
    """A test with `args` and `expected`, or with LiveCodeBench's strings `input` and `output`.

    Each line of `input` is one argument as JSON; `output` is JSON.
    """
    if "input" in test.data or "output" in test.data:
        test.only("input", "output")
        lines = [line for line in test.text("input").split("\n") if line.strip()]
        values = tuple(_json(test, "input", line) for line in lines)
        return FunctionTest(values, _json(test, "output", test.text("output")))
    test.only("args", "expected")
    if "expected" not in test.data:
        raise test.wrong("expected", "is missing")
    args = test.data.get("args")
    if isinstance(args, str):
        args = [_json(test, "args", line) for line in args.split("\n") if line.strip()]
    if not isinstance(args, list):
        problem = "is missing" if args is None else f"must be a list, not {shown(args)}"
        raise test.wrong("args", problem)
    return FunctionTest(tuple(args), test.data["expected"])


def _json(record: _Record, name: str, text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError:
        raise record.wrong(name, f"is not JSON: {shown(text)}") from None


def _asserts(record: _Record, limits: RunLimits, problem: Problem) -> AssertsCheck:
    record.only("kind", *_ASSERTS, "limits", "repeat")
    test = record.text("test")
    if len(test) <= LARGEST:  # compiling stops all threads; a longer one is left to the sandbox
        _check_program(record, test)
    prompt = record.text("prompt", problem.prompt)
    name = record.name("entry_point")
    begins_class = re.search(rf"^class {re.escape(name)}\b", prompt, re.MULTILINE) is not None
    objects = record.flag("objects", otherwise=begins_class)
    return AssertsCheck(name, test, prompt, limits, record.flag("in_place"), objects)


def _check_program(record: _Record, test: str) -> None:
    try:
        with parser_lock:
            compile(test, "<test>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as exc:
        raise record.wrong("test", f"is not a program: {exc or 'nested too deep'}") from None


_Parser = Callable[[_Record, RunLimits, Problem], Judging]


@dataclass(frozen=True)
class CheckKind:
    """One kind of check.

    Attributes:
        parse: makes the check from its record.
        fields: the fields of its record, without those of every kind.
        runs_programs: whether candidates are programs, which run in the sandbox.
        for_guests: whether a client of a server may give such a check. It must run no command, call
            no server and read no file.
        not_for_guests: the fields that such a client may not give: they name programs or files.
        reads: the fields of the problem that the verdict depends on, besides the record. Problems
            with equal records share their verdicts if these are equal too.
        outside: what such a check does outside the sandbox, for the error that asks the user to
            allow it; None if it does nothing there, "" if this record does not.
    """

    parse: _Parser
    fields: tuple[str, ...] = ()
    runs_programs: bool = False
    for_guests: bool = False
    not_for_guests: tuple[str, ...] = ()
    reads: tuple[str, ...] = ("id", "prompt")
    outside: Callable[[Mapping[str, Any]], str] | None = None


def program_check(
    parse: _Parser,
    *fields: str,
    reads: tuple[str, ...] = (),
    not_for_guests: tuple[str, ...] = (),
) -> CheckKind:
    """A kind whose candidates are programs."""
    return CheckKind(
        parse,
        fields,
        runs_programs=True,
        for_guests=True,
        not_for_guests=not_for_guests,
        reads=reads,
    )


def text_check(module: str, name: str, *fields: str, **more: Any) -> CheckKind:
    """A kind without a sandbox; `more` as in `CheckKind`.

    Its module is imported on use, as its libraries are optional. The class is a `TextCheck` with
    the class method `of`, which makes the check from the problem. `fields` are those of the record.
    """

    def parse(record: _Record, limits: RunLimits, problem: Problem) -> Judging:
        return _made(record, fields, module, name, problem)

    return CheckKind(parse, fields, **more)


def limited_check(module: str, name: str, *fields: str, **more: Any) -> CheckKind:
    """As `text_check`, for a class whose `of` takes the problem and the limits in force."""

    def parse(record: _Record, limits: RunLimits, problem: Problem) -> Judging:
        return _made(record, fields, module, name, problem, limits)

    return CheckKind(parse, fields, **more)


def _made(
    record: _Record, fields: tuple[str, ...], module: str, name: str, *given: object
) -> Judging:
    """What the class method `of` of a class makes of a record without unknown fields."""
    record.only("kind", *fields, "limits", "repeat")
    kind = getattr(importlib.import_module(module, __package__), name)
    try:
        return cast(WholeTextCheck, kind.of(*given))
    except UsageError as exc:
        raise record.wrong("", str(exc)) from None


def records_in(check: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The record of a check, and the records of the checks that it consists of."""
    yield check
    inner = check.get("checks") if check.get("kind") in GROUPS else None
    for record in inner if isinstance(inner, list) else ():
        if isinstance(record, Mapping):
            yield record


def kinds_in(check: Mapping[str, Any]) -> set[str]:
    """The kinds of a check and of the checks that it consists of."""
    return {str(record.get("kind")) for record in records_in(check)}


def _runs_command(record: Mapping[str, Any]) -> str:
    if record.get("jail") is True:
        from .jailed_command import outside

        return outside(record)
    return f"runs the command {shown(record.get('argv'))} with your rights"


def _runs_container(record: Mapping[str, Any]) -> str:
    from .harbor import outside

    return outside(record)


def _reads_repository(record: Mapping[str, Any]) -> str:
    from .repo.check import outside

    return outside(record)


def _calls_server(record: Mapping[str, Any]) -> str:
    return f"sends candidates to {shown_address(str(record.get('url')))}"


def _asks_model(record: Mapping[str, Any]) -> str:
    place = "" if record.get("url") is None else f" at {shown_address(str(record['url']))}"
    return f"sends candidates to the model {shown(record.get('model'))}{place}"


_JUDGE = ("model", "votes", "url", "rubric", "reference", "temperature")
_PROOF = ("system", "theory", "statement", "axioms")
_SCHEMA = ("schema", "fields", "tolerance")
_REPO = (
    "repository",
    "commit",
    "runner",
    "command",
    "results",
    "tests",
    "fail_to_pass",
    "pass_to_pass",
    "protect",
    "setup",
    "readable",
    "writable",
    "image",
    "test_patch",
)
_SQL = ("engine", "schema", "databases", "reference", "variants", "tolerance")
_CONTAINS = ("contains_all", "contains_any", "contains_none")
_TEXT = ("equals", *_CONTAINS, "matches", "number", "tolerance", "normalise")


def as_published(problem: Problem) -> Problem:
    """A problem whose candidates get the labels of the paper's published code."""
    kind = problem.check.get("kind")
    changes = {
        "math": {"match": PUBLISHED},
        "stdin": {"labels": PUBLISHED},
        "function": {"labels": PUBLISHED},
    }
    if kind not in changes:
        raise UsageError(
            f"problem {problem.id}: the paper's code has no check of kind {shown(kind)}, only of"
            f" kind {', '.join(changes)}: leave out --labels published"
        )
    return replace(problem, check={**problem.check, **changes[kind]})


def is_published(check: Mapping[str, Any]) -> bool:
    """Whether a check gives the labels of the paper's published code."""
    return PUBLISHED in (check.get("match"), check.get("labels"))


# Kinds that consist of other checks, and the field of such a check that says what it costs.
GROUPS = ("all", "first")
MEMBER_COST = "cost"

# By name, in the order of the alphabet.
KINDS: Mapping[str, CheckKind] = {
    "all": limited_check(".groups", "GroupCheck", "checks", for_guests=True, reads=()),
    "asserts": program_check(
        _asserts, *_ASSERTS, reads=("prompt",)
    ),  # the program may begin with it
    "command": text_check(
        ".command",
        "CommandCheck",
        "argv",
        "jail",
        "readable",
        "run",
        reads=(),
        outside=_runs_command,
    ),
    "first": limited_check(".groups", "GroupCheck", "checks", for_guests=True, reads=()),
    "function": program_check(_function, *_FUNCTION, _LABELS, not_for_guests=(_LABELS,)),
    "gym": text_check(".gym", "GymCheck", "row", "passes"),
    "harbor": text_check(
        ".harbor",
        "HarborCheck",
        "task",
        "image",
        "workdir",
        "network",
        reads=(),
        outside=_runs_container,
    ),
    "http": text_check(".http", "HttpCheck", "url", "data", outside=_calls_server),
    "human": text_check(".human", "HumanCheck", "question", "rubric", "minutes", reads=()),
    "judge": text_check(".judge", "JudgeCheck", *_JUDGE, outside=_asks_model),
    "math": text_check(".math.check", "MathCheck", "answer", "match", for_guests=True, reads=()),
    "proof": limited_check(".proofs.check", "ProofCheck", *_PROOF, for_guests=True, reads=()),
    "repo": text_check(".repo.check", "RepoCheck", *_REPO, reads=(), outside=_reads_repository),
    "run": program_check(_run, *_RUN, not_for_guests=("source", "build", "run")),
    "schema": limited_check(".schema", "SchemaCheck", *_SCHEMA, for_guests=True, reads=()),
    "sql": limited_check(
        ".sql.check",
        "SqlCheck",
        *_SQL,
        for_guests=True,
        not_for_guests=("databases",),
        reads=(),
    ),
    "stdin": program_check(_stdin, *_STDIN, _LABELS, not_for_guests=(_LABELS,)),
    "text": limited_check(".text", "TextRules", *_TEXT, for_guests=True, reads=()),
}

# The kinds that a client of a server may give.
DATA_KINDS = tuple(name for name, kind in KINDS.items() if kind.for_guests)
