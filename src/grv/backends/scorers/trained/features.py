"""What a trained score knows about a candidate when it arrives.

Features depend on the problem, on the candidate, and on candidates of the same problem that arrived
before; never on later ones. So a score does not change after the candidate is ranked, and a replay
in the same order computes the same score.
"""

from __future__ import annotations

import ast
import itertools
import math
import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from ...verifiers.programs.reading import find

BUCKETS = 4096  # of the hashed n-grams
TEXT = ("length", "lines", "names", "known names", "overlap")  # names are words of the text
TREE = ("parses", "nodes", "loops", "returns", "parameters")  # of a program's syntax tree
DENSE = (*TEXT, *TREE, "similarity", "logprob", "votes")
_LONGEST = 1 << 15  # characters of a text that are read
_TOKEN = re.compile(r"[^\W\d]\w*|\d+|[^\w\s]")
_NAME = re.compile(r"[^\W\d]\w*")
_KEPT = 8192  # texts whose features are kept: a search compares each candidate with all before it
_FEW = 2.0  # other candidates at which a mean over them counts half


@dataclass(frozen=True, slots=True)
class Feature:
    """A number, and how much of its distance from the mean counts: 0 if it is unknown, up to 1."""

    value: float = 0.0
    counts: float = 0.0


UNKNOWN = Feature()


@dataclass(frozen=True, slots=True)
class Features:
    """The features of one candidate.

    Attributes:
        grams: the buckets of its tokens and of its pairs of neighbouring tokens, increasing.
        dense: one per name in `DENSE`.
        given: by name, the scores that other scorers gave it.
    """

    grams: tuple[int, ...]
    dense: tuple[Feature, ...]
    given: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Arrival:
    """A candidate: its text, the log-probabilities of its tokens, its key, and given scores."""

    text: str
    logprobs: Sequence[float] | None = None
    key: str | None = None
    given: Mapping[str, float] = field(default_factory=dict)


class Others:
    """The candidates of one problem with which the next one is compared.

    Args:
        prompt: the problem's prompt; it may be the beginning of the program.
        programs: whether answers are programs, so that it matters whether they parse.
    """

    def __init__(self, prompt: str, *, programs: bool = True) -> None:
        self._prompt = prompt
        self._programs = programs
        self._asked = set(grams_of(prompt))
        self._names = names_of(prompt)
        self._n = 0
        self._seen: Counter[int] = Counter()  # how many candidates have an n-gram
        self._votes: Counter[str] = Counter()

    def add(self, arrival: Arrival, times: int = 1) -> None:
        """Compare later candidates with this one too; -1 undoes it."""
        self._n += times
        for gram in grams_of(arrival.text):
            self._seen[gram] += times
        if arrival.key is not None:
            self._votes[arrival.key] += times

    def features(self, arrival: Arrival) -> Features:
        """The features of a candidate, compared with those added."""
        grams = grams_of(arrival.text)
        size = len(grams)
        n = self._n
        logprobs = arrival.logprobs
        similarity = votes = logprob = UNKNOWN
        if size and n:
            mean = sum(self._seen[gram] for gram in grams) / (size * n)
            similarity = Feature(mean, n / (n + _FEW))
        if arrival.key is not None and n:
            votes = Feature(math.sqrt(self._votes[arrival.key] / n), n / (n + _FEW))
        if logprobs and all(map(math.isfinite, logprobs)):
            logprob = Feature(math.fsum(logprobs) / len(logprobs), 1.0)
        tree = _UNKNOWN_TREE
        if self._programs:
            tree = _tree_features(arrival.text, self._prompt)
        dense = (*self._text_features(arrival.text), *tree, similarity, logprob, votes)
        return Features(grams, dense, arrival.given)

    def _text_features(self, text: str) -> tuple[Feature, ...]:
        """The features in `TEXT`."""
        grams = grams_of(text)
        names = names_of(text)
        lines = sum(not line.isspace() for line in text[:_LONGEST].splitlines() if line)
        known = overlap = UNKNOWN
        if names:
            known = Feature(len(names & self._names) / len(names), 1.0)
        if grams:
            overlap = Feature(sum(gram in self._asked for gram in grams) / len(grams), 1.0)
        sizes = (Feature(math.log1p(size), 1.0) for size in (len(text), lines, len(names)))
        return *sizes, known, overlap


_UNKNOWN_TREE = (UNKNOWN,) * len(TREE)


@lru_cache(maxsize=_KEPT)
def _tree_features(text: str, prompt: str) -> tuple[Feature, ...]:
    """The features in `TREE`, of a text that is a program, alone or after the prompt."""
    tree = None
    if text.strip():
        tree = find(text, prompt).tree or find(text).tree
    if tree is None:
        return (Feature(0.0, 1.0), *_UNKNOWN_TREE[1:])
    nodes = list(ast.walk(tree))
    loops = any(isinstance(node, ast.For | ast.While) for node in nodes)
    returns = sum(isinstance(node, ast.Return) for node in nodes)
    parameters = {node.arg for node in nodes if isinstance(node, ast.arg)}
    used = parameters & {node.id for node in nodes if isinstance(node, ast.Name)}
    return (
        Feature(1.0, 1.0),
        Feature(math.log1p(len(nodes)), 1.0),
        Feature(float(loops), 1.0),
        Feature(math.log1p(returns), 1.0),
        Feature(len(used) / len(parameters), 1.0) if parameters else UNKNOWN,
    )


@lru_cache(maxsize=_KEPT)
def names_of(text: str) -> frozenset[str]:
    """The different words of a text."""
    return frozenset(_NAME.findall(text[:_LONGEST]))


@lru_cache(maxsize=_KEPT)
def grams_of(text: str) -> tuple[int, ...]:
    """The buckets of the tokens of a text and of the pairs of neighbours, increasing."""
    tokens = _TOKEN.findall(text[:_LONGEST])
    pairs = map("\0".join, itertools.pairwise(tokens))
    return tuple(sorted({_bucket(gram) for each in (tokens, pairs) for gram in each}))


def _bucket(gram: str) -> int:
    return zlib.crc32(gram.encode("utf-8", "surrogatepass")) % BUCKETS


def answers_are_programs(check: Mapping[str, object]) -> bool:
    """Whether a problem's check runs programs. If nothing is known about it, it may."""
    from ...verifiers.checks import kinds_in, runs_programs

    return any(map(runs_programs, kinds_in({"kind": "asserts", **check})))
