"""MultiPL-E: HumanEval and MBPP in other languages, as checks of kind "run".

A candidate continues the prompt, and the tests follow it in the same program. So the tests run in
the candidate's process, and it could end that process early. A line that the tests print at their
end shows that they were reached; it differs by problem, and no model sees it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ...core.errors import UsageError
from ...text import checksum
from ..protocols import Problem
from .prompts import filled
from .records import CODE_PROMPT, Converted, NotConverted, Record, Wanted

_LANGUAGES: Mapping[str, str] = {
    "cpp": "cpp",
    "java": "java",
    "js": "javascript",
    "javascript": "javascript",
    "ts": "typescript",
    "typescript": "typescript",
    "rs": "rust",
    "rust": "rust",
}
_TUPLES = re.compile(r"\b(?:Unit|Pair|Triplet|Quartet|Quintet|Sextet|Septet|Octet)\b")
_TUPLE_IMPORT = re.compile(r"^import org\.javatuples\.\*;\n", re.MULTILINE)
_JAVA_ASSERT = re.compile(r"^(\s*)assert\((.*)\);[ \t]*$", re.MULTILINE)
_MAIN = re.compile(r"^int main\(\)", re.MULTILINE)


def multipl_e(record: Record, wanted: Wanted) -> Converted:
    """A problem of MultiPL-E."""
    written = record.text("language")
    language = _LANGUAGES.get(written)
    if language is None:
        raise NotConverted(f"language {written}")
    prompt = record.text("prompt")
    tests = record.text("tests")
    mark = f"tests reached {checksum(tests)[:16]}"
    if language == "java":
        prompt = _without_tuples(prompt, tests)
    check = {
        "kind": "run",
        "language": language,
        "prompt": prompt,
        "suffix": _MARKED[language](tests, mark),
        "tests": [{"input": "", "output": f"{mark}\n"}],
    }
    question = prompt.rstrip()
    name = record.name("name", "task_id")
    text = filled(wanted.prompt or CODE_PROMPT, question, question)
    return Converted(Problem(f"{name}-{written}", text, check, question, question))


def _without_tuples(prompt: str, tests: str) -> str:
    """A Java prompt without the import of a library that it does not use."""
    bare = _TUPLE_IMPORT.sub("", prompt)
    if _TUPLES.search(bare) or _TUPLES.search(tests):
        raise NotConverted("needs the Java library org.javatuples")
    return bare


def _before_last_brace(tests: str, line: str, braces: int = 1) -> str:
    """The tests with a line before the last closing brace, or before an earlier one."""
    at = len(tests)
    for _ in range(braces):
        at = tests.rfind("}", 0, at)
        if at < 0:
            raise UsageError("field tests does not end with a closing brace")
    return f"{tests[:at]}{line}\n{tests[at:]}"


def _marked_cpp(tests: str, mark: str) -> str:
    # A candidate may have switched asserts off; including the header again switches them on.
    again = "#undef NDEBUG\n#include <assert.h>\n#include <stdio.h>\nint main()"
    if not _MAIN.search(tests):
        raise UsageError("field tests has no line int main()")
    return _before_last_brace(_MAIN.sub(again, tests, count=1), f'    puts("{mark}");')


def _marked_java(tests: str, mark: str) -> str:
    # The JVM skips asserts unless it is told not to.
    thrown = r"\1if (!(\2)) throw new AssertionError();"
    loud = _JAVA_ASSERT.sub(thrown, tests)
    if re.search(r"\bassert\b", loud):
        raise NotConverted("an assert over several lines")
    return _before_last_brace(loud, f'        System.out.println("{mark}");', braces=2)


def _marked_rust(tests: str, mark: str) -> str:
    return _before_last_brace(tests, f'    println!("{mark}");')


def _marked_javascript(tests: str, mark: str) -> str:
    return f'{tests.rstrip()}\nconsole.log("{mark}");\n'


_MARKED: Mapping[str, Callable[[str, str], Any]] = {
    "cpp": _marked_cpp,
    "java": _marked_java,
    "rust": _marked_rust,
    "javascript": _marked_javascript,
    "typescript": _marked_javascript,
}
