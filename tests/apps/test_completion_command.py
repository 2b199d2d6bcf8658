"""`grv completion`: what real shells complete."""

from __future__ import annotations

import os
import pty
import select
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from grv.apps.completion import SHELLS, nodes
from support.commands import here, refuses

CASES = [
    ("grv so", ["solve"]),
    ("grv runs sh", ["show"]),
    ("grv solve --total-b", ["--total-budget"]),
    ("grv doctor --isolation st", ["strict"]),
    ("grv serve job.toml --require b", ["best"]),
    ("grv init ag", ["agent"]),
    ("grv solve --out --bud", []),  # the value of --out
]


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    every = nodes()
    for name, made in SHELLS.items():
        (folder / name).write_text(made(every) + "\n")
    return folder


def shell(*words: object) -> str:
    ran = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


@pytest.mark.parametrize(("line", "wanted"), CASES)
def test_bash_completes(scripts: Path, line: str, wanted: list[str]) -> None:
    words = line.split(" ")
    code = (
        f"source {shlex.quote(str(scripts / 'bash'))}; COMP_WORDS=({shlex.join(words)});"
        f' COMP_CWORD={len(words) - 1}; _grv; printf "%s\\n" "${{COMPREPLY[@]}}"'
    )
    assert shell("bash", "--norc", "-c", code).split() == wanted


@pytest.mark.parametrize(
    ("words", "wanted"),
    [(["--isolation", "="], ["jail", "strict"]), (["--isolation", "=", "st"], ["strict"])],
)
def test_bash_completes_a_value_after_an_equals_sign(
    scripts: Path, words: list[str], wanted: list[str]
) -> None:
    line = ["grv", "doctor", *words]
    code = (
        f"source {shlex.quote(str(scripts / 'bash'))}; COMP_WORDS=({shlex.join(line)});"
        f' COMP_CWORD={len(line) - 1}; _grv; printf "%s\\n" "${{COMPREPLY[@]}}"'
    )
    assert set(wanted) <= set(shell("bash", "--norc", "-c", code).split())


def test_bash_has_the_function_at_the_command(scripts: Path) -> None:
    code = f"source {shlex.quote(str(scripts / 'bash'))}; complete -p grv"
    assert shell("bash", "--norc", "-c", code) == "complete -o default -F _grv grv\n"


@pytest.mark.parametrize(("line", "wanted"), CASES[:6])
def test_fish_completes(scripts: Path, line: str, wanted: list[str]) -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    code = f"source {shlex.quote(str(scripts / 'fish'))}; complete -C {shlex.quote(line)}"
    found = [row.partition("\t")[0] for row in shell("fish", "-N", "-c", code).splitlines()]
    assert found == wanted


@pytest.mark.parametrize(("line", "wanted"), CASES[:6])
def test_zsh_completes(scripts: Path, tmp_path: Path, line: str, wanted: list[str]) -> None:
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not installed")
    shell("zsh", "-n", scripts / "zsh")
    # A terminal is typed into: zsh completes nowhere else.
    (tmp_path / "_grv").write_text((scripts / "zsh").read_text())
    start = f"fpath=({shlex.quote(str(tmp_path))} $fpath); autoload -Uz compinit; compinit -u -D"
    (tmp_path / ".zshrc").write_text(f"{start}\nPS1=ready%%\n")
    process, terminal = pty.fork()
    if process == 0:
        os.execvpe("zsh", ["zsh", "-i"], {**os.environ, "ZDOTDIR": str(tmp_path), "TERM": "dumb"})
    try:
        read_until(terminal, "ready%")
        os.write(terminal, f"{line}\t".encode())
        read_until(terminal, f"{line.rpartition(' ')[0]} {wanted[0]}")
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.close(terminal)


def read_until(terminal: int, wanted: str) -> None:
    """Read what a program writes to its terminal, until it has written this text."""
    text = ""
    end = time.monotonic() + 20
    while wanted not in text:
        assert select.select([terminal], [], [], max(0.0, end - time.monotonic()))[0], text
        text += os.read(terminal, 4096).decode(errors="replace").replace("\a", "")


def test_the_command_prints_the_script(scripts: Path) -> None:
    assert here("completion", "bash").out == (scripts / "bash").read_text()


def test_another_shell_is_refused_with_a_hint() -> None:
    assert "did you mean fish" in refuses(["completion", "fisch"], "bash, zsh, fish")
