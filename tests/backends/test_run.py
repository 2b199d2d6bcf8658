"""Checks of kind "run", and commands in the jail: right programs pass, attacks do not."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grv.backends.attacks import compilers, suite, tools
from grv.backends.protocols import Finding, Problem
from grv.backends.sandbox.limits import Isolation
from grv.backends.sandbox.tool_worker import ToolWorker
from grv.backends.verifiers.checks import parse_check
from grv.backends.verifiers.languages import sources
from grv.backends.verifiers.languages.toolchains import LANGUAGES, Toolchain, installed
from grv.backends.verifiers.pool import CheckVerifier
from grv.core.errors import UsageError
from grv.core.values import Verdict

pytestmark = pytest.mark.slow
LIMITS = dataclasses.replace(suite.LIMITS, seconds=1.0)  # many attacks last until it ends
SUM: dict[str, Any] = {"kind": "run", "tests": [{"input": "3 4\n", "output": "7"}]}
SUM["tests"].append({"input": "-5 1000000000\n", "output": "999999995"})
CPP = "#include <iostream>\nint main() { long a, b; std::cin >> a >> b; std::cout << a + b; }"
PROGRAMS = {
    "c": "#include <stdio.h>\nint main() { long a, b;\n"
    'scanf("%ld %ld", &a, &b); printf("%ld", a + b); }',
    "cpp": CPP,
    "go": 'package main\nimport "fmt"\nfunc main() {\nvar a, b int\n'
    "fmt.Scan(&a, &b)\nfmt.Println(a + b) }",
    "java": "import java.util.*;\npublic class Sum { public static void main(String[] args) {\n"
    "var in = new Scanner(System.in); System.out.println(in.nextLong() + in.nextLong()); } }",
    "javascript": "const [a, b] = require('fs').readFileSync('/dev/stdin', 'utf8').split(' ');\n"
    "console.log(Number(a) + Number(b));",
    "python": "print(sum(map(int, input().split())))",
    "rust": "fn main() { let mut s = String::new(); std::io::stdin().read_line(&mut s).unwrap();\n"
    "let n: i64 = s.split_whitespace().map(|x| x.parse::<i64>().unwrap()).sum();\n"
    'println!("{}", n); }',
    "typescript": "import * as fs from 'fs';\n"
    "const n: number[] = fs.readFileSync(0, 'utf8').split(' ').map(Number);\n"
    "console.log(n[0] + n[1]);",
}


def needs(language: str) -> None:
    found = installed()[language]
    if not isinstance(found, Toolchain):
        pytest.skip(f"{language}: {found}")


@pytest.fixture(scope="module")
def verifier() -> Iterator[CheckVerifier]:
    with CheckVerifier(workers=1, limits=LIMITS, refute=False) as verifier:
        yield verifier
        folders = verifier.folders()
        verifier.close()
        assert suite.left_behind(folders) == []


@pytest.fixture(scope="module")
def around() -> Iterator[suite.Surroundings]:
    with suite.Surroundings() as around:
        yield around
        assert around.damage() == []


def found(verifier: CheckVerifier, text: str, **fields: Any) -> Finding:
    return verifier.find(Problem("p", check={**SUM, **fields}), text)


@pytest.mark.parametrize("language", LANGUAGES)
def test_right_programs_pass_and_wrong_ones_fail(language: str, verifier: CheckVerifier) -> None:
    needs(language)
    source = PROGRAMS[language]
    shown = f"So:\n```{language}\n{source}\n```\n"
    right = found(verifier, shown, language=language)
    assert right.verdict is Verdict.PASSED, right
    assert right.evidence["answer_program"].strip() == source
    wrong = (
        source.replace("a + b", "a - b").replace("+ in.", "- in.").replace("+ Number", "- Number")
    )
    wrong = wrong.replace("sum(map", "max(map").replace(".sum()", ".max().unwrap()")
    wrong = wrong.replace("n[0] + n[1]", "n[0] - n[1]")
    assert wrong != source
    finding = found(verifier, wrong, language=language)
    assert (finding.verdict, finding.reason) == (Verdict.FAILED, "wrong answer"), finding
    broken = found(verifier, f"{source}\n)(", language=language)
    assert (broken.verdict, broken.reason) == (Verdict.FAILED, "does not compile"), broken
    assert broken.evidence["messages"]
    assert "grv-box" not in broken.evidence["messages"]


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(attack, marks=[pytest.mark.soak] if attack in compilers.ATTACKS else [])
        for attack in suite.TOOL_ATTACKS
    ],
    ids=lambda attack: f"{attack.name} ({attack.language})",
)
def test_an_attack_on_the_second_jail_is_held(
    attack: tools.ToolAttack, verifier: CheckVerifier, around: suite.Surroundings
) -> None:
    needs(attack.language)
    _, problem = tools.trial_of(attack, around.secret)
    finding = verifier.find(problem, around.fill(attack.source))
    assert suite.held(attack, finding), finding
    assert not suite.quotes(finding, around.secret)
    assert around.damage() == []
    # An attack with a mistake in it would be held for the wrong reason.
    on_compilers = ("has the compiler", "asks the compiler", "embeds", "includes", "takes a file")
    is_on_compiler = attack in compilers.ATTACKS or attack.name.startswith(on_compilers)
    assert finding.reason != "does not compile" or is_on_compiler, finding
    assert finding.reason != "no answer" or "no answer" in attack.reasons, finding


def test_what_a_command_starts_ends_with_it(verifier: CheckVerifier) -> None:
    mark = "4243.5"
    script = f"(sleep {mark} & sleep {mark} &) ; nohup setsid sleep {mark} & echo 7"
    tests = [{"input": "", "output": "7"}]
    finding = found(verifier, script, source="s.sh", run=["bash", "{}"], tests=tests)
    assert finding.verdict is Verdict.PASSED, finding
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert f"sleep {mark}" not in listed.stdout


FORKS = """
import os, signal
started = 0
try:
    while os.fork():
        started += 1
    os.closerange(0, 64)
    signal.pause()
except BlockingIOError:
    print(started)
"""


@pytest.mark.slow
@pytest.mark.skipif(
    tuple(map(int, os.uname().release.split(".")[:2])) < (6, 14), reason="the kernel cannot"
)
def test_the_kernel_bounds_processes_until_the_zygote_looks(verifier: CheckVerifier) -> None:
    limits = {"threads": 100_000, "memory_mb": 100_000, "seconds": 30}
    checker = {
        "language": "python",
        "program": "import sys\nn = int(open(sys.argv[2]).read())\nsys.exit(not 1000 < n < 2400)",
    }
    command = {"source": "forks.py", "run": ["python3", "{}"]}
    finding = found(
        verifier, FORKS, tests=[{"input": ""}], checker=checker, limits=limits, **command
    )
    assert finding.verdict is Verdict.PASSED, finding


@pytest.mark.alone
def test_a_bomb_of_processes_ends(verifier: CheckVerifier) -> None:
    bomb = "b() { b | b & }; b; sleep 5; echo 7"
    tests = [{"input": "", "output": "7"}]
    finding = found(verifier, bomb, source="s.sh", run=["bash", "{}"], tests=tests)
    assert finding.verdict is Verdict.FAILED, finding
    assert found(verifier, PROGRAMS["python"], language="python").verdict is Verdict.PASSED


def test_a_checker_decides_apart_from_the_candidate(verifier: CheckVerifier) -> None:
    program = "import sys\ni, o, e = (open(p).read() for p in sys.argv[1:])\n"
    program += "sys.exit(2 if not o.strip() else int(o.strip() not in ('7', '13')))"
    fields: dict[str, Any] = {"tests": [{"input": "91\n"}], "language": "python"}
    fields["checker"] = {"language": "python", "program": program}
    assert found(verifier, "print(7)", **fields).verdict is Verdict.PASSED
    assert found(verifier, "print(13)", **fields).verdict is Verdict.PASSED
    assert found(verifier, "print(91)", **fields).reason == "checker failed it"
    assert found(verifier, "print()", **fields).verdict is Verdict.BROKEN


def test_own_commands_build_and_run(verifier: CheckVerifier) -> None:
    needs("cpp")
    fields = {"source": "sum.cc", "build": ["g++", "-O1", "-o", "sum", "{}"], "run": ["./sum"]}
    assert found(verifier, CPP, **fields).verdict is Verdict.PASSED
    assert found(verifier, f'#include "/etc/passwd"\n{CPP}', **fields).reason == "does not compile"


def test_a_program_is_built_once_for_all_repeats(
    verifier: CheckVerifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("c")
    modes: list[str] = []
    original = ToolWorker.step

    def counted(self: ToolWorker, mode: str, *given: Any, **named: Any) -> Any:
        modes.append(mode)
        return original(self, mode, *given, **named)

    monkeypatch.setattr(ToolWorker, "step", counted)
    finding = found(verifier, f"{PROGRAMS['c']}\n", language="c", repeat=3)
    assert finding.verdict is Verdict.PASSED
    assert modes == ["build", *["program"] * 6]


def test_a_lost_box_is_no_failure(verifier: CheckVerifier) -> None:
    """If the zygote dies between building and running, the program is built again."""
    needs("c")
    pair = verifier.engine.pairs[0]  # type: ignore[attr-defined]
    text = f"{PROGRAMS['c']}\n// again"
    assert found(verifier, text, language="c").verdict is Verdict.PASSED
    assert pair.tools.pid
    os.kill(pair.tools.pid, 9)
    more = [*SUM["tests"], {"input": "1 1\n", "output": "2"}]
    assert found(verifier, text, language="c", tests=more).verdict is Verdict.PASSED


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "check.language: is missing"),
        ({"language": "cobol"}, "check.language: must be one of c, cpp, "),
        ({"language": "c", "lenguage": 1}, "check.lenguage: no such field; did you mean language"),
        ({"language": "c", "build": ["x"]}, "check.run: is missing; build and source belong"),
        ({"run": ["x"]}, "check.source: is missing"),
        ({"source": "../x", "run": ["x"]}, "check.source: must be the name of a file"),
        ({"source": "x", "run": "x"}, "check.run: must be a list of strings, the program first"),
        ({"language": "c", "checker": {"language": "c"}}, "check.checker.program: is missing"),
        ({"language": "c", "checker": {"x": 1}}, "check.checker.x: no such field"),
        ({"language": "c", "tests": [{"input": ""}]}, r"check.tests\[0\].output: is missing"),
    ],
)
def test_mistakes_are_named(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=f"^problem p, {message}"):
        parse_check(Problem("p", check={**SUM, **fields}))


@pytest.mark.parametrize(
    ("language", "message"),
    [
        ("cpp", "no g++ for programs in cpp: install g++"),
        ("go", "no go for programs in go: install golang-go"),
        ("java", "no javac for programs in java: install a Java development kit"),
        ("javascript", "no node for programs in javascript: install nodejs"),
        ("rust", "no rustc for programs in rust: install rustc"),
        ("typescript", "no node for programs in typescript: install nodejs"),
    ],
)
def test_a_missing_compiler_breaks_and_is_named(
    language: str,
    message: str,
    verifier: CheckVerifier,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    finding = found(verifier, PROGRAMS[language], language=language)
    assert (finding.verdict, finding.reason) == (Verdict.BROKEN, message)
    checker = {"language": language, "program": PROGRAMS[language]}
    finding = found(verifier, PROGRAMS["python"], language="python", checker=checker)
    assert (finding.verdict, finding.reason) == (Verdict.BROKEN, message)


def test_an_old_typescript_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It does not know the option that leaves types unchecked, so every program would fail."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("typescript: no node")
    script = tmp_path / "typescript" / "bin" / "tsc"
    script.parent.mkdir(parents=True)
    script.write_text("console.log('Version 4.8.4')")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:{os.path.dirname(node)}")
    assert installed()["typescript"] == (
        "typescript 4.8.4 is too old for programs in typescript: "
        "install version 5.6 or newer with npm"
    )


def test_the_program_of_a_text() -> None:
    text = "<think>```cpp\nwrong\n```</think>First\n```cpp\none\n```\nthen\n"
    text += "```c++\ntwo\n```\n```\nin\n```"
    assert sources.find(text, "cpp").source == "two\n"
    assert sources.find(text, "rust").source == "in\n"
    assert sources.find("int main() {}", "cpp").source == "int main() {}"
    assert (
        sources.find("<!--\n```cpp\nhidden\n```\n-->\n```cpp\nseen\n```", "cpp").source == "seen\n"
    )


@pytest.mark.parametrize(
    "source",
    [
        "public class Main { static class Node { int x; }\n@M@ }",
        "class Pair { int a; }\npublic class Run { record P(int a) { }\n@M@ }",
        'class Helper { String s = "class Fake { void main(String"; /* class Other { */ }\n'
        "class Start { enum E { A } interface I { }\n@M@ }",
        "public class Outer { static class Inner {\n@M@ } }",
        "package a.b;\npublic class Main { Class<?> c = Main.class; @M@ }",
    ],
)
def test_the_class_that_has_main_is_started(verifier: CheckVerifier, source: str) -> None:
    needs("java")
    main = "static public void main(final String[] args) { System.out.println(7); }"
    tests = [{"input": "", "output": "7"}]
    finding = found(verifier, source.replace("@M@", main), language="java", tests=tests)
    assert finding.verdict is Verdict.PASSED, finding


# Commands in the jail.

JAILED: dict[str, Any] = {"kind": "command", "jail": True}


def judged(verifier: CheckVerifier, text: str, **fields: Any) -> Finding:
    return verifier.find(Problem("c", check={**JAILED, **fields}), text)


def test_a_command_in_the_jail_judges_what_the_candidate_printed(
    verifier: CheckVerifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "answers").mkdir()
    (tmp_path / "answers" / "right").write_text("7")
    (tmp_path / "check.py").write_text(
        "import sys\nright = open(sys.argv[2] + '/right').read()\n"
        "sys.exit(open(sys.argv[1]).read().strip() != right)\n"
    )
    place = tmp_path / "answers"
    fields = {
        "argv": ["python3", "check.py", "{output}", str(place)],
        "run": ["python3", "{}"],
        "readable": ["answers"],
    }
    assert judged(verifier, "print(3 + 4)", **fields).verdict is Verdict.PASSED
    assert judged(verifier, "print(8)", **fields).reason == "checker failed it"
    # The candidate cannot read the answers, nor decide by its own exit status.
    stolen = judged(verifier, f"print(open('{place}/right').read())", **fields)
    assert (stolen.verdict, stolen.reason) == (Verdict.FAILED, "no answer")
    assert judged(verifier, "raise SystemExit(0)", **fields).verdict is Verdict.FAILED
    assert judged(verifier, "import os; os._exit(3)", **fields).verdict is Verdict.FAILED
    (tmp_path / "answers" / "right").write_text("8")
    assert judged(verifier, "print(8)", **fields).verdict is Verdict.PASSED  # another check now


def test_a_command_in_the_jail_has_no_network_and_none_of_your_files(
    verifier: CheckVerifier, around: suite.Surroundings
) -> None:
    reading = ["python3", "-c", f"open({str(around.file)!r})"]
    finding = judged(verifier, "x", argv=reading)
    assert (finding.verdict, "PermissionError" in finding.evidence["stderr"]) == (
        Verdict.FAILED,
        True,
    )
    connecting = ["python3", "-c", "import socket; socket.socket()"]
    assert "PermissionError" in judged(verifier, "x", argv=connecting).evidence["stderr"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"argv": ["cat", "/etc/passwd"]}, "its check reads '/etc/passwd', which is not below"),
        ({"argv": ["cat"], "readable": ["/root"]}, "its check reads '/root', which is not below"),
        ({"argv": ["cat", "{output}"]}, "{output} is what run prints, and run is missing"),
        ({"argv": ["cat"], "readable": "x"}, "readable must be a list of paths"),
        ({"argv": ["cat"], "run": []}, "run must be a list of strings"),
        ({"argv": ["cat"], "jail": 1}, "give --allow-commands"),
    ],
)
def test_mistakes_in_a_command_are_named(
    fields: dict[str, Any], message: str, verifier: CheckVerifier
) -> None:
    with pytest.raises(UsageError) as caught:
        verifier.prepare(Problem("c", check={**JAILED, **fields}))
    assert message in str(caught.value)


def test_strict_isolation_allows_commands_in_the_jail() -> None:
    with CheckVerifier(workers=1, isolation=Isolation.STRICT) as verifier:
        try:
            _ = verifier.in_force
        except UsageError as exc:
            pytest.skip(str(exc))
        check = {**JAILED, "argv": [shutil.which("grep") or "grep", "-q", "yes", "{}"]}
        assert verifier.find(Problem("s", check=check), "yes").verdict is Verdict.PASSED
        assert verifier.find(Problem("s", check=check), "no").verdict is Verdict.FAILED
