"""A fast local search for large stars: greedy, then repeated after removing some points."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import numpy as np

from .tree import Bits, Rows


class Climb:
    """A local search over the stars of one problem, as defined in `tree.py`.

    `best` is the largest star so far.
    """

    def __init__(self, rows: Rows, seed: int = 0) -> None:
        self._support = rows.support
        self._hits = rows.hits
        self._counts = rows.support.astype(np.float32)
        self._chance = np.random.default_rng(seed)
        self.best = self._none()
        self._steps = self._climbing()

    def step(self) -> bool:
        """Add a point, or remove some; return whether an attempt to improve `best` is complete."""
        return next(self._steps)

    def _climbing(self) -> Iterator[bool]:
        now = yield from self._grown(self._none(), self._none())
        while True:
            yield True
            members = np.flatnonzero(now)
            out = self._chance.permutation(members)[: 1 + int(self._chance.integers(3))]
            start = now.copy()
            last = self._none()
            start[out] = False
            last[out[:1]] = True
            found = yield from self._grown(start, last)
            if found.sum() >= now.sum():
                now = found

    def _none(self) -> Bits:
        return np.zeros(self._support.shape[1], dtype=np.bool_)

    def _grown(self, star: Bits, last: Bits) -> Generator[bool, None, Bits]:
        """Add points to the star, the least harmful first, until no other can be added.

        A point is harmful if it makes witness rows of other points useless. The points in `last`
        are added last.
        """
        while True:
            met = self._support[:, star].sum(axis=1)
            fitting = self._fitting(star, met)
            if not fitting.any():
                return star
            first = fitting & ~last
            harm = (met <= 1).astype(np.float32) @ self._counts
            harm *= 1 + 0.2 * self._chance.random(len(star))
            at = int(np.where(first if first.any() else fitting, harm, np.inf).argmin())
            star = star.copy()
            star[at] = True
            if star.sum() > self.best.sum():
                self.best = star
            yield False

    def _fitting(self, star: Bits, met: Bits) -> Bits:
        """The points that can be added so that the set is still a star."""
        fitting: Bits = self._hits[met == 0].any(axis=0) & ~star
        single = met == 1
        witness = self._hits[single][:, star].astype(np.float32)
        # How many witness rows of each point of the star would be lost by adding each point.
        lost = witness.T @ self._counts[single]
        fitting &= (lost < witness.sum(axis=0)[:, None]).all(axis=0)
        return fitting
