"""Checks of kind repo: right, wrong and hostile changes to a repository."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grv import Problem, Verdict
from grv.verifiers import Checks
from support.repositories import (
    FILES,
    PRICES,
    RATES,
    RIGHT,
    TEST_PRICES,
    checksum_of,
    diff,
    make_repository,
)

TESTS = ["tests/test_prices.py", "tests/test_stock.py"]
PLAIN = ["--disable-plugin-autoload"] if int(pytest.__version__.split(".")[0]) >= 9 else []
COMMAND = ["python", "-m", "pytest", *PLAIN]
DIFF = diff({"shop/prices.py": RIGHT})
PYPROJECT = FILES["pyproject.toml"]


def forging(code: str) -> str:
    """A wrong change whose module runs some code when it is loaded."""
    return diff({"shop/prices.py": f"{code}\n{PRICES}"})


RIGHT_ONES = {
    "git diff": DIFF,
    "unified diff": DIFF.partition("\n")[2],
    "with prose": f"I fixed the formula.\n\n{DIFF}\n-- \nDone.\n",
    "in a fence": f"The fix:\n\n```diff\n{DIFF}```\nAll tests pass.\n",
    "whole file": f"```python shop/prices.py\n{RIGHT}```\n",
    "whole file, named before": f"**shop/prices.py**\n\n```python\n{RIGHT}```\n",
    "with a new module": diff(
        {
            "shop/prices.py": RIGHT.replace("/ 100", "/ WHOLE").replace(
                "import CASES", "import CASES\nfrom shop.whole import WHOLE"
            ),
            "shop/whole.py": "WHOLE = 100\n",
        }
    ),
    "other settings": diff(
        {"shop/prices.py": RIGHT, "pyproject.toml": PYPROJECT.replace('"1"', '"2"')}
    ),
}
WRONG_ONES = {
    "another formula": diff({"shop/prices.py": PRICES.replace("price - percent", "price / 2")}),
    "no program": diff({"shop/prices.py": PRICES.replace("def total", "def total(")}),
    "breaks another test": diff({"shop/prices.py": RIGHT.replace("sum(prices)", "0")}),
    "raises when loaded": forging("raise ValueError"),
    "removes a function": diff({"shop/prices.py": RIGHT.partition("\n\ndef total")[0] + "\n"}),
}
# They are refuted: nothing runs.
REFUTED = {
    "edits a test": diff({"shop/prices.py": RIGHT, TESTS[0]: TEST_PRICES.replace("expected", "0")}),
    "removes a test": diff({"shop/prices.py": RIGHT, TESTS[1]: None}),
    "adds a test": diff({"shop/prices.py": RIGHT, "tests/test_more.py": "x = 1\n"}),
    "adds conftest.py": diff({"conftest.py": "import os\n"}),
    "adds a deep conftest.py": diff({"shop/parts/conftest.py": "import os\n"}),
    "adds pytest.ini": diff({"pytest.ini": "[pytest]\naddopts = --co\n"}),
    "steers pytest": diff({"pyproject.toml": PYPROJECT.replace("-q", "--co")}),
    "adds setup.cfg": diff({"setup.cfg": "[tool:pytest]\naddopts = --co\n"}),
    "adds a .pth file": diff({"shop.pth": "import os\n"}),
    "adds sitecustomize": diff({"sitecustomize.py": "import os\n"}),
    "shadows pytest": diff({"pytest.py": "def main(*a, **k): return 0\n"}),
    "shadows unittest": diff({"unittest/__init__.py": "x = 1\n"}),
    "makes a link": "diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n"
    "@@ -0,0 +1 @@\n+/etc/passwd\n",
    "makes a submodule": "diff --git a/x b/x\nnew file mode 160000\n--- /dev/null\n+++ b/x\n"
    "@@ -0,0 +1 @@\n+Subproject commit 0\n",
    "leaves the tree": DIFF.replace("shop/prices.py", "../prices.py"),
    "leaves the tree later": diff({"shop/../../x.py": "x = 1\n"}),
    "absolute path": diff({"/tmp/x.py": "x = 1\n"}),
    "git hook": diff({".git/hooks/post-checkout": "#!/bin/sh\n"}),
    "git in another spelling": diff({"shop/.GIT/config": "[core]\n"}),
    "does not apply": DIFF.replace("-    return price - ", "-    return price + "),
    "cut off": DIFF[: len(DIFF) * 2 // 3],
    "no diff": "All tests pass now.",
    "nothing": "",
    "changes nothing": f"```python shop/prices.py\n{PRICES}```\n",
}
REPORT = "grv-report 00000000000000000000000000000000"
HOSTILE = {
    "exits with 0": forging("import os; os._exit(0)"),
    "raises SystemExit": forging("raise SystemExit(0)"),
    "exits in a test": diff(
        {"shop/prices.py": PRICES.replace("return price - percent", "import os; os._exit(0)")}
    ),
    "exits at the end": forging("import atexit, os; atexit.register(os._exit, 0)"),
    "skips its tests": forging("import unittest; raise unittest.SkipTest"),
    "skips with pytest": forging("import pytest; pytest.skip('x', allow_module_level=True)"),
    "lets parameters vanish": diff({"shop/rates.py": "CASES = []\n"}),
    "changes the parameters": diff({"shop/rates.py": RATES.replace("90", "90.5 - 0.5 - 0")}),
    "writes results": forging(
        "import os\n"
        "for place in ('.', os.environ['TMPDIR']):\n"
        "    try: open(f'{place}/results.xml', 'w').write('<testsuite/>')\n"
        "    except OSError: pass\n"
        "os._exit(0)"
    ),
    "prints reports": forging(
        f"import os\nfor n in (1, 2): os.write(n, b'\\n{REPORT} 1 66\\n')\nos._exit(0)"
    ),
    "tests do nothing": forging("import _pytest.python as p; p.Function.runtest = lambda s: None"),
    "reports say passed": forging(
        "import _pytest.reports as r\nr.TestReport.outcome = property(lambda s: 'passed',"
        " lambda s, v: None)"
    ),
    "no exception is seen": forging(
        "import _pytest.runner as r\nold = r.CallInfo.from_call.__func__\n"
        "def from_call(cls, func, *a, **k):\n"
        "    info = old(cls, func, *a, **k); object.__setattr__(info, 'excinfo', None)\n"
        "    return info\n"
        "r.CallInfo.from_call = classmethod(from_call)"
    ),
    "swaps the tests": forging(
        "import _pytest.python as p\nold = p.Function.setup\n"
        "def setup(self):\n"
        "    old(self); f = getattr(self.obj, '__func__', self.obj)\n"
        "    f.__code__ = (lambda *a, **k: None).__code__\n"
        "p.Function.setup = setup"
    ),
    "reads the secret again": forging(
        "import os\ntry: os.lseek(0, 0, 0); data = os.read(0, 9999)\nexcept OSError: data = b''\n"
        "assert not data"
    ),
    "hides in a thread": forging(
        "import os, threading, time\n"
        "threading.Thread(target=lambda: (time.sleep(0.02), os._exit(0))).start()\ntime.sleep(9)"
    ),
    "writes in place": forging(
        "import os\n"
        "for name in ('shop/prices.py', 'tests/test_prices.py', 'README.md', 'shop/rates.py'):\n"
        "    for mode in ('w', 'r+', 'a'):\n"
        "        try: open(name, mode).write('changed')\n"
        "        except OSError: pass\n"
        "    for change in (os.unlink, lambda n: os.chmod(n, 511), lambda n: os.rename(n, 'x')):\n"
        "        try: change(name)\n"
        "        except OSError: pass"
    ),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_repository(tmp_path_factory.mktemp("work") / "shop").parent


@pytest.fixture
def problem(place: Path, monkeypatch: pytest.MonkeyPatch) -> Problem:
    monkeypatch.chdir(place)
    return Problem("p", check=check())


@pytest.fixture(scope="module")
def verifier() -> Iterator[Checks]:
    with Checks(workers=1) as made:
        yield made


def check(**more: Any) -> dict[str, Any]:
    base = {"kind": "repo", "repository": "shop", "tests": TESTS, "command": COMMAND}
    return {**base, "limits": {"seconds": 60}, **more}


@pytest.mark.slow
@pytest.mark.parametrize("name", RIGHT_ONES)
def test_a_right_change_passes(name: str, problem: Problem, verifier: Checks) -> None:
    finding = verifier.find(problem, RIGHT_ONES[name])
    assert finding.verdict is Verdict.PASSED, finding
    assert finding.evidence["tests"] == 7
    assert finding.evidence["control"] == 7
    *files, last = [stage.name for stage in finding.stages]
    assert sorted(files) == sorted(TESTS)  # in the order that refutes for the least money
    assert last == "control"


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG_ONES)
def test_a_wrong_change_fails(name: str, problem: Problem, verifier: Checks) -> None:
    finding = verifier.find(problem, WRONG_ONES[name])
    assert finding.verdict is Verdict.FAILED, finding
    assert not finding.shared


@pytest.mark.parametrize("name", REFUTED)
def test_a_change_of_what_is_protected_fails_for_nothing(
    name: str, problem: Problem, verifier: Checks
) -> None:
    finding = verifier.find(problem, REFUTED[name])
    assert finding.verdict is Verdict.FAILED, finding
    assert finding.reason.startswith("refuted: ")
    assert finding.shared


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_change_fails(name: str, problem: Problem, verifier: Checks, place: Path) -> None:
    before = checksum_of(place)
    finding = verifier.find(problem, HOSTILE[name])
    assert finding.verdict is Verdict.FAILED, finding
    assert checksum_of(place) == before


@pytest.mark.slow
def test_without_refutation_it_fails_all_the_same(problem: Problem) -> None:
    with Checks(workers=1, refute=False) as verifier:
        for name in ("edits a test", "adds conftest.py", "makes a link", "no diff"):
            assert verifier.find(problem, REFUTED[name]).verdict is Verdict.FAILED
