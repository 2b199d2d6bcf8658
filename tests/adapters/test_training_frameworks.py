"""Rewards inside the real frameworks, each in an environment of its own.

`make soak` runs them: torch alone is two gigabytes. uv keeps what it has installed once.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from support.commands import here
from support.environments import Environment, build_wheel
from support.guides import blocks
from support.pythons import Python, make_environment
from support.servers import FaultyServer

pytestmark = [pytest.mark.soak, pytest.mark.alone]

# Two steps of GRPO on a tiny model with random weights and a tokenizer of single characters. The
# first argument is a folder; with the second one, the process dies in its fifth verification.
TRL = """
import json, os, sys
import torch
from datasets import Dataset
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer
from grv.adapters.trl import reward
from grv.backends.verifiers.engine import LocalEngine
from grv.runtime.rewards import StepVerifier
from grv.verifiers import Verification

folder = sys.argv[1]
dies = len(sys.argv) > 2
torch.manual_seed(0)
marks = ["<pad>", "<eos>", *map(chr, range(32, 127))]
vocabulary = {mark: place for place, mark in enumerate(marks)}
raw = Tokenizer(models.WordLevel(vocabulary, unk_token=" "))
raw.pre_tokenizer = pre_tokenizers.Split("", "isolated")
raw.decoder = decoders.Fuse()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="<pad>", eos_token="<eos>")
model = LlamaForCausalLM(LlamaConfig(
    vocab_size=len(vocabulary), hidden_size=16, intermediate_size=32, num_hidden_layers=1,
    num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=64,
    pad_token_id=0, eos_token_id=1, bos_token_id=1,
))
model.save_pretrained("model")
tokenizer.save_pretrained("model")
check = {"kind": "text", "contains_any": list("123ae")}
rows = [{"prompt": f"{n} + 1 =", "check": json.dumps(check)} for n in range(8)]
ran = []
steps = []
judge = LocalEngine.judge
verify = StepVerifier.verify

def counted(self, job, problem, check, text, seed):
    ran.append(text)
    if dies and len(ran) == 5:
        print(json.dumps({"ran": ran}), flush=True)
        os._exit(9)
    return judge(self, job, problem, check, text, seed)

async def watched(self, completions):
    verdicts = await verify(self, completions)
    steps.append([[each.text, verdict.value] for each, verdict in zip(completions, verdicts)])
    return verdicts

LocalEngine.judge = counted
StepVerifier.verify = watched
arguments = GRPOConfig(
    output_dir=folder, max_steps=2, per_device_train_batch_size=8, num_generations=4, seed=1,
    max_completion_length=12, logging_steps=1, report_to=[], use_cpu=True, save_strategy="no",
    bf16=False, disable_tqdm=True,
)
rewards = reward(
    deadline=120, verdicts=f"{folder}/verdicts", verification=Verification(workers=1)
)
trainer = GRPOTrainer(
    model=model, reward_funcs=rewards, args=arguments,
    train_dataset=Dataset.from_list(rows), processing_class=tokenizer,
)
trainer.train()
means = [row["rewards/verified/mean"] for row in trainer.state.log_history if "reward" in row]
print(json.dumps({"ran": ran, "steps": steps, "means": means}))
"""

# Two more trainers read the rows of `grv collect` for one step each.
ROWS = """
import json
from datasets import load_dataset
from transformers import AutoTokenizer
from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer

def trained(trainer, config, file):
    arguments = config(
        output_dir=file, max_steps=1, per_device_train_batch_size=2, max_length=64, report_to=[],
        use_cpu=True, save_strategy="no", bf16=False, disable_tqdm=True,
    )
    rows = load_dataset("json", data_files=f"{file}.jsonl")["train"]
    tokenizer = AutoTokenizer.from_pretrained("model")
    made = trainer("model", args=arguments, train_dataset=rows, processing_class=tokenizer)
    made.train()
    return made.state.global_step

print(json.dumps([trained(SFTTrainer, SFTConfig, "sft"), trained(DPOTrainer, DPOConfig, "dpo")]))
"""

# The arguments are the lines of the guide; the rows are those of `grv collect`.
VERL = """
import asyncio, json, sys
import numpy, torch
from omegaconf import OmegaConf
from verl import DataProto
from verl.experimental.reward_loop.reward_manager.naive import NaiveRewardManager
from verl.trainer.ppo.reward import get_custom_reward_fn
from verl.utils.dataset.rl_dataset import RLHFDataset

config = OmegaConf.from_dotlist(sys.argv[1:])

class Characters:
    def decode(self, ids, skip_special_tokens=True):
        return "".join(map(chr, ids.tolist()))

asked = OmegaConf.create({"filter_overlong_prompts": False, "return_raw_chat": True})
(task,) = RLHFDataset("tasks.jsonl", Characters(), asked)
assert list(task["raw_prompt"]) == [{"role": "user", "content": "2 + 3 ="}]

def row(text):
    ids = torch.tensor([list(map(ord, text))])
    mask = torch.ones(1, 2 * ids.shape[1], dtype=torch.long)
    others = {name: task[name] for name in ("data_source", "reward_model", "extra_info")}
    arrays = {name: numpy.array([value], dtype=object) for name, value in others.items()}
    tensors = {"responses": ids, "prompts": ids, "attention_mask": mask}
    return DataProto.from_dict(tensors=tensors, non_tensors=arrays)

async def main():
    manager = NaiveRewardManager(config, Characters(), get_custom_reward_fn(config))
    found = await asyncio.gather(*[manager.run_single(row(text)) for text in ("5", "6")])
    print(json.dumps([each["reward_score"] for each in found]))

asyncio.run(main())
"""

# They follow the block of the guide.
RUBRIC = """
import asyncio, json
import verifiers as vf

async def rewarded(text):
    state = vf.State(
        prompt=[{"role": "user", "content": "2 + 3 ="}],
        completion=[{"role": "assistant", "content": text}],
        answer="", info={"check": {"kind": "math", "answer": "5"}}, task="default",
        trajectory=[], timing={},
    )
    await passes.score_rollout(state)
    return state["reward"]

print(json.dumps([asyncio.run(rewarded(text)) for text in ("5", "6")]))
"""

TASK = """
import asyncio, json

async def rewarded(text):
    data = Sum(prompt="2 + 3 =", check=json.dumps({"kind": "math", "answer": "5"}))
    recorded = vf.TraceTask(type="SumTask", data=data)
    trace = vf.Trace.model_construct(task=recorded, agent=None, root_reply=text)
    await SumTask(data).score(trace)
    return trace.reward

print(json.dumps([asyncio.run(rewarded(text)) for text in ("5", "6")]))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def environment(folder: Path, wheel: Path, *requirements: str) -> Environment:
    version = ".".join(map(str, sys.version_info[:3]))
    python = Python(version, Path(sys.executable))
    return make_environment(folder / "environment", python, [str(wheel), *requirements])


def printed(environment: Environment, folder: Path, script: str, *words: str, code: int = 0) -> Any:
    """The last line that a script prints, as data."""
    path = folder / "script.py"
    path.write_text(script)
    ran = environment.run("python", str(path), *words, cwd=folder, within=600)
    assert ran.code == code, ran.err
    return json.loads(ran.out.splitlines()[-1])


def guide(words: str) -> str:
    """The block of the guide that has these words."""
    (block,) = [block for block in blocks("training.md") if words in block]
    return block


def collected(folder: Path, what: str) -> Path:
    """What `grv collect` writes about a sum: two answers and two failures."""
    problem = {"problem": "sum", "prompt": "2 + 3 =", "check": {"kind": "math", "answer": "5"}}
    (folder / "problems.jsonl").write_text(json.dumps(problem) + "\n")
    out = folder / f"{what}.jsonl"
    said = "Step {}. The answer is \\boxed{{{}}}"
    with FaultyServer(text=lambda _, n: said.format(n, n if n % 3 else 5)) as server:
        call = ["collect", folder / "problems.jsonl", "--generator", "openai:m", "--base-url"]
        call += [server.url, "-n", 16, "--passes", 2, "--failures", 2, "--score", "length"]
        ran = here(*call, "--format", what, "--out", out)
    assert ran.code == 0, ran.err
    return out


def test_trl_trains_two_steps_and_a_killed_step_runs_nothing_twice(
    tmp_path: Path, wheel: Path
) -> None:
    made = environment(tmp_path, wheel, "trl")
    once = tmp_path / "once"
    again = tmp_path / "again"
    once.mkdir()
    again.mkdir()
    whole = printed(made, tmp_path, TRL, str(once))
    assert [len(step) for step in whole["steps"]] == [8, 8]
    for step, mean in zip(whole["steps"], whole["means"], strict=True):
        rights = [bool({*text} & {*"123ae"}) for text, _ in step]
        assert [verdict == "passed" for _, verdict in step] == rights
        assert mean == sum(rights) / 8
    killed = printed(made, tmp_path, TRL, str(again), "dies", code=9)
    resumed = printed(made, tmp_path, TRL, str(again))
    assert resumed["steps"][0] == whole["steps"][0]
    # Only the verification in which it died is repeated: it had no result.
    assert sorted(killed["ran"][:-1] + resumed["ran"]) == sorted(whole["ran"])
    shown = guide("trl import GRPO").replace("max_steps=2", "max_steps=2, use_cpu=True")
    assert printed(made, tmp_path, f"{shown}\nprint(trainer.state.global_step)") == 2
    for what in ("sft", "dpo"):
        collected(tmp_path, what)
    assert printed(made, tmp_path, ROWS) == [1, 1]


def test_trl_before_asynchronous_objects_takes_the_reward(tmp_path: Path, wheel: Path) -> None:
    made = environment(tmp_path, wheel, "trl<1.14", "requests")  # 1.15 needs Triton
    assert [len(step) for step in printed(made, tmp_path, TRL, str(tmp_path))["steps"]] == [8, 8]


def test_verl_calls_compute_score(tmp_path: Path, wheel: Path) -> None:
    made = environment(tmp_path, wheel, "verl")
    collected(tmp_path, "rlvr").rename(tmp_path / "tasks.jsonl")
    (lines,) = [block for block in blocks("training.md", "text") if "reward_kwargs" in block]
    options = [line.removeprefix("+") for line in lines.splitlines()]
    assert printed(made, tmp_path, VERL, *options) == [1.0, 0.0]
    assert (tmp_path / "verdicts.db").exists()


@pytest.mark.parametrize(
    ("version", "shown", "script"),
    [("<0.4", "passes = rubric", RUBRIC), (">=0.4", "verifiers.v1", TASK)],
    ids=["rubric", "task"],
)
def test_verifiers_scores_rollouts(
    tmp_path: Path, wheel: Path, version: str, shown: str, script: str
) -> None:
    made = environment(tmp_path, wheel, f"verifiers{version}")
    assert printed(made, tmp_path, guide(shown) + script) == [1.0, 0.0]
