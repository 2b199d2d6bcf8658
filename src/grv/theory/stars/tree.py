"""Is there a star of u points? Branch and bound, many nodes at a time.

The problem: points, and *rows*. A row has a *support*, a set of points, and *hits*, some of its
support. A set S of points is a star if each of its points x has a row that hits x and whose support
meets S in x alone. Every subset of a star is a star.

A node of the tree is a pair (S, Y): the points taken, and those that may still be taken. For a star
of u points in S + Y, all but `slack = |S + Y| - u` of these have to be taken. So

- a row that meets S in two points is of no use, nor is one that meets S + Y in more than slack + 1;
- each point of S needs a useful row that hits it and meets S nowhere else;
- a point of Y needs a useful row that hits it and does not meet S, or it leaves Y, which lessens
  the slack; and so on until nothing changes.

If no useful row meets S + Y twice, S + Y is a star. Otherwise one branches on the point of Y in the
most useful rows: taken or left. Counting is by products of 0/1 matrices, exact in single precision,
which does hundreds of nodes at once, and gives the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.bool_]
_Ones = NDArray[np.float32]  # zeros and ones

_MOST_AT_ONCE = 256  # nodes
_ENTRIES_AT_ONCE = 2**19  # nodes times rows or points, whichever are more
_MOST_PAIRED = 5000  # points; the pairs of more take too much room
_WITHOUT_THREADS = 2**18  # multiplications in one product


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a problem, `[rows, points]`. Hits are within the support."""

    support: Bits
    hits: Bits


class Tree:
    """The search over one problem. It remembers the largest star it came across."""

    def __init__(self, rows: Rows) -> None:
        self._support = rows.support.astype(np.float32)
        self._columns = np.ascontiguousarray(self._support.T)
        self._hits = rows.hits.astype(np.float32)
        self.points: int = rows.support.shape[1]
        self._at_once = max(16, min(_MOST_AT_ONCE, _ENTRIES_AT_ONCE // max(1, *rows.support.shape)))
        self.best = np.zeros(self.points, dtype=np.bool_)
        self.nodes = 0

    def groups(self) -> int:
        """A quick upper bound: into how many groups the points fall that a star has one of each.

        Two points go together if no row hits the one without meeting the other, or the other way
        round. Of more points than `_MOST_PAIRED` it says nothing.
        """
        if self.points > _MOST_PAIRED:
            return self.points
        apart = self._hits.T @ (1 - self._support) > 0  # [hit, not met]
        packed = np.packbits(apart & apart.T, axis=1, bitorder="little")
        fits = [int.from_bytes(row.tobytes(), "little") for row in packed]  # as sets of points
        left, groups = (1 << self.points) - 1, 0
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

        What refutes u refutes all that is larger: there is less slack. So where there are many
        sizes, some are tried, and then those between the last that stood and the first that fell.
        """
        low, high = 0, min(self._support.shape)  # of stars, no row speaks for two points
        while low < high:
            sizes = np.unique(np.linspace(low + 1, high, min(self._at_once, high - low), dtype=int))
            stands = self._stand(sizes)
            low = int(sizes[stands].max(initial=low))
            high = int(sizes[~stands].min(initial=high + 1)) - 1
        return low

    def _stand(self, sizes: NDArray[np.int64]) -> Bits:
        """Which sizes are not refuted without branching."""
        stands = np.ones(len(sizes), dtype=np.bool_)
        at, nodes = np.arange(len(sizes)), _Nodes.root(len(sizes), self.points)
        while len(at):
            view = self._look(nodes, sizes[at])
            stands[at] = view.alive
            changed = view.alive & (view.left != nodes.open).any(axis=1)
            at, nodes = at[changed], _Nodes(nodes.taken[changed], view.left[changed])
        return stands

    def search(self, u: int) -> Iterator[None]:
        """Look for a star of u points; `best` is one, if there is one, when this has ended."""
        stack = _Stack(_Nodes.root(1, self.points))
        while len(stack):
            nodes = stack.pop(self._at_once)
            self.nodes += len(nodes.taken)
            view = self._look(nodes, np.full(len(nodes.taken), u))
            settled = (view.left == nodes.open).all(axis=1)
            if self._remember(nodes, view, settled) >= u:
                return
            again, branch = view.alive & ~settled, view.alive & settled
            taken, open_ = nodes.taken[branch], nodes.open[branch]
            counts = _product(view.useful[branch], self._support)
            at = np.where(open_, counts, -1).argmax(axis=1)
            which = np.arange(len(at))
            fewer, more = open_.copy(), taken.copy()
            fewer[which, at] = False
            more[which, at] = True
            stack.push(_Nodes(taken, fewer))
            stack.push(_Nodes(nodes.taken[again], view.left[again]))
            stack.push(_Nodes(more, fewer))
            yield

    def _remember(self, nodes: _Nodes, view: _View, settled: Bits) -> int:
        """Keep the largest star among these nodes, if it is larger; the size of the best."""
        stars = [(view.supported, nodes.taken), (view.whole & settled, nodes.taken | nodes.open)]
        for good, sets in stars:
            sizes = np.where(good, sets.sum(axis=1), 0)
            at = int(sizes.argmax())
            if sizes[at] > self.best.sum():
                self.best = sets[at].copy()
        return int(self.best.sum())

    def _look(self, nodes: _Nodes, u: NDArray[np.int64]) -> _View:
        """What can be said of the nodes when stars of u points are wanted, one u a node."""
        both = nodes.taken | nodes.open
        slack = both.sum(axis=1) - u
        in_taken, in_both = _product(nodes.taken, self._columns), _product(both, self._columns)
        useful = (in_taken <= 1) & (in_both <= slack[:, None] + 1)
        owned = _product(useful & (in_taken == 1), self._hits) > 0
        free = _product(useful & (in_taken == 0), self._hits) > 0
        supported = (owned | ~nodes.taken).all(axis=1) & (slack >= 0)
        left = nodes.open & free
        alive = supported & (nodes.taken.sum(axis=1) + left.sum(axis=1) >= u)
        whole = alive & ~((in_both > 1) & useful).any(axis=1)
        return _View(supported, alive, whole, left, useful)


def _product(sets: Bits, matrix: _Ones) -> _Ones:
    """`sets @ matrix`, in pieces so small that the library starts no threads for them.

    On a busy machine its threads wait for one another, which takes ten times as long.
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
    """Nodes of the tree, `[nodes, points]`: S and Y of each."""

    taken: Bits
    open: Bits

    @classmethod
    def root(cls, times: int, points: int) -> _Nodes:
        shape = (times, points)
        return cls(np.zeros(shape, dtype=np.bool_), np.ones(shape, dtype=np.bool_))


@dataclass(frozen=True, eq=False)
class _View:
    """What is known of some nodes, `[nodes]` each.

    Attributes:
        supported: whether S is a star.
        alive: whether a star of u points is still possible.
        whole: whether S + Y is a star, provided that no point leaves Y.
        left: `[nodes, points]`: Y, without those that cannot be taken.
        useful: `[nodes, rows]`.
    """

    supported: Bits
    alive: Bits
    whole: Bits
    left: Bits
    useful: Bits


class _Stack:
    """Nodes to do, the last first."""

    def __init__(self, nodes: _Nodes) -> None:
        self._taken, self._open = nodes.taken.copy(), nodes.open.copy()
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
