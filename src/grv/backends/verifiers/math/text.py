r"""Answers in mathematics as text: finding the final one, and writing it in one way.

The final answer of a model's text is the first of these that is there (whatever stands before the
last `</think>` does not count):

1. the last `\boxed{...}` or `\fbox{...}` that is not empty; none if the last one is never closed,
   for then the text was cut;
2. what follows the last `####` on its line;
3. what follows the last "answer is", "answer:" or "answer =", to the end of the sentence, or the
   formula that stands there between dollar signs; if that is no answer, as in "the answer is not
   obvious", then rule 4 on the sentence, where it has no doubts, and on what follows;
4. the last line with a digit or a formula in it (the only line, if there is one): its last formula;
   else the line itself, where it is written like an answer; else its last number, unless "not",
   "or", "between" and the like stand before it. One word alone, as "Tuesday", is an answer too.

Everything here is linear in the length of the text, and nothing is evaluated.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from fractions import Fraction

LONGEST = 2_000  # characters of an answer that is read as mathematics; longer ones are text

_BOX = re.compile(r"\\f?boxed\s*\{|\\fbox\s*\{")
_ANSWER = re.compile(
    r"\banswer\**\s*(?:is|:|=)\s*:?(?:\s*(?:therefore|thus|hence|then|so|simply|just|exactly|clearly))?"
    r",?",
    re.IGNORECASE,
)
_FORMULA = re.compile(  # between dollars as in pandoc, so that amounts of money are not formulas
    r"\$\$([^$]{1,2000})\$\$|(?<!\\)\$(?=\S)([^$\n]{1,2000}?)(?<=\S)(?<!\\)\$(?![0-9])"
    r"|\\\(([^\n]{1,2000}?)\\\)|\\\[([^\[\]]{1,2000})\\\]"
)
_NUMBER = re.compile(
    r"(?<![A-Za-z0-9.])-?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?(?:/[0-9]+)?(?:\s?\\?%)?"
)
_SENTENCE_END = re.compile(r"\.(?=\s|$)|\n")
_REASON = re.compile(r"(?<=[0-9)}%]),?\s+(?=(?:because|since|as|so|which|where|for|when|if)\b)")
_PROSE = re.compile(
    r"(?<![\\A-Za-z])(?!(?:sqrt|sin|cos|tan|log|exp|and|inf)(?![A-Za-z]))"
    r"(?:[A-Za-z]{3,}|(?:so|is|it|we|to|of|in|as|at|be|by|he|if|my|on|up|us|an|do|go)(?![A-Za-z]))",
    re.IGNORECASE,
)
_DOUBT = re.compile(
    r"\b(?:not|or|nor|neither|either|between|than|maybe|perhaps|guess|approximately|roughly)\b|n't\b",
    re.IGNORECASE,
)
_NEAR = 25  # characters before a number, where a doubt is about it
_TEXT = re.compile(r"\\text\s*\{[^{}]*\}")
_WORD = re.compile(r"[A-Za-z]+\.?")
_COUNT = re.compile(
    r"\b(?:hundreds?|thousands?|millions?|billions?|trillions?|dozens?|half|halves|thirds?|quarters?"
    r"|percent|degrees?|and|or|not|no|over|minus|plus|times|point|squared|cubed|to|by|less|more)\b",
    re.IGNORECASE,
)  # words after a number that may change it


def final_answer(text: str) -> str | None:
    """The final answer as it stands in `text`, or None; by the rules above."""
    text = text.rpartition("</think>")[2]
    if _BOX.search(text):
        return _last_box(text)
    if "####" in text:
        return _first_line(text.rpartition("####")[2])
    said = list(_ANSWER.finditer(text))
    if said:
        return _after(text[said[-1].end() :])
    return _from_lines(text)


def reference_answer(text: str) -> str:
    """The answer in a reference: the marked one if there is a mark, else all of the text."""
    if _BOX.search(text):
        return _last_box(text) or text
    return (text.rpartition("####")[2] or text).strip()


def _last_box(text: str) -> str | None:
    """The inside of the last box with something in it."""
    for box in reversed(list(_BOX.finditer(text))):
        inside = _braced(text, box.end())
        if inside is None:
            return None
        if inside.strip():
            return inside.strip()
    return None


def _braced(text: str, start: int) -> str | None:
    """What stands from `start` to the brace that closes there; None if none does."""
    depth = 1
    for mark in re.compile(r"\\.|[{}]", re.DOTALL).finditer(text, start):
        if mark.group() == "{":
            depth += 1
        elif mark.group() == "}":
            depth -= 1
            if not depth:
                return text[start : mark.start()]
    return None


def _first_line(text: str) -> str | None:
    line = text.strip().partition("\n")[0].strip()
    return line or None


def _after(text: str) -> str | None:
    """What follows the words "answer is"."""
    text = text.lstrip(" \t\n*")
    formula = _FORMULA.match(text)
    if formula:
        return _inside(formula)
    end = _SENTENCE_END.search(text)
    sentence = text[: end.start() if end else None].strip(" \t*`")
    reason = _REASON.search(sentence)
    said = sentence[: reason.start() if reason else None]
    formulas = list(_FORMULA.finditer(said))
    if len(formulas) == 1 and not _DOUBT.search(said):
        return _inside(formulas[0])
    found = _without_words(said)
    if _written_like_an_answer(found):
        return found or None
    if _DOUBT.search(said):
        return _from_lines(text[end.end() :]) if end else None
    return _from_lines(said) or _from_lines(text)


def _written_like_an_answer(line: str) -> bool:
    """Whether there are no words in it, or nothing but one."""
    if not line or len(line) > LONGEST or _WORD.fullmatch(line):
        return bool(line)
    return not _PROSE.search(_TEXT.sub("", line))


def _without_words(sentence: str) -> str:
    """A number with words after it that do not change it, "18 dollars a day", without them."""
    amount = sentence.removeprefix("\\$").removeprefix("$")
    number = _NUMBER.match(amount)
    if number is None:
        return sentence
    words = amount[number.end() :]
    if not re.fullmatch(r"(?:\s+[A-Za-z]{2,}|\s+a)+[.!]?", words) or _COUNT.search(words):
        return sentence
    return number.group()


def _inside(formula: re.Match[str]) -> str | None:
    return next(part for part in formula.groups() if part is not None).strip() or None


def _from_lines(text: str) -> str | None:
    lines = [line for line in map(str.strip, text.splitlines()) if line]
    if not lines:
        return None
    if len(lines) > 1:
        telling = (x for x in reversed(lines) if re.search(r"[0-9]|\$.+\$|\\\(|\\\[", x))
        line = next(telling, lines[-1])
    else:
        line = lines[0]
    formulas = list(_FORMULA.finditer(line))
    if formulas:
        return _inside(formulas[-1])
    line = line.strip("*` ")
    line = _without_words(line)
    if _written_like_an_answer(line):
        return line.removesuffix(".") or None
    numbers = list(_NUMBER.finditer(line))
    if not numbers or _DOUBT.search(line, max(0, numbers[-1].start() - _NEAR), numbers[-1].start()):
        return None
    return numbers[-1].group()


_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_SIGNS = {
    "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "⁄": "/", "∕": "/",
    "×": r"\times ", "÷": r"\div ", "·": r"\cdot ", "⋅": r"\cdot ", "∙": r"\cdot ",
    "√": "sqrt ", "π": r"\pi ", "∞": r"\infty ", "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ",
    "±": r"\pm ", "°": r"^{\circ}", "∪": r"\cup ", "∩": r"\cap ", "∈": r"\in ",
    "∅": r"\emptyset ", "θ": r"\theta ", "α": r"\alpha ", "β": r"\beta ", "γ": r"\gamma ",
    "λ": r"\lambda ", "φ": r"\phi ", "ω": r"\omega ", "ℝ": r"\mathbb{R}", "∠": r"\angle ",
    "“": "", "”": "", "\u200b": "", "\ufeff": "",
}  # fmt: skip
_DIALECTS = (
    (re.compile(r"\\(?:left|right|[bB]igg?[lr]?|displaystyle|textstyle|limits)(?![A-Za-z])"), ""),
    (re.compile(r"\\(?:quad|qquad)(?![A-Za-z])|(?<!\\)\\[;: ]|~"), " "),
    (re.compile(r"\\[dtc]frac(?![A-Za-z])"), r"\\frac"),
    (re.compile(r"\\[dt]binom(?![A-Za-z])"), r"\\binom"),
    (re.compile(r"\\(?:leq|leqslant)(?![A-Za-z])"), r"\\le"),
    (re.compile(r"\\(?:geq|geqslant)(?![A-Za-z])"), r"\\ge"),
    (re.compile(r"\\neq(?![A-Za-z])"), r"\\ne"),
    (re.compile(r"\\lt(?![A-Za-z])"), "<"),
    (re.compile(r"\\gt(?![A-Za-z])"), ">"),
    (re.compile(r"<="), r"\\le "),
    (re.compile(r">="), r"\\ge "),
    (re.compile(r"\\lbrace(?![A-Za-z])"), r"\\{"),
    (re.compile(r"\\rbrace(?![A-Za-z])"), r"\\}"),
    (re.compile(r"\\[lr]?vert(?![A-Za-z])"), "|"),
    (re.compile(r"\\varnothing(?![A-Za-z])"), r"\\emptyset"),
    (re.compile(r"\\(?:mathrm|operatorname)\s*\{\s*([ei]|a?(?:rc)?(?:sin|cos|tan)|ln|log)\s*\}"),
     lambda m: m[1] if len(m[1]) == 1 else f"\\{m[1]} "),
    (re.compile(r"\\(?:text(?:bf|it|rm|sf|normal)?|mathrm|mathbf|mathit|mathsf|mbox|hbox|"
                r"operatorname)\s*\{([^{}]*)\}"), r"\\text{\1}"),
    (re.compile(r"\^\s*(?:\\circ|\{\s*\\circ\s*\})|\\degree(?![A-Za-z])"), r"^{\\circ}"),
    (re.compile(r"\\%"), "%"),
    (re.compile(r"(?<=[0-9A-Za-z)}])\*\*(?=[0-9A-Za-z({-])"), "^"),
    (re.compile(r"\\\$|\$|(?<!\\)\\[()\[\]]|\*\*|`"), " "),
)  # fmt: skip
_SURE = r"\{,\}|\\,|,\\!|\\!,"
_GROUPED = re.compile(rf"(?<![0-9.,])[0-9]{{1,3}}(?:(?:,|{_SURE})[0-9]{{3}})+(?![0-9])")
_SURELY_GROUPED = re.compile(rf"(?<![0-9.,])[0-9]{{1,3}}(?:(?:{_SURE})[0-9]{{3}})+(?![0-9])")
_BRACKET = re.compile(r"\\[{}]|[()\[\]]")


def canonical(answer: str, *, grouped: bool = True) -> str:
    r"""The answer written in one way; answers written alike are one answer.

    Spaces, sizes of brackets, typefaces, dialects of LaTeX and unicode signs go; numbers, fractions
    of integers and mixed numbers become a reduced `p/q`. With `grouped`, commas between groups of
    three digits outside brackets are separators of thousands; without, they separate answers.

    >>> canonical(r"\dfrac{6}{8}"), canonical("0.750"), canonical("1,000"), canonical(" $ x^2 $.")
    ('3/4', '3/4', '1000', 'x^2')
    """
    number = _literal(answer.strip())
    if number is not None:
        return number
    text = "".join(_signs(answer.strip()))
    if len(text) <= 4 * LONGEST:
        for pattern, replacement in _DIALECTS:
            text = pattern.sub(replacement, text)
    text = _join_groups(text, grouped)
    text = _spaced(re.sub(r"(?<!\\)\\[,!]", " ", text)).rstrip(".;:,")
    return _literal(text) or text


def _signs(text: str) -> Iterator[str]:
    """Unicode's signs in ASCII and LaTeX; NFKC alone would make 31/2 of 3½, and 22 of 2²."""
    if text.isascii():
        yield text
        return
    raised = re.sub(r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺]+", lambda m: f"^{{{m[0].translate(_SUPERSCRIPTS)}}}", text)
    lowered = re.sub(r"[₀₁₂₃₄₅₆₇₈₉]+", lambda m: f"_{{{m[0].translate(_SUBSCRIPTS)}}}", raised)
    for sign in lowered:
        if sign in _SIGNS:
            yield _SIGNS[sign]
        elif unicodedata.decomposition(sign).startswith("<fraction>"):
            above, _, below = unicodedata.normalize("NFKC", sign).partition("⁄")
            yield rf"\frac{{{above}}}{{{below}}}"
        else:
            yield unicodedata.normalize("NFKC", sign)


def _join_groups(text: str, grouped: bool) -> str:
    """Without the separators of thousands; inside brackets a bare comma is never one."""
    if not grouped or text.startswith("{"):
        return _SURELY_GROUPED.sub(_digits, text)
    pieces, depth, at = [], 0, 0
    for bracket in _BRACKET.finditer(text):
        pattern = _SURELY_GROUPED if depth else _GROUPED
        pieces.append(pattern.sub(_digits, text[at : bracket.end()]))
        depth = max(0, depth + (1 if bracket[0][-1] in "([{" else -1))
        at = bracket.end()
    return "".join(pieces) + (_SURELY_GROUPED if depth else _GROUPED).sub(_digits, text[at:])


def _digits(number: re.Match[str]) -> str:
    return re.sub(r"[^0-9]", "", number[0])


def _spaced(text: str) -> str:
    """Spaces only between letters and digits, where they may keep two words or numbers apart."""
    return re.sub(r"(?<![A-Za-z0-9]) | (?![A-Za-z0-9])", "", re.sub(r"\s+", " ", text.strip()))


_NUMBER_LITERAL = re.compile(
    r"(?P<sign>[+-]?)(?:(?P<whole>[0-9]+)(?:\.(?P<decimals>[0-9]*))?|\.(?P<point>[0-9]+))"
)
_FRACTION_LITERAL = re.compile(
    r"(?P<sign>[+-]?)(?:"
    r"(?:(?P<whole>[0-9]+) ?)?\\frac(?:\{(?P<above>-?[0-9]+)\}|(?P<top>[0-9]))"
    r"(?:\{(?P<below>[0-9]+)\}|(?P<bottom>[0-9]))"
    r"|(?:(?P<count>[0-9]+) )?(?P<left>[0-9]+)/(?P<right>[0-9]+))"
)
_LONGEST_NUMBER = 1_000  # digits of a number that is reduced; longer ones are compared as written


def _literal(text: str) -> str | None:
    """A number as reduced fraction; None if the text is not one number."""
    number = _NUMBER_LITERAL.fullmatch(text)
    if number:
        whole = (number["whole"] or "0").lstrip("0") or "0"
        decimals = (number["decimals"] or number["point"] or "").rstrip("0")
        sign = "-" if number["sign"] == "-" and (whole != "0" or decimals) else ""
        if not decimals or len(whole) + len(decimals) > _LONGEST_NUMBER:
            return f"{sign}{whole}.{decimals}".rstrip(".")
        return str(Fraction(f"{sign}{whole}.{decimals}"))
    fraction = _FRACTION_LITERAL.fullmatch(text) if len(text) <= _LONGEST_NUMBER else None
    if fraction is None:
        return None
    above = int(fraction["above"] or fraction["top"] or fraction["left"])
    below = int(fraction["below"] or fraction["bottom"] or fraction["right"])
    whole = fraction["whole"] or fraction["count"]
    if below == 0 or (whole and not 0 < above < below):
        return None
    value = Fraction(above, below) + int(whole or 0)
    return str(-value if fraction["sign"] == "-" else value)
