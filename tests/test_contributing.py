"""The pages that explain how to add something: each is followed to the letter, in a copy.

The paragraph before a block says what is done with it:

- "Create `FILE`:" makes a file.
- "In `FILE`, find this line:" changes a file, with "Add above it:", "Add below it:" or "Replace it
  with:" after it. The line must be there exactly once.
- A block of `sh` holds commands, which must succeed. "It prints ...:" is what they print, in any
  order.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HOWTO = ROOT / "docs" / "howto"
BLOCK = re.compile(r"^(`{3,})(\w+)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
COPIED = [
    "src",
    "tests",
    "docs",
    "examples",
    "pyproject.toml",
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
]
IGNORED = shutil.ignore_patterns("__pycache__", ".*_cache", "*.png", "figures", "golden", "assets")
# For each page: tests that list what there is. No page says to change them.
PAGES = {
    "add-a-policy.md": ["tests/apps/test_public_names.py"],
    "add-a-score.md": ["tests/apps/test_public_names.py"],
    "add-a-check.md": ["tests/backends/test_shown_problems.py", "-k", "page"],
    "add-an-option.md": ["tests/backends/test_specs.py"],
}


@dataclass(frozen=True)
class Block:
    """A block of a page, and the paragraph before it."""

    before: str
    language: str
    content: str


def blocks(page: str) -> list[Block]:
    text = (HOWTO / page).read_text(encoding="utf-8")
    found = []
    start = 0
    for match in BLOCK.finditer(text):
        paragraph = text[start : match.start()].strip().rpartition("\n\n")[2]
        found.append(Block(" ".join(paragraph.split()), match[2], match[3]))
        start = match.end()
    return found


class Copy:
    """A copy of the repository in which a page is followed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.changed: list[str] = []
        self._printed = ""
        self._file = ""
        self._line = ""
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, folder / name, ignore=IGNORED)
            else:
                shutil.copy(ROOT / name, folder / name)

    def follow(self, block: Block) -> None:
        """Do what the page says about a block."""
        if block.language == "sh":
            commands = block.content.splitlines()
            self._printed = "".join(self.run(shlex.split(command)) for command in commands)
        elif match := re.search(r"Create `([^`]+)`:$", block.before):
            path = self.folder / match[1]
            assert not path.exists(), f"{match[1]} is there already"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.content, encoding="utf-8")
            self.changed.append(match[1])
        elif match := re.search(r"In `([^`]+)`, find this line:$", block.before):
            self._file = match[1]
            self._line = block.content
        elif match := re.search(r"(Add above it|Add below it|Replace it with):$", block.before):
            self._change(match[1], block.content)
        elif re.search(r"It prints\b.*:$", block.before):
            for line in block.content.splitlines():
                assert line in self._printed, f"{line!r} is not in:\n{self._printed}"
        else:
            raise AssertionError(f"the page does not say what to do with a block: {block.before}")

    def _change(self, how: str, content: str) -> None:
        path = self.folder / self._file
        text = path.read_text(encoding="utf-8")
        line = self._line
        places = re.findall(rf"^{re.escape(line)}", text, re.MULTILINE)
        assert len(places) == 1, f"{self._file} has this {len(places)} times: {line}"
        new = {
            "Add above it": content + line,
            "Add below it": line + content,
            "Replace it with": content,
        }
        path.write_text(text.replace(line, new[how], 1), encoding="utf-8")
        self.changed.append(self._file)

    def run(self, words: list[str]) -> str:
        """What a command prints; it runs the code of the copy, with this Python."""
        python = {"python": [sys.executable], "grv": [sys.executable, "-m", "grv"]}
        words = [*python.get(words[0], [words[0]]), *words[1:]]
        if "pytest" in words:
            words += ["-p", "no:randomly", "-p", "no:cacheprovider", "-n", "0"]
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.folder / "src"),
            "CI": "1",  # properties are tried on the same examples each time
            "GRV_EXAMPLES": "10",
            "COLUMNS": "100",
            "TERM": "dumb",
        }
        ran = subprocess.run(
            words, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=200
        )
        said = ran.stdout + ran.stderr
        assert ran.returncode == 0, f"{shlex.join(words)}\n{said}"
        return said


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_a_page_can_be_followed(page: str, tmp_path: Path) -> None:
    copy = Copy(tmp_path)
    where = "import grv; print(grv.__file__)"
    assert copy.run(["python", "-c", where]).startswith(str(tmp_path))
    for block in blocks(page):
        copy.follow(block)

    copy.run(["python", "-m", "pytest", "-q", *PAGES[page]])
    code = [name for name in copy.changed if name.startswith(("src/", "tests/"))]
    copy.run(["python", "-m", "ruff", "check", *code])
    copy.run(["python", "-m", "ruff", "format", "--check", *code])


@pytest.mark.parametrize("page", PAGES)
def test_a_page_changes_one_line_of_one_file_of_code_to_register(page: str) -> None:
    """What is added has a file of its own. An option is a field, and its use."""
    found = [match[1] for match in map(_changed_file, blocks(page)) if match is not None]
    code = [name for name in found if name.startswith(("src/", "tests/"))]
    assert len(set(code)) == 1
    assert len(code) == (2 if page == "add-an-option.md" else 1)


def _changed_file(block: Block) -> re.Match[str] | None:
    return re.search(r"In `([^`]+)`, find this line:$", block.before)


def test_the_pages_are_in_the_site_and_in_the_guide_for_contributors() -> None:
    assert {path.name for path in HOWTO.glob("add-a*.md")} == PAGES.keys()
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for page in PAGES:
        assert f"howto/{page}" in site
        assert f"docs/howto/{page}" in guide


def test_the_families_of_options_are_where_the_page_says() -> None:
    text = (HOWTO / "add-an-option.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| `([\w/.]+)` \|", text, re.MULTILINE)
    assert len(rows) >= 5
    for names, path in rows:
        code = (ROOT / path).read_text(encoding="utf-8")
        for name in re.findall(r"\w+", names):
            assert f"class {name}(" in code, f"{path}: {name}"
