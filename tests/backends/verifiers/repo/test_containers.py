"""Checks of kind repo in containers: the command line, and real ones where podman works."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from grv import Problem, UsageError, Verdict
from grv.backends.attacks import suite
from grv.backends.sandbox.limits import Isolation, RunLimits
from grv.backends.verifiers.repo import containers
from grv.backends.verifiers.repo.containers import Container, ContainerRun, check_image
from grv.verifiers import Checks
from support.images import make_image, why_no_image
from support.repositories import PRICES, RIGHT, checksum_of, diff, make_repository

LIMITS = RunLimits(seconds=60.0, memory_mb=512, files_mb=64, threads=128)
RUN = ContainerRun(
    Isolation.PODMAN,
    "an/image",
    Path("/the/copy"),
    Path("/the/program"),
    "grv-1",
    False,
    LIMITS,
    ("python3", "-I", "-B", "/grv-inside/inside.py"),
)
DIFF = diff({"shop/prices.py": RIGHT})
WRONG = diff({"shop/prices.py": PRICES.replace("price - percent", "price")})
STAND_IN = """#!/bin/sh
[ "$1" = version ] && exit 0
[ "$1" = rm ] && exit 0
printf '%s\\n' "$@" > "$RECORDED"
for word in "$@"; do case $word in --volume=*:/testbed:*) ;; esac; done
shift $(($# - 4))
exit 125
"""


def test_a_container_has_no_network_no_rights_and_limits() -> None:
    command = RUN.command_line()
    assert command[:2] == ["podman", "run"]
    for option in (
        "--rm",
        "--pull=never",
        "--network=none",
        "--read-only",
        "--cap-drop=ALL",
        "--security-opt=no-new-privileges",
        "--memory=512m",
        "--memory-swap=512m",
        "--pids-limit=128",
        "--volume=/the/copy:/testbed:ro",
        "--volume=/the/program:/grv-inside:ro",
        "--tmpfs=/tmp:rw,nosuid,nodev,size=64m,mode=1777",
        "--entrypoint=",
    ):
        assert option in command
    assert command[-5:] == ["an/image", "python3", "-I", "-B", "/grv-inside/inside.py"]
    assert not any(word.startswith(("--privileged", "--device", "--pid=host")) for word in command)
    # It ends by itself, also if grv is killed.
    assert any(word.startswith(("--timeout=", "--ulimit=cpu=")) for word in command)


def test_gvisor_is_a_runtime_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    (runtime,) = containers.RUNTIMES[Isolation.GVISOR]
    assert runtime[0] == "--runtime=runsc"
    assert RUN.command_line(runtime)[2:4] == ["--runtime=runsc", "--runtime-flag=network=none"]


@pytest.mark.parametrize("name", ["", "-v", "--privileged", "a b", "a\nb"])
def test_an_image_is_no_option(name: str) -> None:
    with pytest.raises(UsageError, match="image must be the name of an image"):
        check_image(name)


def test_a_container_that_does_not_start_is_not_the_candidates_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "docker"
    program.parent.mkdir()
    program.write_text(STAND_IN)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("RECORDED", str(tmp_path / "recorded"))
    containers.server_problem.cache_clear()
    monkeypatch.chdir(tmp_path)
    make_repository(tmp_path / "shop", modules=0)
    check: dict[str, Any] = {"kind": "repo", "repository": "shop", "runner": "unittest"}
    check |= {"image": "an/image", "tests": ["tests/test_stock.py"]}
    with Checks(workers=1, isolation=Isolation.DOCKER) as verifier:
        finding = verifier.find(Problem("p", check=check), DIFF)
    containers.server_problem.cache_clear()
    assert finding.verdict is Verdict.BROKEN
    assert "container" in finding.reason
    recorded = (tmp_path / "recorded").read_text().splitlines()
    assert recorded[0] == "run"
    assert "--network=none" in recorded
    assert "--ipc=none" in recorded
    assert recorded[-5] == "an/image"


def _runs(kind: Isolation, image: str) -> str:
    """Why no container of a kind runs here; "" if one does."""
    if problem := containers.why_not(kind):
        return problem
    for runtime in containers.RUNTIMES[kind]:
        options = ["--rm", "--network=none", "--pull=never", "--ulimit=nofile=64:64"]
        options.append("--ulimit=nproc=64:64")
        command = [containers.engine_of(kind), "run", *runtime, *options, image, "python3", "-V"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        if done.returncode == 0:
            return ""
    return f"no container of {kind.value} runs here: {done.stderr.strip()[-200:]}"


KINDS = [Isolation.PODMAN, pytest.param(Isolation.GVISOR, marks=pytest.mark.soak)]


@pytest.fixture(params=KINDS, ids=str)
def container(request: pytest.FixtureRequest) -> tuple[Isolation, str]:
    if problem := why_no_image():
        pytest.skip(problem)
    image = make_image()
    if problem := _runs(request.param, image):
        pytest.skip(problem)
    return request.param, image


@pytest.mark.slow
def test_changes_are_judged_in_a_real_container(
    container: tuple[Isolation, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    isolation, image = container
    monkeypatch.chdir(tmp_path)
    make_repository(tmp_path / "shop", modules=3)
    before = checksum_of(tmp_path)
    check: dict[str, Any] = {"kind": "repo", "repository": "shop", "runner": "unittest"}
    check |= {"image": image}
    check |= {"tests": ["tests/test_stock.py"], "limits": {"seconds": 20, "memory_mb": 512}}
    problem = Problem("p", check=check)
    endless = diff({"shop/prices.py": f"while True: pass\n{PRICES}"})
    with Checks(workers=1, isolation=isolation, limits=LIMITS) as verifier:
        right = verifier.find(problem, DIFF)
        assert right.verdict is Verdict.PASSED, right
        assert right.evidence["isolation"].startswith(f"{isolation.value}: no network, read-only")
        assert verifier.find(problem, WRONG).verdict is Verdict.FAILED
        if isolation is Isolation.PODMAN:
            monkeypatch.setattr(containers, "GRACE", 2.0)
            timed_out = verifier.find(problem, endless)
            assert (timed_out.verdict, timed_out.reason) == (Verdict.FAILED, "timeout")
    assert checksum_of(tmp_path) == before
    listed = ["podman", "ps", "--all", "--format={{.Names}}", "--filter=name=grv-"]
    names = subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split()
    assert names == []


@pytest.mark.slow
def test_attacks_are_held_in_a_real_container(container: tuple[Isolation, str]) -> None:
    isolation, image = container
    with (
        suite.Surroundings() as around,
        Checks(workers=1, isolation=isolation, refute=False) as verifier,
    ):
        trials = list(suite.run_repository_attacks(verifier, around, image))
        bad = [(trial.name, trial.finding) for trial in trials if not trial.ok]
        assert bad == []
        assert around.damage() == []


def test_a_missing_program_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UsageError, match="--isolation gvisor: runsc is not installed"):
        Container(Isolation.GVISOR, "an/image")
    with pytest.raises(UsageError, match="--isolation podman: podman is not installed"):
        Container(Isolation.PODMAN, "an/image")
