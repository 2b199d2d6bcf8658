"""Programs as generators: what they get, what counts as their candidate, and how they end."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from grv import Draft, Problem, UsageError
from grv.backends.by_name import generator
from grv.backends.generators import run_folders
from grv.backends.generators.command import Agent, CommandGenerator
from grv.backends.generators.containers import AgentContainer
from grv.backends.generators.recipes import RECIPES
from grv.own_code import allow
from grv.testing import AgentStep, GeneratorContract, ScriptedAgent
from support.user_repositories import git, make_repository, state_of

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run folders of these tests are apart from those of others."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "project", {"a.py": "x = 1\n", ".gitignore": "*.log\n"})


def problem_in(repository: Path) -> Problem:
    check = {"kind": "repo", "repository": str(repository), "commit": "HEAD"}
    return Problem("raise-x", "Make x 2.", check)


def run_once(command: list[str] | Agent, problem: Problem, **more: object) -> Draft:
    (draft,) = asyncio.run(CommandGenerator(command, **more).generate(problem, 1, first=2))  # type: ignore[arg-type]
    return draft


def shell(script: str) -> list[str]:
    return ["sh", "-c", script]


class TestCommand(GeneratorContract):
    def make(self) -> CommandGenerator:
        return CommandGenerator(shell("echo 4"))


def test_the_candidate_is_the_diff_of_a_fresh_copy(repository: Path, own_folder: Path) -> None:
    before = state_of(repository)

    draft = run_once(
        shell("echo 'x = 2' > a.py; echo b > b.py; echo c > c.log"), problem_in(repository)
    )

    assert draft.text.count("diff --git") == 2
    assert "+x = 2\n" in draft.text
    assert "c.log" not in draft.text
    assert draft.broken == ""
    assert state_of(repository) == before
    assert list(own_folder.iterdir()) == []


def test_nothing_that_an_agent_does_to_its_copy_reaches_the_repository(repository: Path) -> None:
    before = state_of(repository)
    wild = (
        "git checkout -q -b other; git config user.name evil; git config core.fsmonitor 'touch /e';"
        " echo 'x = 3' > a.py; git add -A; git -c user.email=e commit -qm e; git tag t; git stash;"
        " git update-ref refs/heads/main HEAD; mkdir -p .git/hooks;"
        " echo exit 1 > .git/hooks/pre-commit"
    )
    draft = run_once(shell(wild), problem_in(repository))

    assert "+x = 3\n" in draft.text
    assert state_of(repository) == before


@pytest.mark.parametrize(
    "harm", ["rm -rf .git", "echo rubbish > .git/index", "rm -rf .git; ln -s / .git"]
)
def test_git_data_that_an_agent_spoils_does_not_count(repository: Path, harm: str) -> None:
    draft = run_once(shell(f"echo 'x = 2' > a.py; {harm}"), problem_in(repository))

    assert "+x = 2\n" in draft.text


def test_two_copies_share_nothing(repository: Path) -> None:
    first = run_once(
        shell("echo one > one; git add -A; git -c user.name=n -c user.email=e commit -qm x"),
        problem_in(repository),
    )
    second = run_once(shell("git log --oneline; ls; echo two > two"), problem_in(repository))

    assert "one" in first.text
    assert "one" not in second.text
    assert second.log.count("\n") == 1  # one commit, one file


def test_a_diff_that_is_not_utf8_is_binary_and_applies(repository: Path, tmp_path: Path) -> None:
    draft = run_once(
        shell(r"printf '\351t\351\n' > latin.txt; echo 'x = 2' > a.py"), problem_in(repository)
    )
    patch = tmp_path / "patch"
    patch.write_bytes(draft.text.encode("ascii"))

    git(repository, "apply", str(patch))

    assert (repository / "latin.txt").read_bytes() == b"\xe9t\xe9\n"
    assert (repository / "a.py").read_text() == "x = 2\n"


def test_what_a_program_gets(repository: Path) -> None:
    script = (
        'cat; cat "$GRV_TASK" "$1"; echo; echo "$2 $GRV_PROBLEM $GRV_ATTEMPT"; pwd;'
        ' git symbolic-ref HEAD; echo "[$GIT_DIR]"; echo "x = 2" > a.py'
    )
    os.environ["GIT_DIR"] = "/nowhere"
    try:
        draft = run_once([*shell(script), "sh", "{}", "<{task}>"], problem_in(repository))
    finally:
        del os.environ["GIT_DIR"]

    lines = draft.log.splitlines()
    assert lines[0] == "Make x 2." * 3
    assert lines[1] == "<Make x 2.> raise-x 3"
    assert lines[2].endswith("/tree")
    assert lines[3:] == ["refs/heads/attempt", "[]"]


def test_a_placeholder_in_the_task_is_text() -> None:
    draft = run_once(["echo", "{task}"], Problem("p", "say {} and {task}"))

    assert draft.text == "say {} and {task}\n"


def test_without_a_repository_it_prints_or_writes_the_candidate() -> None:
    printed = run_once(shell("ls -A; echo 4"), Problem("p", "2 + 2?"))
    written = run_once(shell('echo 4 > "$GRV_ANSWER"; echo thinking'), Problem("p", "2 + 2?"))

    assert printed.text == "4\n"
    assert written.text == "4\n"
    assert written.log == "thinking"


@pytest.mark.parametrize(
    ("content", "dollars"),
    [
        ('{"cost_usd": 0.25}', 0.25),
        ('{"cost_usd": 0}', 0.0),
        ('{"cost_usd": -1}', None),
        ('{"cost_usd": "1"}', None),
        ('{"cost_usd": NaN}', None),
        ("[1]", None),
        ("rubbish", None),
    ],
)
def test_the_cost_is_what_the_file_says_if_it_makes_sense(
    content: str, dollars: float | None
) -> None:
    draft = run_once(shell(f"echo '{content}' > \"$GRV_COST_FILE\"; echo 4"), Problem("p", "?"))

    assert draft.usage.dollars == dollars


@pytest.mark.parametrize(
    ("script", "broken"),
    [
        ("exit 1", "sh: no candidate"),
        ("echo 'not logged in' >&2; exit 7", "sh: exit status 7: not logged in"),
        ("kill -SEGV $$", "sh: exit status 139"),
        ("true", "sh: it changed nothing"),
    ],
)
def test_a_run_without_a_candidate_says_why(repository: Path, script: str, broken: str) -> None:
    assert run_once(shell(script), problem_in(repository)).broken == broken


def test_a_program_that_is_not_there_is_named(repository: Path) -> None:
    draft = run_once(["no-such-agent"], problem_in(repository))

    assert (
        draft.broken
        == "no-such-agent: it could not start: no-such-agent: No such file or directory"
    )


def test_an_agent_that_never_has_a_candidate_is_given_up() -> None:
    agent = CommandGenerator(shell("exit 1"))

    async def ask() -> list[int]:
        return [len(await agent.generate(Problem("p", "?"), 1, first=n)) for n in range(5)]

    assert asyncio.run(ask()) == [1, 1, 1, 0, 0]
    assert agent.notices == [
        "sh: no candidate 3 times in a row, so it is not asked again (sh: no candidate)"
    ]


def test_more_output_than_is_kept_is_no_candidate(repository: Path) -> None:
    script = "head -c 5000000 /dev/zero | tr '\\0' a"

    assert "more than 4,000,000 bytes" in run_once(shell(script), Problem("p", "?")).broken
    logged = run_once(shell(f"{script}; echo 'x = 2' > a.py"), problem_in(repository))
    assert "+x = 2\n" in logged.text
    assert len(logged.log) < 21_000


def test_keys_of_the_environment_are_in_no_log_and_no_candidate(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-live-7f3a9b1c5d2e8f60"
    monkeypatch.setenv("AGENT_API_KEY", key)

    logged = run_once(shell("echo $AGENT_API_KEY; echo 'x = 2' > a.py"), problem_in(repository))
    leaking = run_once(shell("echo $AGENT_API_KEY > a.py"), problem_in(repository))

    assert key not in logged.log
    assert logged.text
    assert leaking.text == ""
    assert leaking.broken == "sh: its candidate contains a key of your environment"


_STARTS = (
    "sleep 300 & setsid sleep 300 & (trap '' TERM HUP INT; setsid sh -c 'sleep 300 & sleep 300') &"
    " echo $$ > {}; sleep 300"
)


def alive(marker: str) -> list[int]:
    """The processes whose environment has a text."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if marker.encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
        except OSError:
            continue
    return found


def wait_until_gone(marker: str) -> list[int]:
    deadline = time.monotonic() + 10
    while (left := alive(marker)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def test_everything_that_a_slow_program_started_is_killed(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = f"grv-test-{os.getpid()}-slow"
    monkeypatch.setenv("GRV_TEST_MARKER", marker)

    draft = run_once(shell(_STARTS.format("/dev/null")), Problem("p", "?"), seconds=0.5)

    assert draft.broken == "sh: not done within 0.5 s"
    assert wait_until_gone(marker) == []
    assert list(own_folder.iterdir()) == []


def test_everything_is_killed_when_the_call_is_cancelled(
    own_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = f"grv-test-{os.getpid()}-cancelled"
    monkeypatch.setenv("GRV_TEST_MARKER", marker)
    started = tmp_path / "started"

    async def cancel() -> None:
        call = asyncio.ensure_future(
            CommandGenerator(shell(_STARTS.format(started))).generate(Problem("p", "?"), 1)
        )
        while not started.exists():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(cancel())

    assert wait_until_gone(marker) == []
    assert list(own_folder.iterdir()) == []


def test_everything_is_killed_and_swept_if_grv_itself_is_killed(
    own_folder: Path, tmp_path: Path
) -> None:
    marker = f"grv-test-{os.getpid()}-killed"
    started = tmp_path / "started"
    program = (
        "import asyncio; from grv import Problem; from grv.generators import Command;"
        f" agent = Command(['sh', '-c', {_STARTS.format(started)!r}]);"
        " asyncio.run(agent.generate(Problem('p', '?'), 1))"
    )
    environment = {**os.environ, "GRV_TEST_MARKER": marker, "TMPDIR": str(own_folder)}
    process = subprocess.Popen([sys.executable, "-c", program], env=environment)
    while not started.exists():
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()

    assert wait_until_gone(marker) == []
    assert len(list(own_folder.iterdir())) == 1
    run_folders.sweep()
    assert list(own_folder.iterdir()) == []


def test_a_sweep_leaves_folders_alone_whose_owner_lives(own_folder: Path) -> None:
    with run_folders.run_folder(None) as place:
        program = "from grv.backends.generators.run_folders import sweep; sweep()"
        environment = {**os.environ, "TMPDIR": str(own_folder)}
        subprocess.run([sys.executable, "-c", program], env=environment, check=True)
        assert place.tree.is_dir()
    assert list(own_folder.iterdir()) == []


def test_a_folder_that_is_kept_stays(own_folder: Path) -> None:
    agent = CommandGenerator(shell("echo 4 | tee file"), keep=True)
    asyncio.run(agent.generate(Problem("p", "?"), 1))

    (folder,) = agent.kept
    run_folders.sweep()
    assert (folder / "tree" / "file").read_text() == "4\n"


def test_files_without_permissions_are_removed(own_folder: Path) -> None:
    run_once(shell("mkdir -p a/b; touch a/b/c; chmod 0 a/b a; echo 4"), Problem("p", "?"))

    assert list(own_folder.iterdir()) == []


_PODMAN = """#!/bin/sh
# Stands in for podman: runs the program in the folders that the container would have.
echo "$@" >> "$PODMAN_LOG"
[ "$1" = run ] || exit 0
for word; do
  case "$word" in
    --volume=*:/work:rw) tree=${word#--volume=}; tree=${tree%%:*};;
    --volume=*:/grv:rw) files=${word#--volume=}; files=${files%%:*};;
  esac
done
while [ "$1" != my/image ]; do shift; done
shift
cd "$tree" && GRV_COST_FILE="$files/cost.json" "$@"
"""


def test_a_program_in_a_container_sees_its_run_folder_only(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "podman").write_text(_PODMAN)
    (programs / "podman").chmod(0o755)
    log = tmp_path / "podman.log"
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("PODMAN_LOG", str(log))
    monkeypatch.setenv("AGENT_KEY", "secret")
    container = AgentContainer.here("my/image", ["AGENT_KEY"])

    script = "echo 'x = 2' > a.py; ln -s /etc/passwd \"$GRV_COST_FILE\""
    draft = run_once([*shell(script), "sh", "{}"], problem_in(repository), container=container)

    run, removal = log.read_text().splitlines()
    words = run.split()
    assert "+x = 2\n" in draft.text
    assert draft.usage.dollars is None
    volumes = [word for word in words if word.startswith("--volume=")]
    assert [volume.rpartition(":")[2] for volume in volumes] == ["rw", "rw", "ro"]
    assert volumes[2].endswith(f"{repository}/.git/objects:ro")
    for word in ("--cap-drop=ALL", "--security-opt=no-new-privileges", "--pull=never"):
        assert word in words
    assert "--env=AGENT_KEY" in words
    assert "secret" not in run
    assert "--env=GRV_TASK=/grv/task.md" in words
    assert run.endswith("sh /grv/task.md")
    (name,) = [word.partition("=")[2] for word in words if word.startswith("--name=")]
    assert removal == f"rm --force {name}"


@pytest.mark.parametrize(
    ("image", "variables"), [("--privileged", ()), ("a b", ()), ("", ()), ("i", ("A=1",))]
)
def test_what_is_no_image_or_no_variable_is_refused(image: str, variables: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        AgentContainer(image, "podman", variables)


def test_pipes_and_links_of_a_program_are_not_read(tmp_path: Path) -> None:
    piped = run_once(shell('mkfifo "$GRV_COST_FILE" "$GRV_ANSWER" p; echo 4'), Problem("p", "?"))
    linked = run_once(shell('ln -s /etc/passwd "$GRV_ANSWER"; echo 4'), Problem("p", "?"))

    assert (piped.text, piped.usage.dollars) == ("4\n", None)
    assert linked.text == "4\n"


@pytest.mark.parametrize("name", RECIPES)
def test_recipes_find_cost_tokens_and_last_words(name: str, tmp_path: Path) -> None:
    recipe = RECIPES[name]
    step = AgentStep(dollars=0.31, say="Fixed. All 12 tests pass.")
    stand_in = ScriptedAgent(tmp_path, [step], form=name)
    agent = Agent.of_recipe(recipe, most=1.5)
    agent = dataclasses.replace(agent, command=(*stand_in.command, *agent.command[1:]))

    draft = run_once(agent, Problem("p", "Fix it."))

    assert draft.usage.dollars == (0.31 if recipe.report.cost else None)
    assert bool(draft.usage.completion_tokens) == bool(recipe.report.tokens)
    assert "Fixed. All 12 tests pass." in draft.log
    if recipe.report.format != "text":
        assert "{" not in draft.log
    assert recipe.source.startswith("https://")
    assert recipe.read


def test_tokens_of_recipes_add_up_as_prices_need_them(tmp_path: Path) -> None:
    stand_in = ScriptedAgent(tmp_path, [AgentStep()], form="gemini")
    agent = dataclasses.replace(Agent.of("gemini:pro"), command=tuple(stand_in.command))

    usage = run_once(agent, Problem("p", "Fix it.")).usage

    assert (usage.prompt_tokens, usage.cached_tokens) == (1000, 400)
    assert (usage.completion_tokens, usage.reasoning_tokens) == (200, 50)


def test_commands_of_recipes() -> None:
    claude = Agent.of("claude:haiku", 0.5)
    codex = Agent.of("codex:gpt-x")

    assert claude.command[:4] == ("claude", "-p", "--output-format", "json")
    assert claude.command[-4:] == ("--max-budget-usd", "0.5", "--model", "haiku")
    assert codex.command[:4] == ("codex", "exec", "--model", "gpt-x")
    assert codex.command[-1] == "-"
    with pytest.raises(UsageError, match="openhands takes no model here"):
        Agent.of("openhands:m")
    with pytest.raises(UsageError, match=r"no recipe for the agent 'cluade'; did you mean claude"):
        Agent.of("cluade")


def test_a_specification_runs_nothing_that_the_user_did_not_name() -> None:
    with pytest.raises(UsageError, match="a program can only be named on the command line"):
        generator("command:touch /tmp/never")
    allow("command:echo 5")

    made = generator("command:echo 5")

    assert isinstance(made, CommandGenerator)
    assert made.agent.command == ("echo", "5")
