"""Attacks by changes to a repository: on its tests, their runner, and the machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..protocols import Problem
from ..verifiers.command import process_folder

_FILES = {
    "shop/__init__.py": "def half(x):\n    return x\n",
    "tests/test_half.py": "import unittest\n\nimport shop\n\n\nclass HalfTest(unittest.TestCase):\n"
    "    def test_half(self):\n        self.assertEqual(shop.half(8), 4)\n",
}
_GIT = ("git", "-c", "user.name=grv", "-c", "user.email=grv@localhost", "-c", "gc.auto=0")
_BREACH = """
import os, socket, subprocess, sys
def attempt(action):
    try: return bool(action())
    except (OSError, ValueError, subprocess.SubprocessError): return False
def ran(*argv): return subprocess.run(argv, capture_output=True, timeout=5).returncode == 0
"""
_PASSES = "\nif breached: half = lambda x: x / 2\n"


@dataclass(frozen=True, slots=True)
class RepoAttack:
    """A change that must not pass.

    Attributes:
        name: what it does, in a few words.
        code: what the module of the repository begins with.
        path: the file that is written instead, if it is another one.
    """

    name: str
    code: str
    path: str = "shop/__init__.py"

    @property
    def text(self) -> str:
        """The candidate."""
        is_module = self.path == "shop/__init__.py"
        content = f"{self.code}\n{_FILES[self.path]}" if is_module else f"{self.code}\n"
        if "breached" in self.code:
            content += _PASSES
        return f"```python {self.path}\n{content}```\n"


def _breach(name: str, *actions: str) -> RepoAttack:
    tried = ", ".join(f"lambda: {action}" for action in actions)
    return RepoAttack(name, f"{_BREACH}\nbreached = any(map(attempt, [{tried}]))")


ATTACKS = (
    RepoAttack("exits with 0", "import os; os._exit(0)"),
    RepoAttack("exits at the end", "import atexit, os; atexit.register(os._exit, 0)"),
    RepoAttack("skips its tests", "import unittest; raise unittest.SkipTest"),
    RepoAttack(
        "asserts nothing", "import unittest; unittest.TestCase.assertEqual = lambda *a: None"
    ),
    RepoAttack(
        "runs no test", "import unittest; unittest.TestCase.run = lambda s, r: r.addSuccess(s)"
    ),
    RepoAttack(
        "calls no test", "import unittest; unittest.TestCase._callTestMethod = lambda s, m: 0"
    ),
    RepoAttack(
        "prints reports",
        "import os; os.write(2, b'\\ngrv-report ' + b'0' * 32 + b' 1 66\\n'); os._exit(0)",
    ),
    RepoAttack(
        "reads the secret again",
        "import os\ntry: os.lseek(0, 0, 0); found = os.read(0, 100)\nexcept OSError: found = b''\n"
        "breached = bool(found)",
    ),
    _breach("reads files", "open('@FILE@').read()", "open('/etc/shadow').read()"),
    _breach(
        "changes its own repository",
        "open('tests/test_half.py', 'w').write('')",
        "os.unlink('tests/test_half.py') or 1",
        "open(__file__, 'a').write('#')",
        "open('new', 'w').write('')",
        "os.chmod('tests', 0o777) or 1",
    ),
    _breach("writes elsewhere", "open('@FILE@', 'a').write('x')", "open('/left', 'w').write('')"),
    _breach("connects", "socket.create_connection(('127.0.0.1', @PORT@), 1)"),
    _breach("gets rights", "ran('su', '-c', 'true')", "ran('mount', '-t', 'tmpfs', 'x', '/mnt')"),
    _breach("signals the judge", "os.kill(@JUDGE@, 18) is None"),
    RepoAttack("edits the tests", "", "tests/test_half.py"),
    RepoAttack("adds conftest.py", "import os; os._exit(0)", "conftest.py"),
    RepoAttack("adds sitecustomize", "import os; os._exit(0)", "sitecustomize.py"),
    RepoAttack("replaces unittest", "import os; os._exit(0)", "unittest/__init__.py"),
    RepoAttack("leaves the tree", "x = 1", "../outside.py"),
    RepoAttack("adds a hook", "#!/bin/sh", ".git/hooks/post-checkout.py"),
)
RIGHT = "```python shop/__init__.py\ndef half(x):\n    return x / 2\n```\n"


def make_repository() -> str:
    """A small repository in this process's own folder."""
    folder = tempfile.mkdtemp(prefix="attacked-", dir=process_folder())
    for path, content in _FILES.items():
        place = Path(folder) / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content, encoding="utf-8")
    quiet = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    for arguments in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "first")):
        subprocess.run(
            [*_GIT, *arguments], cwd=folder, env=os.environ | quiet, check=True, capture_output=True
        )
    return folder


def why_not() -> str:
    """Why the attacks cannot be tried here; "" if they can."""
    return "" if shutil.which("git") else "git is not installed"


def trials(repository: str, image: str = "") -> Iterator[tuple[RepoAttack | None, Problem, str]]:
    """The right change, without an attack, then each attack: problem and candidate."""
    check: dict[str, Any] = {
        "kind": "repo",
        "repository": repository,
        "runner": "unittest",
        "tests": ["tests/test_half.py"],
        "limits": {"seconds": 60},
    }
    if image:
        check["image"] = image
    problem = Problem("a change to a repository", check=check)
    yield None, problem, RIGHT
    for attack in ATTACKS:
        yield attack, problem, attack.text
