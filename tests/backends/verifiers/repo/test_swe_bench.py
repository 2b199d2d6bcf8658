"""Instances of SWE-bench as problems, its predictions as logs, and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from grv import Verdict
from grv.backends.problems.files import read_examples
from grv.verifiers import Checks
from support.commands import Ran, here
from support.repositories import FILES, PRICES, RIGHT, diff, git, make_repository

TEST = "from shop.prices import discount\n\n\ndef test_all():\n    assert discount(4, 100) == 0\n"


def run(*arguments: str) -> Ran:
    return here(*arguments)


def instance(place: Path, **more: Any) -> dict[str, Any]:
    """An instance in the layout of SWE-bench, with the lists as JSON in a text."""
    return {
        "instance_id": "ann__shop-1",
        "repo": "ann/shop",
        "base_commit": git(place / "clones" / "ann__shop", "rev-parse", "HEAD").strip(),
        "version": "1.0",
        "problem_statement": "discount() subtracts the percentage.",
        "hints_text": "",
        "patch": diff({"shop/prices.py": RIGHT}),
        "test_patch": diff({"tests/test_new.py": TEST}),
        "FAIL_TO_PASS": '["tests/test_new.py::test_all"]',
        "PASS_TO_PASS": '["tests/test_prices.py::TestTotal::test_sum"]',
        "environment_setup_commit": "",
        **more,
    }


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    make_repository(tmp_path / "clones" / "ann__shop", modules=3)
    return tmp_path


def written(path: Path, *rows: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path.name


@pytest.mark.slow
def test_instances_become_problems_whose_gold_patch_passes(place: Path) -> None:
    file = written(
        place / "test.jsonl",
        instance(place),
        instance(place, instance_id="b", FAIL_TO_PASS='["test_a (app.tests.A)"]'),
        instance(place, instance_id="c", repo="bob/other"),
        instance(place, instance_id="d", log_parser="parse_log_django"),
    )
    done = run("problems", "swe-bench", file, "--repositories", "clones", "-o", "swe.jsonl")
    assert done.code == 0, done.out + done.err
    assert "swe.jsonl: 1 problem" in (done.out + done.err)
    for reason in ("tests that pytest does not name", "no clone of bob/other", "parse_log_django"):
        assert reason in (done.out + done.err)
    (example,) = read_examples("swe.jsonl")
    check = example.problem.check
    assert (check["kind"], check["repository"]) == ("repo", "clones/ann__shop")
    assert check["fail_to_pass"] == ["tests/test_new.py::test_all"]
    assert check["protect"] == ["tests/test_new.py"]
    assert "discount() subtracts" in example.problem.prompt
    assert RIGHT not in example.problem.prompt
    with Checks(workers=1) as verifier:
        (gold,) = example.solutions
        assert verifier.find(example.problem, gold).verdict is Verdict.PASSED
        wrong = diff({"shop/prices.py": PRICES.replace("price - percent", "price")})
        assert verifier.find(example.problem, wrong).verdict is Verdict.FAILED


def test_an_image_is_the_environment(place: Path) -> None:
    file = written(place / "test.jsonl", instance(place, image="swebench/x:latest"))
    assert run("problems", "swe-bench", file, "--repositories", "clones", "-o", "s.jsonl").code == 0
    (example,) = read_examples("s.jsonl")
    assert example.problem.check["image"] == "swebench/x:latest"
    assert example.problem.check["command"][0].endswith("/bin/python")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"repo": "../../etc"}, "field repo must be OWNER/NAME"),
        ({"repo": 3}, "field repo is missing or has the wrong type"),
        ({"FAIL_TO_PASS": "["}, "FAIL_TO_PASS is not JSON"),
        ({"PASS_TO_PASS": {"a": 1}}, "field PASS_TO_PASS must be a list of tests"),
        ({"base_commit": "0" * 40}, "the repository has no commit"),
    ],
)
def test_a_wrong_instance_is_named(more: dict[str, Any], said: str, place: Path) -> None:
    file = written(place / "test.jsonl", instance(place, **more))
    done = run("problems", "swe-bench", file, "--repositories", "clones", "-o", "swe.jsonl")
    assert done.code == 2
    assert said in (done.out + done.err)
    assert not (place / "swe.jsonl").exists()


def prediction(name: str, patch: str | None) -> dict[str, Any]:
    return {"instance_id": name, "model_patch": patch, "model_name_or_path": "m"}


def test_predictions_and_reports_become_a_log(place: Path) -> None:
    short = diff({"a.py": "x = 1\n"})
    first = written(place / "p1.jsonl", prediction("a", short), prediction("b", short * 2))
    (place / "p2.json").write_text(json.dumps([prediction("a", ""), prediction("b", short)]))
    (place / "p3.json").write_text(json.dumps({"a": prediction("a", short)}))
    reports = []
    for number, resolved in enumerate((["a"], ["b"], [])):
        ids = {"a", "b"} if number < 2 else {"a"}
        report = {"resolved_ids": resolved, "unresolved_ids": sorted(ids - set(resolved))}
        (place / f"r{number}.json").write_text(json.dumps({"schema_version": 2, **report}))
        reports.append(f"r{number}.json")
    done = run("convert", first, "p2.json", "p3.json", *reports, "-o", "log.jsonl")
    assert done.code == 0, done.out + done.err
    rows = [json.loads(line) for line in (place / "log.jsonl").read_text().splitlines()]
    labels = {(row["problem"], row["candidate"]): row["passed"] for row in rows}
    assert labels == {
        ("a", 0): True,
        ("a", 1): False,
        ("a", 2): False,
        ("b", 0): False,
        ("b", 1): True,
    }
    assert run("compare", "log.jsonl", "--orders", "2").code == 0


def test_verified_answers_become_predictions(place: Path) -> None:
    patch = diff({"a.py": "x = 1\n"})
    answer = {"outcome": "solved", "answer_verified": True}
    file = written(
        place / "answers.jsonl",
        {"problem": "a", "answer": patch, **answer},
        {"problem": "b", "answer": f"Here:\n\n```diff\n{patch}```\nDone.", **answer},
        {"problem": "c", "answer": patch, "outcome": "exhausted", "answer_verified": False},
        {"problem": "d", "answer": "```python a.py\nx = 1\n```", **answer},
    )
    done = run("convert", file, "--predictions", "my-model", "-o", "predictions.jsonl")
    assert done.code == 0, done.out + done.err
    rows = [json.loads(line) for line in (place / "predictions.jsonl").read_text().splitlines()]
    assert rows == [
        {"instance_id": name, "model_name_or_path": "my-model", "model_patch": patch}
        for name in "ab"
    ]
    assert "left out: 1, no verified answer: c" in (done.out + done.err)
    assert "left out: 1, an answer that is no diff: d" in (done.out + done.err)
    assert run("convert", file, "--predictions", "m", "-o", "answers.jsonl").code == 2


def test_files_of_the_repository_are_as_the_fixture_says(place: Path) -> None:
    listed = git(place / "clones" / "ann__shop", "ls-files").splitlines()
    assert set(FILES) <= set(listed)
