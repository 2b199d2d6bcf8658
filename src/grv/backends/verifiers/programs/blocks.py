"""The code blocks of a Markdown text that a reader sees.

Blocks are those of CommonMark: fenced or indented, also in lists and quotes. A block is visible if
a browser that shows the rendered text shows it:

- it is not inside an HTML comment, a link definition or an unfinished tag;
- it is not inside an element that is not shown, such as `<template>`, or that has an attribute
  other than a few harmless ones, because `hidden` and `style` are two of many ways to hide it;
- it is not inside the thoughts of a model (`<think>`);
- its info string does not ask for hiding;
- the text contains no `<style>`, `<script>`, `<link>` or `onload=`, which could hide anything.

A closed `<details>` is visible: a reader opens it. Hostile texts take time proportional to their
length; longer ones are not read.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from .syntax import parse

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_LARGEST = 1 << 20  # characters of the longest text that is read
_LINES = 1 << 13  # lines of the longest text that is read
_QUOTED = 1 << 19  # lines of the longest text that is read, times the number of its quotes
_QUOTE_MARK = r"[ \t*+.)0-9-]*+>"
_QUOTE = re.compile(
    rf"^{_QUOTE_MARK}[^\r\n]*+$(?!\r?\n{_QUOTE_MARK})", re.MULTILINE
)  # the last line
THOUGHTS = ("think", "thinking", "thought", "thoughts", "reasoning", "reflection", "scratchpad")
_EVERYWHERE = frozenset(("style", "script", "link", "base", "meta", "plaintext"))
_NOT_SHOWN_NAMES = """
    audio canvas datalist dialog embed frameset head iframe map math noembed noframes noscript
    object optgroup option picture rp select svg template textarea title video xmp
"""
_NOT_SHOWN = frozenset((*_NOT_SHOWN_NAMES.split(), *THOUGHTS))
_RAW = frozenset(("iframe", "noembed", "noframes", "textarea", "title", "xmp"))
_VOID_NAMES = "area br col embed hr img input param source track wbr"
_VOID = frozenset(_VOID_NAMES.split())
_HARMLESS = frozenset(("align", "alt", "dir", "href", "id", "lang", "markdown", "open", "title"))
_HIDING_INFO = re.compile(
    r"hid(?:e|den)|invisible|display|\.(?:d-none|sr-only|collapse)|(?:echo|include)\s*[=:]", re.I
)
_LOOSE = 8  # fences that are tried as the beginning of a block, and as its end
# A fence: its margin, or the words before it; its marks; its info string.
_FENCE = re.compile(r"(?:([ \t>]*+)|([^`~]*+))(`{3,}|~{3,})[ \t]*([^`]*)$")
_PYTHON = re.compile(r"(?:i|c|micro|jupyter-)?py(?:thon)?(?:con|-?repl)?[-\d.]*|pypy[\d.]*|sage")


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """A code block.

    Attributes:
        number: its place among the visible blocks, from 1.
        language: the first word of its info string, in lower case.
        source: its text, without the marks of lists and quotes around it.
        fenced: whether it has fences; otherwise it is indented.
    """

    number: int
    language: str
    source: str
    fenced: bool

    @property
    def is_python(self) -> bool:
        """Whether it says that it is Python, or does not say what it is."""
        return not self.language or _PYTHON.fullmatch(self.language) is not None


def visible_blocks(text: str) -> list[CodeBlock]:
    """The code blocks that a reader sees, in the order of the text."""
    seen: list[tuple[str, str, bool]] = []
    page = _Page()
    for token in _tokens(text):
        match token.type:
            case "html_block":
                page.feed(token.content)
            case "inline":
                page.read(token.content)
            case "fence" | "code_block" if token.content.strip() and not page.hides:
                info = token.info.strip()
                if not _HIDING_INFO.search(info):
                    seen.append((_language(info), token.content, token.type == "fence"))
    if page.hides_everything:
        return []
    return [CodeBlock(number, *parts) for number, parts in enumerate(seen, 1)]


def is_inside_code(text: str, pattern: re.Pattern[str]) -> bool:
    """Whether a pattern occurs only in comments, and in code blocks that are programs."""
    inside = 0
    for token in _tokens(text):
        if token.type == "html_block":
            inside += sum(len(pattern.findall(comment)) for comment in _comments(token.content))
        if token.type in ("fence", "code_block"):
            found = len(pattern.findall(token.content))
            if found and parse(token.content).error:
                return False
            inside += found
    return inside == len(pattern.findall(text))


def shown_lines(text: str) -> list[str]:
    """The lines of a text without code blocks; none if something could hide a part of it."""
    if not _is_readable(text):
        return []
    page = _Page()
    lines = _with_plain_lines(text).split("\n")
    for line in lines:
        if line.lstrip(" \t>").startswith("<"):
            page.feed(line)
        else:
            page.read(line)
        if page.hides:
            return []
    return lines


def _comments(html: str) -> Iterator[str]:
    start = html.find("<!--")
    while start >= 0 and (end := html.find("-->", start)) >= 0:
        yield html[start:end]
        start = html.find("<!--", end)


def loose_blocks(text: str) -> Iterator[CodeBlock]:
    """What stands between two lines of fences, wherever they stand.

    CommonMark sees another block, or none, if a fence in a list is not indented enough, if it
    follows a tag without a blank line, or if a string of the program contains a fence. A reader
    still sees the text, if nothing before it could hide it. For a line of a fence, each later one
    may be its end, from the nearest.
    """
    if not _is_readable(text):
        return
    lines = _with_plain_lines(text).split("\n")
    page = _Page()
    marks: list[tuple[int, re.Match[str]]] = []
    hidden: set[int] = set()
    for number, line in enumerate(lines):
        fence = _FENCE.match(line)
        words = line if fence is None else fence[2] or ""
        if words.lstrip(" \t>").startswith("<"):
            page.feed(words)
        else:
            page.read(words)
        if fence is not None and (not words or fence[4].strip()):
            marks.append((number, fence))
            if page.hides or _HIDING_INFO.search(fence[4]):
                hidden.add(number)
    for place, (first, fence) in reversed([*enumerate(marks)][-_LOOSE:]):
        if first in hidden or page.hides_everything:
            continue
        ends = [
            end
            for end, other in marks[place + 1 :]
            if not other[4].strip() and other[3].startswith(fence[3])
        ]
        margin = fence[1] if ">" in (fence[1] or "") else ""
        for end in [*ends[:_LOOSE], len(lines)]:
            body = [line.removeprefix(margin) for line in lines[first + 1 : end]]
            source = "".join(f"{line}\n" for line in body)
            yield CodeBlock(place + 1, _language(fence[4].strip()), source, True)


def _is_readable(text: str) -> bool:
    lines = text.count("\n") + text.count("\r")
    if len(text) > _LARGEST or lines > _LINES:
        return False
    # The parser looks at all later lines at the beginning of each quote: they may continue it.
    return lines * sum(1 for _ in _QUOTE.finditer(text)) <= _QUOTED


def _tokens(text: str) -> Sequence[Token]:
    return _markdown().parse(_with_plain_lines(text), {}) if _is_readable(text) else ()


@cache
def _markdown() -> MarkdownIt:
    from markdown_it import MarkdownIt  # it takes a while

    return MarkdownIt("commonmark").disable(["normalize", "inline"])


def _with_plain_lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _language(info: str) -> str:
    """The language of an info string: of "python title=x", "{.python}" and "python:a.py"."""
    words = re.split(r"[\s,:;{}()\[\]]+", info.lower().lstrip("{.( "), maxsplit=1)
    return words[0].lstrip(".")


_NAME = r"[A-Za-z][A-Za-z0-9-]*+"
_VALUE = r"""(?:[^\s"'=<>`]++|'[^']*+'|"[^"]*+")"""
_ATTRIBUTE = rf"\s++[A-Za-z_:][\w:.-]*+(?:\s*+=\s*+{_VALUE})?+"
_TAG = re.compile(rf"</{_NAME}\s*+>|<{_NAME}(?:{_ATTRIBUTE})*+\s*+/?>")
_INLINE = re.compile(r"\\[!-/:-@\[-`{-~]|`+|<!--|<")


def _inline_tags(text: str) -> Iterator[str]:
    """The HTML tags in a paragraph, and a comment that it opens; in code spans they are text."""
    runs: dict[int, list[int]] = {}
    for run in re.finditer("`+", text):
        runs.setdefault(len(run[0]), []).append(run.start())
    place = 0
    while (mark := _INLINE.search(text, place)) is not None:
        place = mark.end()
        if mark[0].startswith("`"):
            same = runs.get(len(mark[0]), [])
            later = bisect.bisect_left(same, place)
            if later < len(same):
                place = same[later] + len(mark[0])
        elif mark[0] == "<!--":
            end = text.find("-->", mark.start() + 2)
            if end < 0:
                yield "<!--"  # a browser shows it as text, but a reader of the text skips it
                return
            place = end
        elif mark[0] == "<" and (tag := _TAG.match(text, mark.start())) is not None:
            yield tag[0]
            place = tag.end()


_TITLE = re.compile(r"""\[[^\]\n]+\]:[ \t]*\S+\s+(["'(])[^"')]*+\Z""")  # unfinished, of a link
_OPENING = re.compile(r"<(/?)([A-Za-z][^\s/>]*)")
_REST = re.compile(r"""(?:[^>"']++|"[^"]*+"|'[^']*+')*+>""")
_ATTRIBUTE_NAME = re.compile(r"""([^\s"'>/=]+)(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'>]+))?""")


class _Page:
    """What is open at a place of the HTML page, after all HTML before it.

    Attributes:
        hides_everything: whether the page has an element that could hide any part of it.
    """

    def __init__(self) -> None:
        self.hides_everything = False
        self._is_cut = False  # after an unfinished tag
        self._until = ""  # a pattern: the end of a comment, or of an element of raw text
        self._open: list[str] = []  # the first element hides; the others are inside it

    @property
    def hides(self) -> bool:
        """Whether what follows is hidden."""
        return bool(self._until or self._open or self._is_cut or self.hides_everything)

    def read(self, paragraph: str) -> None:
        """Read the text of a paragraph: its tags, and the beginnings and ends of what is hidden.

        A comment and a title of a link that do not end in their paragraph are text for a browser.
        But a reader of the text does not take what is inside for an answer.
        """
        if self._until:
            self.feed(paragraph)
        elif (title := _TITLE.match(paragraph)) is not None:
            self._until = re.escape({"(": ")"}.get(title[1], title[1]))
        elif "<" in paragraph:
            for tag in _inline_tags(paragraph):
                self.feed(tag)

    def feed(self, html: str) -> None:
        """Read the next piece of HTML."""
        place = 0
        while not self.hides_everything and not self._is_cut:
            if self._until:
                end = re.compile(self._until, re.IGNORECASE).search(html, place)
                if end is None:
                    return
                place = end.end()
                self._until = ""
            place = html.find("<", place)
            if place < 0:
                return
            if html.startswith("<!--", place):
                self._until = "-->"
                place += 2  # `<!-->` is a whole comment
            elif html.startswith(("<!", "<?"), place):
                self._until = ">"
            elif (tag := _OPENING.match(html, place)) is None:
                place += 1
            elif (rest := _REST.match(html, tag.end())) is None:
                self._is_cut = True
            else:
                self._element(tag[2].lower(), rest[0][:-1], closes=bool(tag[1]))
                place = rest.end()

    def _element(self, name: str, attributes: str, *, closes: bool) -> None:
        if closes:
            if self._open and self._open[-1] == name:
                self._open.pop()
            return
        names = {attribute[1].lower() for attribute in _ATTRIBUTE_NAME.finditer(attributes)}
        if name in _EVERYWHERE or any(each.startswith("on") for each in names):  # a script
            self.hides_everything = True
        hiding = name in _NOT_SHOWN or not names <= _HARMLESS
        if name not in _VOID and (self._open or hiding):
            self._open.append(name)
            if name in _RAW:
                self._until = f"(?=</{name})"
