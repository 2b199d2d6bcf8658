"""Reads the program out of a candidate's text.

A text can be read in several ways. They are tried in this order, and the first that defines the
entry point counts. If the check has none, the first that reads its input counts.

1. The whole text.
2. The visible blocks with fences, the last one first: those of Python or without a language, then
   those of other languages.
3. The text as the continuation of the prompt.
4. The visible blocks without fences, blocks inside other blocks, fences that are indented wrongly,
   and the text before the end of a block that began in the prompt.
5. A block with fences as the continuation of the prompt.
6. Lines of the text between lines of prose, if it has no fences and hides nothing.

The thoughts of a model are left out first, unless the tag that ends them is part of the program. If
no way of reading certainly defines the entry point, one that may define it counts. So a text is
refuted only if it cannot pass in any of these ways.

A complete program gets the prompt in front if it uses a name that only the prompt defines.
"""

from __future__ import annotations

import functools
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from .blocks import THOUGHTS, CodeBlock, is_inside_code, loose_blocks, shown_lines, visible_blocks
from .ranking import Rank, rank
from .starting import continuations, with_prompt
from .syntax import LARGEST, Program, parse

_KEPT = 1 << 13  # characters of the longest text whose tree is cached; a tree is 500 times larger
_ENDS = 4  # ends of thoughts that are looked at, of the first and of the last
_BODIES = 4  # blocks that are read as continuations of the prompt, from the last
_PARSED = 2 * LARGEST  # characters of blocks that are parsed, from the last block
_END_OF_THOUGHTS = re.compile(rf"</(?:{'|'.join(THOUGHTS)})>", re.IGNORECASE)
_WRAPPERS = "answer|code|final|final_answer|output|python|response|result|solution"
_WRAPPER = re.compile(rf"\s*[<\[]({_WRAPPERS})[>\]]", re.IGNORECASE)
_END_TOKENS = re.compile(r"(?:(?:<\|[^<>|\s]{1,40}\|>|</s>|<end_of_turn>)\s*)+\Z")
_INDENTED = re.compile(r"(?:[ \t\f]*\n)*+[ \t]+[^\s#]")
_END_OF_BLOCK = re.compile(r"^ {0,3}(?:```+|~~~+)[ \t]*\r?$", re.MULTILINE)
_BEGINNINGS = 8  # lines that are tried as the beginning of a program among prose
_BEGINNING = re.compile(r"(?:async|def|class|import|from|if|for|while|try|with)\b|@|print\(|\w+ *=")
_PROSE = re.compile(
    r"\s*|(?:[-*#>]+ +|\d+[.)] +)?\**[A-Z][\w'’]*(?:[.:!?]?\**|,?(?: [^\s=]++)++)\s*"
)
_CODE_SPAN = re.compile(r"(`+)([^`\r\n]++)\1")
_SESSION = re.compile(r"(?:>>>|\.\.\.)(?: |\Z)")
_MARKDOWN = ("", "md", "markdown", "text", "txt", "plaintext")


def find(text: str, prompt: str = "", entry_point: str = "") -> Program:
    """The program in a model's text; `entry_point` is empty if the program is run as a whole."""
    small = len(prompt) + len(text) <= _KEPT
    return (_find_once if small else _find)(text, prompt, entry_point)


def _find(text: str, prompt: str, entry_point: str) -> Program:
    fallback = None
    for answer, tags in _answers(text, prompt):
        program, reached = _best(_readings(_bare(answer), prompt), entry_point, tags)
        if program is not None and reached <= Rank.MAY:
            return replace(with_prompt(program, prompt), compiles=True)
        fallback = fallback or program
    return fallback or parse("")


_find_once = functools.lru_cache(maxsize=32)(_find)  # used for the key, and again for the run


def _best(readings: Iterable[Program], entry_point: str, tags: int) -> tuple[Program | None, Rank]:
    """The first program of the best rank, of those that contain this many ends of thoughts."""
    best = None
    best_rank = Rank.WRONG
    for program in readings:
        if tags and len(_END_OF_THOUGHTS.findall(program.source)) < tags:
            continue
        reached = rank(program, entry_point)
        if best is None or reached < best_rank:
            best = program
            best_rank = reached
        if reached is Rank.DEFINES:
            break
    return best, best_rank


def _answers(text: str, prompt: str) -> Iterator[tuple[str, int]]:
    """What follows the thoughts, with the number of tags that its program must contain.

    The first tag counts after which all others are inside of programs. If nothing can be read after
    it, another tag may count, if the program that follows contains the later ones.
    """
    ends = [end.end() for end in _END_OF_THOUGHTS.finditer(text)]
    if not ends:
        yield text, 0
        return
    starts = sorted({0, *ends[:_ENDS], *ends[-_ENDS:]})
    left = 2 * _PARSED
    chosen = ends[-1]
    for start in starts:
        rest = text[start:]
        left -= len(prompt) + len(rest)
        if left < 0:
            break
        is_program = parse(rest).tree is not None or parse(prompt + rest).tree is not None
        if is_program or is_inside_code(rest, _END_OF_THOUGHTS):
            chosen = start
            break
    yield text[chosen:], 0
    for start in reversed(starts):
        left -= len(prompt) + len(text) - start
        if start != chosen and left >= 0:
            yield text[start:], sum(end > start for end in ends)


def _bare(text: str) -> str:
    """A text without the tokens that end it, and without a tag such as `<answer>` around it."""
    text = text.removeprefix("\ufeff")
    if (tokens := _END_TOKENS.search(text[-200:])) is not None:
        text = text[: max(len(text) - 200, 0) + tokens.start()]
    if (span := _CODE_SPAN.fullmatch(text.strip())) is not None:
        return span[2]
    if (wrapper := _WRAPPER.match(text)) is not None:
        inside = text[wrapper.end() :].rstrip()
        end = re.compile(rf"[<\[]/{wrapper[1]}[>\]]\Z", re.IGNORECASE).search(inside[-40:])
        if end is not None:
            return inside[: len(inside) - len(end[0])]
    return text


def _readings(text: str, prompt: str) -> Iterator[Program]:
    """All ways to read a text without thoughts, in their order.

    If all are wrong, the error of the first is shown. So a whole text that is wrong comes last.
    """
    whole = _whole(text)
    if not whole.error:
        yield whole
    is_fenced = "```" in text or "~~~" in text
    blocks = visible_blocks(text) if is_fenced else []
    fenced = [block for block in blocks if block.fenced]
    yield from _programs([block for block in fenced if block.is_python], len(blocks))
    yield from _programs([block for block in fenced if not block.is_python], len(blocks))
    for source in continuations(prompt, text):
        yield parse(source, "the prompt and the text")
    if not is_fenced:
        blocks = visible_blocks(text)
    yield from _programs([block for block in blocks if not block.fenced], len(blocks))
    yield from _programs(list(_inner(blocks)), len(blocks))
    if is_fenced:
        yield from _loose_programs(text)
        if (end := _END_OF_BLOCK.search(text)) is not None and text[: end.start()].strip():
            head = text[: end.start()]
            yield parse(head, "the text before the first fence")
            for source in continuations(prompt, head):
                yield parse(source, "the prompt and the text before the first fence")
    of_python = [block for block in fenced if block.is_python]
    for block in reversed(of_python[-_BODIES:]):
        for source in continuations(prompt, block.source):
            yield parse(source, f"the prompt and block {block.number} of {len(blocks)}")
    if not is_fenced and whole.error and not _INDENTED.match(text):
        yield from _among_prose(text)
    if whole.error:
        yield whole


def _whole(text: str) -> Program:
    program = parse(text, "the whole text")
    if program.tree is None and not program.error and _INDENTED.match(text):
        return replace(program, error="line 1: unexpected indent")
    return program


def _among_prose(text: str) -> Iterator[Program]:
    """A program between lines of prose: from a line that begins one, up to the first error.

    All other lines must be prose. Otherwise a program with an error would be cut before it.
    """
    lines = shown_lines(text)
    starts = [number for number, line in enumerate(lines) if _BEGINNING.match(line)]
    left = _PARSED
    for start in starts[:_BEGINNINGS]:
        end = len(lines)
        while end > start and left >= 0:
            source = "\n".join(lines[start:end]).rstrip()
            program = parse(f"{source}\n", f"lines {start + 1} to {end}")
            left -= len(program.source)
            if not program.error:
                if all(map(_PROSE.fullmatch, [*lines[:start], *lines[end:]])):
                    yield program
                return
            end = start + min(program.error_line - 1, end - start - 1)


def _programs(blocks: Sequence[CodeBlock], total: int) -> Iterator[Program]:
    """The programs in blocks, the last one first. What exceeds the limit is not parsed."""
    left = _PARSED
    for block in reversed(blocks):
        read = f"block {block.number} of {total}"
        left -= len(block.source)
        yield _program(block.source, read) if left >= 0 else Program(block.source, read=read)


def _loose_programs(text: str) -> Iterator[Program]:
    left = _PARSED
    for block in loose_blocks(text):
        left -= len(block.source)
        if left < 0:
            return
        if block.source.strip():
            yield _program(block.source, f"what follows fence {block.number}")


def _program(source: str, read: str) -> Program:
    """The program of a block: as it is, or without its indentation or the marks of a session."""
    program = parse(source, read)
    if program.error and source.rstrip().endswith(("```", "~~~")):  # the end, in the last line
        program = _first_right(program, parse(f"{source.rstrip().rstrip('`~')}\n", read))
    if program.error and source[:1] in (" ", "\t"):
        program = _first_right(program, parse(textwrap.dedent(source), read))
    if program.error and source.lstrip().startswith(">>>"):
        lines = textwrap.dedent(source).split("\n")
        entered = [line[4:] for line in lines if _SESSION.match(line)]
        program = _first_right(program, parse("\n".join(entered), read))
    return program


def _first_right(one: Program, other: Program) -> Program:
    return one if other.error else other


def _inner(blocks: Sequence[CodeBlock]) -> Iterator[CodeBlock]:
    """The blocks inside indented blocks, and inside blocks of Markdown."""
    for block in blocks:
        has_fence = "```" in block.source or "~~~" in block.source
        if has_fence and block.language in _MARKDOWN:
            for inner in visible_blocks(block.source):
                if inner.fenced and inner.is_python:
                    yield replace(inner, number=block.number)
