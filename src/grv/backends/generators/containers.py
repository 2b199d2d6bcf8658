"""A container that a program works in: it sees its run folder and nothing else of the machine.

Agents ask models over the network, so the container has one. It has no capabilities, no way to new
privileges, and of the environment only the variables that are named. The program `podman` or
`docker` of the user's machine starts it, and nothing is downloaded.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...core.errors import UsageError

ENGINES = ("podman", "docker")
TREE = "/work"  # the folder that the program works in
FILES = "/grv"  # the task, and the files that the program may write
_MARK = "container"  # the file of a run folder that names the engine of its container
_SECONDS = 60.0
_MOST = 4096  # processes, and open files of each


@dataclass(frozen=True)
class AgentContainer:
    """How a program is run in a container.

    Attributes:
        image: the name of an image that is on this machine.
        engine: "podman" or "docker".
        variables: the names of the variables that the program may see, such as that of its key.
    """

    image: str
    engine: str = "podman"
    variables: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.image or self.image.startswith("-") or any(ord(c) <= 32 for c in self.image):
            raise UsageError(f"an image is named by a word, not {self.image!r}")
        if self.engine not in ENGINES:
            raise UsageError(f"containers are started by {' or '.join(ENGINES)}")
        for name in self.variables:
            if not name.replace("_", "a").isalnum():
                raise UsageError(f"{name!r} is no name of a variable")

    @classmethod
    def here(cls, image: str, variables: Sequence[str] = ()) -> AgentContainer:
        """A container of the first engine that is installed; a UsageError if none is."""
        engine = next((name for name in ENGINES if shutil.which(name)), None)
        if engine is None:
            raise UsageError("a container needs podman or docker, and neither is installed")
        return cls(image, engine, tuple(variables))

    def command_line(
        self,
        folder: Path,
        objects: str | None,
        command: Sequence[str],
        own: Mapping[str, str],
    ) -> list[str]:
        """The command that runs the program in a container.

        Args:
            folder: the run folder; its name is that of the container.
            objects: the folder with the objects of the repository, which the copy reads.
            command: the program and its arguments, with paths of the container.
            own: variables that grv sets.
        """
        options = [
            "--rm",
            "--interactive",
            f"--name={folder.name}",
            "--pull=never",
            "--cap-drop=ALL",
            "--security-opt=no-new-privileges",
            f"--pids-limit={_MOST}",
            *_own_limits(),
            "--tmpfs=/tmp:rw,nosuid,nodev,mode=1777",
            f"--volume={folder / 'tree'}:{TREE}:rw",
            f"--volume={folder / 'files'}:{FILES}:rw",
            f"--workdir={TREE}",
            "--entrypoint=",
            "--env=HOME=/tmp",
        ]
        if objects is not None:
            options.append(f"--volume={objects}:{objects}:ro")
        if self.engine == "docker":
            options.append(f"--user={os.getuid()}:{os.getgid()}")
        options += [f"--env={name}" for name in self.variables]  # with the value of this process
        options += [f"--env={name}={value}" for name, value in own.items()]
        return [self.engine, "run", *options, self.image, *command]

    def mark(self, folder: Path) -> None:
        """Note in a run folder that it has a container, which must end with the folder."""
        (folder / _MARK).write_text(self.engine, encoding="ascii")


def _own_limits() -> list[str]:
    """No higher limits than this process has: an engine without rights could not set them."""
    limits = {"nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC}
    options = []
    for name, number in limits.items():
        _, hard = resource.getrlimit(number)
        most = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
        options.append(f"--ulimit={name}={most}:{most}")
    return options


def remove_container(folder: Path) -> None:
    """End the container of a run folder, if it has one."""
    try:
        engine = (folder / _MARK).read_text(encoding="ascii")
    except (OSError, ValueError):
        return
    if engine not in ENGINES:
        return
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(
            [engine, "rm", "--force", folder.name],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
