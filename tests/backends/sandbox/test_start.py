"""How grv was started changes no verdict: signals, mask, umask, descriptors, locale, folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow
SOURCE = str(Path(__file__).parents[3] / "src")
# Starts a judge as an unusual parent would, then reports the verdicts.
PARENT = """
import os, signal, sys
def ignore(*names):
    for name in names: signal.signal(getattr(signal, name), signal.SIG_IGN)
{prelude}
os.execv(sys.executable, [sys.executable, "-c", sys.argv[1]])
"""
JUDGE = """
import json, sys
from grv.backends.protocols import Problem
from grv.backends.sandbox.limits import RunLimits
from grv.backends.verifiers.pool import CheckVerifier
def stdin(text, printed="7"):
    return {"kind": "stdin", "tests": [{"input": "", "output": printed}]}, text
kill = "import os, signal\\nos.kill(os.getpid(), signal.%s)\\nprint(7)"
asks = "import signal, os\\ndef check(c):\\n    assert c(1) == 1\\n"
asks += "    assert signal.getsignal(signal.SIGQUIT) is signal.SIG_DFL\\n"
asks += "    assert not signal.pthread_sigmask(0, []) and os.umask(0) == 0o022"
shell = "trap 'exit 1' QUIT; trap 'exit 1' TERM; kill -QUIT $$; kill -TERM $$; exit 0"
jobs = {
    **{name: stdin(kill % name) for name in ("SIGQUIT", "SIGHUP", "SIGTERM", "SIGUSR1")},
    "SIGINT": stdin(kill % "SIGINT"),
    "umask": stdin("import os\\nprint(oct(os.umask(0)))", "0o22"),
    "mask": stdin("import signal\\nprint(len(signal.pthread_sigmask(0, [])))", "0"),
    "open": stdin("import os\\nfor n in range(5, 99):\\n    try: os.fstat(n); print(n)\\n"
                  "    except OSError: pass\\nprint(7)"),
    "locale": stdin("import locale, sys\\nprint(sys.stdout.encoding)", "utf-8"),
    "tester": ({"kind": "asserts", "entry_point": "f", "test": asks}, "def f(x): return x"),
    "command": ({"kind": "command", "argv": ["sh", "-c", shell]}, "x"),
    "passing": ({"kind": "command", "argv": ["sh", "-c",
                 "test $(umask) = 0022 && test $LC_ALL = C.UTF-8 && test ! -e /dev/fd/77"]}, "x"),
}
with CheckVerifier(workers=1, allow_commands=True) as verifier:
    found = {name: verifier.find(Problem(name, check=check), text)
             for name, (check, text) in jobs.items()}
with open(sys.argv[1] if len(sys.argv) > 1 else "verdicts.json", "w") as file:
    json.dump({n: [f.verdict.value, f.reason] for n, f in found.items()}, file)
"""
WAYS = {
    "usual": "",
    "nohup": "ignore('SIGHUP')",
    "background": "ignore('SIGINT', 'SIGQUIT')",
    "ignoring": "ignore('SIGTERM', 'SIGUSR1', 'SIGPIPE', 'SIGCHLD', 'SIGQUIT', 'SIGHUP', 'SIGINT')",
    "blocking": "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())",
    "umask": "os.umask(0o077)",
    "stdin closed": "os.close(0)",
    "streams closed": "os.closerange(0, 3)",
    "descriptors": "os.dup2(1, 77, inheritable=True)",
    "LANG=C": "os.environ.update(LANG='C', LC_ALL='C', PYTHONUTF8='0')",
}
EXPECTED = {
    **{name: ["failed", "crash"] for name in ("SIGQUIT", "SIGHUP", "SIGTERM", "SIGUSR1")},
    "SIGINT": ["failed", "exception"],
    **{name: ["passed", ""] for name in ("umask", "mask", "open", "locale")},
    "tester": ["passed", ""],
    "command": ["failed", "checker failed it"],
    "passing": ["passed", "checker passed it"],
}


def verdicts(folder: Path, prelude: str) -> dict[str, Any]:
    subprocess.run(
        [sys.executable, "-c", PARENT.replace("{prelude}", prelude), JUDGE],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": SOURCE},
        check=True,
        start_new_session=True,
        timeout=120,
    )
    found: dict[str, Any] = json.loads((folder / "verdicts.json").read_text())
    return found


@pytest.mark.parametrize("way", WAYS)
def test_how_the_judge_was_started_changes_no_verdict(way: str, tmp_path: Path) -> None:
    folder = tmp_path / "a folder with spaces"
    folder.mkdir()
    assert verdicts(folder, WAYS[way]) == EXPECTED
