"""`grv problems`: files in the layouts in which datasets are published, made up here."""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from grv.apps import cli
from grv.backends.problems import promptfoo
from grv.backends.problems.files import read_examples
from grv.backends.problems.yaml_files import parse_yaml
from grv.backends.protocols import Problem
from grv.backends.verifiers.languages.toolchains import installed
from grv.backends.verifiers.pool import CheckVerifier
from grv.core.errors import UsageError


def lines(path: Path, *records: object) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def parquet(path: Path, *records: dict[str, Any]) -> str:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.Table.from_pylist(list(records)), path)
    return str(path)


def made(tmp_path: Path, *arguments: str) -> dict[str, tuple[Problem, tuple[str, ...]]]:
    out = tmp_path / "problems.jsonl"
    assert cli.run(["problems", *arguments, "-o", str(out)]) == 0
    return {each.problem.id: (each.problem, each.solutions) for each in read_examples(str(out))}


def refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    out = tmp_path / "problems.jsonl"
    assert cli.run(["problems", *arguments, "-o", str(out)]) == 2
    assert not out.exists()
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    return err


def verl_row(source: str, truth: Any, index: Any = 0, **fields: Any) -> dict[str, Any]:
    return {
        "data_source": source,
        "prompt": [{"role": "user", "content": f"Question {index}?"}],
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": truth},
        "extra_info": {"index": index, "split": "train"},
        **fields,
    }


TESTS = json.dumps({"inputs": ["1\n", "2\n"], "outputs": ["2\n", "4\n"]})
CALLS = json.dumps({"inputs": ["1\n2", "3\n4"], "outputs": ["3", "7"], "fn_name": "add"})


def test_verl_becomes_mathematics_and_programs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = parquet(
        tmp_path / "train.parquet",
        verl_row("openai/gsm8k", "72"),
        verl_row("openai/gsm8k", "72"),  # DAPO repeats its rows
        verl_row("taco", TESTS, 1, ability="code"),
        verl_row("apps", CALLS, 2, ability="code"),
        verl_row("searchR1_nq", "Paris", 3, ability="fact-reasoning"),
        verl_row("math_dapo", "1/2x", 4),
    )
    found = made(tmp_path, "verl", file)
    gsm, _ = found["openai/gsm8k/train/0"]
    assert gsm.check == {"kind": "math", "answer": "72", "match": "equivalent"}
    assert gsm.messages[0]["content"] == "Question 0?"
    assert found["taco/train/1"][0].check["kind"] == "stdin"
    assert found["apps/train/2"][0].check["entry_point"] == "add"
    assert len(found) == 3
    out = capsys.readouterr().out
    assert f"not converted: 1, the same problem again: {file}:2" in out
    assert "1, data_source searchR1_nq: no check follows its rule" in out
    assert "two readings" in out


def contest(**fields: Any) -> dict[str, Any]:
    return {
        "question": "Double a number.",
        "solutions": json.dumps(["print(2 * int(input()))"]),
        "starter_code": "",
        "input_output": TESTS,
        "difficulty": "EASY",
        "time_limit": "2.0 seconds",
        "memory_limit": "256.0 megabytes",
        **fields,
    }


def test_taco_keeps_limits_and_solutions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrapped = {"fn_name": "f", "inputs": [[1], [2]], "outputs": [[2], [4]]}
    file = lines(
        tmp_path / "test.jsonl",
        contest(),
        contest(input_output=json.dumps(wrapped), time_limit=None, memory_limit="much"),
        contest(input_output=""),
        contest(input_output=json.dumps(wrapped), starter_code="def f(x) -> List[int]:"),
    )
    found = made(tmp_path, "taco", file, "--time-factor", "3")
    first, solutions = found["test/0"]
    assert first.check["limits"] == {"seconds": 6.0, "memory_mb": 256}
    assert solutions == ("print(2 * int(input()))",)
    assert found["test/1"][0].check["tests"][0] == {"args": [1], "expected": 2}
    assert found["test/3"][0].check["tests"][0] == {"args": [1], "expected": [2]}
    out = capsys.readouterr().out
    assert f"not converted: 1, no tests: {file}:3" in out
    assert "converted without: 1, a memory_limit that is not understood, as 'much': test/1" in out


def test_apps_from_its_folders_and_as_lines(tmp_path: Path) -> None:
    folder = tmp_path / "APPS" / "test" / "0007"
    folder.mkdir(parents=True)
    (folder / "question.txt").write_text("Double a number.")
    (folder / "input_output.json").write_text(TESTS)
    (folder / "solutions.json").write_text(json.dumps(["print(2 * int(input()))"]))
    (folder / "metadata.json").write_text(json.dumps({"difficulty": "interview", "url": "x"}))
    found = made(tmp_path, "apps", str(folder.parent), "--difficulty", "interview")
    assert found["test/0007"][1] == ("print(2 * int(input()))",)
    file = lines(tmp_path / "train.jsonl", contest(problem_id=4000, difficulty="introductory"))
    assert "train/4000" in made(tmp_path, "apps", file)


CONTEST = {
    "name": "76_B. Mice",
    "description": "Double a number.",
    "public_tests": {"input": ["1\n"], "output": ["2\n"]},
    "private_tests": {"input": ["2\n"], "output": ["4\n"]},
    "generated_tests": {"input": ["3\n"], "output": ["6\n"]},
    "difficulty": 8,
    "solutions": {"language": [2, 3], "solution": ["int main() {}", "print(2 * int(input()))"]},
    "time_limit": {"seconds": 0, "nanos": 500000000},
    "memory_limit_bytes": 256000000,
    "input_file": "",
    "output_file": "",
}


def test_codecontests_has_all_tests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = parquet(
        tmp_path / "test.parquet", CONTEST, {**CONTEST, "name": "b", "input_file": "in.txt"}
    )
    problem, solutions = made(tmp_path, "codecontests", file, "--difficulty", "B")["76_B. Mice"]
    assert [test["output"] for test in problem.check["tests"]] == ["2\n", "4\n", "6\n"]
    assert problem.check["limits"] == {"seconds": 0.5, "memory_mb": 244}
    assert solutions == ("print(2 * int(input()))",)
    assert "reads or writes a file" in capsys.readouterr().out


@pytest.mark.parametrize(
    "limits",
    [
        {"time_limit": {"seconds": 10**400, "nanos": 0}},
        {"time_limit": {"seconds": 10**400}},
        {"time_limit": 10**400},
        {"memory_limit_bytes": 10**400},
    ],
)
def test_a_limit_that_is_no_number_is_left_out(tmp_path: Path, limits: dict[str, Any]) -> None:
    file = lines(tmp_path / "test.jsonl", {**CONTEST, **limits})
    problem, _ = made(tmp_path, "codecontests", file)["76_B. Mice"]
    assert len(problem.check["limits"]) == 1


def database(folder: Path, name: str = "school") -> Path:
    path = folder / name / f"{name}.sqlite"
    path.parent.mkdir(parents=True)
    with sqlite3.connect(path) as made_here:
        made_here.execute("CREATE TABLE pupil (id INTEGER PRIMARY KEY, age INTEGER)")
        made_here.executemany("INSERT INTO pupil (age) VALUES (?)", [(7,), (8,), (9,)])
    made_here.close()
    return path


BIRD = {
    "question_id": 0,
    "db_id": "school",
    "question": "How many pupils are older than 7?",
    "evidence": "older than 7 means age > 7",
    "SQL": "SELECT COUNT(*) FROM pupil WHERE age > 7",
    "difficulty": "simple",
}


def test_bird_and_spider_find_their_databases(tmp_path: Path) -> None:
    path = database(tmp_path / "dev_databases")
    (tmp_path / "dev.json").write_text(json.dumps([BIRD]))
    problem, solutions = made(tmp_path, "bird", str(tmp_path / "dev.json"))["dev/0"]
    assert problem.check["databases"] == [str(path)]
    assert "CREATE TABLE pupil" in problem.prompt
    assert "Hint: older than 7" in problem.prompt
    assert "COUNT(*)" in solutions[0]
    assert "COUNT(*)" not in problem.prompt
    spider = {"db_id": "school", "question": "How many?", "query": "SELECT COUNT(*) FROM pupil"}
    other = tmp_path / "elsewhere"
    other.mkdir()
    packed = other / "dev.json.gz"
    packed.write_bytes(gzip.compress(json.dumps([spider]).encode()))
    folder = str(tmp_path / "dev_databases")
    assert made(tmp_path, "spider", str(packed), "--databases", folder)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("../school", "field db_id must be the name of a database"),
        ("/etc/passwd", "field db_id must be the name of a database"),
        ("none", "there is no database"),
        ("linked", "leads out of"),
        ("text", "is not an SQLite database"),
    ],
)
def test_a_database_is_one_in_the_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, said: str
) -> None:
    folder = tmp_path / "dev_databases"
    database(folder)
    outside = database(tmp_path / "outside", "secret")
    for each in ("linked", "text"):
        (folder / each).mkdir()
    (folder / "linked" / "linked.sqlite").symlink_to(outside)
    (folder / "text" / "text.sqlite").write_text("no")
    file = lines(tmp_path / "dev.jsonl", BIRD, {**BIRD, "db_id": name})
    err = refused(tmp_path, capsys, "bird", file)
    assert said in err
    assert f"{file}:2: " in err


PROMPTFOO = """
prompts:
  - 'Answer: {{question}}'
providers: [openai:gpt-5]
defaultTest:
  assert:
    - {type: not-icontains, value: sorry}
tests:
  - vars: {question: 'Capital of France?', expected: Paris}
    assert:
      - {type: contains, value: '{{expected}}'}
      - {type: regex, value: 'P\\w+'}
  - vars: {question: ['One?', 'Two?']}
    assert:
      - {type: is-json, value: {type: object, required: [n]}}
  - vars: {question: 'Poem?'}
    assert:
      - {type: contains, value: rose}
      - {type: llm-rubric, value: is beautiful}
  - vars: {question: 'Yes?'}
    assert: [{type: equals, value: yes}]
  - file://more.csv
"""
TABLE = 'question,__expected,__expected2\nSky?,icontains:blue,\nSum?,4,"python: len(output)"\n'


def test_promptfoo_becomes_texts_and_schemas(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("re2")
    file = tmp_path / "promptfooconfig.yaml"
    file.write_text(PROMPTFOO)
    (tmp_path / "more.csv").write_text(TABLE)
    found = made(tmp_path, "promptfoo", str(file))
    name = "promptfooconfig"
    first = found[f"{name}/1"][0]
    assert first.prompt == "Answer: Capital of France?"
    assert first.check["kind"] == "all"
    folded, plain = first.check["checks"]
    assert folded["contains_none"] == ["sorry"]
    assert (plain["contains_all"], plain["matches"]) == (["Paris"], ["P\\w+"])
    assert f"{name}/2/vars2" in found
    assert found[f"{name}/4"][0].check["checks"][1]["equals"] == "yes"
    assert f"{name}/5" in found
    out = capsys.readouterr().out
    assert f"not converted: 1, llm-rubric: {file}:3" in out
    assert f"not converted: 1, python: {file}:6" in out
    assert f"{name}/3" in made(tmp_path, "promptfoo", str(file), "--partial")
    assert "converted without: 1, llm-rubric" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prompts: [file://../../etc/passwd]\ntests: []", "leads out of"),
        ("prompts: [a]\ntests: ['file:///etc/passwd.yaml']", "leads out of"),
        ("prompts: [a]\ntests: [{assert: [{type: contains}]}]", "assert.value of contains"),
        ("prompts: [a]\ntests: [{assert: 3}]", "assert must be a list"),
        ("prompts: [3]\ntests: []", "prompts must be texts"),
        ("a: [", "not YAML"),
        ("a: !!python/object/apply:os.system [id]", "not YAML"),
        ("tests: []", "no prompts"),
    ],
)
def test_a_wrong_configuration_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    file = tmp_path / "promptfooconfig.yaml"
    file.write_text(text)
    err = refused(tmp_path, capsys, "promptfoo", str(file))
    assert said in err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("prompt", "value", "others"),
    [("{{a}}" * 100, "x", 0), ("Q", "{{a}}" * 100, 0), ("Q", "x", 100)],
)
def test_a_few_bytes_of_a_configuration_do_not_become_gigabytes(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    prompt: str,
    value: str,
    others: int,
) -> None:
    monkeypatch.setattr(promptfoo, "LARGEST", 64_000)
    file = tmp_path / "promptfooconfig.yaml"
    asserts = f"{{type: contains, value: '{value}'}}" + ", {type: contains, value: *a}" * others
    test = f"{{vars: {{a: *a}}, assert: [{asserts}]}}"
    config = f"a: &a {'x' * 1000}\nprompts: ['{prompt}']\ntests: "
    file.write_text(f"{config}[{test}]")
    assert "takes more than 64,000 bytes" in refused(tmp_path, capsys, "promptfoo", str(file))
    monkeypatch.setattr(promptfoo, "LARGEST", 1 << 20)
    monkeypatch.setattr(promptfoo, "MOST_UNPACKED", 1 << 20)
    monkeypatch.setattr(promptfoo, "UNPACKED_RATIO", 1)
    file.write_text(f"{config}[{', '.join([test] * 30)}]")
    assert "takes more than" in refused(tmp_path, capsys, "promptfoo", str(file))


@pytest.mark.slow
@pytest.mark.parametrize("part", ["[*{0},*{0}]", "{{<<: [*{0},*{0}]}}"])
def test_aliases_that_stand_for_too_much_are_refused(part: str) -> None:
    bomb = "a0: &a0 {x: 1}\n"
    for level in range(40):
        bomb += f"a{level + 1}: &a{level + 1} {part.format(f'a{level}')}\n"
    with pytest.raises(UsageError, match="more than"):
        parse_yaml(bomb.encode(), "f.yaml")
    with pytest.raises(UsageError, match="deep"):
        parse_yaml(b"a: &a [*a]", "f.yaml")


def gym(**fields: Any) -> dict[str, Any]:
    return {"responses_create_params": {"input": [{"role": "user", "content": "Q?"}]}, **fields}


def test_nemo_gym_by_its_fields(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = json.dumps({"type": "object"})
    context = "BEGIN TRANSACTION;\nCREATE TABLE t (a);\nINSERT INTO t VALUES (1);\nCOMMIT;"
    file = lines(
        tmp_path / "example.jsonl",
        gym(expected_answer="32"),
        gym(verifier_metadata={"unit_tests": json.loads(TESTS)}, hash_id="c69"),
        gym(schema_str=schema, schema_type="json"),
        gym(gt_sql="SELECT a FROM t", sql_context=context, db_id="d", id=3, question="All?"),
        gym(options=[{"A": "x"}, {"B": "y"}], expected_answer="B", uuid="u"),
        gym(expected_answer="darwin"),
        gym(schema_str=schema, schema_type="xml"),
        gym(exp_cal_state={}),
        {"responses_create_params": {"input": "Q?", "tools": [{}]}, "expected_answer": "1"},
    )
    found = made(tmp_path, "nemo-gym", file)
    kinds = {name: problem.check["kind"] for name, (problem, _) in found.items()}
    assert kinds == {
        "example/0": "math",
        "c69": "stdin",
        "example/2": "schema",
        "example/3": "sql",
        "u": "math",
    }
    out = capsys.readouterr().out
    for said in ("in words", "schema_type xml", "the fields exp_cal_state", "needs tools"):
        assert said in out


HEADER = "import Mathlib\nimport Aesop\n\nopen BigOperators Real Nat\n"
CLAIM = "theorem sum_two (a b : ℕ) (h : a = b) :\n    a + b = 2 * b"


def test_lean_in_three_layouts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = lines(
        tmp_path / "minif2f.jsonl",
        {
            "name": "sum_two",
            "split": "valid",
            "informal_prefix": "/-- Show that the sum is $2b$.-/\n",
            "formal_statement": f"{CLAIM} := by\n",
            "goal": "⊢ a + b = 2 * b",
            "header": HEADER,
        },
        {
            "id": "Rudin|exercise_1_1a",
            "nl_statement": "The sum is even.",
            "lean4_src_header": "import Mathlib",
            "lean4_formalization": f"open Nat\n\n{CLAIM} :=\nsorry",
        },
        {"name": "putnam_1", "lean4_statement": f"import Mathlib\n\n{CLAIM} :=\nsorry"},
        {
            "name": "putnam_2",
            "lean4_statement": f"import Mathlib\nabbrev answer : ℕ := sorry\n{CLAIM} :=\nsorry",
        },
        {"name": "a definition", "header": HEADER, "formal_statement": "def f := 1"},
        {"name": "text", "formal_statement": 'theorem f : "a" = "a" := by sorry'},
    )
    found = made(tmp_path, "lean", file)
    theories = {name: problem.check["theory"] for name, (problem, _) in found.items()}
    assert theories == {
        "sum_two": HEADER.strip(),
        "Rudin|exercise_1_1a": "import Mathlib\nopen Nat",
        "putnam_1": "import Mathlib",
    }
    for problem, _ in found.values():
        assert problem.check["system"] == "lean"
        assert problem.check["statement"] == CLAIM
        assert problem.prompt.endswith(f"{CLAIM} := by\n")
    assert found["sum_two"][0].question == "Show that the sum is $2b$."
    out = capsys.readouterr().out
    for said in ("an answer is to be found", "no theorem", "must not have strings"):
        assert said in out


def test_theorems_of_nemo_gym(tmp_path: Path) -> None:
    file = lines(
        tmp_path / "proofs.jsonl",
        gym(name="sum_two", header=HEADER, formal_statement=f"{CLAIM} := by\n  sorry"),
    )
    ((problem, _),) = made(tmp_path, "nemo-gym", file).values()
    assert problem.id == "sum_two"
    assert problem.messages
    assert (problem.check["kind"], problem.check["statement"]) == ("proof", CLAIM)


DOUBLE: dict[str, Any] = {
    "name": "HumanEval_900_double",
    "doctests": "transform",
    "original": "HumanEval_900_double.py",
    "prompt_terminology": "reworded",
}
CPP = {
    **DOUBLE,
    "language": "cpp",
    "prompt": "#include<assert.h>\n#include<stdio.h>\n#include<stdlib.h>\n// Twice a number.\n"
    "long twice(long n) {\n",
    "tests": "}\nint main() {\n    auto candidate = twice;\n    assert(candidate((2)) == (4));\n"
    "    assert(candidate((-3)) == (-6));\n}\n",
    "stop_tokens": ["\n}"],
}
JS = {
    **DOUBLE,
    "language": "js",
    "prompt": "//Twice a number.\nfunction twice(n){\n",
    "tests": "const assert = require('node:assert');\n\n\nfunction test() {\n"
    "  let candidate = twice;\n  assert.deepEqual(candidate(2),4);\n}\n\ntest();",
    "stop_tokens": ["\nfunction ", "\n/*", "\n//", "\nconsole.log"],
}
RUST = {
    **DOUBLE,
    "language": "rs",
    "prompt": "/// Twice a number.\nfn twice(n: isize) -> isize {\n",
    "tests": "}\n\nfn main() {\n    let candidate = twice;\n    assert_eq!(candidate(2), 4);\n}\n",
    "stop_tokens": ["\n}"],
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("record", "right", "wrong", "early"),
    [
        (CPP, "    return 2 * n;\n}\n\nint other() {", "    return n + 2;", "    exit(0);"),
        (JS, "  return 2 * n;\n}\nconsole.log(twice(1))", "  return n;\n}", "  process.exit(0)\n}"),
        (RUST, "    n + n\n}\n", "    n\n}", "    std::process::exit(0)\n}"),
    ],
    ids=["cpp", "js", "rs"],
)
def test_programs_of_multipl_e(
    tmp_path: Path, record: dict[str, Any], right: str, wrong: str, early: str
) -> None:
    ((problem, _),) = made(tmp_path, "multipl-e", lines(tmp_path / "h.jsonl", record)).values()
    assert problem.id == f"HumanEval_900_double/{record['language']}"
    assert problem.prompt == record["prompt"]
    missing = installed()[problem.check["language"]]
    if isinstance(missing, str):
        pytest.skip(missing)
    whole = f"Here it is.\n```\n{record['prompt']}{right}\n```\n"
    with CheckVerifier(workers=1) as verifier:
        found = [verifier.find(problem, text) for text in (right, whole, wrong, early)]
    assert [each.verdict.value for each in found] == ["passed", "passed", "failed", "failed"]


def test_what_multipl_e_needs_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    others = [{**CPP, "language": language} for language in ("java", "go_test.go", "lua")]
    found = made(tmp_path, "multipl-e", lines(tmp_path / "h.jsonl", CPP, *others))
    assert len(found) == 1
    out = capsys.readouterr().out
    for said in (
        "java: needs the library javatuples",
        "needs go test",
        "lua: no check of kind run",
    ):
        assert said in out


@pytest.mark.parametrize(
    ("arguments", "record", "said"),
    [
        (("verl",), verl_row("taco", "{"), "reward_model.ground_truth is not JSON"),
        (("verl",), verl_row("math", None), "reward_model.ground_truth is missing"),
        (("verl",), {"data_source": "math"}, "field prompt is missing"),
        (("taco",), contest(input_output="{"), "input_output is not JSON"),
        (("taco",), contest(input_output='{"inputs": []}'), "input_output.outputs is missing"),
        (("taco",), contest(input_output='{"inputs": ["1"], "outputs": []}'), "1 inputs, but 0"),
        (("apps",), contest(question=3), "field question is missing"),
        (("codecontests",), {**CONTEST, "public_tests": 3}, "public_tests must have the lists"),
        (("codecontests",), {**CONTEST, "checker": 3}, "field checker must be the text"),
        (("lean",), {"name": "a"}, "there is none of the fields formal_statement"),
        (("lean",), {"name": "a", "formal_statement": 3}, "formal_statement is missing or"),
        (("multipl-e",), {**CPP, "tests": None}, "field tests is missing"),
        (("multipl-e",), {**CPP, "stop_tokens": "}"}, "field stop_tokens must be a list"),
        (("nemo-gym",), {"expected_answer": "1"}, "responses_create_params is missing"),
    ],
)
def test_a_broken_record_is_named_with_file_row_and_field(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    record: dict[str, Any],
    said: str,
) -> None:
    file = lines(tmp_path / "t.jsonl", record)
    err = refused(tmp_path, capsys, *arguments, file)
    assert f"{file}:1: " in err
    assert said in err


def test_solutions_are_not_part_of_a_problem(tmp_path: Path) -> None:
    file = lines(tmp_path / "test.jsonl", contest(solutions=json.dumps(["SECRET"])))
    ((problem, solutions),) = made(tmp_path, "taco", file).values()
    assert solutions == ("SECRET",)
    assert "SECRET" not in repr(problem)
