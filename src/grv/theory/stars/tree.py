"""Is there a star of u points? Branch and bound, many nodes at a time.

The problem has points and *rows*. A row has a *support*, a set of points, and *hits*, a subset of
its support. A set S of points is a star if each of its points x has a *witness*: a row that hits x
and whose support contains no other point of S. Every subset of a star is a star.

A node of the tree is a pair (S, Y): the points taken, and the points that may still be taken. A
star of u points in S + Y takes all but `slack = |S + Y| - u` of them. So

- a row is useless if its support contains two points of S, or more than slack + 1 of S + Y;
- each point of S needs a useful row that hits it and contains no other point of S;
- each point of Y needs a useful row that hits it and contains no point of S. Otherwise it leaves Y,
  which reduces the slack. This repeats until nothing changes.

If no useful row contains two points of S + Y, S + Y is a star. Otherwise the search branches on the
point of Y that is in the most useful rows: take it or leave it. Counts are products of 0/1
matrices, exact in single precision: fast for hundreds of nodes, and equal on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.bool_]
_Ones = NDArray[np.float32]  # zeros and ones

_MOST_AT_ONCE = 256  # nodes
_ENTRIES_AT_ONCE = 2**19  # nodes times the larger of rows and points
_MOST_PAIRED = 5000  # points; the pairs of more points need too much memory
_WITHOUT_THREADS = 2**18  # multiplications in one product for which no threads start


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a problem, `[rows, points]`. Hits are within the support."""

    support: Bits
    hits: Bits


class Tree:
    """The search over one problem. `best` is the largest star found so far."""

    def __init__(self, rows: Rows) -> None:
        self._support = rows.support.astype(np.float32)
        self._columns = np.ascontiguousarray(self._support.T)
        self._hits = rows.hits.astype(np.float32)
        self.points: int = rows.support.shape[1]
        self._at_once = max(16, min(_MOST_AT_ONCE, _ENTRIES_AT_ONCE // max(1, *rows.support.shape)))
        self.best = np.zeros(self.points, dtype=np.bool_)
        self.nodes = 0

    def groups(self) -> int:
        """A quick upper bound: a number of groups, from each of which a star has at most one point.

        Two points exclude each other if every row that hits the one contains the other, or the
        other way round. For more than `_MOST_PAIRED` points the bound is trivial.
        """
        if self.points > _MOST_PAIRED:
            return self.points
        apart = self._hits.T @ (1 - self._support) > 0  # [hit, not met]
        packed = np.packbits(apart & apart.T, axis=1, bitorder="little")
        fits = [int.from_bytes(row.tobytes(), "little") for row in packed]  # as sets of points
        left = (1 << self.points) - 1
        groups = 0
        while left:
            groups += 1
            candidates = left
            while candidates:
                one = candidates & -candidates
                left ^= one
                candidates &= ~(fits[one.bit_length() - 1] | one)
        return groups

    def bound(self) -> int:
        """Another upper bound: the largest u that is not refuted without branching.

        If u is refuted, all larger sizes are, because they have less slack. So this is a search by
        sections: try some sizes, then those between the last one possible and the first refuted.
        """
        # no row is the witness of two points
        low = 0
        high = min(self._support.shape)
        while low < high:
            sizes = np.unique(np.linspace(low + 1, high, min(self._at_once, high - low), dtype=int))
            possible = self._possible(sizes)
            low = int(sizes[possible].max(initial=low))
            high = int(sizes[~possible].min(initial=high + 1)) - 1
        return low

    def _possible(self, sizes: NDArray[np.int64]) -> Bits:
        """Which sizes are not refuted without branching."""
        possible = np.ones(len(sizes), dtype=np.bool_)
        at = np.arange(len(sizes))
        nodes = _Nodes.root(len(sizes), self.points)
        while len(at):
            view = self._look(nodes, sizes[at])
            possible[at] = view.alive
            changed = view.alive & (view.left != nodes.open).any(axis=1)
            at = at[changed]
            nodes = _Nodes(nodes.taken[changed], view.left[changed])
        return possible

    def search(self, u: int) -> Iterator[None]:
        """Look for a star of u points. When this ends, `best` is such a star if there is one."""
        stack = _Stack(_Nodes.root(1, self.points))
        while len(stack):
            nodes = stack.pop(self._at_once)
            self.nodes += len(nodes.taken)
            view = self._look(nodes, np.full(len(nodes.taken), u))
            settled = (view.left == nodes.open).all(axis=1)
            if self._remember(nodes, view, settled) >= u:
                return
            again = view.alive & ~settled
            branch = view.alive & settled
            taken = nodes.taken[branch]
            open_ = nodes.open[branch]
            counts = _product(view.useful[branch], self._support)
            at = np.where(open_, counts, -1).argmax(axis=1)
            which = np.arange(len(at))
            fewer = open_.copy()
            more = taken.copy()
            fewer[which, at] = False
            more[which, at] = True
            stack.push(_Nodes(taken, fewer))
            stack.push(_Nodes(nodes.taken[again], view.left[again]))
            stack.push(_Nodes(more, fewer))
            yield

    def _remember(self, nodes: _Nodes, view: _View, settled: Bits) -> int:
        """Update `best` with the largest star among these nodes; return the size of `best`."""
        stars = [(view.supported, nodes.taken), (view.whole & settled, nodes.taken | nodes.open)]
        for good, sets in stars:
            sizes = np.where(good, sets.sum(axis=1), 0)
            at = int(sizes.argmax())
            if sizes[at] > self.best.sum():
                self.best = sets[at].copy()
        return int(self.best.sum())

    def _look(self, nodes: _Nodes, u: NDArray[np.int64]) -> _View:
        """Evaluate the nodes for stars of u points, with one u per node."""
        both = nodes.taken | nodes.open
        slack = both.sum(axis=1) - u
        in_taken = _product(nodes.taken, self._columns)
        in_both = _product(both, self._columns)
        useful = (in_taken <= 1) & (in_both <= slack[:, None] + 1)
        owned = _product(useful & (in_taken == 1), self._hits) > 0
        free = _product(useful & (in_taken == 0), self._hits) > 0
        supported = (owned | ~nodes.taken).all(axis=1) & (slack >= 0)
        left = nodes.open & free
        alive = supported & (nodes.taken.sum(axis=1) + left.sum(axis=1) >= u)
        whole = alive & ~((in_both > 1) & useful).any(axis=1)
        return _View(supported, alive, whole, left, useful)


def _product(sets: Bits, matrix: _Ones) -> _Ones:
    """`sets @ matrix`, in pieces so small that the BLAS library starts no threads.

    On a busy machine the threads wait for each other, which takes ten times as long.
    """
    left = sets.astype(np.float32)
    size = _WITHOUT_THREADS // max(1, matrix.size)
    if size < 1 or len(left) <= size:
        return left @ matrix
    padding = np.zeros((-len(left) % size, left.shape[1]), dtype=np.float32)
    pieces = np.concatenate([left, padding]).reshape(-1, size, left.shape[1])
    found: _Ones = (pieces @ matrix).reshape(-1, matrix.shape[1])[: len(left)]
    return found


@dataclass(frozen=True, eq=False)
class _Nodes:
    """Nodes of the tree: S and Y of each node, `[nodes, points]`."""

    taken: Bits
    open: Bits

    @classmethod
    def root(cls, times: int, points: int) -> _Nodes:
        shape = (times, points)
        return cls(np.zeros(shape, dtype=np.bool_), np.ones(shape, dtype=np.bool_))


@dataclass(frozen=True, eq=False)
class _View:
    """The evaluation of some nodes, `[nodes]` each.

    Attributes:
        supported: whether S is a star.
        alive: whether a star of u points is still possible.
        whole: whether S + Y is a star, if no point leaves Y.
        left: `[nodes, points]`: Y without the points that cannot be taken.
        useful: `[nodes, rows]`: whether a row is useful.
    """

    supported: Bits
    alive: Bits
    whole: Bits
    left: Bits
    useful: Bits


class _Stack:
    """The nodes to visit, last in, first out."""

    def __init__(self, nodes: _Nodes) -> None:
        self._taken = nodes.taken.copy()
        self._open = nodes.open.copy()
        self._size = len(nodes.taken)

    def __len__(self) -> int:
        return self._size

    def pop(self, most: int) -> _Nodes:
        start = max(0, self._size - most)
        found = slice(start, self._size)
        self._size = start
        return _Nodes(self._taken[found].copy(), self._open[found].copy())

    def push(self, nodes: _Nodes) -> None:
        end = self._size + len(nodes.taken)
        if end > len(self._taken):
            room = np.zeros((max(end, 256), self._taken.shape[1]), dtype=np.bool_)
            self._taken = np.concatenate([self._taken[: self._size], room])
            self._open = np.concatenate([self._open[: self._size], room])
        self._taken[self._size : end] = nodes.taken
        self._open[self._size : end] = nodes.open
        self._size = end
