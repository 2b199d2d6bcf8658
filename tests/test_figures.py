"""The figures of the theory are drawn from the numbers beside them, which keep the bounds."""

from __future__ import annotations

import json
import math
import runpy
from pathlib import Path
from xml.etree import ElementTree

import pytest

from grv.policies import POLICIES

DOCS = Path(__file__).parents[1] / "docs"
FIGURES = DOCS / "theory" / "figures"
DATA = json.loads((FIGURES / "data.json").read_text(encoding="utf-8"))
NAMES = sorted(path.stem for path in FIGURES.glob("*.svg"))


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_is_what_its_numbers_say(name: str) -> None:
    charts = runpy.run_path(str(DOCS / "make_figures.py"))["charts"](DATA)
    written = (FIGURES / f"{name}.svg").read_text(encoding="utf-8")

    assert set(charts) == set(NAMES)
    assert charts[name].svg() == written, "python docs/make_figures.py --draw"
    ElementTree.fromstring(written)
    assert f"figures/{name}.svg" in (DOCS / "theory" / "learning.md").read_text(encoding="utf-8")


def test_every_policy_that_can_be_run_is_among_the_numbers() -> None:
    stars = {row[1] for row in DATA["lower"]["rows"]}
    named = [row[0] for row in DATA["lower"]["rows"]]
    found = {name for name in named if named.count(name) == len(stars)}

    assert found == set(POLICIES) - {"fixed", "learned"}  # one gives up, one needs a history


def test_the_numbers_are_on_the_right_side_of_every_bound() -> None:
    runs = DATA["lower"]["runs"]
    for _, _, ratio, bound, _, _ in DATA["lower"]["rows"]:
        assert ratio * (1 + 4 / math.sqrt(runs)) >= bound
    assert all(ratio <= 3 for _, ratio in DATA["upper"]["rows"])
    assert all(members <= star for star, members in DATA["hitting"]["rows"])
    for mass, found in DATA["learning"]["rows"]:
        assert mass <= 2 or found >= 1 - 2 * DATA["learning"]["delta"] - 0.1
    for _, searching, learning, weaker, exact in DATA["separating"]["rows"]:
        assert searching <= 1 < weaker <= exact <= learning
