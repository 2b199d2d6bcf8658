"""The adapters inside the real inspect_ai, DSPy, Pydantic AI and LangChain.

Each has an environment of its own, which is made from a package index. Models are those of a fake
server on this machine, which counts what it is asked.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grv.testing import FakeOpenai
from support.environments import Environment, build_wheel
from support.guides import blocks
from support.pythons import Python, make_environment

pytestmark = [pytest.mark.soak, pytest.mark.alone]

WITHIN = 900  # seconds for a script on a busy machine


def said(prompt: str, index: int) -> str:
    """Whole numbers in turn, in the form that DSPy asks for if it does."""
    text = str(index % 8)
    if "[[ ## answer ## ]]" not in prompt:
        return text
    return "no field" if index % 8 == 1 else f"[[ ## answer ## ]]\n{text}\n\n[[ ## completed ## ]]"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeOpenai]:
    with FakeOpenai(said, model="qwen3") as made:
        for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE", "LOCAL_BASE_URL"):
            monkeypatch.setenv(name, made.url)
        monkeypatch.setenv("LOCAL_API_KEY", "none")
        yield made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def environment(folder: Path, wheel: Path, *requirements: str) -> Environment:
    version = ".".join(map(str, sys.version_info[:3]))
    python = Python(version, Path(sys.executable))
    return make_environment(folder / "environment", python, [f"{wheel}[math]", *requirements])


def ran(made: Environment, folder: Path, *words: str, code: int = 0) -> str:
    run = made.run(*words, cwd=folder, within=WITHIN)
    assert run.code == code, f"{run.out}\n{run.err}"
    return run.out


def printed(made: Environment, folder: Path, script: str) -> Any:
    """The last line that a script prints, as data."""
    (folder / "script.py").write_text(script)
    return json.loads(ran(made, folder, "python", "script.py").splitlines()[-1])


def guide(words: str) -> str:
    """The block of the guide that has these words."""
    (block,) = [block for block in blocks("frameworks.md") if words in block]
    return block


@pytest.fixture(scope="module")
def inspect(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Environment:
    return environment(tmp_path_factory.mktemp("inspect"), wheel, "inspect_ai", "openai")


# The scorer counts its calls, and can die in one of them.
SUMS = """
import os
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import Score, accuracy, scorer
from inspect_ai.solver import generate
from grv.adapters.inspect_ai import checked, once, verified

@scorer(metrics=[accuracy()])
def counted():
    async def score(state, target):
        with open("verified.txt", "a+") as file:
            file.write(f"{state.sample_id}: {state.output.completion}\\n")
            file.seek(0)
            lines = len(file.readlines())
        if os.path.exists("dies") and lines == 12:
            os._exit(9)
        return Score(value="C" if state.output.completion == target.text else "I")
    return score

def equal(state):
    return 0.0

SAMPLES = [
    Sample(f"{k} + 2 =", target=str(k + 2), id=k, metadata={
        "check": {"kind": "math", "answer": str(k + 2)}
    })
    for k in range(4)
]

@task
def sums():
    solver = verified(costs=(1, 1), budget=60, score=equal, ledger="ledger.db")
    return Task(dataset=SAMPLES, scorer=once(counted()), solver=solver)

@task
def checks():
    solver = verified(costs="1,1", budget=60, score=equal, check="check")
    return Task(dataset=SAMPLES, scorer=checked(), solver=solver)

@task
def plain():
    return Task(dataset=SAMPLES, scorer=checked(), solver=generate())
"""

READ = """
import glob, json
from inspect_ai.log import read_eval_log
logs = {}
for path in sorted(glob.glob("logs/*.eval")):
    log = read_eval_log(path)
    logs[log.eval.task] = {
        "status": log.status,
        "accuracy": log.results and log.results.scores[0].metrics["accuracy"].value,
        "samples": [
            {
                "grv": sample.metadata.get("grv"),
                "answer": sample.output.completion,
                "steps": [e.data["step"] for e in sample.events if e.event == "info"],
                "limit": sample.limit and sample.limit.type,
                "scores": [score.value for score in (sample.scores or {}).values()],
            }
            for sample in log.samples or []
        ],
    }
print(json.dumps(logs))
"""


def evaluate(
    made: Environment, folder: Path, *words: str, code: int = 0, model: str = "qwen3"
) -> None:
    name = f"openai-api/local/{model}"
    fixed = ["--max-samples", "1", "--display", "none", "--log-dir", "logs"]
    asked = ["--model", name] if words[0] == "eval" else []
    ran(made, folder, "inspect", *words, *asked, *fixed, code=code)


def test_inspect_verifies_with_the_tasks_scorer_and_with_checks(
    inspect: Environment, tmp_path: Path, server: FakeOpenai
) -> None:
    (tmp_path / "sums.py").write_text(SUMS)
    for task in ("sums", "checks", "plain"):
        evaluate(inspect, tmp_path, "eval", f"sums.py@{task}")
    # The solver by its name, with options from the command line.
    named = ["--solver", "grv/verified", "-S", "check=check", "-S", "budget=4", "-S", "costs=1,1"]
    evaluate(inspect, tmp_path, "eval", "sums.py@plain", *named)
    logs = printed(inspect, tmp_path, READ)
    for task in ("sums", "checks"):
        log = logs[task]
        assert log["status"] == "success"
        assert log["accuracy"] == 1.0
        assert [sample["answer"] for sample in log["samples"]] == ["2", "3", "4", "5"]
        for sample in log["samples"]:
            assert sample["grv"]["outcome"] == "solved"
            assert sample["grv"]["cost"] == sample["grv"]["generated"] + sample["grv"]["verified"]
            assert sample["grv"]["usage"]["completion_tokens"] == sample["grv"]["generated"]
            assert {"generated", "verified"} <= {*sample["steps"]}
    # No more verdicts than were reported: the answer is not scored again at the end.
    lines = (tmp_path / "verified.txt").read_text().splitlines()
    assert len(lines) == sum(sample["grv"]["verified"] for sample in logs["sums"]["samples"])
    assert all(sample["grv"]["cost"] <= 4 for sample in logs["plain"]["samples"])
    (path,) = [*(tmp_path / "logs").glob("*_sums_*.eval")]
    out = ran(inspect, tmp_path, "grv", "convert", str(path), "--out", "log.jsonl")
    assert "4 candidates" in out
    (path,) = [*(tmp_path / "logs").glob("*_checks_*.eval")]
    ran(inspect, tmp_path, "grv", "convert", str(path), "--out", "checks.jsonl")
    labels = [json.loads(line) for line in (tmp_path / "checks.jsonl").read_text().splitlines()]
    assert [label["passed"] for label in labels] == [True] * 4


def test_inspect_killed_and_retried_pays_for_nothing_twice(
    inspect: Environment, tmp_path: Path, server: FakeOpenai
) -> None:
    (tmp_path / "sums.py").write_text(SUMS)
    server.text = lambda prompt, index: str(3 * index % 8)
    (tmp_path / "dies").touch()
    evaluate(inspect, tmp_path, "eval", "sums.py@sums", code=9)
    before = server.made
    (tmp_path / "dies").unlink()
    (log,) = (tmp_path / "logs").glob("*.eval")
    evaluate(inspect, tmp_path, "eval-retry", str(log))
    samples = printed(inspect, tmp_path, READ)["sums"]["samples"]
    assert [sample["grv"]["outcome"] for sample in samples] == ["solved"] * 4
    assert 0 < before < server.made == sum(sample["grv"]["generated"] for sample in samples)
    # Only the verification in which it died was repeated: it had no result.
    lines = (tmp_path / "verified.txt").read_text().splitlines()
    assert len(lines) == 1 + sum(sample["grv"]["verified"] for sample in samples)
    assert lines[11] in lines[12:]


@pytest.mark.parametrize(
    ("argument", "flags"), [(", cache=True", []), (', cache="1D"', []), ("", ["--cache"])]
)
def test_inspects_cache_holds(
    inspect: Environment,
    tmp_path: Path,
    server: FakeOpenai,
    monkeypatch: pytest.MonkeyPatch,
    argument: str,
    flags: list[str],
) -> None:
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "sums.py").write_text(SUMS.replace(', ledger="ledger.db"', argument))
    evaluate(inspect, tmp_path, "eval", "sums.py@sums", "--limit", "1", *flags)
    first = server.made
    assert first > 1  # the cache does not repeat a candidate
    evaluate(inspect, tmp_path, "eval", "sums.py@sums", "--limit", "1", *flags)
    assert server.made == first


def test_inspects_limits_and_seed_hold(
    inspect: Environment, tmp_path: Path, server: FakeOpenai
) -> None:
    (tmp_path / "sums.py").write_text(SUMS)
    evaluate(inspect, tmp_path, "eval", "sums.py@sums", "--limit", "1", "--seed", "7")
    seeds = [body["seed"] for body in server.bodies]
    assert seeds == [*range(7, 7 + len(seeds))]  # of candidates, which would else be the same
    (tmp_path / "verified.txt").unlink()
    (tmp_path / "ledger.db").unlink()
    (tmp_path / "sums.py").write_text(SUMS.replace("target=str(k + 2)", 'target="none"'))
    evaluate(inspect, tmp_path, "eval", "sums.py@sums", "--limit", "1", "--token-limit", "20")
    (sample,) = printed(inspect, tmp_path, READ)["sums"]["samples"]
    assert sample["limit"] == "token"
    assert sample["answer"]
    assert sample["scores"] == ["I"]


def test_the_guide_runs_in_inspect(
    inspect: Environment, tmp_path: Path, server: FakeOpenai
) -> None:
    (tmp_path / "script.py").write_text(guide("inspect_ai import once"))
    assert "['solved', 'solved']" in ran(inspect, tmp_path, "python", "script.py")


DSPY = """
import asyncio, json
import dspy
from grv.adapters.dspy import Verified

adapter = dspy.ChatAdapter(use_json_adapter_fallback=False)
dspy.configure(lm=dspy.LM("openai/qwen3"), track_usage=True, adapter=adapter)
question = dspy.Predict("question -> answer")
passes = lambda inputs, prediction: prediction.answer == inputs["question"]
equal = lambda inputs, prediction: 0.0
program = Verified(question, passes, equal, (1, 1), 60, ledger="runs.db", total_budget=40)
first = program(question="5")
used = first.get_lm_usage()["openai/qwen3"]["completion_tokens"]
again = asyncio.run(program.acall(question="5"))  # recorded
other = asyncio.run(program.acall(question="6"))
capped = program(question="none")
check = {"kind": "math", "answer": "3"}
checked = Verified(question, None, equal, (1, 1), 60, check=check)(question="what")
print(json.dumps({
    "answers": [each.answer for each in (first, again, other, capped, checked)],
    "reports": [each.grv for each in (first, again, other, capped, checked)],
    "used": used,
    "history": len(program.history),
}))
"""


def test_a_dspy_program_is_verified_within_its_budgets(
    tmp_path: Path, wheel: Path, server: FakeOpenai, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DSPY_CACHEDIR", str(tmp_path / "cache"))
    made = environment(tmp_path, wheel, "dspy")
    found = printed(made, tmp_path, DSPY)
    first, again, other, capped, _ = found["reports"]
    assert found["answers"] == ["5", "5", "6", None, "3"]
    assert [each["answer_verified"] for each in found["reports"]] == [True] * 3 + [False, True]
    assert first == {**again, "seconds": first["seconds"]}
    assert first["usage"]["completion_tokens"] == found["used"]
    assert first["generated"] > first["verified"]  # the answer without a field was dropped
    assert capped["outcome"] == "out of budget"
    assert first["cost"] + other["cost"] + capped["cost"] <= 40
    assert found["history"] == sum(each["generated"] for each in (first, other, capped))
    (tmp_path / "script.py").write_text(guide("adapters.dspy import"))
    assert "5 True" in ran(made, tmp_path, "python", "script.py")


PYDANTIC = """
import asyncio, json
import itertools
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from grv.adapters.pydantic_ai import verified_run, verified_run_sync

class Sum(BaseModel):
    total: int

numbers = itertools.count()

def called(messages, info):  # every third call of the tool does not have its form
    number = next(numbers)
    total = "unknown" if number % 3 == 1 else number
    return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, {"total": total})])

typed = Agent(FunctionModel(called), output_type=Sum, retries=0)
agent = Agent("openai-chat:qwen3")
equal = lambda output: 0.0
is_five = lambda output: output.total == 5
given = {"score": equal, "costs": (1, 1), "budget": 40, "ledger": "runs.db"}
first = asyncio.run(verified_run(typed, "five", is_five, **given))
again = verified_run_sync(typed, "five", is_five, **given)
assert isinstance(again.output, Sum)
none = verified_run_sync(agent, "none", lambda output: False, equal, (1, 1), 10)
check = {"kind": "math", "answer": "3"}
checked = verified_run_sync(agent, "3", None, equal, (1, 1), 40, check=check)
@agent.output_validator
def any_text(text):
    return text

def six(text):  # the function of a validator
    if text != "6":
        raise ModelRetry(f"{text} is not six")
    return text

valid = verified_run_sync(agent, "six", six, equal, (1, 1), 40)
wrong = Agent("openai-chat:other")
try:
    verified_run_sync(wrong, "five", lambda output: True, budget=20)
except Exception as error:
    raised = type(error).__module__.partition(".")[0]
print(json.dumps({
    "outputs": [first.output.total, again.output.total, none.output, checked.output, valid.output],
    "verified": [each.verified for each in (first, again, none, checked, valid)],
    "reports": [first.report, again.report, none.report],
    "has_result": [first.result is not None, again.result is not None],
    "raised": raised,
}))
"""


def test_a_pydantic_agent_is_verified_within_its_budget(
    tmp_path: Path, wheel: Path, server: FakeOpenai
) -> None:
    made = environment(tmp_path, wheel, "pydantic-ai-slim[openai]")
    found = printed(made, tmp_path, PYDANTIC)
    first, again, none = found["reports"]
    assert found["outputs"] == [5, 5, None, "3", "6"]
    assert found["verified"] == [True, True, False, True, True]
    assert found["has_result"] == [True, False]
    assert first["generated"] == again["generated"] > first["verified"] > 1
    assert first["usage"]["completion_tokens"] > 0
    assert (none["outcome"], none["cost"]) == ("out of budget", 10)
    assert found["raised"] == "pydantic_ai"  # an error of the framework stays its own
    (tmp_path / "script.py").write_text(guide("pydantic_ai import verified"))
    assert "5 True" in ran(made, tmp_path, "python", "script.py")


LANGCHAIN = """
import asyncio, json
from typing import TypedDict
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from grv.adapters.langchain import Verified

model = ChatOpenAI(model="qwen3")
equal = lambda asked, output: 0.0
given = {"score": equal, "costs": (1, 1), "budget": 40, "ledger": "runs.db"}
prompt = ChatPromptTemplate.from_template("{question}")
chain = Verified(prompt | model, lambda asked, said: said.content == "5", **given)
first = chain.invoke({"question": "five"})
again = asyncio.run(chain.ainvoke({"question": "five"}))
text = model | StrOutputParser()
none = asyncio.run(Verified(text, lambda asked, said: False, equal, (1, 1), 10).ainvoke("none"))
solver = Verified(text, None, equal, (1, 1), 40, check={"kind": "math", "answer": "3"})

class State(TypedDict):
    question: str
    output: str
    verified: bool

graph = StateGraph(State)
graph.add_node("solve", (lambda state: state["question"]) | solver)
graph.add_edge(START, "solve")
graph.add_edge("solve", END)
state = graph.compile().invoke({"question": "three"})
print(json.dumps({
    "outputs": [first["output"].content, again["output"].content, none["output"]],
    "verified": [each["verified"] for each in (first, again, none)],
    "reports": [each["grv"] for each in (first, again, none)],
    "state": state,
}))
"""


def test_a_langchain_runnable_is_verified_within_its_budget(
    tmp_path: Path, wheel: Path, server: FakeOpenai
) -> None:
    made = environment(tmp_path, wheel, "langchain-openai", "langgraph")
    found = printed(made, tmp_path, LANGCHAIN)
    first, again, none = found["reports"]
    assert found["outputs"] == ["5", "5", None]
    assert found["verified"] == [True, True, False]
    assert first["generated"] == again["generated"] > 1
    assert first["usage"]["completion_tokens"] == first["generated"]
    assert (none["outcome"], none["cost"]) == ("out of budget", 10)
    assert found["state"] == {"question": "three", "output": "3", "verified": True}
    (tmp_path / "script.py").write_text(guide("adapters.langchain import"))
    assert "5 True" in ran(made, tmp_path, "python", "script.py")
