"""Files of datasets, as records: JSON lines, a JSON list, Parquet; also compressed with gzip."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...core.errors import LogError
from ...files import LONGEST_LINE, error_line, json_lines, parse_json, shown
from ...parquet import read_rows
from .records import Record

_BEGINNING = 64  # bytes in which a list begins


def read_records(path: str) -> Iterator[Record]:
    """The records of a file. A LogError says what is wrong with the file."""
    source = Path(path).name.partition(".")[0]
    for number, data in enumerate(_rows(path), 1):
        yield Record(data, path, number, source)


def _rows(path: str) -> Iterator[Mapping[str, Any]]:
    if path.endswith(".parquet"):
        yield from read_rows(path)
    elif path.endswith((".json", ".json.gz")) and _is_list(path):
        yield from _listed(path)
    else:
        for _, record in json_lines(path):
            yield record


def _is_list(path: str) -> bool:
    """Whether a file is one JSON list; otherwise it is JSON lines."""
    return _content(path, _BEGINNING).lstrip().startswith(b"[")


def _content(path: str, most: int) -> bytes:
    try:
        with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
            return file.read(most)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise LogError(f"cannot be read: {error_line(error)}", path=path) from error


def _listed(path: str) -> Iterator[Mapping[str, Any]]:
    content = _content(path, LONGEST_LINE + 1)
    if len(content) > LONGEST_LINE:
        megabytes = LONGEST_LINE >> 20
        raise LogError(f"a list of more than {megabytes} MB: write it as JSON lines", path=path)
    try:
        rows = parse_json(content)
    except ValueError as error:
        raise LogError(f"not JSON: {error}", path=path) from error
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise LogError(f"a row must be an object, not {shown(row)}", path=path, line=number)
        yield row
