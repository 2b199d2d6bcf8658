"""Exact star numbers over growing sizes, and beside an integer programme for HiGHS.

    python bench/star.py [--quick]

Families and random classes, with the interval after one second, and when the time was up. The
integer programme is the natural one: a variable for each point, and for each point and concept that
could speak for it a share; it must find the same number.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from grv.theory.stars.classes import ConceptClass, family
from grv.theory.stars.search import Centre, Star, is_star, narrowing


def main() -> None:
    quick = "--quick" in sys.argv
    limit = 2.0 if quick else 60.0
    found = {
        "limit": limit,
        "families": [closing(_family(text), limit, centre) for text, centre in FAMILIES],
        "random": [closing(_random(*size), limit) for size in (RANDOM[:4] if quick else RANDOM)],
        "beside_highs": beside_highs(*((12, 40, 0.4) if quick else (20, 100, 0.5))),
    }
    print(json.dumps(found, indent=1))


FAMILIES: list[tuple[str, Centre]] = [
    ("thresholds:64", "zero"),
    ("intervals:64", "zero"),
    ("singletons:64", "zero"),
    ("subsets:11", "zero"),
    ("unions:15:2", "zero"),
    ("thresholds:64", "any"),
    ("intervals:64", "any"),
]

# points, concepts, density
RANDOM = [
    *[(20, 100, density) for density in (0.1, 0.3, 0.5, 0.8)],
    *[(30, 200, density) for density in (0.1, 0.3, 0.5, 0.8)],
    *[(40, 400, density) for density in (0.1, 0.3, 0.5, 0.8)],
    *[(64, 2000, density) for density in (0.05, 0.3, 0.5, 0.8)],
]


def closing(of: ConceptClass, limit: float, centre: Centre = "zero") -> dict[str, Any]:
    """The interval as it closes."""
    start = time.perf_counter()
    early = None
    for star in narrowing(of, centre=centre):
        seconds = time.perf_counter() - start
        if early is None and seconds >= 1:
            early = star
        if seconds >= limit:
            break
    check(of, star)
    return {
        "class": of.name,
        "centre": centre,
        "concepts": of.concepts,
        "points": of.points,
        "after_a_second": _interval(early or star),
        "at_the_end": _interval(star),
        "seconds": round(time.perf_counter() - start, 2),
    }


def check(of: ConceptClass, star: Star) -> None:
    if not is_star(of, star.points, star.concepts, centre=star.centre):
        raise SystemExit(f"{of.name}: {star} is no star")


def beside_highs(points: int, concepts: int, density: float) -> dict[str, Any]:
    """The same class by the integer programme."""
    of = _random(points, concepts, density)
    ours = closing(of, 600)
    start = time.perf_counter()
    programme = by_programme(of.binary())
    seconds = time.perf_counter() - start
    if ours["at_the_end"] != [programme, programme]:
        raise SystemExit(f"HiGHS says {programme}, grv says {ours['at_the_end']}")
    return {
        "class": of.name,
        "star": programme,
        "grv_seconds": ours["seconds"],
        "highs_seconds": round(seconds, 2),
        "times_faster": round(seconds / max(ours["seconds"], 0.01)),
    }


def by_programme(concepts: np.ndarray) -> int:
    """Most points such that each has concepts that speak for it and avoid the others."""
    points = concepts.shape[1]
    rows, at = np.nonzero(concepts)
    entries: list[tuple[int, int, float]] = []
    entries += [(int(x), points + e, 1.0) for e, x in enumerate(at)]
    entries += [(x, x, -1.0) for x in range(points)]
    number = points
    for x in range(points):
        own = np.flatnonzero(at == x)
        for y in range(points):
            clash = own[concepts[rows[own], y]]
            if y != x and len(clash):
                entries += [(number, points + int(e), 1.0) for e in clash] + [(number, y, 1.0)]
                number += 1
    i, j, value = zip(*entries, strict=True)
    # `milp` of SciPy 1.13 reads the indices of a matrix as 32 bits.
    places = (np.array(i, dtype=np.int32), np.array(j, dtype=np.int32))
    size = points + len(at)
    low = np.concatenate([np.zeros(points), np.full(number - points, -np.inf)])
    high = np.concatenate([np.full(points, np.inf), np.ones(number - points)])
    solved = milp(
        np.concatenate([-np.ones(points), np.zeros(len(at))]),
        constraints=LinearConstraint(
            coo_array((value, places), shape=(number, size)).tocsr(), low, high
        ),
        integrality=np.concatenate([np.ones(points), np.zeros(len(at))]),
        bounds=Bounds(0, 1),
    )
    return round(-float(solved.fun))


def _family(text: str) -> ConceptClass:
    made = family(text)
    assert made is not None
    return made


def _random(points: int, concepts: int, density: float) -> ConceptClass:
    values = np.random.default_rng(points).random((concepts, points)) < density
    return ConceptClass(values.astype(np.float64), f"random {points} x {concepts}, {density}")


def _interval(star: Star) -> list[int]:
    return [star.lower, star.upper]


if __name__ == "__main__":
    main()
