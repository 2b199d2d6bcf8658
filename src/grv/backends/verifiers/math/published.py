r"""The paper's published reading of an answer: checks of kind "math" with `"match": "published"`.

For labels that are compared with the paper's. The answer is what is in the last `\boxed{...}` of
the whole text, and a text without one has no answer. Answers are equal if their forms are the same
text.

The published code is github.com/yhkalayci/efficient_query, math/gen.py, at commit f8ecf7a. It was
read, and its behaviour is written down here once more. Numbers are read by Python's `int` and
`float`, as there: `1_000` is a thousand, and what is too large for a float is `inf`.
"""

from __future__ import annotations

import math
import re

_BOX = r"\boxed{"
_WRAPPED = [re.compile(rf"\\{name}\s*\{{([^{{}}]*)\}}") for name in ("text", "mathrm")]
_RATIO = re.compile(r"(-?\d+)/(-?\d+)")


def boxed(text: str) -> str | None:
    r"""What is in the last box of a text; None if there is none, or it has no end.

    >>> boxed(r"\boxed{1}, no: \boxed{\frac{1}{2}}."), boxed("The answer is 4."), boxed(r"\boxed{4")
    ('\\frac{1}{2}', None, None)
    """
    _, box, rest = text.rpartition(_BOX)
    if not box:
        return None
    depth = 1
    for place, character in enumerate(rest):
        if character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
        if not depth:
            return rest[:place].strip()
    return None


def form(answer: str) -> str:
    r"""The form of an answer that the published code compares.

    >>> form("$1,000.0$"), form("4/-6"), form("8/2"), form(r"\left( 1, 2 \right)"), form("1/3.0")
    ('1000', '-2/3', '4/1', '(12)', '1/3.0')
    """
    text = answer.strip()
    for wrapped in _WRAPPED:
        text = wrapped.sub(r"\1", text)
    for dropped in (r"\left", r"\right", ",", " "):
        text = text.replace(dropped, "")
    if text.startswith("$") and text.endswith("$"):
        text = text[1:-1]
    try:
        return str(int(text))
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return _lowest_terms(text)
    # Python writes integers of at most 4,300 digits; a float has 309.
    return str(int(number)) if number.is_integer() else f"{number:.10g}"


def _lowest_terms(text: str) -> str:
    """A fraction of integers in lowest terms; other texts as they are."""
    ratio = _RATIO.fullmatch(text)
    try:
        above, below = (int(ratio[1]), int(ratio[2])) if ratio else (0, 0)
    except ValueError:  # too many digits; the published code stops here
        return text
    if not below:
        return text
    common = math.gcd(above, below) * (1 if below > 0 else -1)
    return f"{above // common}/{below // common}"
