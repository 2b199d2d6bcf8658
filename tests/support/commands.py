"""Runs `grv`, in this process or in its own; interrupts and kills it; checks what it refuses."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_OUTAGE = re.compile(r"waiting for .* up to [0-9]+ s$|.* answers again, after [0-9]+ s$")


@dataclass(frozen=True)
class Ran:
    """The exit code and output of a command."""

    code: int
    out: str
    err: str


def as_from_a_terminal() -> None:
    """Undo what a process inherits if the tests run under nohup, from cron or in the background.

    For `preexec_fn`: those ignore signals, block them, or set another mask for new files.
    """
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.umask(0o022)


def start(
    *arguments: object,
    env: Mapping[str, str] | None = None,
    before: Callable[[], None] | None = None,
    stdin: int | None = None,
) -> subprocess.Popen[str]:
    """Start `grv` in a new process; `before` is called in it first, to set limits.

    A process with limits writes no compiled modules: a limit on files would cut them off, and every
    later process would fail to import them.
    """
    more = dict(env or {})
    if before is not None:
        more["PYTHONDONTWRITEBYTECODE"] = "1"

    def prepare() -> None:
        as_from_a_terminal()
        if before is not None:
            before()

    return subprocess.Popen(
        [sys.executable, "-m", "grv", *map(str, arguments)],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OPENAI_API_KEY": "", **more},
        preexec_fn=prepare,
    )


def ended(process: subprocess.Popen[str], *, within: float = 120) -> Ran:
    """Wait for a process; kill it after `within` seconds."""
    try:
        out, err = process.communicate(timeout=within)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return Ran(process.returncode, out, err)


def grv(
    *arguments: object,
    env: Mapping[str, str] | None = None,
    before: Callable[[], None] | None = None,
    within: float = 120,
) -> Ran:
    """Run `grv` to its end."""
    return ended(start(*arguments, env=env, before=before), within=within)


def limited(what: int, most: int) -> Callable[[], None]:
    """Sets a limit of the operating system, such as `resource.RLIMIT_FSIZE`; for `before`."""
    return lambda: resource.setrlimit(what, (most, most))


def without_outages(err: str) -> str:
    """What a command says on stderr, apart from outages: on a busy machine even short ones last."""
    lines = err.splitlines(keepends=True)
    return "".join(each for each in lines if not _OUTAGE.match(each))


def here(*arguments: object) -> Ran:
    """Run `grv` in this process. It is fast, because most of a command's time is its start."""
    from grv.apps.cli import run

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(list(map(str, arguments)))
    return Ran(code, out.getvalue(), err.getvalue())


def refuses(arguments: Iterable[object], *words: str) -> str:
    """Run a command whose input is bad, and return its message.

    Bad input is exit code 2, nothing on stdout, and one line on stderr that contains `words`.
    """
    ran = here(*arguments)
    assert (ran.code, ran.out) == (2, ""), ran
    assert ran.err.startswith("grv: "), ran.err
    assert ran.err.count("\n") == 1, ran.err
    assert "Traceback" not in ran.err
    assert "bug in grv" not in ran.err
    for word in words:
        assert word in ran.err
    return ran.err.removeprefix("grv: ").rstrip("\n")


def kill(process: subprocess.Popen[str]) -> None:
    """Kill a process at once, as a power failure would."""
    process.send_signal(signal.SIGKILL)
    process.communicate()


def write_problems(
    path: Path, names: Iterable[str], *, seen: Path, right: str = "right", seconds: float = 0
) -> Path:
    """A file of problems whose answers pass if they contain the word `right`.

    The verifier appends each text that it verifies to the file `seen`, one per line.
    """
    script = (
        f"printf '%s\\n' \"$(cat {{}})\" >> {shlex.quote(str(seen))};"  # one write: whole lines
    )
    script += f" sleep {seconds};" if seconds else ""
    check = {"kind": "command", "argv": ["sh", "-c", f"{script} grep -qw {right} {{}}"]}
    lines = [{"problem": name, "prompt": f"Solve {name}.", "check": check} for name in names]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def records(path: Path) -> list[dict[str, Any]]:
    """The records of a file of JSON lines, which must all be complete."""
    text = path.read_text(encoding="utf-8")
    assert text == "" or text.endswith("\n"), "the last line is torn"
    return [json.loads(line) for line in text.splitlines()]
