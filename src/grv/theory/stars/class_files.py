"""Reads concept classes from files: text with entries separated by spaces or commas, or `.npy`."""

from __future__ import annotations

import os
import tokenize
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import UsageError
from .classes import FAMILIES, MOST_ENTRIES, ConceptClass, check_size, family


def load_class(text: str) -> ConceptClass:
    """The class of a family, such as `thresholds:16`, or of a file with one concept per row."""
    if not os.path.exists(text):
        if (known := family(text)) is not None:
            return known
        raise UsageError(
            f"{text}: no such file, and not a family ({', '.join(FAMILIES)}; write e.g."
            " intervals:16)"
        )
    return ConceptClass(_npy(text) if text.endswith(".npy") else _text(text), text)


def _npy(path: str) -> NDArray[Any]:
    try:
        with open(path, "rb") as file:
            # Check the shape before reading the data.
            np.lib.format.read_magic(file)
        shape = np.load(path, mmap_mode="r", allow_pickle=False).shape
        if len(shape) == 2:
            check_size(shape[0], shape[1], path)
        found: NDArray[Any] = np.load(path, allow_pickle=False)
    except UsageError:
        raise
    except (ValueError, EOFError, SyntaxError, OverflowError, tokenize.TokenError) as error:
        raise UsageError(f"{path}: not an .npy file of numbers ({error})") from error
    return found


def _text(path: str) -> NDArray[np.float64]:
    """The entries of a text file; empty lines and comments after `#` are ignored."""
    rows: list[list[float]] = []
    entries = 0
    try:
        with open(path, encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                if not (kept := line.partition("#")[0].strip()):
                    continue
                words = [word for cell in kept.split(",") for word in cell.split() or [""]]
                rows.append(_row(words, f"{path}:{number}"))
                entries += len(words)
                if len(words) != len(rows[0]):
                    raise UsageError(
                        f"{path}:{number}: {len(words)} entries, but the first row has"
                        f" {len(rows[0])}"
                    )
                if entries > MOST_ENTRIES:
                    raise UsageError(f"{path}: too large (at most {MOST_ENTRIES:,} entries)")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: this is not a text file; name a NumPy file .npy") from error
    if not rows:
        raise UsageError(f"{path}: there are no concepts")
    return np.array(rows)


def _row(words: list[str], place: str) -> list[float]:
    found = []
    for word in words:
        try:
            value = float(word) if "_" not in word else -1.0  # float() would accept 0_1
        except ValueError:
            value = -1.0
        if not 0 <= value <= 1:
            what = f"{word[:40]!r} is not a number from 0 to 1" if word else "an entry is missing"
            raise UsageError(f"{place}: {what}")
        found.append(value)
    return found
