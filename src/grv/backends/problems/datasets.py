"""Published datasets as problems. To add a format, add an entry to `FORMATS`.

A record of a dataset becomes `{"problem", "prompt", "check", "solutions"}`. Nothing in a record is
executed or unpickled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ...core.errors import UsageError
from ...text import checksum
from ..protocols import Problem
from ..verifiers.checks import parse_check
from . import contests, harbor, lean, multipl_e, nemo_gym, promptfoo, queries, swe_bench, verl
from .prompts import filled
from .reading import read_records
from .records import (
    CODE_PROMPT,
    LANGUAGES,
    LARGEST,
    MATH_PROMPT,
    Converted,
    NotConverted,
    Record,
    Skipped,
    Wanted,
    kept,
)

__all__ = ["FORMATS", "Converted", "Format", "Skipped", "read_dataset"]

# A check that certainly can be read, by kinds whose records may ask for more than we can judge.
_SIMPLEST: Mapping[str, Mapping[str, Any]] = {
    "math": {"kind": "math", "answer": "1"},
    "text": {"kind": "text", "matches": ["a"]},
    "schema": {"kind": "schema", "schema": {}},
    "proof": {"kind": "proof", "system": "lean", "statement": "theorem a : True"},
    "all": {"kind": "all", "checks": [{"kind": "text", "matches": ["a"], "cost": 1.0}]},
}


def hmmt(record: Record, wanted: Wanted) -> Converted:
    """A problem of HMMT, as MathArena publishes it or with the fields problem, prompt, answer."""
    if "prompt" in record.data:
        name = str(record.field("problem", str | int))
        question = record.text("prompt")
    else:
        number = record.field("problem_idx", str | int)
        name = f"{record.source}/{number}"
        question = record.text("problem")
    answer = record.field("answer", str | int | float)
    check = {"kind": "math", "answer": str(answer), "match": wanted.match}
    prompt = filled(wanted.prompt or MATH_PROMPT, question)
    return Converted(Problem(name, prompt, check, question))


def humaneval(record: Record, wanted: Wanted) -> Converted:
    """A problem of HumanEval: the beginning of a program, and its tests."""
    name = record.data.get("task_id", record.data.get("problem"))
    if not isinstance(name, str):
        raise UsageError("there is no task_id")
    # A model continues best right after the docstring, and starts the line itself.
    code = record.text("prompt").rstrip()
    check = {
        "kind": "asserts",
        "entry_point": record.text("entry_point"),
        "test": record.text("test"),
        "prompt": f"{code}\n",
    }
    prompt = filled(wanted.prompt or CODE_PROMPT, code, code)
    solutions = kept([record.data.get("canonical_solution")])
    return Converted(Problem(name, prompt, check, code, code), solutions=solutions)


@dataclass(frozen=True)
class Format:
    """A format of datasets.

    Attributes:
        convert: makes a problem from a record.
        records: reads the records of a file.
        repeats: whether a record may be there again; it is counted and left out.
    """

    convert: Callable[[Record, Wanted], Converted]
    records: Callable[[str], Iterator[Record]] = read_records
    repeats: bool = False


# The command line lists them in this order.
FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "hmmt": Format(hmmt),
        "livecodebench": Format(contests.livecodebench),
        "humaneval": Format(humaneval),
        "verl": Format(verl.verl, repeats=True),
        "taco": Format(contests.taco),
        "apps": Format(contests.apps, contests.apps_records),
        "codecontests": Format(contests.codecontests),
        "bird": Format(queries.bird),
        "spider": Format(queries.spider),
        "multipl-e": Format(multipl_e.multipl_e),
        "lean": Format(lean.lean),
        "promptfoo": Format(promptfoo.promptfoo, promptfoo.promptfoo_records),
        "nemo-gym": Format(nemo_gym.nemo_gym),
        "harbor": Format(harbor.harbor, harbor.harbor_tasks),
        "swe-bench": Format(swe_bench.swe_bench),
    }
)


def read_dataset(
    name: str,
    paths: Sequence[str],
    *,
    prompt: str | None = None,
    match: str = "equivalent",
    language: str = "python",
    databases: str | None = None,
    time_factor: float = 1.0,
    partial: bool = False,
    repositories: str | None = None,
    largest: int = LARGEST,
) -> Iterator[Converted | Skipped]:
    """The problems of a dataset's files. An error names the line; a problem may occur only once.

    Args:
        name: one of `FORMATS`.
        paths: files of JSON lines or a JSON list, also compressed with gzip, or Parquet.
        prompt: a template with {question} or {code}, instead of the dataset's own.
        match: how answers in mathematics are compared: equivalent, exact or published.
        language: the language in which contest problems are to be solved.
        databases: the folder of the databases; None looks beside the file.
        time_factor: what the time limits of a dataset are multiplied by.
        partial: whether a promptfoo test is converted without the assertions that cannot be.
        repositories: the folder of clones of repositories; None is "repositories".
        largest: how many bytes the tests of a record may unpack to.
    """
    if prompt is not None and "{question}" not in prompt and "{code}" not in prompt:
        raise UsageError("the prompt must contain {question} or {code}")
    if language not in LANGUAGES:
        raise UsageError(f"--language {language}: give one of {', '.join(LANGUAGES)}")
    wanted = Wanted(prompt, match, language, databases, time_factor, partial, repositories, largest)
    seen = _Seen(FORMATS[name].repeats)
    sources = _sources(paths)
    for path in paths:
        for record in FORMATS[name].records(path):
            record.source = sources.get(path, record.source)
            try:
                converted = FORMATS[name].convert(record, wanted)
                _check(converted.problem, strict=name in ("hmmt", "livecodebench", "humaneval"))
                is_new = seen.add(converted.problem, record.place)
            except NotConverted as problem:
                seen.count += 1
                yield Skipped(record.place, str(problem))
            except UsageError as error:
                raise UsageError(f"{record.place}: {error}") from error
            else:
                yield converted if is_new else Skipped(record.place, "the same problem again")
    if not seen.count:
        raise UsageError(f"{', '.join(paths)}: no problems")


def _sources(paths: Sequence[str]) -> dict[str, str]:
    """Names for the rows of files that are called alike: with the folders that tell them apart."""
    parts = {path: Path(path).resolve().parts for path in paths}
    parts = {path: (*folders, last.partition(".")[0]) for path, (*folders, last) in parts.items()}
    sources: dict[str, str] = {}
    for path, own in parts.items():
        others = {other for other in parts.values() if other[-1] == own[-1]} - {own}
        length = 1
        while any(other[-length:] == own[-length:] for other in others):
            length += 1
        if others:
            sources[path] = "/".join(own[-length:])
    return sources


def _check(problem: Problem, *, strict: bool) -> None:
    """Refuse a check that cannot be read.

    An answer with two readings, or an expression that RE2 does not know, is no mistake in a file
    of others: there, such a problem is not converted.
    """
    try:
        parse_check(problem)
    except UsageError as error:
        simplest = None if strict else _SIMPLEST.get(problem.check["kind"])
        if simplest is None:
            raise
        parse_check(Problem("simplest", check=simplest))  # an error if a library is missing
        said = str(error).removeprefix(f"problem {problem.id}, ")
        raise NotConverted(f"cannot be judged: {said}") from error


class _Seen:
    """The problems so far, by name.

    Args:
        repeats: whether equal problems may occur again.
    """

    def __init__(self, repeats: bool) -> None:
        self._repeats = repeats
        self._places: dict[str, tuple[str, str]] = {}
        self.count = 0

    def add(self, problem: Problem, place: str) -> bool:
        """Whether a problem is new; a UsageError if another one has its name."""
        self.count += 1
        content = ""
        if self._repeats:
            content = checksum(f"{problem.prompt}\n{problem.messages}\n{dict(problem.check)}")
        if problem.id not in self._places:
            self._places[problem.id] = (place, content)
            return True
        earlier, known = self._places[problem.id]
        if self._repeats and known == content:
            return False
        raise UsageError(f"problem {problem.id!r} is also at {earlier}")
