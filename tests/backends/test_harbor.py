"""Tasks of Harbor: problems from folders, and verdicts by their tests in a container."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from grv import Problem, Verdict
from grv.backends.protocols import Finding
from grv.backends.sandbox.limits import Isolation
from grv.backends.verifiers import harbor
from grv.backends.verifiers.pool import CheckVerifier
from grv.core.errors import UsageError
from support.commands import here, records, refuses

# Like the tasks of Terminal-Bench: the last line decides.
TEST_SH = """#!/bin/bash
cat /app/main.txt
bash /app/run.sh
reward=0
if grep -q right /app/main.txt; then reward=1; fi
echo $reward > /logs/verifier/reward.txt
"""
RIGHT = "--- a/main.txt\n+++ b/main.txt\n@@ -1 +1 @@\n-wrong\n+right\n"
WRONG = "--- a/main.txt\n+++ b/main.txt\n@@ -1 +1 @@\n-wrong\n+still not\n"
FORGER = RIGHT.replace("+right", "+no") + (
    "--- a/run.sh\n+++ b/run.sh\n@@ -1 +1 @@\n-true\n"
    "+echo '{\"reward\": 1}' > /logs/verifier/reward.json\n"
)


def task(folder: Path, name: str = "fix", toml: str = "", script: str = TEST_SH) -> Path:
    """The folder of a task."""
    made = folder / "tasks" / name
    (made / "tests").mkdir(parents=True)
    (made / "environment").mkdir()
    (made / "instruction.md").write_text("Make main.txt right.\n")
    (made / "tests" / "test.sh").write_text(script)
    (made / "environment" / "Dockerfile").write_text("FROM debian\nWORKDIR /app\n")
    default = (
        f'schema_version = "1.4"\n[task]\nname = "example/{name}"\n[metadata]\n'
        'difficulty = "easy"\n[verifier]\ntimeout_sec = 120.0\n'
        '[environment]\ndocker_image = "localhost/fix:1"\nmemory_mb = 512\n'
        'network_mode = "no-network"\n'
    )
    (made / "task.toml").write_text(toml or default)
    return made


def test_tasks_become_problems(tmp_path: Path) -> None:
    made = task(tmp_path)
    out = tmp_path / "tasks.jsonl"
    ran = here("problems", "harbor", tmp_path / "tasks", "-o", out)
    assert ran.code == 0, ran.err
    (problem,) = records(out)
    assert problem["problem"] == "example/fix"
    assert problem["prompt"].startswith("Make main.txt right.")
    assert "/app" in problem["prompt"]
    assert problem["check"] == {
        "kind": "harbor",
        "task": str(made),
        "image": "localhost/fix:1",
        "workdir": "/app",
        "limits": {"seconds": 120.0, "memory_mb": 512},
    }


def test_what_one_container_cannot_judge_is_left_out_by_name(tmp_path: Path) -> None:
    task(tmp_path)
    head = '[environment]\ndocker_image = "x"\n'
    task(tmp_path, "steps", head + '[[steps]]\nname = "one"\n')
    task(tmp_path, "keys", head + '[verifier]\nenv = {KEY = "${KEY}"}\n')
    task(tmp_path, "windows", head + 'os = "windows"\n')
    task(tmp_path, "own", head + '[verifier.environment]\ndocker_image = "y"\n')
    task(tmp_path, "built", "[task]\nname = 'example/Built It'\n")
    several = task(tmp_path, "several", head)
    (several / "environment" / "docker-compose.yaml").write_text("")
    out = tmp_path / "tasks.jsonl"
    ran = here("problems", "harbor", tmp_path / "tasks", "-o", out)
    assert [each["problem"] for each in records(out)] == ["example/Built It", "example/fix"]
    assert "podman build --tag hb__example-built-it" in ran.out
    for reason in ("several steps", "may be keys", "than Linux", "of its own", "containers"):
        assert reason in ran.out
    assert records(out)[0]["check"]["network"] is True


def test_a_folder_that_is_no_task_is_refused_in_one_line(tmp_path: Path) -> None:
    refuses(["problems", "harbor", tmp_path, "-o", tmp_path / "x"], "no problems")
    refuses(["problems", "harbor", tmp_path / "none", "-o", tmp_path / "x"], "not a folder")
    made = task(tmp_path, toml="[task\n")
    refuses(["problems", "harbor", tmp_path / "tasks", "-o", tmp_path / "x"], "not TOML")
    (made / "task.toml").write_text("environment = 5\n")
    refuses(["problems", "harbor", tmp_path / "tasks", "-o", tmp_path / "x"], "must be a record")


ENGINE = '''#!{python}
"""Stands for podman: runs the tests without a container, with the folders that it is given."""
import os, pathlib, shutil, subprocess, sys, tempfile
words = sys.argv[1:]
with open({log!r}, "a") as log:
    print(*words, file=log)
image = {image!r}
if words[0] == "version":
    print("{{}}")
elif words[0] == "create":
    print("c0ffee")
elif words[0] == "cp":
    place = words[1].partition(":")[2]
    shutil.copytree(image + place, words[2])
elif words[0] == "run":
    given = [w.removeprefix("--volume=") for w in words if w.startswith("--volume=")]
    volumes = dict(w.split(":")[1::-1] for w in given)
    with tempfile.TemporaryDirectory() as place:
        for inside in ("/tests", "/app"):
            copy = pathlib.Path(place + inside)
            shutil.copytree(volumes[inside], copy)
            for path in copy.rglob("*"):
                text = path.read_text()
                text = text.replace("/logs/verifier", volumes["/logs/verifier"])
                path.write_text(text.replace("/app/", place + "/app/"))
        sys.exit(subprocess.run(["bash", place + "/tests/test.sh"]).returncode)
'''


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A stand-in for podman; yields the file with its command lines."""
    folder = tmp_path / "bin"
    folder.mkdir()
    image = tmp_path / "image"
    (image / "app").mkdir(parents=True)
    (image / "app" / "main.txt").write_text("wrong\n")
    (image / "app" / "run.sh").write_text("true\n")
    log = tmp_path / "commands"
    script = folder / "podman"
    script.write_text(ENGINE.format(python=sys.executable, log=str(log), image=str(image)))
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(harbor, "why_not", lambda isolation: "")
    harbor._bases.clear()  # noqa: SLF001
    yield log
    harbor._bases.clear()  # noqa: SLF001


Judge = Callable[..., Finding]


@pytest.fixture(scope="module")
def judged() -> Iterator[Judge]:
    """The finding on a candidate of a task."""
    with CheckVerifier(workers=1, isolation=Isolation.PODMAN, allow_commands=True) as verifier:

        def judge(made: Path, text: str, image: str = "localhost/fix:1") -> Finding:
            check = {"kind": "harbor", "task": str(made), "image": image}
            problem = Problem("fix", "", check)
            (found,) = [each.finding for _, each in verifier.find_all([(0, problem, text)])]
            return found

        yield judge


@pytest.mark.slow
def test_the_reward_that_is_read_outside_decides(
    tmp_path: Path, engine: Path, judged: Judge
) -> None:
    made = task(tmp_path)
    assert judged(made, RIGHT).verdict is Verdict.PASSED
    failed = judged(made, WRONG)
    assert (failed.verdict, failed.reason) == (Verdict.FAILED, "reward 0")
    assert "still not" in failed.evidence["stdout"]
    unfit = judged(made, WRONG.replace("-wrong", "-other"))
    assert unfit.reason.startswith("does not apply")
    assert judged(made, "I fixed it, all tests pass.").verdict is Verdict.FAILED


@pytest.mark.slow
def test_a_candidate_that_writes_a_reward_of_its_own_fails(
    tmp_path: Path, engine: Path, judged: Judge
) -> None:
    found = judged(task(tmp_path), FORGER)
    assert (found.verdict, found.reason) == (Verdict.FAILED, "forged reward")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("exit 0\n", "the tests wrote no reward"),
        ("echo 1 > /logs/verifier/reward.txt\n", "pass on the unchanged folder"),
        ("echo nan > /logs/verifier/reward.txt\n", "the reward is no number"),
        ("ln -s /etc/passwd /logs/verifier/reward.txt\n", "the reward is no file"),
        ("mkfifo /logs/verifier/reward.txt\n", "the reward is no file"),
    ],
)
def test_tests_that_judge_nothing_give_no_verdict(
    tmp_path: Path, engine: Path, judged: Judge, script: str, says: str
) -> None:
    found = judged(task(tmp_path, script=script), RIGHT)
    assert found.verdict is Verdict.BROKEN
    assert says in found.reason
    assert "\n" not in found.reason


@pytest.mark.slow
def test_every_run_has_a_new_container_without_network_or_rights(
    tmp_path: Path, engine: Path, judged: Judge
) -> None:
    judged(task(tmp_path), RIGHT)
    lines = engine.read_text().splitlines()
    runs = [line.split() for line in lines if line.startswith("run")]
    assert len(runs) == 2  # the unchanged folder, then the candidate
    for words in runs:
        for option in (
            "--rm",
            "--pull=never",
            "--network=none",
            "--cap-drop=ALL",
            "--security-opt=no-new-privileges",
            "--ulimit=core=0:0",
        ):
            assert option in words
        assert f"--volume={tmp_path}/tasks/fix/tests:/tests:ro" in words
        assert words[-3:] == ["localhost/fix:1", "/bin/bash", "/tests/test.sh"]
    names = {next(w for w in words if w.startswith("--name=")) for words in runs}
    assert len(names) == 2


def test_without_containers_and_without_consent_it_says_so_in_one_line(tmp_path: Path) -> None:
    made = task(tmp_path)
    line: dict[str, object] = {"problem": "fix", "prompt": "", "candidates": [RIGHT]}
    line["check"] = {"kind": "harbor", "task": str(made), "image": "localhost/fix:1"}
    path = tmp_path / "candidates.jsonl"
    path.write_text(json.dumps(line) + "\n")
    words = ["verify", path, "-o", tmp_path / "labels.jsonl"]
    refuses(words, "runs the tests of", "--allow-commands")
    refuses([*words, "--allow-commands"], "run in containers", "--isolation podman")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"image": "--privileged"}, "image must be"),
        ({"image": 5}, "image must be"),
        ({"task": "nowhere"}, "has no tests/test.sh"),
        ({"workdir": "/"}, "workdir must be"),
        ({"workdir": "app"}, "workdir must be"),
        ({"workdir": "/app:/etc"}, "workdir must be"),
        ({"workdir": "/a/../b"}, "workdir must be"),
        ({"network": "yes"}, "network must be"),
    ],
)
def test_a_mistake_in_a_record_is_one_line(
    tmp_path: Path, change: dict[str, object], says: str
) -> None:
    record = {"kind": "harbor", "task": str(task(tmp_path)), "image": "x", **change}
    with pytest.raises(UsageError, match=says):
        harbor.HarborCheck.of(Problem("p", "", record))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("podman") is None, reason="podman is not installed")
def test_a_real_container_runs_the_tests(tmp_path: Path, judged: Judge) -> None:
    root = tmp_path / "root"
    for name in ("bash", "cat", "grep", "true"):
        program = Path(shutil.which(name) or "").resolve()
        listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
        libraries = [word for word in listed.stdout.split() if word.startswith("/")]
        copies = {f"/bin/{name}": str(program), **{each: each for each in libraries}}
        for target, source in copies.items():
            place = root / target.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, place)
            place.chmod(place.stat().st_mode | stat.S_IXUSR)
    for name in ("app", "tests", "logs/verifier", "tmp", "etc"):
        (root / name).mkdir(parents=True)
    (root / "app" / "main.txt").write_text("wrong\n")
    (root / "app" / "run.sh").write_text("true\n")
    image = f"localhost/grv-harbor-test:{os.getpid()}"
    archive = tmp_path / "root.tar"
    subprocess.run(["tar", "-C", root, "-cf", archive, "."], check=True)
    made = subprocess.run(["podman", "import", archive, image], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("podman cannot make an image here")
    try:
        folder = task(tmp_path)
        harbor._bases.clear()  # noqa: SLF001
        found = judged(folder, RIGHT, image=image)
        if "does not start" in found.reason:
            pytest.skip(f"podman runs no container here: {found.reason}")
        assert (found.verdict, found.reason) == (Verdict.PASSED, "reward 1")
        assert judged(folder, WRONG, image=image).verdict is Verdict.FAILED
        assert judged(folder, FORGER, image=image).reason == "forged reward"
    finally:
        subprocess.run(["podman", "rmi", "--force", image], capture_output=True, check=False)
