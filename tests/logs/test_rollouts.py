"""`grv convert`: traces of verifiers and details of lighteval, in the layout of their writers."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.commands import here, refuses


def episode(
    key: str, score: float | None, text: str, *, ok: bool = True, **more: Any
) -> dict[str, Any]:
    """One line of `traces.jsonl`, as verifiers 0.4 writes it, without empty fields."""
    rewards = {} if score is None else {"correct": {"score": score, "weight": 1.0}}
    task = {"type": "MathTask", "key": key, "hash": f"hash of {key}", "data": {"idx": 0}}
    prompt = {"message": {"role": "user", "content": "2 + 2?"}, "sampled": False}
    reply = {"parent": 0, "message": {"role": "assistant", "content": text}, "sampled": True}
    trace = {
        "version": 1,
        "id": f"{key} {text}",
        "task": task,
        "agent": {"name": "agent", "trainable": True},
        "nodes": [prompt, reply],
        "calls": [{"node": 1, "model": "small", "usage": {"prompt_tokens": 9}}],
        "rewards": rewards,
        "metrics": {"num_turns": 1.0},
        "ok": ok,
        "timing": {"start": 1.0, "scoring": {"start": 10.0, "end": 12.5}},
        **more,
    }
    return {"id": "e", "env": {"id": "math"}, "task": task, "ok": ok, "traces": [trace]}


def write_lines(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_rollout_of_verifiers_is_a_candidate(tmp_path: Path) -> None:
    lines = [
        episode("a", 1.0, "4"),
        episode("a", 0.5, "five"),
        episode("b", None, "", ok=False),
        episode("b", 0.0, "no"),
    ]
    file = write_lines(tmp_path / "traces.jsonl", lines)
    out = tmp_path / "log.csv"
    ran = here("convert", file, "-o", out)

    assert (ran.code, ran.err) == (0, ""), ran
    assert "The reward correct labels the candidates: 1 passes, less fails." in ran.out
    found = rows(out)
    assert [(row["problem"], row["candidate"], row["passed"]) for row in found] == [
        ("a", "0", "True"),
        ("a", "1", "False"),
        ("b", "0", ""),
        ("b", "1", "False"),
    ]
    assert {row["verify_seconds"] for row in found} == {"2.5"}
    assert found[1]["score_length"] == "-4.0"
    assert here("convert", file, "--score", "num_turns=score_turns", "-o", out).code == 0
    assert rows(out)[0]["score_turns"] == "1.0"


def test_what_cannot_be_a_log_of_rollouts_is_said_in_one_line(tmp_path: Path) -> None:
    out = tmp_path / "log.csv"
    several = {"correct": {"score": 1.0}, "format": {"score": 0.0}}
    file = write_lines(tmp_path / "traces.jsonl", [episode("a", 1.0, "4", rewards=several)])
    refuses(["convert", file, "-o", out], "traces.jsonl:1", "--passed (correct, format)")
    assert here("convert", file, "--passed", "format", "-o", out).code == 0
    assert rows(out)[0]["passed"] == "False"

    team = episode("a", 1.0, "4")
    team["traces"] *= 2
    write_lines(file, [team])
    refuses(["convert", file, "-o", out], "the rollout has 2 agents")
    write_lines(file, [episode("a", 1, "4"), episode("a", 1, "4", calls=[{"model": "large"}])])
    refuses(["convert", file, "-o", out], "several models (small, large)")
    nameless = episode("a", 1.0, "4")
    nameless["task"] = {"type": "T", "data": {}}
    write_lines(file, [nameless])
    refuses(["convert", file, "-o", out], "the task has no key, hash, id or idx")


@pytest.mark.parametrize("trace", [{}, {"nodes": [3], "calls": [3], "rewards": 3, "timing": []}])
def test_a_damaged_trace_has_no_label(tmp_path: Path, trace: dict[str, Any]) -> None:
    damaged = {"task": {"key": "a"}, "ok": True, "traces": [trace]}
    file = write_lines(tmp_path / "traces.jsonl", [episode("a", 1.0, "4"), damaged])
    assert here("convert", file, "-o", tmp_path / "log.csv").code == 0
    assert [row["passed"] for row in rows(tmp_path / "log.csv")] == ["True", ""]


def detail(name: str, texts: list[str], metric: dict[str, float]) -> dict[str, Any]:
    """One row of lighteval's details: three records, as its data classes have them."""
    return {
        "doc": {"id": name, "query": "2 + 2?", "gold_index": 0, "task_name": "gsm8k|0"},
        "model_response": {"input": "2 + 2?", "text": texts, "logprobs": []},
        "metric": metric,
    }


def write_details(path: Path, details: list[dict[str, Any]]) -> Path:
    pq.write_table(pa.Table.from_pylist(details), path)
    return path


def test_a_text_of_lighteval_is_a_candidate(tmp_path: Path) -> None:
    first = [detail("0", ["4"], {"exact": 1.0}), detail("1", ["five"], {"exact": 0.0})]
    file = write_details(tmp_path / "details_gsm8k_1.parquet", first)
    again = write_details(tmp_path / "details_gsm8k_2.parquet", [detail("0", ["no"], {"exact": 0})])
    out = tmp_path / "log.csv"
    ran = here("convert", file, again, "-o", out)

    assert (ran.code, ran.err) == (0, ""), ran
    assert "The metric exact labels the candidates." in ran.out
    assert [(row["problem"], row["candidate"], row["passed"]) for row in rows(out)] == [
        ("gsm8k|0/0", "0", "True"),
        ("gsm8k|0/1", "0", "False"),
        ("gsm8k|0/0", "1", "False"),
    ]


def test_metrics_of_several_texts_label_none_of_them(tmp_path: Path) -> None:
    out = tmp_path / "log.csv"
    file = write_details(tmp_path / "d.parquet", [detail("0", ["4", "5"], {"pass@2": 1.0})])
    refuses(["convert", file, "-o", out], "no label in these files. Rows with several texts")
    several = [detail("0", ["4"], {"exact": 1.0, "f1": 0.5})]
    refuses(["convert", write_details(file, several), "-o", out], "--passed (metrics: exact, f1)")
    assert here("convert", file, "--passed", "exact", "-o", out).code == 0
    choices = detail("0", [], {"acc": 1.0})
    choices["model_response"]["logprobs"] = [-1.0]
    refuses(["convert", write_details(file, [choices]), "-o", out], "the row has no text")
