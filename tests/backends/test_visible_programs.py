"""Of a text with several programs, the one counts that a reader takes for the answer."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.backends.verifiers.programs.blocks import visible_blocks
from grv.backends.verifiers.programs.reading import find

SEEN = "def f(x):\n    return x\n"
HIDDEN = "def f(x):\n    return 'hidden'\n"


def fence(program: str, info: str = "python", marks: str = "```") -> str:
    return f"{marks}{info}\n{program}{marks}\n"


def source(text: str) -> str:
    """The program in a text; nothing if it is refuted."""
    program = find(text, "", "f")
    return "" if program.error else program.source


# What begins and what ends a part that is not shown.
HIDING = {
    "a comment": ("<!--", "-->"),
    "a comment in a comment": ("<!-- <!-- -->\n<!--", "-->"),
    "a comment with strange ends": ("<!-- -> --!>", "-->"),
    "a comment in an element": ("<div>\n<!--\n</div>", "<p>\n-->\n</p>"),
    "a comment after words": ("words <!--", "--> words"),
    "details": ("<details hidden>", "</details>"),
    "upper case": ("<DETAILS HIDDEN>", "</DETAILS>"),
    "a style": ("<div style='display:none'>", "</div>"),
    "a class": ("<div class=d-none>", "</div>"),
    "aria": ('<div aria-hidden="true">', "</div>"),
    "a popover": ("<div popover>", "</div>"),
    "a font": ("<font color=white size=0>", "</font>"),
    "words with a span": ("words <span hidden> more", "</span>"),
    "a tag in two lines": ("<div\nhidden>", "</div>"),
    "an element inside": ("<div hidden><div></div>", "</div>"),
    "a table inside": ("<div hidden><table></div>", "</table>"),
    "an end that is none": ("<div hidden/>", "</div>"),
    "a template": ("<template>", "</template>"),
    "a dialog": ("<dialog>", "</dialog>"),
    "a text area": ("<textarea>", "</textarea>"),
    "a drawing": ("<svg>", "</svg>"),
    "an option": ("<select><option>", "</option></select>"),
    "an attribute": ('<div title="', '">'),
    "an instruction": ("<?php", "?>"),
    "a section of data": ("<![CDATA[", "]]>"),
    "a link": ("[//]: # (", ")"),
    "another link": ('[a]: b "', '"'),
    "thoughts": ("<think>", ""),
    "other thoughts": ("<reasoning>", ""),
}


@pytest.mark.parametrize(("begin", "end"), HIDING.values(), ids=HIDING)
def test_a_program_that_is_not_shown_does_not_count(begin: str, end: str) -> None:
    for hidden in (
        fence(HIDDEN),
        fence(HIDDEN, "python", "~~~"),
        "    def f(x):\n        return 'hidden'\n",
    ):
        assert source(f"{fence(SEEN)}\n{begin}\n\n{hidden}\n{end}\n") == SEEN
        assert "hidden" not in source(f"I do not know.\n\n{begin}\n\n{hidden}\n{end}\n")
        after = source(f"{begin}\n\n{hidden}\n{end}\n\n{fence(SEEN)}")
        assert after in (SEEN, "")  # where a browser recovers from an error, nothing is certain


@pytest.mark.parametrize(
    "element",
    [
        "<style>pre {}</style>",
        "<script>1</script>",
        "<link rel=a>",
        "<img src=x onerror='hide()'>",
        "words <b ONCLICK=hide()>more</b>",
    ],
)
def test_nothing_is_certainly_shown_beside_styles_and_scripts(element: str) -> None:
    assert "return" not in source(f"{fence(HIDDEN)}\n{element}\n")


@pytest.mark.parametrize(
    "info",
    [
        "python hidden",
        "{.python .hidden}",
        "{.python .d-none}",
        "{python, echo=FALSE}",
        'python style="display:none"',
    ],
)
def test_a_block_whose_info_string_asks_for_hiding_does_not_count(info: str) -> None:
    assert source(fence(SEEN) + fence(HIDDEN, info)) == SEEN
    assert "hidden" not in source(fence(HIDDEN, info))


@pytest.mark.parametrize(
    "around",
    [
        "<details>\n<summary>Code</summary>\n\n{}\n</details>",
        "<details open>\n\n{}\n</details>",
        '<p align="center">\n\n{}\n</p>',
        "Takes `<details hidden>` or `<!--`.\n\n{}",
        "Takes a List<int> or \\<div hidden>.\n\n{}",
        "a < b and c > d, x<y.\n\n{}",
        "See [1] and [a](b 'c').\n\n[1]: http://example.org 'title'\n\n{}",
        "<br>\n\n{}\n<hr>\n",
        "<!-- a comment -->\n\n{}",
        "words <!-- a comment --> words\n{}",
    ],
)
def test_a_program_that_is_shown_counts(around: str) -> None:
    assert source(around.format(fence(SEEN))) == SEEN


def test_thoughts_that_never_end_are_no_answer() -> None:
    assert "return" not in source(f"<think>\nPerhaps\n{fence(HIDDEN)}")
    assert "return" not in source(f"<thinking>\n\nPerhaps\n\n{fence(HIDDEN)}")


def test_the_last_visible_block_that_defines_the_function_counts() -> None:
    assert source(fence(HIDDEN) + fence(SEEN)) == SEEN
    assert source(fence(HIDDEN) + "\n> " + fence(SEEN).replace("\n", "\n> ")) == SEEN
    assert source(fence(SEEN) + fence("def f(x:\n")) == SEEN
    read = find(fence("ls\n", "sh") + fence(SEEN) + fence("print(f(1))\n"), "", "f").read
    assert read == "block 2 of 3"


# What follows a definition in another block, and uses it.
USES = [
    "print(f(2))\n",
    "assert f(2) == 2\n",
    "from solution import f\nprint(f(2))\n",
    "from solution import *\nprint(f(2))\n",
    "def test_f():\n    assert f(2) == 2\n",
    "import unittest\nfrom main import f\nclass T(unittest.TestCase): pass\n",
    "with open('a') as f:\n    pass\n",
    "for f in ():\n    pass\n",
    "function f(x) return x end\n",
    "4\n",
]
BINDINGS = [
    "f = lambda x: x\n",
    "f, g = (lambda x: x), 1\n",
    "*_, f = [lambda x: x]\n",
    "f: object = lambda x: x\n",
    "(f := lambda x: x)\n",
    "f = g = lambda x: x\n",
    "def g(x): return x\nf = g\n",
    "class f:\n    def __new__(cls, x): return x\n",
    "import functools\n@functools.cache\ndef f(x): return x\n",
    "try:\n    import nosuch\nexcept ImportError:\n    def f(x): return x\n",
    "if True:\n    def f(x): return x\n",
    "class Solution:\n    def f(self, x): return x\n",
    "class Solution:\n    f = lambda self, x: x\n",
    "async def f(x): return x\n",
]


@pytest.mark.parametrize("binding", BINDINGS)
def test_a_definition_counts_before_what_uses_it(binding: str) -> None:
    for use in USES:
        assert source(fence(binding) + "\nUse it:\n\n" + fence(use)) == binding


@pytest.mark.parametrize(
    "binding",
    [
        "globals()['f'] = lambda x: x\n",
        "exec('def f(x): return x')\n",
        "from operator import neg as f\n",
        "def g():\n    global f\n    f = lambda x: x\ng()\n",
        "import sys\nsetattr(sys.modules[__name__], 'f', abs)\n",
        "match abs:\n    case f: pass\n",
        "def __getattr__(name): return abs\n",
    ],
)
def test_other_bindings_count_before_examples(binding: str) -> None:
    assert source(binding) == binding
    assert source(fence(binding) + fence("print(f(2))\n") + fence("4\n", "")) == binding


@pytest.mark.parametrize("tag", ["python", "Python3.11", "ipython", "{.py}", "python:a.py", "code"])
def test_the_language_of_a_block(tag: str) -> None:
    (block,) = visible_blocks(fence(SEEN, tag))
    assert block.is_python is (tag != "code")


def test_a_program_of_standard_input_counts_before_its_output() -> None:
    program = "print(2 * int(input()))\n"
    after = fence("6\n", "") + fence("YES\n", "") + fence("x = 6\n", "") + fence("ls\n", "sh")
    assert find(fence(program) + after).source == program
    assert find("```\n3\n```\n" + fence(program)).source == program


BOMBS = ["<!--", "<!-- -->", '<a b="', "<a ", "<div hidden>", "<div>\n", "`", "`` ` ", "[a]: x\n"]
BOMBS += ["[a]: x '\n", "> ", "- ", "- a\n", "a\n\n", "</think>", "x=1\n</think>\n", "'''\n```\n"]
BOMBS += [
    "```\n",
    "> - > - ",
    "<|im_end|>",
    "\r",
    ">>> x\n",
    "<textarea>",
    "<x y=z ",
    "    x=1\n\n",
]


@pytest.mark.slow
@pytest.mark.parametrize("size", [60_000, pytest.param(1_000_000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("bomb", BOMBS)
def test_hostile_texts_are_read_within_bounds(bomb: str, size: int) -> None:
    text = (bomb * (size // len(bomb) + 1))[:size]
    started = time.thread_time()
    for whole in (text, f"```python\n{text}", f"<div>\n{text}"):
        find(whole, "def f(x):\n    'Doc.'\n", "f")
    assert time.thread_time() - started < 20


BROKEN = [
    "def f(x):\n    return x\nprint('a\n",
    "def f(x):\n    return x\n\ndef g(:\n",
    "def g(:\n\ndef f(x):\n    return x\n",
    "def f(x):\n    return x\n\nX = [1,\n",
    "def f(x):\n    return x\n  y = 1\n",
]


@pytest.mark.parametrize("program", BROKEN)
def test_a_program_with_an_error_is_not_cut_until_it_has_none(program: str) -> None:
    for before in ("", "Here it is:\n\n"):
        assert source(before + program) == ""
        assert source(before + fence(program)) == ""


def test_a_program_among_prose_counts() -> None:
    assert source(f"Sure, here's the function:\n\n{SEEN}\nIt's linear.\n") == SEEN
    assert source(f"**Solution**\n\n{SEEN}") == SEEN
    assert source(f"<!--\n{SEEN}\n-->\nI do not know.\n") == ""


MARKS = [*BOMBS, "```python\n", "~~~\n", "    ", "-->", "</div>", SEEN, HIDDEN, "\n", " ", "'" * 3]


@given(st.lists(st.sampled_from(MARKS), max_size=12), st.sampled_from(["", "f"]))
def test_any_text_can_be_read(parts: list[str], entry_point: str) -> None:
    """And what is read comes from the text, or from the prompt before it."""
    prompt = "def f(x):\n    'Doc.'\n"
    text = "".join(parts)
    program = find(text, prompt, entry_point)
    assert program.error or program.read or not program.source
    words = set(re.findall(r"\w+", prompt + text)) | {"pass"}
    assert set(re.findall(r"\w+", program.source)) <= words
