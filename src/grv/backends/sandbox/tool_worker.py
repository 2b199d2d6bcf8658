"""The judge's side of tools.py: builds a program once, and runs it as often as needed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .isolation.tool_jail import BUILT, GRANTED, WORK
from .limits import NEEDED, Isolation, RunLimits
from .run import Run, SandboxDied
from .start import LOCALE
from .worker import Worker

# Nothing of the user's environment reaches a program.
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": LOCALE, "LC_ALL": LOCALE, "TZ": "UTC"}


@dataclass(frozen=True, slots=True)
class Grants:
    """What the tools of a run may use, besides the system's libraries.

    Attributes:
        readable: files and folders that they read.
        executable: files and folders that they read and start as programs.
        writable: folders that they read and write. How much they write there is looked at twice a
            second.

    A path may be `{work}`.
    """

    readable: tuple[str, ...] = ()
    executable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One program to start in the jail.

    Attributes:
        argv: the path of the program and its arguments. `{built}` and `{work}` become the folders.
        grants: what it may use.
        environment: variables in addition to the fixed ones; `{work}` as in arguments.
        starts: names of files in `built` that it starts.
        folder: where it starts; "" for the folder of its files.
    """

    argv: tuple[str, ...]
    grants: Grants = Grants()
    environment: Mapping[str, str] = field(default_factory=dict)
    starts: tuple[str, ...] = ()
    folder: str = ""

    def with_arguments(self, *more: str) -> Step:
        """The same with further arguments."""
        return replace(self, argv=(*self.argv, *more))


class ToolWorker(Worker):
    """One zygote that builds and runs programs in any language.

    Attributes:
        has_built: a name of what was built, for the caller; "" for nothing.
    """

    _kind = "tools"
    _needed = (*NEEDED, "signals confined")

    def __init__(self, isolation: Isolation = Isolation.JAIL) -> None:
        super().__init__(isolation)
        self.has_built = ""
        self._box = 0  # a number of the zygote's box, which is lost with the zygote
        self._cleared = -1  # the box that was cleared last

    def _start(self) -> None:
        self.has_built = ""
        self._box += 1
        super()._start()

    def path(self, folder: str, name: str = "") -> str:
        """The path of a file in `built` or `work`, as its programs see it. Starts the zygote."""
        _ = self.in_force
        assert self.folder is not None
        return str(self.folder / "box" / folder / name)

    @contextlib.contextmanager
    def step(
        self,
        mode: str,
        step: Step,
        limits: RunLimits,
        *,
        files: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        joins: bool = False,
        clears: bool = False,
    ) -> Iterator[Run]:
        """A run of a program, which has ended on exit.

        Args:
            mode: "build", "program" or "command" (tools.py).
            step: the program. Without arguments, the files are written and nothing is started.
            limits: what it may use.
            files: texts by name, written to the folder where it starts.
            stdin: the content of its standard input.
            joins: whether standard error goes where standard output goes.
            clears: whether `built` is emptied first.

        Raises:
            SandboxDied: the zygote has died, and with it what was built.
        """
        order = {
            "argv": self._filled(step.argv),
            "files": dict(files or {}),
            "environment": ENVIRONMENT | self._filled_values(step.environment),
            "joins": joins,
            "folder": step.folder,
        }
        more = {"clears": clears, "starts": list(step.starts)}
        more |= {name: self._filled(getattr(step.grants, name)) for name in GRANTED}
        if clears:
            self.has_built = ""
        with self.run(mode, limits, stdin=stdin, capture=True, first=order, more=more) as run:
            if clears:
                self._cleared = self._box
            elif self._cleared != self._box:
                raise SandboxDied("what was built is lost")
            yield run

    def _filled_values(self, variables: Mapping[str, str]) -> dict[str, str]:
        return dict(zip(variables, self._filled([*variables.values()]), strict=True))

    def _filled(self, argv: Sequence[str]) -> list[str]:
        places: dict[str, Any] = {"{built}": self.path(BUILT), "{work}": self.path(WORK)}
        filled = []
        for part in argv:
            for name, place in places.items():
                part = part.replace(name, place.rstrip("/"))
            filled.append(part)
        return filled
