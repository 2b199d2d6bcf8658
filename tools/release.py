"""Make a release: `make release version=0.2.0`.

It works in a temporary clone. Only if every step succeeds, the commit and the tag come into this
repository, and the files into `dist/`. Nothing is published.

1. Check that the tree is clean and that the version is a later one.
2. Write the version, and give the changelog's entries a section of their own.
3. Build wheel and sdist twice, and compare the bytes.
4. Check their metadata with `twine check --strict`.
5. Install the wheel for every Python of this machine; run the README's example and the demo there.
6. Commit and tag.
"""

from __future__ import annotations

import argparse
import datetime
import filecmp
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.environments import ROOT, Environment
from support.pythons import Python, absent, installed, make_environment

VERSION = re.compile(r"\d+\.\d+\.\d+")
UNRELEASED = "## Unreleased\n"


class NotReleased(Exception):
    """Why there is no release, in one line."""


def main(words: Sequence[str] | None = None) -> int:
    """Make the release; 0, or 2 with the reason."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("version", help="the new version, such as 0.2.0")
    parser.add_argument("--date", default=f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}")
    arguments = parser.parse_args(words)
    try:
        release(ROOT, arguments.version, arguments.date)
    except NotReleased as reason:
        print(f"no release: {reason}", file=sys.stderr)
        return 2
    return 0


def release(repository: Path, version: str, date: str) -> None:
    """All steps; the repository changes in the last one only."""
    if git(repository, "status", "--porcelain"):
        raise NotReleased("the work tree has changes; commit or remove them")
    if git(repository, "tag", "--list", f"v{version}"):
        raise NotReleased(f"the tag v{version} exists")
    with tempfile.TemporaryDirectory(prefix="grv-release-") as scratch:
        tree = Path(scratch, "tree")
        git(repository, "clone", "--quiet", "--no-hardlinks", str(repository), str(tree))
        write_version(tree, version)
        write_changelog(tree / "CHANGELOG.md", version, date)
        write_citation(tree, version, date)
        commit(repository, tree, f"Version {version}")
        built = build_twice(tree, Path(scratch))
        run(sys.executable, "-m", "twine", "check", "--strict", *map(str, built), cwd=tree)
        (wheel,) = [file for file in built if file.suffix == ".whl"]
        for minor in absent():
            say(f"Python {minor}: not on this machine, not tried")
        for python in installed().values():
            say(f"Python {python.version}: {try_wheel(wheel, python, tree, Path(scratch))}")
        git(tree, "tag", f"v{version}", "--annotate", "--message", f"grv {version}")
        git(repository, "pull", "--quiet", "--ff-only", str(tree), "HEAD")
        git(repository, "fetch", "--quiet", str(tree), "tag", f"v{version}")
        folder = repository / "dist"
        folder.mkdir(exist_ok=True)
        for file in built:
            shutil.copy2(file, folder)
            say(f"dist/{file.name}")
    say(f"commit and tag v{version} are in this repository; nothing is published")


def write_version(tree: Path, version: str) -> None:
    """The version, in the one place that has it."""
    path = tree / "src" / "grv" / "__init__.py"
    text = path.read_text(encoding="utf-8")
    (old,) = re.findall(r'^__version__ = "(.*)"$', text, re.MULTILINE)
    if not VERSION.fullmatch(version):
        raise NotReleased(f"a version has three numbers, such as 0.2.0; not {version!r}")
    if numbers(version) <= numbers(old):
        raise NotReleased(f"{version} is not later than {old}")
    path.write_text(text.replace(f'"{old}"', f'"{version}"', 1), encoding="utf-8")


def write_changelog(path: Path, version: str, date: str) -> None:
    """What was unreleased gets a section with the version and the date."""
    text = path.read_text(encoding="utf-8")
    before, _, rest = text.partition(UNRELEASED)
    entries = rest.partition("\n## ")[0]
    if not re.search(r"^- ", entries, re.MULTILINE):
        raise NotReleased(f"{path.name} has no entries under Unreleased")
    text = f"{before}{UNRELEASED}\n## {version} - {date}\n{rest}"
    path.write_text(text, encoding="utf-8")


def write_citation(tree: Path, version: str, date: str) -> None:
    """The version and the date of the citation, which the documents show, too."""
    shown = tree / "docs" / "cite.md"
    text = shown.read_text(encoding="utf-8")
    text, count = re.subn(r"version = \{[\d.]+\}", f"version = {{{version}}}", text)
    if count != 1:
        raise NotReleased(f"docs/cite.md has {count} versions, not one")
    shown.write_text(text, encoding="utf-8")
    path = tree / "CITATION.cff"
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"^date-released: .*\n", "", text, flags=re.MULTILINE)
    lines = f"version: {version}\ndate-released: {date}\n"
    path.write_text(re.sub(r"^version: .*\n", lines, text, flags=re.MULTILINE), encoding="utf-8")


def commit(repository: Path, tree: Path, message: str) -> None:
    """Commit all changes of the clone, in the name of the person who releases."""
    for key in ("user.name", "user.email"):
        value = git(repository, "config", "--get", key, check=False)
        if value:
            git(tree, "config", key, value)
    git(tree, "commit", "--quiet", "--all", "--message", message)


def build_twice(tree: Path, scratch: Path) -> list[Path]:
    """Wheel and sdist; two builds, in folders of different names, must be equal."""
    builds = []
    for name in ("first", "another"):
        source = scratch / name / "source"
        git(tree, "clone", "--quiet", str(tree), str(source))
        target = scratch / name / "built"
        words = ["hatchling", "build", "--target", "sdist", "--target", "wheel"]
        variables = os.environ | {"SOURCE_DATE_EPOCH": git(tree, "log", "-1", "--format=%ct")}
        command = [sys.executable, "-m", *words, "--directory", str(target)]
        run(*command, cwd=source, variables=variables)
        builds.append(target)
    names = sorted(path.name for path in builds[0].iterdir())
    _, different, missing = filecmp.cmpfiles(builds[0], builds[1], names, shallow=False)
    if different or missing or len(names) != 2:
        raise NotReleased(f"two builds differ: {', '.join([*different, *missing]) or names}")
    return [builds[0] / name for name in names]


def try_wheel(wheel: Path, python: Python, tree: Path, scratch: Path) -> str:
    """Install the wheel in an empty environment, and run what newcomers are shown first."""
    folder = scratch / f"python-{python.minor}"
    environment = make_environment(folder, python, [str(wheel)])
    example, table = shown_first(tree)
    (folder / "example.py").write_text(example, encoding="utf-8")
    version = wheel.name.split("-")[1]
    steps = [
        (["grv", "--version"], version),
        (["python", "example.py"], "solved "),
        (["grv", "demo", "--replay"], table),
    ]
    for words, expected in steps:
        check(environment, words, expected)
    return f"installed; {len(steps)} of {len(steps)} first commands print what they should"


def shown_first(tree: Path) -> tuple[str, str]:
    """The README's example, and the table of the demo on the start page."""
    (example,) = fences(tree / "README.md", "python")
    (table,) = (text for text in fences(tree / "docs" / "start.md", "text") if "hindsight" in text)
    return example, table


def fences(page: Path, language: str) -> list[str]:
    """The parts of a page that are in a language."""
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def check(environment: Environment, words: Sequence[str], expected: str) -> None:
    """Run a command; it must succeed and print what is expected."""
    ran = environment.run(*words, cwd=environment.folder)
    if ran.code or expected not in ran.out:
        raise NotReleased(f"{' '.join(words)} in {environment.folder.name}: {ran.err or ran.out}")


def numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version, for comparing."""
    return tuple(int(part) for part in version.split("."))


def git(repository: Path, *words: str, check: bool = True) -> str:
    """What a git command prints."""
    return run("git", "-C", str(repository), *words, check=check).strip()


def run(
    *words: str, cwd: Path = ROOT, variables: dict[str, str] | None = None, check: bool = True
) -> str:
    """What a command prints; a failure is a reason not to release."""
    ran = subprocess.run(words, cwd=cwd, env=variables, capture_output=True, text=True)
    if check and ran.returncode:
        raise NotReleased(f"{' '.join(words)}: {(ran.stderr or ran.stdout).strip()}")
    return ran.stdout


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
