"""YAML, read within bounds and as YAML 1.2 reads it: `yes`, dates and `1:30` are texts.

No tag makes an object. A file whose aliases stand for too many values is refused before any value
is made.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from ...core.errors import UsageError, installing
from ...files import DEEPEST, error_line

LARGEST_FILE = 8 << 20  # bytes; reading takes some seconds for each million
MOST_VALUES = 500_000

_RESOLVED = {
    "tag:yaml.org,2002:null": (r"~|null|Null|NULL|", ["", *"~nN"]),
    "tag:yaml.org,2002:bool": (r"true|True|TRUE|false|False|FALSE", [*"tTfF"]),
    "tag:yaml.org,2002:int": (r"[-+]?[0-9]+", [*"-+0123456789"]),
    "tag:yaml.org,2002:float": (
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?",
        [*"-+.0123456789"],
    ),
}

_OTHER = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:seq", "tag:yaml.org,2002:map")


def parse_yaml(content: bytes, path: str) -> Any:
    """The values of a YAML file; a UsageError of one line if it is not one."""
    if len(content) > LARGEST_FILE:
        raise UsageError(f"{path}: more than {LARGEST_FILE >> 20} MB of YAML")
    try:
        import yaml
    except ImportError:
        raise UsageError(f"{path}: reading YAML needs PyYAML: {installing('yaml')}") from None
    try:
        loader = _loader()(content)
        node = loader.get_single_node()
        if node is None:
            return None
        _check(node, path)
        return loader.construct_document(node)
    except UsageError:
        raise
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UsageError(f"{path}:{line}: not YAML: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{path}: not YAML: {error_line(error)}") from error
    except RecursionError:
        raise UsageError(f"{path}: nested more than {DEEPEST} levels deep") from None
    except ValueError as error:  # an integer with too many digits
        raise UsageError(f"{path}: not YAML: {error_line(error)}") from error


@functools.cache
def _loader() -> Any:
    """PyYAML's safe loader, with the plain values of YAML 1.2."""
    import yaml

    loader: Any = type("Loader", (yaml.SafeLoader,), {})
    loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag.endswith(":merge")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    made = (*_RESOLVED, *_OTHER)
    loader.yaml_constructors = {
        tag: maker
        for tag, maker in yaml.SafeLoader.yaml_constructors.items()
        if tag is None or tag in made
    }
    for tag, (pattern, first) in _RESOLVED.items():
        loader.add_implicit_resolver(tag, re.compile(rf"(?:{pattern})\Z"), first)
    loader.add_constructor("tag:yaml.org,2002:int", _integer)
    return loader


def _integer(loader: Any, node: Any) -> int:
    return int(loader.construct_scalar(node))


def _check(node: Any, path: str) -> None:
    """Refuse nesting and aliases that stand for too much."""
    waiting = [(node, 1)]
    count = 0
    while waiting:
        part, depth = waiting.pop()
        count += 1
        if count > MOST_VALUES:
            raise UsageError(f"{path}: more than {MOST_VALUES:,} values, with those of aliases")
        if depth > DEEPEST:
            raise UsageError(f"{path}: nested more than {DEEPEST} levels deep")
        if isinstance(part.value, list):
            for each in part.value:
                children = each if isinstance(each, tuple) else (each,)
                waiting += [(child, depth + 1) for child in children]
