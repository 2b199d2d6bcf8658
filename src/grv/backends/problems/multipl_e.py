"""Problems of MultiPL-E: the beginning of a function, and tests that follow its end.

The tests run in the candidate's process and end it if one fails. A program that ends early would
pass by its exit code alone, so that a line is added after the last test, which prints a word.
"""

from __future__ import annotations

import re

from ...core.errors import UsageError
from ...files import shown
from ...text import checksum
from ..protocols import Problem
from .prompts import filled
from .records import CODE_PROMPT, Converted, NotConverted, Record, Wanted

# Our name of a language, and the line that prints a word.
_LANGUAGES = {
    "cpp": ("cpp", '    puts("{}");'),
    "js": ("javascript", 'console.log("{}");'),
    "rs": ("rust", '    println!("{}");'),
    "ts": ("typescript", 'console.log("{}");'),
}
_IN_MAIN = ("cpp", "rs")  # the last test is followed by the end of a function
_NEEDED = {"java": "the library javatuples", "go_test.go": "go test", "go": "go test"}


def multipl_e(record: Record, wanted: Wanted) -> Converted:
    """A problem of MultiPL-E."""
    language = record.text("language")
    if language not in _LANGUAGES:
        needed = f"needs {_NEEDED[language]}" if language in _NEEDED else "no check of kind run"
        raise NotConverted(f"programs in {language}: {needed}")
    name = record.text("name")
    code = record.text("prompt")
    tests = record.text("tests")
    stop = record.data.get("stop_tokens", [])
    if not isinstance(stop, list) or not all(isinstance(text, str) and text for text in stop):
        raise UsageError(f"field stop_tokens must be a list of texts, not {shown(stop)}")
    ours, line = _LANGUAGES[language]
    word = f"tests-done-{checksum(f'{name} {tests}')[:16]}"
    check = {
        "kind": "run",
        "language": ours,
        "prefix": code,
        "suffix": _with_last_line(tests, line.format(word), in_main=language in _IN_MAIN),
        "stop": stop,
        "tests": [{"input": "", "output": word}],
    }
    prompt = filled(wanted.prompt or CODE_PROMPT, code, code)
    return Converted(Problem(f"{name}/{language}", prompt, check, code, code))


def _with_last_line(tests: str, line: str, *, in_main: bool) -> str:
    if not in_main:
        return f"{tests.rstrip()}\n{line}\n"
    end = re.search(r"\}\s*\Z", tests)
    if end is None:
        raise NotConverted("tests that do not end with the end of a function")
    return f"{tests[: end.start()].rstrip()}\n{line}\n}}\n"
