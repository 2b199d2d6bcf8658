"""The fast readers of CSV files read what the one reader of all files does, errors included."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grv.core.errors import LogError
from grv.logs import csv_files
from grv.logs.csv_files import Columns, read_any, read_csv, read_plain
from grv.logs.log import Log
from support.examples import examples

CELLS = [
    *("0", "1", "-1", "7", "007", "+5", " 5", "1_000", "0x1f", "x", "-0", "9" * 19, "9" * 25),
    *("-9223372036854775808", "0.5", "-0.0", "1e3", "1e999", ".5", "5.", "1e", "1e-400", "0.1"),
    *("nan", "NaN", "nan(1)", "inf", "-Infinity", "", " ", "True", "false", "passed", "null"),
    *("problem-1", "ä", "٣", "=1", "'=1", "'", "a b", "\x0b", "\u2028", "\x85", "\ufeff", "\0"),
    *('"a"', '"a,b"', '"a\nb"', '"a""b"', 'a"b', '"a"b', '"', "a\rb", "\t"),
]
HEADS = ["problem", "candidate", "passed", "score", "key", "text", "", "score"]
cells = st.one_of(
    st.sampled_from(CELLS),
    st.floats().map(repr),
    st.integers(-(2**65), 2**65).map(str),
    st.text("01.eE+-x_ ,\"'\r\n", max_size=4),
)
numbers = st.one_of(st.floats(allow_nan=False).map(repr), st.integers(-9, 9).map(str))


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Mostly right files, some of them plain, some with damage."""
    width = draw(st.integers(1, 4))
    head = draw(st.permutations(HEADS))[:width]
    columns = [draw(st.sampled_from([cells, numbers, st.sampled_from(CELLS[:11])])) for _ in head]
    rows = draw(st.lists(st.tuples(*columns), max_size=6))
    ends = draw(st.sampled_from([["\n"], ["\r\n"], ["\n", "\r\n"], ["\n", "\n\n"], ["\n", "\r"]]))
    lines = [",".join(row) + draw(st.sampled_from(ends)) for row in [head, *rows]]
    if draw(st.booleans()):
        lines[-1] = lines[-1].rstrip("\r\n")
    content = "".join(lines).encode()
    if draw(st.integers(0, 9)) == 0:
        place = draw(st.integers(0, len(content)))
        content = content[:place] + draw(st.sampled_from([b"\xff", b",", b"\n"])) + content[place:]
    return b"\xef\xbb\xbf" * draw(st.integers(0, 1)) + content


def described(columns: Columns, lines: object) -> object:
    """Everything that may differ: names, types of arrays and of values, values, lines."""
    return (
        [
            (name, str(values.dtype), [(type(each), repr(each)) for each in values.tolist()])
            for name, values in columns.items()
        ],
        list(lines),  # type: ignore[call-overload]
    )


def outcome(read: Callable[[str], tuple[Columns, object]], path: Path) -> object:
    """What a reader returns, or what it says."""
    try:
        return described(*read(str(path)))
    except LogError as error:
        return str(error), error.line


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("csv") / "log.csv"


def test_of_two_faults_both_readers_name_the_same(file: Path) -> None:
    file.write_bytes(b"score,score\n\xff")

    assert outcome(read_csv, file) == outcome(read_any, file)


@pytest.mark.slow
@pytest.mark.parametrize("for_arrow", [0, 1 << 60], ids=["arrow", "splitting"])
@settings(max_examples=examples(100))
@given(content=files(), part=st.sampled_from([1, 5, 1 << 20]))
def test_the_fast_readers_agree_with_the_reader_of_all_files(
    file: Path, for_arrow: int, content: bytes, part: int
) -> None:
    file.write_bytes(content)
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(csv_files, "FOR_ARROW", for_arrow)
        changed.setattr(csv_files, "_PART", part)
        assert outcome(read_csv, file) == outcome(read_any, file)


@pytest.mark.parametrize("for_arrow", [0, 1 << 60], ids=["arrow", "splitting"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_file_of_scores_is_plain(
    file: Path, for_arrow: int, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the test above compares the slow reader with itself."""
    monkeypatch.setattr(csv_files, "FOR_ARROW", for_arrow)
    rows = [f"p{at // 3},{at % 3},{at % 2 == 0},{at / 7!r},{at * 0.5:g}" for at in range(12)]
    file.write_bytes(end.join(["problem,candidate,passed,score,other", *rows]).encode())

    read = read_plain(str(file))

    assert read is not None
    assert for_arrow != 0 or csv_files.by_arrow(file.read_bytes(), list("abcde"), ",", 12)
    assert described(*read) == outcome(read_any, file)
    assert [values.dtype.kind for values in read[0].values()] == ["O", "i", "O", "f", "f"]


@pytest.mark.slow
def test_arrow_reads_a_large_file_as_the_others_do(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In several blocks of Arrow, with a column that is a number until its last cell."""
    values = np.random.default_rng(1).normal(size=120_000).tolist()
    rows = [f"{at // 100},{at % 100},{at % 7 == 0:d},{x!r},{at}" for at, x in enumerate(values)]
    rows[-1] = rows[-1][:-1] + "?"
    file.write_text("\n".join(["problem,candidate,passed,score,other", *rows, ""]))
    monkeypatch.setattr(csv_files, "FOR_ARROW", 0)

    assert outcome(read_csv, file) == outcome(read_any, file)


def test_without_pyarrow_a_large_file_is_split(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text("problem,candidate,passed,score\na,0,True,.5\na,1,False,2\n")
    monkeypatch.setattr(csv_files, "FOR_ARROW", 0)
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    assert outcome(read_csv, file) == outcome(read_any, file)
    assert Log.load(file)["a"].scores.tolist() == [0.5, 2.0]
