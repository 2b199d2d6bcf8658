"""The command `grv`, also as `python -m grv`."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType

_AGAIN_SECONDS = 0.02


def main() -> None:
    """Run the command line and leave with its exit code."""
    try:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, interrupt)
            signal.signal(signal.SIGALRM, interrupt)
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores SIGHUP
                signal.signal(number, interrupt)
                signal.signal(signal.SIGALRM, interrupt)
        from .apps.cli import end_without_memory, run

        threading.excepthook = end_without_memory
        code = run()
    except KeyboardInterrupt:  # while the command line was still being loaded
        print("grv: interrupted", file=sys.stderr)
        code = 130
    sys.exit(code)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Ctrl-C and signals like it, put off to the end of an import.

    Extension modules may swallow what is raised while they load: numpy.random, which is loaded when
    it is first used, has done so with one Ctrl-C in twenty.
    """
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)
            return
        frame = frame.f_back
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
