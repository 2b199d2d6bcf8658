"""What a command loads before it works: each library here takes as long as a small log does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SLOW_TO_LOAD = {"pydantic", "scipy", "pyarrow", "pandas", "numpy.ma"}
_RUN = """
import sys
from grv.apps.cli import run
code = run(sys.argv[1:])
print(code, sorted(SLOW & sys.modules.keys()), file=sys.stderr)
"""
LOG = "problem,candidate,score,passed\n" + "".join(
    f"{problem},{candidate},{7 * candidate % 20},{int(candidate == problem + 3)}\n"
    for problem in range(4)
    for candidate in range(20)
)


@pytest.mark.parametrize(
    "arguments", [["--help"], ["compare", "--help"], ["compare", "log.csv"]], ids=" ".join
)
def test_a_command_loads_no_library_that_it_does_not_need(
    tmp_path: Path, arguments: list[str]
) -> None:
    (tmp_path / "log.csv").write_text(LOG)
    code = f"SLOW = {SLOW_TO_LOAD!r}\n{_RUN}"
    call = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "0 []"
