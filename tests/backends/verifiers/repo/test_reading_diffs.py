"""Reading and applying diffs: as `git apply` does, and never more than it."""

from __future__ import annotations

import base64
import random
import subprocess
import zlib
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grv.backends.verifiers.repo import changes
from grv.backends.verifiers.repo.changes import Changes, NewFile, apply, check_path
from grv.backends.verifiers.repo.control import rewritten
from grv.backends.verifiers.repo.diff_lines import UnreadableDiff
from grv.backends.verifiers.repo.diffs import diff_in, read
from grv.backends.verifiers.repo.git import Repository
from grv.backends.verifiers.repo.protection import Protection
from grv.backends.verifiers.repo.workspace import Workspace
from support.examples import examples
from support.repositories import diff, git, make_repository


class Files:
    """The files of a commit, in memory."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files

    def kind(self, path: str) -> str:
        if path in self._files:
            return "file"
        return "folder" if any(name.startswith(f"{path}/") for name in self._files) else ""

    def file(self, path: str) -> NewFile:
        return NewFile(self._files[path].encode())


def applied(text: str, files: Mapping[str, str]) -> Mapping[str, str | None]:
    changes = apply(read(text), Files(files))
    return {
        path: None if file is None else file.content.decode()
        for path, file in changes.files.items()
    }


LINES = st.lists(
    st.sampled_from(["a", "b", "", " c", "-d", "+e", "@@ -1 +1 @@", "\\ x"]), max_size=12
)
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"]))


@settings(max_examples=examples(60), deadline=None)
@given(before=TEXTS, after=TEXTS)
def test_a_diff_of_git_gives_the_file_that_git_has(
    before: str, after: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if before == after:
        return
    folder = tmp_path_factory.mktemp("diff")
    (folder / "old").write_text(before)
    (folder / "new").write_text(after)
    done = subprocess.run(
        ["git", "diff", "--no-index", "old", "new"],
        cwd=folder,
        capture_output=True,
        check=False,
    )
    text = done.stdout.decode().replace("/old", "/f").replace("/new", "/f")
    assert applied(text, {"f": before}) == {"f": after}
    assert applied(f"Look:\n\n```diff\n{text}```\n", {"f": before}) == {"f": after}


@settings(max_examples=examples(60), deadline=None)
@given(before=TEXTS, after=TEXTS, other=TEXTS)
def test_what_git_refuses_is_refused_or_gives_the_same(
    before: str, after: str, other: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("apply")
    (folder / "f").write_text(other)
    text = diff({"f": after}, {"f": before})
    if "@@" not in text or "\n\\ x" in before + after or not before.endswith("\n"):
        return
    (folder / "patch").write_text(text)
    git(folder, "init", "-q")
    command = ["git", "apply", "--whitespace=nowarn", "patch"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    try:
        ours = applied(text, {"f": other})["f"]
    except UnreadableDiff:
        return
    if done.returncode == 0:
        assert ours == (folder / "f").read_text()


@settings(max_examples=examples(200), deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_read_or_refused(text: str) -> None:
    for given_text in (text, f"--- a/f\n+++ b/f\n@@ -1 +1 @@\n{text}", f"diff --git {text}"):
        try:
            applied(given_text, {"f": "x\n"})
        except (UnreadableDiff, UnicodeEncodeError):
            continue


@pytest.mark.parametrize(
    ("text", "files", "result"),
    [
        (
            "diff --git a/a.py b/b.py\nsimilarity index 90%\nrename from a.py\nrename to b.py\n"
            "--- a/a.py\n+++ b/b.py\n@@ -1 +1 @@\n-x\n+y\n",
            {"a.py": "x\n"},
            {"a.py": None, "b.py": "y\n"},
        ),
        (
            "diff --git a/a.py b/a.py\nold mode 100644\nnew mode 100755\n",
            {"a.py": "x\n"},
            {"a.py": "x\n"},
        ),
        (
            "diff --git a/a.py b/c.py\nsimilarity index 100%\ncopy from a.py\ncopy to c.py\n",
            {"a.py": "x\n"},
            {"c.py": "x\n"},
        ),
        (
            'diff --git "a/\\303\\244.py" "b/\\303\\244.py"\nnew file mode 100644\n--- /dev/null\n'
            '+++ "b/\\303\\244.py"\n@@ -0,0 +1 @@\n+x\n',
            {},
            {"ä.py": "x\n"},
        ),
        ("--- a.py\n+++ a.py\n@@ -2 +2 @@\n-b\n+c\n", {"a.py": "a\nb\n"}, {"a.py": "a\nc\n"}),
        (
            "--- a/a.py\t2020-01-01\n+++ b/a.py\t2020-01-02\n@@ -1 +1 @@\n-a\n+b\n"
            "\\ No newline at end of file\n",
            {"a.py": "a\n"},
            {"a.py": "b"},
        ),
        # The hunk has moved, and its lines are in one place only.
        (
            "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n p\n-q\n+r\n",
            {"f": "1\n2\np\nq\n"},
            {"f": "1\n2\np\nr\n"},
        ),
        ("### src/a.py\n\n```python\nx = 1\n```\n", {}, {"src/a.py": "x = 1\n"}),
        ("```python:src/a.py\nx = 1\n```\n", {"src/a.py": "y\n"}, {"src/a.py": "x = 1\n"}),
    ],
)
def test_what_diffs_can_say(
    text: str, files: Mapping[str, str], result: Mapping[str, str | None]
) -> None:
    assert applied(text, files) == result


@pytest.mark.parametrize(
    "text",
    [
        "--- a/f\n+++ b/f\n@@ -2,2 +2,2 @@\n p\n-q\n+r\n",  # its lines are twice in the file
        "--- a/f\n+++ b/f\n@@ -9 +9 @@\n-nowhere\n+x\n",
        "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n p\n-q\n+r\n",
        "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-p\n+r\n+more\n",
        "--- a/g\n+++ b/g\n@@ -1 +1 @@\n-p\n+r\n",
        "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n",
        "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-p\n",
        "@@ -1 +1 @@\n-p\n+q\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-p\n+r\n",
        "diff --git a/f b/f\nGIT binary patch\nliteral 0\n",
        "diff --git a/f b/g\n--- a/f\n+++ b/h\n",
        "diff --git a/f b/f\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-p\n+r\n",
        "--- /dev/null\n+++ b/f/g\n@@ -0,0 +1 @@\n+x\n",
        "```python a.py\nx = 1\n```\n```python a.py\nx = 2\n```\n",
        "```python a.py\nx = 1\n",
    ],
)
def test_what_does_not_fit_is_refused(text: str) -> None:
    with pytest.raises(UnreadableDiff):
        applied(text, {"f": "p\nq\n1\np\nq\n" if "p\n-q" in text else "p\nq\n"} | {"x": "1"})


@pytest.mark.parametrize(
    "path", ["", "/a", "a/../b", "..", "a//b", "./a", "a\\b", "a\0b", ".git/x", "x/.GIT./y", "a\nb"]
)
def test_paths_that_leave_the_tree_are_refused(path: str) -> None:
    with pytest.raises(UnreadableDiff):
        check_path(path)


def test_the_diff_in_an_answer_is_what_can_be_applied() -> None:
    text = diff({"f": "y\n"}, {"f": "x\n"})
    assert diff_in(f"Done.\n\n```patch\n{text}```\n") == text
    assert diff_in(text) == text
    with pytest.raises(UnreadableDiff):
        diff_in("nothing")


def test_equal_changes_have_one_key() -> None:
    files = {"f": "a\nb\nc\n"}
    whole = apply(read("```text f.txt\nz\n```"), Files({"f.txt": "a\n"}))
    one = apply(read("--- a/f\n+++ b/f\n@@ -2 +2 @@\n-b\n+x\n"), Files(files))
    two = apply(read("--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n"), Files(files))
    assert one.key == two.key != whole.key
    assert Changes({"f": NewFile(b"x", 0o755)}).key != Changes({"f": NewFile(b"x")}).key


def test_named_tests_protect_their_folder_and_no_other_code() -> None:
    protection = Protection.of(["pkg/tests/test_a.py::test_x", "pkg/test_b.py"], ["data/*.json"])
    protected = ("pkg/tests/util.py", "pkg/test_b.py", "data/x.json", "pkg/conftest.py", "x.pth")
    free = ("pkg/test/case.py", "pkg/testing.py", "pkg/a.py", "data/x.py", "setup.py")
    assert all(map(protection.covers, protected))
    assert not any(map(protection.covers, free))


@pytest.mark.parametrize(
    ("path", "text", "names"),
    [
        ("test_a.py", "def test_x():\n    return 1\n", {"test_x"}),
        (
            "test_a.py",
            "async def test_x(): ...\nclass T:\n  def test_y(self): ...\n",
            {"test_x", "T.test_y"},
        ),
        ("test_a.py", "def helper(): ...\n", set()),
        ("test_a.py", "def (", set()),
        ("a_test.go", "func TestA(t *testing.T) {\n}\n", {"TestA"}),
        ("a.rs", "#[test]\nfn works() {\n}\n", {"works"}),
        ("a.txt", "def test_x(): ...\n", set()),
    ],
)
def test_the_control_rewrites_tests(path: str, text: str, names: set[str]) -> None:
    changed, found = rewritten(path, text)
    assert found == names
    assert (changed == text) == (not names) or not names
    if path.endswith(".py") and "return 1" in text:
        space: dict[str, object] = {}
        exec(changed, space)
        with pytest.raises(AssertionError):
            space["test_x"]()  # type: ignore[operator]


def test_a_repository_runs_nothing_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    folder = make_repository(tmp_path / "shop", modules=0)
    mark = tmp_path / "ran"
    program = tmp_path / "evil"
    program.write_text(f"#!/bin/sh\necho ran >> {mark}\ncat\n")
    program.chmod(0o755)
    (folder / ".gitattributes").write_text("* filter=evil diff=evil text eol=crlf\n")
    git(folder, "add", ".gitattributes")
    git(folder, "commit", "-qm", "attributes")
    for name in ("filter.evil.smudge", "filter.evil.clean", "diff.evil.textconv"):
        git(folder, "config", name, str(program))
    for name in ("core.fsmonitor", "core.pager", "core.sshCommand", "diff.external"):
        git(folder, "config", name, str(program))
    git(folder, "config", "core.hooksPath", str(tmp_path))
    git(folder, "config", "core.autocrlf", "true")
    (tmp_path / "post-checkout").write_text(program.read_text())
    (tmp_path / "post-checkout").chmod(0o755)
    mark.unlink(missing_ok=True)
    monkeypatch.setenv("GIT_DIR", str(tmp_path))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(program))
    repository = Repository(str(folder))
    entries = repository.entries(repository.commit("HEAD"))
    contents = dict(
        zip(entries, repository.contents(e.blob for e in entries.values()), strict=True)
    )
    assert contents["README.md"] == b"# Shop\n"
    assert not mark.exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nothing", "-x", "--all", "HEAD:README.md", "a b", "HEAD^{tree}"])
def test_what_is_no_commit_is_refused(name: str, tmp_path: Path) -> None:
    from grv import UsageError

    repository = Repository(str(make_repository(tmp_path / "shop", modules=0)))
    with pytest.raises(UsageError, match="commit"):
        repository.commit(name)


def test_links_submodules_and_odd_names_of_a_commit(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "shop", modules=0)
    (folder / "link").symlink_to("/etc")
    (folder / "ä ö.txt").write_text("x")
    git(folder, "add", ".")
    git(folder, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},module")
    git(folder, "commit", "-qm", "odd")
    repository = Repository(str(folder))
    workspace = Workspace(repository, repository.commit("HEAD"))
    try:
        assert workspace.files.kind("link") == "link"
        assert workspace.files.kind("module") == "submodule"
        assert workspace.files.file("ä ö.txt").content == b"x"
        for path in ("link/passwd", "link", "module/x"):
            text = f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"
            with pytest.raises(UnreadableDiff):
                apply(read(text), workspace.files)
        changes = Changes({"README.md": NewFile(b"new\n"), "a/b.txt": NewFile(b"y")})
        with workspace.copy(changes, writable=False) as copy:
            assert (copy / "README.md").read_bytes() == b"new\n"
            assert (copy / "shop/prices.py").stat().st_ino == (
                workspace.ready / "shop/prices.py"
            ).stat().st_ino
            assert (copy / "link").is_symlink()
        assert not copy.exists()
        assert workspace.is_unchanged()
        with workspace.copy(None, writable=True) as copy:
            (copy / "README.md").write_text("changed")
        assert workspace.is_unchanged()
        (workspace.ready / "README.md").chmod(0o644)
        (workspace.ready / "README.md").write_text("written through")
        assert not workspace.is_unchanged()
    finally:
        workspace.remove()
    assert not workspace.folder.exists()


def hunks(path: str, text: str) -> str:
    return f"--- a/{path}\n+++ b/{path}\n{text}"


def test_the_work_for_a_huge_diff_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"a.txt": "\n" * 1_000}
    monkeypatch.setattr(changes, "_MOST_BYTES", 50_000)
    monkeypatch.setattr(changes, "_MOST_COMPARED", 5_000)
    copy = "diff --git a/a.txt b/b{0}\ncopy from a.txt\ncopy to b{0}\n"
    with pytest.raises(UnreadableDiff, match="it changes files of more than 50,000 bytes"):
        applied("".join(copy.format(number) for number in range(100)), files)
    assert len(applied("".join(copy.format(number) for number in range(20)), files)) == 20
    elsewhere = hunks("a.txt", "@@ -9,500 +9,500 @@\n" + " \n" * 499 + "-x\n+y\n")
    with pytest.raises(UnreadableDiff, match="too many of its hunks are not at the lines"):
        applied(elsewhere, files)


def test_hunks_after_a_moved_one_move_as_well() -> None:
    before = "".join(f"{number}\n" for number in range(30))
    text = hunks(
        "a.txt", "@@ -3 +3 @@\n-9\n+nine\n@@ -13,0 +14 @@\n+more\n@@ -21 +22 @@\n-27\n+x\n"
    )
    after = before.replace("\n9\n", "\nnine\n").replace("\n27\n", "\nx\n")
    assert applied(text, {"a.txt": before}) == {"a.txt": after.replace("\n19\n", "\n19\nmore\n")}


@pytest.mark.slow
@pytest.mark.parametrize("size", [0, 1, 5, 5_000, 300_000])
def test_a_binary_diff_gives_the_file_that_git_has(size: int, tmp_path: Path) -> None:
    source = random.Random(size)
    folder = make_repository(tmp_path / "shop", modules=0)
    old = source.randbytes(size)
    new = old[: size // 2] + b"\0new\xff" + old[size // 3 :]
    (folder / "changed.bin").write_bytes(old)
    (folder / "gone.bin").write_bytes(old + b"\0")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "binary")
    repository = Repository(str(folder))
    workspace = Workspace(repository, repository.commit("HEAD"))
    (folder / "changed.bin").write_bytes(new)
    (folder / "gone.bin").unlink()
    (folder / "new.bin").write_bytes(new)
    git(folder, "add", ".")
    text = git(folder, "diff", "--cached", "--binary", "--no-renames")
    try:
        found = apply(read(text), workspace.files).files
        assert found["changed.bin"] == found["new.bin"] == NewFile(new)
        assert found["gone.bin"] is None
        with pytest.raises(UnreadableDiff):
            apply(read(text.replace("Hc", "Hd").replace("z", "y")), workspace.files)
        (workspace.pristine / "changed.bin").unlink()
        (workspace.pristine / "changed.bin").write_bytes(old + b"x")
        with pytest.raises(UnreadableDiff, match="is not the one that is changed"):
            apply(read(text), workspace.files)
    finally:
        workspace.remove()


def test_binary_files_that_unpack_to_too_much_are_refused() -> None:
    packed = base64.b85encode(zlib.compress(bytes(9_000_000), 9)).decode()
    with pytest.raises(UnreadableDiff, match="a binary file cannot be read"):
        read(binary("literal 8999999", packed))
    many = "".join(binary("literal 9000000", packed, f"x{number}") for number in range(9))
    with pytest.raises(UnreadableDiff, match="binary files have more than 67,108,864 bytes"):
        read(many)


def binary(head: str, packed: str, name: str = "x.bin") -> str:
    pieces = [packed[start : start + 65] for start in range(0, len(packed), 65)]
    lines = "".join(f"{chr(70 + min(52, len(each) * 4 // 5))}{each}\n" for each in pieces)
    start = f"diff --git a/{name} b/{name}\nnew file mode 100644\nGIT binary patch\n"
    return f"{start}{head}\n{lines}\nliteral 0\nHcmV?d00001\n\n"
