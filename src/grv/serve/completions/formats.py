"""The form of the answers that a request wants. A schema has known keywords, and refers to itself.

Only listed keywords reach the model's server. Another one could name an address.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...files import shown
from ...options import did_you_mean
from ..errors import wrong

_PARAM = "response_format"
_LARGEST = 10_000  # values in a schema
_LONGEST_PLACE = 200  # characters of the place of a mistake, which has names of the client
_FORMATS = ("text", "json_object", "json_schema")
# The fields of a format of type json_schema, and what they must be.
_FIELDS: Mapping[str, type] = {"name": str, "description": str, "schema": dict, "strict": bool}
# The names of the dialects that every server knows. They are left out.
_DIALECTS = (
    "http://json-schema.org/draft-07/schema",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
)
# Keywords by what their values are.
_SCHEMA = (
    "additionalItems",
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
)
_SCHEMAS = ("allOf", "anyOf", "items", "oneOf", "prefixItems")
_NAMED = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")
_DATA = ("const", "default", "enum", "examples")  # values of answers: they refer to nothing
_TEXTS = ("$comment", "description", "format", "pattern", "title")
_NUMBERS = (
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
)
_FLAGS = ("deprecated", "nullable", "readOnly", "uniqueItems", "writeOnly")
_KEYWORDS = tuple(
    sorted(
        {*_SCHEMA, *_SCHEMAS, *_NAMED, *_DATA, *_TEXTS, *_NUMBERS, *_FLAGS}
        | {"$ref", "$schema", "dependentRequired", "required", "type"}
    )
)


def parse_format(given: Any) -> dict[str, Any]:
    """The form of the answers, without anything that refers to other places."""
    if not isinstance(given, Mapping) or given.get("type") not in _FORMATS:
        raise wrong(_PARAM, f"needs a type: one of {', '.join(_FORMATS)}")
    fields = ("type", "json_schema") if given["type"] == "json_schema" else ("type",)
    _only(given, fields, _PARAM)
    if given["type"] != "json_schema":
        return {"type": given["type"]}
    place = f"{_PARAM}.json_schema"
    inner = given.get("json_schema")
    if not isinstance(inner, Mapping):
        raise wrong(place, f"must be an object with a name and a schema, not {shown(inner)}")
    return schema_format(inner, place)


def schema_format(given: Mapping[str, Any], place: str) -> dict[str, Any]:
    """The form of answers that follow a schema, given its fields and their place in a request."""
    _only(given, tuple(_FIELDS), place)
    found: dict[str, Any] = {}
    for name, kind in _FIELDS.items():
        value = given.get(name)
        if value is None:
            continue
        if not isinstance(value, kind):
            raise wrong(f"{place}.{name}", f"must not be {shown(value)}")
        found[name] = parse_schema(value, f"{place}.schema") if name == "schema" else value
    return {"type": "json_schema", "json_schema": found}


def parse_schema(given: Any, place: str) -> Any:
    """A schema, if it is small enough and every keyword is known."""
    _check_size(given, place)
    return _schema(given, place)


def _check_size(schema: Any, place: str) -> None:
    """Refuse a schema with too many values, before anything is made of them."""
    number = 0
    level = [schema]
    while level:
        number += len(level)
        if number > _LARGEST:
            raise wrong(place, f"has more than {_LARGEST} values")
        inner: list[Any] = []
        for value in level:
            match value:
                case Mapping():
                    inner += value.values()
                case list():
                    inner += value
        level = inner


def _at(place: str, name: str) -> str:
    """The place of a value in a schema. A long one is cut: every value inside would copy it."""
    return place if len(place) > _LONGEST_PLACE else f"{place}{name[:_LONGEST_PLACE]}"


def _only(given: Mapping[str, Any], known: tuple[str, ...], place: str) -> None:
    for name in given:
        if name not in known:
            raise wrong(_at(place, f".{name}"), f"is not supported{did_you_mean(name, known)}")


def _schema(given: Any, place: str) -> Any:
    """A schema of which every keyword is known."""
    if isinstance(given, bool):
        return given
    if not isinstance(given, Mapping):
        raise wrong(place, f"must be a schema, not {shown(given)}")
    _only(given, _KEYWORDS, place)
    return {
        name: _value(name, value, _at(place, f".{name}"))
        for name, value in given.items()
        if name != "$schema" or value not in _DIALECTS
    }


def _value(name: str, value: Any, place: str) -> Any:
    """The value of a keyword, if it has the form that the keyword wants."""
    match value:
        case list() if name in _SCHEMAS:
            return [_schema(each, _at(place, f"[{at}]")) for at, each in enumerate(value)]
        case Mapping() if name in _NAMED:
            return {each: _schema(inner, _at(place, f".{each}")) for each, inner in value.items()}
        case Mapping() | bool() if name in _SCHEMA:
            return _schema(value, place)
        case bool():
            fits = name in (*_FLAGS, *_DATA, "exclusiveMaximum", "exclusiveMinimum")
        case int() | float():
            fits = name in (*_NUMBERS, *_DATA)
        case str():
            local = name == "$ref" and (value == "#" or value.startswith("#/"))
            fits = local or name in (*_TEXTS, *_DATA, "type")
        case list():
            texts = all(isinstance(each, str) for each in value)
            fits = name in _DATA or (texts and name in ("required", "type"))
        case Mapping():
            lists = all(isinstance(each, list) for each in value.values())
            fits = name in _DATA or (lists and name == "dependentRequired")
        case _:
            fits = name in _DATA
    if not fits:
        more = "; a reference begins with #/" if name.startswith("$") else ""
        raise wrong(place, f"cannot be {shown(value)}{more}")
    return value
