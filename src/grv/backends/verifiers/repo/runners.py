"""How tests are run: the commands of pytest, unittest, go, cargo and npm, or one of the check.

`pytest` and `unittest` run in an interpreter of the user's choice: the one that runs grv, or that
of the project, `.venv/bin/python`. Others are started by `inside.py`, which is then a process of
its own.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ....core.errors import UsageError
from ....files import shown
from ...sandbox.tool_worker import Grants
from ..languages.toolchains import NotInstalled, own_step, toolchain
from . import results
from .protection import test_file
from .results import WHOLE, Results, TestEnd

RUNNERS = ("pytest", "unittest", "go", "cargo", "npm", "command")
IN_PROCESS = ("pytest", "unittest")  # they run candidates in their own process
RESULTS = "results.xml"
_PYTHON = re.compile(r"python(?:\d(?:\.\d+)?)?")
_WRITABLE = "{work}"
_GO = {"GOPROXY": "off", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"}
_CARGO = {
    "CARGO_NET_OFFLINE": "true",
    "CARGO_TARGET_DIR": f"{_WRITABLE}/target",
    "CARGO_HOME": f"{_WRITABLE}/cargo",
}
_NPM = {
    "OPENSSL_CONF": "/dev/null",
    "npm_config_cache": f"{_WRITABLE}/npm",
    "npm_config_update_notifier": "false",
    "npm_config_offline": "true",
}
_VARIABLES = {"go": _GO, "cargo": _CARGO, "npm": _NPM}


@dataclass(frozen=True)
class RunnerCommand:
    """What runs tests on this machine.

    Attributes:
        python: the interpreter that runs `inside.py`.
        job: what `inside.py` is told, besides the copy and the secret.
        grants: what it may use, besides the copy.
        environment: its variables.
    """

    python: str
    job: Mapping[str, Any]
    grants: Grants
    environment: Mapping[str, str] = field(default_factory=dict)


def runner_command(
    runner: str, command: Sequence[str], tests: Sequence[str], paths: frozenset[str]
) -> RunnerCommand:
    """How a runner starts here; `paths` are the files of the commit.

    Raises:
        NotInstalled: this machine lacks it.
        UsageError: the command is not one of this runner.
    """
    if runner in IN_PROCESS:
        python, arguments = python_of(runner, command)
        grants, environment = _interpreter(python)
        job = {"runner": runner, "arguments": arguments, "tests": [*tests]}
        return RunnerCommand(python, job, grants, environment)
    own = toolchain("python")
    argv = argv_of(runner, command, tests)
    return _with_command(own.tool, own.grants, argv, paths)


def container_command(runner: str, command: Sequence[str], tests: Sequence[str]) -> RunnerCommand:
    """How a runner starts in a container, whose image has all programs."""
    if runner not in IN_PROCESS:
        argv = argv_of(runner, command, tests)
        return RunnerCommand("python3", {"runner": "command", "argv": argv}, Grants())
    _, arguments = python_of(runner, command)
    program = command[0] if command else "python3"
    is_python = _PYTHON.fullmatch(os.path.basename(program)) is not None
    python = program if is_python else "python3"
    return RunnerCommand(
        python, {"runner": runner, "arguments": arguments, "tests": [*tests]}, Grants()
    )


def argv_of(runner: str, command: Sequence[str], tests: Sequence[str]) -> list[str]:
    """The command line of a runner that is a process of its own."""
    match runner:
        case "go":
            program, verb, *rest = [*command] or ["go", "test"]
            folders = dict.fromkeys(f"./{os.path.dirname(test_file(name))}" for name in tests)
            names_packages = any(not part.startswith("-") for part in rest)
            packages = [] if names_packages else [*folders] or ["./..."]
            return [program, verb, "-json", "-count=1", *rest, *packages]
        case "cargo":
            return [*command] or ["cargo", "test", "--offline"]
        case "npm":
            start = [*command] or ["npm", "test", "--silent"]
            return [*start, *(["--", *tests] if tests else [])]
    return [*command]


def python_of(runner: str, command: Sequence[str]) -> tuple[str, list[str]]:
    """The interpreter of a command such as `.venv/bin/python -m pytest -q`, and its arguments."""
    if not command:
        return toolchain("python").tool, []
    program, *rest = command
    name = os.path.basename(program)
    if name == "pytest" and runner == "pytest":
        beside = os.path.join(os.path.dirname(program), "python")
        return (beside if "/" in program else toolchain("python").tool), rest
    if not _PYTHON.fullmatch(name) or (rest and rest[:2] != ["-m", runner]):
        raise UsageError(
            f"command must be PYTHON -m {runner} OPTIONS, or PYTHON, not {shown([*command])};"
            ' for others, use "runner": "command"'
        )
    return (program if "/" in program else toolchain("python").tool), rest[2:]


def _interpreter(python: str) -> tuple[Grants, dict[str, str]]:
    """What an interpreter may use: its library, and the packages of its environment."""
    own = toolchain("python")
    path = os.path.abspath(python)
    environment = {"PATH": f"{os.path.dirname(path)}:/usr/bin:/bin"}
    grants = _joined(own_step(("true",)).grants, own.grants)
    if path == os.path.abspath(own.tool):
        folder = os.path.dirname(path)
        return replace(grants, executable=(*grants.executable, folder)), environment
    real = Path(os.path.realpath(path))
    if not os.access(real, os.X_OK) or not _PYTHON.fullmatch(real.name):
        raise NotInstalled(f"{shown(python)} is no interpreter of Python")
    prefix = real.parent.parent
    library = [str(found) for found in prefix.glob("lib*/python3.*") if found.is_dir()]
    shared = [str(found) for found in prefix.glob("lib*/libpython3*")]
    if not library:
        raise NotInstalled(f"{shown(python)} has no library beside it")
    around = Path(path).parent.parent
    is_environment = (around / "pyvenv.cfg").is_file()
    more = Grants(tuple(library + shared), (str(real), *([str(around)] if is_environment else [])))
    return _joined(grants, more), environment


def _joined(one: Grants, other: Grants) -> Grants:
    return Grants(
        tuple(dict.fromkeys((*one.readable, *other.readable))),
        tuple(dict.fromkeys((*one.executable, *other.executable))),
        tuple(dict.fromkeys((*one.writable, *other.writable))),
    )


def _with_command(
    python: str, grants: Grants, argv: list[str], paths: frozenset[str]
) -> RunnerCommand:
    program = argv[0]
    in_copy = program.removeprefix("./") in paths
    if in_copy:
        step = own_step(("true",))
        argv = [f"./{program.removeprefix('./')}", *argv[1:]]
    elif "/" in program:
        real = os.path.realpath(program)
        if shutil.which(real) is None:
            raise NotInstalled(f"no program {shown(program)} on this machine")
        step = own_step(("true",))
        grants = replace(grants, executable=(*grants.executable, real))
        argv = [os.path.abspath(program), *argv[1:]]
    else:
        step = own_step(tuple(argv))
        argv = [*step.argv]
    more = _VARIABLES.get(os.path.basename(program), {})
    folders = [os.path.dirname(argv[0])] if os.path.isabs(argv[0]) else []
    path = ":".join([*folders, "/usr/local/bin", "/usr/bin", "/bin"])
    environment = {"PATH": path, **step.environment, **more}
    allowed = _joined(grants, step.grants)
    allowed = replace(allowed, executable=(*allowed.executable, _WRITABLE))
    return RunnerCommand(python, {"runner": "command", "argv": argv}, allowed, environment)


def completed(found: Results, runner: str, printed: str, reads_results: bool) -> Results:
    """The results of a run, with the tests that its runner has printed or written."""
    if runner in IN_PROCESS or found.finished is None:
        return found
    if reads_results:
        found.tests = dict(results.read_junit(found.written) or {})
    elif runner == "go":
        found.tests = results.read_go(printed)
    elif runner == "cargo":
        found.tests = results.read_cargo(printed)
    else:
        found.tests = {WHOLE: TestEnd("failed" if found.finished else "passed")}
    return found
