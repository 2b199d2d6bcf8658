"""Whole searches as files. If a change alters one, its diff shows how, and is reviewed.

`python tests/support/golden.py tests/golden/*.json` writes them again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support import golden

FILES = sorted(Path(__file__).parent.glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_search_goes_as_it_went(path: Path) -> None:
    text = path.read_text()

    assert golden.renewed(text) == text


def test_the_files_are_there_and_end_in_different_ways() -> None:
    ends = [json.loads(path.read_text())["outcome"]["reason"] for path in FILES]

    assert {"solved", "out of budget"} <= set(ends)


@pytest.mark.slow
def test_a_file_that_is_out_of_date_can_be_renewed(tmp_path: Path) -> None:
    kept = json.loads(FILES[0].read_text())
    stale = tmp_path / "stale.json"
    stale.write_text(json.dumps({**kept, "turns": ["something else"]}))

    subprocess.run([sys.executable, golden.__file__, str(stale)], check=True)

    assert stale.read_text() == FILES[0].read_text()
