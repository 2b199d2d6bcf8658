"""The man pages: made from the help, and without a complaint of `man` and `mandoc`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.environments import ROOT

pytestmark = pytest.mark.slow


def test_man_pages_are_complete_and_well_formed(tmp_path: Path) -> None:
    subprocess.run([sys.executable, ROOT / "tools" / "manual.py", tmp_path], check=True)
    pages = sorted(tmp_path.glob("*.1"))
    solve = (tmp_path / "grv-solve.1").read_text()

    assert {"grv.1", "grv-serve.1", "grv-runs-list.1"} <= {page.name for page in pages}
    assert "\\-\\-total\\-budget" in solve
    for call in (["mandoc", "-Tlint", "-Wwarning"], ["man", "--warnings", "-l", "-Tutf8", "-Z"]):
        if shutil.which(call[0]) is None:
            continue
        for page in pages:
            ran = subprocess.run([*call, page], capture_output=True, text=True)
            said = ran.stderr if call[0] == "man" else ran.stdout
            assert said == "", page.name
