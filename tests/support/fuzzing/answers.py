"""Answers of chat models to programming problems: programs, right and wrong, in many forms.

In forms with a second program that does not count (a draft, a hidden block), that one is wrong in a
right answer, and right in a wrong one.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

PROSE = "Write a program for this: twice the number."


@dataclass(frozen=True)
class Task:
    """A problem, and a program for it with a place `{n}` for the factor: 2 is right, 3 is wrong.

    Attributes:
        start: the beginning of a program, as a prompt.
        body: what continues it; empty if the problem has no such prompt.
    """

    name: str
    program: str
    entry_point: str = "f"
    start: str = ""
    body: str = ""

    def check(self, prompt: str) -> dict[str, Any]:
        """The check of its answers."""
        if not self.entry_point:
            tests = [{"input": f"{n}\n", "output": f"{2 * n}\n"} for n in (1, 5)]
            return {"kind": "stdin", "tests": tests, "prompt": prompt}
        calls = [{"args": [n], "expected": 2 * n} for n in (1, 5)]
        named = {"kind": "function", "entry_point": self.entry_point}
        return {**named, "tests": calls, "prompt": prompt}


_DOCUMENTED = '''def f(x):
    """Multiply.

    ```python
    f(1)
    ```

    <!-- not hidden: </think> is only text -->
    """
    return {n} * x
'''
TASKS = (
    Task("function", "def f(x):\n    return {n} * x\n"),
    Task(
        "documented start",
        "def f(x):\n    y = x\n    return {n} * y\n",
        start='def f(x):\n    """Twice the number."""\n',
        body="    y = x\n    return {n} * y\n",
    ),
    Task(
        "bare start",
        "def f(x):\n    if x:\n        return {n} * x\n    return 0\n",
        start="def f(x):\n",
        body="    if x:\n        return {n} * x\n    return 0\n",
    ),
    Task(
        "start with an import and a helper",
        "def f(xs: List[int]) -> int:\n    return times(xs, {n})\n",
        start=(
            "from typing import List\n\n\ndef times(x, n):\n    return x * n\n\n\n"
            'def f(x: List[int]) -> int:\n    """Use times."""\n'
        ),
        body="    return times(x, {n})\n",
    ),
    Task("lambda", "f = lambda x: {n} * x\n"),
    Task("method", "class Solution:\n    def f(self, x):\n        return {n} * x\n"),
    Task(
        "import", "from operator import mul\nfrom functools import partial as p\nf = p(mul, {n})\n"
    ),
    Task("condition", "if True:\n    def f(x):\n        return {n} * x\nelse:\n    f = None\n"),
    Task("documented", _DOCUMENTED),
    Task(
        "with a fence",
        "def f(x):\n    s = '''\n```\ncode\n```\n'''\n    return {n} * x if s else 0\n",
    ),
    Task("with tags", "def f(x):\n    s = '<think></think>'\n    return {n} * x if s else 0\n"),
    Task("input", "n = int(input())\nprint({n} * n)\n", ""),
    Task(
        "input in a function",
        "import sys\n\ndef main():\n    n = int(sys.stdin.read())\n    print({n} * n)\n\nmain()\n",
        "",
        start="import sys\n\ndef main():\n",
        body="    n = int(sys.stdin.read())\n    print({n} * n)\n\nmain()\n",
    ),
)


def fence(program: str, info: str = "python", marks: str = "```") -> str:
    """A program between fences."""
    return f"{marks}{info}\n{program}{marks}\n"


def _quoted(text: str) -> str:
    return textwrap.indent(text, "> ", lambda line: True)


def _session(program: str) -> str:
    lines = [f"... {line}" for line in program.splitlines()]
    return f">>> {lines[0][4:]}\n" + "\n".join(lines[1:]) + "\n... \n"


def _hidden(before: str, after: str) -> Callable[[str, str], str]:
    return lambda p, q: f"{fence(p)}\n{before}\n\n{fence(q)}\n{after}\n"


# Each form of a complete program `p`; `q` is the program that must not count.
FORMS: dict[str, Callable[[str, str], str]] = {
    "plain": lambda p, q: p,
    "byte order mark": lambda p, q: f"\ufeff{p}",
    "windows lines": lambda p, q: p.replace("\n", "\r\n"),
    "comment before": lambda p, q: f"# The solution\n\n{p}",
    "fence": lambda p, q: fence(p),
    "fence in windows lines": lambda p, q: f"Sure:\n\n{fence(p)}\nDone.".replace("\n", "\r\n"),
    "fence without language": lambda p, q: fence(p, ""),
    "tag py": lambda p, q: fence(p, "py"),
    "tag Python": lambda p, q: fence(p, "Python"),
    "tag python3": lambda p, q: fence(p, " python3"),
    "tag Python3.11": lambda p, q: fence(p, "Python3.11"),
    "tag ipython": lambda p, q: fence(p, "ipython"),
    "tag with a title": lambda p, q: fence(p, 'python title="solution.py"'),
    "tag with a file": lambda p, q: fence(p, "python:solution.py"),
    "tag in braces": lambda p, q: fence(p, "{.python}"),
    "tag of another language": lambda p, q: fence(p, "code"),
    "tildes": lambda p, q: fence(p, "python", "~~~"),
    "four marks": lambda p, q: fence(p, "python", "````"),
    "prose around": lambda p, q: f"Sure! Here's it:\n\n{fence(p)}\nIt's O(1). `f(1)` is fine.\n",
    "prose without blank lines": lambda p, q: f"Here:\n{fence(p)}That's it.",
    "no end of the fence": lambda p, q: f"Here:\n\n```python\n{p}",
    "only the end of a fence": lambda p, q: f"{p}```\n\nThat's it.\n",
    "prose around and no fence": lambda p, q: f"Sure, here it is:\n\n{p}\nIt's linear.\n",
    "fence after words": lambda p, q: f"Here it is: {fence(p)}\nDone.\n",
    "end of the fence in the last line": lambda p, q: f"Here:\n\n```python\n{p.rstrip()}```\n",
    "headings": lambda p, q: f"## Plan\n\n1. a\n2. b\n\n## Code\n\n{fence(p)}\n---\n*Note*\n",
    "in a list": lambda p, q: f"1. Code:\n\n{textwrap.indent(fence(p), '   ')}\n2. Done\n",
    "in a list without indentation": lambda p, q: f"1. Code:\n   ```python\n{p}   ```\n2. Done\n",
    "in a nested list": lambda p, q: f"- a\n  - b\n\n{textwrap.indent(fence(p), '    ')}\n",
    "in a quote": lambda p, q: f"You said:\n\n{_quoted(fence(p))}\nYes.\n",
    "indented": lambda p, q: f"Use this:\n\n{textwrap.indent(p, '    ')}\nIt works.\n",
    "indented inside of a fence": lambda p, q: fence(textwrap.indent(p, "    ")),
    "fence inside of Markdown": lambda p, q: f"````markdown\n# Answer\n\n{fence(p)}````\n",
    "session": lambda p, q: fence(_session(p), "pycon"),
    "thoughts": lambda p, q: f"<think>\nHm, twice.\n</think>\n\n{fence(p)}",
    "thoughts and no fence": lambda p, q: f"<think>Hm.</think>\n{p}",
    "thoughts with a draft": lambda p, q: f"<think>\n{fence(q)}Wait.\n</think>\n\n{fence(p)}",
    "thoughts with an open fence": lambda p, q: f"<think>\n```python\n{q}</think>\n{fence(p)}",
    "only the end of thoughts": lambda p, q: f"So {fence(q)} no.\n</think>\nHere:\n{fence(p)}",
    "thinking": lambda p, q: f"<thinking>\n\n{fence(q)}\n</thinking>\n\n{fence(p)}",
    "answer": lambda p, q: f"<think>x</think>\n<answer>\n{fence(p)}</answer>",
    "answer without fence": lambda p, q: f"<answer>\n{p}</answer>\n",
    "brackets": lambda p, q: f"[PYTHON]\n{p}[/PYTHON]\n",
    "end of turn": lambda p, q: f"{fence(p)}<|im_end|>",
    "end of text": lambda p, q: f"{p}<|endoftext|>\n",
    "draft first": lambda p, q: f"First try:\n{fence(q)}\nBetter:\n{fence(p)}",
    "use after it": lambda p, q: f"{fence(p)}\nUse:\n{fence('print(f(2))' + chr(10))}",
    "tests after it": lambda p, q: fence(p) + fence("from solution import f\nassert f(1)\n"),
    "output after it": lambda p, q: f"{fence(p)}\nOutput:\n{fence('4' + chr(10), '')}",
    "shell after it": lambda p, q: f"{fence(p)}\n{fence('python solution.py' + chr(10), 'bash')}",
    "shell before it": lambda p, q: f"{fence('pip install x' + chr(10), 'sh')}\n{fence(p)}",
    "in details": lambda p, q: f"<details>\n<summary>Code</summary>\n\n{fence(p)}\n</details>\n",
    "generic types in prose": lambda p, q: f"Takes a List<int>, x<y.\n\n{fence(p)}",
    "hidden in a comment": _hidden("<!--", "-->"),
    "hidden in details": _hidden("<details hidden>", "</details>"),
    "hidden by a style": _hidden('<div style="display: none">', "</div>"),
    "hidden in a template": _hidden("<template>", "</template>"),
    "hidden in an attribute": _hidden('<div title="', '">'),
    "hidden by a class": _hidden('<div class="d-none">', "</div>"),
    "hidden info": lambda p, q: fence(p) + fence(q, "python {.hidden}"),
    "hidden before it": lambda p, q: f"<!--\n{fence(q)}-->\n\n{fence(p)}",
    "hidden in thoughts after it": lambda p, q: f"{fence(p)}\n<think>\n\n{fence(q)}\n",
    "hidden in a link": lambda p, q: f"{fence(p)}\n[//]: # (\n{fence(q)})\n",
}
CONTINUED: dict[str, Callable[[str], str]] = {
    "body": lambda b: b,
    "body after a blank line": lambda b: f"\n{b}",
    "body without white space around": lambda b: b.strip(),
    "body and a comment": lambda b: f"    # twice\n{b}\n\n# done\n",
    "body in a fence": lambda b: f"Here is the body:\n\n{fence(b)}",
    "body in a fence, without indentation": lambda b: fence(textwrap.dedent(b)),
    "body and the end of a block": lambda b: f"{b}```\n\nIt's linear.\n",
    "thoughts and the body": lambda b: f"<think>\nHm.\n</think>\n{b}",
}


# Right, but refused: a fence or a comment in the program's string looks like one of the text.
REFUSED = (
    "only the end of a fence / with a fence",
    "prose around and no fence / with a fence",
    "prose around and no fence / documented /",
)


@dataclass(frozen=True)
class Answer:
    """An answer to a problem, and whether it is right."""

    name: str
    check: dict[str, Any]
    text: str
    is_right: bool


def answers(seed: int, n: int) -> list[Answer]:
    """Different answers: every form in turn, with tasks and prompts by chance."""
    random = Random(seed)
    everything = [*_all_answers()]
    random.shuffle(everything)
    by_form: dict[str, list[Answer]] = {}
    for answer in everything:
        by_form.setdefault(answer.name.partition(" / ")[0], []).append(answer)
    chosen: list[Answer] = []
    while len(chosen) < n and any(by_form.values()):
        for remaining in by_form.values():
            if remaining and len(chosen) < n:
                chosen.append(remaining.pop())
    return chosen


def _all_answers() -> Iterator[Answer]:
    for task in TASKS:
        for is_right in (True, False):
            program, other = (
                task.program.format(n=2 if is_right is r else 3) for r in (True, False)
            )
            needed = "List[" in task.program
            prompts = [task.start] if needed else ["", PROSE, *([task.start] if task.start else [])]
            for form, write in FORMS.items():
                for prompt in prompts:
                    kind = "no" if not prompt else "a prose" if prompt == PROSE else "a code"
                    name = f"{form} / {task.name} / {kind} prompt"
                    yield Answer(name, task.check(prompt), write(program, other), is_right)
            for form, continued in CONTINUED.items() if task.body else ():
                body = task.body.format(n=2 if is_right else 3)
                name = f"{form} / {task.name} / a code prompt"
                yield Answer(name, task.check(task.start), continued(body), is_right)
