"""The style of figures, on the page and in print: colours, dashes and shapes per name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

# Distinguishable with any kind of colour vision; contrast at least 3:1 with the background.
LIGHT = {
    "ground": "#ffffff",
    "card": "#f7f8fa",
    "edge": "#d5d9e0",
    "text": "#1a1d23",
    "faint": "#535b68",
    "grid": "#e6e9ee",
    "link": "#0b5cad",
    "warn": "#fff4dc",
    "warn-edge": "#b57500",
}
DARK = {
    "ground": "#12151a",
    "card": "#1a1e25",
    "edge": "#3a414d",
    "text": "#eceff4",
    "faint": "#aab2c0",
    "grid": "#2a303a",
    "link": "#7cc0ff",
    "warn": "#33290f",
    "warn-edge": "#d9a13a",
}
HUES_LIGHT = (
    "#0b6bb8",
    "#c2570c",
    "#00805a",
    "#9c3d97",
    "#2f8fb8",
    "#8a6a14",
    "#c0232c",
    "#6a717d",
    "#5f7a00",
    "#1a1d23",
)
HUES_DARK = (
    "#62b0f5",
    "#f59a45",
    "#3fcf9f",
    "#e08bdc",
    "#8fdcf0",
    "#d8bd66",
    "#ff8078",
    "#98a1b0",
    "#b9d552",
    "#eceff4",
)
RAMP_LIGHT = ("#3f9d55", "#2f9474", "#268987", "#2f6f8e", "#3d5290", "#47307d", "#440154")
RAMP_DARK = ("#7478e0", "#4a86cf", "#36a3b5", "#2fbb94", "#63cc6a", "#a6da3d", "#fde725")
PRINT: dict[Any, Any] = {
    "font.size": 8.0,
    "axes.titlesize": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.edgecolor": LIGHT["faint"],
    "grid.color": LIGHT["grid"],
    "grid.linewidth": 0.6,
    "legend.fontsize": 7.5,
    "pdf.fonttype": 42,  # embed fonts as text, not as outlines
    "savefig.dpi": 200.0,
    "svg.hashsalt": "grv",  # the same names in every file
    "text.parse_math": False,  # names of policies and logs are not formulas
}
DASHES = ("", "6 3", "2 3", "8 3 2 3", "12 4")
SHAPES = ("circle", "square", "diamond", "triangle", "cross")


@dataclass(frozen=True)
class Style:
    """A colour, a dash and a shape, as indices into the lists above."""

    hue: int
    dash: int
    shape: int


_QUIET = 7
# Every policy has a colour of its own. Baselines, which know labels, are black or grey.
_KNOWN = {
    "varied": Style(0, 0, 0),
    "learning": Style(3, 0, 4),
    "adaptive": Style(1, 0, 3),
    "adaptive-all": Style(5, 3, 1),
    "verify-all": Style(2, 2, 1),
    "balanced": Style(6, 1, 2),
    "alternate": Style(8, 4, 0),
    "hedged": Style(4, 1, 3),
    "hindsight": Style(9, 1, 2),
    "uniform-matched": Style(_QUIET, 4, 3),
    "best uniform pair": Style(_QUIET, 0, 0),
    "least-spent": Style(0, 0, 0),
    "in-order": Style(2, 2, 1),
    "oracle": Style(_QUIET, 3, 3),
    "first": Style(0, 0, 0),
    "second": Style(1, 1, 2),
    "third": Style(2, 2, 1),
    "passed": Style(0, 0, 0),
    "failed": Style(1, 0, 0),
    "quiet": Style(_QUIET, 1, 0),
    "difficulty groups": Style(_QUIET, 0, 0),
    "the matched pair fails": Style(6, 0, 0),
}
_DIFFICULTY = re.compile(r"difficulty-\d+")
_FREE = (6, 5, 8, 4, 3)  # hues for other names, if no known name of the report has them


def styles(names: Iterable[str]) -> dict[str, Style]:
    """A style for each name. Known names have the same style in every report."""
    found: dict[str, Style] = {}
    groups = others = 0
    names = list(names)
    taken = {_KNOWN[name].hue for name in names if name in _KNOWN}
    free = [hue for hue in _FREE if hue not in taken] or list(_FREE)
    for name in dict.fromkeys((*names, *_KNOWN)):
        if name in _KNOWN:
            found[name] = _KNOWN[name]
        elif _DIFFICULTY.fullmatch(name):
            found[name] = Style(_QUIET, groups % len(DASHES), groups % len(SHAPES))
            groups += 1
        else:
            place = others % len(free)
            found[name] = Style(free[place], others % len(DASHES), (others + 1) % len(SHAPES))
            others += 1
    return found


def variables(dark: bool) -> str:
    """The colours as CSS custom properties."""
    plain, hues, ramp = (DARK, HUES_DARK, RAMP_DARK) if dark else (LIGHT, HUES_LIGHT, RAMP_LIGHT)
    parts = [f"--{name}:{value}" for name, value in plain.items()]
    parts += [f"--hue-{at}:{value}" for at, value in enumerate(hues)]
    parts += [f"--ramp-{at}:{value}" for at, value in enumerate(ramp)]
    return ";".join(parts)


def themes() -> str:
    """The colours of both themes as CSS: that of the system, unless the page names one."""
    light = variables(dark=False)
    dark = variables(dark=True)
    rules = [
        f":root{{color-scheme:light;{light}}}",
        "@media (prefers-color-scheme:dark){:root:not([data-theme=light])"
        f"{{color-scheme:dark;{dark}}}}}",
        f":root[data-theme=dark]{{color-scheme:dark;{dark}}}",
        *(f".hue-{at}{{--hue:var(--hue-{at})}}" for at in range(len(HUES_LIGHT))),
        *(f".ramp-{at}{{--hue:var(--ramp-{at})}}" for at in range(len(RAMP_LIGHT))),
    ]
    return "\n".join(rules)
