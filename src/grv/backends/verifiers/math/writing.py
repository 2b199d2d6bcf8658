r"""Writes answers in one canonical form, so that equivalent notations are the same text.

Only numbers are evaluated; unknown text is not changed.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator
from fractions import Fraction

from .words import NOUNS, WORDS, number_of

LONGEST = 2_000  # characters of an answer that is read as mathematics; longer ones are text

_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_SIGNS = {
    "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "⁄": "/", "∕": "/",
    "×": r"\times ", "÷": r"\div ", "·": r"\cdot ", "⋅": r"\cdot ", "∙": r"\cdot ",
    "√": "sqrt ", "π": r"\pi ", "∞": r"\infty ", "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ",
    "±": r"\pm ", "∓": r"\mp ", "°": r"^{\circ}", "∪": r"\cup ", "∈": r"\in ", "∨": r"\lor ",
    "∅": r"\emptyset ", "θ": r"\theta ", "α": r"\alpha ", "β": r"\beta ", "γ": r"\gamma ",
    "λ": r"\lambda ", "φ": r"\phi ", "ω": r"\omega ", "ℝ": r"\mathbb{R}", "ℤ": r"\mathbb{Z}",
    "∩": r"\cap ", "∧": r"\land ", "∖": r"\setminus ", "≡": r"\equiv ", "∣": r"\mid ",
    "⌊": r"\lfloor ", "⌋": r"\rfloor ", "⌈": r"\lceil ", "⌉": r"\rceil ",
    "，": ",", "、": ",", "；": ";", "：": ":", "（": "(", "）": ")",
    "∠": r"\angle ",
    "“": "", "”": "", "\u200b": "", "\ufeff": "", "\xa0": " ", "\u202f": " ", "\u2009": " ",
    "€": r"\euro ", "£": r"\sterling ", "¢": r"\text{ cents}",
}  # fmt: skip
_COLORS = "red|blue|green|black|orange|purple|magenta|cyan|brown|violet|teal"
_FUNCTIONS = (
    "arcsin|arccos|arctan|sinh|cosh|tanh|sin|cos|tan|cot|sec|csc|log|lg|ln|exp|max|min|gcd|lcm"
)
_PLAIN = frozenset(f"{_FUNCTIONS}|sqrt|pi|inf|infty|infinity".split("|"))
_END = r"(?![A-Za-z])"
_BAR = re.compile(rf"(?<!\\)\||\\[lr]?vert{_END}")
_ABSOLUTE = (
    (re.compile(rf"\\left\s*(?:\||\\[lr]?vert{_END})|\\lvert{_END}"), r"\\labs "),
    (re.compile(rf"\\right\s*(?:\||\\[lr]?vert{_END})|\\rvert{_END}"), r"\\rabs "),
)
_DIALECTS = (
    (re.compile(rf"\\(?:left|right|[bB]igg?[lr]?|displaystyle|textstyle){_END}"), ""),
    (re.compile(rf"\\(?:bf|rm|it|[Ll]arge){_END}"), ""),
    (re.compile(rf"\\(?:text)?color\{{(?:{_COLORS})\}}|\\underline(?=\{{)"), ""),
    (re.compile(rf"\\q?quad{_END}|(?<!\\)\\[;: ]|(?<=\S)~"), " "),
    (re.compile(rf"\\[dtc]frac{_END}"), r"\\frac"),
    (re.compile(rf"\\[dt]binom{_END}"), r"\\binom"),
    (re.compile(rf"\\(?:leq|leqslant){_END}|<="), r"\\le "),
    (re.compile(rf"\\(?:geq|geqslant){_END}|>="), r"\\ge "),
    (re.compile(rf"\\neq{_END}"), r"\\ne "),
    (re.compile(rf"\\lt{_END}"), "<"),
    (re.compile(rf"\\gt{_END}"), ">"),
    (re.compile(rf"\\lbrace{_END}"), r"\\{"),
    (re.compile(rf"\\rbrace{_END}"), r"\\}"),
    (re.compile(rf"\\l?vert{_END}"), "|"),
    (re.compile(rf"\\rvert{_END}"), "|"),
    (re.compile(rf"\\varnothing{_END}"), r"\\emptyset"),
    (re.compile(rf"\\colon{_END}"), ":"),
    (re.compile(r"\\pmod ?([0-9]+|[a-z])"), r"\\pmod{\1}"),
    (re.compile(rf"\\vee{_END}"), r"\\lor"),
    (re.compile(rf"\\wedge{_END}"), r"\\land"),
    (re.compile(rf"\\(?:mathbb|mathbf) ?(?:\{{R\}}|R{_END})"), r"\\reals "),
    (re.compile(rf"\\(?:mathbb|mathbf) ?(?:\{{Z\}}|Z{_END})"), r"\\integers "),
    (re.compile(rf"\\langle{_END}"), "("),
    (re.compile(rf"\\rangle{_END}"), ")"),
    (re.compile(r"\\begin\{array\}\{[lcr|]*\}"), r"\\begin{matrix}"),
    (re.compile(r"\\end\{array\}"), r"\\end{matrix}"),
    (re.compile(rf"\^\s*(?:\\circ{_END}|\{{\s*\\circ\s*\}})|\\degree{_END}"), r"^{\\circ}"),
    (re.compile(r"\\%"), "%"),
    (re.compile(r"(?<=[0-9A-Za-z)}])\*\*(?=[0-9A-Za-z({-])"), "^"),
    (re.compile(r"\*\*|`"), " "),
)  # fmt: skip
_TYPEFACE = re.compile(
    r"\\(text(?:bf|it|rm|sf|tt|normal|up)?|math(?:rm|bf|it|sf|tt)|boldsymbol|bm|mbox|hbox|operatorname)"
    r"\s*\{([^{}]*)\}"
)
_ALPHABET = re.compile(r"\\(?:math(?:rm|bf|it|sf|tt)|boldsymbol|bm)(?=\{)")
_WORD = re.compile(r"\\text\{[^{}]*\}|\\(?:begin|end)\{[^{}]*\}|\\[A-Za-z]+|[A-Za-z]+")
_UNIT_RATIO = re.compile(r"\\frac *\{ *\\text\{([^{}]*)\} *\} *\{ *\\text\{([^{}]*)\} *\}")
_TEXTS = re.compile(r"(?:\\text\{[^{}]*\} *){2,}")
_FORMULA = re.compile(  # between dollars; one that a digit follows is an amount of money
    r"(?<!\\)\$\$?(?:(?=\S)([^$]*?)(?<=\S)(?<!\\)|\s([^$]*?)\s)\$\$?(?![0-9])"
)
_OR_AND = {"or": r"\lor ", "and": r"\land ", "to": ":"}
_OR_AND |= dict.fromkeys(("oder", "ou"), r"\lor ") | dict.fromkeys(("und", "et"), r"\land ")
_OR_AND_IN_TEXT = {  # some of these are also variables
    **_OR_AND,
    **dict.fromkeys(("o", "или", "或", "或者", "または"), r"\lor "),
    **dict.fromkeys(("y", "и", "和", "と"), r"\land "),
}
_JOINING = frozenset({"dne", "is", "no", "not", "yes", "the", "in", "by", "of"})


@functools.lru_cache(64)
def canonical(answer: str) -> str:
    r"""The answer in canonical form.

    Spaces, sizes of brackets, typefaces, LaTeX variants and Unicode signs are unified; numbers,
    fractions of integers and mixed numbers become a reduced `p/q`. Outside brackets, a comma
    without a space between groups of three digits separates thousands.

    >>> canonical(r"\dfrac{6}{8}"), canonical("0.750"), canonical("1,000"), canonical(" $ x^2 $.")
    ('3/4', '3/4', '1000', 'x^2')
    """
    text = answer.strip()
    number = literal(text)
    if number is not None or len(text) > LONGEST:
        return number or text
    text = "".join(_signs(text)).replace(r"\$", r"\dollar ")
    text = re.sub(r"(?<!\\)\\[()\[\]]", " ", _FORMULA.sub(r" \1\2 ", text))
    text = re.sub(r"\$\s*\$", " ", text).replace("$", r"\dollar ")
    if len(_BAR.findall(text)) > 2:  # otherwise they are the same as plain ones
        for pattern, replacement in _ABSOLUTE:
            text = pattern.sub(replacement, text)
    for pattern, replacement in _DIALECTS:
        text = pattern.sub(replacement, text)
    text = _ALPHABET.sub("", _TYPEFACE.sub(_typeface, text)).strip()
    whole = re.fullmatch(r"\\text\{([^{}]*)\}\.?", text)
    text = _join_groups(whole[1].strip() if whole else text)
    text = re.sub(r"(?<!\\)\\(?:[,!]|$)", " ", text)
    text = re.sub(r"[.,;]\s*(?=\\end\{cases\})|,\s*(?=\\\\)", "", text)
    text = _UNIT_RATIO.sub(r"\\text{\1/\2}", text)
    text = _TEXTS.sub(_one_text, _WORD.sub(_word, text))
    text = re.sub(r"(?<![.…])[.;:,]$", "", _spaced(text))
    return literal(text) or text


def _signs(text: str) -> Iterator[str]:
    """Unicode signs as ASCII and LaTeX; NFKC alone would turn 3½ into 31/2, and 2² into 22."""
    if text.isascii():
        yield text
        return
    raised = re.sub(r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺]+", lambda m: f"^{{{m[0].translate(_SUPERSCRIPTS)}}}", text)
    lowered = re.sub(r"[₀₁₂₃₄₅₆₇₈₉]+", lambda m: f"_{{{m[0].translate(_SUBSCRIPTS)}}}", raised)
    for sign in lowered:
        kind = unicodedata.decomposition(sign).partition(" ")[0]
        if sign in _SIGNS:
            yield _SIGNS[sign]
        elif kind == "<fraction>":
            above, _, below = unicodedata.normalize("NFKC", sign).partition("⁄")
            yield rf"\frac{{{above}}}{{{below}}}"
        elif kind in {"<wide>", "<narrow>", "<font>"}:
            yield unicodedata.normalize("NFKC", sign)
        else:
            yield sign


def _typeface(match: re.Match[str]) -> str:
    r"""Text in another typeface: a formula as `{...}`, words as `\text{...}`."""
    command, inside = match.groups()
    name = inside.strip()
    if name.strip(" ,") in _OR_AND_IN_TEXT:
        return _OR_AND_IN_TEXT[name.strip(" ,")]
    if re.fullmatch(_FUNCTIONS, name) and name not in {"min", "max", "sec"}:  # units, too
        return f"\\{name} "
    if command in {"mathrm", "operatorname"} and re.fullmatch(rf"[eid]|{_FUNCTIONS}", name):
        return name if len(name) == 1 else f"\\{name} "
    if re.search(r"[0-9=\\]", name) and not re.search(r"(?<![\\A-Za-z])[A-Za-z]{2}", name):
        return f"{{{name}}}"
    return rf"\text{{{inside}}}"


def _word(match: re.Match[str]) -> str:
    r"""A word as `\text{...}`; letters that are variables are not changed."""
    word = match[0]
    lower = word.casefold()
    if word[0] == "\\" or word in _PLAIN:
        return word
    if lower in _OR_AND:
        return _OR_AND[lower]
    known = lower in WORDS or lower in _JOINING or number_of(lower) is not None or lower in NOUNS
    if len(word) > 3 or (len(word) > 1 and known) or re.fullmatch("[A-Z][a-z]{2}", word):
        return rf"\text{{{word}}}"
    return word


def _one_text(match: re.Match[str]) -> str:
    inside = " ".join(part.strip() for part in re.findall(r"\{([^{}]*)\}", match[0]))
    return rf"\text{{{inside}}}"


_SURE = r"\{,\}|\\,|,\\!|\\!,"
_RUN = re.compile(rf"(?<![0-9.,A-Za-z])[0-9]+(?:(?:{_SURE}|[, ])[0-9]+)+(?:\.[0-9]+)?(?![0-9/])")
_BRACKET = re.compile(r"\\[{}]|[()\[\]]")


def _join_groups(text: str) -> str:
    """The text without separators of thousands; inside brackets a bare comma is never one."""
    pieces = []
    depth = 0
    at = 0
    for bracket in _BRACKET.finditer(text):
        pieces.append(_RUN.sub(_joined if depth else _joined_outside, text[at : bracket.start()]))
        pieces.append(bracket[0])
        depth = max(0, depth + (1 if bracket[0][-1] in "([{" else -1))
        at = bracket.end()
    return "".join(pieces) + _RUN.sub(_joined if depth else _joined_outside, text[at:])


def _joined_outside(number: re.Match[str]) -> str:
    return _joined(number, rf"{_SURE}|[, ]")


def _joined(number: re.Match[str], separator: str = _SURE) -> str:
    """The number without separators, if they are of one kind and every group has 3 digits."""
    grouped = rf"[1-9][0-9]{{0,2}}({separator})[0-9]{{3}}(?:\1[0-9]{{3}})*(?:\.[0-9]+)?"
    if re.fullmatch(grouped, number[0]):
        return re.sub(r"[^0-9.]", "", number[0])
    return number[0]


def _spaced(text: str) -> str:
    """The text with spaces only between letters and digits, where they may separate words."""
    text = re.sub(r"(\\[A-Za-z]+) (?=[0-9])", r"\1", re.sub(r"\s+", " ", text.strip()))
    return re.sub(r"(?<![A-Za-z0-9]) | (?![A-Za-z0-9])", "", text)


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


def literal(text: str) -> str | None:
    """A number as a reduced fraction; None if the text is not one number."""
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
