"""Makes the pictures of the dashboard and of a review, from a ledger of an invented run.

python docs/make_pages.py            needs a browser (make browser)
python docs/make_pages.py FOLDER     keeps the ledger there, and all pictures in both themes
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

from PIL import Image

from grv import Costs, Verdict
from grv.backends.protocols import Draft, Finding, ParkedCall, Problem, Score, Usage
from grv.ledger.entries import Entry
from grv.ledger.sqlite import SqliteLedger
from grv.runtime.solve import SolveOptions, solve_many_now

HERE = Path(__file__).parent
HOURS = 7
TASKS = ("parse-date", "merge-intervals", "top-k", "roman", "wrap-text", "median", "rotate", "lru")
RIGHT = '''def merge(intervals):
    """Merge intervals that overlap."""
    merged = []
    for low, high in sorted(intervals):
        if merged and low <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], high)
        else:
            merged.append([low, high])
    return merged
'''
WRONG = (
    RIGHT.replace("low <= merged", "low < merged"),
    RIGHT.replace("max(merged[-1][1], high)", "high"),
    RIGHT.replace("sorted(intervals)", "intervals"),
)
PROMPT = """Write a function merge(intervals) that merges all overlapping intervals of a list
and returns them in order. Intervals that touch, such as [1, 2] and [2, 3], overlap too."""
TEXT = """Summarize this report in one sentence.

The council met on Tuesday. It approved the new bridge by nine votes to two. Building starts \
in May and is to take two years. The cost is 14 million."""
SUMMARY = "The council approved a bridge for 14 million, nine votes to two, to be built from May."
CHECK = {
    "kind": "human",
    "question": "Is the summary true to the report?",
    "rubric": ["Every statement is in the report.", "Nothing important is missing."],
    "minutes": 2,
}


class World:
    """A model that is right at its own rate for each problem; scores that mostly know it."""

    def __init__(self, seed: int = 7) -> None:
        self._random = random.Random(seed)
        self._rates: dict[str, float] = {}

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> Sequence[Draft]:
        """Some drafts."""
        if problem.check["kind"] == "human":
            return [Draft(SUMMARY, usage=Usage(120, 40, 0.6))] * n
        rate = self._rates.setdefault(problem.id, self._random.choice((0.05, 0.2, 0.35, 0.6)))
        made = []
        for _ in range(n):
            right = self._random.random() < rate
            text = RIGHT if right else self._random.choice(WRONG)
            made.append(Draft(f"{text}\n# draft {self._random.randrange(10**6)}\n"))
        return made

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        """Higher for right drafts, mostly."""
        return [
            Score(round(self._random.gauss(0.7 if RIGHT in each.text else 0.45, 0.15), 3))
            for each in drafts
        ]

    async def verify(self, problem: Problem, draft: Draft) -> Finding:
        """A verdict with the failing test."""
        if problem.check["kind"] == "human":
            raise ParkedCall(CHECK["question"])
        if RIGHT in draft.text:
            return Finding(Verdict.PASSED, "all 12 tests pass", {}, Usage(seconds=0.4))
        evidence = {"test": 4, "args": [[[1, 2], [2, 3]]], "expected": [[1, 3]]}
        evidence["got"] = [[1, 2], [2, 3]]
        return Finding(Verdict.FAILED, "wrong answer", evidence, Usage(seconds=0.2))


def write_ledger(path: Path, searches: int = 420) -> SqliteLedger:
    """An invented run of some hours, which seems to go on."""
    world = World()
    how: Any = {"generator": world, "scorer": world, "verifier": world, "keys": False}
    how |= {"costs": Costs(1, 10), "budget": 160, "width": 1}
    how |= {"about": {"generator": "openai:qwen2.5-coder", "score": "logprob"}}
    check = {"kind": "function", "entry_point": "merge", "tests": 12}
    names = [f"{TASKS[at % len(TASKS)]}-{at // len(TASKS):02}" for at in range(searches)]
    problems = [Problem(name, PROMPT, check) for name in names]
    ledger = SqliteLedger(path)  # stays open: its searches run as long as this process
    with tempfile.TemporaryDirectory() as folder:
        options: SolveOptions = how | {"ledger": f"{folder}/ledger"}
        for _ in solve_many_now(problems, **options):
            pass
        with closing(SqliteLedger(f"{folder}/ledger")) as made:
            copy_with_times(made, ledger)
    add_reviews(ledger, how)
    return ledger


def copy_with_times(made: SqliteLedger, ledger: SqliteLedger) -> None:
    """The same searches, spread over some hours up to now."""
    chosen = random.Random(3)
    end = time.time() - 20
    ids = [each.id for each in made.searches()]
    for at, id in enumerate(ids):
        entries = made.read(id)
        started = end - HOURS * 3600 * (1 - (at / len(ids)) ** 0.8)
        pace = chosen.uniform(0.4, 1.6)
        if at >= len(ids) - 4:  # the last ones still run
            entries = entries[: max(6, len(entries) // 2)]
            started = end - 30 + at % 4
            ledger.claim(id)
        timed: list[tuple[Entry, float]] = [
            (entry, started + pace * number) for number, entry in enumerate(entries)
        ]
        ledger.restore(id, timed, 0.0)


def add_reviews(ledger: SqliteLedger, how: Any) -> None:
    """Candidates that wait for a person."""
    from threading import Thread

    problems = [Problem(f"report-{at:02}", TEXT, CHECK) for at in range(3)]
    waiting = Thread(target=lambda: [*solve_many_now(problems, **how, ledger=ledger)], daemon=True)
    waiting.start()
    until = time.monotonic() + 60
    query = "SELECT COUNT(*) FROM entries WHERE kind = 'parked'"
    while ledger.select(query)[0][0] < len(problems) and time.monotonic() < until:
        time.sleep(0.1)


def main() -> None:
    """Write the pictures."""
    from playwright.sync_api import sync_playwright

    everything = len(sys.argv) > 1
    folder = Path(sys.argv[1] if everything else tempfile.mkdtemp())
    path = folder / "answers.ledger"
    command = [sys.executable, __file__, "--ledger", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        run.stdout.readline()  # the ledger is there, and its process lives
        serve = [sys.executable, "-m", "grv", "dashboard", str(path), "--review", "--port", "0"]
        with subprocess.Popen(
            [*serve, "--total-budget", "40000"], stdout=subprocess.PIPE, text=True
        ) as server:
            assert server.stdout is not None
            url = server.stdout.readline().split()[0]
            review = server.stdout.readline().split()[0]
            with sync_playwright() as play:
                names = ("chromium", "chromium-browser", "google-chrome")
                found = next(each for name in names if (each := shutil.which(name)))
                browser = play.chromium.launch(executable_path=found, args=["--no-sandbox"])
                photograph(browser, url, review, folder if everything else HERE / "gallery")
                browser.close()
            server.terminate()
        run.terminate()


def photograph(browser: Any, url: str, review: str, folder: Path) -> None:
    """Three pictures; into another folder, each in both sizes and themes."""
    both: tuple[Literal["light", "dark"], ...] = ("light", "dark")
    everywhere = {"": (1180, 900), "-phone": (390, 844)}
    sizes = everywhere if folder.name != "gallery" else {"": (1100, 760)}
    for size, (width, height) in sizes.items():
        for theme in both if folder.name != "gallery" else both[:1]:
            view = {"width": width, "height": height}
            page = browser.new_context(viewport=view, color_scheme=theme).new_page()
            whole = folder.name != "gallery"
            name = f"{size}-{theme}" if whole else ""
            page.goto(url)
            page.wait_for_selector("html.ready")
            page.screenshot(path=folder / f"dashboard{name}.png")
            page.goto(f"{url}?show=solved&sort=cost&q=merge")
            page.wait_for_selector("html.ready")
            page.locator("tbody a").first.click()
            page.wait_for_selector("#beside .pane")
            page.screenshot(path=folder / f"search{name}.png", full_page=True)
            page.goto(review)
            page.wait_for_selector(".sayings")
            page.wait_for_timeout(1300)
            page.screenshot(path=folder / f"review{name}.png", full_page=whole)
            page.goto("about:blank")
            page.context.close()
    for each in folder.glob("*.png") if folder.name == "gallery" else ():
        if each.stem in ("dashboard", "search", "review"):
            flat = Image.open(each).convert("RGB")
            flat.quantize(96, dither=Image.Dither.NONE).save(each, optimize=True)


if __name__ == "__main__":
    if "--ledger" in sys.argv:
        opened = write_ledger(Path(sys.argv[-1]))
        print("written", flush=True)
        time.sleep(600)
    else:
        main()
