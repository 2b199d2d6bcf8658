r"""Finds the statement in a candidate's text that counts as its answer.

The text before the last `</think>` is ignored. A statement is

- a box, `\boxed{...}` or `\fbox{...}`;
- the rest of a line after `####`;
- a sentence or clause that begins with one of the announcements below ("Therefore, the answer is",
  "Ответ:"), in English, German, French, Spanish, Russian, Chinese or Japanese.

The last statement counts. A sentence that contains boxes states what is in the boxes; several boxes
in one sentence are a list. A text without any of these states its last sentence, if that begins
with a short announcement ("There are", "We get") or is alone on its line.

A box is read with the formula that it stands in: `2+3=\boxed{5}` states `2+3=5`, `\boxed{5}\%`
states `5\%`, and `-\boxed{5}`, `\boxed{5}^2` and `\sqrt{\boxed{5}}` state nothing. Prose is not
read: "Twice the answer is \boxed{5}." states 5.

Only the last 40,000 characters are read; all scans are linear.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from .reading import is_constant
from .writing import canonical

_LAST = 40_000  # characters at the end of a text that are read
_MOST_BRACES = 40_000
_MOST_NOUNS = 2_000
_NEAR = 400  # characters beside a box that are read
_OPENING_LENGTH = 160  # characters before the noun of an announcement
_LONGEST = 2_000  # characters of a sentence that is read

_BOX = re.compile(r"\\(?:boxed|fbox(?:ed)?)\s{0,9}\{")
_BRACES = re.compile(r"[\\{}]")
_STOP = r"[.!?](?=[\s$*\"'”»)\\}]|$)|[。！？]"
_PARAGRAPH = r"\n[ \t\r]*\n"
# A formula in a line; a sign of money is followed by a space or a digit where a formula would end.
_INLINE = r"\$(?![\s$])[^$\n]*(?<![\s\\])\$(?!\d)|\\\([^\n]{0,1000}?\\\)"
_END_OF_LINE = re.compile(rf"{_INLINE}|(?P<stop>{_STOP}|\n)")
_END_OF_STATEMENT = re.compile(rf"{_STOP}|{_PARAGRAPH}")

# Announcements ----------------------------------------------------------------------------------

_ENGLISH = (
    r"(?:(?:so|thus|hence|therefore|then|and|but|now|finally|consequently|clearly|overall|"
    r"in conclusion|in total|as a result|it follows|this (?:gives|means|yields)|"
    r"(?:we|i) (?:get|have|find|obtain|see|conclude))(?: that)?\s*[,:]?\s+){0,3}"
)
_ENGLISH_NOUN = (
    r"(?:(?:the|our|my|your)\s+)?"
    r"(?:(?:final|correct|right|required|desired|exact|numerical|only)\s+){0,3}"
)
_ENGLISH_VERB = (
    r"(?:\s+(?:to|for)\s+(?:the|this)\s+(?:problem|question|exercise)|\s+(?:of|for)\s+\$?[a-z]\$?"
    r"|\s+to\s+[0-9]+\s+(?:times|plus|minus)\s+[0-9]+)?"
    r"\s*(?:(?:is|are)\s+equal\s+to\b|(?:is|are|equals?|will be|must be|comes? to)\b|=|:)\s*:?\s*"
    r"(?:(?:therefore|thus|hence|then|so|simply|just|exactly|clearly|indeed|the number)\b\s*,?\s*)?"
)
_GERMAN_SUBJECT = (
    r"(?:(?:die|das|der|unsere?|meine?)\s+)?(?:(?:endgültige|richtige|gesuchte|finale|korrekte)[rs]?\s+)?"
    r"(?:antwort(?:en)?|ergebnis|endergebnis|lösung(?:en)?)"
)
_GERMAN = (
    r"(?:(?:also|somit|daher|folglich|damit|deshalb|insgesamt|schließlich)\s*,?\s+)?"
    rf"(?:{_GERMAN_SUBJECT}\s*(?:(?:ist|sind|lautet|lauten|beträgt)\s*(?:also|somit|daher|damit)?\b|:)"
    rf"|(?:ist|lautet|beträgt)\s+{_GERMAN_SUBJECT}\b)\s*:?\s*"
)
_FRENCH = (
    r"(?:(?:donc|ainsi|alors|finalement|par\s+conséquent|en\s+conclusion|on\s+conclut\s+que)\s*,?\s+)?"
    r"(?:(?:la|le|les|notre)\s+)?(?:réponse|résultat|solution)s?(?:\s+(?:finale?|correcte?|exacte?|cherchée?))?"
    r"\s*(?:(?:est|sont|vaut)\s*(?:donc|ainsi)?\b|:)\s*:?\s*"
)
_SPANISH = (
    r"(?:(?:por\s+(?:lo\s+)?tanto|así|entonces|luego|finalmente|en\s+conclusión|por\s+consiguiente)\s*,?\s+)?"
    r"(?:(?:la|las|el|nuestra)\s+)?(?:respuestas?|resultado|solución|soluciones)(?:\s+(?:final|correct[ao]|exact[ao]|buscad[ao]))?"
    r"\s*(?:(?:es|son)\s*(?:entonces|por\s+tanto)?\b|:)\s*:?\s*"
)
_RUSSIAN = (
    r"(?:(?:итак|таким\s+образом|следовательно|значит|поэтому|получаем|в\s+итоге)\s*[,:]?\s+)?"
    r"(?:(?:наш|окончательный|правильный|верный|искомый)\s+)?(?:ответы?|результат|решени[ея])(?:ом)?"
    r"\s*(?:равен|это|есть|является|[:—–-])\s*:?\s*"
)
_CHINESE = (
    r"(?:(?:所以|因此|因而|故|综上所述|综上|最终|最后|于是|那么)[，,]?\s*)?(?:本题|此题|我们)?的?(?:最终|正确|最后)?的?"
    r"(?:答案|结果)\s*(?:就?是|为|等于|应为|[：:])\s*[：:]?\s*"
)
_JAPANESE = (
    r"(?:(?:したがって|従って|よって|ゆえに|以上より|つまり|だから|最終的に)[、，,]?\s*)?(?:最終的な|正しい|求める)?"
    r"(?:答え|解答|答|正解|最終解答)\s*(?:は|[：:])[、，,]?\s*[：:]?\s*"
)
_FOREIGN = re.compile(
    rf"{_GERMAN}|{_FRENCH}|{_SPANISH}|{_RUSSIAN}|{_CHINESE}|{_JAPANESE}", re.IGNORECASE
)
_CONNECTIVE = re.compile(
    r"\s*(?<![^\W\d_])(und|oder|et|ou|или|和|或者?|と|または)(?![^\W\d_])\s*"
    r"|(?<=[\d$)}])\s+([yoи])\s+(?=[\d$\\(-])"
)
_ANNOUNCEMENT = re.compile(
    rf"{_ENGLISH}{_ENGLISH_NOUN}(?:answer|result|solution)s?{_ENGLISH_VERB}"
    rf"|{_GERMAN}|{_FRENCH}|{_SPANISH}|{_RUSSIAN}|{_CHINESE}|{_JAPANESE}",
    re.IGNORECASE,
)
_TURNED = re.compile(  # 5 is the answer
    r"(?=.{0,200}?[0-9$\\])(.{1,200}) is (?:the|our|my) "
    r"(?:(?:final|correct|right) )?(?:answer|solution|result)[.!]?",
    re.IGNORECASE,
)
_LAST_WORDS = re.compile(  # after the value, in Japanese
    r"\s*(?:です|である|となります|となる|になります|になる|だ)$"
)
_SHORT = re.compile(  # announcements of the last sentence of a text without a statement
    rf"{_ENGLISH}{_ENGLISH_NOUN}(?:value|total|sum|option|choice|probability|number)"
    rf"{_ENGLISH_VERB}|{_ENGLISH}(?:there\s+(?:is|are)|(?:it|this|that)(?:\s+(?:is|equals|costs|takes)|'s)|"
    r"(?:he|she|they|we|you|(?-i:(?!It|This|That)[A-Z])[a-z]+)\s+(?:has|have|had|will have|makes?|"
    r"earns?|needs?|spends?|pays?|gets?|saves?|sells?|uses?))\s+(?:exactly\s+|a\s+total\s+of\s+)?",
    re.IGNORECASE,
)
_OPENING = re.compile(_ENGLISH, re.IGNORECASE)
_NOUNS = (
    "answer", "result", "solution", "antwort", "ergebnis", "lösung", "réponse", "résultat",
    "respuesta", "resultado", "solución", "soluciones", "ответ", "решени", "результат", "答",
    "结果", "正解",
)  # fmt: skip
# An announcement begins after one of these: a sentence, a box, "Wait, ", "Correction: ".
_STARTS = (
    "\n", "。", "！", "？", "：", "，", ". ", "! ", "? ", ": ", "; ", ", ", "– ", "— ", " - ",
    "} ", "$ ", ".*", "!*", "?*", ":*",
)  # fmt: skip
_MARKS = re.compile(r"[\s*_#`]*(?:>\s+)?[\s*_]*")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])\s*")
_REASON = re.compile(
    r",?\s+(?:because|since)\b.*"
    r"|,?\s+as\s+(?:said|required|desired|claimed|expected|needed|stated)$"
    r"|\s+(?:left|in total|altogether|in all|remaining|total|now|overall|"
    r"(?:every|each|per|a)\s+(?:day|week|month|year|hour))$",
    re.IGNORECASE,
)
_POLITE = re.compile(
    r"(?:i |we )?hope (?:this|it|that)|let me know|feel free|thank|good luck|happy to help|qed\b",
    re.IGNORECASE,
)
_DISPLAYED = re.compile(r"\$\$([^$]*)\$\$|\\\[([^\[\]]*)\\\]")

# The formula around a box -----------------------------------------------------------------------

_DELIMITER = re.compile(r"(?:(?<!\\)\$\$?|\\[(\[]|\\begin\{[a-z]+\*?\})$")
_OPENED = re.compile(  # typefaces, alignment and arrows before a box
    r"(?:&|\\\\|\\(?:text|math)(?:bf|rm|it)?\s*\{|\\f?boxed\s*\{|\\\$"
    r"|\\(?:therefore|implies|Rightarrow|Longrightarrow|q?quad|displaystyle|[Ll]arge|huge|bf)"
    r"|\\[,;! ]|\*\*|__)$"
)
_FORMULA = re.compile(  # the beginning of a formula
    r"\$|\\[(\[]|\\begin\{[a-z*]+\}|\n|(?<![\\A-Za-z])[A-Za-z]{2,}\s|\\f?boxed\{"
)
_PROSE_BEFORE = re.compile(  # the end of a word or a clause
    r"(?:^|\n|[.:;!?][\s$*]|(?<![\\\w])(?:[^\W\d_]{2,}|[^\W\d_]+['’][^\W\d_]+|[aIàyои])[.:;,!?]?\s|(?<![\\\w])[^\W\d_]{2,}[:;]"
    r"|[)}\"”»][.:;,!?]?\s|[^\W\d_]{2,}\s—\s|\#\#\s|[)}\"”»][.:;,!?]|[\u3000-\u30ff\u3400-\u9fff\uff00-\uff20])\s*$"
)
_JOINED = re.compile(
    r"(?:[\s$,;*]|\\[()\[\]]|\\text\{ *(?:and|or) *\}|\b(?:and|or)\b)*", re.IGNORECASE
)
_NEGATED = re.compile(r"\\(?:neg|lnot|not|ne|neq|nexists|cancel|phantom)(?![A-Za-z])")
_CLOSED = re.compile(r"\s*(?:\\[,;! ](?![A-Za-z])|\}|\*\*|__)")
_FORMULA_END = re.compile(r"\s*(?:\$\$?|\\[)\]]|\\end\{)")
_QUESTION = re.compile(r"\s*(?:\$\$?|\\[)\]])?[\s*]*[?？]")
_NO_OPERATOR = r"(?:end|begin|f?box(?:ed)?|textbf|item|section|square)\b"
_OPERATOR = rf"\s*(?:[-+*/^=<>]\s*[0-9\\]|\\(?!{_NO_OPERATOR})[a-z])"
_ENDED = re.compile(  # text that may follow a box
    rf"\s*(?:$|\n(?!{_OPERATOR})|\\\\|\\(?:black)?square|[■∎]"
    r"|\.(?=[\s$*\"')}]|\\[)\]\\e]|$)(?!\s*\\[lc]?dots)|!(?!\s*[$\\^_=+*/-])"
    r"|[,;:](?=\s|\$|\\|$)(?!\s*[$\\]*\s*[-+0-9])|\s\(?[^\W\d_]{2,}|[\u3000-\u30ff\u3400-\u9fff\uff00-\uff1e])"
)
_TEXT = r"\\(?:text(?:rm)?|mathrm)\{[^{}]*\}(?:\^\{?[23]\}?)?"
_UNIT = re.compile(rf"\s*(\\?%|°|\^\{{?\\circ\}}?|{_TEXT})")


@dataclass(frozen=True, slots=True)
class _Box:
    start: int
    content: str
    end: int


@functools.lru_cache(16)  # key, refutation and verdict ask for the same text, one after the other
def final_answer(text: str) -> str | None:
    """What the last statement of a text states; None if that is nothing."""
    return _answer(text, is_marked=False)


def marked_answer(text: str) -> str | None:
    """What the last statement states, if it is a box, after `####`, or has an announcement."""
    return _answer(text, is_marked=True)


def _answer(text: str, *, is_marked: bool) -> str | None:
    text = text.rpartition("</think>")[2]
    last_box = max(text.rfind(command) for command in (r"\boxed", r"\fbox"))
    first = len(text) - _LAST
    if 0 <= last_box < first:  # a very long box, or much text after it
        first = last_box - _NEAR
    text = text[max(0, first) :]
    boxes, is_open = _boxes(text)
    marked = text.rfind("####")
    sentence = _last_announced(text)
    box_at = boxes[-1].start if boxes else -1
    if is_open > max(box_at, marked, sentence[0]):
        return None
    if marked > max(box_at, sentence[0]):
        line = text[marked:].lstrip("#").strip().partition("\n")[0]
        return line.strip() or None
    if boxes and (box_at >= sentence[0] or sentence[0] < box_at < sentence[1]):
        stated = _last_sentence(text, boxes)
        if any(not box.content for box in stated):  # an empty box states nothing
            return None
        return _in_boxes(text, stated)
    if sentence[0] >= 0:
        return _stated(text[sentence[0] : sentence[1]])
    if is_marked or _BOX.search(text):  # a box that could not be read
        return None
    return _last_line(text)


def reference_answer(text: str) -> str:
    """The answer in a reference: the marked part, or else the whole text."""
    boxes, _ = _boxes(text)
    return boxes[-1].content if boxes else (text.rpartition("####")[2] or text).strip()


def _boxes(text: str) -> tuple[list[_Box], int]:
    """The innermost boxes in their order, and the start of one that stays open."""
    starts = {box.end(): box.start() for box in _BOX.finditer(text)}
    found: list[_Box] = []
    stack: list[int] = []
    if not starts:
        return found, -1
    marks = itertools.islice(_BRACES.finditer(text, min(starts) - 1), _MOST_BRACES)
    escaped = -1
    for mark in marks:
        if mark.start() == escaped:
            continue
        if mark[0] == "\\":
            escaped = mark.end()
        elif mark[0] == "{":
            stack.append(mark.end())
        elif stack:
            opened = stack.pop()
            start = starts.get(opened)
            is_innermost = not found or start is None or found[-1].start < start
            if start is not None and is_innermost:
                found.append(_Box(start, text[opened : mark.start()].strip(), mark.end()))
    left = [starts[opened] for opened in stack if opened in starts]
    return found, max(left, default=-1)


def _last_sentence(text: str, boxes: list[_Box]) -> list[_Box]:
    """The boxes in the same sentence as the last one."""
    first = len(boxes) - 1
    while first and not _END_OF_STATEMENT.search(text, boxes[first - 1].end, boxes[first].start):
        first -= 1
    return boxes[first:]


def _last_announced(text: str) -> tuple[int, int]:
    """Where the last sentence with an announcement begins and ends; (-1, -1) if there is none."""
    tried = -1
    for noun in _nouns(text):
        window = max(0, noun - _OPENING_LENGTH)
        starts = [(text.rfind(mark, window, noun), len(mark)) for mark in _STARTS]
        start = max((place + size for place, size in starts if place >= 0), default=-1)
        if start < 0 and window > 0:
            continue
        marks = _MARKS.match(text, max(start, 0))
        start = marks.end() if marks else max(start, 0)
        if start == tried:
            continue
        tried = start
        announced = _ANNOUNCEMENT.match(text, start)
        if announced and text[announced.end() : announced.end() + _LONGEST].strip(" \n.:*_"):
            return start, _sentence_stop(text, announced.end())
        turned = _TURNED.match(text[start : start + 260].partition("\n")[0])
        if turned:
            return start, start + turned.end()
    return -1, -1


def _nouns(text: str) -> list[int]:
    """Where the nouns of announcements are, last first, in the last characters of a text."""
    first = max(0, len(text) - _LAST)
    lowered = text[first:].lower()
    if len(lowered) != len(text) - first:  # a letter that has two in lower case
        lowered = text[first:]
    places: list[int] = []
    for noun in _NOUNS:
        place = lowered.find(noun)
        while place >= 0:
            places.append(first + place)
            place = lowered.find(noun, place + 1)
    return sorted(places, reverse=True)[:_MOST_NOUNS]


def _sentence_stop(text: str, start: int) -> int:
    """The end of the sentence whose value begins at `start`, perhaps on a later line."""
    while start < len(text) and text[start] in " \t\r\n*_":
        start += 1
    displayed = _DISPLAYED.match(text, start)
    if displayed:
        start = displayed.end()
    for part in _END_OF_LINE.finditer(text, start):  # a formula has no end of a sentence
        if part["stop"]:
            return part.end()
    return len(text)


def _stated(sentence: str) -> str | None:
    """The value in a sentence with an announcement."""
    sentence = _plain(sentence)
    turned = _TURNED.fullmatch(sentence)
    if turned:
        return _trimmed(turned[1])
    announced = _ANNOUNCEMENT.match(sentence)
    if announced is None:
        return None
    value = sentence[announced.end() :]
    if _FOREIGN.match(sentence):
        value = _CONNECTIVE.sub(lambda found: rf" \text{{ {found[1] or found[2]} }} ", value)
    return _trimmed(value)


def _plain(text: str) -> str:
    """The text without Markdown, and displayed formulas as others."""
    text = _DISPLAYED.sub(lambda m: f" ${(m[1] or m[2] or '').strip()}$ ", text)
    return " ".join(re.sub(r"\*\*|__|`|^\s*>\s+", "", text).split()).lstrip("#").strip()


def _trimmed(value: str) -> str | None:
    """The value without a reason and without words that do not change it."""
    if re.search(r"[0-9)}]!$", value):  # a factorial, or an exclamation mark
        return None
    value = re.sub(r"(?<=[A-Za-z$])!$|(?<!\.)\.$|[。！]$", "", value.strip())
    value = _LAST_WORDS.sub("", value)
    for _ in range(2):
        reason = _REASON.search(value)
        value = value[: reason.start() if reason else None]
    return value.strip() or None


def _last_line(text: str) -> str | None:
    """The value in the last sentence of a text without a statement."""
    if len(text.rstrip().rpartition("\n")[2]) > _LONGEST:
        return None
    last = ""
    alone = False
    for sentence, is_alone in _sentences_backwards(text):
        if not _POLITE.match(sentence):
            last = sentence
            alone = is_alone
            break
    announced = _SHORT.match(last)
    if announced and last[announced.end() :].strip(" ."):
        return _trimmed(last[announced.end() :])
    return _trimmed(_OPENING.sub("", last, count=1)) if alone else None


def _sentences_backwards(text: str) -> Iterator[tuple[str, bool]]:
    """The sentences of the last 4,000 characters, last first; whether each is alone on its line."""
    if len(text) > 2 * _LONGEST:
        tail = text[-2 * _LONGEST :]
        text = tail.partition("\n")[2] or _SENTENCE_END.split(tail, maxsplit=1)[-1]
    text = _DISPLAYED.sub(lambda m: f"\n${' '.join((m[1] or m[2] or '').split())}$\n", text)
    lines = [line for line in map(_plain, text.splitlines()) if line]
    for at in range(len(lines) - 1, -1, -1):
        is_joined = at > 0 and _continues(lines[at - 1], lines[at])
        sentences = [s for s in _SENTENCE_END.split(lines[at]) if s]
        for sentence in reversed(sentences):
            yield sentence, len(sentences) == 1 and not is_joined


def _continues(line: str, following: str) -> bool:
    """Whether a sentence continues in the next line."""
    if re.fullmatch(r"(?:the )?(?:final )?(?:answer|result)", line, re.IGNORECASE):
        return False
    if re.search(r"(?:[:=]|\b(?:is|are|equals))$", line):
        return True
    return re.search("[A-Za-z,(]$", line) is not None and not re.match("[A-Z*]", following)


def _in_boxes(text: str, boxes: list[_Box]) -> str | None:
    """The boxes of one sentence with their formulas, as a list; None if one states nothing."""
    answers: list[str] = []
    for at, box in enumerate(boxes):
        first = boxes[at - 1].end if at else 0
        last = boxes[at + 1].start if at + 1 < len(boxes) else len(text)
        gap = text[first : box.start]
        before = "" if at and _JOINED.fullmatch(gap[:_NEAR]) else _before(gap)
        after = _after(text[box.end : last][: 2 * _NEAR])
        if before is None or after is None:
            return None
        answers.append(before + box.content + after)
    if len(answers) > 1 and len({canonical(answer) for answer in answers}) > 1:
        return ", ".join(answers)
    return answers[-1]


def _thin(text: str) -> str:
    """The text with runs of white space reduced to one space or line break."""
    text = re.sub(r"(?<!\\)\\(?=\s)", "", text)
    return re.sub(r"\s+", lambda spaces: "\n" if "\n" in spaces[0] else " ", text)


def _before(gap: str) -> str | None:
    """The constants before an equals sign and the box, as a chain; None if it states nothing."""
    text = _thin(gap.rstrip()[-_NEAR:])
    space = gap[len(gap.rstrip()) :]
    if re.search(r"(?:^|\n)\s*%[^\n]*$", text):  # a comment of LaTeX
        return None
    text = re.sub(r"\\text(?:bf|rm|it)?\{([^{}]*)\}", r" \1 ", text)
    while True:
        text = re.sub(r"(?<!\\)\\$", "", text).rstrip()
        if _DELIMITER.search(text):
            return ""
        opened = _OPENED.search(text)
        if opened is None:
            break
        text = text[: opened.start()]
        space = " "
    if text.endswith("="):
        return _chain(text)
    if "\n" in space and not re.search(r"(?:[-+*/^_<>(|]|\\[A-Za-z]+)$", text):
        return ""
    return "" if _PROSE_BEFORE.search(f"{text} " if space else text) else None


def _chain(text: str) -> str | None:
    """The constants of a formula that ends with an equals sign."""
    flat = re.sub(r"\s*(?:\\\\\s*&?|&)\s*", " ", text)
    formula = _FORMULA.split(flat)[-1]
    is_open = formula.count("{") != formula.count("}")
    if is_open or _NEGATED.search(formula) or re.search(r"[!<>:]\s*=$", formula):
        return None
    if re.search(r"[-+*/=]\s*\$$", flat[: len(flat) - len(formula)]):  # `$40 - $35 = `: money
        return ""
    return "".join(f"{side}=" for side in formula.split("=")[:-1] if is_constant(canonical(side)))


def _after(text: str) -> str | None:
    """The unit after the box in its formula; None if other mathematics follows."""
    text = _thin(text[:_NEAR])
    units = ""
    while not (_FORMULA_END.match(text) or _ENDED.match(text)):
        closed = _CLOSED.match(text)
        unit = _UNIT.match(text)
        if closed:
            text = text[closed.end() :]
        elif unit:
            units += unit[1]
            text = text[unit.end() :]
        else:
            return None
    return None if _QUESTION.match(text) else units
