"""A repository of some size, and diffs against it: right, wrong and hostile."""

from __future__ import annotations

import difflib
import hashlib
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

_GIT = ("git", "-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "gc.auto=0")
_QUIET = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}

PRICES = """from shop.rates import CASES


def discount(price, percent):
    return price - percent


def total(prices):
    return sum(prices)
"""
RATES = "CASES = [(100, 10, 90), (50, 50, 25), (8, 25, 6)]\n"
TEST_PRICES = """import pytest

from shop.prices import discount, total
from shop.rates import CASES


@pytest.mark.parametrize(("price", "percent", "expected"), CASES)
def test_discount(price, percent, expected):
    assert discount(price, percent) == expected


def test_nothing_off():
    assert discount(7, 0) == 7


class TestTotal:
    def test_sum(self):
        assert total([1, 2, 3]) == 6

    @pytest.mark.skip(reason="later")
    def test_later(self):
        assert False
"""
TEST_STOCK = """import unittest

from shop.prices import discount


class StockTest(unittest.TestCase):
    def test_half(self):
        self.assertEqual(discount(10, 50), 5)

    def test_files(self):
        import os, tempfile
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a")
            with open(path, "w") as file:
                file.write("x")
            self.assertTrue(os.path.exists(path))
"""
FILES = {
    "shop/__init__.py": "",
    "shop/prices.py": PRICES,
    "shop/rates.py": RATES,
    "tests/test_prices.py": TEST_PRICES,
    "tests/test_stock.py": TEST_STOCK,
    "pyproject.toml": '[project]\nname = "shop"\nversion = "1"\n\n[tool.pytest.ini_options]\n'
    'addopts = "-q"\n',
    "README.md": "# Shop\n",
}
RIGHT = PRICES.replace("price - percent", "price * (100 - percent) / 100")


def git(folder: Path, *arguments: str) -> str:
    """What a command of git prints."""
    done = subprocess.run(
        [*_GIT, *arguments],
        cwd=folder,
        env=os.environ | _QUIET,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def make_repository(folder: Path, *, modules: int = 200, files: Mapping[str, str] = FILES) -> Path:
    """A repository with one commit: some files that matter, and many that do not."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    others = {
        f"shop/parts/group{number % 20}/module{number}.py": f"VALUE = {number}\n" * 40
        for number in range(modules)
    }
    for path, content in {**files, **others}.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content)
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def diff(edits: Mapping[str, str | None], files: Mapping[str, str] = FILES) -> str:
    """A git diff that gives files new contents; None removes one."""
    parts = []
    for path, after in edits.items():
        before = files.get(path)
        parts.append(f"diff --git a/{path} b/{path}\n")
        if before is None:
            parts.append("new file mode 100644\n")
        if after is None:
            parts.append("deleted file mode 100644\n")
        old = "/dev/null" if before is None else f"a/{path}"
        new = "/dev/null" if after is None else f"b/{path}"
        lines = difflib.unified_diff(
            (before or "").splitlines(keepends=True),
            (after or "").splitlines(keepends=True),
            old,
            new,
        )
        parts += lines
    return "".join(parts)


def checksum_of(folder: Path) -> str:
    """A checksum of all files below a folder, git's own included, with their permissions."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        state = path.lstat()
        found.update(f"{path.relative_to(folder)} {state.st_mode:o}\n".encode())
        if path.is_file() and not path.is_symlink():
            found.update(path.read_bytes())
    return found.hexdigest()
