"""Pages of a ledger in a browser: a real `grv dashboard`, a real Chromium, real ledgers."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Literal

import anyio

from grv import Costs, Verdict
from grv.backends.protocols import Draft, Finding, ParkedCall, Problem, Score, Usage
from grv.core.errors import LedgerError
from grv.ledger.entries import Found
from grv.ledger.opening import open_ledger
from grv.ledger.pending import pending_calls
from grv.runtime.solve import SolveOptions, solve_many_now

from .commands import start

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

HOSTILE = "</pre></script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>"
RIGHT = "def add(a, b):\n    return a + b\n"
HUMAN = {"kind": "human", "question": "Is it right?", "rubric": ["It adds."], "minutes": 2}


class Backends:
    """Every n-th candidate is right and has the highest score; all others fail a test."""

    def __init__(self, every: int = 3, *, parks: bool = False, seconds: float = 0.0) -> None:
        self._every, self._parks, self._seconds = every, parks, seconds

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> Sequence[Draft]:
        return [Draft(self._text(at), usage=Usage(10, 20)) for at in range(first, first + n)]

    def _text(self, at: int) -> str:
        right = self._every and (at + 1) % self._every == 0
        return RIGHT if right else f"def add(a, b):\n    # {at} {HOSTILE}\n    return a - b\n"

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        return [Score(1.0 if each.text == RIGHT else len(each.text) / 1000) for each in drafts]

    async def verify(self, problem: Problem, draft: Draft) -> Finding:
        if self._parks:
            raise ParkedCall("Is it right?")
        await anyio.sleep(self._seconds)
        if draft.text == RIGHT:
            return Finding(Verdict.PASSED, "all tests pass")
        evidence = {"test": 1, "args": [2, 3], "expected": 5, "got": HOSTILE}
        return Finding(Verdict.FAILED, "wrong answer", evidence, Usage(seconds=0.1))


def options(ledger: object, backends: Backends, **more: Any) -> SolveOptions:
    """Options of `solve` with these backends."""
    made: SolveOptions = {"generator": backends, "scorer": backends, "verifier": backends}
    settings: Any = {"costs": Costs(1, 10), "budget": 60, "policy": "verify-all"}
    settings |= {"ledger": ledger, "about": {"generator": "a model"}}
    found: SolveOptions = made | settings | more
    return found


def run(
    ledger: object, names: Sequence[str], backends: Backends | None = None, **more: Any
) -> None:
    """Solve problems into a ledger."""
    check = more.pop("check", {"kind": "own"})
    problems = [Problem(each, f"Write add(a, b). {each}", check) for each in names]
    for _ in solve_many_now(problems, **options(ledger, backends or Backends(), **more)):
        pass


@dataclass
class Dashboard:
    """A running `grv dashboard`."""

    process: subprocess.Popen[str]
    url: str
    review: str = ""
    lines: list[str] = field(default_factory=list)

    def get(self, path: str, **headers: str) -> Any:
        """The JSON that the API answers."""
        with urllib.request.urlopen(self._request(path, None, headers), timeout=10) as response:
            return json.load(response)

    def get_posted(self, path: str, body: object, **headers: str) -> Any:
        """The JSON that the API answers to a request with a body."""
        request = self._request(path, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=10) as response:
            return json.load(response)

    def status(
        self, path: str, body: object = None, method: str | None = None, **headers: str
    ) -> int:
        """The status of a request."""
        data = None if body is None else json.dumps(body).encode()
        request = self._request(path, data, headers, method)
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    def _request(
        self,
        path: str,
        data: bytes | None,
        headers: Mapping[str, str],
        method: str | None = None,
    ) -> urllib.request.Request:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if data is not None:
            named.setdefault("content-type", "application/json")
        address = self.url.rstrip("/") + path
        return urllib.request.Request(address, data, named, method=method)


@contextmanager
def dashboard(
    ledger: object, *more: object, env: Mapping[str, str] | None = None, port: int = 0
) -> Iterator[Dashboard]:
    """A server of the pages of a ledger."""
    process = start("dashboard", ledger, "--port", port, *more, env=env)
    assert process.stdout is not None
    assert process.stderr is not None
    shown = Dashboard(process, "")
    reader = threading.Thread(target=lambda: shown.lines.extend(process.stderr or ()), daemon=True)
    reader.start()
    try:
        said = process.stdout.readline()
        assert " shows " in said, (said, shown.lines)
        shown.url = said.split()[0]
        if "--review" in more and not (env or {}).get("GRV_REVIEWERS"):
            shown.review = process.stdout.readline().split()[0]
        yield shown
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        reader.join(5)
        process.stdout.close()
        process.stderr.close()


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser."""
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    path = next((found for name in names if (found := shutil.which(name))), None)
    assert path is not None, "no browser: make browser"
    with sync_playwright() as play:
        launched = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield launched
        launched.close()


@dataclass
class Visit:
    """An open page, and what it did unasked."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        browser: Browser,
        address: str,
        *,
        width: int = 1280,
        theme: Literal["light", "dark"] = "light",
    ) -> Visit:
        """Open a page in a context of its own: nobody is signed in."""
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
        found = cls(context.new_page())
        found.page.on("console", lambda said: found.complaints.append(said.text))
        found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
        found.page.on("request", lambda asked: found.requests.append(asked.url))
        found.page.set_default_timeout(60_000)
        found.page.goto(address)
        found.page.wait_for_selector("html.ready")
        return found

    def text(self, selector: str) -> str:
        """The text of the first element."""
        return self.page.locator(selector).first.inner_text()

    def waits_for(self, selector: str, text: str) -> None:
        """Wait until an element contains a text."""
        self.page.locator(selector, has_text=text).first.wait_for()

    def close(self) -> None:
        self.page.context.close()


@contextmanager
def waiting(ledger: Path, names: Sequence[str], **more: Any) -> Iterator[Thread]:
    """A run whose candidates wait for a person; the block begins when each has one that waits."""
    how = {"check": HUMAN, "at_once": 1, **more}
    backends = Backends(every=2, parks=True)
    thread = Thread(target=run, args=(ledger, names, backends), kwargs=how, daemon=True)
    thread.start()
    until = time.monotonic() + 60
    while not ledger.exists() or len(parked(ledger)) < len(names):
        assert time.monotonic() < until
        time.sleep(0.05)
    yield thread
    thread.join(60)
    assert not thread.is_alive()


def parked(ledger: Path) -> list[tuple[str, int]]:
    """The candidates that wait."""
    with contextlib.suppress(LedgerError), closing(open_ledger(ledger, read_only=True)) as opened:
        waits = [(id, pending_calls(opened.read(id)).parked) for id in opened.search_ids()]
        return [(id, candidate) for id, calls in waits for _, candidate in sorted(calls)]
    return []


def verdicts(ledger: Path) -> list[Found]:
    """All verdicts, by search."""
    with closing(open_ledger(ledger, read_only=True)) as opened:
        entries = [each for id in opened.search_ids() for each in opened.read(id)]
    return [each for each in entries if isinstance(each, Found)]


def write_human_problems(path: Path, names: Sequence[str]) -> Path:
    """A file of problems that a person verifies."""
    lines = [
        {"problem": name, "prompt": f"Write {name}. {HOSTILE}", "check": HUMAN} for name in names
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path
