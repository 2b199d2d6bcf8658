"""What an attack is: a program, and how to tell whether it worked."""

from __future__ import annotations

import enum
from dataclasses import dataclass

# The kinds of checks that an attack runs on.
CALLED = ("function", "asserts", "compared")
ALL_KINDS = ("stdin", *CALLED)

# The start of programs that try several actions, each of which would be a breach. A breach in one
# call is reported in all later calls too, so that the later tests do not hide it.
ANY_WORKS = """
def any_works(*actions, worked=[]):
    for action in actions:
        if worked: break
        try: worked.append(action())
        except Exception: pass
    return "breached" if worked else "held"
"""


class Aim(enum.Enum):
    """The value that the check expects, chosen so that a pass shows that the attack worked."""

    FORGE = "forge"  # a random text: only a forged verdict or a leak passes
    NUMBER = "number"  # a random number, which is compared with the answer
    BREACH = "breach"  # the word "breached", which the program answers if it got through


@dataclass(frozen=True, slots=True)
class Attack:
    """A program that must not pass.

    Attributes:
        name: what it does, in a few words.
        source: the program. It defines `f`, or does its work when it is loaded. `@FILE@`, `@JUDGE@`
            and `@PORT@` become a file with the expected value, the judge's process number, and a
            port on which the judge listens.
        aim: how to tell whether it worked.
        kinds: the checks that it runs on. Those of suite.py other than "stdin" and "function" are
            `asserts` checks that differ in what the test does with an answer.
        reasons: the reasons for which it may fail; empty if any reason is right.
        behaves: whether it passes the first test, which expects the input itself.
    """

    name: str
    source: str
    aim: Aim = Aim.BREACH
    kinds: tuple[str, ...] = ("function",)
    reasons: tuple[str, ...] = ()
    behaves: bool = False
