"""`make matrix` runs the environments and the tests that it is given, and no others."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from matrix import chosen, environments
from support.environments import ROOT


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ([], ["tests/matrix.py", "--only=", "--tests="]),
        (
            ["only=3.13-oldest", "tests=tests/core -m 'not slow' -k \"one or two\""],
            [
                "tests/matrix.py",
                "--only=3.13-oldest",
                "--tests=tests/core -m 'not slow' -k \"one or two\"",
            ],
        ),
    ],
)
def test_make_hands_on_what_it_is_given(
    variables: list[str], words: list[str], tmp_path: Path
) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    python.chmod(0o755)
    skipped = [
        f"--old-file={name}" for name in ("install", "browser", "postgres", "provers", "languages")
    ]
    call = ["make", "--silent", *skipped, "matrix", f"BIN={tmp_path}", *variables]
    outside = {"PATH": os.environ["PATH"]}  # a make that runs these tests leaves variables
    ran = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, env=outside)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == words


@pytest.mark.slow
def test_all_environments_run_unless_some_are_named() -> None:
    names = list(environments())
    assert chosen("") == names
    assert chosen(f"{names[-1]}, {names[0]}") == [names[-1], names[0]]


@pytest.mark.slow
def test_a_name_that_no_environment_has_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"^3\.1-newest is no environment; there are: 3"):
        chosen("3.1-newest")
