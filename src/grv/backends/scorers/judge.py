"""A model as a judge: its log-probability of yes minus that of no is the score."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Sequence

from ...core.errors import ScorerError, UsageError
from ..generators.completions import first_token, usage
from ..http.endpoint import Endpoint, status
from ..http.web import REFUSED
from ..protocols import Draft, Problem, Score, scored

QUESTION = """\
Here is a problem and a proposed answer.

Problem:
{prompt}

Proposed answer:
{answer}

Is the proposed answer correct? Say only yes or no."""

_TOPS = 20  # the most that OpenAI returns


class JudgeScorer:
    """Asks an OpenAI-compatible model whether a draft is correct, with one request per draft.

    Choose it if a model can tell right from wrong, and a verification costs much more than a
    request. The score is log p(yes) - log p(no) of the first token. If one of the words is not
    among the likely tokens, it gets the lowest probability among them, an upper bound.

    Args:
        model: the model's name.
        base_url: such as http://localhost:8000/v1; None is OpenAI.
        question: the text to send; {prompt} and {answer} in it are replaced.

    Examples:
        >>> import grv
        >>> grv.scorers.Judge("gpt-oss-20b", base_url="http://localhost:8000/v1").model
        'gpt-oss-20b'
    """

    def __init__(
        self, model: str, *, base_url: str | None = None, question: str = QUESTION
    ) -> None:
        if not model:
            raise UsageError("name the model, as in judge:gpt-4o-mini")
        if "{answer}" not in question:
            raise UsageError("the question must contain {answer}")
        self.model = model
        self.question = question
        self._endpoint = Endpoint(base_url, backend=f"judge:{model}", error=ScorerError)

    def __repr__(self) -> str:
        return f"JudgeScorer({self.model!r}, base_url={self._endpoint.shown!r})"

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        """One score per draft; a ScorerError if there is no answer."""
        return [await self._one(problem, draft) for draft in drafts]

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()

    async def _one(self, problem: Problem, draft: Draft) -> Score:
        values = {"prompt": problem.prompt, "answer": draft.text}
        question = re.sub(r"\{(prompt|answer)\}", lambda found: values[found[1]], self.question)
        body = {
            "model": self.model,
            "messages": [{"role": "user", "content": question}],
            "temperature": 0.0,
            "logprobs": True,
            "top_logprobs": _TOPS,
            **self._endpoint.cut(1, chat=True),
        }
        started = time.monotonic()
        try:
            answer = await self._endpoint.ask("/chat/completions", body, problem.id)
        except ScorerError as error:
            if status(error) not in REFUSED or error.fault == "stop":
                raise
            return Score(None, reason=str(error))
        try:
            tops = first_token(answer)
        except ValueError as exc:
            raise self._endpoint.failure(str(exc), problem.id) from self._endpoint.cause(exc)
        used = usage(answer, time.monotonic() - started)
        if not tops:
            return Score(None, used, "the judge returned no log-probabilities")
        margin = _margin(tops)
        if margin is None:
            return Score(None, used, "the judge said neither yes nor no")
        return scored(margin, used)


def _margin(tops: dict[str, float]) -> float | None:
    """The score, or None if neither word is among the likely tokens."""
    yes = _total(value for token, value in tops.items() if _word(token) == "yes")
    no = _total(value for token, value in tops.items() if _word(token) == "no")
    if yes is None and no is None:
        return None
    least = min(tops.values())
    return (least if yes is None else yes) - (least if no is None else no)


def _word(token: str) -> str:
    """The word of a token, without the marks that tokenizers add."""
    return token.strip(" \t\n\u0120\u2581.,!*'\"").casefold()


def _total(values: Iterable[float]) -> float | None:
    """The logarithm of the sum of the probabilities."""
    known = list(values)
    if not known:
        return None
    top = max(known)
    return top + math.log(math.fsum(math.exp(value - top) for value in known))
