"""Verdicts of other judges of mathematical answers; `math_answers.py` runs it in their environment.

Reads lines of JSON with a reference and a text, and writes lines with the verdict and the
milliseconds of processor time. An exception is no pass.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable
from typing import Any


def math_verify() -> Callable[[str, str], bool]:
    """Math-Verify, as its README uses it."""
    from math_verify import parse, verify

    def judge(reference: str, text: str) -> bool:
        return bool(verify(parse(f"${reference}$"), parse(text)))

    return judge


def inspect_ai() -> Callable[[str, str], bool]:
    """The scorer `math` of inspect_ai."""
    from inspect_ai.model import ModelName, ModelOutput
    from inspect_ai.scorer import Target, math
    from inspect_ai.solver import TaskState

    scorer = math()
    loop = asyncio.new_event_loop()

    def judge(reference: str, text: str) -> bool:
        state = TaskState(
            model=ModelName("none/none"),
            sample_id=1,
            epoch=1,
            input="",
            messages=[],
            output=ModelOutput.from_content("none", text),
        )
        score: Any = loop.run_until_complete(scorer(state, Target(reference)))
        return bool(score.value == "C")

    return judge


def main() -> None:
    judge = {"Math-Verify": math_verify, "inspect_ai": inspect_ai}[sys.argv[1]]()
    for line in sys.stdin:
        reference, text = json.loads(line)
        started = time.process_time()
        try:
            passed = judge(reference, text)
        except Exception as error:
            print(repr(error)[:200], file=sys.stderr)
            passed = False
        print(json.dumps([passed, 1000 * (time.process_time() - started)]), flush=True)


if __name__ == "__main__":
    main()
