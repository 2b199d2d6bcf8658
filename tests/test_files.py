"""Files from outside: bounded, typed, and wrong in one line."""

from __future__ import annotations

import gzip
import json
import re
import resource
import subprocess
import sys
import tracemalloc
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grv import files
from grv.core.errors import LogError, UsageError
from grv.core.values import Verdict
from grv.files import is_number, json_lines, parse_json, read_bytes, read_toml, typed
from support.commands import refuses
from support.examples import examples


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "Expecting property name"),
        (b"\xff\xfe\x00", "not UTF-8 text"),
        (b"\x00" * 10, "."),
        ('{"a": "b', "Unterminated string$"),
        ("9" * 5000, "too many digits"),
        ("[" * 200 + "]" * 200, "nested more than 128 levels"),
        ("[" * 10**6, "nested more than 128 levels"),
        ('{"a":' * 900 + "1" + "}" * 900, "nested more than 128 levels"),
        ("", "Expecting value"),
    ],
)
def test_what_is_no_json_is_a_value_error_of_a_few_words(text: str | bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        parse_json(text)
    assert len(str(caught.value)) < 100
    assert "\n" not in str(caught.value)


@settings(max_examples=examples(100))
@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
        lambda inner: st.dictionaries(st.text(max_size=3), inner, max_size=3) | st.lists(inner),
        max_leaves=6,
    ),
    before=st.sampled_from(["", " ", "\ufeff", "{", "x"]),
    after=st.sampled_from(["", "\n", " ", "}", "{}", "\0"]),
)
def test_texts_are_parsed_as_the_standard_library_does(
    value: object, before: str, after: str
) -> None:
    text = before + json.dumps(value) + after
    try:
        expected = repr(json.loads(text))
    except json.JSONDecodeError as error:
        with pytest.raises(ValueError, match=re.escape(error.msg)):
            parse_json(text)
    else:
        assert repr(parse_json(text)) == expected


def test_nesting_up_to_the_limit_is_read() -> None:
    text = "[" * files.DEEPEST + "]" * files.DEEPEST
    assert json.dumps(parse_json(text)) == text
    wide = json.dumps([[{"a": []}] * 1000])
    assert parse_json(wide)


@pytest.mark.parametrize("text", ["NaN", "[-Infinity]", '{"a": 1e999}'])
def test_numbers_that_are_not_finite_are_refused_where_asked(text: str) -> None:
    parse_json(text)
    with pytest.raises(ValueError, match="a number is not finite"):
        parse_json(text, finite=True)


def test_a_long_line_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LONGEST_LINE", 1 << 20)
    path = tmp_path / "long.jsonl"
    path.write_bytes(b"{}\n" + b" " * (3 << 20))
    with pytest.raises(LogError, match=r"long.jsonl:2: a line of more than 1 MB"):
        list(json_lines(str(path)))
    with pytest.raises(UsageError, match="more than 1 MB"):
        read_bytes(str(path))


@pytest.mark.slow
@pytest.mark.parametrize("command", ["problems", "verify", "compare"])
def test_a_line_of_four_gigabytes_is_one_line_in_bounded_memory(
    tmp_path: Path, command: str
) -> None:
    path = tmp_path / ("bomb.jsonl.gz" if command == "problems" else "bomb.jsonl")
    if command == "problems":
        member = gzip.compress(b"x" * (1 << 24))
        path.write_bytes(member * 256)
    else:
        with path.open("wb") as file:
            file.truncate(4 << 30)  # as many null bytes, and no line break
    ways: dict[str, list[Any]] = {
        "problems": ["humaneval", path, "-o", tmp_path / "out"],
        "verify": [path, "-o", tmp_path / "out"],
        "compare": [path],
    }
    limit = 2 << 30

    def bound() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    ran = subprocess.run(
        [sys.executable, "-m", "grv", command, *map(str, ways[command])],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        preexec_fn=bound,
    )
    assert ran.returncode == 2
    assert ran.stderr == f"grv: {path}:1: a line of more than 64 MB\n"


def test_lines_that_unpack_to_far_more_than_their_file_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_UNPACKED", 1 << 20)
    record = {"prompt": "a" * 100_000, "check": {"kind": "math", "answer": "1"}}
    lines = [json.dumps({"problem": str(number), **record}) + "\n" for number in range(12)]
    path = tmp_path / "bomb.jsonl.gz"
    path.write_bytes(gzip.compress("".join(lines).encode()))
    refuses(
        ["solve", path, "--generator", "none", "-o", tmp_path / "out"],
        f"{path}: unpacks to more than 1,048,576 bytes; refused: if you trust it, unpack it",
    )
    path.write_bytes(gzip.compress("".join(lines[:10]).encode()))
    assert len(list(json_lines(str(path)))) == 10


def test_a_tiny_parquet_file_with_billions_of_values_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from grv import parquet

    monkeypatch.setattr(parquet, "MOST_CELLS", 1000)
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"problem": ["a"] * 5000, "passed": [True] * 5000}), path)
    refuses(["compare", path], "10,000 values; the limit is 1,000")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = " + "[" * 100_000, "not TOML: nested too deep"),
        ("a = " + "9" * 5000, "not TOML"),
        ('a = "x\\u0000y"', "not TOML: a null character"),
        ("a = [", "not TOML"),
    ],
)
def test_what_is_no_toml_is_said_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "job.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=said):
        read_toml(str(path))
    for command in (["solve", "--job"], ["compare", "x.csv", "--job"], ["collect", "--job"]):
        refuses([*command, path], said)


def test_a_path_with_a_null_character_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_bytes("a\0b")
    with pytest.raises(LogError, match="cannot be read"):
        list(json_lines("a\0b"))


@dataclass(frozen=True)
class Inner:
    """A record in a record."""

    x: float


@dataclass(frozen=True)
class Outer:
    """One field of each kind."""

    name: str
    count: int
    inner: Inner
    verdict: Verdict
    pair: tuple[float, float] = (0.0, 0.0)
    many: tuple[Inner, ...] = ()
    by_name: Mapping[str, int] | None = None
    how: Literal["a", "b"] = "a"
    whatever: Any = None


GOOD: dict[str, Any] = {"name": "n", "count": 3, "inner": {"x": 1}, "verdict": "passed"}


def test_a_record_becomes_a_dataclass() -> None:
    more = {"pair": [1, 2.5], "many": [{"x": 2}], "by_name": {"k": 1}, "how": "b", "else": 1}
    assert typed(Outer, {**GOOD, **more}) == Outer(
        "n", 3, Inner(1.0), Verdict.PASSED, (1.0, 2.5), (Inner(2.0),), {"k": 1}, "b"
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("name", 3),
        ("count", True),
        ("count", 1.5),
        ("count", 10**30),
        ("inner", []),
        ("inner", {}),
        ("inner", {"x": "1"}),
        ("inner", {"x": 10**400}),
        ("verdict", "maybe"),
        ("verdict", []),
        ("pair", [1]),
        ("pair", "ab"),
        ("many", {"x": 1}),
        ("many", [1]),
        ("by_name", {"k": "v"}),
        ("how", "c"),
        ("how", []),
    ],
)
def test_a_value_of_another_type_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=r"cannot be|missing|not a valid|record"):
        typed(Outer, {**GOOD, name: value})
    with pytest.raises(ValueError, match="is missing"):
        typed(Outer, {key: value for key, value in GOOD.items() if key != "count"})


def test_a_number_is_finite_as_a_float() -> None:
    assert is_number(1)
    assert is_number(2.5)
    for value in (True, "1", None, 10**400, float("nan"), float("inf")):
        assert not is_number(value)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('["' + '","' * 6_000_000 + '"]', marks=pytest.mark.soak),
        "[" + "[]," * 6_000_000 + "1]",
    ],
    ids=["texts", "lists"],
)
def test_more_values_than_the_memory_should_hold_are_refused(text: str) -> None:
    for content in (text, text.encode()):
        with pytest.raises(ValueError, match="more than 5,000,000 values"):
            parse_json(content)


def test_a_long_text_with_many_commas_is_one_value() -> None:
    value = {"input": '",[{' * 2_000_000}
    assert parse_json(json.dumps(value)) == value


def test_a_long_last_line_takes_no_more_memory_than_itself() -> None:
    line = b'{"problem": "' + b"a\\n" * 2_000_000
    tracemalloc.start()
    try:
        assert files.is_torn(line, (b'{"problem": "', files.TEXT, b'"'))
        assert tracemalloc.get_traced_memory()[1] < 5 * len(line)
    finally:
        tracemalloc.stop()
