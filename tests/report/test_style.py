"""Colours have enough contrast, and names have different styles."""

from __future__ import annotations

import numpy as np
import pytest

from grv.report.style import DARK, HUES_DARK, HUES_LIGHT, LIGHT, RAMP_DARK, RAMP_LIGHT, styles


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def contrast(one: str, other: str) -> float:
    high, low = sorted([luminance(one), luminance(other)], reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    ("colours", "hues", "ramp"),
    [(LIGHT, HUES_LIGHT, RAMP_LIGHT), (DARK, HUES_DARK, RAMP_DARK)],
    ids=["light", "dark"],
)
def test_text_and_marks_stand_out_from_their_ground(
    colours: dict[str, str], hues: tuple[str, ...], ramp: tuple[str, ...]
) -> None:
    for ground in (colours["ground"], colours["card"]):
        assert all(contrast(colours[text], ground) >= 4.5 for text in ("text", "faint", "link"))
        assert all(contrast(hue, ground) >= 3 for hue in hues)
        assert all(contrast(hue, ground) >= 3 for hue in ramp)
    assert contrast(colours["text"], colours["warn"]) >= 7


def test_names_of_one_report_never_share_a_whole_style() -> None:
    names = ["adaptive", "hindsight", "verify-all", "uniform-matched", "adaptive-all"]
    names += [f"difficulty-{groups}" for groups in (1, 2, 3, 5, 10)]
    names += ["balanced", "alternate", "fixed(64, 4)", "threshold(0.5)", "learned"]
    given = styles(names)
    assert len({given[name] for name in names}) == len(names)
    assert styles(names[::-1])["adaptive"] == given["adaptive"]
