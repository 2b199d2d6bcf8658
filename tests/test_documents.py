"""What the documents show is run, and what they quote is current."""

import os
import re
import runpy
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*/*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_on_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(str(resources.files("grv") / "data" / "sample.csv"), tmp_path / "log.csv")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)
    assert len(blocks) == page.read_text(encoding="utf-8").count("```python")


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem)
def test_an_example_runs_and_prints(
    example: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [str(example)])
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out


def test_the_reference_is_what_the_commands_say() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "make_reference.py"))["reference"]()
    written = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    assert made == written, "python docs/make_reference.py"


def test_the_commands_that_pages_show_exist() -> None:
    shown = {
        command
        for page in PAGES
        for command in re.findall(r"^grv (\w+)", page.read_text(encoding="utf-8"), re.MULTILINE)
    }
    listed = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    assert shown
    assert all(f"## grv {command}\n" in listed for command in shown)


def test_links_between_documents_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("bench/*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page}: {target}"


@pytest.mark.slow
def test_the_benches_run_at_a_small_size() -> None:
    call = [sys.executable, str(ROOT / "bench" / "run.py"), "--quick"]
    shown = subprocess.run(call, capture_output=True, text=True, env={**os.environ})
    assert shown.returncode == 0, shown.stderr
    assert "same figures" in shown.stdout


def test_nothing_names_this_machine_or_a_registry() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    outside = re.compile(r"/(?:home|root|work)/[\w.]|https?://[^\s)\"']*(?:pypi|simple/)")
    for name in listed:
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml", ".txt", ""} and path.is_file():
            found = outside.search(path.read_text(encoding="utf-8", errors="ignore"))
            assert found is None or name == "tests/test_documents.py", f"{name}: {found}"
