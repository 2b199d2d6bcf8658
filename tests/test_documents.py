"""Every example in the documents runs, and every fact that can be checked is checked.

What the fences of a page hold, and what is done with them:

- `python`: all blocks of a page run, in one namespace.
- `sh`: every command runs, with small sizes, in a folder that has the files it names. A model
  server answers at localhost:8000. `NOT_RUN` lists the exceptions, each with its reason.
- `json`, `toml`, `csv`: are parsed. Every check with candidates is verified.
- `text`: output, diagrams and formulas. It is not run.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

import grv
from grv.backends.protocols import Problem
from grv.backends.verifiers.checks import KINDS
from grv.backends.verifiers.pool import CheckVerifier
from grv.backends.verifiers.proofs import provers
from grv.logs.readers import OPTIONAL, REQUIRED
from support.commands import here
from support.repositories import make_repository
from support.servers import FaultyServer

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
ADDING = sorted((DOCS / "howto").glob("add-a*.md"))  # tests/test_contributing.py follows them
GENERATED = runpy.run_path(str(DOCS / "generated.py"))
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
LANGUAGES = {"python", "sh", "json", "toml", "csv", "text"}
# How a command begins, and why it is not run.
NOT_RUN = {
    "make ": "installs or tests the project; CI runs make check and make test",
    "pip install ": "tests/test_wheel.py installs the wheel",
    "grv dashboard ": "serves until it is stopped; tests/serve/pages",
    "grv runs watch ": "watches until it is stopped; tests/apps/test_watching.py",
    "grv review ": "asks a person; tests/apps/pages",
    "grv attempt ": "runs an agent in a repository; tests/apps/test_attempt_command.py",
    "grv runs export .git/": "needs a ledger of attempts; tests/apps/test_attempt_command.py",
    "grv report attempts.csv": "needs attempts; tests/apps/test_attempt_command.py",
    "pytest --grv ": "runs a pytest of its own; tests/adapters/test_pytest_plugin.py",
    "grv solve sevens.jsonl": "needs the plugin of examples/plugin; tests/test_plugins.py",
    "grv solve summaries.jsonl": "waits for a person; tests/serve/review",
    "export GRV_REVIEWERS": "sets a variable",
    "docker ": "needs a container engine; tests/test_deploy.py checks the files",
    "kubectl ": "needs a cluster; tests/test_deploy.py validates the objects",
    "sudo ": "changes the machine; tests/test_deploy.py checks the unit",
    "ollama ": "downloads a model",
    "vllm ": "downloads a model",
    "llama-server ": "downloads a model",
    "grv demo --serve": "serves until it is stopped; tests/apps/test_demo_serve.py",
    "OTEL_TRACES_EXPORTER": "serves until it is stopped; tests/apps/test_traces.py",
    "grv serve": "serves until it is stopped; tests/serve/test_guide.py",
    "grv verify --serve": "serves until it is stopped; tests/serve/test_gym.py",
    "grv solve gym.jsonl": "needs a resources server; tests/serve/test_gym.py",
    "grv mcp": "serves until it is stopped; tests/serve/mcp",
    "grv convert jobs/": "needs jobs of Harbor; tests/logs/test_harbor_jobs.py",
    "grv compare attempts.parquet": "needs jobs of Harbor; tests/logs/test_harbor_jobs.py",
    "grv report attempts.parquet": "needs jobs of Harbor; tests/logs/test_harbor_jobs.py",
    "grv demo": "runs a model for a minute; tests/apps/test_demo_command.py",
    "grv verify candidates.jsonl --engine ray": "starts Ray; tests/backends/cluster",
    "grv solve problems.jsonl --generator embedded": "runs a model; tests/apps/test_solve_model.py",
    "grv solve problems.jsonl --generator anthropic:MODEL --batch": (
        "needs batches; tests/apps/test_solve_batches.py"
    ),
    "grv convert runs/": "needs inspect_ai; tests/logs/test_foreign_writers.py",
    "grv convert predictions_1": "needs predictions; tests/backends/verifiers/repo",
    "grv convert answers.jsonl --predictions": "needs diffs; tests/backends/verifiers/repo",
    "grv problems swe-bench": "needs clones; tests/backends/verifiers/repo",
    "grv convert traces.jsonl": "needs rollouts; tests/logs/test_rollouts.py",
    "grv convert details_": "needs details; tests/logs/test_rollouts.py",
    "grv convert samples_gsm8k": "needs samples; tests/logs/test_formats.py",
    "grv compare otis_aime_pool.parquet": "needs a log that is not in the repository",
    "grv report --job paper/": "needs logs that are not in the repository",
    "grv report log.csv -o report.html --json": "slow; tests/apps/test_report_command.py",
    "grv theory lower-bound singletons:256": "slow; tests/apps/test_theory_command.py",
    "python kinds.py": "the same lines run as python; the folder has a smaller kinds.csv",
}
# Options that make a command small; the last one given wins.
SMALL = {
    "compare": ["--orders", "2"],
    "report": ["--orders", "2", "--many-orders", "3"],
    "simulate": ["--problems", "3", "--orders", "2"],
    "theory": ["--runs", "2"],
}


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def text_of(page: Path) -> str:
    """A page with its generated parts, but for the reference, which is made of them."""
    text = page.read_text(encoding="utf-8")
    return text if page.parent.name == "reference" else str(GENERATED["filled"](text))


def fences(page: Path, language: str) -> list[str]:
    return [
        textwrap.dedent(content)
        for _, found, content in FENCE.findall(text_of(page))
        if found == language
    ]


def commands(page: Path) -> list[str]:
    """The commands of a page, each on one line."""
    lines = "\n".join(fences(page, "sh")).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


def is_run(command: str) -> bool:
    return not command.startswith(tuple(NOT_RUN))


@pytest.fixture(scope="module")
def server() -> Iterator[FaultyServer]:
    """A model that is right every third time."""
    with FaultyServer(text=lambda _, seed: "hello 42" if seed % 3 else "It is \\boxed{42}") as up:
        yield up


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory, server: FaultyServer) -> Path:
    """A folder with every file that a page names."""
    folder = tmp_path_factory.mktemp("workshop")
    for name, lines in files().items():
        text = "".join(line.rstrip() + "\n" for line in lines)
        (folder / name).write_text(text.replace("http://localhost:8000/v1", server.url))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        solve = "grv solve problems.jsonl --generator openai:MODEL --out answers.jsonl"
        assert "solved" in run_in(f"{solve} --base-url http://localhost:8000/v1", server)
        run_in("grv learn log.csv -o prior.json", server)
    return folder


def files() -> dict[str, list[str]]:
    """The lines of each file. Where a page shows a file, it is that one."""
    sample = (resources.files("grv") / "data" / "sample.csv").read_text().splitlines()
    head, rows = sample[0], [line for line in sample[1:] if line < "humaneval-0012"]
    kinds = [f"{p},{c},{int(c % 9 == 3)},{c % 8}" for p in "ab" for c in range(60)]
    labels, scores, *_ = fences(DOCS / "guide" / "logs.md", "json")
    samples = [{"correct": True}, {"correct": False}]
    texts = [
        {"problem": p, "candidate": c, "passed": c % 3 == 0, "text": f"word{c % 5} {c % 3}"}
        for p in "abc"
        for c in range(12)
    ]
    rewards = [{"idx": 0, "r_last": 1}, {"idx": 1, "r_last": 2}]
    return {
        "log.csv": [head, *rows],
        "sample.csv": [head, *rows],
        "two.csv": [f"{head},length", *(f"{row},{len(row)}" for row in rows)],
        "kinds.csv": [head, *kinds],
        "generators.csv": [f"{head},generator,key", *(f"{row},small,s{row[-3:]}" for row in rows)]
        + [f"{row},large,l{row[-3:]}" for row in rows[::3]],
        "class.txt": ["0 1 1", "1 0 0"],
        "example.csv": fences(DOCS / "reference" / "log-columns.md", "csv"),
        "texts.jsonl": list(map(json.dumps, texts)),
        "labels.jsonl": [labels],
        "scores.jsonl": [scores],
        "generations.jsonl": [json.dumps({"id": "a", "samples": samples})],
        "rewards.jsonl": [json.dumps({"id": "a", "rewards": rewards})],
        "prices.toml": ["[MODEL]", "prompt = 1", "completion = 2", "[other]", "verify_call = 1"],
        "problems.jsonl": [problem("PROBLEM"), problem("sum"), problem("double")],
        "my.py": fences(DOCS / "guide" / "own-code.md", "python"),
        "riddles.jsonl": fences(DOCS / "guide" / "own-code.md", "json"),
        "own.jsonl": fences(DOCS / "howto" / "own-verifier.md", "json"),
        "candidates.jsonl": fences(DOCS / "guide" / "verify.md", "json"),
        "job.toml": fences(DOCS / "howto" / "job-file.md", "toml"),
    }


def problem(name: str) -> str:
    check = {"kind": "math", "answer": "42"}
    return json.dumps({"problem": name, "prompt": f"What is {name}?", "check": check})


def run_in(command: str, server: FaultyServer) -> str:
    """Run a command in the current folder; the text that it prints."""
    given = command.replace("http://localhost:8000/v1", server.url)
    words = shlex.split(given, comments=True)
    if words[0] != "grv":
        ran = subprocess.run(given, shell=True, capture_output=True, text=True, check=True)
        return ran.stdout
    small = [] if "--list" in words else SMALL.get(words[1], [])
    if words[1] == "solve" and "--budget" not in words and "measured" not in given:
        small = ["--budget", "200"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "none")
        ran_here = here(*words[1:], *small)
    allowed = (0, 1) if words[1] == "solve" else (0,)
    assert ran_here.code in allowed, f"{command}\n{ran_here.out}\n{ran_here.err}"
    return ran_here.out + ran_here.err


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_fence_says_what_it_holds(page: Path) -> None:
    opened = re.findall(r"^ *```(\w*)$", text_of(page), re.MULTILINE)
    assert set(opened[::2]) <= LANGUAGES
    assert set(opened[1::2]) <= {""}
    assert len(FENCE.findall(text_of(page))) * 2 == len(opened)


# Pages whose Python needs more than grv, and what runs it.
ELSEWHERE = {
    "frameworks.md": "needs frameworks; tests/adapters",
    "serve.md": "needs a server; tests/serve/test_guide.py",
    "training.md": "needs frameworks; tests/adapters",
}
PYTHON = [
    page
    for page in PAGES
    if fences(page, "python") and page.name not in ELSEWHERE and page not in ADDING
]


@pytest.mark.slow
@pytest.mark.parametrize("page", PYTHON, ids=name_of)
def test_the_python_on_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "log.csv").write_text("\n".join(files()["log.csv"]))
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    for block in fences(page, "python"):
        exec(compile(block, str(page), "exec", dont_inherit=True), names)


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page not in ADDING and any(map(is_run, commands(page)))],
    ids=name_of,
)
def test_the_commands_on_a_page_run(
    page: Path,
    workshop: Path,
    server: FaultyServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = shutil.copytree(workshop, tmp_path / "folder")
    monkeypatch.chdir(folder)
    for command in filter(is_run, commands(page)):
        run_in(command, server)


def test_every_reason_not_to_run_a_command_is_needed() -> None:
    shown = [command for page in PAGES for command in commands(page)]
    for beginning in NOT_RUN:
        assert any(command.startswith(beginning) for command in shown), beginning


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_data_on_a_page_is_valid(page: Path) -> None:
    for block in fences(page, "json"):
        for line in block.splitlines():
            json.loads(line)
    for block in fences(page, "toml"):
        tomllib.loads(block)
    for block in fences(page, "csv"):
        assert len({line.count(",") for line in block.splitlines()}) == 1


def shown_checks() -> list[Any]:
    found = []
    for page in PAGES:
        for block in fences(page, "json") if page not in ADDING else ():
            for line in block.splitlines():
                if "candidates" in (record := json.loads(line)) and "check" in record:
                    name = f"{name_of(page)}: {record['problem']}"
                    found.append(pytest.param(record, id=name))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("record", shown_checks())
def test_of_the_candidates_of_a_shown_check_the_first_passes(
    record: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if record["check"]["kind"] == "repo":
        make_repository(tmp_path / "shop", modules=0)
        monkeypatch.chdir(tmp_path)
    shown = Problem(record["problem"], check=record["check"])
    system = shown.check.get("system")
    if system is not None and isinstance(missing := provers.installed()[system], str):
        pytest.skip(missing)
    with CheckVerifier(workers=1, allow_commands=True, published=True) as verifier:
        verdicts = [verifier.find(shown, text).verdict.value for text in record["candidates"]]
    assert verdicts == ["passed", "failed"]


def test_every_kind_of_check_has_a_section_with_an_example() -> None:
    text = (DOCS / "reference" / "checks.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    for kind in KINDS:
        assert f'"kind": "{kind}"' in sections.get(kind, ""), f"reference/checks.md: {kind}"


def test_the_columns_of_a_log_are_those_of_the_reader() -> None:
    text = (DOCS / "reference" / "log-columns.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)` \| (yes|no)", text, re.MULTILINE)
    assert listed == [(name, "yes") for name in REQUIRED] + [(name, "no") for name in OPTIONAL]


def test_the_readme_has_the_costs_of_the_recorded_comparisons() -> None:
    found = json.loads((DOCS / "research" / "real-logs.json").read_text(encoding="utf-8"))
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\| `([\w-]+)` \|[^|]*\| ([^|]*) \| ([^|]*) \|$", text, re.MULTILINE)
    logs = [found[name]["rows"] for name in ("humaneval codet", "aime text_lr")]
    assert len(shown) == 6
    for policy, *cells in shown:
        assert cells == [GENERATED["shown_ratio"](rows[policy]) for rows in logs], policy


def test_the_pictures_of_the_start_page_are_those_that_their_script_draws() -> None:
    drawn = runpy.run_path(str(DOCS / "make_story.py"))
    for name, picture in (("idea", drawn["idea"]), ("real-logs", drawn["costs"])):
        committed = (DOCS / "gallery" / f"{name}.svg").read_text(encoding="utf-8")
        assert committed == picture(), "python docs/make_story.py"


def test_the_page_about_own_code_shows_the_example() -> None:
    (shown,) = fences(DOCS / "guide" / "own-code.md", "python")
    assert shown.strip() in (ROOT / "examples" / "own_code.py").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem)
def test_an_example_runs_and_prints(
    example: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [str(example)])
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out


def test_links_outside_the_site_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *ROOT.glob("bench/*.md"), *ROOT.glob("paper/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page}: {target}"


def test_no_cell_of_a_table_is_a_paragraph() -> None:
    for page in PAGES:
        for line in text_of(page).splitlines():
            if line.startswith("|"):
                assert max(len(cell.split()) for cell in line.split("|")) <= 50, f"{page}: {line}"


def test_the_glossary_has_every_notion_of_our_own() -> None:
    text = (DOCS / "glossary.md").read_text(encoding="utf-8")
    terms = {term.lower() for term in re.findall(r"^\*\*(.+?)\*\*(?!\*)", text, re.MULTILINE)}
    own = "candidate draft score verdict pool policy plan step costs bill budget ledger log key"
    more = "unit order rho open width prior merit guard cascade shell round slot trial law value"
    assert {*own.split(), *more.split(), "j\\*", "star number"} <= terms


def test_the_citation_names_this_version_and_the_paper() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {grv.__version__}\n" in text
    assert f"{{{grv.__version__}}}" in (DOCS / "cite.md").read_text(encoding="utf-8")
    assert "Adaptive Generate-Rank-Verify" in text


@pytest.mark.soak
@pytest.mark.slow
def test_the_benches_run_at_a_small_size() -> None:
    call = [sys.executable, str(ROOT / "bench" / "run.py"), "--quick"]
    shown = subprocess.run(call, capture_output=True, text=True, env={**os.environ})
    assert shown.returncode == 0, shown.stderr
    assert "same figures" in shown.stdout


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["growth", "serve", "pages", "cluster", "languages"])
def test_the_large_benches_run_at_a_small_size(name: str) -> None:
    call = [sys.executable, str(ROOT / "bench" / f"{name}.py"), "--quick"]
    shown = subprocess.run(call, capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr


def test_nothing_names_this_machine_or_a_registry() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    outside = re.compile(r"/(?:home|root|work)/[\w.]|https?://[^\s)\"']*(?:pypi|simple/)")
    for name in listed:
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml", ".txt", ""} and path.is_file():
            found = outside.search(path.read_text(encoding="utf-8", errors="ignore"))
            assert found is None or name == "tests/test_documents.py", f"{name}: {found}"
