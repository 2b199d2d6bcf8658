"""Every field of a request is fuzzed with paths, addresses and specifications; a spy sees none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parents[1]


def spied(folder: Path, count: int, what: str = "requests") -> None:
    words = [sys.executable, "-m", "support.spied", str(folder), str(count), what]
    ran = subprocess.run(words, cwd=TESTS, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout)
    assert said["seen"] == []
    assert not said["postgres"]  # libpq connects unseen by the spy, so it must not be loaded
    assert sum(said["statuses"].values()) == count
    assert set(said["statuses"]) <= {"200", "400", "404", "422"}
    assert said["statuses"]["200"]
    assert said["statuses"]["400"]


def test_no_field_of_a_request_opens_a_file_or_a_connection(tmp_path: Path) -> None:
    spied(tmp_path, 1000)


def test_no_field_of_another_dialect_opens_a_file_or_a_connection(tmp_path: Path) -> None:
    spied(tmp_path, 1000, "dialects")


def test_no_row_of_nemo_gym_opens_a_file_or_a_connection(tmp_path: Path) -> None:
    spied(tmp_path, 500, "rows")


def test_no_argument_of_a_tool_opens_a_file_or_a_connection(tmp_path: Path) -> None:
    spied(tmp_path, 1000, "tools")


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_no_field_of_a_request_opens_anything_however_often_it_is_tried(tmp_path: Path) -> None:
    spied(tmp_path, 8000)
