"""Plugins: kinds of other packages, used only if the operator names them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from grv import Problem, UsageError, Verdict, plugins
from grv.backends import by_name
from grv.backends.sandbox.limits import RunLimits
from grv.backends.scorers.length import LengthScorer
from grv.backends.verifiers.checks import parse_check
from grv.backends.verifiers.pool import CheckVerifier
from grv.comparing import rows
from grv.comparing.rows import kind_of
from grv.learning.prior_file import parse_policy
from grv.serve.completions.checks import named_or_own
from grv.serve.errors import ApiError
from support.commands import here, records, refuses
from support.environments import ROOT, Environment, build_wheel
from support.guides import blocks

TEMPLATE = ROOT / "examples" / "plugin"
Install = Callable[..., Path]

SEVENS = {"problem": "seven", "prompt": "A multiple of 7.", "check": {"kind": "even"}}
CODE = """
import pathlib

pathlib.Path("imported").touch()


def even(problem, text):
    return int(text) % 2 == 0


def size(problem, text):
    return len(text)


def numbers(problem):
    return "4"


class Lazy:
    def plan(self, pool, costs):
        yield 1 // 0
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Puts a package with entry points on the path, as an installer does."""
    monkeypatch.chdir(tmp_path)
    for name in ("_allowed", "_allowed_checks"):
        monkeypatch.setattr(plugins, name, set())
    monkeypatch.setattr(rows, "_named", {})  # rows that other tests have named
    memories = [vars(plugins)[name] for name in ("_plugins", "_loaded")]

    def forget() -> None:
        """Look for plugins again."""
        for memory in memories:
            memory.cache_clear()

    def add(package: str, entries: dict[str, str], code: str = CODE, version: str = "1.0") -> Path:
        site = tmp_path / f"site-{package}-{version}"
        module = package.replace("-", "_")
        facts = site / f"{module}-{version}.dist-info"
        facts.mkdir(parents=True)
        (site / f"{module}.py").write_text(code)
        (facts / "METADATA").write_text(f"Name: {package}\nVersion: {version}\n")
        lines = [
            f"[grv.{kind}]\n{name} = {module}:{value}\n" for kind, name, value in split(entries)
        ]
        (facts / "entry_points.txt").write_text("".join(lines))
        monkeypatch.syspath_prepend(site)
        monkeypatch.delitem(sys.modules, module, raising=False)
        forget()
        return tmp_path

    yield add
    forget()


def split(entries: dict[str, str]) -> list[tuple[str, str, str]]:
    """`{"scorers.wordy": "size"}` as group, name and value."""
    return [(*key.split("."), value) for key, value in entries.items()]  # type: ignore[misc]


def problems(folder: Path, check: dict[str, Any]) -> Path:
    path = folder / "problems.jsonl"
    path.write_text(json.dumps({"problem": "p", "prompt": "?", "check": check}) + "\n")
    return path


def test_no_plugin_is_looked_for_while_all_names_are_ours(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = install("some-pack", {"scorers.wordy": "size"})

    def fail(group: str) -> None:
        raise AssertionError("looked for plugins")

    monkeypatch.setattr(plugins, "_entries", fail)
    for command in ("solve", "compare", "convert", "doctor"):
        assert here(command, "--help").code == 0
    file = problems(folder, {"kind": "text", "equals": "4"})
    options = ["--score", "length", "--policy", "fixed(2, 1)", "--out", "a.jsonl"]
    (folder / "my.py").write_text("def numbers(problem):\n    return '4'\n")
    assert here("solve", file, "--generator", "my.py:numbers", *options).code == 0
    assert not (folder / "imported").exists()


def test_the_operator_names_a_score_a_generator_and_a_verifier(install: Install) -> None:
    entries = {"generators.fours": "numbers", "scorers.wordy": "size", "verifiers.even": "even"}
    folder = install("some-pack", entries)
    file = problems(folder, {"kind": "even"})
    options = ["--generator", "fours", "--score", "wordy", "--budget", "100"]

    ran = here("solve", file, *options, "--verifier", "even", "--out", "a.jsonl")
    assert ran.code == 0, ran
    assert records(folder / "a.jsonl")[0]["answer"] == "4"

    ran = here("solve", file, *options, "--allow-check", "even", "--out", "b.jsonl")
    assert ran.code == 0, ran


def test_a_job_file_of_the_operator_names_plugins_too(install: Install) -> None:
    folder = install("some-pack", {"generators.fours": "numbers", "verifiers.even": "even"})
    job = folder / "job.toml"
    job.write_text('generator = "fours"\nscore = "length"\nallow_check = ["even"]\nbudget = 100\n')
    file = problems(folder, {"kind": "even"})
    assert here("solve", file, "--job", job, "--out", "a.jsonl").code == 0


def test_a_file_of_problems_loads_no_plugin_that_is_not_allowed(install: Install) -> None:
    folder = install("some-pack", {"generators.even": "numbers", "verifiers.even": "even"})
    group = {"kind": "all", "checks": [{"kind": "text", "equals": "4"}, {"kind": "even"}]}
    for check in ({"kind": "even"}, group):
        file = problems(folder, check)
        said = refuses(["doctor", "--problems", file], "even is a plugin of some-pack")
        assert said.endswith("if you trust it, give --allow-check even")
        assert not (folder / "imported").exists()
    # A generator of the same name allows no check.
    refuses(
        ["solve", file, "--generator", "even", "--out", "a.jsonl", "--budget", "9"],
        "give --allow-check even",
    )


def test_strict_isolation_forbids_checks_of_plugins(install: Install) -> None:
    folder = install("some-pack", {"verifiers.even": "even"})
    file = problems(folder, {"kind": "even"})
    words = ["doctor", "--problems", file, "--allow-check", "even", "--isolation", "strict"]
    refuses(words, "its check is a plugin, even, which strict isolation forbids")
    assert not (folder / "imported").exists()


def test_a_client_of_a_server_never_names_a_plugin(install: Install) -> None:
    folder = install("some-pack", {"verifiers.even": "even", "policies.lazy": "Lazy"})
    plugins.allow_checks(["even"])
    given = SimpleNamespace(own_verifier=False, check=None, checks={}, run_limits=RunLimits())
    with pytest.raises(ApiError, match="must be one of"):
        named_or_own(cast(Any, given), {"kind": "even"})
    assert not (folder / "imported").exists()


def test_names_in_ledgers_and_saved_comparisons_load_nothing(install: Install) -> None:
    folder = install("some-pack", {"policies.lazy": "Lazy", "scorers.wordy": "size"})
    assert kind_of("lazy") is None
    with pytest.raises(UsageError, match="lazy is a plugin of some-pack: it can only be named on"):
        parse_policy("lazy")
    with pytest.raises(UsageError, match="can only be named on the command line"):
        by_name.scorer("wordy")
    assert not (folder / "imported").exists()


def test_a_plugin_does_not_replace_what_grv_has(install: Install) -> None:
    entries = {"scorers.length": "size", "policies.fixed": "Lazy", "verifiers.text": "even"}
    folder = install("some-pack", entries)
    plugins.allow("length fixed text")
    plugins.allow_checks(["text"])
    assert isinstance(by_name.scorer("length"), LengthScorer)
    assert type(parse_policy("fixed(2, 1)")).__module__ == "grv.policies.fixed"
    parse_check(Problem("p", check={"kind": "text", "equals": "4"}))
    assert not (folder / "imported").exists()
    listed = here("doctor", "--plugins").out
    assert "not used: grv has a score of this name" in listed
    assert "not used: grv has a policy of this name" in listed
    assert "not used: grv has a check of this name" in listed


def test_two_plugins_with_one_name_are_an_error(install: Install) -> None:
    install("some-pack", {"scorers.wordy": "size"})
    folder = install("other-pack", {"scorers.wordy": "size"}, version="2.0")
    file = problems(folder, {"kind": "text", "equals": "4"})
    options = ["--generator", "none", "--score", "wordy", "--out", "a.jsonl", "--budget", "9"]
    said = refuses(["solve", file, *options])
    assert said == (
        "score wordy is in other-pack 2.0 and some-pack 1.0: uninstall the one that you do not want"
    )
    assert not (folder / "imported").exists()
    listed = here("doctor", "--plugins").out
    assert listed.count("not used: two packages have it") == 2


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("size = ", "SyntaxError"),
        ("", "AttributeError"),
    ],
)
def test_a_plugin_that_cannot_be_imported_is_named_in_one_line(
    install: Install, code: str, words: str
) -> None:
    folder = install("some-pack", {"scorers.wordy": "size"}, code)
    file = problems(folder, {"kind": "text", "equals": "4"})
    command = ["solve", file, "--generator", "none", "--score", "wordy", "--out", "a.jsonl"]
    refuses([*command, "--budget", "9"], "score wordy: some-pack 1.0 cannot be imported: ", words)


def test_a_name_that_no_package_has_is_unknown_as_before(install: Install) -> None:
    folder = install("some-pack", {"scorers.wordy": "size"})
    options = ["--generator", "none", "--out", "a.jsonl", "--budget", "9"]
    file = problems(folder, {"kind": "text", "equals": "4"})
    refuses(["solve", file, *options, "--score", "wordz"], "unknown score 'wordz'", "auto, logprob")
    file = problems(folder, {"kind": "evn"})
    refuses(["solve", file, *options], "check.kind: must be one of all, asserts,")
    refuses(["compare", "log.csv", "--policy", "lzy"], "unknown policy 'lzy' (there are: adaptive")
    refuses(["convert", "w.txt", "--importer", "x", "-o", "l.csv"], "no package here has one")


def test_what_follows_the_colon_goes_to_a_class(install: Install) -> None:
    code = "class Times:\n    def __init__(self, n='1'):\n        self.n = int(n)\n"
    code += "    async def score(self, problem, drafts):\n        return [self.n for _ in drafts]\n"
    install("some-pack", {"scorers.times": "Times", "scorers.wordy": "size"}, code + CODE)
    plugins.allow("times:3 wordy")
    assert cast(Any, by_name.scorer("times:3")).n == 3
    assert cast(Any, by_name.scorer("times")).n == 1
    with pytest.raises(UsageError, match="wordy takes nothing after it"):
        by_name.scorer("wordy:3")
    with pytest.raises(UsageError, match=r"times: some_pack.py:3: ValueError: invalid literal"):
        by_name.scorer("times:x")


def test_a_check_that_raises_is_broken_and_a_new_version_judges_again(install: Install) -> None:
    install("some-pack", {"verifiers.even": "even"})
    plugins.allow_checks(["even"])
    problem = Problem("p", check={"kind": "even"})
    with CheckVerifier(workers=1) as verifier:
        assert verifier.find(problem, "4").verdict is Verdict.PASSED
        assert verifier.find(problem, "5").verdict is Verdict.FAILED
        found = verifier.find(problem, "four")
        assert found.verdict is Verdict.BROKEN
        assert "ValueError" in found.reason
        before = verifier.conditions(problem)
    install("some-pack", {"verifiers.even": "even"}, version="1.1")
    with CheckVerifier(workers=1) as verifier:
        assert verifier.conditions(problem) != before


def test_a_mistake_in_a_policy_of_a_plugin_is_blamed_on_its_line(install: Install) -> None:
    folder = install("some-pack", {"policies.lazy": "Lazy"})
    (folder / "log.csv").write_text("problem,candidate,passed,score\np,0,True,1\n")
    refuses(["compare", "log.csv", "--policy", "lazy"], "some_pack.py:21: ZeroDivisionError")


def test_a_mistake_in_an_importer_is_one_line(install: Install) -> None:
    code = "def bad(path):\n    return 1 // 0\n\n"
    code += "def odd(path):\n    yield 3\n\ndef no(path):\n    return []\n"
    entries = {f"importers.{name}": name for name in ("bad", "odd", "no")}
    folder = install("some-pack", entries, code)
    (folder / "f").write_text("")
    convert = ["convert", "f", "-o", "l.csv", "--importer"]
    refuses([*convert, "bad"], "f: bad cannot read it: some_pack.py:2: ZeroDivisionError")
    refuses([*convert, "odd"], "f: odd gave int, not a record")
    refuses([*convert, "no"], "f: no finds no candidates")


@pytest.mark.slow
@pytest.mark.xdist_group("wheel")
def test_the_template_is_installed_and_used(tmp_path: Path) -> None:
    wheel = build_wheel(tmp_path / "wheel")
    environment = Environment.linked(tmp_path / "env", wheel, ["testing"])
    built = tmp_path / "plugin"
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory"]
    subprocess.run([*build, str(built)], cwd=TEMPLATE, check=True, capture_output=True)
    pip = [sys.executable, "-m", "pip", "--python", str(environment.program("python")), "install"]
    subprocess.run([*pip, "-q", "--no-index", *map(str, built.glob("*.whl"))], check=True)

    listed = environment.run("grv", "doctor", "--plugins", cwd=tmp_path).out
    for name in ("counting", "closeness", "multiple", "one-by-one", "words"):
        assert any(
            line.split()[1:] == [name, "grv-plugin-template", "0.1.0"]
            for line in listed.splitlines()
        )

    assert "--grv-job=FILE" in environment.run("python", "-m", "pytest", "--help", cwd=tmp_path).out

    (shown,) = blocks("../howto/write-a-plugin.md", "json")
    (tmp_path / "sevens.jsonl").write_text(shown)
    *_, solve = blocks("../howto/write-a-plugin.md", "sh")
    refused = solve.replace("one-by-one", "one-by-one(batch=4)").replace(
        "--allow-check multiple", ""
    )
    ran = environment.run(*refused.split(), cwd=tmp_path)
    assert (ran.code, ran.out) == (2, ""), ran
    ran = environment.run(*solve.split(), cwd=tmp_path)
    assert ran.code == 0, ran
    assert records(tmp_path / "answers.jsonl")[0]["answer"] == "7"

    (tmp_path / "words.txt").write_text("p1 passed 0.5\np1 failed 0.2\np2 failed 0.9\n")
    convert = ["convert", "words.txt", "--importer", "words", "-o", "log.csv"]
    assert environment.run("grv", *convert, cwd=tmp_path).code == 0
    lines = (tmp_path / "log.csv").read_text().splitlines()
    assert lines == [
        "problem,candidate,passed,score",
        "p1,0,True,0.5",
        "p1,1,False,0.2",
        "p2,0,False,0.9",
    ]
    compare = ["compare", "log.csv", "--policy", "one-by-one", "--orders", "2"]
    assert "one-by-one" in environment.run("grv", *compare, cwd=tmp_path).out
