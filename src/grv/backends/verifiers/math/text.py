r"""Finds the final answer in a candidate's text.

Text before the last `</think>` is ignored. The final answer is

1. the content of the last non-empty `\boxed{...}` or `\fbox{...}`, read with its surroundings
   (`boxes`);
2. without a box, the rest of the line after the last `####`;
3. without either, the value that the last sentence states. That sentence begins with an
   announcement from a short list ("therefore, the answer is", "there are"), or is alone on its line
   and consists only of an answer. Otherwise the last sentence with "answer is" counts, unless a
   later sentence doubts it or gives another answer.

A sentence states everything after the announcement: "the answer is at least 5" states "at least 5",
which is not 5. The time is linear in the length of the text; without a box only its end is read.
"""

from __future__ import annotations

import re

from .boxes import has_box, in_boxes, last_box

_TAIL = 4_000  # characters at the end of a text without a box that are read

_OPENING = (
    r"(?:(?:so|thus|hence|therefore|then|and|but|now|finally|consequently|clearly|overall|"
    r"in conclusion|in total|as a result|it follows|this (?:gives|means|yields)|"
    r"(?:we|i) (?:get|have|find|obtain|see|conclude))(?: that)?\s*[,:]?\s+){0,3}"
)
_NOUNS = "answer|result|value|solution|total|sum|option|choice|probability|number"
_SUBJECT = (
    r"(?:(?:the|our|my|your)\s+)?(?:(?:final|correct|right|required|desired|exact|numerical|only)\s+)*"
    rf"(?:{_NOUNS})s?"
    r"(?:\s+(?:to|for)\s+(?:the|this)\s+(?:problem|question|exercise)|\s+(?:of|for)\s+\$?[a-z]\$?"
    r"|\s+to\s+[0-9]+\s+(?:times|plus|minus)\s+[0-9]+)?"
)
_COPULA = (
    r"\s*(?:(?:is|are)\s+equal\s+to\b|(?:is|are|equals?|will be|must be|comes? to)\b|=|:)\s*:?\s*"
    r"(?:(?:therefore|thus|hence|then|so|simply|just|exactly|clearly|indeed|the number)\b\s*,?\s*)?"
)
_PERSON = (
    r"(?:there\s+(?:is|are)|(?:it|this|that)(?:\s+(?:is|equals|costs|takes)|'s)|"
    r"(?:he|she|they|we|you|(?-i:(?!It|This|That)[A-Z])[a-z]+)\s+(?:has|have|had|will have|makes?|"
    r"earns?|needs?|spends?|pays?|gets?|saves?|sells?|uses?))\s+(?:exactly\s+|a\s+total\s+of\s+)?"
)
_ANSWER = re.compile(rf"{_OPENING}{_SUBJECT}{_COPULA}", re.IGNORECASE)
_TURNED = re.compile(  # 5 is the answer
    r"(.{1,200}) is (?:the|our|my) (?:(?:final|correct|right) )*(?:answer|solution|result)[.!]?",
    re.I,
)
_OTHER = re.compile(rf"{_OPENING}{_PERSON}", re.IGNORECASE)
_OPENED = re.compile(_OPENING, re.IGNORECASE)
_REST = re.compile(
    r",?\s+(?:because|since)\b.*"
    r"|,?\s+as\s+(?:said|required|desired|claimed|expected|needed|stated)$"
    r"|\s+(?:left|in total|altogether|in all|remaining|total|now|overall|"
    r"(?:every|each|per|a)\s+(?:day|week|month|year|hour))$",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_DISPLAYED = re.compile(r"\$\$([^$]*)\$\$|\\\[([^\[\]]*)\\\]")
_POLITE = re.compile(
    r"(?:i |we )?hope (?:this|it|that)|let me know|feel free|thank|good luck|happy to help|qed\b",
    re.IGNORECASE,
)
_UNSURE = re.compile(r"\b(?:wrong|incorrect|guess\w*|unsure|not sure|maybe|mistake)\b", re.I)
_DOUBT = re.compile(
    r"\b(?:not?|nor|neither|never|cannot|wait|wrong|incorrect|mistakes?|errors?|sorry|correction|"
    r"actually|instead|rather|however|but|or|also|maybe|perhaps|might|may|could|if|unless|except|"
    r"answers?|only|unsure|guess|doubt)\b|n't\b|\?",
    re.IGNORECASE,
)


def final_answer(text: str) -> str | None:
    """The final answer in `text`, or None; see the rules above."""
    text = text.rpartition("</think>")[2]
    if has_box(text):
        return in_boxes(text)
    if "####" in text:
        line, _, rest = text.rpartition("####")[2].strip().partition("\n")
        return None if _DOUBT.search(rest[:_TAIL]) else line.strip() or None
    if len(text) > _TAIL:
        text = text[-_TAIL:].partition("\n")[2] or _SENTENCE_END.split(text[-_TAIL:], 1)[-1]
    return _stated(text)


def reference_answer(text: str) -> str:
    """The answer in a reference: the marked part, or else the whole text."""
    return last_box(text) or (text.rpartition("####")[2] or text).strip()


def _stated(text: str) -> str | None:
    """The value in the last sentence, or in the last one that says "answer is"."""
    lines = _lines(text)
    sentences = [(s, len(line) == 1) for line in lines for s in line]
    if not sentences:
        return None
    last, alone = sentences[-1]
    stated = _statement(last, _ANSWER) or _statement(last, _OTHER)
    if stated is not None:
        return stated
    bare = _trimmed(_OPENED.sub("", last, count=1)) if alone else None
    if bare is not None and not re.search("[A-Za-z]{3}", bare):
        return bare
    for at in range(len(sentences) - 2, -1, -1):
        if _DOUBT.search(sentences[at + 1][0]):
            break
        stated = _statement(sentences[at][0], _ANSWER)
        if stated is not None:
            return stated
    return bare


def _lines(text: str) -> list[list[str]]:
    """The sentences of each non-empty line, without polite ones at the end."""
    text = _DISPLAYED.sub(lambda m: f" ${(m[1] or m[2] or '').strip()}$ ", text)
    lines: list[str] = []
    for line in text.replace("**", "").replace("__", "").replace("`", "").splitlines():
        line = line.strip().lstrip("#").strip()
        if line and lines and _continues(lines[-1], line):
            lines[-1] += f" {line}"
        elif line:
            lines.append(line)
    while lines:
        sentences = [s for s in re.split(_SENTENCE_END, lines[-1]) if s]
        while sentences and _POLITE.match(sentences[-1]):
            sentences.pop()
        if sentences:
            return [[s for s in re.split(_SENTENCE_END, x) if s] for x in lines[:-1]] + [sentences]
        lines.pop()
    return []


def _continues(line: str, following: str) -> bool:
    """Whether a sentence continues in the next line."""
    if re.search(r"(?:[:=]|\b(?:is|are|equals))$", line):
        return True
    return re.search("[A-Za-z,(]$", line) is not None and not re.match("[A-Z*]", following)


def _statement(sentence: str, announcing: re.Pattern[str]) -> str | None:
    """The text after the announcement; None if the sentence does not begin with one."""
    turned = _TURNED.fullmatch(sentence) if announcing is _ANSWER else None
    if turned:
        return _trimmed(turned[1])
    start = announcing.match(sentence)
    if start is None or not sentence[start.end() :].strip(" ."):
        return None
    value = sentence[start.end() :]
    if re.search(r"[0-9)}]!$", value):  # a factorial, or an exclamation mark
        return None
    return _trimmed(value)


def _trimmed(value: str) -> str | None:
    """The value without a reason and without words that do not change it."""
    value = re.sub(r"(?<=[A-Za-z$])!$|(?<!\.)\.$", "", " ".join(value.split()))
    for _ in range(2):
        rest = _REST.search(value)
        if rest and _UNSURE.search(rest[0]):
            return None
        value = value[: rest.start() if rest else None]
    return value.strip() or None
