"""Tests of promptfoo: a configuration in YAML or JSON, with its prompts, variables and assertions.

Assertions that a text alone decides become checks of kind "text" and "schema". A prompt with a
test is a problem. Files that a configuration names are read only if they are in its folder.
"""

from __future__ import annotations

import csv
import glob
import io
import itertools
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...core.errors import UsageError
from ...files import (
    MOST_UNPACKED,
    UNPACKED_RATIO,
    json_lines,
    parse_json,
    read_bytes,
    shown,
)
from ..protocols import Problem
from ..verifiers.byte_cache import size_of
from .prompts import filled
from .records import LARGEST, Converted, NotConverted, Record, Wanted, chat
from .yaml_files import parse_yaml

_FILE = "file://"
_MOST_PROBLEMS = 100_000
_MOST_FILES = 1000
_VARIABLE = re.compile(r"\{\{-?\s*([A-Za-z_]\w*(?:\.\w+)*)\s*-?\}\}")
_OTHER_TEMPLATE = re.compile(r"\{\{|\{%|\{#")
_SEPARATOR = re.compile(r"^---[ \t]*$", re.MULTILINE)
_EXPECTED = re.compile(r"((?:not-)?[a-z][a-z-]*)(?:\(\s*[\d.]+\s*\))?\s*:\s*(.*)", re.DOTALL)
_PROMPT_FILES = (".txt", ".md", ".json", ".yaml", ".yml", ".j2")
_TEST_FILES = (".csv", ".yaml", ".yml", ".json", ".jsonl")
# What a cell `type: value` of a table may begin with; any other text is compared as a whole.
_TYPES = {
    "answer-relevance",
    "contains",
    "contains-all",
    "contains-any",
    "contains-json",
    "contains-sql",
    "contains-xml",
    "context-recall",
    "cost",
    "equals",
    "eval",
    "factuality",
    "fn",
    "grade",
    "icontains",
    "icontains-all",
    "icontains-any",
    "is-json",
    "is-sql",
    "is-xml",
    "javascript",
    "latency",
    "levenshtein",
    "llm-rubric",
    "model-graded-closedqa",
    "perplexity",
    "python",
    "regex",
    "rouge-n",
    "similar",
    "starts-with",
    "webhook",
    "word-count",
}
_TEXT_RULES = {
    "contains": "contains_all",
    "contains-all": "contains_all",
    "contains-any": "contains_any",
    "not-contains": "contains_none",
    "not-contains-any": "contains_none",
}
_JSON_TYPES = ("is-json", "contains-json")
_COST = 1.0  # of a part of a check, beside the others: none takes more than a moment


def promptfoo_records(path: str) -> Iterator[Record]:
    """A record for each prompt with each test of a configuration."""
    config = _config(path)
    source = Path(path).name.partition(".")[0]
    folder = Path(path).resolve().parent
    prompts = list(_prompts(config.get("prompts"), folder))
    if not prompts:
        raise UsageError(f"{path}: no prompts; name the configuration that has prompts and tests")
    default = _mapping(config.get("defaultTest"), f"{path}: defaultTest")
    room = _Room(max(MOST_UNPACKED, UNPACKED_RATIO * os.path.getsize(path)))
    number = 0
    for number, test in enumerate(_tests(config.get("tests"), folder, f"{path}: tests"), 1):
        data: dict[str, Any] = {"test": test, "default": default, "folder": folder}
        data["room"] = room
        for at, prompt in enumerate(prompts, 1):
            data["prompt"] = prompt
            data["name"] = f"{source}/{number}"
            if len(prompts) > 1:
                data["name"] += f"/prompt{at}"
            for values, ending in _choices(test, default):
                name = data["name"] + ending
                yield Record({**data, "name": name, "vars": values}, path, number, source)
    if config.get("scenarios"):
        data = {"test": {"_problem": "scenarios"}, "name": f"{source}/scenarios"}
        yield Record(data, path, number + 1, source)


def promptfoo(record: Record, wanted: Wanted) -> Converted:
    """A prompt with a test."""
    test = record.data["test"]
    if "_problem" in test:
        raise NotConverted(test["_problem"])
    default = record.data["default"]
    _refuse_others(test, default)
    values = _Values(record.data["vars"], record.data["room"])
    notes: list[str] = []
    given = [*_asserts(default), *_asserts(test)]
    if not given:
        raise NotConverted("no assertion")
    checks = _Checks(record.data["folder"], values, partial=wanted.partial)
    for item in given:
        checks.add(item, notes)
    prompt = record.data["prompt"]
    problem = _problem(record, prompt, values, checks.record(), wanted)
    record.data["room"].take(size_of([problem.prompt, problem.messages, problem.check]))
    return Converted(problem, notes=tuple(notes))


class _Room:
    """How much the problems of a configuration may take together: a few bytes can be many."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = 0

    def check(self, size: int) -> None:
        """Refuse a problem of this size; a UsageError says why."""
        most = min(LARGEST, self._most - self._taken)
        if size > most:
            raise UsageError(f"this problem takes more than {most:,} bytes; refused")

    def take(self, size: int) -> None:
        """Count a problem."""
        self.check(size)
        self._taken += size


class _Values:
    """Fills the variables of a test into texts, up to a limit for all of them together."""

    def __init__(self, variables: Mapping[str, Any], room: _Room) -> None:
        self._variables = variables
        self._room = room
        self._size = 0

    def filled(self, value: Any) -> Any:
        """A value with the variables in all its texts."""
        if isinstance(value, str):
            return self.rendered(value) if "{{" in value or "{%" in value else value
        if isinstance(value, list):
            return [self.filled(each) for each in value]
        if isinstance(value, Mapping):
            return {name: self.filled(each) for name, each in value.items()}
        return value

    def rendered(self, template: str) -> str:
        """A template with its variables. Conditions, loops and filters are not ours to run."""
        if _OTHER_TEMPLATE.search(_VARIABLE.sub("", template)):
            raise NotConverted("a template with more than {{name}}")
        return _VARIABLE.sub(self._value, template)

    def _value(self, match: re.Match[str]) -> str:
        found: Any = self._variables
        for part in match[1].split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
        if isinstance(found, bool):
            return str(found).lower()
        if isinstance(found, str) and (found.startswith(_FILE) or _OTHER_TEMPLATE.search(found)):
            raise NotConverted(f"a variable from a file or a template ({match[1]})")
        if not isinstance(found, str | int | float):
            raise NotConverted(f"the variable {match[1]} is not a text")
        text = str(found)
        self._size += len(text)
        self._room.check(self._size)
        return text


def _problem(record: Record, prompt: Any, values: _Values, check: Any, wanted: Wanted) -> Problem:
    name = record.data["name"]
    if isinstance(prompt, str):
        text = values.rendered(prompt)
        return Problem(name, filled(wanted.prompt or "{question}", text), check, text)
    messages = [{**each, "content": values.rendered(each["content"])} for each in prompt]
    return chat(record, name, messages, wanted, check)


def _refuse_others(test: Mapping[str, Any], default: Mapping[str, Any]) -> None:
    """Refuse what changes a verdict besides the assertions."""
    for part in (test, default):
        for name in ("threshold", "assertScoringFunction"):
            if part.get(name) is not None:
                raise NotConverted(f"a {name}")
        options = part.get("options")
        for name in ("transform", "postprocess", "prefix", "suffix"):
            if isinstance(options, Mapping) and options.get(name):
                raise NotConverted(f"options.{name}")
    if test.get("prompts") or default.get("prompts"):
        raise NotConverted("a test for some prompts only")


class _Checks:
    """Collects the checks of a test's assertions.

    Args:
        folder: where files are, which assertions may name.
        values: the variables of the test.
        partial: whether assertions that cannot be converted are left out.
    """

    def __init__(self, folder: Path, values: _Values, *, partial: bool) -> None:
        self._folder = folder
        self._values = values
        self._partial = partial
        self._texts: list[dict[str, Any]] = []
        self._schemas: list[dict[str, Any]] = []

    def add(self, item: Mapping[str, Any], notes: list[str]) -> None:
        """Add an assertion; a note says if it is left out."""
        kind = item.get("type")
        if not isinstance(kind, str):
            raise UsageError(f"assert.type must be a text, not {shown(kind)}")
        if kind == "assert-set":
            self._add_set(item, notes)
            return
        try:
            self._add(kind, item)
        except NotConverted as problem:
            if not self._partial:
                raise
            notes.append(str(problem))

    def _add_set(self, item: Mapping[str, Any], notes: list[str]) -> None:
        if item.get("threshold") not in (None, 1):
            raise NotConverted("an assert-set with a threshold")
        for each in _asserts(item):
            self.add(each, notes)

    def _add(self, kind: str, item: Mapping[str, Any]) -> None:
        for name in ("transform", "contextTransform"):
            if item.get(name):
                raise NotConverted(f"an assertion with {name}")
        if item.get("weight") == 0:
            raise NotConverted("an assertion with weight 0")
        value = self._value(item.get("value"))
        folded = kind.removeprefix("not-").startswith("i") and "contains" in kind
        plain = kind.replace("icontains", "contains")
        if plain in _TEXT_RULES:
            self._add_phrases(_TEXT_RULES[plain], kind, value, folded=folded)
        elif kind == "equals" and isinstance(value, dict | list):
            self._schemas.append({"const": value})
        elif kind == "equals":
            self._add_rule("equals", _text(value, kind), folded=False)
        elif kind == "starts-with":
            self._add_rule("matches", [rf"\A{_escaped(_text(value, kind))}"], folded=False)
        elif kind == "regex":
            self._add_rule("matches", [_text(value, kind)], folded=False)
        elif kind in _JSON_TYPES:
            self._schemas.append(self._schema(value, kind))
        else:
            raise NotConverted(kind)

    def _value(self, value: Any) -> Any:
        """The value of an assertion: from a file if it names one, with the variables filled in."""
        if isinstance(value, str) and value.startswith(_FILE):
            if not value.endswith((".json", ".yaml", ".yml", ".txt")):
                raise NotConverted(f"a value from {Path(value).suffix or 'a file'}")
            return _loaded(_file(value, self._folder))
        return self._values.filled(value)

    def _schema(self, value: Any, kind: str) -> dict[str, Any]:
        if isinstance(value, str) and value.strip():
            value = parse_yaml(value.encode(), f"assert.value of {kind}")
        if value in (None, "", True):
            return {}
        if not isinstance(value, dict):
            raise UsageError(f"assert.value of {kind} must be a JSON schema, not {shown(value)}")
        return value

    def _add_phrases(self, rule: str, kind: str, value: Any, *, folded: bool) -> None:
        many = "-all" in kind or "-any" in kind
        if many and isinstance(value, str):
            value = _separated(value)
        values = value if many and isinstance(value, list) else [value]
        phrases = [_text(each, kind) for each in values]
        if not phrases:
            raise UsageError(f"assert.value of {kind} is an empty list")
        self._add_rule(rule, phrases, folded=folded)

    def _add_rule(self, rule: str, value: Any, *, folded: bool) -> None:
        """Add a rule to the first check that can have it beside its own."""
        for check in self._texts:
            if ("normalise" in check) is not folded:
                continue
            if rule not in check:
                check[rule] = value
                return
            if rule in ("contains_all", "contains_none", "matches"):
                check[rule] = [*check[rule], *value]
                return
        check = {"kind": "text", rule: value}
        self._texts.append({**check, "normalise": ["case"]} if folded else check)

    def record(self) -> dict[str, Any]:
        """The check of all assertions together."""
        checks = [*self._texts]
        checks += [{"kind": "schema", "schema": schema} for schema in self._schemas]
        if not checks:
            raise NotConverted("no assertion that can be converted")
        if len(checks) == 1:
            return checks[0]
        return {"kind": "all", "checks": [{**check, "cost": _COST} for check in checks]}


def _text(value: Any, kind: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
        raise UsageError(f"assert.value of {kind} must be a text, not {shown(value)}")
    return str(value)


def _escaped(text: str) -> str:
    """A text as an expression that matches it."""
    return re.sub(r"([^\w\s]|_)", r"\\\1", text, flags=re.ASCII)


def _separated(text: str) -> list[str]:
    """Values with commas between them; one with a comma in it is in quotes."""
    rows = list(csv.reader([text], skipinitialspace=True))
    return [cell.strip() for cell in rows[0] if cell.strip()] if rows else []


def _asserts(test: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = test.get("assert")
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(each, Mapping) for each in found):
        raise UsageError(f"assert must be a list of assertions, not {shown(found)}")
    return found


def _choices(
    test: Mapping[str, Any], default: Mapping[str, Any]
) -> Iterator[tuple[dict[str, Any], str]]:
    """The variables of a test. A list of values stands for a test with each of them."""
    if "_problem" in test:
        yield {}, ""
        return
    values = {**_mapping(default.get("vars"), "defaultTest.vars")}
    values |= _mapping(test.get("vars"), "vars")
    lists = {name: value for name, value in values.items() if isinstance(value, list)}
    sizes = [len(value) for value in lists.values()]
    total = 1
    for size in sizes:
        total *= size
    if total > _MOST_PROBLEMS:
        raise UsageError(f"vars: {total:,} combinations of values; the limit is {_MOST_PROBLEMS:,}")
    chosen = itertools.product(*lists.values())
    for number, choice in enumerate(chosen, 1):
        picked = dict(zip(lists, choice, strict=True))
        yield {**values, **picked}, f"/vars{number}" if lists else ""


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise UsageError(f"{name} must be a record, not {shown(value)}")
    return value


def _config(path: str) -> Mapping[str, Any]:
    if not path.endswith((".yaml", ".yml", ".json")):
        raise UsageError(f"{path}: a promptfoo configuration is NAME.yaml or NAME.json")
    return _mapping(_loaded(path), path)


def _loaded(path: str) -> Any:
    """The values in a file of JSON, YAML or text."""
    content = read_bytes(path)
    if path.endswith((".yaml", ".yml")):
        return parse_yaml(content, path)
    try:
        return parse_json(content) if path.endswith(".json") else content.decode()
    except ValueError as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error


def _file(name: str, folder: Path) -> str:
    """The path of a file that a configuration names; it must be in the folder."""
    given = name.removeprefix(_FILE)
    if "\0" in given:
        raise UsageError(f"{given!r}: no file can have this name")
    path = os.path.realpath(folder / given)
    if not path.startswith(f"{folder}{os.sep}"):
        raise UsageError(f"{name} leads out of {folder}; refused")
    return path


def _files(name: str, folder: Path) -> list[str]:
    """The files that a name with * stands for, or the one file."""
    if not glob.has_magic(name):
        return [_file(name, folder)]
    pattern = name.removeprefix(_FILE)
    if ".." in Path(pattern).parts or os.path.isabs(pattern):
        raise UsageError(f"{name} leads out of {folder}; refused")
    found = list(itertools.islice(glob.iglob(pattern, root_dir=folder), _MOST_FILES + 1))
    if not found or len(found) > _MOST_FILES:
        raise UsageError(f"{name}: {len(found) or 'no'} files; give from 1 to {_MOST_FILES}")
    return [_file(each, folder) for each in sorted(found)]


def _prompts(given: Any, folder: Path) -> Iterator[str | list[dict[str, str]]]:
    """The prompts: texts, or chats."""
    for item in given if isinstance(given, list) else [given] if given is not None else []:
        raw = item.get("raw", item.get("id")) if isinstance(item, Mapping) else item
        if not isinstance(raw, str):
            raise UsageError(f"prompts must be texts or records with raw, not {shown(item)}")
        is_file = raw.startswith(_FILE)
        if not is_file and "\n" not in raw and raw.endswith(_PROMPT_FILES) and " " not in raw:
            is_file = (folder / raw).is_file()
        if not is_file:
            yield _prompt(raw)
            continue
        for path in _files(raw, folder):
            if not path.endswith(_PROMPT_FILES):
                raise UsageError(f"prompts: {path} is a program; write the prompt as text")
            loaded = _loaded(path)
            if isinstance(loaded, str):
                yield from (_prompt(part.strip()) for part in _SEPARATOR.split(loaded))
            else:
                yield _messages(loaded, path)


def _prompt(text: str) -> str | list[dict[str, str]]:
    """A prompt; a chat if it is one in JSON."""
    if text.lstrip().startswith("[") and '"role"' in text:
        try:
            found = parse_json(text)
        except ValueError:
            return text
        return _messages(found, "prompts")
    return text


def _messages(value: Any, name: str) -> list[dict[str, str]]:
    if not isinstance(value, list) or not value:
        raise UsageError(f"{name} must be a list of messages, not {shown(value)}")
    for each in value:
        match each:
            case {"role": str(), "content": str()}:
                pass
            case _:
                raise UsageError(f"{name}: a message must have role and content: {shown(each)}")
    return [{"role": each["role"], "content": each["content"]} for each in value]


def _tests(given: Any, folder: Path, name: str) -> Iterator[Mapping[str, Any]]:
    """The tests: records, or the names of files with them. `_problem` says what cannot be read."""
    for item in given if isinstance(given, list) else [given] if given is not None else []:
        if isinstance(item, str):
            yield from _tests_of_files(item, folder)
            continue
        if isinstance(item, Mapping) and "path" in item:
            yield {"_problem": "tests from a program"}
            continue
        yield _mapping(item, name)


def _tests_of_files(name: str, folder: Path) -> Iterator[Mapping[str, Any]]:
    if "://" in name and not name.startswith(_FILE):
        yield {"_problem": f"tests from {name.partition('://')[0]}"}
        return
    if not name.endswith(_TEST_FILES):
        yield {"_problem": f"tests from {Path(name).suffix or 'a file'}"}
        return
    for path in _files(name, folder):
        if path.endswith(".csv"):
            yield from _rows(path)
        elif path.endswith(".jsonl"):
            yield from (record for _, record in json_lines(path))
        else:
            loaded = _loaded(path)
            for each in loaded if isinstance(loaded, list) else [loaded]:
                yield _mapping(each, path)


def _rows(path: str) -> Iterator[Mapping[str, Any]]:
    """The tests of a table: a column is a variable, __expected is an assertion."""
    try:
        text = read_bytes(path).decode("utf-8-sig")
        for row in csv.DictReader(io.StringIO(text, newline=""), strict=True):
            if None in row or None in row.values():
                yield {"_problem": "a row with more or fewer cells than the head"}
                continue
            yield _row(row)
    except (csv.Error, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not a table: {error}") from error


def _row(row: Mapping[str, str]) -> Mapping[str, Any]:
    for name in ("__threshold", "__prefix", "__suffix"):
        if row.get(name):
            return {"_problem": f"a column {name}"}
    cells = [value for name, value in row.items() if name.startswith("__expected") and value]
    values = {name: value for name, value in row.items() if not name.startswith("__")}
    return {"vars": values, "assert": [_expected(cell) for cell in cells]}


def _expected(cell: str) -> dict[str, Any]:
    """The assertion in a cell: `type: value`, or a text that must be equal."""
    found = _EXPECTED.fullmatch(cell.strip())
    if cell.startswith(_FILE):
        return {"type": "a file", "value": None}
    if found and found[1].removeprefix("not-") in _TYPES:
        return {"type": found[1], "value": found[2] or None}
    return {"type": "equals", "value": cell}
