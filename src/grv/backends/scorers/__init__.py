"""Backends that score candidates. To add one, write a file and add an entry to `SCORERS`.

A scorer has the method `score` of `protocols.Scorer`. An entry of the table gives its form on the
command line, a few words about it, and how it is made. Its module is imported only when it is used.
The help of `--score`, the guide's table and the tests come from the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..http.web import shown
from ..protocols import Scorer
from ..table import Entry, class_in, table
from .reward_options import Reward

STEPS = ("last", "min", "mean", "product")  # ways to combine the scores of several steps


@dataclass(frozen=True)
class ScorerOptions:
    """What the command line says about scorers.

    Attributes:
        base_url: the server of a judge.
        model: the model's name, for a reward server with several.
        step: the step marker of a process reward model; see `RewardScorer`.
        reward: what a reward model reads, and what it returns.
    """

    base_url: str | None = None
    model: str | None = None
    step: str = ""
    reward: Reward = field(default_factory=Reward)


@dataclass(frozen=True)
class ScorerEntry(Entry[ScorerOptions, Scorer]):
    """One score of the command line.

    Attributes:
        recorded: the argument as ledgers store it, if it needs a form of its own there. All
            addresses lose their secrets without it.
        is_reward: whether it is a reward model behind a server.
    """

    recorded: Callable[[str], str] | None = None
    is_reward: bool = False


def _judge(model: str, options: ScorerOptions) -> Scorer:
    from .judge import JudgeScorer, parse_judge

    dialect, name = parse_judge(model)
    return JudgeScorer(name, base_url=options.base_url, dialect=dialect)


def _reward(endpoint: str, address: str, options: ScorerOptions) -> Scorer:
    from .reward_http import RewardScorer

    url, how = reward_address(endpoint, address)
    return RewardScorer(
        url,
        endpoint=endpoint,
        how=how,
        model=options.model,
        step=options.step,
        reward=options.reward,
    )


def _trained(path: str, options: ScorerOptions) -> Scorer:
    from .trained.model import load_model
    from .trained.scorer import TrainedScorer

    trained = load_model(path)
    return TrainedScorer(lambda: trained)


def reward_address(endpoint: str, address: str) -> tuple[str, str]:
    """The address of a reward model, and how the scores of several steps are combined."""
    url, _, how = address.rpartition(":")
    return (url, how) if endpoint == "pooling" and how in STEPS else (address, "last")


def _recorded_address(endpoint: str, address: str) -> str:
    url, how = reward_address(endpoint, address)
    return shown(url) if url == address else f"{shown(url)}:{how}"


def _reward_entry(form: str, summary: str) -> ScorerEntry:
    endpoint = form.partition(":")[0]
    recorded = partial(_recorded_address, endpoint)
    return ScorerEntry(form, summary, partial(_reward, endpoint), recorded, is_reward=True)


def _nothing(argument: str) -> str:
    """A trained score has one name in ledgers, whatever it is fitted to."""
    return ""


def _class(module: str, name: str, *arguments: Any) -> Callable[[str, ScorerOptions], Scorer]:
    """A class of this package that needs no options."""
    return class_in(__name__, module, name, *arguments)


# By name, in the order of the help.
SCORERS = table(
    __name__,
    [
        ScorerEntry(
            "auto",
            "log-probabilities if the server returns them; otherwise trained on the run's verdicts",
            _class(".auto", "AutoScorer"),
        ),
        ScorerEntry(
            "logprob",
            "the mean log-probability of a candidate's tokens",
            _class(".logprob", "LogprobScorer", "mean"),
        ),
        ScorerEntry("logprob-sum", "the sum of them", _class(".logprob", "LogprobScorer", "sum")),
        ScorerEntry(
            "logprob-min", "the minimum of them", _class(".logprob", "LogprobScorer", "min")
        ),
        ScorerEntry("length", "shorter candidates first", _class(".length", "LengthScorer")),
        ScorerEntry(
            "claim",
            "whether the agent that made it says that the tests pass",
            _class(".claim", "ClaimScorer"),
        ),
        ScorerEntry(
            "diff-size", "diffs with fewer lines first", _class(".diffs", "DiffScorer", "size")
        ),
        ScorerEntry(
            "diff-files", "diffs of fewer files first", _class(".diffs", "DiffScorer", "files")
        ),
        ScorerEntry(
            "diff-tests", "diffs that touch no test first", _class(".diffs", "DiffScorer", "tests")
        ),
        ScorerEntry(
            "diff-applies",
            "diffs that fit their repository first",
            _class(".diffs", "DiffScorer", "applies"),
        ),
        ScorerEntry(
            "diff-compiles",
            "diffs that fit and whose files can be parsed first",
            _class(".diffs", "DiffScorer", "compiles"),
        ),
        ScorerEntry(
            "judge:MODEL",
            "a chat model asked whether an answer is right; or judge:anthropic:MODEL and so on",
            _judge,
        ),
        _reward_entry("score:URL", "a reward model behind vLLM's /score"),
        _reward_entry("classify:URL", "a reward model behind vLLM's /classify"),
        _reward_entry(
            "pooling:URL[:last|min|mean|product]", "one behind /pooling, and how steps combine"
        ),
        ScorerEntry(
            "trained:LEDGER",
            "fitted to the verdicts of a ledger; or a file of grv learn --scorer",
            _trained,
            _nothing,
        ),
    ],
)

# The names of the reward models.
REWARDS = tuple(entry.name for entry in SCORERS.values() if entry.is_reward)
