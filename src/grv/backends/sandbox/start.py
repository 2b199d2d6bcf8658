"""How processes start: nothing of how grv itself was started reaches them.

grv may have been started by `nohup`, cron or a shell that ignores signals, with a mask, a umask or
open descriptors of its own. Candidates, tests and commands get none of that.
"""

from __future__ import annotations

import ctypes
import functools
import os
import signal
import sys
from collections.abc import Callable, Mapping

UMASK = 0o022
LOCALE = "C.UTF-8"
_RESTORED = {signal.SIGPIPE, signal.SIGXFSZ}  # by `subprocess`; an interpreter ignores them
NOT_STARTED = 127  # the exit status of a command that could not be started, as in shells
_RESET = f"""
import os, signal, sys
for number in signal.valid_signals():
    try: signal.signal(number, signal.SIG_DFL)
    except (OSError, ValueError): pass
signal.pthread_sigmask(signal.SIG_SETMASK, ())
try: os.execvp(sys.argv[1], sys.argv[1:])
except OSError as exc:
    print(sys.argv[1], exc.strerror, sep=": ", file=sys.stderr)
    sys.exit({NOT_STARTED})
"""


def default_signals() -> None:
    """Have signals do what they do in a fresh interpreter, whatever was inherited."""
    for number in signal.valid_signals():
        try:
            signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):  # SIGKILL, SIGSTOP
            continue
    for name in ("SIGPIPE", "SIGXFSZ"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.umask(UMASK)


_ENDING = (signal.SIGTERM, signal.SIGHUP)


def ignore_requests_to_end() -> None:
    """Leave it to the judge to end this process: it closes the socket."""
    for number in (signal.SIGINT, *_ENDING):
        signal.signal(number, signal.SIG_IGN)


def heeding_requests_to_end() -> list[Callable[[], object]]:
    """Calls that undo `ignore_requests_to_end`, in a child."""
    setting = sys.modules["_signal"].signal  # without the enums of `signal`, which take time
    actions: dict[int, object] = {int(number): int(signal.SIG_DFL) for number in _ENDING}
    actions[int(signal.SIGINT)] = signal.default_int_handler
    return [functools.partial(setting, number, action) for number, action in actions.items()]


def notice_children() -> None:
    """Have the kernel keep the exit status of this process's children until it is read.

    It does not if the process was started with SIGCHLD ignored. `signal.signal` works in the main
    thread only.
    """
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        ctypes.CDLL(None).signal(int(signal.SIGCHLD), None)


def with_default_signals(argv: list[str]) -> list[str]:
    """A command, started so that it ignores and blocks no signal.

    It is the command itself if this process ignores and blocks none: a program inherits both.
    """
    inherited = any(
        signal.getsignal(number) is signal.SIG_IGN for number in signal.valid_signals() - _RESTORED
    )
    if not inherited and not signal.pthread_sigmask(signal.SIG_BLOCK, ()):
        return argv
    return [sys.executable, "-I", "-S", "-c", _RESET, *argv]


def in_fixed_locale(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment whose programs write and sort text alike, wherever grv was started."""
    kept = {name: value for name, value in environment.items() if not _is_of_locale(name)}
    return kept | {"LANG": LOCALE, "LC_ALL": LOCALE}


def _is_of_locale(name: str) -> bool:
    return name in ("LANG", "LANGUAGE") or name.startswith("LC_")
