r"""The answer in the boxes of a text, read with its surroundings.

- Text beside a box belongs to the answer: `\boxed{5}\text{ cm}` is 5 cm, and `6\boxed{5}`,
  `\sqrt{\boxed{5}}`, "not \boxed{5}", "\boxed{5} squared" and "\boxed{5} is wrong" are not answers.
- `2+3=\boxed{5}` is the chain `2+3=5`, and `x=6=\boxed{5}` the chain `6=5`, which is false.
- Several boxes with only commas, "and" or "or" between them are a list. Otherwise a later box
  replaces an earlier one if the end of a sentence or a correction ("no, ") is between them. If
  neither is, the boxes contradict each other and there is no answer.
- If the text after the box takes it back or gives another answer, there is no answer.
- A box that is never closed is not an answer.

One search finds the boxes and one scan their ends; around them, `_NEAR` or `_TAIL` characters are
read.
"""

from __future__ import annotations

import re
from collections import deque

from .prose import changes, states, takes_back
from .reading import read
from .scalars import Unreadable
from .tree import Quantity, names
from .words import unit_of
from .writing import canonical

_NEAR = 400  # characters beside a box that are read
_TAIL = 4_000  # characters after it, which may take it back
_MOST = 8  # boxes at the end of a text

_BOX = re.compile(r"\\(?:boxed|fbox(?:ed)?)\s{0,9}\{")
_BRACES = re.compile(r"\\.|[{}]", re.DOTALL)
_JOINED = re.compile(r"(?:[\s$,;*]|\\[()\[\]]|\\text\{ *(?:and|or) *\}|\b(?:and|or)\b)*", re.I)
_CORRECTED = re.compile(r"\bno[,:;!]|\b(?:wait|rather|actually|correction)\b", re.I)
_SENTENCE_END = re.compile(r"[.!?](?=[\s$*\"')\\]|$)|\n")
_OPENED = re.compile(  # the opening of a formula or typeface, and arrows before an answer
    r"(?:\\?\$\$?|\\[(\[]|&|\\\\|\\begin\{[a-z]+\*?\}|\\(?:text|math)(?:bf|rm|it)?\s*\{"
    r"|\\f?boxed\s*\{|\\(?:therefore|implies|Rightarrow|Longrightarrow|q?quad|displaystyle|[Ll]arge)"
    r"|\\(?:huge|bf)|\\[,;! ]|\*\*|__)$"
)
_FORMULA = re.compile(  # the beginning of a formula
    r"\$|\\[(\[]|\\begin\{[a-z*]+\}|\n|(?<![\\A-Za-z])[A-Za-z]{2,}\s|\\f?boxed\{"
)
_PROSE = re.compile(  # before a formula: nothing, a word, or the end of a clause
    r"(?:^|\n|[.:;!?][\s$*]|(?<![\\A-Za-z])(?:[A-Za-z'’]{2,}|[aI])[.:;,!?]?|[)}\"”][.:;,!?]?\s"
    r"|[)}\"”][.:;,!?])\s*$"
)
_NEGATED = re.compile(r"\\(?:neg|lnot|not|ne|neq|nexists|cancel|phantom)(?![A-Za-z])")
_OTHER_ANSWER = re.compile(
    r"\banswer\s*(?:is|:|=|should be|must be)\s*:?\s*([^\s.,;]*[0-9][^\s,;]*)", re.IGNORECASE
)
_CLOSED = re.compile(r"\s*(?:\$\$?|\\[)\]]|\}|\*\*|__|\\[,;! ](?![A-Za-z]))")
_OPERATOR = (  # in the line after a box
    r"\s*(?:[-+*/^=<>]\s*[0-9\\]|\\(?!(?:end|begin|f?box(?:ed)?|textbf|item|section|square)\b)[a-z])"
)
_ENDED = re.compile(  # text that may follow a box
    rf"\s*(?:$|\n(?!{_OPERATOR})|\\end\{{|\\\\|\\(?:black)?square|[■∎]"
    r"|\.(?=[\s$*\"')}]|\\[)\]\\e]|$)|!(?!\s*[$\\^_=+*/-])"
    r"|[,;:](?=\s|\$|$)(?!\s*(?:or\b|and (?!we|this|so|that|it|the)))(?!\s*[$\\]*\s*[-+0-9])"
    r"|is (?:the|our|my) (?:(?:final|correct|required|desired|only) )*"
    r"(?:answer|result|solution|value|total|possibility|one|choice)\b"
    r"|as (?:required|desired|claimed|needed|(?:the|our) (?:final )?answer)\b"
    r"|(?:because|since|which|altogether|in total|of them|qed|(?:and|so) (?:we|this|that|it))\b)",
    re.IGNORECASE,
)
_TEXT = r"\\(?:text(?:rm)?|mathrm)\{[^{}]*\}(?:\^\{?[23]\}?)?"
_UNIT = re.compile(rf"\s*(\\?%|°|\^\{{?\\circ\}}?|{_TEXT})")


def has_box(text: str) -> bool:
    """Whether there is a box in the text."""
    return _BOX.search(text) is not None


def last_box(text: str) -> str | None:
    """The content of the last box, without its surroundings."""
    boxes = _boxes(text)
    return boxes[-1][1] if boxes else None


def in_boxes(text: str) -> str | None:
    """The answer in the boxes of a text; see the rules above."""
    boxes = _boxes(text)
    if not boxes:
        return None
    start, answer, end = boxes.pop()
    before = None
    for earlier, other, closed in reversed(boxes):
        between = text[closed:start]
        same = canonical(answer) == canonical(other)
        if len(between) <= _NEAR and _JOINED.fullmatch(between):
            start, answer = earlier, answer if same else f"{other}, {answer}"
        elif same or _SENTENCE_END.search(between):
            break
        elif corrected := deque(_CORRECTED.finditer(between), maxlen=1):
            before = between[corrected[0].end() :].lstrip(" ,:;!")
            break
        else:
            return None
    before = text[max(0, start - _NEAR) : start] if before is None else before[-_NEAR:]
    chain = _before(_thin(before))
    after = _thin(text[end : end + _TAIL])
    whole = _with_unit(answer, after[:_NEAR])
    if chain is None or whole is None or _is_taken_back(answer, after):
        return None
    return chain + whole


def _boxes(text: str) -> list[tuple[int, str, int]]:
    """The last non-empty innermost boxes: start, content, end. An open box ends the list."""
    starts = [box.span() for box in deque(_BOX.finditer(text), maxlen=_MOST)]
    ends = _closings(text, {opened for _, opened in starts})
    found: list[tuple[int, str, int]] = []
    for start, opened in reversed(starts):
        end = ends.get(opened)
        if end is None:
            break
        inside = text[opened:end].strip()
        if inside and (not found or end < found[0][0]):
            found.insert(0, (start, inside, end + 1))
    return found


def _closings(text: str, opened: set[int]) -> dict[int, int]:
    """The closing brace for each of the positions after an opening brace, in one scan."""
    ends: dict[int, int] = {}
    stack: list[int] = []
    for mark in _BRACES.finditer(text, min(opened, default=1) - 1):
        if mark[0] == "{":
            stack.append(mark.end())
        elif mark[0] == "}" and stack:
            start = stack.pop()
            if start in opened:
                ends[start] = mark.start()
    return ends


def _thin(text: str) -> str:
    """The text with runs of white space reduced to one space or line break."""
    text = re.sub(r"(?<!\\)\\(?=\s)", "", text)
    return re.sub(r"\s+", lambda spaces: "\n" if "\n" in spaces[0] else " ", text)


def _before(text: str) -> str | None:
    """The values before an equals sign and the box, as a chain; None if the text denies the box."""
    if re.search(r"(?:^|\n)\s*%[^\n]*$", text):
        return None
    if re.search(r"(?:[-+*/^_<>(|]|\\[A-Za-z]+)\s*\n\s*$", text):
        return None
    text = re.sub(r"\\text(?:bf|rm|it)?\{([^{}]*)\}", r" \1 ", text).rstrip(" \t")
    flat = re.sub(r"\s*(?:\\\\\s*&?|&)\s*", " ", text).rstrip()
    if flat.endswith("="):
        formula = _FORMULA.split(flat)[-1]
        is_open = formula.count("{") != formula.count("}")
        if is_open or _NEGATED.search(formula) or re.search(r"[!<>:]\s*=$", formula):
            return None
        chain = "".join(f"{side}=" for side in formula.split("=")[:-1] if _is_constant(side))
        text = flat[: len(flat) - len(formula)]
        if re.search(r"[-+*/=]\s*\$$", text):  # `$40 - $35 = `: the dollars are money
            chain = ""
        return chain if states(_without_openings(text), has_verb=True) else None
    stripped = _without_openings(text)
    return "" if _PROSE.search(stripped) and states(stripped, has_verb=False) else None


def _without_openings(text: str) -> str:
    """The text without the opening of a formula at its end; white space may remain."""
    while opened := _OPENED.search(text.rstrip(" \t")):
        text = text[: opened.start()]
    return text


def _is_constant(side: str) -> bool:
    """Whether the text is a value without variables."""
    try:
        answer = read(canonical(side))
    except Unreadable:
        return False
    return isinstance(answer, Quantity) and not names(answer.scalar)


def _with_unit(answer: str, text: str) -> str | None:
    """The answer with the unit after its box; None if other text follows."""
    while True:
        unit = _UNIT.match(text)
        if unit:
            answer, text = f"{answer}{unit[1]}", text[unit.end() :]
            continue
        if _ENDED.match(text):
            return answer
        closed = _CLOSED.match(text)
        if closed:
            text = text[closed.end() :]
            continue
        words = re.match(r"\s*((?:[A-Za-z]+ ){0,3}[A-Za-z]+)", text)
        return _with_words(answer, words[1].split(), text) if words else None


def _with_words(answer: str, words: list[str], text: str) -> str | None:
    """The answer with a unit in words, unless the rest of the sentence changes it."""
    sentence = _SENTENCE_END.split(text)[0]
    for count in range(len(words), 0, -1):
        unit = " ".join(words[:count])
        if unit_of(unit) is not None:
            rest = sentence.strip().removeprefix(unit)
            return None if changes(rest) else rf"{answer}\text{{ {unit}}}"
    return None


def _is_taken_back(answer: str, text: str) -> bool:
    """Whether the text takes the answer back, or gives another one."""
    if takes_back(text):
        return True
    others = (m[1].strip("$*\\()[].").strip() for m in _OTHER_ANSWER.finditer(text))
    return any(canonical(other) != canonical(answer) for other in others if other)
