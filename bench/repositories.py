"""What a check of kind `repo` costs, against `git worktree add` and pytest by hand.

    python bench/repositories.py [--quick] [--files 3000]

By hand, a candidate gets a worktree: `git worktree add`, `git apply`, `python -m pytest` on the
same files, `git worktree remove`. Both ways use the same interpreter and options, and write no
compiled modules. The figures are processor time of all processes, in turns; `each_turn` has the
ratio of each turn. A wrong candidate runs its tests once. A right one runs them twice in grv: as
they are, and rewritten so that they must fail. `copy` is the copy alone, by hard links.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import Any

from grv.backends.protocols import Problem
from grv.backends.verifiers.pool import CheckVerifier
from grv.backends.verifiers.repo.changes import Changes, NewFile
from grv.backends.verifiers.repo.git import Repository
from grv.backends.verifiers.repo.workspace import Workspace
from grv.core.values import Verdict
from sandbox import below, since, used

GIT = ("git", "-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "gc.auto=0")
CODE = "def half(x):\n    return x\n"
TEST = "from shop.half import half\n\n\ndef test_half():\n    assert half(8) == 4\n"
OPTIONS = ("-q", "-p", "no:cacheprovider", "-p", "no:randomly")
numbers = count()


def git(folder: Path, *arguments: str) -> None:
    subprocess.run([*GIT, *arguments], cwd=folder, check=True, capture_output=True)


def make_repository(folder: Path, files: int) -> None:
    """A repository with this number of files of 4 kB, a function and its test."""
    content = {"shop/__init__.py": "", "shop/half.py": CODE, "tests/test_half.py": TEST}
    for number in range(files):
        content[f"shop/part{number % 50}/module{number}.py"] = f"VALUE = {number:08d}\n" * 240
    for path, text in content.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")


def candidate(*, right: bool) -> str:
    """A diff that no other candidate has."""
    new = f"    return x / {2 if right else 3}  # {next(numbers)}"
    head = "--- a/shop/half.py\n+++ b/shop/half.py\n@@ -1,2 +1,2 @@\n"
    return f"{head} def half(x):\n-    return x\n+{new}\n"


def by_hand(repository: Path, text: str, *, right: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        git(repository, "worktree", "add", "--detach", str(tree))
        subprocess.run([*GIT, "apply"], cwd=tree, input=text.encode(), check=True)
        command = [sys.executable, "-B", "-m", "pytest", *OPTIONS, "tests/test_half.py"]
        done = subprocess.run(command, cwd=tree, capture_output=True, check=False)
        assert (done.returncode == 0) == right, done.stdout
        git(repository, "worktree", "remove", "--force", str(tree))


def ours(verifier: CheckVerifier, problem: Problem, text: str, *, right: bool) -> None:
    finding = verifier.find(problem, text)
    assert finding.verdict is (Verdict.PASSED if right else Verdict.FAILED), finding


def measured(repository: Path, runs: int, turns: int, *, right: bool) -> dict[str, Any]:
    """Milliseconds of processor time for a candidate, both ways in turns."""
    command = ["python", "-m", "pytest", *OPTIONS]
    check = {"kind": "repo", "repository": str(repository), "tests": ["tests/test_half.py"]}
    problem = Problem("p", check={**check, "command": command})
    rows = []
    with CheckVerifier(workers=1, allow_commands=True) as verifier:
        ours(verifier, problem, candidate(right=right), right=right)
        for _ in range(turns):
            before = used([os.getpid()])
            for _ in range(runs):
                by_hand(repository, candidate(right=right), right=right)
            hand = since(before)
            before = used([os.getpid(), *below(os.getpid())])
            for _ in range(runs):
                ours(verifier, problem, candidate(right=right), right=right)
            rows.append((hand / runs, since(before) / runs))
    return {
        "by_hand_ms": round(statistics.median(hand for hand, _ in rows), 1),
        "grv_ms": round(statistics.median(grv for _, grv in rows), 1),
        "times_as_much": round(statistics.median(grv / hand for hand, grv in rows), 2),
        "each_turn": [round(grv / hand, 2) for hand, grv in rows],
    }


def copies(repository: Path, turns: int) -> dict[str, Any]:
    """Milliseconds of a copy by hard links, of one with files of its own, and of a worktree."""
    source = Repository(str(repository))
    workspace = Workspace(source, source.commit("HEAD"))
    changes = Changes({"shop/half.py": NewFile(b"x")})
    figures: dict[str, list[float]] = {"linked": [], "copied": [], "worktree": []}
    for _ in range(turns):
        for name, writable in (("linked", False), ("copied", True)):
            started = time.process_time()
            with workspace.copy(changes, writable=writable):
                pass
            figures[name].append(1000 * (time.process_time() - started))
        with tempfile.TemporaryDirectory() as folder:
            before = used([os.getpid()])
            git(repository, "worktree", "add", "--detach", f"{folder}/tree")
            git(repository, "worktree", "remove", "--force", f"{folder}/tree")
            figures["worktree"].append(since(before))
    started = time.process_time()
    assert workspace.is_unchanged()
    looked = 1000 * (time.process_time() - started)
    workspace.remove()
    medians = {f"{name}_ms": round(statistics.median(all_), 1) for name, all_ in figures.items()}
    return {**medians, "look_at_the_commit_ms": round(looked, 1)}


def main() -> None:
    runs, turns = (1, 1) if "--quick" in sys.argv else (3, 5)
    files = int(sys.argv[sys.argv.index("--files") + 1]) if "--files" in sys.argv else 3000
    with tempfile.TemporaryDirectory() as folder:
        repository = Path(folder) / "shop"
        repository.mkdir()
        make_repository(repository, files)
        figures = {
            "files": files,
            "load": round(os.getloadavg()[0], 1),
            "copy": copies(repository, turns),
            "wrong": measured(repository, runs, turns, right=False),
            "right": measured(repository, runs, turns, right=True),
        }
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
