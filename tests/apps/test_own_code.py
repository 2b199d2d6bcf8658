"""Own code from the command line: `my.py:score`, and what a user sees if it is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grv.own_code import _imported
from support.commands import here, records, refuses
from support.servers import FaultyServer

CODE = """
import itertools
from dataclasses import dataclass

import grv

numbers = itertools.count(1)
LIMIT = 8


def count(problem):
    return str(next(numbers))


async def size(problem, text):
    return int(text)


def is_right(problem, text):
    with open("seen", "a") as file:
        file.write(text + "\\n")
    return int(text) >= LIMIT


class Exact:
    async def verify(self, problem, draft):
        right = draft.text == problem.check["answer"]
        verdict = grv.Verdict.PASSED if right else grv.Verdict.FAILED
        return grv.verifiers.Finding(verdict, "compared")


@dataclass(frozen=True)
class Patient:
    batch: int = 4

    def plan(self, pool, costs):
        while True:
            yield grv.Generate(self.batch, "another round")
            yield grv.Verify(pool.best(1), "the best of the round")


class Broken:
    def plan(self, pool, costs):
        yield grv.Generate(1 // 0)


def text_score(problem, text):
    return "high"


def number_verdict(problem, text):
    return 1


def no_text(problem):
    return 5


def raises(problem, text):
    return inner(text)


def inner(text):
    return {}[text]


def only_text(text):
    return 1.0
"""


def line(text: str) -> int:
    return CODE[: CODE.index(text)].count("\n") + 1


ALL = ("--generator", "my.py:count", "--score", "my.py:size", "--verifier", "my.py:is_right")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("my.py").write_text(CODE)
    Path("problems").write_text('{"problem": "a", "prompt": "Count."}\n')
    return tmp_path


def solve(*more: object, out: str = "out") -> list[object]:
    return ["solve", "problems", *ALL, "--budget", 500, *more, "--out", out]


def seen() -> list[str]:
    return Path("seen").read_text().splitlines() if Path("seen").exists() else []


def test_functions_generate_score_and_verify() -> None:
    ran = here(*solve())
    assert (ran.code, ran.err) == (0, "")
    (record,) = records(Path("out"))
    assert (record["outcome"], record["answer_verified"]) == ("solved", True)
    assert int(record["answer"]) >= 8
    assert seen()


def test_functions_collect_a_log() -> None:
    ran = here("collect", "problems", *ALL, "-n", 10, "--out", "log.csv")
    assert (ran.code, ran.err) == (0, "")
    assert "10 candidates of 1 problem, 3 passed" in ran.out
    assert here("collect", "problems", *ALL, "-n", 10, "--out", "new.csv", "--dry-run").code == 0


def test_a_class_verifies_and_reads_the_data_in_the_check() -> None:
    Path("problems").write_text('{"problem": "a", "prompt": "Go.", "check": {"answer": "3"}}\n')
    assert here(*solve("--verifier", "my.py:Exact", "--policy", "verify-all")).code == 0
    assert records(Path("out"))[0]["answer"] == "3"


@pytest.mark.slow
def test_an_object_that_scores_receives_log_probabilities() -> None:
    Path("my.py").write_text(
        CODE
        + """
class Surprise:
    async def score(self, problem, drafts):
        return [grv.scorers.Score(min(draft.logprobs)) for draft in drafts]


surprise = Surprise()
"""
    )
    with FaultyServer(text=lambda _, seed: "9") as server:
        for name in ("Surprise", "surprise", "size"):
            model = ("--generator", "openai:m", "--base-url", server.url)
            ran = here(*solve(*model, "--score", f"my.py:{name}", out=name))
            assert (ran.code, ran.err) == (0, "")
        asked = [request.body.get("logprobs", False) for request in server.received]
    assert asked == [True, True, False]


@pytest.mark.slow
def test_a_policy_of_ones_own_decides_everywhere() -> None:
    assert here(*solve("--policy", "my.py:Patient(batch=2)")).code == 0
    shown = here("runs", "show", "out.ledger", "a").out
    assert "generated 2 (another round)" in shown
    here("collect", "problems", *ALL, "-n", 30, "--out", "log.csv")
    policies = ["--policy", "adaptive", "--policy", "my.py:Patient"]
    compared = here("compare", "log.csv", *policies)
    assert (compared.code, compared.err) == (0, "")
    assert "my.py:Patient" in compared.out
    simulated = here("simulate", "coding", "--problems", 3, "--orders", 2, *policies)
    assert simulated.code == 0
    assert "my.py:Patient" in simulated.out
    sizes = ["--orders", 2, "--many-orders", 3]
    report = here("report", "log.csv", *policies, *sizes, "-o", "report.html")
    assert (report.code, report.err) == (0, "")
    assert "my.py:Patient" in Path("report.html").read_text()


@pytest.mark.slow
def test_a_changed_function_never_reuses_verdicts() -> None:
    assert here(*solve()).code == 0
    first = len(seen())
    Path("out").unlink()
    assert here(*solve()).code == 0
    assert len(seen()) == first  # everything is on record
    Path("out").unlink()
    Path("my.py").write_text(CODE.replace("LIMIT = 8", "LIMIT = 9"))
    assert here(*solve()).code == 0
    assert len(seen()) > first
    assert here("runs", "list", "out.ledger").out.count(" a ") == 2


@pytest.mark.slow
def test_a_change_in_an_imported_file_counts_too() -> None:
    Path("limits_of_mine.py").write_text("LIMIT = 3\n")
    Path("my.py").write_text("from limits_of_mine import LIMIT\n" + CODE.replace("LIMIT = 8", ""))
    here(*solve())
    Path("out").unlink()
    Path("limits_of_mine.py").write_text("LIMIT = 4\n")
    here(*solve())
    assert here("runs", "list", "out.ledger").out.count(" a ") == 2


def test_a_folder_with_the_name_of_an_installed_package_is_not_read(tmp_path: Path) -> None:
    """A clone of grv beside one's own file is not what `import grv` imports."""
    for name in ("grv/setup.py", "json/a.py", "mine/part.py", "mine/.venv/lib.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1")
    source = b"import grv, json, mine.part"
    assert list(_imported(source, tmp_path, set())) == [tmp_path / "mine/part.py"]


@pytest.mark.slow
def test_moving_a_file_to_another_folder_changes_nothing() -> None:
    assert here(*solve()).code == 0
    first = len(seen())
    Path("out").unlink()
    Path("lib").mkdir()
    Path("my.py").rename("lib/my.py")
    moved = [str(each).replace("my.py", "lib/my.py") for each in solve()]
    assert here(*moved).code == 0
    assert len(seen()) == first


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--score", "my.py:text_score"), "my.py:text_score returned 'high' of type str; expected"),
        (("--verifier", "my.py:number_verdict"), "returned 1 of type int; expected True, False"),
        (("--generator", "my.py:no_text"), "my.py:no_text returned 5 of type int; expected a text"),
        (("--score", "my.py:only_text"), "my.py:only_text takes (text); it must take (problem, te"),
        (("--policy", "my.py:Broken"), f"my.py:{line('1 // 0')}: ZeroDivisionError: integer"),
        (
            ("--policy", "my.py:size"),
            "my.py:size is no policy; expected a class with a method plan",
        ),
        (("--policy", "my.py:Patient(n=1)"), "unexpected keyword argument 'n'"),
        (("--score", "my.py:sizes"), "my.py has no sizes; did you mean size?"),
        (("--score", "my.py:LIMIT"), "my.py:LIMIT is of type int; expected a function"),
        (("--score", "my.py"), "my.py: name a function or a class of the file"),
        (("--policy", "my.py"), "my.py: name a function or a class of the file"),
        (("--score", "your.py:size"), "your.py: cannot be read: No such file or directory"),
        (("--verifier", "is_right"), "--verifier is_right: write FILE.py:NAME"),
        (("--system", "Be brief."), "--system needs openai:MODEL; my.py:count does not read it"),
    ],
    ids=str,
)
def test_a_wrong_function_is_one_line_with_what_was_expected(
    given: tuple[str, str], said: str
) -> None:
    assert said in refuses(solve(*given))


@pytest.mark.slow
def test_a_function_that_raises_is_named_with_its_line() -> None:
    ran = here(*solve("--score", "my.py:raises"))
    assert f"raised KeyError: '1' (my.py:{line('{}[text]')})" in ran.err
    ran = here(*solve("--verifier", "my.py:raises", out="other"))
    assert ran.code == 1
    assert "raised KeyError" in ran.err
    assert f"(my.py:{line('{}[text]')})" in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("import json\nimport no_such_module\n", "my.py:2: ModuleNotFoundError: No module named"),
        ("def f(:\n", "my.py:1: SyntaxError: invalid syntax"),
        ("\nraise ValueError('not today')\n", "my.py:2: ValueError: not today"),
        ("import sys\nsys.exit(3)\n", "my.py:2: SystemExit: 3"),
        ("import second_of_mine\n", "second_of_mine.py:1: NameError"),
    ],
)
def test_a_file_that_cannot_be_imported_is_one_line(content: str, said: str) -> None:
    Path("my.py").write_text(content)
    if "second_of_mine" in content:
        Path("second_of_mine.py").write_text("nothing\n")
    assert said in refuses(solve())


@pytest.mark.slow
def test_a_job_file_names_code_only_with_permission_on_the_command_line() -> None:
    Path("job.toml").write_text(
        'problems = "problems"\nallow-commands = true\nbudget = 500\nout = "out"\n'
        'generator = "my.py:count"\nscore = "my.py:size"\nverifier = "my.py:is_right"\n'
    )
    message = refuses(["solve", "--job", "job.toml"], "runs with your rights")
    assert "give --allow-commands on the command line" in message
    assert not seen()
    assert here("solve", "--job", "job.toml", "--allow-commands").code == 0
    Path("compare.toml").write_text('policy = ["adaptive", "evil.py:Policy"]\n')
    Path("evil.py").write_text("open('harmed', 'w')\nclass Policy: ...\n")
    here("collect", "problems", *ALL, "-n", 10, "--out", "log.csv")
    refuses(["compare", "log.csv", "--job", "compare.toml"], "names code, evil.py:Policy")
    refuses(["report", "log.csv", "--job", "compare.toml"], "names code, evil.py:Policy")
    assert not Path("harmed").exists()


@pytest.mark.slow
def test_no_data_file_can_import_code() -> None:
    Path("evil.py").write_text("open('harmed', 'w')\nclass Policy: ...\n")
    here("collect", "problems", *ALL, "-n", 10, "--out", "log.csv")
    here("compare", "log.csv", "--json", "saved.json", "--policy", "adaptive")
    Path("saved.json").write_text(
        Path("saved.json").read_text().replace('"adaptive"', '"evil.py:Policy"')
    )
    here("report", "saved.json", "-o", "report.html")
    check = {"kind": "evil.py:Policy"}
    Path("problems").write_text(json.dumps({"problem": "a", "prompt": "x", "check": check}))
    refuses(
        ["solve", "problems", "--generator", "openai:m", "--out", "o", "--base-url", "http://h"]
    )
    assert not Path("harmed").exists()


def test_the_answers_never_overwrite_the_code() -> None:
    refuses(solve(out="my.py"), "my.py: given twice")
    assert Path("my.py").read_text() == CODE
