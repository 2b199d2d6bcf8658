"""What commands write: never over a file that is not ours, or that is being read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from grv.backends.protocols import Finding
from grv.backends.verifiers.labels import LabelFile
from grv.core.errors import UsageError
from grv.core.values import Verdict
from grv.files import write_whole
from grv.runtime.answers import AnswerFile
from support.commands import Ran, here

CHECK = {"kind": "math", "answer": "5"}
PROBLEM = {"problem": "p", "prompt": "?", "check": CHECK, "candidates": ["5", "6"]}
LOG = "problem,candidate,passed,score\na,0,1,0.5\na,1,0,0.7\nb,0,0,0.2\nb,1,1,0.3\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("in.jsonl").write_text(json.dumps(PROBLEM) + "\n")
    Path("log.csv").write_text(LOG)
    return tmp_path


def refused(ran: Ran) -> str:
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), ran
    assert "bug in grv" not in ran.err
    return ran.err


FOREIGN = [
    b"notes of mine",
    b"\n",
    b"one\ntwo",
    b"\x00\xff",
    b'{"problem": "p", "prompt": "?", "check": {}, "candidates": []}',
    b'{"problem": "p", "prompt": "?", "check": {}, "cand',
    b'{"problem": "p", "candidate": 0, "score": 0.5}',
    b'{"problem": "p", "candidate": 0, "sco',
    b'{"problem": "p", "candidate": 0, "verdict": "maybe"}',
    b'{"problem": "p", "candidate": "0", "verdict": "passed"}',
    b'{"problem": "p", "outcome": "solved"',
    b'{"problem": 3, "candidate": 0, "verd',
    b"[" * 100_000,
    b'{"problem": "p", "candidate": 0, "verdict": "passed"}\nnotes',
]


@pytest.mark.parametrize("content", FOREIGN, ids=lambda content: str(content[:40]))
@pytest.mark.parametrize("link", [False, True])
def test_labels_are_not_written_over_a_file_of_something_else(content: bytes, link: bool) -> None:
    Path("precious").write_bytes(content)
    if link:
        os.symlink("precious", "out")
    ran = here("verify", "in.jsonl", "-o", "out" if link else "precious", "--workers", "1")
    refused(ran)
    assert "give another --out" in ran.err
    assert Path("precious").read_bytes() == content
    assert Path("out").is_symlink() == link


@pytest.mark.parametrize("content", FOREIGN, ids=lambda content: str(content[:40]))
def test_answers_are_not_written_over_a_file_of_something_else(content: bytes) -> None:
    if b'"outcome": "solved"' in content:
        pytest.skip("a torn answer")
    Path("precious").write_bytes(content)
    refused(here("solve", "in.jsonl", "--generator", "embedded", "-o", "precious"))
    assert Path("precious").read_bytes() == content


def test_a_torn_label_of_ours_is_taken_up_wherever_it_is_torn() -> None:
    labels = LabelFile("whole")
    labels.add('p "\\ü\n', 0, Finding(Verdict.FAILED, 'a "reason" \\ ü'), "k", {"a": [1]})
    labels.close()
    whole = Path("whole").read_bytes()
    for cut in range(len(whole)):
        Path("torn").write_bytes(whole[:cut])
        labels = LabelFile("torn")
        labels.close()
        assert Path("torn").read_bytes() == (whole if cut == len(whole) - 1 else b"")


def test_labels_of_another_file_are_left_as_they_are() -> None:
    labels = LabelFile("labels")
    labels.add("other", 0, Finding(Verdict.BROKEN, "worker died"), None)
    labels.add("other", 1, Finding(Verdict.PASSED), None)
    labels.close()
    with open("labels", "ab") as file:
        file.write(b'{"problem": "other", "candi')
    before = Path("labels").read_bytes()
    refused(here("verify", "in.jsonl", "-o", "labels"))
    assert Path("labels").read_bytes() == before


def test_through_a_link_the_file_is_written_and_the_link_stays() -> None:
    labels = LabelFile("real")
    labels.add("p", 0, Finding(Verdict.BROKEN, "worker died"), None)
    labels.close()
    os.symlink("real", "link")
    assert here("verify", "in.jsonl", "-o", "link", "--workers", "1").code == 0
    assert Path("link").is_symlink()
    verdicts = [json.loads(line)["verdict"] for line in Path("real").read_text().splitlines()]
    assert sorted(verdicts) == ["failed", "passed"]


def test_labels_may_go_to_a_device_but_not_to_a_folder() -> None:
    assert here("verify", "in.jsonl", "-o", os.devnull, "--workers", "1").code == 0
    Path("folder").mkdir()
    refused(here("verify", "in.jsonl", "-o", "folder"))
    refused(here("verify", "in.jsonl", "-o", "nowhere/labels"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["verify", "in.jsonl", "-o", "in.jsonl"],
        ["verify", "in.jsonl", "-o", "new", "--cache", "in.jsonl"],
        ["verify", "in.jsonl", "-o", "new", "--cache", "new"],
        ["compare", "log.csv", "--json", "link.csv"],
        ["compare", "log.csv", "--csv", "log.csv"],
        ["compare", "log.csv", "--policy", "learned('prior.json')", "--json", "prior.json"],
        ["compare", "log.csv", "--score", "prior.json", "--json", "prior.json"],
        ["compare", "log.csv", "--job", "job.toml", "--json", "job.toml"],
        ["simulate", "coding", "--policy", 'learned("prior.json")', "--json", "prior.json"],
        ["oracle", "log.csv", "--json", "log.csv"],
        ["learn", "log.csv", "-o", "log.csv"],
        ["report", "log.csv", "-o", "log.csv"],
        ["report", "summary.csv", "--csv", "."],
        ["convert", "in.jsonl", "-o", "in.jsonl"],
        ["solve", "in.jsonl", "--generator", "embedded", "-o", "in.jsonl"],
        ["solve", "in.jsonl", "--generator", "embedded", "-o", "new", "--ledger", "in.jsonl"],
        ["solve", "in.jsonl", "--generator", "embedded", "-o", "job.toml", "--job", "job.toml"],
        ["collect", "in.jsonl", "--generator", "embedded", "-n", "1", "-o", "in.jsonl"],
        ["runs", "export", "in.jsonl", "-o", "in.jsonl"],
        ["star", "log.csv", "--bins", "2", "--json", "log.csv"],
        ["problems", "hmmt", "in.jsonl", "-o", "in.jsonl"],
    ],
    ids=" ".join,
)
def test_no_command_writes_over_what_it_reads(folder: Path, arguments: list[str]) -> None:
    os.symlink("log.csv", "link.csv")
    Path("summary.csv").write_text(LOG)
    Path("prior.json").write_text("{}")
    is_solve = arguments[0] in ("solve", "collect")
    Path("job.toml").write_text("" if is_solve else '[compare]\nwidth = "1"\n')
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    refused(here(*arguments))
    for name, content in before.items():
        assert (folder / name).read_bytes() == content


def test_answers_to_other_problems_stay_when_a_file_of_answers_is_taken_up() -> None:
    from grv.runtime.answers import AnswerFile

    lines = [
        {"problem": "a", "outcome": "solved", "answer": "1"},
        {"problem": "b", "outcome": "out of budget", "answer": None},
        {"problem": "c", "outcome": "out of budget", "answer": None},
    ]
    Path("answers").write_text("".join(json.dumps(line) + "\n" for line in lines))
    AnswerFile("answers", {"a", "b"}).close()
    kept = [json.loads(line)["problem"] for line in Path("answers").read_text().splitlines()]
    assert kept == ["a", "c"]


def test_an_item_of_a_job_file_names_a_file_in_its_folder(folder: Path) -> None:
    Path("job.toml").write_text(
        '[report]\n[[report.items]]\nid = "../escaped"\ntable = "summary"\n'
    )
    refused(here("report", "log.csv", "--job", "job.toml", "--figures", "figures"))
    assert not list(folder.parent.glob("escaped*"))


Writer = Callable[[str], list[str]]


@pytest.mark.parametrize(
    "command",
    [
        lambda out: ["compare", "log.csv", "--json", out],
        lambda out: ["compare", "log.csv", "--csv", out],
        lambda out: ["shells", "--json", out],
        lambda out: ["oracle", "log.csv", "--json", out],
        lambda out: ["report", "log.csv", "-o", out],
        lambda out: ["verify", "in.jsonl", "-o", out],
        lambda out: ["solve", "in.jsonl", "--generator", "embedded", "-o", out],
        lambda out: ["solve", "in.jsonl", "--generator", "embedded", "-o", "x", "--ledger", out],
        lambda out: ["verify", "in.jsonl", "-o", "x", "--cache", out],
    ],
)
@pytest.mark.parametrize("out", ["folder", "log.csv/x", "nowhere/x", "x" * 300])
def test_where_nothing_can_be_written_is_said_in_one_line(command: Writer, out: str) -> None:
    Path("folder").mkdir()
    refused(here(*command(out)))


@pytest.mark.parametrize(
    "arguments",
    [
        ["compare", "log.csv", "--json", "out.link"],
        ["compare", "log.csv", "--csv", "out.link"],
        ["oracle", "log.csv", "--json", "out.link"],
        ["learn", "log.csv", "-o", "out.link"],
        ["report", "log.csv", "-o", "out.link"],
        ["convert", "log.csv", "-o", "link.jsonl"],
    ],
    ids=" ".join,
)
def test_no_file_is_replaced_through_a_link(folder: Path, arguments: list[str]) -> None:
    Path("precious").write_text("do not lose this")
    os.symlink("precious", arguments[-1])
    said = refused(here(*arguments))
    assert "precious, which is not replaced: name that file itself" in said
    assert Path("precious").read_text() == "do not lose this"
    assert Path(arguments[-1]).is_symlink()


def test_a_link_that_appears_while_a_command_works_is_replaced_and_not_its_target(
    folder: Path,
) -> None:
    Path("precious").write_text("do not lose this")
    os.symlink("precious", "table.json")
    write_whole("table.json", "numbers")
    assert Path("precious").read_text() == "do not lose this"
    assert Path("table.json").read_text() == "numbers"
    assert not Path("table.json").is_symlink()


@pytest.mark.parametrize("event", ["deleted", "replaced", "moved"])
def test_answers_and_labels_notice_that_their_file_is_not_there_any_more(event: str) -> None:
    answers, labels = AnswerFile("answers"), LabelFile("labels")
    finding = Finding(Verdict.PASSED, "")
    answers.add({"problem": "a", "outcome": "solved"})
    labels.add("a", 0, finding, None)
    for name in ("answers", "labels"):
        if event == "deleted":
            os.unlink(name)
        elif event == "moved":
            os.rename(name, f"{name}.old")
        else:
            Path("new").write_text("")
            os.rename("new", name)
    with pytest.raises(UsageError, match="answers: deleted, moved or replaced while this command"):
        answers.add({"problem": "b", "outcome": "solved"})
    with pytest.raises(UsageError, match="labels: deleted, moved or replaced while this command"):
        labels.add("b", 0, finding, None)
    answers.close()
    labels.close()
