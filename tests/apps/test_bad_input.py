"""Bad input: one line that names file, place and value; exit code 2; no file touched."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grv.apps import cli

Grv = Callable[..., str]

HEAD = "problem,candidate,passed,score\n"
SCORE = "score must be a finite number, or null (in CSV an empty cell) if there is none"
GOOD = HEAD + "a,0,1,0.5\na,1,0,0.7\nb,0,0,0.2\nb,1,1,0.2\nc,0,0,1\n"
OLD = '{"the old": "file"}'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a good log, and results of an earlier run."""
    monkeypatch.chdir(tmp_path)
    Path("good.csv").write_text(GOOD)
    Path("out.json").write_text(OLD)
    Path("out.csv").write_text(OLD)
    return tmp_path


@pytest.fixture
def complaint(folder: Path, capsys: pytest.CaptureFixture[str]) -> Grv:
    """Run a command that must fail; what it says."""

    def run(*arguments: str) -> str:
        before = contents(folder)
        code = cli.run(arguments)
        out, err = capsys.readouterr()
        assert (code, out) == (2, "")
        assert err.startswith("grv: ")
        assert err.count("\n") == 1
        assert "Traceback" not in err
        assert "bug in grv" not in err
        assert contents(folder) == before
        return err.removeprefix("grv: ").rstrip("\n")

    return run


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


OUTPUTS = ("--json", "out.json", "--csv", "out.csv")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("log.csv", "", "log.csv: the file is empty"),
        ("log.jsonl", "", "log.jsonl: the file is empty"),
        ("log.parquet", "", "log.parquet: the file is empty"),
        ("log.csv", HEAD, "log.csv: the log is empty"),
        ("log.csv", "\n", "log.csv: the log is empty"),
        ("log.jsonl", "\n \n", "log.jsonl: the log is empty"),
        (
            "log.csv",
            "problm,candidate,passed,score\na,0,1,2\n",
            "log.csv: no column 'problem'; there are 'problm', 'candidate', 'passed', 'score'",
        ),
        (
            "log.jsonl",
            '{"id": 1, "n": 0, "score": 1}',
            "log.jsonl: no column 'problem', 'candidate', 'passed'; there are 'id', 'n', 'score'",
        ),
        (
            "log.csv",
            "problem,candidate,passed\na,0,1\n",
            "log.csv: no score among the columns 'problem', 'candidate', 'passed'",
        ),
        (
            "log.csv",
            HEAD + "a,0,1,nan\n",
            "log.csv:2: score must be a finite number, or null (in CSV an empty cell) if there is"
            " none, not nan",
        ),
        ("log.csv", HEAD + "a,0,1,1\na,1,1,-inf\n", "log.csv:3: score must be a finite number"),
        ("log.csv", HEAD + "a,0,1,high\n", ", not 'high'"),
        ("log.csv", HEAD + "a,0,1,1_000\n", ", not '1_000'"),
        ("log.csv", HEAD + f"a,0,1,1{'0' * 400}\n", "log.csv:2: score must be a finite number"),
        ("log.csv", HEAD + "a,0,1,1\na,0,1,1\n", "log.csv:3: candidate 0 of 'a' occurs twice"),
        (
            "log.csv",
            HEAD + "a,0,,1\na,1,1,1\n",
            "log.csv:2: no label for candidate 0 of 'a' (1 have",
        ),
        ("log.csv", HEAD + "a,0,2,1\n", "log.csv:2: passed must be true or false, not 2"),
        ("log.csv", HEAD + "a,0,yes,1\n", "log.csv:2: passed must be true or false, not 'yes'"),
        ("log.csv", HEAD + "a,0.5,1,1\n", "log.csv:2: candidate must be a whole number, not 0.5"),
        ("log.csv", HEAD + "a,,1,1\n", "log.csv:2: candidate must be a whole number, not None"),
        ("log.csv", HEAD + "a,first,1,1\n", "candidate must be a whole number, not 'first'"),
        ("log.csv", HEAD + f"a,1{'0' * 30},1,1\n", "log.csv:2: candidate must be a whole number"),
        (
            "log.csv",
            HEAD + ",0,1,1\n",
            "log.csv:2: a problem must be a name or a whole number, not ''",
        ),
        (
            "log.csv",
            HEAD.replace(",", ";") + "a;0;1;0,5\n",
            "log.csv:1: columns are separated by commas, in a .tsv file by tabs, not by ';'",
        ),
        ("log.csv", HEAD.replace(",", "\t") + "a\t0\t1\t1\n", "tabs, not by '\\t'"),
        ("log.tsv", HEAD + "a,0,1,1\n", "log.tsv:1: columns are separated by commas, in a"),
        ("log.csv", HEAD + "a,0,1,1,5\n", "log.csv:2: 5 values for 4 columns"),
        ("log.csv", HEAD + "a,0,1,1\na,1,1\n", "log.csv:3: 3 values for 4 columns"),
        ("log.csv", HEAD + 'a,0,1,"1\n', "not a CSV file: unexpected end of data"),
        ("log.csv", "score," + HEAD + "1,a,0,1,1\n", "log.csv:1: two columns have the same name"),
        ("log.csv", HEAD + f"a,0,1,{'x' * 10**6}\n", "log.csv:2: score must be a finite number"),
        ("log.csv", HEAD + f"a,0,1,{'x' * 10**5}\n", f", not '{'x' * 59}..."),
        ("log.csv", HEAD + "a,0,0,1\n", "log.csv: no problem has a candidate that passed"),
        ("log.jsonl", '{"problem": 1,', "log.jsonl:1: not a line of JSON: Expecting property name"),
        ("log.jsonl", "\n\n[1, 2]", "log.jsonl:3: a line must be an object, not a list"),
        ("log.jsonl", '[{"problem": 1}]', "not a list; write one object per line, as jq -c '.[]'"),
        ("log.jsonl", '[\n  {"problem": 1}\n]', "; write one object per line, as jq -c '.[]' does"),
        ("log.jsonl", '{\n  "problem": 1\n}', "; write one object per line"),
        ("log.jsonl", '{"problem": "a', "log.jsonl:1: not a line of JSON: Unterminated string"),
        ("log.jsonl", "3", "log.jsonl:1: a line must be an object, not a number"),
        ("log.jsonl", "null", "log.jsonl:1: a line must be an object, not null"),
        ("log.jsonl", "NaN", "log.jsonl:1: a line must be an object, not NaN"),
        ("log.jsonl", '"text"', "log.jsonl:1: a line must be an object, not text"),
        ("log.jsonl", "[" * 10**6, "log.jsonl:1: not a line of JSON"),
        (
            "log.txt",
            GOOD,
            "log.txt: the name of a log must end in .parquet, .jsonl or .csv, not '.txt'",
        ),
        ("log.parquet", GOOD, "log.parquet: not a readable Parquet file"),
    ],
)
def test_a_log_that_is_none(name: str, text: str, message: str, complaint: Grv) -> None:
    Path(name).write_text(text)

    assert message in complaint("compare", name, *OUTPUTS)
    assert message in complaint("oracle", name, "--json", "out.json")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("score", '"3"', f"{SCORE}, not '3'"),
        ("score", "true", f"{SCORE}, not True"),
        ("score", "NaN", f"{SCORE}, not nan"),
        (
            "score",
            "-Infinity",
            f"{SCORE}, not -inf",
        ),
        ("score", "1e999", f"{SCORE}, not inf"),
        ("score", "1" + "0" * 400, f"not 1{'0' * 59}..."),
        ("score", "[1]", "not [1]"),
        ("candidate", "1" + "0" * 400, "candidate must be a whole number, not 1000"),
        ("candidate", "1" + "0" * 5000, "not a line of JSON"),
        ("candidate", "true", "candidate must be a whole number, not True"),
        ("passed", '"maybe"', "passed must be true or false, not 'maybe'"),
        ("passed", "0.5", "passed must be true or false, not 0.5"),
        ("problem", "1.5", "a problem must be a name or a whole number, not 1.5"),
        ("problem", "null", "a problem must be a name or a whole number, not None"),
        ("problem", "[1]", "a problem must be a name or a whole number, not [1]"),
        ("problem", '"\\ud800"', "a problem must be a name or a whole number, not '\\ud800'"),
        ("problem", "7", "problems must be all names or all numbers, but 'a' came before 7"),
    ],
)
def test_a_value_of_the_wrong_type(field: str, value: str, message: str, complaint: Grv) -> None:
    row = {"problem": '"a"', "candidate": "1", "passed": "true", "score": "1"}
    rows = [{**row, "candidate": "0"}, {**row, field: value}]
    Path("log.jsonl").write_text(
        "\n".join("{" + ", ".join(f'"{k}": {v}' for k, v in row.items()) + "}" for row in rows)
    )

    said = complaint("compare", "log.jsonl", *OUTPUTS)

    assert said.startswith("log.jsonl:2: ")
    assert message in said
    assert len(said) < 200


@pytest.mark.parametrize("junk", [b"\xff\xfe\x00\x01", b"\x00" * 100, bytes(range(256)) * 50])
@pytest.mark.parametrize("name", ["log.csv", "log.jsonl", "log.parquet"])
def test_binary_junk(name: str, junk: bytes, complaint: Grv) -> None:
    Path(name).write_bytes(junk)

    assert complaint("compare", name, *OUTPUTS).startswith(name)


@pytest.mark.slow
def test_a_truncated_parquet(complaint: Grv) -> None:
    table = pa.table({"problem": ["a"] * 99, "candidate": range(99), "passed": [True] * 99})
    pq.write_table(table, "whole.parquet")
    whole = Path("whole.parquet").read_bytes()

    for size in (1, 3, 4, 7, 8, 100, len(whole) // 2, len(whole) - 1):
        Path("log.parquet").write_bytes(whole[:size])
        said = complaint("compare", "log.parquet", *OUTPUTS)
        assert said.startswith("log.parquet: not a readable Parquet file")


def test_a_parquet_whose_text_is_none(complaint: Grv) -> None:
    table = pa.table({"problem": ["abcdefgh"], "candidate": [0], "passed": [True], "score": [1]})
    pq.write_table(table, "log.parquet", compression="none")
    whole = Path("log.parquet").read_bytes()
    Path("log.parquet").write_bytes(whole.replace(b"abcdefgh", b"abc\xff\xfefgh"))

    said = complaint("compare", "log.parquet", *OUTPUTS)

    assert said.startswith("log.parquet: not a readable Parquet file: 'utf-8' codec can't decode")


def test_a_parquet_with_scores_that_are_text_or_not_finite(complaint: Grv) -> None:
    for scores, shown in ((["x", "y"], "'x'"), ([1.0, float("nan")], "nan")):
        columns = {"problem": ["a", "a"], "candidate": [0, 1], "passed": [True, False]}
        pq.write_table(pa.table({**columns, "score": scores}), "log.parquet")

        said = complaint("compare", "log.parquet", *OUTPUTS)

        assert said.startswith("log.parquet:1: " if shown == "'x'" else "log.parquet:2: ")
        assert said.endswith(f"not {shown}")


def test_a_file_that_is_not_there_or_a_folder(complaint: Grv) -> None:
    Path("folder.csv").mkdir()

    assert complaint("compare", "none.csv") == "none.csv: cannot be read: No such file or directory"
    assert complaint("compare", "folder.csv") == "folder.csv: cannot be read: Is a directory"
    assert "cannot be read" in complaint("compare", "good.jsonl", "--rewards", "none.jsonl")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_a_file_without_the_right_to_read_it(complaint: Grv) -> None:
    Path("good.csv").chmod(0)

    assert complaint("compare", "good.csv") == "good.csv: cannot be read: Permission denied"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--costs", "0,10"],
            "--costs 0,10: the cost to generate must be positive and finite, not 0",
        ),
        (
            ["--costs", "1,-2"],
            "--costs 1,-2: the cost to verify must be positive and finite, not -2",
        ),
        (["--costs", "nan,1"], "--costs nan,1: the cost to generate must be positive and finite"),
        (["--costs", "1,inf"], "--costs 1,inf: the cost to verify must be positive and finite"),
        (["--costs", "1e308,1e308"], "--costs 1e308,1e308: give costs from 1e-100 to 1e+100"),
        (["--costs", "1"], "--costs 1: give two numbers"),
        (["--costs", "1,2,2,3"], "--costs 1,2,2,3: give two numbers"),
        (["--costs", "1,2,3"], "--costs 1,2,3: a verification that fails cannot cost 3"),
        (["--costs", "1,2,0"], "--costs 1,2,0: the cost of a verification that fails must be"),
        (["--costs", "a,b"], "--costs a,b: give two numbers"),
        (["--costs", ""], "--costs : give two numbers"),
        (["--costs", "measured"], "good.csv: column 'generate_cost' is missing: give first"),
        (["--costs", "measured:1,10"], "good.csv: this log has no measured costs"),
        (["--costs", "measured:1"], "--costs measured:1: give two numbers"),
        (["--costs", "measured:1,0"], "--costs measured:1,0: the cost to verify must be positive"),
        (["--value", "-3"], "--value -3: give what a solved problem is worth"),
        (["--value", "nan"], "--value nan: give what a solved problem is worth"),
        (["--value", "much"], "--value much: give what a solved problem is worth"),
        (["--score", "cascade(score)"], "write cascade(first, second, top=4, cost=0.5)"),
        (["--score", "cascade(score, rm, top=2)"], "good.csv: no score 'rm'; there are 'score'"),
        (["--score", "cascade(score, score, top=x)"], "write cascade(first, second, top=4"),
        (["--score", "cascade(score, score, top=2, size=3)"], "write cascade(first, second"),
        (["--latency", "20"], "--latency 20: give two numbers, the seconds"),
        (["--latency", "-1,5"], "--latency -1,5: the seconds of a round of generation must be"),
        (["--latency", "1,nan"], "--latency 1,nan: the seconds of a round of verification"),
        (["--costs", "1,10", "--costs", "1,0"], "--costs 1,0: the cost to verify"),
        (["--policy", "adaptiv"], "unknown policy 'adaptiv'; did you mean 'adaptive'?"),
        (["--policy", "fixed(2, 9)"], "1 <= k <= m, not m=2, k=9"),
        (["--policy", "fixed(2)"], "fixed needs k"),
        (["--policy", "fixed(1, 1, 1)"], "fixed takes m and k; 3 values were given"),
        (["--policy", "adaptive(chekcs=1)"], "unknown parameter of adaptive 'chekcs'"),
        (["--policy", "adaptive(checks='x')"], "wrong type"),
        (["--policy", "adaptive(checks=0)"], "checks must be positive"),
        (["--policy", "threshold"], "threshold needs t"),
        (["--policy", "difficulty-0"], "difficulty-0: there must be at least one group"),
        (["--policy", "hindsight(2)"], "hindsight takes no"),
        (["--policy", "fixed(1, 1"], "not a policy: 'fixed(1, 1'"),
        (["--policy", "adaptive(__import__('os'))"], "are not valid"),
        (["--width", "0"], "--width 0: give a whole number from 1 to 1,000,000, or all"),
        (["--width", "-3"], "--width -3: give a whole number from 1 to 1,000,000, or all"),
        (["--width", "many"], "--width many: give a whole number from 1 to 1,000,000, or all"),
        (["--orders", "0"], "--orders 0: give a whole number from 1 to 1,000,000"),
        (["--orders", "ten"], "--orders ten: give a whole number from 1 to 1,000,000"),
        (["--orders", "1.5"], "--orders 1.5: give a whole number from 1 to 1,000,000"),
        (["--seed", "-1"], "--seed -1: give a whole number of at least 0"),
        (["--seed", "x"], "--seed x: give a whole number of at least 0"),
        (["--order-scheme", "random"], "--order-scheme random: give one of stable, paper"),
        (["--unlabelled", "keep"], "--unlabelled keep: give one of error, fail, drop"),
        (["--unsolvable", "keep"], "--unsolvable keep: give one of exclude, include"),
        (["--score", "scor"], "good.csv: no score 'scor'; there are 'score'"),
        (["--keys"], "good.csv: this log has no keys"),
        (["--nonsense"], "No such option: --nonsense"),
        (["--json", "nowhere/out.json"], "nowhere/out.json: cannot be written: No such file"),
        (["--csv", "nowhere/out.csv"], "nowhere/out.csv: cannot be written: No such file"),
        (["--csv", "good.csv/out.csv"], "good.csv/out.csv: cannot be written: Not a directory"),
        (["--json", "."], ".: cannot be written: it is a folder"),
        (["--json", "good.csv"], "good.csv: given twice; it would be overwritten"),
        (["--json", "new", "--csv", "new"], "new: given twice; it would be overwritten"),
    ],
)
def test_bad_options(arguments: list[str], message: str, complaint: Grv) -> None:
    outputs = [] if {"--json", "--csv"} & {*arguments} else OUTPUTS

    assert message in complaint("compare", "good.csv", *outputs, *arguments)


def test_one_bad_output_leaves_the_other_alone(complaint: Grv) -> None:
    complaint("compare", "good.csv", "--json", "out.json", "--csv", "nowhere/out.csv")
    complaint("compare", "good.csv", "--csv", "out.csv", "--json", "nowhere/out.json")


def test_a_disk_that_is_full(complaint: Grv) -> None:
    said = complaint("compare", "good.csv", "--json", "/dev/full")

    assert said == "/dev/full: cannot be written: No space left on device"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["shells", "--costs", "1"], "--costs 1: give two numbers"),
        (["shells", "--shells", "0"], "--shells 0: give a whole number from 1 to 200"),
        (["shells", "--shells", "x"], "--shells x: give a whole number from 1 to 200"),
        (["shells", "--costs", "1e-120,1e120"], "give costs from 1e-100 to 1e+100"),
        (["shells", "--json", "nowhere/out.json"], "cannot be written"),
        (["oracle", "good.csv", "--costs", "1,0"], "--costs 1,0: the cost to verify"),
        (
            ["oracle", "good.csv", "--orders", "0"],
            "--orders 0: give a whole number from 1 to 1,000,000",
        ),
        (["oracle", "good.csv", "--seed", "-1"], "--seed -1: give a whole number of at least 0"),
        (["oracle", "good.csv", "--unlabelled", "x"], "--unlabelled x: give one of"),
        (["oracle", "good.csv", "--json", "good.csv"], "good.csv: given twice"),
        (["compare"], "LOG is required: a log in Parquet"),
        (["nonsense"], "No such command 'nonsense' (see grv --help)"),
        (["--nonsense"], "No such option: --nonsense"),
        (["demo", "extra"], "extra"),
    ],
)
def test_bad_options_of_other_commands(arguments: list[str], message: str, complaint: Grv) -> None:
    assert message in complaint(*arguments)
