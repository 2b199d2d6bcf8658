"""Writes the page that the documents show, from the log that the package ships, and its pictures.

python docs/make_report.py             the page
python docs/make_report.py --pictures  also the gallery, which needs a browser (make browser)
"""

from __future__ import annotations

import shutil
import sys
from importlib import resources
from pathlib import Path

from grv.core.values import Costs
from grv.logs.readers import read_log
from grv.report.build import make_report
from grv.report.inputs import ReportSource
from grv.report.page.page import page
from grv.report.request import ReportRequest

HERE = Path(__file__).parent
PAGE = HERE / "report-sample.html"
# A picture's name, its width, its theme, and the first and last element it shows.
PICTURES = (
    ("first-screen", 1180, "light", "header", "#optimal_pairs"),
    ("costs", 1180, "light", "#difficulty", "#sensitivity"),
    ("score", 1180, "dark", "#rank_pass", "#score_distribution"),
    ("phone", 390, "light", "#which_policy", "#pays_for_itself"),
)


def write_page() -> None:
    """The report on the sample log, at two price lists."""
    with resources.as_file(resources.files("grv") / "data" / "sample.csv") as path:
        log = read_log(str(path))
    made = make_report(
        [ReportSource("sample", log=log)], ReportRequest(costs=(Costs(1, 10), Costs(1, 30)))
    )
    text = page(made, "grv report: the log that comes with grv")
    PAGE.write_text(text.replace(log.path, "sample.csv"), encoding="utf-8")


def write_pictures() -> None:
    """Parts of the page, as a browser shows them."""
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    browser_path = next(found for name in names if (found := shutil.which(name)))
    (HERE / "gallery").mkdir(exist_ok=True)
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        for name, width, theme, first, last in PICTURES:
            seen = browser.new_page(viewport={"width": width, "height": 900})
            seen.emulate_media(color_scheme="dark" if theme == "dark" else "light")
            seen.goto(PAGE.as_uri())
            seen.wait_for_selector("html.ready")
            boxes = [seen.locator(place).first.bounding_box() for place in (first, last)]
            assert boxes[0] is not None
            assert boxes[1] is not None
            top = max(0.0, boxes[0]["y"] - 8)
            height = boxes[1]["y"] + boxes[1]["height"] + 8 - top
            clip = {"x": 0.0, "y": top, "width": float(width), "height": height}
            seen.screenshot(path=HERE / "gallery" / f"{name}.png", full_page=True, clip=clip)  # type: ignore[arg-type]
        browser.close()


if __name__ == "__main__":
    write_page()
    if "--pictures" in sys.argv:
        write_pictures()
