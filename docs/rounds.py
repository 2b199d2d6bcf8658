"""Draws the rounds of every policy, from a real search of that policy in a small fixed world.

A round is everything generated in a row and everything verified in a row after it.

    python docs/rounds.py FOLDER   # writes FOLDER/NAME.svg for every policy
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from xml.sax.saxutils import escape

from grv.comparing.tune import learn
from grv.core.search import Policy
from grv.core.values import Costs, Generated, Verdict, Verified
from grv.learning.history import History, past
from grv.policies import POLICIES, Learned
from grv.policies.spec import parse
from grv.testing.drivers import run
from grv.testing.worlds import World, labelled, population

COSTS = Costs(generate=1, verify=10)
MOST = 12  # rounds in a picture
LEGEND = (
    "A bar is what one round generates; its number stands above it. A dot below the line is one"
    " verification: red has failed, green has passed. Every picture shows the same problem: scores"
    " are whole numbers from 0 to 7, exactly those with score 7 pass, and a verification"
    f" costs as much as 10 candidates. At most {MOST} rounds are drawn."
)
_HEIGHT = 246
_BASE = 120
_STEP = 54
_LEFT = 80
_RED, _GREEN, _BLUE = "#c8553d", "#3a7d44", "#1b6ca8"


@dataclass(frozen=True)
class Round:
    """What one round generates, and the verdicts of what it verifies."""

    generated: int
    verdicts: tuple[Verdict, ...]


def world() -> World:
    """The problem of all pictures: exactly the rare score 7 passes."""
    chance = random.Random("rounds")

    def label(_: int) -> tuple[float, bool]:
        score = min(7, int(chance.expovariate(0.55)))
        return score, score == 7

    return labelled(400, label)


def example(name: str) -> str:
    """The specification of a policy that the pages show."""
    return str(getattr(POLICIES[name], "example", name))


def rounds_of(policy: Policy) -> list[Round]:
    """The rounds of a search, as its trace has them."""
    found: list[Round] = []
    generated = 0
    verdicts = list[Verdict]()
    for turn in run(policy, COSTS, world()).trace:
        match turn.event:
            case Generated(scores):
                if verdicts:
                    found.append(Round(generated, tuple(verdicts)))
                    generated = 0
                    verdicts = []
                generated += len(scores)
            case Verified(told):
                verdicts += told.values()
    return [*found, Round(generated, tuple(verdicts))]


@cache
def policy_of(name: str) -> Policy:
    """The policy of an example; `learned` learns from problems that are made up here."""
    if name == "learned":
        log = population("coding", problems=12, candidates=64)
        return Learned(learn(History.of(past(log), log.score, ["log.csv"])))
    return parse(example(name))


@cache
def picture(name: str) -> str:
    """The picture of a policy's rounds, as SVG."""
    rounds = rounds_of(policy_of(name))
    shown = rounds[:MOST]
    width = _LEFT + _STEP * MOST + 16
    tallest = max(8, *(each.generated for each in shown))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {_HEIGHT}"'
        ' font-family="sans-serif" font-size="13" role="img">',
        f"<title>{escape(_told(name, rounds))}</title>",
        f'<rect width="{width}" height="{_HEIGHT}" fill="white"/>',
        f'<path d="M{_LEFT} {_BASE}H{width - 16}" stroke="#444"/>',
    ]
    for number, each in enumerate(shown):
        parts += _drawn(each, _LEFT + _STEP * number + _STEP / 2, tallest)
    parts += [
        _text(_LEFT - 8, _BASE - 8, "generated", "end"),
        _text(_LEFT - 8, _BASE + 20, "verified", "end"),
        _text(_LEFT, _HEIGHT - 10, _told(name, rounds), "start"),
    ]
    return "\n".join([*parts, "</svg>", ""])


def _drawn(each: Round, x: float, tallest: int) -> list[str]:
    height = (_BASE - 36) * each.generated / tallest
    parts = [
        f'<rect x="{x - 15:.1f}" y="{_BASE - height:.1f}" width="30" height="{height:.1f}"'
        f' fill="{_BLUE}"/>',
        _text(x, _BASE - height - 6, str(each.generated), "middle"),
    ]
    for at, verdict in enumerate(each.verdicts[:16]):
        colour = _GREEN if verdict is Verdict.PASSED else _RED
        across = x - 15 + 10 * (at % 4)
        down = _BASE + 16 + 14 * (at // 4)
        parts.append(f'<circle cx="{across:.1f}" cy="{down}" r="4" fill="{colour}"/>')
    if len(each.verdicts) > 16:
        parts.append(_text(x, _BASE + 84, f"+{len(each.verdicts) - 16}", "middle"))
    return parts


def _told(name: str, rounds: list[Round]) -> str:
    generated = sum(each.generated for each in rounds)
    verified = sum(len(each.verdicts) for each in rounds)
    solved = any(Verdict.PASSED in each.verdicts for each in rounds)
    end = "solved" if solved else "not solved"
    noun = "round" if len(rounds) == 1 else "rounds"
    more = f", of which {MOST} are drawn" if len(rounds) > MOST else ""
    return (
        f"{name}: {len(rounds)} {noun}{more}; {generated} generated, {verified} verified,"
        f" cost {COSTS.of(generated, verified):g}, {end}"
    )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#222"'
    return f"<text {place}>{escape(text)}</text>"


def main() -> None:
    """Write every picture."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in POLICIES:
        (folder / f"{name}.svg").write_text(picture(name), encoding="utf-8")


if __name__ == "__main__":
    main()
