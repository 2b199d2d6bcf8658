"""An image for containers, made of the files of Debian's packages on this machine."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

IMAGE = "localhost/grv-test-python"
_PYTHON = Path("/usr/bin/python3")


def why_no_image() -> str:
    """Why no image can be made here; "" if one can."""
    if shutil.which("podman") is None:
        return "needs podman"
    if not _PYTHON.exists() or not Path("/etc/debian_version").exists():
        return "needs Debian's python3"
    return ""


def make_image(name: str = IMAGE) -> str:
    """Import an image with Debian's Python and a shell, unless it is there; its name."""
    known = ["podman", "image", "exists", name]
    if subprocess.run(known, check=False, timeout=60).returncode == 0:
        return name
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", dereference=True) as archive:
        for folder in ("tmp", "proc", "dev", "sys", "etc", "testbed"):
            entry = tarfile.TarInfo(folder)
            entry.type = tarfile.DIRTYPE
            entry.mode = 0o755
            archive.addfile(entry)
        for path in sorted(_files()):
            archive.add(path, path.lstrip("/"), recursive=False)
    subprocess.run(
        ["podman", "import", "--quiet", "-", name],
        input=content.getvalue(),
        check=True,
        capture_output=True,
        timeout=300,
    )
    return name


def _files() -> set[str]:
    python = os.path.realpath(_PYTHON)
    library = Path("/usr/lib") / Path(python).name
    wanted = {str(_PYTHON), python, os.path.realpath("/bin/sh"), "/bin/sh"}
    modules = {
        str(path)
        for path in library.rglob("*")
        if path.is_file() and not {"__pycache__", "test", "dist-packages"} & set(path.parts)
    }
    shared: set[str] = set()
    for path in [python, os.path.realpath("/bin/sh"), *modules]:
        if path == python or path.endswith("/dash") or path.endswith(".so"):
            shared |= _libraries(path)
    return wanted | modules | shared


def _libraries(path: str) -> set[str]:
    done = subprocess.run(["ldd", path], capture_output=True, text=True, check=False)
    return set(re.findall(r"(/\S+) \(0x", done.stdout))
