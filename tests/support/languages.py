"""Twenty small problems, with a right and a wrong program for each in six languages.

The programs are in `tests/assets/languages`, a file for each language: a template, and the body of
each program. `⟦right¦wrong⟧` in a body is where the two programs differ. The tests of a problem are
made here, by a reference in Python.
"""

from __future__ import annotations

import functools
import heapq
import math
import random
import re
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parents[1] / "assets" / "languages"
_CHOICE = re.compile(r"⟦([^¦⟧]*)¦([^¦⟧]*)⟧")
LANGUAGES = ("cpp", "go", "java", "javascript", "rust", "typescript")
Made = tuple[Any, Any]  # the tokens of an input, and the answer


def _numbers(rng: random.Random, most: int = 10**9, count: int = 0) -> list[int]:
    return [rng.randint(-most, most) for _ in range(count or rng.randint(2, 30))]


def _sum(rng: random.Random) -> Made:
    values = [rng.randint(10**8, 10**9) for _ in range(40)]
    return [len(values), *values], sum(values)


def _maximum(rng: random.Random) -> Made:
    values = [-abs(value) - 1 for value in _numbers(rng)]
    return [len(values), *values], max(values)


def _reverse(rng: random.Random) -> Made:
    words = ["zebra", "apple", *(f"w{rng.randint(0, 99)}" for _ in range(6))]
    return [len(words), *words], " ".join(reversed(words))


def _vowels(rng: random.Random) -> Made:
    text = "A" + "".join(rng.choices("abcdeiouxyzAEIOUBCD", k=30))
    return [text], sum(letter in "aeiouAEIOU" for letter in text)


def _gcd(rng: random.Random) -> Made:
    one, other = rng.choice([(10**9 + 7, 10**9 + 9), (7, 9), (35, 18)])
    return [one, other], math.gcd(one, other)


def _primes(rng: random.Random) -> Made:
    most = rng.choice([2, 13, 101, 9973])
    return [most], sum(all(x % d for d in range(2, math.isqrt(x) + 1)) for x in range(2, most + 1))


def _fibonacci(rng: random.Random) -> Made:
    number = rng.randint(100, 1000)
    one, other = 0, 1
    for _ in range(number):
        one, other = other, one + other
    return [number], one % (10**9 + 7)


def _palindrome(rng: random.Random) -> Made:
    half = "".join(rng.choices("abc", k=6))
    if rng.random() < 0.3:
        return [f"{half}d1"], "NO"
    return [f"{half.upper()}-12{half[::-1]}"], "YES"


def _distinct(rng: random.Random) -> Made:
    values = rng.choices(range(10), k=20)
    return [len(values), *values], len(set(values))


def _second(rng: random.Random) -> Made:
    values = _numbers(rng, 50)
    values.append(max(values))
    ranked = sorted(set(values), reverse=True)
    return [len(values), *values], ranked[1] if len(ranked) > 1 else "none"


def _binary(rng: random.Random) -> Made:
    number = rng.choice([0, rng.randint(2**40, 2**50)])
    return [number], f"{number:b}"


def _brackets(rng: random.Random) -> Made:
    text = rng.choice(["([{}])", "(()", "([)]", "{}[]()", "((("])
    return [text], "YES" if text in ("([{}])", "{}[]()") else "NO"


def _anagram(rng: random.Random) -> Made:
    letters = rng.choices("abcdef", k=8)
    word = "".join(letters)
    rng.shuffle(letters)
    other = "".join(letters)
    longer = rng.random() < 0.7
    return [word, other + word[0] if longer else other], "NO" if longer else "YES"


def _median(rng: random.Random) -> Made:
    values = [*_numbers(rng, 100, 8), 1000, 1501, 2001, 2002, 2003, 3, 5, 8, 9, 999]
    rng.shuffle(values)
    low = sorted(values)[len(values) // 2 - 1 : len(values) // 2 + 1]
    if sum(low) % 2 == 0:  # a half in the answer
        values = [value + (value >= low[1]) for value in values]
    return [len(values), *values], f"{statistics.median(values):.1f}"


def _transpose(rng: random.Random) -> Made:
    rows = [_numbers(rng, 99, 4) for _ in range(3)]
    lines = "\n".join(" ".join(map(str, column)) for column in zip(*rows, strict=True))
    return [3, 4, *(value for row in rows for value in row)], lines


def _frequent(rng: random.Random) -> Made:
    words = ["beta", "alpha", "gamma"] * 3 + [f"w{rng.randint(0, 99)}" for _ in range(4)]
    rng.shuffle(words)
    counts = Counter(words)
    return [len(words), *words], min(counts, key=lambda word: (-counts[word], word))


def _change(rng: random.Random) -> Made:
    coins = [5, 7, 11] if rng.random() < 0.5 else [4, 6, 10]
    total = rng.choice([1, 2, 3, 9, 13, 24, 73])
    best: list[float] = [0]
    for amount in range(1, total + 1):
        best.append(min((best[amount - c] + 1 for c in coins if c <= amount), default=math.inf))
    return [3, total, *coins], -1 if best[total] == math.inf else int(best[total])


def _rising(rng: random.Random) -> Made:
    values = [rng.randint(0, 8) for _ in range(30)]
    lengths: list[int] = []
    for place, value in enumerate(values):
        shorter = [lengths[i] for i in range(place) if values[i] < value]
        lengths.append(1 + max(shorter, default=0))
    return [len(values), *values], max(lengths)


def _grid(rng: random.Random) -> Made:
    rows = [".####", ".#...", ".#.#.", "...#."]
    if rng.random() < 0.3:
        rows[1] = ".####"
    steps = {(0, 0): 0}
    waiting = [(0, (0, 0))]
    while waiting:
        taken, (x, y) = heapq.heappop(waiting)
        for place in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)):
            inside = 0 <= place[0] < 4 and 0 <= place[1] < 5
            if inside and rows[place[0]][place[1]] == "." and place not in steps:
                steps[place] = taken + 1
                heapq.heappush(waiting, (taken + 1, place))
    return [4, 5, *rows], steps.get((3, 4), -1)


def _cover(rng: random.Random) -> Made:
    pairs = [(start, start + rng.randint(5, 40)) for start in rng.choices(range(100), k=8)]
    covered = {place for start, end in pairs for place in range(start, end)}
    return [len(pairs), *(value for pair in pairs for value in pair)], len(covered)


_MAKERS: Sequence[Callable[[random.Random], Made]] = (
    _sum,
    _maximum,
    _reverse,
    _vowels,
    _gcd,
    _primes,
    _fibonacci,
    _palindrome,
    _distinct,
    _second,
    _binary,
    _brackets,
    _anagram,
    _median,
    _transpose,
    _frequent,
    _change,
    _rising,
    _grid,
    _cover,
)
PROBLEMS = {maker.__name__.removeprefix("_"): maker for maker in _MAKERS}


def check(name: str, language: str, tests: int = 8) -> dict[str, Any]:
    """The check of a problem in a language."""
    made = [PROBLEMS[name](random.Random(f"{name} {number}")) for number in range(tests)]
    listed = [
        {"input": " ".join(map(str, tokens)) + "\n", "output": str(answer)}
        for tokens, answer in made
    ]
    return {"kind": "run", "language": language, "tests": listed}


@functools.cache
def _bodies(language: str) -> dict[str, str]:
    text = (_FOLDER / f"{language}.txt").read_text(encoding="utf-8")
    parts = re.split(r"^--- (\w+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def program(name: str, language: str, *, right: bool) -> str:
    """The right or the wrong program for a problem."""
    bodies = _bodies(language)
    body = _CHOICE.sub(lambda choice: choice[1 if right else 2], bodies[name])
    return bodies["template"].replace("BODY\n", body)
