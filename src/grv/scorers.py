"""Scorers: cheap numbers that rank candidates.

`Auto` is the default: log-probabilities, or else a score that is trained on the run's own verdicts.
`Logprob`, `Length`, `Diff` and `Claim` cost nothing. `Judge` asks a chat model, `Reward` a reward
model. `Trained` is fitted to the verdicts of earlier searches. A function of the problem and a
text that returns a number is a scorer too, and so is any object with the method `score` of the
protocol `Scorer`.

    >>> import grv
    >>> grv.scorers.Logprob("sum")
    LogprobScorer('sum')
"""

from .backends.protocols import Score, Scorer
from .backends.scorers.auto import AutoScorer as Auto
from .backends.scorers.claim import ClaimScorer as Claim
from .backends.scorers.diffs import DiffScorer as Diff
from .backends.scorers.judge import JudgeScorer as Judge
from .backends.scorers.length import LengthScorer as Length
from .backends.scorers.logprob import LogprobScorer as Logprob
from .backends.scorers.reward_http import RewardScorer as Reward
from .backends.scorers.reward_options import Reward as RewardOptions
from .backends.scorers.trained.model import TrainedModel, load_model
from .backends.scorers.trained.scorer import TrainedScorer as Trained
from .core.errors import ScorerError

__all__ = [
    "Auto",
    "Claim",
    "Diff",
    "Judge",
    "Length",
    "Logprob",
    "Reward",
    "RewardOptions",
    "Score",
    "Scorer",
    "ScorerError",
    "Trained",
    "TrainedModel",
    "load_model",
]
