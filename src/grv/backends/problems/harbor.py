"""Tasks of Harbor: a folder each, with `task.toml`, `instruction.md` and `tests/test.sh`.

The fields are those of Harbor 0.25, whose `task.toml` has the schema version 1.4.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...core.errors import UsageError
from ...files import is_number, read_toml
from ..protocols import Problem
from .prompts import filled
from .records import Converted, NotConverted, Record, Wanted

_CONFIG = "task.toml"
_LARGEST = 1 << 20  # bytes of an instruction
_DEEPEST = 3  # folders between the given one and a task
_WORKDIR = re.compile(r"^\s*WORKDIR\s+[\"']?(/[^\s\"']*)", re.MULTILINE | re.IGNORECASE)
_NAME = re.compile(r"[^a-z0-9._-]+")
_PROMPT = (
    "{question}\n\nThe working folder is WORKDIR. Answer with one unified diff in a ```diff block."
    " Paths are relative to the working folder."
)


def harbor_tasks(path: str) -> Iterator[Record]:
    """A record for each task below a folder, or for the folder itself. Links are not followed."""
    if not os.path.isdir(path):
        raise UsageError(f"{path}: not a folder; name the folder with the tasks")
    number = 0
    for place, names, files in os.walk(path, followlinks=False):
        depth = len(Path(place).relative_to(path).parts)
        names[:] = sorted(names) if depth < _DEEPEST and _CONFIG not in files else []
        if _CONFIG in files:
            number += 1
            config = os.path.join(place, _CONFIG)
            data = {"folder": place, "config": read_toml(config)}
            yield Record(data, config, number, Path(place).name)


def harbor(record: Record, wanted: Wanted) -> Converted:
    """A task of Harbor. Its candidates are diffs of the working folder."""
    folder = Path(record.text("folder"))
    config = record.part("config")
    environment = config.part("environment")
    verifier = config.part("verifier")
    _check_judged(folder, config, environment, verifier)
    name = config.part("task").text("name", record.source)
    question = _text(folder / "instruction.md")
    workdir = environment.text("workdir", "") or _workdir(folder)
    own_image = environment.text("docker_image", "")
    image = own_image or f"hb__{_NAME.sub('-', name.lower())}"
    limits = _limits(environment, verifier, wanted)
    check: dict[str, Any] = {"kind": "harbor", "task": str(folder), "image": image}
    check["workdir"] = workdir
    if (verifier.text("network_mode", "") or environment.text("network_mode", "public")) != (
        "no-network"
    ):
        check["network"] = True
    if limits:
        check["limits"] = limits
    template = wanted.prompt or _PROMPT.replace("WORKDIR", workdir)
    difficulty = config.part("metadata").data.get("difficulty")
    build = f"an image: podman build --tag {image} {folder / 'environment'}"
    return Converted(
        Problem(name, filled(template, question), check, question),
        difficulty=difficulty if isinstance(difficulty, str) else None,
        notes=() if own_image else (build,),
    )


def _check_judged(folder: Path, config: Record, environment: Record, verifier: Record) -> None:
    """Refuse tasks that one container without secrets cannot judge."""
    if config.data.get("steps"):
        raise NotConverted("it has several steps")
    if environment.data.get("os", "linux") != "linux":
        raise NotConverted("it needs another system than Linux")
    if environment.data.get("gpus"):
        raise NotConverted("it needs accelerators")
    if verifier.data.get("environment") is not None:
        raise NotConverted("its verifier has an environment of its own")
    if verifier.data.get("env"):
        raise NotConverted("its tests need variables, which may be keys")
    if verifier.data.get("collect"):
        raise NotConverted("its tests need what the agent's container collects")
    if any((folder / "environment").glob("*compose*.y*ml")):
        raise NotConverted("it needs several containers")
    if not (folder / "tests" / "test.sh").is_file():
        raise NotConverted("it has no tests/test.sh")
    if verifier.data.get("network_mode", environment.data.get("network_mode")) == "allowlist":
        raise NotConverted("its tests need a list of hosts")


def _text(path: Path) -> str:
    try:
        if path.is_symlink() or path.stat().st_size > _LARGEST:
            raise UsageError(f"{path}: must be a file of at most {_LARGEST:,} bytes")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read as text") from error


def _workdir(folder: Path) -> str:
    """The working folder that a Dockerfile sets."""
    path = folder / "environment" / "Dockerfile"
    found = _WORKDIR.findall(_text(path)) if path.is_file() else []
    if not found:
        raise NotConverted("it names no working folder")
    return str(found[-1]).rstrip("/") or "/"


def _limits(environment: Record, verifier: Record, wanted: Wanted) -> Mapping[str, float]:
    limits: dict[str, float] = {}
    seconds = verifier.data.get("timeout_sec")
    if is_number(seconds) and seconds > 0:
        limits["seconds"] = seconds * wanted.time_factor
    memory = environment.data.get("memory_mb")
    if is_number(memory) and memory > 0:
        limits["memory_mb"] = int(memory)
    return limits
