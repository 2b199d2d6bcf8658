"""Rewards inside the real frameworks, each in an environment of its own.

`make soak` runs them: torch alone is two gigabytes. uv keeps what it has installed once.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from support.environments import Environment, build_wheel
from support.guides import blocks
from support.pythons import Python, make_environment

pytestmark = [pytest.mark.soak, pytest.mark.alone]

# Two steps of GRPO on a tiny model with random weights and a tokenizer of single characters. The
# first argument is a folder; with the second one, the process dies after the verdicts of a step.
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
    return judge(self, job, problem, check, text, seed)

async def watched(self, completions):
    verdicts = await verify(self, completions)
    steps.append([[each.text, verdict.value] for each, verdict in zip(completions, verdicts)])
    if dies:
        print(json.dumps({"ran": ran, "steps": steps}), flush=True)
        os._exit(9)
    return verdicts

LocalEngine.judge = counted
StepVerifier.verify = watched
arguments = GRPOConfig(
    output_dir=folder, max_steps=2, per_device_train_batch_size=8, num_generations=4, seed=1,
    max_completion_length=12, logging_steps=1, report_to=[], use_cpu=True, save_strategy="no",
    bf16=False, disable_tqdm=True,
)
trainer = GRPOTrainer(
    model=model, reward_funcs=reward(deadline=120, verdicts=f"{folder}/verdicts"),
    args=arguments, train_dataset=Dataset.from_list(rows), processing_class=tokenizer,
)
trainer.train()
means = [row["rewards/verified/mean"] for row in trainer.state.log_history if "reward" in row]
print(json.dumps({"ran": ran, "steps": steps, "means": means}))
"""

VERL = """
import asyncio, json
import numpy, torch
from omegaconf import OmegaConf
from verl import DataProto
from verl.experimental.reward_loop.reward_manager.naive import NaiveRewardManager
from verl.trainer.ppo.reward import get_custom_reward_fn

own = {"path": "pkg://grv.adapters.verl", "name": "compute_score", "reward_kwargs": {"workers": 1}}
config = OmegaConf.create({"reward": {"custom_reward_function": own}})

class Characters:
    def decode(self, ids, skip_special_tokens=True):
        return "".join(map(chr, ids.tolist()))

def row(text):
    ids = torch.tensor([list(map(ord, text))])
    mask = torch.ones(1, 2 * ids.shape[1], dtype=torch.long)
    truth = {"style": "rule", "ground_truth": json.dumps({"kind": "math", "answer": "5"})}
    others = {"data_source": "grv", "reward_model": truth, "extra_info": {}}
    arrays = {name: numpy.array([value], dtype=object) for name, value in others.items()}
    tensors = {"responses": ids, "prompts": ids, "attention_mask": mask}
    return DataProto.from_dict(tensors=tensors, non_tensors=arrays)

async def main():
    manager = NaiveRewardManager(config, Characters(), get_custom_reward_fn(config))
    found = await asyncio.gather(*[manager.run_single(row(text)) for text in ("5", "6")])
    print(json.dumps([each["reward_score"] for each in found]))

asyncio.run(main())
"""

RUBRIC = """
import asyncio, json
import verifiers as vf
from grv.adapters.verifiers import rubric

async def rewarded(text):
    state = vf.State(
        prompt=[{"role": "user", "content": "2 + 3 ="}],
        completion=[{"role": "assistant", "content": text}],
        answer="", info={"check": {"kind": "math", "answer": "5"}}, task="default",
        trajectory=[], timing={},
    )
    await made.score_rollout(state)
    return state["reward"]

made = rubric()
print(json.dumps([asyncio.run(rewarded(text)) for text in ("5", "6")]))
"""

TASK = """
import asyncio, json
import verifiers.v1 as vf
from grv.adapters.verifiers import verified

class Sum(vf.TaskData):
    check: str

class SumTask(vf.Task[Sum]):
    @vf.reward
    async def passes(self, trace: vf.Trace) -> float:
        return await verified(trace, self.data.check)

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
    assert killed["steps"] == resumed["steps"][:1] == whole["steps"][:1]
    assert sorted(killed["ran"] + resumed["ran"]) == sorted(whole["ran"])
    shown = guide("trl import GRPO").replace("max_steps=2", "max_steps=2, use_cpu=True")
    assert printed(made, tmp_path, f"{shown}\nprint(trainer.state.global_step)") == 2


def test_verl_calls_compute_score(tmp_path: Path, wheel: Path) -> None:
    made = environment(tmp_path, wheel, "verl")
    assert printed(made, tmp_path, VERL) == [1.0, 0.0]


@pytest.mark.parametrize(("version", "script"), [("<0.4", RUBRIC), (">=0.4", TASK)])
def test_verifiers_scores_rollouts(tmp_path: Path, wheel: Path, version: str, script: str) -> None:
    made = environment(tmp_path, wheel, f"verifiers{version}")
    assert printed(made, tmp_path, script) == [1.0, 0.0]
