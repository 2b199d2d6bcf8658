"""The figures: those of the theory, from the numbers beside them, and the rounds of policies."""

from __future__ import annotations

import json
import math
import re
import runpy
from pathlib import Path
from xml.etree import ElementTree

import pytest

from grv.core.values import Costs
from grv.policies import POLICIES
from grv.policies.spec import parse
from grv.testing.drivers import run

DOCS = Path(__file__).parents[1] / "docs"
FIGURES = DOCS / "theory" / "figures"
DATA = json.loads((FIGURES / "data.json").read_text(encoding="utf-8"))
ROUNDS = runpy.run_path(str(DOCS / "rounds.py"))
NAMES = sorted(path.stem for path in FIGURES.glob("*.svg"))


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_is_what_its_numbers_say(name: str) -> None:
    charts = runpy.run_path(str(DOCS / "make_figures.py"))["charts"](DATA)
    written = (FIGURES / f"{name}.svg").read_text(encoding="utf-8")

    assert set(charts) == set(NAMES)
    assert charts[name].svg() == written, "python docs/make_figures.py --draw"
    ElementTree.fromstring(written)
    assert f"figures/{name}.svg" in (DOCS / "theory" / "learning.md").read_text(encoding="utf-8")


def test_the_policies_that_the_page_speaks_of_are_among_the_numbers() -> None:
    stars = {row[1] for row in DATA["lower"]["rows"]}
    named = [row[0] for row in DATA["lower"]["rows"]]
    found = {name for name in named if named.count(name) == len(stars)}
    page = (DOCS / "theory" / "learning.md").read_text(encoding="utf-8")
    spoken_of = set(re.findall(r"`([\w-]+)`", page)) & set(POLICIES)

    assert spoken_of - {"fixed", "learned"} <= found  # one gives up, one needs a history
    assert found <= set(POLICIES)
    assert len(found) > 5


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


@pytest.mark.parametrize("name", POLICIES)
def test_the_picture_of_a_policy_shows_what_its_search_did(name: str) -> None:
    policy = ROUNDS["policy_of"](name)
    search = run(policy, Costs(1, 10), ROUNDS["world"]())
    rounds = ROUNDS["rounds_of"](policy)
    assert search.outcome is not None
    bill = search.outcome.bill

    assert sum(each.generated for each in rounds) == bill.generated
    assert sum(len(each.verdicts) for each in rounds) == bill.verified
    picture = ROUNDS["picture"](name)
    ElementTree.fromstring(picture)
    assert picture == ROUNDS["picture"].__wrapped__(name), "the same search draws the same picture"
    assert f"cost {bill.total:g}" in picture
    shown = rounds[: ROUNDS["MOST"]]
    assert picture.count("<circle") == sum(min(16, len(each.verdicts)) for each in shown)


def test_an_example_of_a_policy_is_one_that_a_command_accepts() -> None:
    for name in set(POLICIES) - {"learned"}:
        assert type(parse(ROUNDS["example"](name))) is POLICIES[name]
