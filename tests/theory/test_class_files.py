"""Files of classes: the forms that are read, and what is said of the others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from grv.core.errors import UsageError
from grv.theory.stars import class_files
from grv.theory.stars.class_files import load_class


@pytest.mark.parametrize(
    "text",
    [
        "0 1\n1 0\n",
        "0,1\n1,0",
        "0, 1\n\n1,\t0\n",
        "# two\n0 1 # the first\n1.0 0e0\n",
        "\ufeff0,1\r\n1,0\r\n",
        "  0 ,1  \n1 0",
    ],
)
def test_entries_are_apart_by_blanks_or_commas(text: str, tmp_path: Path) -> None:
    path = tmp_path / "class.txt"
    path.write_text(text)

    assert load_class(str(path)).rows() == ("01", "10")


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.float32, np.float64])
def test_arrays_of_any_kind_of_number_are_read(dtype: type, tmp_path: Path) -> None:
    path = tmp_path / "class.npy"
    np.save(path, np.array([[0, 1], [1, 0]], dtype=dtype))

    assert load_class(str(path)).rows() == ("01", "10")


def test_a_file_named_like_a_family_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("thresholds:2").write_text("1 0 1\n")

    assert load_class("thresholds:2").points == 3
    assert load_class("thresholds:3").concepts == 4


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"0 1\n1\n", ":2: 1 entries, but the first row has 2"),
        (b"0 1\n2 0\n", ":2: '2' is not a number from 0 to 1"),
        (b"0 one\n", ":1: 'one' is not a number from 0 to 1"),
        (b"0 nan\n", ":1: 'nan' is not a number from 0 to 1"),
        (b"0;1\n", ":1: '0;1' is not a number"),
        (b"0 0_1\n", ":1: '0_1' is not a number"),
        (b"0,1\n1,,0\n", ":2: an entry is missing"),
        (b"0,1,\n", ":1: an entry is missing"),
        (b",,\n", ":1: an entry is missing"),
        (b"", ": there are no concepts"),
        (b"# nothing\n\n", ": there are no concepts"),
        (b"\xff\xfe0", "this is not a text file"),
    ],
)
def test_a_text_that_is_no_class_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "class.txt"
    path.write_bytes(content)

    with pytest.raises(UsageError) as caught:
        load_class(str(path))
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros((2, 2, 2)), "give a matrix"),
        (np.array([["a"]]), "must be numbers"),
        (np.array([[None]]), "not an .npy file of numbers"),
        (np.zeros((0, 4)), "no concepts"),
        (np.zeros((4, 0)), "no points"),
        (np.array([[0.0, 7.0]]), "7 in row 0, column 1"),
    ],
)
def test_an_array_that_is_no_class_is_refused(
    values: np.ndarray, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "class.npy"
    np.save(path, values)

    with pytest.raises(UsageError, match=message):
        load_class(str(path))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not numpy at all",
        b"\x93NUMPY\x01\x00",
        b"\x93NUMPY\x01\x00v\x00{junk" + b" " * 112 + b"\n",
        b"\x93NUMPY\x01\x00v\x00"
        + b"{'descr': '<f8', 'fortran_order': False, 'shape': (9, 9), }".ljust(117)
        + b"\n",
    ],
)
def test_a_file_that_is_npy_in_name_only_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "class.npy"
    path.write_bytes(content)

    with pytest.raises(UsageError, match=r"not an \.npy file"):
        load_class(str(path))


def test_a_file_that_is_too_large_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    big = tmp_path / "big.npy"
    np.lib.format.open_memmap(big, mode="w+", dtype=np.uint8, shape=(10**6, 10**3)).flush()
    with pytest.raises(UsageError, match="1,000,000 concepts on 1,000 points are too many"):
        load_class(str(big))
    big.unlink()

    monkeypatch.setattr(class_files, "MOST_ENTRIES", 5)
    text = tmp_path / "big.txt"
    text.write_text("0 1\n" * 3)
    with pytest.raises(UsageError, match="too large"):
        load_class(str(text))


def test_a_text_that_is_neither_a_file_nor_a_family_is_refused() -> None:
    with pytest.raises(UsageError, match=r"nowhere\.txt: no such file, and not a family"):
        load_class("nowhere.txt")
