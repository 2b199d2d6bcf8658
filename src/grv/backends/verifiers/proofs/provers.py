"""Which programs check proofs on this machine."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...sandbox.tool_worker import Grants
from ..languages.toolchains import NotInstalled

_SECONDS = 60.0  # for a question to a program
_VERSION = re.compile(r"\d+(?:\.\d+)+[-+.\w]*")


@dataclass(frozen=True)
class Prover:
    """A program that checks proofs.

    Attributes:
        name: its name.
        path: where it is.
        version: its version.
        grants: what it may use in the jail.
        second: the path of a program that checks its result again; "" if there is none.
    """

    name: str
    path: str
    version: str
    grants: Grants
    second: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def prover(system: str) -> Prover:
    """The program for a system; a UsageError says what to install."""
    found = _found(system, os.environ.get("PATH", ""))
    if isinstance(found, str):
        raise NotInstalled(found)
    return found


def installed() -> dict[str, Prover | str]:
    """The program for each system, or why there is none."""
    return {system: _found(system, os.environ.get("PATH", "")) for system in _FINDERS}


@functools.cache
def _found(system: str, path: str) -> Prover | str:
    """The program for a system, or why there is none; `path` is where programs are found."""
    try:
        return _FINDERS[system]()
    except NotInstalled as missing:
        return str(missing)


def _metamath() -> Prover:
    path = shutil.which("metamath")
    if path is None:
        raise NotInstalled("no metamath for proofs in metamath: install metamath")
    return _alone("metamath", path, "exit")


def _smt() -> Prover:
    z3 = in_environment("z3") or shutil.which("z3")
    if z3 is not None:
        return _alone("z3", z3, "--version")
    cvc5 = shutil.which("cvc5")
    if cvc5 is None:
        advice = "pip install 'generate-rank-verify[smt]', or install z3 or cvc5"
        raise NotInstalled(f"no solver for proofs in smt: {advice}")
    return _alone("cvc5", cvc5, "--version")


def in_environment(name: str) -> str | None:
    """The path of a program that a package has put beside the interpreter, as z3-solver does."""
    path = os.path.join(os.path.dirname(sys.executable), name)
    return path if os.access(path, os.X_OK) else None


def _lean() -> Prover:
    """Lean of the user's toolchain. The one on the path may be elan's, which chooses."""
    proxy = shutil.which("lean")
    if proxy is None:
        raise NotInstalled("no lean for proofs in lean: install Lean 4 with elan")
    prefix = _asked([proxy, "--print-prefix"])
    path = os.path.join(prefix, "bin", "lean")
    if not prefix or not os.path.exists(path):
        raise NotInstalled(f"no lean for proofs in lean: {proxy} has no toolchain")
    found = _VERSION.search(_asked([path, "--version"]))
    own = os.path.join(prefix, "bin", "leanchecker")
    second = own if os.path.exists(own) else shutil.which("lean4checker") or ""
    executable = [os.path.join(prefix, "bin"), os.path.realpath(path)]
    if second:
        executable.append(os.path.realpath(second))
    grants = Grants((os.path.realpath(prefix),), tuple(dict.fromkeys(executable)))
    return Prover("lean", path, found[0] if found else "unknown", grants, second)


def _alone(name: str, path: str, question: str) -> Prover:
    """A program that needs nothing but the system's libraries."""
    real = os.path.realpath(path)
    found = _VERSION.search(_asked([real, question]))
    return Prover(name, real, found[0] if found else "unknown", Grants((), (real,)))


def _asked(argv: Sequence[str]) -> str:
    """What a program prints, without spaces around it; "" if it fails."""
    try:
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "" if done.returncode else done.stdout.strip()


_FINDERS: Mapping[str, Callable[[], Prover]] = {
    "lean": _lean,
    "metamath": _metamath,
    "smt": _smt,
}
