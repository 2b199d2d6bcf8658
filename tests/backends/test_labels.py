from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grv.backends.protocols import Finding, Usage
from grv.backends.verifiers.labels import LabelFile, read_batches
from grv.core.errors import LogError, UsageError
from grv.core.values import Verdict

PASSED = Finding(Verdict.PASSED, usage=Usage(seconds=0.5))
FAILED = Finding(Verdict.FAILED, "timeout")
BROKEN = Finding(Verdict.BROKEN, "worker died")


def test_labels_are_lines_of_json(tmp_path: Path) -> None:
    labels = LabelFile(str(tmp_path / "labels"))
    labels.add("p", 0, PASSED, "k")
    labels.add("p", 1, FAILED, None, {"test": 3})
    labels.close()
    first, second = map(json.loads, (tmp_path / "labels").read_text().splitlines())
    assert first == {
        **{"problem": "p", "candidate": 0, "verdict": "passed", "reason": ""},
        **{"seconds": 0.5, "key": "k"},
    }
    assert second["evidence"] == {"test": 3}


def test_broken_verdicts_are_dropped_when_the_file_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "labels"
    labels = LabelFile(str(path))
    for number, finding in enumerate((PASSED, BROKEN, FAILED, BROKEN)):
        labels.add("p", number, finding, None)
    labels.close()
    labels = LabelFile(str(path))
    assert labels.done == {("p", 0): Verdict.PASSED, ("p", 2): Verdict.FAILED}
    labels.add("p", 1, PASSED, None)
    labels.close()
    numbers = [json.loads(line)["candidate"] for line in path.read_text().splitlines()]
    assert numbers == [0, 2, 1]
    assert list(tmp_path.iterdir()) == [path]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_cut_at_any_byte_the_rest_is_taken_up(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "labels"
    path.unlink(missing_ok=True)
    labels = LabelFile(str(path))
    for number in range(5):
        labels.add("p", number, PASSED, "ü")
    labels.close()
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    labels = LabelFile(str(path))
    lines = whole[:cut].count(b"\n")
    complete = lines + (whole[cut : cut + 1] == b"\n")
    assert sorted(number for _, number in labels.done) == list(range(complete))
    for number in range(complete, 5):
        labels.add("p", number, PASSED, "ü")
    labels.close()
    assert path.read_bytes() == whole


def test_a_torn_line_in_the_middle_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "labels").write_text('{"problem": "p", "cand\n{"problem": "p", "candidate": 1}\n')
    with pytest.raises(UsageError, match="labels:1: not a label"):
        LabelFile(str(tmp_path / "labels"))


def test_two_do_not_write_to_one_file(tmp_path: Path) -> None:
    labels = LabelFile(str(tmp_path / "labels"))
    with pytest.raises(UsageError, match="another grv is writing to it"):
        LabelFile(str(tmp_path / "labels"))
    labels.close()
    LabelFile(str(tmp_path / "labels")).close()


def test_problems_are_read_with_their_candidates(tmp_path: Path) -> None:
    path = tmp_path / "problems"
    path.write_text('{"problem": 3, "check": {"kind": "x"}, "candidates": ["a", "b"]}\n\n')
    (batch,) = read_batches(str(path))
    assert (batch.problem.id, batch.texts) == ("3", ("a", "b"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not a line of JSON"),
        ("[]", "a line must be an object, not a list"),
        ("{}", "no field .problem."),
        ('{"problem": "p"}', "no field .check.; a line has problem, check, candidates"),
        ('{"problem": "p", "check": {}}', "no field .candidates.; a line has"),
        ('{"problem": "p", "check": {}, "candidates": [3]}', "candidates must be a list of texts"),
        ('{"problem": "q", "check": {}, "candidates": []}', "problem q occurs twice"),
    ],
)
def test_mistakes_name_the_line(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "problems"
    path.write_text('{"problem": "q", "check": {}, "candidates": []}\n' + line + "\n")
    with pytest.raises(LogError, match=f"problems:2: .*{message}"):
        list(read_batches(str(path)))
