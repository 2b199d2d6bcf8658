"""Reads a program in some language out of a candidate's text.

The thoughts of a model are left out first. Then the last visible code block counts that names the
language; or else the last one without a language; or else the last one. A text without a visible
code block is a program as a whole.
"""

from __future__ import annotations

import re

from ..programs.blocks import THOUGHTS, CodeBlock, visible_blocks
from ..programs.syntax import Program

_END_OF_THOUGHTS = re.compile(rf"</(?:{'|'.join(THOUGHTS)})>", re.IGNORECASE)
_FENCE = re.compile(r"```|~~~")
# What code blocks call a language, besides its name.
_NAMES = {
    "c": ("h",),
    "cpp": ("c++", "cc", "cxx", "cplusplus", "hpp"),
    "java": (),
    "javascript": ("js", "node", "mjs", "cjs", "nodejs"),
    "typescript": ("ts", "mts", "cts"),
    "go": ("golang",),
    "rust": ("rs",),
    "python": ("py", "python3"),
}


def find(text: str, language: str) -> Program:
    """The program in a text; `language` is empty if it is unknown."""
    answer = _after_thoughts(text).removeprefix("\ufeff")
    if _FENCE.search(answer) is None:
        return Program(answer, read="")
    blocks = [block for block in visible_blocks(answer) if block.fenced]
    if not blocks:
        return Program(answer, read="")
    names = (language, *_NAMES.get(language, ()))
    named = [block for block in blocks if language and block.language in names]
    plain = [block for block in blocks if not block.language]
    chosen: CodeBlock = (named or plain or blocks)[-1]
    return Program(chosen.source, read=f"block {chosen.number} of {len(blocks)}")


def _after_thoughts(text: str) -> str:
    """What follows the thoughts. A tag that no code follows may belong to the program."""
    ends = [end.end() for end in _END_OF_THOUGHTS.finditer(text)]
    if not ends or not text[ends[-1] :].strip():
        return text
    return text[ends[-1] :]
