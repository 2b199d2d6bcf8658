"""Every kind of check through every command: verify, solve, collect and serve."""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

from grv.backends.protocols import Problem
from grv.backends.verifiers.checks import GROUPS, KINDS, parse_check
from grv.core.errors import UsageError
from support.commands import grv, here, records
from support.mixed import CASES, Case
from support.servers import FaultyServer, Received
from support.serving import serving, write_job

HERE = [case for case in CASES if not case.needs or importlib.util.find_spec(case.needs)]
BY_PROMPT = {f"{case.name}: {case.prompt}": case for case in HERE}


def test_no_kind_is_left_out() -> None:
    """Servers, people, judges, proofs, repositories and containers are tested elsewhere."""
    elsewhere = {"gym", "http", "human", "judge", "proof", "harbor", "repo"}
    assert {case.check["kind"] for case in CASES} >= KINDS.keys() - elsewhere


def write(path: Path, problems: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(problem) + "\n" for problem in problems))
    return path


def batch(**fields: Any) -> list[dict[str, Any]]:
    """The problems with their candidates, for `grv verify`."""
    return [
        {**case.problem, "check": case.check | fields, "candidates": [case.right, case.wrong]}
        for case in HERE
    ]


def verdicts(path: Path) -> dict[tuple[str, int], str]:
    return {(label["problem"], label["candidate"]): label["verdict"] for label in records(path)}


EXPECTED = {
    (case.name, number): verdict
    for case in HERE
    for number, verdict in enumerate(("passed", "failed"))
}


@pytest.mark.slow
def test_verify_labels_every_kind_and_continues(tmp_path: Path) -> None:
    file = write(tmp_path / "in", batch())
    out = tmp_path / "out"
    call = ["verify", file, "--out", out, "--workers", 1]
    assert here(*call).code == 0
    assert verdicts(out) == EXPECTED
    lines = out.read_text().splitlines(keepends=True)
    assert len(lines) == 2 * len(HERE)
    out.write_text("".join(lines[::2]))  # as if it had been killed
    assert here(*call).code == 0
    assert sorted(verdicts(out).items()) == sorted(EXPECTED.items())
    assert out.read_text().startswith("".join(lines[::2]))


@pytest.mark.slow
def test_limits_and_repeat_work_in_every_kind(tmp_path: Path) -> None:
    file = write(tmp_path / "in", batch(repeat=2, limits={"seconds": 8, "memory_mb": 900}))
    assert here("verify", file, "--out", tmp_path / "out", "--workers", 1).code == 0
    assert verdicts(tmp_path / "out") == EXPECTED


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_wrong_record_names_the_field(case: Case) -> None:
    if case.needs and importlib.util.find_spec(case.needs) is None:
        pytest.skip(f"{case.needs} is not installed")
    for fields, place in (
        ({"surprise": 1}, "check.surprise: no such field"),
        ({"repeat": 0}, "check.repeat: must be between 1 and 100, not 0"),
        ({"limits": {"second": 1}}, "check.limits: unknown limit second; did you mean seconds"),
        ({"limits": {"seconds": -1}}, "check.limits: seconds must be positive, not -1"),
        ({"limits": 3}, "check.limits: must be a record, not 3"),
    ):
        with pytest.raises(UsageError) as caught:
            parse_check(Problem("p", check=case.check | fields))
        said = str(caught.value)
        assert said.startswith("problem p, "), said
        assert place.partition(":")[0].removeprefix("check.") in said, said
        assert "\n" not in said


def text_of(received: Received, seed: int) -> str:
    """What the model says: the right candidate at every second seed."""
    case = next(case for prompt, case in BY_PROMPT.items() if prompt in received.prompt)
    return case.right if seed % 2 else f"{case.wrong}\n"


def asked(cases: Sequence[Case]) -> list[dict[str, Any]]:
    return [{**case.problem, "prompt": f"{case.name}: {case.prompt}"} for case in cases]


@pytest.mark.slow
def test_solve_and_collect_verify_every_kind_and_continue(tmp_path: Path) -> None:
    file = write(tmp_path / "in", asked(HERE))
    with FaultyServer(text=text_of) as model:
        call = [file, "--generator", "openai:m", "--base-url", model.url, "--score", "length"]
        log = tmp_path / "log.jsonl"
        collecting = ["collect", *call, "-n", 4, "--out", log, "--no-keys"]
        assert here(*collecting).code == 0
        found = Counter((row["problem"], row["passed"]) for row in records(log))
        assert {problem for problem, passed in found if passed} == {case.name for case in HERE}
        assert {problem for problem, passed in found if not passed} == {c.name for c in HERE}
        out = tmp_path / "out"
        solving = ["solve", *call, "--costs", "1,2", "--budget", 40, "--out", out]
        assert here(*solving).code == 0
        answers = {record["problem"]: record for record in records(out)}
        assert {name for name, record in answers.items() if record["outcome"] == "solved"} == {
            case.name for case in HERE
        }
        requests = len(model.received)
        for path, words in ((log, collecting), (out, solving)):
            before = sorted(path.read_text().splitlines())
            path.unlink()
            assert here(*words).code == 0
            assert sorted(path.read_text().splitlines()) == before
        assert len(model.received) == requests  # all of it from the ledgers


@pytest.mark.slow
def test_the_embedded_model_solves_a_mixed_file(tmp_path: Path) -> None:
    file = write(tmp_path / "in", [case.problem for case in HERE])
    out = tmp_path / "out"
    call = ["solve", file, "--generator", "embedded", "--max-tokens", 12, "--costs", "1,2"]
    call += ["--budget", 9, "--out", out]
    ran = grv(*call)
    assert ran.code in (0, 1), ran.err
    answers = {record["problem"]: record for record in records(out)}
    assert answers.keys() == {case.name for case in HERE}
    assert {record["outcome"] for record in answers.values()} <= {"solved", "out of budget"}
    assert answers["text"]["outcome"] == "solved"
    out.unlink()
    assert here(*call).code == ran.code
    assert {record["problem"]: record for record in records(out)} == answers
    assert here("runs", "check", f"{out}.ledger").out.startswith("all is well\n")


def without_prices(check: dict[str, Any]) -> dict[str, Any]:
    """A check that a client may give: what its members cost is for the server to say."""
    members = check.get("checks")
    if members is None:
        return check
    plain = [{name: member[name] for name in member if name != "cost"} for member in members]
    return check | {"checks": plain}


@pytest.mark.slow
def test_a_server_verifies_every_kind(tmp_path: Path) -> None:
    named = next(case for case in HERE if not case.for_guests)
    lines = ["[checks.own]"]
    lines += [f"{name} = {json.dumps(value)}" for name, value in named.check.items()]
    with FaultyServer(text=text_of) as model:
        write_job(tmp_path, model, *lines)
        with serving(tmp_path) as server:
            client = openai.OpenAI(base_url=server.url, api_key="any", max_retries=0)

            def ask(case: Case, check: Any) -> Any:
                prompt = f"{case.name}: {case.prompt}"
                return client.completions.create(
                    model="m", prompt=prompt, extra_body={"grv": {"check": check}}
                )

            for case in HERE:
                response = ask(case, without_prices(case.check) if case.for_guests else "own")
                assert response.model_extra["grv"]["verified"], case.name
                assert response.choices[0].text == case.right
            served = len(model.received)
            for case in HERE:  # the same requests, from the ledger
                response = ask(case, without_prices(case.check) if case.for_guests else "own")
                assert response.choices[0].text == case.right
            assert len(model.received) == served
            for case in HERE:
                with pytest.raises(openai.BadRequestError) as caught:
                    ask(case, case.check | {"surprise": 1})
                if case.for_guests and case.check["kind"] not in GROUPS:
                    assert caught.value.param == "grv.check.surprise", case.name


def _spin() -> None:
    while True:
        pass


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Other work on every processor, until the end of the block."""
    spinning = [
        multiprocessing.get_context("spawn").Process(target=_spin) for _ in range(processes)
    ]
    for process in spinning:
        process.start()
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.join()


@pytest.mark.alone
@pytest.mark.slow
def test_verdicts_do_not_depend_on_load(tmp_path: Path) -> None:
    """Each verdict is the same on a busy machine, also of programs that end by their limits."""
    spins = "while True: pass"
    problems = [*batch(limits={"seconds": 4})]
    tests = [{"input": "", "output": "1"}]
    limits = {"seconds": 1}
    for kind, more in (("stdin", {}), ("run", {"language": "python"})):
        check = {"kind": kind, "tests": tests, "limits": limits, **more}
        near = "import time\nstart = time.process_time()\n"
        near += "while time.process_time() - start < 0.4: pass\nprint(1)"
        problems.append({"problem": f"{kind} near", "check": check, "candidates": [near, spins]})
    file = write(tmp_path / "in", problems)
    call = ["verify", file, "--workers", 2, "--out"]
    assert here(*call, tmp_path / "quiet").code == 0
    with busy(4 * (os.cpu_count() or 2)):
        assert here(*call, tmp_path / "busy").code == 0
    quiet = verdicts(tmp_path / "quiet")
    assert verdicts(tmp_path / "busy") == quiet
    assert {name: verdict for name, verdict in quiet.items() if name in EXPECTED} == EXPECTED
    assert [quiet["run near", 0], quiet["run near", 1]] == ["passed", "failed"]
