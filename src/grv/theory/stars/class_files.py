"""Concept classes in files: text, entries apart by blanks or commas, or `.npy`."""

from __future__ import annotations

import os
import tokenize
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import UsageError
from .classes import FAMILIES, MOST_ENTRIES, ConceptClass, check_size, family


def load_class(text: str) -> ConceptClass:
    """The class of a family, `thresholds:16`, or of a file with one concept a row."""
    if not os.path.exists(text):
        if (known := family(text)) is not None:
            return known
        raise UsageError(
            f"{text}: no such file, and no family (those are {', '.join(FAMILIES)}, as in"
            " intervals:16)"
        )
    return ConceptClass(_npy(text) if text.endswith(".npy") else _text(text), text)


def _npy(path: str) -> NDArray[Any]:
    try:
        with open(path, "rb") as file:
            # The shape is looked at before anything is read.
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
    """The entries of a text file; empty lines, and what follows `#`, are passed over."""
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
                        f"{path}:{number}: {len(words)} entries, where the first row has"
                        f" {len(rows[0])}"
                    )
                if entries > MOST_ENTRIES:
                    raise UsageError(f"{path}: more than fits (at most {MOST_ENTRIES:,} entries)")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: neither text nor named .npy") from error
    if not rows:
        raise UsageError(f"{path}: there are no concepts")
    return np.array(rows)


def _row(words: list[str], place: str) -> list[float]:
    found = []
    for word in words:
        try:
            value = float(word) if "_" not in word else -1.0  # Python's own 0_1 is a slip here
        except ValueError:
            value = -1.0
        if not 0 <= value <= 1:
            what = f"{word[:40]!r} is not a number from 0 to 1" if word else "an entry is missing"
            raise UsageError(f"{place}: {what}")
        found.append(value)
    return found
