"""What an attack is: a program, and how one would know that it had worked."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Aim(enum.Enum):
    """What the attack is given for an expected value, so that a pass shows that it worked."""

    FORGE = "forge"  # a value drawn at random: only a forged verdict, or a leak, passes
    NUMBER = "number"  # a number drawn at random, which what is answered is compared with
    BREACH = "breach"  # the word "breached", which the program answers if it got through


@dataclass(frozen=True, slots=True)
class Attack:
    """A program that must not pass.

    Attributes:
        name: in a few words.
        source: the program: it defines `f`, or does its work when it is loaded. `@FILE@`, `@JUDGE@`
            and `@PORT@` become a file with the expected value, the judge's process number, and a
            port on which the judge listens.
        aim: how one would know that it had worked.
        kinds: the checks that it is tried on; for `asserts`, by what the test does with an answer.
        reasons: why it may fail; empty where any reason will do.
        behaves: whether it does well in the first test, which then expects what was given.
    """

    name: str
    source: str
    aim: Aim = Aim.BREACH
    kinds: tuple[str, ...] = ("function",)
    reasons: tuple[str, ...] = ()
    behaves: bool = False
