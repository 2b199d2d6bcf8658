"""The built wheel in clean environments: it runs the README, and names each missing extra."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

import grv
from grv.core.errors import DISTRIBUTION
from support.commands import Ran
from support.environments import ROOT, Environment, build_wheel
from support.pythons import Python, Versions, declared, installed, make_environment
from support.servers import FaultyServer

README = (ROOT / "README.md").read_text(encoding="utf-8")
URL = "http://localhost:8000/v1"
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel")]  # one wheel for all


def fences(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def commands() -> list[str]:
    """The commands of the README, each on one line."""
    lines = "\n".join(fences("sh")).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.startswith("grv ")]


def quoted_extras() -> list[str]:
    """The extras that the README installs."""
    (extras,) = re.findall(r"^pip install '\.\[(.*)\]'", README, re.MULTILINE)
    return str(extras).split(",")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment.linked(tmp_path_factory.mktemp("bare"), wheel)


@pytest.fixture(scope="module")
def quoted(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The environment with the extras that the README installs."""
    return Environment.linked(tmp_path_factory.mktemp("extras"), wheel, quoted_extras())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files that the README names."""
    sample = (resources.files("grv") / "data" / "sample.csv").read_text().splitlines()
    rows = [line for line in sample[1:] if line < "humaneval-0006"]
    (tmp_path / "log.csv").write_text("\n".join([sample[0], *rows]) + "\n")
    (tmp_path / "log.parquet").write_bytes(b"PAR1")
    (tmp_path / "samples.eval").write_bytes(b"PK")
    (tmp_path / "promptfoo.yaml").write_text("prompts: [hello]\n")
    label = {"problem": "p", "candidate": 0, "passed": True, "score": 1.0}
    (tmp_path / "labels.jsonl").write_text(json.dumps(label) + "\n")
    for kind, check in {
        "math": {"kind": "math", "answer": "42"},
        "http": {"kind": "http", "url": "http://localhost:9000/"},
        "stdin": {"kind": "stdin", "tests": [{"input": "", "output": "42"}]},
        "schema": {"kind": "schema", "schema": {"type": "object"}},
        "text": {"kind": "text", "matches": ["42"]},
        "duckdb": {
            "kind": "sql",
            "engine": "duckdb",
            "schema": "CREATE TABLE t (a INTEGER)",
            "reference": "SELECT a FROM t",
        },
    }.items():
        record = {"problem": "p", "prompt": "What is 6 times 7?", "check": check}
        (tmp_path / f"{kind}.jsonl").write_text(json.dumps(record) + "\n")
    (tmp_path / "problems.jsonl").write_text((tmp_path / "math.jsonl").read_text())
    return tmp_path


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    """A model that is right every third time."""
    with FaultyServer(text=lambda _, seed: "hello" if seed % 3 else "It is \\boxed{42}") as up:
        yield up


def run_python(environment: Environment, folder: Path) -> Ran:
    (folder / "snippet.py").write_text("\n".join(fences("python")))
    return environment.run("python", "snippet.py", cwd=folder)


def check_offline(environment: Environment, folder: Path) -> None:
    """The README's example, the table of the start page, and the README's commands for a log."""
    ran = run_python(environment, folder)
    assert ran.code == 0, ran.err
    assert ran.out.startswith("solved ")

    ran = environment.run("grv", "demo", "--replay", cwd=folder)
    start = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
    table = next(
        each for each in re.findall(r"```text\n(.*?)```", start, re.S) if "hindsight" in each
    )
    assert table in ran.out, ran

    offline = [each for each in commands() if each.startswith(("grv compare", "grv report"))]
    assert len(offline) == 2
    for command in offline:
        ran = environment.run(*shlex.split(command, comments=True), "--orders", "2", cwd=folder)
        assert (ran.code, ran.err) == (0, ""), ran


def check_live(environment: Environment, folder: Path, server: FaultyServer) -> None:
    """The README's commands for a model server."""
    live = [each for each in commands() if each.startswith(("grv solve", "grv runs"))]
    assert len(live) == 2
    for command in live:
        words = shlex.split(command.replace(URL, server.url), comments=True)
        ran = environment.run(*words, cwd=folder)
        assert ran.code == 0, ran
    assert json.loads((folder / "answers.jsonl").read_text())["outcome"] == "solved"


def test_the_wheel_without_extras_runs_the_readme(bare: Environment, folder: Path) -> None:
    check_offline(bare, folder)


def test_the_wheel_with_extras_runs_the_readme(
    quoted: Environment, folder: Path, server: FaultyServer
) -> None:
    assert run_python(quoted, folder).code == 0
    check_live(quoted, folder, server)


@pytest.fixture(scope="module")
def pythons() -> dict[str, Python]:
    """The Pythons of this machine. Looked for before a test changes the home folder."""
    return installed()


# This Python has the newest libraries already.
THIS = f"{sys.version_info.major}.{sys.version_info.minor}"
OTHERS = [minor for minor in declared() if minor != THIS]
TRIED = [
    *(pytest.param(minor, "newest", marks=pytest.mark.soak) for minor in OTHERS[:-1]),
    (OTHERS[-1], "newest"),
    (THIS, "oldest"),
]


@pytest.mark.parametrize(("minor", "versions"), TRIED)
def test_the_wheel_runs_the_readme_on_every_python(
    minor: str,
    versions: Versions,
    pythons: dict[str, Python],
    wheel: Path,
    folder: Path,
    server: FaultyServer,
    tmp_path: Path,
) -> None:
    if minor not in pythons:
        pytest.skip(f"Python {minor} is not on this machine")
    requirement = f"{wheel}[{','.join(quoted_extras())}]"
    environment = make_environment(tmp_path / "python", pythons[minor], [requirement], versions)
    check_offline(environment, folder)
    check_live(environment, folder, server)


SOLVE = ["--base-url", URL, "--out", "out.jsonl", "--budget", "50"]
MISSING = [
    ("parquet", ["compare", "log.parquet"]),
    ("parquet", ["convert", "labels.jsonl", "-o", "new.parquet"]),
    ("math", ["solve", "math.jsonl", "--generator", "openai:m", *SOLVE]),
    ("openai", ["solve", "stdin.jsonl", "--generator", "openai:m", *SOLVE]),
    ("http", ["solve", "http.jsonl", "--generator", "openai:m", "--allow-commands", *SOLVE]),
    ("embedded", ["solve", "stdin.jsonl", "--generator", "embedded", "--out", "out.jsonl"]),
    ("demo", ["demo"]),
    ("figures", ["report", "log.csv", "--figures", "figures"]),
    ("postgres", ["runs", "list", "postgresql://user@127.0.0.1/ledger"]),
    ("inspect", ["convert", "samples.eval", "-o", "new.csv"]),
    ("serve", ["dashboard", "some.ledger"]),
    ("mcp", ["mcp", "--generator", "none", "--ledger", "new.ledger"]),
    ("ray", ["doctor", "--engine", "ray"]),
    ("schema", ["doctor", "--problems", "schema.jsonl"]),
    ("text", ["doctor", "--problems", "text.jsonl"]),
    ("duckdb", ["doctor", "--problems", "duckdb.jsonl"]),
    ("yaml", ["problems", "promptfoo", "promptfoo.yaml", "-o", "new.jsonl"]),
]


@pytest.mark.parametrize(("extra", "words"), MISSING, ids=range(len(MISSING)))
def test_a_missing_extra_is_named_in_one_line(
    bare: Environment, folder: Path, extra: str, words: list[str]
) -> None:
    ran = bare.run("grv", *words, cwd=folder)

    assert (ran.code, ran.out) == (2, "")
    assert re.fullmatch(rf"grv: .*: pip install '{DISTRIBUTION}\[{extra}\]'.*\n", ran.err), ran.err


def test_spans_without_their_extra_are_refused_in_one_line(
    bare: Environment, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")

    ran = bare.run("grv", "solve", "stdin.jsonl", "--generator", "openai:m", *SOLVE, cwd=folder)

    assert (ran.code, ran.out) == (2, "")
    assert re.fullmatch(rf"grv: .*: pip install '{DISTRIBUTION}\[otel\]'.*\n", ran.err), ran.err


def test_every_extra_that_users_install_is_tried() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == DISTRIBUTION
    together = {"all", "testing", "docs", "suite", "dev", "notebook"}
    # Without it, some dollars are unknown; or a solver of the system serves (test_proofs.py).
    unneeded = {"prices", "smt"}
    named = {extra for extra, _ in MISSING} | {"otel"} | unneeded
    assert named == {*project["optional-dependencies"]} - together


def test_no_text_tells_the_reader_to_install_another_distribution() -> None:
    others = re.compile(r"pip install '?grv\b|`grv\[|\"grv\[|'grv\[")
    for folder, pattern in (("src", "*.py"), ("docs", "*.md"), (".", "*.md"), (".", "*.toml")):
        for path in (ROOT / folder).glob(f"**/{pattern}" if folder != "." else pattern):
            assert not others.search(path.read_text(encoding="utf-8")), path


@pytest.mark.soak
def test_pip_installs_the_wheel_with_everything_from_the_index(
    wheel: Path, folder: Path, tmp_path: Path
) -> None:
    made = Environment(tmp_path / "index")
    subprocess.run([sys.executable, "-m", "venv", made.folder], check=True)
    ran = made.run("pip", "install", "-q", f"{wheel}[all]", cwd=folder, within=900)
    assert ran.code == 0, ran.err
    assert made.run("grv", "--version", cwd=folder).out == f"grv {grv.__version__}\n"
    ran = made.run("grv", "convert", "labels.jsonl", "-o", "new.parquet", cwd=folder)
    assert ran.code == 0, ran.err
    assert run_python(made, folder).out.startswith("solved ")
