"""How fast the dashboard of a large ledger opens, and how much memory it needs.

    python bench/pages.py [--quick] [--ledger=FILE]

It writes a ledger of 100,000 searches with 13 entries each, starts `grv dashboard`, and measures

* `first_page`: seconds until the server has answered all that the first page asks for: the page,
  its files, the overview and the first 50 searches; the first time, and the median of five more.
* `requests`: seconds of single requests: the last page of the list, a search by name, a search in
  texts, one search.
* `megabytes`: resident memory of the server afterwards.

`--ledger=FILE` keeps the ledger, and uses it again.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import closing
from pathlib import Path
from typing import Any

from grv.core.values import CandidateId, Generated, Verdict, Verified
from grv.ledger.entries import Ended, Entry, Found, Intended, Made, Scored, Started, Told
from grv.ledger.ledger import Append
from grv.ledger.sqlite import SqliteLedger

FIRST_PAGE = ["/", "/assets/look.css", "/assets/pages.css", "/assets/overview.js"]
FIRST_PAGE += ["/assets/common.js", "/assets/charts.js", "/assets/icon.svg", "/api/session"]
FIRST_PAGE += ["/api/overview", "/api/searches"]
AT_ONCE = 500


def group(at: int) -> Append:
    """A search that generates two candidates and verifies both."""
    about = {"policy": "varied", "costs": [1, 10, 0], "budget": 500, "width": 1}
    search = f"{at:024x}"
    entries: list[Entry] = [Started(f"task-{at:06}", about, f"The prompt of task {at}.")]
    for id in (0, 1):
        entries += [Intended("generate", (id,), 1.0), Made(id, f"text {id} of {at} " + "x" * 200)]
        entries += [Scored(id, at % 97 / 97 + id), Told(Generated((0.5,)), "one more")]
    passed = Verdict.PASSED if at % 5 else Verdict.FAILED
    entries += [Intended("verify", (1,), 10.0), Found(1, passed, "", {"test": 3})]
    entries.append(Told(Verified({CandidateId(1): passed}), "the best"))
    outcome = "solved" if at % 5 else "out of budget"
    entries.append(Ended(outcome, 1 if at % 5 else None, 2, 1, 12.0))
    return Append(search, entries)


def write(path: Path, searches: int) -> None:
    with closing(SqliteLedger(path)) as ledger:
        for first in range(0, searches, AT_ONCE):
            errors = ledger.append_all(
                [group(at) for at in range(first, min(searches, first + AT_ONCE))]
            )
            assert not any(errors)


def timed(url: str, paths: list[str]) -> float:
    started = time.perf_counter()
    for path in paths:
        with urllib.request.urlopen(url + path, timeout=120) as response:
            response.read()
    return time.perf_counter() - started


def megabytes(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return round(int(line.split()[1]) / 1024, 1)
    return 0.0


def measure(path: Path, searches: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "grv", "dashboard", str(path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[0].rstrip("/")
            first = timed(url, FIRST_PAGE)
            again = []
            for _ in range(5):
                time.sleep(2.2)  # the overview is computed again
                again.append(timed(url, FIRST_PAGE))
            last = searches // 50 - 1
            requests = {
                "last page": f"/api/searches?page={last}",
                "by name": "/api/searches?q=task-000777",
                "in texts": "/api/searches?q=of+777&texts=1",
                "one search": f"/api/searches/{777:024x}",
            }
            return {
                "first_page": {"first": first, "median": statistics.median(again)},
                "requests": {name: timed(url, [path]) for name, path in requests.items()},
                "megabytes": megabytes(process.pid),
            }
        finally:
            process.terminate()


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    return round(value, 3) if isinstance(value, float) else value


def main() -> None:
    searches = 1000 if "--quick" in sys.argv else 100_000
    kept = next((word[9:] for word in sys.argv if word.startswith("--ledger=")), None)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(kept or f"{folder}/ledger")
        if not path.exists():
            write(path, searches)
        figures = measure(path, searches)
    figures |= {"searches": searches, "load": round(os.getloadavg()[0], 1)}
    print(json.dumps(rounded(figures)))


if __name__ == "__main__":
    main()
