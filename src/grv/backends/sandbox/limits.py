"""What a run may use, how it ended, and which isolation was in force."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

from ...conditions import Level
from ...files import is_number, shown

MEBIBYTE = 1 << 20


class Isolation(enum.Enum):
    """How strongly candidates are isolated from the machine."""

    STRICT = "strict"  # the jail, plus namespaces for user, pid, net, ipc, uts and mount
    JAIL = "jail"  # Landlock, seccomp, no capabilities, limits; namespaces if the kernel allows
    UNSAFE = "unsafe"  # resource limits only: the candidate has the user's own rights
    # The jail; and containers for checks that name an image.
    PODMAN = "podman"
    DOCKER = "docker"
    GVISOR = "gvisor"

    @property
    def of_processes(self) -> Isolation:
        """How processes outside of containers are isolated."""
        return Isolation.JAIL if self in CONTAINERS else self

    @property
    def level(self) -> Level:
        """The level of verdicts that were given so."""
        match self:
            case Isolation.STRICT:
                return "strict"
            case Isolation.UNSAFE:
                return "unsafe"
        return "jail"


CONTAINERS = (Isolation.PODMAN, Isolation.DOCKER, Isolation.GVISOR)


NEEDED = ("landlock", "seccomp", "capabilities dropped")  # for the jail


@dataclass(frozen=True, slots=True)
class RunLimits:
    """What one run may use.

    Attributes:
        seconds: time per test, from the moment the candidate starts on it. Time that it waited
            for a processor does not count (clock.py).
        cpu_seconds: processor time per test, all threads together. None: the same as `seconds`.
        memory_mb: address space in addition to a bare interpreter's, in MiB.
        output_mb: size of a test's output or returned value, in MiB.
        files_mb: size of all files in the scratch directory, in MiB; 0 forbids writing files.
        threads: number of threads alive at once.
    """

    seconds: float = 10.0
    cpu_seconds: float | None = None
    memory_mb: int = 1024
    output_mb: float = 8.0
    files_mb: int = 64
    threads: int = 64

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name == "cpu_seconds" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise ValueError(f"{item.name} must be a number, not {value!r}")
            whole = item.name in ("memory_mb", "files_mb", "threads")
            if not is_number(value) or value < 0 or (value == 0 and item.name != "files_mb"):
                raise ValueError(f"{item.name} must be positive, not {shown(value)}")
            if whole and value != int(value):
                raise ValueError(f"{item.name} must be a whole number, not {value}")

    @property
    def output_bytes(self) -> int:
        """`output_mb` in bytes."""
        return int(self.output_mb * MEBIBYTE)

    def cpu_allowance(self, tests: int) -> int:
        """Whole seconds of processor time after which the kernel kills a process of n tests."""
        each = self.seconds if self.cpu_seconds is None else self.cpu_seconds
        return math.ceil(each * max(1, tests)) + 1

    def with_(self, changes: Mapping[str, float]) -> RunLimits:
        """A copy with some limits changed. Raises ValueError for an unknown name."""
        known = {item.name for item in fields(self)}
        for name in changes:
            if name not in known:
                raise ValueError(f"unknown limit {name!r}; there are {', '.join(sorted(known))}")
        return replace(self, **changes)  # type: ignore[arg-type]


DEFAULT_LIMITS = RunLimits()


class End(enum.Enum):
    """Why no message came."""

    TIMEOUT = "timeout"
    STARVED = "the machine is too busy"  # the process had hardly any processor for a very long time
    CLOSED = "closed"  # the other side closed the pipe
    MALFORMED = "malformed"
    TOO_LARGE = "too large"


@dataclass(frozen=True, slots=True)
class InForce:
    """The isolation that a worker's zygote has set up and tried out.

    Attributes:
        level: the level that the caller requested.
        landlock: the kernel's Landlock version, 0 for none.
        seccomp: the architecture of the filter, "" for none.
        namespaces: the namespaces in use.
        capabilities: whether candidates have the user's capabilities.
        missing: each piece that does not work here, with the reason.
    """

    level: Isolation
    landlock: int = 0
    seccomp: str = ""
    namespaces: tuple[str, ...] = ()
    capabilities: bool = True
    missing: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        on = [f"landlock {self.landlock}"] if self.landlock else []
        on += [f"seccomp {self.seccomp}"] if self.seccomp else []
        on += ["namespaces " + "+".join(self.namespaces)] if self.namespaces else []
        on += [] if self.capabilities else ["no capabilities"]
        return f"{self.level.value}: {', '.join([*on, 'rlimits'])}"


@dataclass(frozen=True, slots=True)
class ExitStatus:
    """How a child ended, as its zygote reports it.

    Attributes:
        exit_code: None if a signal ended it.
        signal: the signal's number, 0 for none.
        cause: why the judge or the zygote killed it: "stopped" (the judge was done, or the time
            was over), "threads", "files" or "overdue"; "" if it ended by itself.
        cpu_seconds: processor time used.
        peak_mb: peak resident memory.
    """

    exit_code: int | None
    signal: int = 0
    cause: str = ""
    cpu_seconds: float = 0.0
    peak_mb: float = 0.0
