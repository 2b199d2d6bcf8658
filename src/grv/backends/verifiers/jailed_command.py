"""Verify with the user's own command, in the jail: checks of kind "command" with `"jail": true`.

`{"kind": "command", "jail": true, "argv": ["python3", "check.py", "{}", "{output}"], "run":
["python3", "{}"], "readable": ["answers"]}`. `run` runs the candidate in a jail of its own. `argv`
then judges in another jail: it gets the candidate's file and what `run` printed. The verdict is the
exit status of `argv`, which shares no process, file or folder with the candidate.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...core.errors import UsageError
from ...core.values import Verdict
from ...files import shown
from ...own_code import digest_of_files
from ..protocols import Finding, Problem, Usage
from ..sandbox.limits import End, RunLimits
from ..sandbox.run import Run
from ..sandbox.tool_worker import Grants, Step
from .checks import WholeTextCheck
from .command import named_files, verdict_of
from .languages.building import ended, wait
from .languages.toolchains import own_step
from .programs.findings import clean
from .worker_pair import WorkerPair

_LIMITS = RunLimits(seconds=60.0)
_CANDIDATE = "candidate.txt"
_OUTPUT = "output.txt"
_SYSTEM = ("/usr", "/bin", "/lib", "/lib64")
_KEPT = 4_000  # characters at the end of an output, for evidence


def outside(record: Mapping[str, Any]) -> str:
    """Which file a check reads that is not below the current folder; "" if none."""
    argv = record.get("argv")
    readable = record.get("readable", [])
    if not _is_list_of_texts(argv) or not _is_list_of_texts(readable):
        return ""  # the parser says what is wrong
    assert isinstance(argv, list)
    here = Path.cwd().resolve()
    for path in [*_own_files(argv), *readable]:
        real = Path(path).resolve()
        places = [here, *map(Path, _SYSTEM)]
        if not any(real == place or place in real.parents for place in places):
            return f"reads {shown(path)}, which is not below the current folder"
    return ""


def _own_files(argv: Sequence[str]) -> list[str]:
    """The files that a command names, without a program that is found on the user's path."""
    files = named_files(argv) if argv else []
    return files if argv and "/" in argv[0] else files[1:]


def _is_list_of_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(part, str) for part in value)


class JailedCommandCheck(WholeTextCheck):
    """Asks a command in the jail about a candidate's text, or about what it printed when it ran.

    Args:
        argv: the program that judges and its arguments: `{}` is the candidate's file, `{output}`
            what `run` printed.
        run: the program that runs the candidate, in another jail; empty if it is only read.
        readable: files and folders that `argv` reads, besides those that it names.
        limits: what each of the two may use.
    """

    judged_by = 0
    is_jailed = True

    def __init__(
        self,
        argv: tuple[str, ...],
        run: tuple[str, ...] = (),
        readable: tuple[str, ...] = (),
        limits: RunLimits = _LIMITS,
    ) -> None:
        self.argv = argv
        self._run = run
        self._readable = readable
        self._limits = limits

    @classmethod
    def of(cls, problem: Problem) -> JailedCommandCheck:
        """The check of a problem."""
        record = problem.check
        if not isinstance(record["jail"], bool):
            raise UsageError(f"jail must be true or false, not {shown(record['jail'])}")
        if not record["jail"]:
            raise UsageError("jail is false; leave it out, and give --allow-commands")
        argv = _arguments(record, "argv")
        run = _arguments(record, "run") if "run" in record else ()
        readable = record.get("readable", [])
        if not _is_list_of_texts(readable):
            raise UsageError(f"readable must be a list of paths, not {shown(readable)}")
        for path in readable:
            if not os.path.exists(path):
                raise UsageError(f"readable names {shown(path)}, which does not exist")
        if not run and any("{output}" in part for part in argv):
            raise UsageError("{output} is what run prints, and run is missing")
        return cls(argv, run, tuple(readable), _LIMITS.with_(record.get("limits", {})))

    def content(self) -> str:
        """A checksum of the files that the check names: an edited script is another check."""
        files = [*named_files(self.argv)]
        for path in self._readable:
            below = sorted(map(str, Path(path).rglob("*"))) if os.path.isdir(path) else [path]
            files += [name for name in below if os.path.isfile(name)]
        return digest_of_files(list(dict.fromkeys(files)))

    def judge(self, text: str, pair: WorkerPair, seed: int = 0) -> Finding:
        """The finding on a candidate's text."""
        files = {_CANDIDATE: text.encode("utf-8", "replace").decode()}
        isolation = {"isolation": str(pair.checker.in_force)}
        if self._run:
            step = own_step(_filled(self._run))
            with pair.tools.step("command", step, self._limits, files=files, clears=True) as run:
                problem = ended(pair.tools, run, self._limits, "no answer", part="run")
                printed = bytes(run.output)
            if problem is not None:
                evidence = clean(problem.evidence) | isolation
                return Finding(problem.verdict, problem.reason, evidence, problem.usage)
            files[_OUTPUT] = printed.decode("utf-8", "surrogateescape")
        step = self._judging()
        stdin = files[_CANDIDATE].encode()
        with pair.checker.step(
            "command", step, self._limits, files=files, stdin=stdin, clears=True
        ) as run:
            status = wait(run)
            evidence = {"stdout": _end_of(bytes(run.output)), "stderr": _end_of(run.errors)}
            return self._finding(run, status, clean(evidence) | isolation)

    def _finding(self, run: Run, status: Any, evidence: dict[str, Any]) -> Finding:
        usage = Usage(seconds=run.clock.used()["own_seconds"])
        if isinstance(status, End):
            return Finding(Verdict.BROKEN, status.value, evidence, usage)
        if status.cause == "stopped":
            return Finding(Verdict.BROKEN, "called off")
        if status.cause:
            return Finding(Verdict.BROKEN, f"checker used too much: {status.cause}", evidence)
        code = -status.signal if status.exit_code is None else status.exit_code
        verdict, reason = verdict_of(code)
        return Finding(verdict, reason, evidence | {"exit": code}, usage)

    def _judging(self) -> Step:
        """The command that judges. The files that it names are found from the current folder."""
        named = [os.path.realpath(path) for path in _own_files(self.argv)]
        argv = list(_filled(self.argv))
        for index, part in enumerate(self.argv):
            if "/" in part or index:
                argv[index] = os.path.realpath(part) if os.path.isfile(part) else argv[index]
        readable = (*named, *(os.path.realpath(path) for path in self._readable))
        program = argv[0]
        if not os.path.isabs(program):
            return own_step(tuple(argv), readable)
        step = own_step(("true", *argv[1:]), readable)
        grants = Grants(step.grants.readable, (*step.grants.executable, program))
        return Step(tuple(argv), grants)


def _arguments(record: Mapping[str, Any], name: str) -> tuple[str, ...]:
    from .run import arguments

    value: Any = record.get(name)
    try:
        return arguments(value)
    except ValueError as exc:
        raise UsageError(f"{name} {exc}, not {shown(value)}") from None


def _filled(argv: tuple[str, ...]) -> tuple[str, ...]:
    """The arguments with the paths of the files in the jail."""
    places = {"{}": f"{{work}}/{_CANDIDATE}", "{output}": f"{{work}}/{_OUTPUT}"}
    filled = []
    for part in argv:
        for mark, place in places.items():
            part = part.replace(mark, place)
        filled.append(part)
    return tuple(filled)


def _end_of(output: bytes) -> str:
    return output.decode("utf-8", "replace")[-_KEPT:]
