"""Runs the attacks, with a secret to steal and files to damage, and looks for the damage."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import secrets
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.errors import UsageError
from ...core.values import Verdict
from ..protocols import Finding, Problem
from ..sandbox.limits import Isolation, RunLimits
from ..verifiers.languages.toolchains import Toolchain, installed
from ..verifiers.pool import CheckVerifier
from . import (
    answers,
    commands,
    compilers,
    ending,
    escaping,
    forging,
    harming,
    native,
    proofs,
    prying,
    repositories,
    right_programs,
    tools,
)
from .attack import Aim, Attack

_GROUPS = (forging, prying, harming, escaping, ending)
ATTACKS = tuple(attack for group in _GROUPS for attack in group.ATTACKS)
_TOOL_GROUPS = (tools, compilers, native, commands)
TOOL_ATTACKS = tuple(attack for group in _TOOL_GROUPS for attack in group.ATTACKS)
LIMITS = RunLimits(seconds=2.0, memory_mb=512, output_mb=1.0, files_mb=16)
_INPUTS = (1, 2, 3)
_TEST = """
CASES = {cases}
def check(candidate):
    assert all(map(lambda case: {answer} == case[1], CASES))
"""
# A test that the judge evaluates itself.
_COMPARING = """
def check(candidate):
    assert candidate({first}) == {one!r}
    assert not candidate({second}) != {other!r}
    assert candidate({third}) in [{last!r}] and sorted([candidate({third})]) == [{last!r}]
"""
# What the test of an `asserts` check does with an answer, per kind.
_ANSWERS = {
    "asserts": "candidate(case[0])",
    "listed": "list(candidate(case[0]))",
    "repeated": "[0] * candidate(case[0])",
    "raised": "2 ** candidate(case[0])",
    "evaluated": "eval(candidate(case[0]))",
    "nested": "candidate(candidate(case[0]))",
}


@dataclass(frozen=True, slots=True)
class Trial:
    """One program and its finding; `ok` says whether the finding is as it should be."""

    name: str
    ok: bool
    finding: Finding


class Surroundings:
    """What attacks look for: a secret in a file and in the environment, and an open port."""

    def __init__(self) -> None:
        self.secret = f"secret-{secrets.token_hex(16)}"
        self._open = contextlib.ExitStack()

    def __enter__(self) -> Surroundings:
        folder = Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="grv-tests-")))
        self.file = folder / "tests.json"
        self.file.write_text(f'{{"expected": "{self.secret}"}}')
        self._listener = self._open.enter_context(socket.create_server(("127.0.0.1", 0)))
        self._listener.setblocking(False)
        os.environ["GRV_ATTACKED_SECRET"] = self.secret
        self._open.callback(os.environ.pop, "GRV_ATTACKED_SECRET", None)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def fill(self, source: str) -> str:
        """A program with its placeholders replaced."""
        port = str(self._listener.getsockname()[1])
        filled = source.replace("@FILE@", str(self.file)).replace("@PORT@", port)
        return filled.replace("@JUDGE@", str(os.getpid()))

    def damage(self) -> list[str]:
        """What attacks have changed or reached."""
        found = []
        if not self.file.exists() or self.secret not in self.file.read_text():
            found.append("the tests' file was changed")
        if os.listdir(self.file.parent) != [self.file.name]:
            found.append("files were left beside the tests' file")
        with contextlib.suppress(BlockingIOError):
            self._listener.accept()[0].close()
            found.append("a connection was made")
        return found


def _check(kind: str, expected: str | int, *, easy: bool) -> dict[str, Any]:
    cases = [(x, x if easy and x == _INPUTS[0] else expected) for x in _INPUTS]
    if kind == "stdin":
        return {"kind": kind, "tests": [{"input": f"{x}\n", "output": str(y)} for x, y in cases]}
    if kind == "function":
        tests = [{"args": [x], "expected": y} for x, y in cases]
        return {"kind": kind, "entry_point": "f", "tests": tests}
    if kind == "compared":
        first, second, third = _INPUTS
        one, other, last = (value for _, value in cases)
        inputs = {"first": first, "second": second, "third": third}
        test = _COMPARING.format(**inputs, one=one, other=other, last=last)
        return {"kind": "asserts", "entry_point": "f", "test": test}
    test = _TEST.format(cases=cases, answer=_ANSWERS[kind])
    return {"kind": "asserts", "entry_point": "f", "test": test}


def trials_of(attack: Attack, around: Surroundings) -> Iterator[tuple[str, Problem, str]]:
    """The attack against each kind of check that it is meant for: name, problem, text."""
    values: dict[Aim, str | int] = {
        Aim.FORGE: around.secret,
        Aim.NUMBER: secrets.randbits(60),
        Aim.BREACH: "breached",
    }
    expected = values[attack.aim]
    for kind in attack.kinds:
        name = f"{attack.name} ({kind})"
        check = _check(kind, expected, easy=attack.behaves)
        yield name, Problem(name, check=check), around.fill(attack.source)


def held(attack: Attack | tools.ToolAttack, finding: Finding) -> bool:
    """Whether an attack failed, and for one of its reasons; or broke for a reason it names."""
    if finding.reason in attack.reasons:
        return finding.verdict is not Verdict.PASSED
    return finding.verdict is Verdict.FAILED and not attack.reasons


def quotes(finding: Finding, secret: str) -> bool:
    """Whether what tools said has a secret, which they then have read."""
    said = [str(finding.evidence.get(name, "")) for name in ("messages", "stderr")]
    return any(secret in text for text in said)


def run_attacks(verifier: CheckVerifier, around: Surroundings) -> Iterator[Trial]:
    """All attacks, in the order in which they end. Refuses to run them without a jail."""
    if verifier.in_force.level is Isolation.UNSAFE:
        raise UsageError("attacks do not run without a jail: they would damage this machine")
    jobs = (
        ((name, attack), problem, text)
        for attack in ATTACKS
        for name, problem, text in trials_of(attack, around)
    )
    for (name, attack), judged in verifier.find_all(jobs):
        yield Trial(name, held(attack, judged.finding), judged.finding)
    others = (
        (f"{attack.name} ({attack.check['kind']})", Problem(attack.name, check=attack.check), text)
        for attack in itertools.chain(answers.attacks(), proofs.attacks())
        for text in (around.fill(attack.text),)
    )
    for name, judged in verifier.find_all(others):
        yield Trial(name, judged.finding.verdict is Verdict.FAILED, judged.finding)


def run_tool_attacks(verifier: CheckVerifier, around: Surroundings) -> Iterator[Trial]:
    """The attacks on the second jail whose languages are installed here."""
    if verifier.in_force.level is Isolation.UNSAFE:
        raise UsageError("attacks do not run without a jail: they would damage this machine")
    there = installed()
    jobs = (
        ((name, attack), problem, around.fill(attack.source))
        for attack in TOOL_ATTACKS
        for name, problem in (tools.trial_of(attack, around.secret),)
        if isinstance(there[attack.language], Toolchain)
    )
    for (name, attack), judged in verifier.find_all(jobs):
        good = held(attack, judged.finding) and not quotes(judged.finding, around.secret)
        yield Trial(name, good, judged.finding)


def run_repository_attacks(
    verifier: CheckVerifier, around: Surroundings, image: str = ""
) -> Iterator[Trial]:
    """A right change to a repository, which must pass, and hostile ones, in a jail or an image."""
    if verifier.in_force.level is Isolation.UNSAFE:
        raise UsageError("attacks do not run without a jail: they would damage this machine")
    jobs = (
        (attack, problem, around.fill(text))
        for attack, problem, text in repositories.trials(repositories.make_repository(), image)
    )
    for attack, judged in verifier.find_all(jobs):
        finding = judged.finding
        name = "a right change" if attack is None else attack.name
        wanted = Verdict.PASSED if attack is None else Verdict.FAILED
        yield Trial(f"{name} (repo)", finding.verdict is wanted, finding)


def run_right_programs(verifier: CheckVerifier) -> Iterator[Trial]:
    """All right programs, in the order in which they end."""
    right = [*right_programs.RIGHT_PROGRAMS]
    if importlib.util.find_spec("numpy") is not None:
        right.append(right_programs.NUMPY)
    jobs = ((item.name, Problem(item.name, check=item.check), item.text) for item in right)
    for name, judged in verifier.find_all(jobs):
        yield Trial(name, judged.finding.verdict is Verdict.PASSED, judged.finding)


def left_behind(folders: list[Path]) -> list[str]:
    """Processes and directories that still exist after their workers were closed."""
    found = [f"directory {folder}" for folder in folders if folder.exists()]
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (entry / "cmdline").read_bytes()
            found += [f"process {entry.name}" for path in folders if bytes(path) in command]
    return found
