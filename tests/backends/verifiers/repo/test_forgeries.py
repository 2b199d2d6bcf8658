"""Changes that make tests pass by force, from inside their process: none may pass."""

from __future__ import annotations

import math
import unittest
import unittest.mock
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grv import Problem, Verdict
from grv.backends.verifiers.repo import control, probes
from grv.verifiers import Checks
from support.repositories import diff, git, make_repository

PLAIN = ["--disable-plugin-autoload"] if int(pytest.__version__.split(".")[0]) >= 9 else []
COMMAND = ["python", "-m", "pytest", *PLAIN]
WRONG = """def half(x):
    return x


def near(x):
    return x + 1.0


def fails(x):
    return x
"""
RIGHT = """def half(x):
    return x / 2


def near(x):
    return x


def fails(x):
    raise ValueError
"""
CASE = "import unittest\nfrom shop import fails, half, near\n\n\nclass T(unittest.TestCase):\n"
PLAIN_TEST = "from shop import fails, half, near\n\n\ndef test_a():\n"
TESTS = {
    "true": f"{CASE}    def test_a(self):\n        self.assertTrue(half(8) == 4)\n",
    "almost": f"{CASE}    def test_a(self):\n        self.assertAlmostEqual(near(8), 8)\n",
    "equal": f"{CASE}    def test_a(self):\n        self.assertEqual(half(8), 4)\n",
    "raising": f"{CASE}    def test_a(self):\n        with self.assertRaises(ValueError):\n"
    "            fails(1)\n",
    "raises": f"import pytest\n{PLAIN_TEST}    with pytest.raises(ValueError):\n        fails(1)\n",
    "approx": f"import pytest\n{PLAIN_TEST}    assert near(8) == pytest.approx(8)\n",
    "isclose": f"import math\n{PLAIN_TEST}    assert math.isclose(near(8), 8)\n",
    "all": f"{PLAIN_TEST}    assert all(half(n) == n / 2 for n in (8, 9))\n",
    "abs": f"{PLAIN_TEST}    assert abs(near(8) - 8) < 0.1\n",
    "numpy": f"import numpy as np\n{PLAIN_TEST}"
    "    np.testing.assert_allclose(half(np.ones(2)), np.ones(2) / 2)\n",
    "allclose": f"import numpy as np\n{PLAIN_TEST}    assert np.allclose(half(8), 4)\n",
    "mock": f"from unittest.mock import Mock\n{PLAIN_TEST}    mock = Mock()\n"
    "    mock(half(8))\n    mock.assert_called_once_with(4)\n",
    "plain": f"{PLAIN_TEST}    assert half(8) == 4\n",
    "cases": "import pytest\nfrom shop import half\n\n\n"
    "@pytest.mark.parametrize(('x', 'expected'), [(8, 4), (2, 1)])\n"
    "def test_a(x, expected):\n    assert half(x) == expected\n",
    "fixture": "import pytest\nfrom shop import half\n\n\n@pytest.fixture\ndef wanted():\n"
    "    return 4\n\n\ndef test_a(wanted):\n    assert half(8) == wanted\n",
    "nested": "from shop import half\n\n\nclass TestOuter:\n    class TestInner:\n"
    "        def test_a(self):\n            assert half(8) == 4\n",
    "later": "import pytest\nfrom shop import half\nfrom shop.rates import CASES\n\n\n"
    "@pytest.mark.parametrize('x', CASES)\ndef test_a(x):\n    assert half(x) == x / 2\n\n\n"
    "class TestB:\n    def test_b(self):\n        assert CASES is not None\n",
    "based": "from shop import half\nfrom shop.testing import Base\n\n\n"
    "class TestA(Base):\n    def test_a(self):\n        assert half(8) == 4\n\n\n"
    "def test_b():\n    assert Base\n\n\ndef test_c():\n    assert half(8) == 4\n",
}
U = "import unittest as u\n"
# By name: the test that passes by force, and what the module does when it is loaded.
REPLACING = {
    "assertTrue": ("true", f"{U}u.TestCase.assertTrue = lambda *a: None"),
    "assertAlmostEqual": ("almost", f"{U}u.TestCase.assertAlmostEqual = lambda *a, **k: None"),
    "assertRaises": (
        "raising",
        f"{U}import contextlib as c\nu.TestCase.assertRaises = lambda *a: c.nullcontext()",
    ),
    "the class TestCase": (
        "equal",
        f"{U}class T(u.TestCase):\n    assertEqual = lambda *a: None\nu.TestCase = T",
    ),
    "pytest.raises": (
        "raises",
        "import contextlib as c, pytest\npytest.raises = lambda *a: c.nullcontext()",
    ),
    "pytest.approx": (
        "approx",
        "import pytest\nclass Any:\n    def __init__(self, x): pass\n"
        "    def __eq__(self, x): return True\npytest.approx = Any",
    ),
    "math.isclose": ("isclose", "import math\nmath.isclose = lambda *a, **k: True"),
    "all": ("all", "import builtins\nbuiltins.all = lambda given: True"),
    "abs": ("abs", "import builtins\nbuiltins.abs = lambda given: 0"),
    "numpy.testing": (
        "numpy",
        "import numpy.testing as t\nt.assert_allclose = lambda *a, **k: None",
    ),
    "numpy.allclose": ("allclose", "import numpy\nnumpy.allclose = lambda *a, **k: True"),
    "mocks": (
        "mock",
        "import unittest.mock as m\n"
        "m.NonCallableMock.assert_called_once_with = lambda *a, **k: None",
    ),
    "pytest.mark": (
        "cases",
        "import pytest\nreal = pytest.mark\nclass Mark:\n"
        "    def __getattr__(self, name): return getattr(real, name)\n"
        "    def parametrize(self, names, cases):\n"
        "        given = [(case[0], half(case[0])) for case in cases]\n"
        "        return real.parametrize(names, given, ids=['8-4', '2-1'])\npytest.mark = Mark()",
    ),
    "parametrize": (
        "cases",
        "import pytest\nreal = pytest.mark.parametrize\n"
        "pytest.mark.parametrize = lambda names, cases: real(\n"
        "    names, [(case[0], half(case[0])) for case in cases], ids=['8-4', '2-1'])",
    ),
    "fixtures": (
        "fixture",
        "import _pytest.fixtures as f\nf.FixtureRequest.getfixturevalue = lambda *a: 8\n"
        "f.FixtureDef.execute = lambda *a: 8\nf.call_fixture_func = lambda *a: 8",
    ),
    "from a file of its own": ("plain", "import shop.force"),
}
# What has no code in a file: only the control finds it.
HIDDEN = {
    "a method that does nothing": ("true", f"{U}u.TestCase.assertTrue = print"),
    "a method of another module": (
        "almost",
        f"{U}import os.path\nu.TestCase.assertAlmostEqual = os.path.join.__class__(\n"
        "    (lambda *a, **k: None).__code__.replace(co_filename='x'), {})",
    ),
    "executed text": (
        "isclose",
        "exec('import math\\nmath.isclose = lambda *a, **k: True')",
    ),
    "executed text for builtins": ("all", "exec('import builtins as b\\nb.all = bool')"),
    "executed text for numpy": (
        "numpy",
        "exec('import numpy.testing as t\\nt.assert_allclose = lambda *a, **k: None')",
    ),
    "executed text for mocks": (
        "mock",
        "exec('import unittest.mock as m\\n"
        "m.NonCallableMock.assert_called_once_with = lambda *a: 0')",
    ),
    "executed text for raises": (
        "raises",
        "exec('import contextlib as c, pytest\\npytest.raises = lambda *a: c.nullcontext()')",
    ),
    "a partial function": (
        "plain",
        "import functools, _pytest.python as p\np.Function.runtest = functools.partial(int)",
    ),
    "swapped code": (
        "plain",
        "import _pytest.python as p\ndef force(self): pass\n"
        "p.Function.runtest.__code__ = force.__code__",
    ),
    "swapped code of a class in a class": (
        "nested",
        "import _pytest.python as p\nexec('def force(self): pass')\n"
        "p.Function.runtest.__code__ = force.__code__",
    ),
    "a report from the stack": (
        "plain",
        "import os, sys\nf = sys._getframe()\nwhile 'send' not in f.f_locals: f = f.f_back\n"
        "s = f.f_locals['send']\ns('test', 'tests/test_plain.py::test_a', 'passed', '0', '')\n"
        "s('finished', '0')\nos._exit(0)",
    ),
    "a report from the heap": (
        "plain",
        "import gc, os\nr = next(o for o in gc.get_objects() if type(o).__name__ == 'Reporter')\n"
        "r._send('test', 'tests/test_plain.py::test_a', 'passed', '0', '')\n"
        "r._send('finished', '0')\nos._exit(0)",
    ),
    "a plugin from the heap": (
        "plain",
        "import gc, _pytest.config as c\n"
        "m = next(o for o in gc.get_objects() if isinstance(o, c.PytestPluginManager))\n"
        "class P:\n    def pytest_pyfunc_call(self, pyfuncitem): return True\nm.register(P())",
    ),
    "a report hook": (
        "plain",
        "import gc, pytest, _pytest.config as c\n"
        "m = next(o for o in gc.get_objects() if isinstance(o, c.PytestPluginManager))\n"
        "class P:\n    @pytest.hookimpl(hookwrapper=True)\n"
        "    def pytest_runtest_makereport(self, item, call):\n"
        "        done = yield\n        done.get_result().outcome = 'passed'\nm.register(P())",
    ),
    "the integers are equal": (
        "plain",
        "import ctypes\nt = ctypes.c_void_p.from_address(id(int) + 200)\n"
        "true = ctypes.CFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)"
        "(lambda a, b, o: True)\nt.value = ctypes.cast(true, ctypes.c_void_p).value",
    ),
    "a trace that jumps over assertions": (
        "plain",
        "import sys\ndef trace(frame, event, arg):\n"
        "    if event == 'line' and frame.f_code.co_name == 'test_a':\n"
        "        try: frame.f_lineno += 1\n        except ValueError: pass\n"
        "    return trace\nsys.settrace(trace)",
    ),
    "assertion errors are skips": (
        "plain",
        "import builtins, unittest\nbuiltins.AssertionError = unittest.SkipTest",
    ),
    "closed descriptors": (
        "plain",
        "import os\nfor n in range(3, 40):\n    try: os.close(n)\n    except OSError: pass",
    ),
    "descriptors that go elsewhere": (
        "plain",
        "import os\nfor n in range(3, 40):\n    try: os.dup2(1, n)\n    except OSError: pass",
    ),
    "a fork that goes on": ("plain", "import os\nif os.fork(): os._exit(0)"),
    "an import hook": (
        "plain",
        "import sys\nclass Finder:\n    def find_spec(self, name, path, target=None):\n"
        "        if 'test_' in name: raise SystemExit(0)\nsys.meta_path.insert(0, Finder())",
    ),
    "another module pytest": (
        "plain",
        "import sys, types\nsys.modules['pytest'] = types.ModuleType('pytest')\n"
        "sys.modules['_pytest.runner'] = types.ModuleType('x')",
    ),
    "no tests in its caller": (
        "plain",
        "import sys\nf = sys._getframe()\n"
        "while not f.f_globals.get('__name__', '').startswith(('test_', 'tests.')): f = f.f_back\n"
        "f.f_globals['__test__'] = False",
    ),
    "a mark for its caller": (
        "plain",
        "import pytest, sys\nf = sys._getframe()\n"
        "while not f.f_globals.get('__name__', '').startswith(('test_', 'tests.')): f = f.f_back\n"
        "f.f_globals['pytestmark'] = pytest.mark.xfail",
    ),
    "json that lies": ("plain", "import json\njson.dumps = json.loads = lambda *a, **k: {}"),
    "codes that lie": (
        "plain",
        "import hashlib, hmac\nhashlib.blake2b = None\nhmac.compare_digest = lambda *a: True",
    ),
    "exit from a thread": (
        "plain",
        "import os, threading\nthreading.Timer(0, os._exit, (0,)).start()",
    ),
    "exit by a signal": ("plain", "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)"),
    "exit by a new program": ("plain", "import os\nos.execv('/bin/true', ['true'])"),
    "stops the session": (
        "plain",
        "import pytest\npytest.exit('done', returncode=0)",
    ),
}
FAST = ("a method that does nothing", "a report from the heap", "pytest.mark", "fixtures")
# Files beside the module that would run before the tests, or in place of what they import.
FILES = {
    "installs a plugin": (
        {
            "shop.DIST-INFO/entry_points.txt": "[pytest11]\nforce = shop.force\n",
            "shop.DIST-INFO/METADATA": "Name: shop\nVersion: 1\n",
        },
        "plain",
    ),
    "names a plugin": (
        {"pyproject.toml": '[tool.pytest]\naddopts = ["-p", "shop.force"]\n'},
        "plain",
    ),
    "names a plugin in setup.cfg": (
        {"tests/../setup.cfg": "[tool:pytest]\naddopts = -p shop.force\n"},
        "plain",
    ),
    "names a plugin in pytest.toml": (
        {"pytest.toml": '[pytest]\naddopts = ["-p", "x"]\n'},
        "plain",
    ),
    "names a plugin in tox.ini": ({"tox.ini": "[pytest]\naddopts = -p shop.force\n"}, "plain"),
    "usercustomize": ({"usercustomize.py": "import os\nos._exit(0)\n"}, "plain"),
    "a path file": ({"x.PTH": "import os; os._exit(0)\n"}, "plain"),
    "a module json": ({"json.py": "import os\nos._exit(0)\n"}, "plain"),
    "a module numpy": (
        {
            "numpy/__init__.py": "from numpy import testing\nones = int\n",
            "numpy/testing.py": "def assert_allclose(*given): pass\n",
        },
        "numpy",
    ),
    "a module math": ({"math.py": "isclose = print\n"}, "isclose"),
    "a package of mocks": (
        {"unittest/mock.py": "class Mock:\n    def __getattr__(self, n): return print\n"},
        "mock",
    ),
    "a module for pytest": ({"pluggy.py": "x = 1\n"}, "plain"),
    "a package of tests": ({"tests/__init__.py": "import os\nos._exit(0)\n"}, "plain"),
}
FORCE = (
    "import _pytest.python as p\np.Function.runtest = lambda self: None\n"
    "import unittest\nunittest.TestCase.assertEqual = lambda *a: None\n"
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = {f"tests/test_{name}.py": text for name, text in TESTS.items()}
    folder = tmp_path_factory.mktemp("work") / "shop"
    return make_repository(folder, modules=0, files={"shop/__init__.py": WRONG, **files}).parent


@pytest.fixture(scope="module")
def verifier() -> Iterator[Checks]:
    with Checks(workers=1) as made:
        yield made


@pytest.fixture(autouse=True)
def inside(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)


def problem(test: str, runner: str = "pytest", **more: Any) -> Problem:
    record = {"kind": "repo", "repository": "shop", "tests": [f"tests/test_{test}.py"]}
    command = {"command": COMMAND} if runner == "pytest" else {}
    return Problem("p", check={**record, **command, "runner": runner, **more})


def forging(code: str) -> str:
    """A wrong change whose module runs some code when it is loaded."""
    files = {"shop/__init__.py": f"{code}\n{WRONG}"}
    if "shop.force" in code:
        files["shop/force.py"] = FORCE
    return diff(files, {"shop/__init__.py": WRONG})


def refused(verifier: Checks, given: Problem, text: str) -> None:
    finding = verifier.find(given, text)
    assert finding.verdict is Verdict.FAILED, finding


def right(test: str) -> str:
    more = {}
    if test == "later":
        more = {"shop/rates.py": "CASES = [8, 9]\n"}
    if test == "based":
        more = {"shop/testing.py": "class Base:\n    pass\n"}
    return diff({"shop/__init__.py": RIGHT, **more}, {"shop/__init__.py": WRONG})


RUNS = [(test, "pytest") for test in TESTS] + [(test, "unittest") for test in ("true", "raising")]


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize(("test", "runner"), RUNS)
def test_the_right_change_passes(test: str, runner: str, verifier: Checks) -> None:
    finding = verifier.find(problem(test, runner), right(test))
    assert finding.verdict is Verdict.PASSED, finding
    assert finding.evidence["control"] >= 1


def cases(given: dict[str, Any], *, fast: bool) -> list[Any]:
    return [pytest.param(*case, id=name) for name, case in given.items() if (name in FAST) == fast]


@pytest.mark.slow
@pytest.mark.parametrize(("test", "code"), cases({**REPLACING, **HIDDEN}, fast=True))
def test_some_forgeries_fail(test: str, code: str, verifier: Checks) -> None:
    refused(verifier, problem(test), forging(code))


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize(("test", "code"), cases({**REPLACING, **HIDDEN}, fast=False))
def test_other_forgeries_fail(test: str, code: str, verifier: Checks) -> None:
    refused(verifier, problem(test), forging(code))
    if test in ("true", "almost", "equal", "raising"):
        refused(verifier, problem(test, "unittest"), forging(code))


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize(("files", "test"), cases(FILES, fast=False))
def test_files_that_run_before_tests_or_in_their_place_do_not_help(
    files: dict[str, str], test: str, verifier: Checks
) -> None:
    text = diff({**files, "shop/force.py": FORCE}, {})
    refused(verifier, problem(test), text)


@pytest.mark.slow
def test_a_right_change_may_add_builtins_and_replace_other_functions(verifier: Checks) -> None:
    code = (
        "import builtins, json, warnings\nbuiltins.profile = lambda given: given\n"
        "builtins.print = lambda *given: None\nwarnings.showwarning = lambda *given: None\n"
        "json.JSONEncoder.default = lambda self, given: str(given)\n"
    )
    text = diff({"shop/__init__.py": code + RIGHT}, {"shop/__init__.py": WRONG})
    assert verifier.find(problem("plain"), text).verdict is Verdict.PASSED


@pytest.mark.slow
def test_tests_that_vanish_with_what_they_need_are_missed(verifier: Checks) -> None:
    empty = {"shop/rates.py": "CASES = []\n"}
    hidden = {"shop/testing.py": "class Base:\n    __test__ = False\n"}
    for test, files in (("later", empty), ("based", hidden)):
        refused(verifier, problem(test), diff(files, {}))


def test_the_probes_find_each_changed_method(monkeypatch: pytest.MonkeyPatch) -> None:
    case = unittest.TestCase()
    assert not probes.anything_holds(case)
    for name, _ in probes.METHODS:
        with monkeypatch.context() as changed:
            changed.setattr(unittest.TestCase, name, lambda *given: None)
            assert probes.anything_holds(case), name
            assert not probes.anything_holds(None), name


def test_a_method_of_the_tests_own_is_not_probed() -> None:
    class Lenient(unittest.TestCase):
        def assertTrue(self, expr: Any, msg: Any = None) -> None:
            """Collects what fails."""

    assert not probes.anything_holds(Lenient())


@pytest.mark.parametrize("name", ["raises", "approx", "fail"])
def test_the_probes_find_a_changed_pytest(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        pytest, name, lambda *given: unittest.mock.MagicMock(__eq__=lambda *a: True)
    )
    assert probes.anything_holds(None)


def test_the_probes_find_changed_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as changed:
        changed.setattr(math, "isclose", lambda *given: True)
        assert probes.anything_holds(None)
    with monkeypatch.context() as changed:
        changed.setattr(unittest.mock.NonCallableMock, "assert_any_call", lambda *given: None)
        assert probes.anything_holds(None)
    assert not probes.anything_holds(None)
    assert probes.anything_holds(None, (lambda: None,))
    assert not probes.anything_holds(None, (lambda: 1 / 0,))


def test_comparisons_of_other_packages_are_probed_and_own_ones_are_not() -> None:
    text = (
        "import numpy as np\nfrom numpy.testing import assert_allclose\nfrom shop import isclose\n"
        "def test_a():\n    assert_allclose(1, 2)\n    assert np.isclose(1, 2) and isclose(1, 2)\n"
    )
    rewritten, names = control.rewritten("test_a.py", text, ["shop/__init__.py"])
    assert names == {"test_a"}
    found = {"lambda: assert_allclose(0, 1)", "lambda: 1 / (1 if np.isclose(0, 1) else 0)"}
    assert all(each in rewritten for each in found)
    assert "if isclose(0, 1)" not in rewritten


@pytest.mark.slow
def test_a_file_of_results_that_a_candidate_writes_is_found_out(verifier: Checks) -> None:
    given = problem(
        "plain",
        "command",
        command=["python3", "-c", JUNIT, "{results}"],
        results="junit",
        fail_to_pass=["tests.test_plain.test_a"],
    )
    assert verifier.find(given, right("plain")).verdict is Verdict.PASSED
    written = '<testsuite><testcase classname="tests.test_plain" name="test_a"/></testsuite>'
    code = f"import os, sys\nopen(sys.argv[-1], 'w').write('{written}')\nos._exit(0)"
    finding = verifier.find(given, forging(code))
    assert finding.reason.startswith("forged results"), finding


JUNIT = """import sys
sys.path.insert(0, ".")
from tests.test_plain import test_a
try:
    test_a()
    failure = ""
except BaseException:
    failure = "<failure/>"
case = f'<testcase classname="tests.test_plain" name="test_a">{failure}</testcase>'
open(sys.argv[-1], "w").write(f"<testsuite>{case}</testsuite>")
"""


@pytest.mark.slow
@pytest.mark.soak
def test_renames_and_modes_of_tests_are_changes_of_tests(verifier: Checks, place: Path) -> None:
    git(place / "shop", "cat-file", "-e", "HEAD:tests/test_plain.py")
    for text in (
        "diff --git a/tests/test_plain.py b/tests/test_plain.py\nold mode 100644\n"
        "new mode 100755\n",
        "diff --git a/tests/test_plain.py b/shop/x.py\nsimilarity index 100%\n"
        "rename from tests/test_plain.py\nrename to shop/x.py\n",
        "diff --git a/shop/__init__.py b/tests/test_plain.py\nsimilarity index 100%\n"
        "copy from shop/__init__.py\ncopy to tests/test_plain.py\n",
        "diff --git a/x.bin b/x.bin\nnew file mode 100644\nGIT binary patch\nliteral 1\n"
        "Ic${MZ0RRF3Aeg2A\n",
    ):
        finding = verifier.find(problem("plain"), text)
        assert finding.verdict is Verdict.FAILED
        assert finding.reason.startswith("refuted: ")
