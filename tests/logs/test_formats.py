"""Files of other tools as logs: Parquet with lists, inspect_ai, lm-evaluation-harness.

The files in `assets/lm_eval` were made by lm-evaluation-harness 0.4.13 from four sums of our own.
`test_foreign_writers.py` makes such files anew, with the tools themselves.
"""

from __future__ import annotations

import json
import shutil
import sys
import tracemalloc
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grv.core.errors import LogError, UsageError, installing
from grv.logs import inspect_logs
from grv.logs.converting import Joined, join
from grv.logs.entries import Fields
from grv.logs.log import Log
from support.commands import here

SAMPLES = Path(__file__).parents[1] / "assets" / "lm_eval"
ONCE = sorted(map(str, SAMPLES.glob("samples_sums_2026*.jsonl")))
MANY = next(map(str, SAMPLES.glob("samples_sums_many_*.jsonl")))
CHOICE = next(map(str, SAMPLES.glob("samples_choice_*.jsonl")))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, records: list[Any]) -> str:
    Path(name).write_text("".join(json.dumps(record) + "\n" for record in records))
    return name


def test_a_parquet_file_may_have_a_list_per_problem() -> None:
    rows = [
        {"id": "a", "passed": [True, False], "score": [0.5, 0.7], "prompt": "?"},
        {"id": "b", "passed": [False], "score": [None], "prompt": "?"},
    ]
    pq.write_table(pa.Table.from_pylist(rows), "lists.parquet")

    assert join(["lists.parquet"], Fields()).columns == {
        "problem": ["a", "a", "b"],
        "candidate": [0, 1, 0],
        "passed": [True, False, False],
        "score": [0.5, 0.7, None],
    }


def test_a_parquet_file_may_have_a_list_of_records_per_problem() -> None:
    rows = [{"id": "a", "samples": [{"correct": True, "rm": 1.0}, {"correct": False, "rm": 2.0}]}]
    pq.write_table(pa.Table.from_pylist(rows), "lists.parquet")

    found = here("convert", "lists.parquet", "--score", "rm", "-o", "log.parquet")

    assert found.out == "log.parquet: 2 candidates, rm; 0 without a label, 0 without a score\n"
    assert Log.load("log.parquet")["a"].scores.tolist() == [1, 2]


def test_csv_files_join_others() -> None:
    Path("labels.csv").write_text("problem,candidate,passed\na,0,true\na,1,\n")
    write("scores.jsonl", [{"problem": "a", "candidate": i, "score": i} for i in range(2)])

    assert join(["labels.csv", "scores.jsonl"], Fields()).columns["passed"] == [True, None]


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"PAR1 nonsense PAR1"])
def test_a_damaged_parquet_file_is_one_line(damage: bytes) -> None:
    Path("bad.parquet").write_bytes(damage)

    ran = here("convert", "bad.parquet", "-o", "log.csv")

    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "bad.parquet" in ran.err


# Scores that are computed.


def test_without_a_score_what_can_be_computed_is() -> None:
    write("c.jsonl", [
        {"id": "a", "idx": 0, "passed": 1, "text": "four", "key": "4", "logprobs": [-1, -2]},
        {"id": "a", "idx": 1, "passed": 0, "text": "five!", "key": "5", "logprobs": [-4]},
        {"id": "a", "idx": 2, "passed": 1, "text": " ", "key": "4", "logprobs": []},
        {"id": "b", "idx": 0, "passed": 1, "text": "x", "key": "4", "logprobs": [None]},
    ])  # fmt: skip
    made = join(["c.jsonl"], Fields())

    assert made.columns["score_logprob"] == [-1.5, -4, None, None]
    assert made.columns["score_length"] == [-4, -5, None, -1]
    assert made.columns["score_votes"] == [2, 1, 2, 1]
    assert "A live search has fewer to count" in made.notes[0]


def test_a_score_of_the_file_is_preferred_and_a_computed_one_can_be_asked_for() -> None:
    write("c.jsonl", [{"id": "a", "idx": 0, "passed": 1, "completion": "four", "score": 3}])

    assert join(["c.jsonl"], Fields()).score_names == ["score"]
    ran = here("convert", "c.jsonl", "--score", "length", "--score", "score", "-o", "log.csv")
    assert ran.out.startswith("log.csv: 1 candidates, score_length, score;")


def test_the_log_probabilities_may_be_those_of_openai() -> None:
    content = {"content": [{"token": "a", "logprob": -1.0}, {"token": "b", "logprob": -3.0}]}
    write("c.jsonl", [{"id": "a", "idx": 0, "passed": 1, "logprobs": content}])

    assert join(["c.jsonl"], Fields()).columns["score_logprob"] == [-2]


def test_a_text_may_stand_in_any_field() -> None:
    write("c.jsonl", [{"id": "a", "idx": 0, "passed": 1, "output": {"said": "four"}}])

    assert here("convert", "c.jsonl", "-o", "log.csv").code == 2
    assert here("convert", "c.jsonl", "--text", "output.said", "-o", "log.csv").code == 0
    assert Log.load("log.csv", score="score_length")["a"].scores.tolist() == [-4]


# inspect_ai.


def score(value: Any, answer: str | None = None) -> SimpleNamespace:
    return SimpleNamespace(value=value, answer=answer, metadata=None)


def sample(id: str, epoch: int, text: str, **scores: SimpleNamespace) -> SimpleNamespace:
    tokens = SimpleNamespace(content=[SimpleNamespace(logprob=-float(epoch))])
    output = SimpleNamespace(completion=text, choices=[SimpleNamespace(logprobs=tokens)])
    return SimpleNamespace(
        id=id, epoch=epoch, output=output, scores=scores, metadata={"level": {"n": 2}}, error=None
    )


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[Any, list[Any]]]:
    """What inspect_ai would read, by file: it is not installed here."""
    files: dict[str, tuple[Any, list[Any]]] = {}
    monkeypatch.setattr(inspect_logs, "_opened", lambda path: files[path])
    return files


def header(model: str = "m", status: str = "success") -> SimpleNamespace:
    return SimpleNamespace(status=status, eval=SimpleNamespace(task="sums", model=model))


def converted(*paths: str, **fields: Any) -> Joined:
    return join(paths, Fields(**fields))


@pytest.mark.slow
@pytest.mark.parametrize("declared", [200 << 20, 100])
def test_an_archive_that_unpacks_to_far_more_than_a_log_is_refused(
    monkeypatch: pytest.MonkeyPatch, declared: int
) -> None:
    """Also if it lies about the size of its files."""
    monkeypatch.setattr(inspect_logs, "MOST_UNPACKED", 100 << 20)
    with zipfile.ZipFile("bomb.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("samples/1.json", b" " * (200 << 20))
    content = Path("bomb.eval").read_bytes()
    size, other = (number.to_bytes(4, "little") for number in (200 << 20, declared))
    Path("bomb.eval").write_bytes(content.replace(size, other))
    with pytest.raises(LogError, match=r"unpacks to more than 0.1 GB|not a readable archive"):
        converted("bomb.eval")


@pytest.mark.slow
@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_archive_is_packed_as_inspect_ai_packs(method: int) -> None:
    """Others unpack at once, from kilobytes to gigabytes, whatever size they claim."""
    with zipfile.ZipFile("bomb.eval", "w", method) as archive:
        archive.writestr("header.json", b" " * (60 << 20))
    content = Path("bomb.eval").read_bytes()
    declared = content.replace((60 << 20).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    Path("bomb.eval").write_bytes(declared)
    tracemalloc.start()
    with pytest.raises(LogError, match=r"header.json is packed by the method 1[24]"):
        converted("bomb.eval")
    assert tracemalloc.get_traced_memory()[1] < 10 << 20
    tracemalloc.stop()


def test_each_epoch_of_each_inspect_log_is_a_candidate(
    logged: dict[str, tuple[Any, list[Any]]],
) -> None:
    good, bad = {"match": score("C", "4")}, {"match": score("I", "5")}
    logged["a.eval"] = header(), [sample("x", 1, "four", **good), sample("x", 2, "5", **bad)]
    logged["b.eval"] = header(), [sample("x", 1, "five", **bad)]
    made = converted("a.eval", "b.eval")

    assert made.columns["problem"] == ["sums/x"] * 3
    assert made.columns["candidate"] == [0, 1, 2]
    assert made.columns["passed"] == [True, False, False]
    assert made.columns["key"] == ["4", "5", "5"]
    assert made.columns["score_logprob"] == [-1, -2, -1]
    assert made.columns["score_length"] == [-4, -1, -4]
    assert made.columns["score_votes"] == [1, 2, 2]
    assert made.notes[0] == "The scorer match labels the candidates."


def test_a_scorer_or_a_path_into_its_value_can_label(
    logged: dict[str, tuple[Any, list[Any]]],
) -> None:
    scores = {"match": score("C"), "grade": score({"right": "I", "mark": 0.25})}
    logged["a.eval"] = header(), [sample("x", 1, "four", **scores)]

    made = converted("a.eval", passed=("grade.right",), scores=(("grade.mark", "score_mark"),))
    assert made.columns["passed"] == [False]
    assert made.columns["score_mark"] == [0.25]
    assert converted("a.eval", passed=("match",)).columns["passed"] == [True]
    with pytest.raises(LogError, match="true or false"):
        converted("a.eval", passed=("grade.mark",))


def test_several_scorers_must_be_chosen_from(logged: dict[str, tuple[Any, list[Any]]]) -> None:
    logged["a.eval"] = header(), [sample("x", 1, "4", match=score("C"), includes=score("I"))]

    with pytest.raises(UsageError, match=r"several scorers .*\(match, includes\).*--passed"):
        converted("a.eval")
    logged["a.eval"] = header(), [sample("x", 1, "4", grade=score(0.5))]
    with pytest.raises(UsageError, match=r"no scorer labels .*\(grade\).*--passed"):
        converted("a.eval")


def test_unfinished_logs_partial_marks_and_errors_are_said(
    logged: dict[str, tuple[Any, list[Any]]],
) -> None:
    broken = sample("y", 1, "")
    broken.error = "it broke"
    logged["a.eval"] = header(status="cancelled"), [sample("x", 1, "4", match=score("P")), broken]
    made = converted("a.eval")

    assert made.columns["passed"] == [False, None]
    notes = " ".join(made.notes)
    assert "did not finish (cancelled); its 2 samples are used" in notes
    assert "1 samples ended with an error and have no label" in notes
    assert "1 partly correct samples (P) count as failed" in notes


def test_logs_of_several_models_are_not_mixed(logged: dict[str, tuple[Any, list[Any]]]) -> None:
    for name, model in (("a.eval", "m1"), ("b.eval", "m2")):
        logged[name] = header(model), [sample("x", 1, "4", match=score("C"))]

    with pytest.raises(UsageError, match=r"several models \(m1, m2\)"):
        converted("a.eval", "b.eval")


@pytest.mark.skipif("inspect_ai" in sys.modules, reason="it is installed")
def test_without_inspect_ai_the_message_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    Path("a.eval").write_bytes(b"PK")
    start = {"version": 2, "status": "success", "eval": {"eval_id": "x"}}
    Path("b.json").write_text(json.dumps(start, indent=1))

    for path in ("a.eval", "b.json"):
        ran = here("convert", path, "-o", "log.csv")
        assert ran.code == 2
        assert ran.err == (
            f"grv: {path}: a log of inspect_ai is read with inspect_ai: {installing('inspect')}\n"
        )


# lm-evaluation-harness.


def test_each_run_of_lm_eval_is_a_candidate_of_each_document() -> None:
    ran = here("convert", *ONCE, "--filter", "strict", "-o", "log.csv")
    log = Log.load("log.csv", score="score_votes")

    assert ran.code == 0
    assert "filter 'strict': they judge what it extracted, not the whole response" in ran.out
    assert [problem.id for problem in log.problems] == [f"sums/{n}" for n in range(4)]
    assert log.candidates == 8
    for number, problem in enumerate(log.problems):
        given = [json.loads(line) for path in ONCE for line in Path(path).read_text().splitlines()]
        strict = [r for r in given if (r["doc_id"], r["filter"]) == (number, "strict")]
        assert problem.passed.tolist() == [record["exact_match"] == 1 for record in strict]


def test_a_filter_must_be_chosen_if_there_are_several() -> None:
    ran = here("convert", *ONCE, "-o", "log.csv")

    assert ran.code == 2
    assert "choose one with --filter (strict, loose)" in ran.err
    ran = here("convert", *ONCE, "--filter", "none", "-o", "log.csv")
    assert "no filter 'none'; there are strict, loose" in ran.err


def test_of_several_responses_none_is_labelled_by_what_a_filter_made_of_all() -> None:
    ran = here("convert", MANY, "-o", "log.csv")
    assert ran.code == 2
    assert "only one for what a filter made of all (maj)" in ran.err

    labels = [
        {"problem": f"sums_many/{document}", "candidate": number, "passed": number == 1}
        for document in range(4)
        for number in range(5)
    ]
    ran = here("convert", MANY, write("labels.jsonl", labels), "-o", "log.csv")
    assert ran.code == 0, ran.err
    log = Log.load("log.csv")
    assert log.candidates == 20
    assert all(problem.passed.tolist() == [False, True, *[False] * 3] for problem in log.problems)


def test_choices_are_not_samples() -> None:
    ran = here("convert", CHOICE, "-o", "log.csv")

    assert ran.code == 2
    assert "log-likelihoods of given choices, not samples" in ran.err


def test_another_document_under_the_same_number_is_refused() -> None:
    shutil.copy(ONCE[0], Path(ONCE[0]).name)
    changed = Path(ONCE[0]).read_text().replace('"doc_hash": "a', '"doc_hash": "b')
    other = "samples_sums_2027-01-01T00-00-00.000000.jsonl"
    Path(other).write_text(changed)

    ran = here("convert", Path(ONCE[0]).name, other, "--filter", "strict", "-o", "log.csv")
    assert ran.code == 2
    assert "another document than in" in ran.err


# Records of other tools whose fields have other types.

TRACE: dict[str, Any] = {"ok": True, "task": {"key": "t"}, "traces": [{"rewards": {}}]}
PREDICTION: dict[str, Any] = {"instance_id": "i", "model_patch": "diff", "model_name_or_path": "m"}
PLAIN: dict[str, Any] = {"problem": "p", "candidate": 1, "passed": True}


@pytest.mark.parametrize(
    "record",
    [
        {**PREDICTION, "instance_id": {"a": 1}},
        {**PREDICTION, "instance_id": [None]},
        {**TRACE, "traces": [{"calls": -1, "nodes": 1e308}]},
        {**TRACE, "traces": [{"calls": True, "nodes": -1}]},
        {**PLAIN, "logprobs": [-1e308, -1e308, -1e308]},
        {**PLAIN, "logprobs": [-(10**400)]},
    ],
)
def test_a_record_with_fields_of_other_types_is_one_line(record: dict[str, Any]) -> None:
    Path("strange.jsonl").write_text(json.dumps(record) + "\n")
    ran = here("convert", "strange.jsonl", "-o", "log.csv")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "bug" not in ran.err
