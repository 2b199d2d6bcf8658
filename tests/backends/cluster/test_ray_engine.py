"""Verification on real Ray clusters: verdicts, nodes that come and go, and weak nodes."""

from __future__ import annotations

import gzip
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from grv.ledger.entries import Made
from grv.ledger.opening import open_ledger
from support.commands import Ran, ended, grv, records, start
from support.mixed import CASES
from support.ray_cluster import RayCluster, running

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]

DATA = Path(os.environ.get("GRV_TEST_DATA", "no such directory"))
PROGRAMS = {
    "right": "def f(x): return x + 1",
    "wrong": "def f(x): return x",
    "endless": "def f(x):\n    while True: pass",
    "exits": "import os\ndef f(x): os._exit(0)",
    "raises": "def f(x): return 1 // 0",
    "hungry": "def f(x): return len(bytearray(1 << 33))",
    "prying": "def f(x): return int(open('/etc/passwd').read())",
    "refuted": "def g(x): return x",
}
CHECKS: dict[str, dict[str, Any]] = {
    "function": {"kind": "function", "entry_point": "f", "tests": [{"args": [1], "expected": 2}]},
    "asserts": {
        "kind": "asserts",
        "entry_point": "f",
        "test": "def check(f):\n    assert f(1) == 2\n    assert f(5) == 6\n",
    },
}
ROOT = {
    "kind": "proof",
    "system": "smt",
    "statement": "(synth-fun root () Int) (constraint (= (* root root) 1764))",
}


def candidates() -> list[tuple[str, dict[str, Any], list[str]]]:
    """The problems, their checks, and their candidates."""
    sums = {"kind": "stdin", "tests": [{"input": "3 4\n", "output": "7\n"}]}
    half = {"kind": "math", "answer": "\\frac{1}{2}"}
    said = ["\\boxed{0.5}", "\\boxed{\\frac{2}{4}}", "\\boxed{2}", "nothing"]
    return [
        *((name, check, [*PROGRAMS.values()]) for name, check in CHECKS.items()),
        ("repeated", {**CHECKS["function"], "repeat": 2}, [PROGRAMS["right"]]),
        ("stdin", sums, ["print(sum(map(int, input().split())))", "print(8)", "input(); print(7)"]),
        ("math", half, said),
        *(
            (f"kind {case.name}", case.check | {"limits": {"seconds": 8}}, [case.right, case.wrong])
            for case in CASES
        ),
        ("proof", ROOT, [f"(define-fun root () Int {number})" for number in (42, 41, "(exit)")]),
    ]


# Verifies what it reads; then has 1,000 candidates in flight, and looks at what the nodes have.
_IN_PYTHON = """
import asyncio, json, sys
from grv import Draft, Problem
from grv.backends.verifiers.options import Verification

engine, refute, many = json.loads(sys.argv[1])
most = 0


def jobs():
    for name, check, texts in json.load(sys.stdin):
        for number, text in enumerate(texts):
            yield (name, number), Problem(name, check=check), text


def times_removed(evidence):
    kept = {name: value for name, value in evidence.items() if not name.endswith("seconds")}
    if "stages" in kept:
        kept["stages"] = [times_removed(stage) for stage in kept["stages"]]
    return kept


async def look(nodes):
    global most
    while True:
        most = max([most, *(node.in_flight for node in nodes.ready)])
        await asyncio.sleep(0.001)


async def flood(verifier):
    watch = asyncio.create_task(look(verifier.engine._nodes))
    problem = Problem("p", check={"kind": "math", "answer": "7"})
    drafts = [Draft(f"\\\\boxed{{{at}}}") for at in range(many)]
    findings = await asyncio.gather(*(verifier.verify(problem, draft) for draft in drafts))
    watch.cancel()
    return sum(finding.verdict.value == "passed" for finding in findings)


# Each node learns an order of tests of its own, and the evidence says which test failed.
options = {"engine": engine, "refute": refute, "timeout": 0.5, "order_tests": "file"}
with Verification(**options).verifier() as verifier:
    found = sorted(
        [*tag, judged.key, judged.finding.verdict.value, judged.finding.reason,
         times_removed(judged.finding.evidence)]
        for tag, judged in verifier.find_all(jobs())
    )
    sent = next(verifier.engine._numbers) if many else 0
    passed = asyncio.run(flood(verifier)) if many else 0
    sent = next(verifier.engine._numbers) - sent - 1 if many else 0
    print(json.dumps([found, {"passed": passed, "most": most, "sent": sent}, verifier.workers]))
"""


def in_python(env: dict[str, str], engine: str, *, refute: bool = True, many: int = 0) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", _IN_PYTHON, json.dumps([engine, refute, many])],
        input=json.dumps(candidates()),
        capture_output=True,
        text=True,
        env={**os.environ, **env},
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    return json.loads(done.stdout)


def test_two_nodes_give_the_same_findings_as_this_machine_and_the_rest_waits_in_the_driver(
    ray_cluster: RayCluster,
) -> None:
    ray_cluster.keep(2)
    there, flood, workers = in_python(ray_cluster.env, "ray", refute=False, many=1000)
    here, _, _ = in_python({}, "local", refute=False)
    assert there == here
    assert {finding[3] for finding in here} == {"passed", "failed"}
    kinds = {(name, number): verdict for name, number, _, verdict, *_ in here}
    assert {kinds[f"kind {case.name}", 0] for case in CASES} == {"passed"}
    assert {kinds[f"kind {case.name}", 1] for case in CASES} == {"failed"}
    assert workers == 2
    # Each node has at most twice its CPUs in flight.
    assert flood == {"passed": 1, "most": 2, "sent": 1000}


GENERATOR = """
import collections

WANTED = {"p0": 3, "p1": 9, "p2": 5, "p3": 12, "p4": 7, "p5": 10}
made = collections.Counter()


def candidate(problem):
    made[problem.id] += 1
    number = made[problem.id]
    result = "x + 1" if number == WANTED[problem.id] else f"x - {number}"
    return f"import time\\ndef f(x):\\n    time.sleep(0.2)\\n    return {result}\\n"
"""
WANTED = {"p0": 3, "p1": 9, "p2": 5, "p3": 12, "p4": 7, "p5": 10}


def found(ledger: Path) -> int:
    """The number of verdicts in a ledger."""
    if not ledger.exists():
        return 0
    with closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as db:
        try:
            query = "SELECT count(*) FROM entries WHERE kind = 'found'"
            return int(db.execute(query).fetchone()[0])
        except sqlite3.OperationalError:  # it is just being made
            return 0


def wait_until(process: subprocess.Popen[str], done: Callable[[], bool]) -> None:
    until = time.monotonic() + 120
    while process.poll() is None and not done():
        assert time.monotonic() < until
        time.sleep(0.05)
    assert process.poll() is None, process.communicate()


def test_nodes_that_die_cost_nothing_and_a_node_that_joins_is_used(
    tmp_path: Path, ray_cluster: RayCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray_cluster.keep(2)
    monkeypatch.chdir(tmp_path)
    Path("make.py").write_text(GENERATOR)
    check = CHECKS["function"]
    lines = [{"problem": name, "prompt": name, "check": check} for name in WANTED]
    Path("problems").write_text("".join(json.dumps(line) + "\n" for line in lines))
    options = ("--generator", "make.py:candidate", "--score", "length", "--policy", "verify-all")
    more = ("--costs", "1,10", "--budget", 1000, "--width", 1)
    process = start(
        "solve",
        "problems",
        *options,
        *more,
        "--out",
        "out",
        "--engine",
        "ray",
        env=ray_cluster.env,
    )
    ledger = Path("out.ledger")
    wait_until(process, lambda: found(ledger) >= 4)
    ray_cluster.remove()
    wait_until(process, lambda: found(ledger) >= 12)
    ray_cluster.remove()  # now there is none
    ray_cluster.add()
    ran = ended(process)

    assert ran.code == 0, ran
    assert {record["outcome"] for record in records(Path("out"))} == {"solved"}
    total = sum(WANTED.values())
    with closing(sqlite3.connect(ledger)) as db:
        bodies = [body for (body,) in db.execute("SELECT body FROM entries WHERE kind = 'found'")]
    assert len(bodies) == total
    assert not any("broken" in body for body in bodies)
    ran_on_a_node = sum('"shared":true' not in body for body in bodies)
    assert ran_on_a_node >= 12  # the problems have equal checks: equal programs run once
    with closing(open_ledger(str(ledger))) as opened:
        entries = [entry for search in opened.search_ids() for entry in opened.read(search)]
        assert sum(each.paid for each in opened.searches()) == total + 10 * ran_on_a_node
    assert sum(isinstance(entry, Made) for entry in entries) == total
    lost = [line for line in ran.err.splitlines() if "is lost" in line]
    assert len(lost) == 2, ran.err


@pytest.mark.soak
def test_a_node_without_landlock_is_named_and_not_used(
    tmp_path: Path, ray_cluster: RayCluster
) -> None:
    ray_cluster.keep(0)
    file, out = tmp_path / "candidates.jsonl", tmp_path / "labels.jsonl"
    line = {"problem": "p", "check": CHECKS["function"], "candidates": [PROGRAMS["right"]]}
    file.write_text(json.dumps(line) + "\n")
    verify = ("verify", file, "--engine", "ray", "--out", out)
    with ray_cluster.weak_node():
        _refused_and_named(ray_cluster, verify, out)


def _refused_and_named(ray_cluster: RayCluster, verify: tuple[object, ...], out: Path) -> None:
    ran = grv(*verify, env=ray_cluster.env)
    assert (ran.code, ran.out) == (2, "")
    assert_one_line(ran, "node 127.0.0.1 (", "no landlock", "--isolation unsafe accepts less")
    assert not out.exists()

    ran = grv("doctor", "--engine", "ray", env=ray_cluster.env)
    assert ran.code == 1
    assert "no landlock" in ran.out
    assert "is weaker than jail" in ran.out

    ray_cluster.keep(1)
    ran = grv(*verify, env=ray_cluster.env)
    assert ran.code == 0
    assert "1 passed" in ran.out
    assert ran.err.count("\n") == 1
    assert "is not used: isolation 'jail' does not work" in ran.err


def assert_one_line(ran: Ran, *words: str) -> None:
    lines = [line for line in ran.err.splitlines() if not line.startswith("node ")]
    assert len(lines) == 1, ran.err
    assert lines[0].startswith("grv: "), ran.err
    for word in words:
        assert word in lines[0]


def processes(folder: Path) -> list[str]:
    """The processes whose command names the folder."""
    lines = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            command = (each / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(folder) in command:
            lines.append(command[:200])
    return lines


def test_ctrl_c_ends_the_cluster_that_the_command_started(tmp_path: Path) -> None:
    check = CHECKS["function"]
    slow = [f"import time\ndef f(x):\n    time.sleep(8)\n    return x + {n}" for n in range(40)]
    file, out = tmp_path / "candidates.jsonl", tmp_path / "labels.jsonl"
    quick = ["def f(x): return x + 1"]
    lines = [{"problem": name, "check": check, "candidates": c} for name, c in (("q", quick),)]
    lines.append({"problem": "s", "check": check, "candidates": slow})
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    folder = Path("/tmp") / f"grv-{os.getpid()}"  # short, for the names of sockets
    folder.mkdir()
    env = {"TMPDIR": str(folder)}
    process = start("verify", file, "--engine", "ray", "--out", out, env=env)
    try:
        wait_until(process, lambda: out.exists() and len(records(out)) >= 1)
        assert processes(folder)
        process.send_signal(signal.SIGINT)
        ran = ended(process, within=60)
        assert (ran.code, ran.out, ran.err) == (130, "", "grv: interrupted\n")
        until = time.monotonic() + 20
        while processes(folder) and time.monotonic() < until:
            time.sleep(0.1)
        assert processes(folder) == []
        assert [path.name for path in folder.iterdir() if path.name.startswith("grv-")] == []
    finally:
        process.kill()
        process.communicate()
        subprocess.run(["rm", "-rf", str(folder)], check=True)


def verdicts(path: Path) -> dict[tuple[str, int], str]:
    return {(each["problem"], each["candidate"]): each["verdict"] for each in records(path)}


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("nodes", [2, 3])
@pytest.mark.skipif(not DATA.is_dir(), reason="GRV_TEST_DATA names no folder with programs")
def test_many_published_programs_get_the_same_verdicts(
    nodes: int, tmp_path: Path, ray_cluster: RayCluster
) -> None:
    count = int(os.environ.get("GRV_RAY_PROGRAMS", "2000"))
    file = tmp_path / "candidates.jsonl"
    left = count
    with gzip.open(DATA / "humaneval_programs.jsonl.gz", "rt") as source, file.open("w") as target:
        for line in source:
            record = json.loads(line)
            check = {
                **{"kind": "asserts", "entry_point": record["entry_point"]},
                **{"test": record["test"], "prompt": record["prompt"]},
            }
            chosen = record["completions"][: min(left, count // 40)]
            left -= len(chosen)
            job = {"problem": record["problem"], "check": check, "candidates": chosen}
            target.write(json.dumps(job) + "\n")
            if not left:
                break
    local, there = tmp_path / "local.jsonl", tmp_path / "ray.jsonl"
    options = ("--timeout", 3)
    assert grv("verify", file, *options, "--out", local, within=1800).code == 0
    ray_cluster.keep(nodes)
    process = start(
        "verify", file, *options, "--engine", "ray", "--out", there, env=ray_cluster.env
    )

    def has(part: float) -> Callable[[], bool]:
        return lambda: there.exists() and there.read_text().count("\n") >= part * count

    wait_until(process, has(0.2))
    ray_cluster.remove()
    wait_until(process, has(0.4))
    ray_cluster.add()
    wait_until(process, has(0.6))
    ray_cluster.remove(0)
    ran = ended(process, within=1800)
    assert ran.code == 0, ran
    assert verdicts(there) == verdicts(local)
    assert len(records(there)) == count


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_the_doctor_examines_every_node(ray_cluster: RayCluster) -> None:
    ray_cluster.keep(2)
    ran = grv("doctor", "--engine", "ray", env=ray_cluster.env, within=1200)
    assert ran.code == 0, ran
    assert ran.out.count("attacks that are held") == 2
    assert ran.out.endswith("all is well\n")


@pytest.mark.soak
def test_a_lost_head_is_one_line_and_the_same_run_continues_on_this_machine(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(
        "def generate(problem):\n"
        "    busy = 'import time\\nend = time.time() + 1\\nwhile time.time() < end: pass\\n'\n"
        "    return busy + f'def f(x): return x + 1  # {problem.id}'\n"
        "def score(problem, text): return 0.0\n"
    )
    problems = tmp_path / "problems.jsonl"
    lines = [{"problem": f"p{at}", "prompt": "", "check": CHECKS["function"]} for at in range(25)]
    problems.write_text("".join(json.dumps(line) + "\n" for line in lines))
    out = tmp_path / "out.jsonl"
    command = (
        "solve",
        problems,
        "--generator",
        f"{own}:generate",
        "--score",
        f"{own}:score",
        "--out",
        out,
        "--budget",
        50,
        "--policy",
        "default",
    )
    with running(1) as cluster:
        process = start(*command, "--engine", "ray", env=cluster.env)
        while process.poll() is None and not (out.exists() and records(out)):
            time.sleep(0.05)
        cluster.lose_head()
        ran = ended(process)
    assert ran.code == 2, ran
    assert ran.err == (
        f"grv: ray: the head of the Ray cluster at {cluster.address} does not answer; start it"
        " again or choose --engine local, then run the same command again\n"
    )
    solved = len(records(out))
    assert 0 < solved < 25
    again = grv(*command, "--engine", "local", "--workers", 2, within=240)
    assert again.code == 0, again
    assert len(records(out)) == 25
    with closing(open_ledger(f"{out}.ledger", read_only=True)) as ledger:
        assert ledger.check() == []
