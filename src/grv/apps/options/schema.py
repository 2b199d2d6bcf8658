"""JSON Schemas of the files that people write and read, from the options and the kinds of check.

A schema is stricter than the commands in one thing: numbers are numbers there, not texts.
"""

from __future__ import annotations

import enum
import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...backends.problems.files import FIELDS, OPTIONAL
from ...backends.sandbox.limits import RunLimits
from ...backends.verifiers.calibration import FIELDS as ERROR_FIELDS
from ...backends.verifiers.checks import KINDS
from ...options import Option
from ...serve.clients import FIELDS as CLIENT_FIELDS
from ...serve.clients import HASH, NAME, RIGHTS, SHORTEST_KEY
from .all_commands import COMMANDS
from .command import shape_of
from .job import RUNS

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_AMOUNT: Schema = {"type": "number", "minimum": 0}
_FLAG: Schema = {"type": "boolean"}
_TABLE: Schema = {"type": "object"}
_TYPES: Mapping[Any, str] = {bool: "boolean", int: "integer", float: "number", str: "string"}

# The types of the fields of checks, where all kinds agree on one. Other fields may be anything:
# the check itself says what is wrong with them.
_CHECK_FIELDS: Mapping[str, Schema] = {
    "repeat": {"type": "integer", "minimum": 1, "maximum": 100},
    "limits": {
        "type": "object",
        "properties": {name: _AMOUNT for name in RunLimits.__dataclass_fields__},
        "additionalProperties": False,
    },
    "checks": {"type": "array", "items": {"$ref": "#/$defs/part"}, "minItems": 1},
    "tests": {},
    "entry_point": {"type": "string", "pattern": "^[^\\W\\d]\\w*$"},
    "tolerance": _AMOUNT,
    "absolute_tolerance": _AMOUNT,
    "jail": _FLAG,
    "in_place": _FLAG,
    "objects": _FLAG,
    "url": _TEXT,
    "model": _TEXT,
    "language": _TEXT,
    "build": _TEXTS,
}


_PART = ("cost",)  # of a check that is a part of another


def schema(name: str) -> Schema:
    """The schema of a kind of file."""
    return {"$schema": DIALECT, **SCHEMAS[name]()}


def _job() -> Schema:
    """A job file: the options of a command, at the top or in a table of its name."""
    commands = {name: _of_command(name) for name in COMMANDS}
    known = {name: each for name, each in commands.items() if each is not None}
    meanings: dict[str, list[Schema]] = {}
    for name, table in known.items():
        meanings.setdefault(name, []).append({"$ref": f"#/$defs/{name}"})
        for option, described in table["properties"].items():
            if described not in meanings.setdefault(option, []):
                meanings[option].append(described)
    return {
        "title": "A job file of grv",
        "type": "object",
        "properties": {
            name: found[0] if len(found) == 1 else {"anyOf": found}
            for name, found in meanings.items()
        },
        "additionalProperties": False,
        "$defs": known,
    }


def _of_command(name: str) -> Schema | None:
    """The table of a command; None if it reads no job file."""
    function = COMMANDS[name].load()
    if not inspect.isfunction(function):
        return None
    shape = shape_of(function)
    if "job" not in shape.known:
        return None
    properties = _properties(each for each in shape.known.values() if each.name != "job")
    for family in shape.runs.values():
        table = {"type": "object", "properties": dict(properties), "additionalProperties": False}
        properties[getattr(family, "TABLES", RUNS)] = _by_name(table)
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _properties(options: Iterable[Option]) -> dict[str, Schema]:
    """The options by name, in both spellings."""
    properties = {}
    for each in options:
        described = _of_option(each)
        properties[each.job_name] = described
        properties[each.job_name.replace("_", "-")] = described
    return properties


def _of_option(option: Option) -> Schema:
    one = _value(option)
    made = {"type": "array", "items": one} if option.repeatable else one
    default = option.default
    if type(default) in _TYPES and not (isinstance(default, float) and math.isinf(default)):
        made = {**made, "default": default}
    return {**made, "description": option.info.help}


def _value(option: Option) -> Schema:
    """What one value of an option may be."""
    info = option.info
    kind = option.item
    if info.tables:
        return {"type": ["string", "number", "object"]} if info.parse else _TABLE
    if info.parse is not None or isinstance(kind, list):
        return {"type": ["string", "number"]}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return {"enum": [each.value for each in kind]}
    made: Schema = {"type": _TYPES.get(kind, "string")}
    if kind in (int, float):
        bounds = {"minimum": info.least, "maximum": info.most}
        made |= {each: bound for each, bound in bounds.items() if bound is not None}
        if kind is float and option.default == math.inf:
            return {"anyOf": [made, {"type": "string"}]}
    return made


def _problems() -> Schema:
    """A line of a file of problems."""
    required = [name for name in FIELDS if name != "prompt"]
    fields: dict[str, Schema] = {
        "problem": {"type": "string", "minLength": 1},
        "prompt": _TEXT,
        "check": {"$ref": "#/$defs/check"},
        "question": _TEXT,
        "code": _TEXT,
        "messages": {"type": "array", "items": _TABLE, "minItems": 1},
        "solutions": _TEXTS,
        "weight": _AMOUNT,
        "expected_cost": _AMOUNT,
    }
    assert set(fields) == {*FIELDS, *OPTIONAL}
    return {
        "title": "A line of a file of problems of grv",
        "type": "object",
        "properties": fields,
        "required": required,
        "oneOf": [{"required": ["prompt"]}, {"required": ["messages"]}],
        "$defs": {"check": _check(), "part": _check(*_PART)},
    }


def _check(*more: str) -> Schema:
    """The record of a check: its kind says which fields it may have, besides `more`."""
    branches = []
    for name, kind in KINDS.items():
        names = ("kind", *kind.fields, "limits", "repeat", *ERROR_FIELDS, *more)
        fields = {each: _CHECK_FIELDS.get(each, {}) for each in names}
        then = {"properties": fields, "additionalProperties": False}
        branches.append({"if": {"properties": {"kind": {"const": name}}}, "then": then})
    # Packages may add kinds; their fields are their own.
    any_kind = {"type": "string", "minLength": 1, "examples": [*KINDS]}
    return {
        "type": "object",
        "properties": {"kind": any_kind},
        "required": ["kind"],
        "allOf": branches,
    }


def _clients() -> Schema:
    """A file of clients."""
    fields: dict[str, Schema] = {
        "key": {"type": "string", "pattern": f"^{HASH.pattern}$"},
        "key_env": {"type": "string", "minLength": 1},
        "budget": _AMOUNT,
        "profiles": _TEXTS,
        **dict.fromkeys(RIGHTS, _FLAG),
    }
    assert set(fields) == set(CLIENT_FIELDS)
    spelt = fields | {name.replace("_", "-"): each for name, each in fields.items()}
    one = {
        "type": "object",
        "properties": spelt,
        "additionalProperties": False,
        "oneOf": [{"required": [name]} for name in ("key", "key-env", "key_env")],
        "description": f"A key has at least {SHORTEST_KEY} characters.",
    }
    return {
        "title": "A file of clients of grv serve",
        "type": "object",
        "properties": {"clients": _by_name(one, NAME.pattern)},
        "required": ["clients"],
        "additionalProperties": False,
    }


def _answers() -> Schema:
    """A line of a file of answers."""
    fields: dict[str, Schema] = {
        "problem": _TEXT,
        "outcome": _TEXT,
        "answer": {"type": ["string", "null"]},
        "answer_verified": _FLAG,
        "answer_status": {"enum": ["verified", "judged", "unverified"]},
        "answer_program": {"type": ["string", "null"]},
        "generated": _COUNT,
        "verified": _COUNT,
        "cost": _AMOUNT,
        "usage": _TABLE,
        "seconds": _AMOUNT,
        "unneeded": _COUNT,
        "unneeded_candidates": _COUNT,
        "lost": {"type": "object", "additionalProperties": _COUNT},
        "unscored": _COUNT,
        "refuted": _COUNT,
        "shared": _COUNT,
        "search": _TEXT,
    }
    more: dict[str, Schema] = {
        "repeated": _COUNT,
        "wrong_probability": {"type": "number", "minimum": 0, "maximum": 1},
        "conditions": _TABLE,
        "answer_value": {},
        "answers": _TEXTS,
        "answer_programs": {"type": "array", "items": {"type": ["string", "null"]}},
        "generator": {"type": ["string", "null"]},
        "by_generator": {"type": "object", "additionalProperties": _TABLE},
        "message": _TEXT,
    }
    return {
        "title": "A line of a file of answers of grv solve",
        "type": "object",
        "properties": {**fields, **more},
        "required": [*fields],
        "additionalProperties": False,
    }


def _by_name(one: Schema, pattern: str = "") -> Schema:
    names = {"propertyNames": {"pattern": f"^{pattern}$"}} if pattern else {}
    return {"type": "object", "additionalProperties": one, "minProperties": 1, **names}


SCHEMAS: Mapping[str, Callable[[], Schema]] = {
    "job": _job,
    "problems": _problems,
    "clients": _clients,
    "answers": _answers,
}
