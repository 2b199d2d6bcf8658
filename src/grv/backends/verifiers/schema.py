"""Verify JSON in a text: checks of kind "schema".

`{"kind": "schema", "schema": {"type": "object", ...}, "fields": {"/price": 3}}`. The JSON is the
whole text, or its last code block that is JSON, or else the last object in the text, or the last
list. It must be valid under the JSON Schema, and have the values in `fields`, which are named by
JSON pointers.

A schema may come from anyone, as a text may. So a schema refers only to itself and not endlessly,
its expressions are RE2's, and all work is counted: it ends after `limits.seconds` of processor
time. `format` is not checked.
"""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn
from urllib.parse import unquote

from ...core.errors import UsageError, installing
from ...core.values import Verdict
from ...files import parse_json, shown
from ...text import checksum
from ..protocols import Finding, Problem, Usage
from ..sandbox.limits import DEFAULT_LIMITS, RunLimits
from .answers import FREE, TooMuchWork, Work, code_in, compiled, is_close, spoken, tolerance_of
from .checks import TextCheck
from .programs.findings import clean

_TOLERANCE = 1e-12
_DEEPEST = 64  # levels of JSON
_DRAFTS = {
    "http://json-schema.org/draft-04/schema": "Draft4Validator",
    "http://json-schema.org/draft-06/schema": "Draft6Validator",
    "http://json-schema.org/draft-07/schema": "Draft7Validator",
    "https://json-schema.org/draft/2019-09/schema": "Draft201909Validator",
    "https://json-schema.org/draft/2020-12/schema": "Draft202012Validator",
}
# The keywords whose values are schemas. Those in place look at the same value again.
_IN_PLACE_LISTS = ("allOf", "anyOf", "oneOf")
_IN_PLACE = ("not", "if", "then", "else")
_IN_PLACE_MAPS = ("dependentSchemas", "dependencies")
_INNER = (
    "items",  # or a list of them
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
)
_INNER_MAPS = ("properties", "patternProperties", "$defs", "definitions")
_REFUSED = ("$dynamicRef", "$recursiveRef")  # which schema they mean depends on the path to them
_OWN_SCHEMA = ("$schema", "$id", "id")
_LONGEST_PROSE = 1 << 20  # characters in which JSON is looked for
_MOST_PIECES = 2000
_OPENING = re.compile(r"[\[{]")


class _NoJson(ValueError):
    """There is no JSON in a text, or it is not acceptable."""


@dataclass(frozen=True)
class SchemaCheck(TextCheck):
    """Passes a text with JSON that is valid and has the given values.

    Attributes:
        validator: judges a value by the schema; None if there is no schema.
        fields: the values, by JSON pointer, each pointer as its parts.
        tolerance: for numbers in `fields`, relative to them.
        limits: `seconds` and `output_mb` apply.
    """

    is_limited: ClassVar[bool] = True

    validator: Callable[[Any, Work], str | None] | None
    fields: Mapping[tuple[str, ...], Any]
    tolerance: float = _TOLERANCE
    limits: RunLimits = DEFAULT_LIMITS

    @classmethod
    def of(cls, problem: Problem, limits: RunLimits = DEFAULT_LIMITS) -> SchemaCheck:
        """The check of a problem; a UsageError names the field that is wrong."""
        record = problem.check
        if "schema" not in record and "fields" not in record:
            raise UsageError("give schema, fields or both")
        fields = record.get("fields", {})
        if not isinstance(fields, Mapping):
            raise UsageError(f"fields must be a record of JSON pointers, not {shown(fields)}")
        pointers = {_parts(pointer): value for pointer, value in fields.items()}
        validator = _validator(record["schema"]) if "schema" in record else None
        return cls(validator, pointers, tolerance_of(record, _TOLERANCE), limits)

    def compare(self, text: str) -> Finding:
        """The finding on a candidate's text."""
        started = time.monotonic()
        reason, detail = self._wrong(text, Work(self.limits)) or ("", "")
        usage = Usage(seconds=time.monotonic() - started)
        if not reason:
            return Finding(Verdict.PASSED, "", {}, usage)
        evidence = {"detail": clean(detail)} if detail else {}
        return Finding(Verdict.FAILED, reason, evidence, usage)

    def key(self, text: str) -> str | None:
        """Texts with the same JSON fail together; None if there is none."""
        try:
            return f"json:{checksum(self._found(text)[0])}"
        except _NoJson:
            return None

    def reading(self, text: str, verdict: Verdict) -> dict[str, str]:
        """The JSON that passed."""
        return {"answer_value": self._found(text)[0]} if verdict is Verdict.PASSED else {}

    def refutation(self, text: str) -> str | None:
        """A text without JSON fails."""
        try:
            self._found(text)
        except _NoJson as error:
            return str(error)
        return None

    def failure(self, text: str) -> str | None:
        """Why a text fails, as far as a moment's work can tell; None if it may pass."""
        reason, detail = self._wrong(text, Work(FREE)) or ("", "")
        if not reason or reason == "timeout":
            return None
        return f"{reason}: {detail}" if detail else reason

    def _found(self, text: str) -> tuple[str, Any]:
        if len(text) > self.limits.output_bytes:
            raise _NoJson("is too long")
        return find_json(text)

    def _wrong(self, text: str, work: Work) -> tuple[str, str] | None:
        """What is wrong with a text, as a reason and a detail; None if it passes."""
        try:
            _, value = self._found(text)
            work.check()
            if self.validator is not None and (problem := self.validator(value, work)):
                return "not valid", problem
            return self._wrong_field(value)
        except _NoJson as error:
            return str(error), ""
        except TooMuchWork:
            return "timeout", ""
        except RecursionError:
            return "nested too deep", ""

    def _wrong_field(self, value: Any) -> tuple[str, str] | None:
        for parts, expected in self.fields.items():
            name = "".join(f"/{part}" for part in parts)
            try:
                got = _value_at(value, parts)
            except LookupError:
                return "a field is missing", name
            if not _same(expected, got, self.tolerance):
                return "wrong value", f"{name} is {shown(got)}, not {shown(expected)}"
        return None


def find_json(text: str) -> tuple[str, Any]:
    """The JSON in a text: as it is written there, and its value. Raises `_NoJson`.

    >>> find_json('Here it is: {"a": [1]}, as in [2].')
    ('{"a": [1]}', {'a': [1]})
    """
    answer = spoken(text)
    for whole in (answer.strip(), *reversed(code_in(answer, ("json", "jsonc", "json5")))):
        value = _parsed(whole)
        if value is not _NOTHING:
            return whole.strip(), value
    found = [*_pieces(answer)]
    objects = [piece for piece in found if piece.startswith("{")]
    for piece in (objects or found)[-1:]:
        value = _parsed(piece)
        if value is not _NOTHING:
            return piece, value
    raise _NoJson("has no JSON")


_NOTHING = object()


def _parsed(text: str) -> Any:
    """The value of a JSON text; `_NOTHING` if it is none."""
    try:
        value = parse_json(text, finite=True, deepest=_DEEPEST)
        json.loads(text, object_pairs_hook=_without_repeats)
    except _Repeated:
        raise _NoJson("names a field twice") from None
    except (ValueError, RecursionError):
        return _NOTHING
    return value


class _Repeated(Exception):
    """An object names a field twice, so that its meaning depends on the reader."""


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Repeated
    return found


def _pieces(text: str) -> Iterator[str]:
    """The objects and lists at the end of a text, in order. Nothing is read twice."""
    decoder = json.JSONDecoder()
    text = text[-_LONGEST_PROSE:]
    place = 0
    for _ in range(_MOST_PIECES):
        opening = _OPENING.search(text, place)
        if opening is None:
            return
        try:
            _, place = decoder.raw_decode(text, opening.start())
            yield text[opening.start() : place]
        except json.JSONDecodeError as error:  # to make it takes time proportional to the text
            place = max(error.pos, opening.end())
        except (ValueError, RecursionError):  # too many digits, nested too deep
            return


def _parts(pointer: object) -> tuple[str, ...]:
    """The parts of a JSON pointer."""
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise UsageError(f'fields: {shown(pointer)} is no JSON pointer, such as "/price"')
    parts = pointer.split("/")[1:]
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)


def _value_at(value: Any, parts: tuple[str, ...]) -> Any:
    """The value at a pointer; a LookupError if there is none."""
    for part in parts:
        if isinstance(value, list):
            if not part.isascii() or not part.isdigit() or len(part) > 9:
                raise LookupError(part)
            value = value[int(part)]
        elif isinstance(value, Mapping):
            value = value[part]
        else:
            raise LookupError(part)
    return value


def _same(expected: Any, got: Any, tolerance: float) -> bool:
    """Whether two values of JSON are the same; numbers within a tolerance."""
    if isinstance(expected, bool) or isinstance(got, bool):
        return expected is got
    if isinstance(expected, int | float) and isinstance(got, int | float):
        try:
            return is_close(expected, got, tolerance)
        except OverflowError:  # an integer beyond all floats
            return False
    if isinstance(expected, list) and isinstance(got, list):
        same_length = len(expected) == len(got)
        return same_length and all(map(lambda a, b: _same(a, b, tolerance), expected, got))
    if isinstance(expected, dict) and isinstance(got, dict):
        same_names = expected.keys() == got.keys()
        return same_names and all(_same(expected[n], got[n], tolerance) for n in expected)
    return type(expected) is type(got) and bool(expected == got)


def _validator(schema: object) -> Callable[[Any, Work], str | None]:
    """A function that says what is wrong with a value; a UsageError if the schema is wrong."""
    try:
        import jsonschema
    except ImportError:
        message = f"checks of kind 'schema' need jsonschema: {installing('schema')}"
        raise UsageError(message) from None
    if not isinstance(schema, dict):
        raise UsageError(f"schema must be a record, not {shown(schema)}")
    dialect = schema.get("$schema", "https://json-schema.org/draft/2020-12/schema")
    name = _DRAFTS.get(dialect.rstrip("#")) if isinstance(dialect, str) else None
    if name is None:
        raise UsageError(f"schema: $schema must be one of {', '.join(_DRAFTS)}")
    base = getattr(jsonschema, name)
    # A part with these fields would be judged as a schema of its own, without counting.
    root = {name: value for name, value in schema.items() if name not in _OWN_SCHEMA}
    try:
        base.check_schema(root, format_checker=None)
        walk = _Walk(root)
    except jsonschema.SchemaError as error:
        raise UsageError(f"schema: {_line(error)}") from None
    except RecursionError:
        raise UsageError("schema: nested too deep") from None
    working = threading.local()
    validator = _counting(base, jsonschema, walk.patterns, working)(root)

    def problem(value: Any, work: Work) -> str | None:
        working.work = work
        for error in validator.iter_errors(value):
            return _line(error)
        return None

    return problem


def _line(error: Any) -> str:
    """What an error of jsonschema says, in a line, and where."""
    where = "".join(f"/{part}" for part in error.absolute_path)[:100]
    said = " ".join(error.message[:1000].split())
    return f"{where}: {said}" if where else said


class _Walk:
    """Reads a whole schema, and refuses what could lead elsewhere or take for ever.

    Attributes:
        patterns: the expressions of the schema, compiled.
    """

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._done: set[int] = set()
        self._open: set[int] = set()
        self.patterns: dict[str, Any] = {}
        waiting: list[Any] = [root]
        seen: set[int] = set()
        has_patterns = has_unevaluated = False
        while waiting:
            schema = waiting.pop()
            if not isinstance(schema, dict) or id(schema) in seen:
                continue
            seen.add(id(schema))
            self._check(schema)
            waiting += [*_inner(schema), *self._in_place(schema)]
            self._follow(schema)
            has_patterns = has_patterns or "patternProperties" in schema
            has_unevaluated = has_unevaluated or "unevaluatedProperties" in schema
        if has_patterns and has_unevaluated:
            self._refuse("unevaluatedProperties does not go with patternProperties")

    def _check(self, schema: dict[str, Any]) -> None:
        """Refuse keywords that lead elsewhere, and compile expressions."""
        for name in _REFUSED:
            if name in schema:
                self._refuse(f"{name} is not supported")
        for name in _OWN_SCHEMA:
            is_inner = schema is not self._root and isinstance(schema.get(name), str)
            if is_inner:
                self._refuse(f"{name} is allowed at the top only")
        for pattern in (*schema.get("patternProperties", {}), schema.get("pattern")):
            if isinstance(pattern, str):
                try:
                    self.patterns[pattern] = compiled(pattern)
                except UsageError as error:
                    self._refuse(f"pattern: {error}")

    def _refuse(self, problem: str) -> NoReturn:
        raise UsageError(f"schema: {problem}")

    def _target(self, reference: object) -> Any:
        """The schema that a `$ref` means."""
        if not isinstance(reference, str) or not (reference == "#" or reference[:2] == "#/"):
            self._refuse(f'$ref may lead only to "#/...", not to {shown(reference)}')
        try:
            return _value_at(self._root, _parts(unquote(reference[1:])))
        except LookupError:
            self._refuse(f"$ref leads nowhere: {shown(reference)}")

    def _in_place(self, schema: dict[str, Any]) -> Iterator[Any]:
        """The schemas that look at the same value."""
        if "$ref" in schema:
            yield self._target(schema["$ref"])
        for name in _IN_PLACE:
            yield schema.get(name)
        for name in (*_IN_PLACE_LISTS, *_IN_PLACE_MAPS):
            yield from _several(schema.get(name))

    def _follow(self, schema: dict[str, Any]) -> None:
        """Refuse a schema that comes back to itself with the same value."""
        path = [(schema, self._in_place(schema))]
        while path:
            here, after = path[-1]
            self._open.add(id(here))
            inner = next(after, _NOTHING)
            if inner is _NOTHING:
                self._open.discard(id(here))
                self._done.add(id(here))
                path.pop()
            elif isinstance(inner, dict) and id(inner) not in self._done:
                if id(inner) in self._open:
                    self._refuse("$ref leads back to itself")
                path.append((inner, self._in_place(inner)))


def _inner(schema: dict[str, Any]) -> Iterator[Any]:
    """The schemas that look at a part of the value."""
    for name in _INNER:
        yield schema.get(name)
    for name in ("items", "prefixItems", *_INNER_MAPS):
        yield from _several(schema.get(name))


def _several(value: Any) -> list[Any]:
    """The values of a list or a record."""
    if isinstance(value, dict):
        return [*value.values()]
    return value if isinstance(value, list) else []


def _counting(
    base: Any, jsonschema: Any, patterns: dict[str, Any], working: threading.local
) -> Any:
    """A class of validators that count their work and use RE2's expressions."""
    wrong = jsonschema.ValidationError

    def found(pattern: str, text: str) -> bool:
        return bool(working.work.search(patterns[pattern], text))

    def pattern(validator: Any, source: str, value: Any, schema: Any) -> Iterator[Any]:
        if isinstance(value, str) and not found(source, value):
            yield wrong(f"{shown(value)} does not match {shown(source)}")

    def pattern_properties(validator: Any, given: Any, value: Any, schema: Any) -> Iterator[Any]:
        for source, inner in given.items() if isinstance(value, dict) else ():
            for name, item in value.items():
                if found(source, name):
                    yield from validator.descend(item, inner, path=name, schema_path=source)

    def additional(validator: Any, given: Any, value: Any, schema: Any) -> Iterator[Any]:
        named = schema.get("properties", {})
        sources = schema.get("patternProperties", {})
        for name, item in value.items() if isinstance(value, dict) else ():
            if name in named or any(found(source, name) for source in sources):
                continue
            if given is False:
                yield wrong(f"{shown(name)} is not allowed")
            elif isinstance(given, dict):
                yield from validator.descend(item, given, path=name)

    def unique(validator: Any, given: Any, value: Any, schema: Any) -> Iterator[Any]:
        if given and isinstance(value, list):
            forms = {_form(item) for item in value}
            if len(forms) < len(value):
                yield wrong("has equal items")

    own = {
        "pattern": pattern,
        "patternProperties": pattern_properties,
        "additionalProperties": additional,
        "uniqueItems": unique,
    }
    keywords = {**base.VALIDATORS, **{name: own[name] for name in own if name in base.VALIDATORS}}

    def counted(keyword: Callable[..., Any]) -> Callable[..., Any]:
        def checking(*given: Any) -> Iterator[Any]:
            working.work.check()
            yield from keyword(*given) or ()

        return checking

    return jsonschema.validators.extend(
        base, {name: counted(keyword) for name, keyword in keywords.items()}
    )


def _form(value: Any) -> str:
    """A text that is equal for values that JSON Schema calls equal."""
    match value:
        case float() if math.isfinite(value) and value.is_integer():
            return str(int(value))
        case list():
            return f"[{','.join(map(_form, value))}]"
        case dict():
            names = sorted(value)
            return f"{{{','.join(f'{json.dumps(name)}:{_form(value[name])}' for name in names)}}}"
    return json.dumps(value)
