"""The documentation site: it builds, every link leads somewhere, and it needs no network."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

import grv
from grv.policies import POLICIES

ROOT = Path(__file__).parents[1]
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("site")]  # it is built once


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it: a warning about a link is an error."""
    folder = tmp_path_factory.mktemp("site")
    call = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": paths}
    built = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, env=env)
    assert built.returncode == 0, built.stderr
    return folder


class _Loads(HTMLParser):
    """The addresses that a browser loads with a page; links to click on are not among them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "link" and given.get("rel") not in {"canonical", "prev", "next"}:
            self.found.append(given.get("href") or "")
        if tag in {"script", "img", "iframe", "source", "video", "audio", "embed"}:
            self.found.append(given.get("src") or "")


def loaded(site: Path) -> Iterator[tuple[Path, str]]:
    for page in site.rglob("*.html"):
        loads = _Loads()
        loads.feed(page.read_text(encoding="utf-8"))
        yield from ((page, address) for address in loads.found)
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        for address in re.findall(r"url\(\s*[\"']?([^\"')]+)|@import\s+[\"']([^\"']+)", text):
            yield sheet, "".join(address)


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    found = list(loaded(site))
    assert found
    for page, address in found:
        assert re.match(r"(?!\w+:|//)|data:", address), f"{page}: {address}"


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    text = (site / "reference" / "python.html").read_text(encoding="utf-8")
    for name in grv.__all__:
        assert f'id="grv.{name}"' in text, name


def test_every_command_is_in_the_reference(site: Path) -> None:
    text = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    for command in ("solve", "compare", "runs-list", "runs-export", "theory-separation"):
        assert f'id="grv-{command}"' in text, command


def test_every_policy_has_a_section_a_picture_and_an_entry_in_the_glossary(site: Path) -> None:
    guide = (site / "guide" / "policies.html").read_text(encoding="utf-8")
    glossary = (site / "glossary.html").read_text(encoding="utf-8")
    for name in POLICIES:
        assert f'<h2 id="{name}">' in guide
        assert f'src="rounds/{name}.svg"' in guide
        assert (site / "guide" / "rounds" / f"{name}.svg").exists()
        assert f'href="guide/policies.html#{name}"' in glossary


def test_every_page_says_its_version_and_leads_to_the_changelog(site: Path) -> None:
    for page in sorted((ROOT / "docs").rglob("*.md")):
        inside = page.relative_to(ROOT / "docs")
        name = "index.html" if inside.name in ("index.md", "README.md") else f"{inside.stem}.html"
        shown = site / inside.parent / name
        foot = re.search(
            rf'grv {re.escape(grv.__version__)} · <a href="([^"]*)">',
            shown.read_text(encoding="utf-8"),
        )
        assert foot is not None, shown
        assert (shown.parent / foot[1]).resolve() == (site / "changelog.html").resolve()
    changes = (site / "changelog.html").read_text(encoding="utf-8")
    assert 'id="unreleased"' in changes
    assert "Under a total budget" in changes


def test_no_mark_of_a_generated_part_is_left(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert "generated:" not in page.read_text(encoding="utf-8"), page


@pytest.mark.browser
def test_a_browser_opens_the_site_from_the_disk_and_asks_for_nothing_else(site: Path) -> None:
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    path = next((found for name in names if (found := shutil.which(name))), None)
    assert path is not None, "make browser"
    asked: list[str] = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        for name in ("index", "guide/policies", "reference/python"):
            page.goto((site / f"{name}.html").as_uri())
            assert page.locator("h1").first.is_visible()
        page.locator("input.md-search__input").press_sequentially("budget")
        first = page.locator(".md-search-result__item a").first
        first.wait_for(timeout=60_000)
        assert "budget" in first.inner_text().lower()
        browser.close()
    assert asked
    assert all(address.startswith(("file:", "data:", "blob:")) for address in asked)
