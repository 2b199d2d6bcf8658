"""Logs made by inspect_ai and lm-evaluation-harness themselves, in environments of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from grv.logs.log import Log

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

SOURCE = Path(__file__).parents[2] / "src"
NEEDED = ["anyio", "numpy", "scipy", "typer", "rich", "pyarrow"]  # what grv convert imports

INSPECT = """
import random
from inspect_ai import Epochs, Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatCompletionChoice, ChatMessageAssistant, Logprob, Logprobs
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, match, mean, scorer
from inspect_ai.solver import generate

rng = random.Random(7)

@scorer(metrics=[mean()])
def brevity():
    async def score(state, target):
        return Score(value={"words": -len(state.output.completion.split())})
    return score

def outputs():
    while True:
        text = f"The answer is {rng.choice([2, 4, 6, 8])}"
        tokens = Logprobs(content=[Logprob(token=t, logprob=-rng.random()) for t in text.split()])
        choice = ChatCompletionChoice(message=ChatMessageAssistant(content=text), logprobs=tokens)
        usage = ModelUsage(input_tokens=5, output_tokens=4, total_tokens=9)
        yield ModelOutput(model="mock", choices=[choice], usage=usage)

sums = [Sample(id=f"s{i}", input=f"What is {i} + {i}?", target=str(2 * i)) for i in range(1, 5)]
for kind, epochs in (("eval", 6), ("json", 3)):
    scorers = [match(numeric=True), brevity()]
    task = Task(dataset=sums, solver=generate(), scorer=scorers, name="sums")
    model = get_model("mockllm/model", custom_outputs=outputs())
    how = dict(epochs=Epochs(epochs), log_dir="runs", log_format=kind, display="none")
    log, = eval(task, model=model, **how)
    assert log.status == "success", log.error
"""

LM_EVAL = r"""
import json, random, sys
from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.loggers import EvaluationTracker

rng = random.Random(int(sys.argv[1]))

class Guess(LM):
    def generate_until(self, requests, disable_tqdm=False):
        return [f"I think. The answer is {rng.choice([2, 4, 6, 8])}." for _ in requests]
    def loglikelihood(self, requests, disable_tqdm=False):
        raise NotImplementedError
    loglikelihood_rolling = loglikelihood

with open("docs.jsonl", "w") as file:
    for i in range(1, 5):
        file.write(json.dumps({"q": f"What is {i} + {i}?", "a": str(2 * i)}) + "\n")
extract = [{"function": "regex", "regex_pattern": r"answer is (\d+)\."}, {"function": "take_first"}]
task = dict(
    task="sums", dataset_path="json", dataset_kwargs={"data_files": {"test": "docs.jsonl"}},
    test_split="test", output_type="generate_until", doc_to_text="{{q}}", doc_to_target="{{a}}",
    generation_kwargs={"until": ["\n\n"]}, filter_list=[{"name": "strict", "filter": extract}],
    metric_list=[{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
)
results = simple_evaluate(model=Guess(), tasks=[task], log_samples=True, bootstrap_iters=0)
tracker = EvaluationTracker(output_path="runs")
samples = results.pop("samples")
tracker.save_results_aggregated(results=results, samples=samples)
tracker.save_results_samples(task_name="sums", samples=samples["sums"])
"""


def environment(folder: Path, *packages: str) -> Path:
    """The Python of a new environment with some packages."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *packages], check=True)
    return python


def run(python: Path, *arguments: str, folder: Path) -> str:
    env = {**os.environ, "PYTHONPATH": str(SOURCE), "HF_HUB_OFFLINE": "1", "HF_HOME": str(folder)}
    ran = subprocess.run(
        [str(python), *arguments], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout


def test_logs_of_inspect_ai_become_a_log(tmp_path: Path) -> None:
    python = environment(tmp_path / "venv", "inspect_ai", *NEEDED)
    run(python, "-c", INSPECT, folder=tmp_path)
    runs = sorted(str(path.relative_to(tmp_path)) for path in (tmp_path / "runs").iterdir())
    assert sorted(Path(path).suffix for path in runs) == [".eval", ".json"]

    convert = ("-m", "grv", "convert", *runs, "-o", "log.parquet")
    said = run(python, *convert, folder=tmp_path)
    assert "The scorer match labels the candidates." in said
    log = Log.load(tmp_path / "log.parquet", score="score_logprob")
    assert [problem.id for problem in log.problems] == [f"sums/s{i}" for i in range(1, 5)]
    assert [len(problem) for problem in log.problems] == [9] * 4
    assert 0 < sum(int(problem.passed.sum()) for problem in log.problems) < 36
    for problem in log.problems:  # equal answers have equal labels
        assert problem.keys is not None
        assert problem.contradictory == ()
    run(python, *convert, "--passed", "match", "--score", "brevity.words", folder=tmp_path)
    words = Log.load(tmp_path / "log.parquet")
    assert {score for problem in words.problems for score in problem.scores} == {-4.0}
    (tmp_path / "runs" / "bad.eval").write_bytes(b"PK nonsense")
    ran = subprocess.run(
        [str(python), "-m", "grv", "convert", "runs/bad.eval", "-o", "log.csv"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert "inspect_ai cannot read it" in ran.stderr
    check_bomb(python, tmp_path)


# An archive that says 10 bytes, and unpacks to 1 GB.
BOMB = """
import struct, zipfile
from inspect_ai.log import read_eval_log  # the module knows Zstandard from now on
with zipfile.ZipFile("bomb.eval", "w", 93) as archive, archive.open("header.json", "w") as file:
    for _ in range(1024):
        file.write(bytes(1 << 20))
content = bytearray(open("bomb.eval", "rb").read())
struct.pack_into("<I", content, content.find(b"PK\\1\\2") + 24, 10)
open("bomb.eval", "wb").write(content)
"""


def check_bomb(python: Path, folder: Path) -> None:
    run(python, "-c", BOMB, folder=folder)
    ran = subprocess.run(
        [str(python), "-m", "grv", "convert", "bomb.eval", "-o", "log.csv"],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert "header.json is larger than the archive says" in ran.stderr


def test_samples_of_lm_evaluation_harness_become_a_log(tmp_path: Path) -> None:
    python = environment(tmp_path / "venv", "lm-eval", *NEEDED)
    for seed in ("1", "2"):
        run(python, "-c", LM_EVAL, seed, folder=tmp_path)
    runs = [str(path) for path in sorted((tmp_path / "runs").rglob("samples_*.jsonl"))]
    assert len(runs) == 2

    said = run(python, "-m", "grv", "convert", *runs, "-o", "log.csv", folder=tmp_path)
    assert "the filter 'strict'" in said
    log = Log.load(tmp_path / "log.csv", score="score_votes")
    assert [problem.id for problem in log.problems] == [f"sums/{i}" for i in range(4)]
    assert [len(problem) for problem in log.problems] == [2] * 4
