"""The process that asks Math-Verify. Run as a script by `math_confirming`; nothing imports it.

Math-Verify stops itself by SIGALRM, which works on a main thread only, and not inside one long
operation on integers; so it has a process that can be killed. The process limits itself: memory
once, processor time anew for each question, so that it ends also if nobody is left to kill it.
Questions come and answers go as lines of JSON; Math-Verify's own output goes nowhere.

A question is `{"ways": [[[reference, candidate], ...], ...], "seconds": s}`; the answer
`{"equal": b, "errors": [...]}` says whether in one of the ways all pairs are equal.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import resource
import signal
import sys
from typing import Any, TextIO


def _streams() -> tuple[TextIO, TextIO]:
    """The questions and the answers, on descriptors that nobody else writes to."""
    questions = os.fdopen(os.dup(0), "r", encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    return questions, answers


def _limit_memory(megabytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if megabytes:
        with contextlib.suppress(ValueError, OSError):  # where the hard limit is lower already
            resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))


def _allow_seconds(seconds: float) -> None:
    """So much more processor time, then SIGXCPU, which kills."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    soft = int(used.ru_utime + used.ru_stime + seconds) + 2
    if hard == resource.RLIM_INFINITY or soft < hard:
        resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def _answer(question: dict[str, Any]) -> dict[str, Any]:
    """Whether one of the ways shows both to be equal, and what went wrong in the others."""
    from math_verify import LatexExtractionConfig, parse, verify
    from math_verify.errors import TimeoutException

    seconds = max(1, int(question["seconds"] / 4))
    config = [LatexExtractionConfig(boxed_match_priority=0)]

    def equal(pair: list[str]) -> bool:
        gold, target = (
            parse(
                f"\\boxed{{{text}}}",
                config,
                fallback_mode="no_fallback",
                parsing_timeout=seconds,
                raise_on_error=True,
            )
            for text in pair
        )
        return bool(
            gold
            and target
            and verify(
                gold,
                target,
                allow_set_relation_comp=True,
                timeout_seconds=seconds,
                raise_on_error=True,
            )
        )

    errors: list[str] = []
    for way in question["ways"]:
        try:
            if all(map(equal, way)):
                return {"equal": True, "errors": errors}
        except MemoryError:
            errors.append("memory")
        except (TimeoutException, RecursionError) as exc:
            errors.append("timeout" if isinstance(exc, TimeoutException) else "recursion")
        except Exception as exc:  # Math-Verify, antlr and sympy raise anything
            errors.append(type(exc).__name__)
    return {"equal": False, "errors": errors}


def main(megabytes: int) -> None:
    """Answer questions until there are no more."""
    questions, answers = _streams()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    _limit_memory(megabytes)
    logging.disable(logging.CRITICAL)
    _answer({"ways": [[["1", "1"]]], "seconds": 60})  # imports, and builds the first parser
    _write(answers, "ready")
    for line in questions:
        question = json.loads(line)
        _allow_seconds(question["seconds"])
        _write(answers, json.dumps(_answer(question)))


def _write(answers: TextIO, line: str) -> None:
    answers.write(line + "\n")
    answers.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
