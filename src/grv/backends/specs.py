"""Generators and scorers by name, as on the command line: `openai:MODEL`, `logprob`."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.errors import UsageError
from ..options import did_you_mean
from ..own_code import is_code, load
from .generators.sampling import NEWER, Sampling
from .http.web import shown, without_secrets
from .models import GENERATORS, REWARDS, SCORERS
from .protocols import Generator, Scorer
from .scorers.reward_options import Reward

STEPS = ("last", "min", "mean", "product")  # ways to combine the scores of several steps


def generator(
    spec: str,
    *,
    base_url: str | None = None,
    sampling: Sampling | None = None,
    logprobs: bool = True,
    batch: int | None = None,
) -> Generator:
    """The generator that a specification names.

    Raises:
        UsageError: there is none of that name, or this machine cannot run it.
    """
    if is_code(spec):
        from .own import own_generator

        if sampling is not None and (unused := [n for n in NEWER if getattr(sampling, n)]):
            flag = unused[0].replace("_", "-")
            raise UsageError(f"--{flag} needs openai:MODEL; {spec} does not read it")
        return own_generator(spec)
    name, rest = _parts(spec, GENERATORS, "generator")
    if name.startswith("openai"):
        from .generators.openai import OpenaiGenerator

        return OpenaiGenerator(
            rest,
            chat=name == "openai",
            base_url=base_url,
            sampling=sampling,
            logprobs=logprobs,
            batch=batch,
        )
    if base_url is not None:
        raise UsageError(f"{name} is on this machine and has no base URL; did you mean openai:...?")
    from .generators.embedded import PARALLEL, EmbeddedGenerator

    return EmbeddedGenerator(
        chat=name == "embedded-chat", sampling=sampling, batch=batch or PARALLEL
    )


def scorer(
    spec: str,
    *,
    base_url: str | None = None,
    model: str | None = None,
    step: str = "",
    reward: Reward = Reward(),  # noqa: B008 (a frozen value)
) -> Scorer:
    """The scorer that a specification names.

    Args:
        spec: the specification.
        base_url: the server of a judge.
        model: the model's name, for a reward server with several.
        step: the step marker of a process reward model; see `RewardScorer`.
        reward: what a reward model reads, and what it returns.

    Raises:
        UsageError: there is none of that name, or this machine cannot run it.
    """
    if is_code(spec):
        from .own import own_scorer

        return own_scorer(spec)
    name, rest = _parts(spec, SCORERS, "score")
    match name:
        case "length":
            from .scorers.length import LengthScorer

            return LengthScorer()
        case "judge":
            from .scorers.judge import JudgeScorer

            return JudgeScorer(rest, base_url=base_url)
        case "score" | "classify" | "pooling":
            from .scorers.reward_http import RewardScorer

            url, how = reward_address(name, rest)
            return RewardScorer(url, endpoint=name, how=how, model=model, step=step, reward=reward)
        case "trained":
            from .scorers.trained.model import load_model
            from .scorers.trained.scorer import TrainedScorer

            trained = load_model(rest)
            return TrainedScorer(lambda: trained)
        case "logprob" | "logprob-sum" | "logprob-min":
            from .scorers.logprob import LogprobScorer

            return LogprobScorer(name.partition("-")[2] or "mean")
    raise AssertionError(f"{name} is in SCORERS but has no case here")


def reward_address(name: str, rest: str) -> tuple[str, str]:
    """The address of a reward model, and how the scores of several steps are combined."""
    url, _, how = rest.rpartition(":")
    return (url, how) if name == "pooling" and how in STEPS else (rest, "last")


def named(spec: str) -> str:
    """A specification as ledgers store it: addresses without secrets, code without folders."""
    if is_code(spec):
        return load(spec).name
    name, colon, rest = spec.strip().partition(":")
    if name == "trained":
        return name  # whatever it is fitted to
    if name not in REWARDS:
        return without_secrets(spec)
    url, how = reward_address(name, rest)
    return f"{name}{colon}{shown(url)}" + (f":{how}" if url != rest else "")


def _parts(spec: str, known: Mapping[str, str], what: str) -> tuple[str, str]:
    """The name in a specification, and the part after its colon."""
    forms = {form.partition(":")[0]: form for form in known}
    name, colon, rest = spec.strip().partition(":")
    if name not in forms:
        hint = did_you_mean(name, forms)
        raise UsageError(
            f"unknown {what} {without_secrets(spec)!r}{hint} (there are: {', '.join(known)})"
        )
    form = forms[name]
    if ":" in form and not rest:
        raise UsageError(f"{name} needs {form.partition(':')[2]}: write {form}")
    if colon and ":" not in form:
        raise UsageError(
            f"{name} takes nothing after it: write {form}, not {without_secrets(spec)}"
        )
    return name, rest
