"""A model as a judge: how much likelier it finds an answer right than wrong is the score.

If the server returns log-probabilities, the judge is asked for yes or no, and the score is the
log-probability of yes minus that of no. Otherwise it is asked for a number from 0 to 100, and the
score is the logarithm of these odds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ...core.errors import ScorerError, UsageError
from ..generators import DIALECTS, dialect_named
from ..generators.completions import Moderated
from ..generators.dialect import DialectClient
from ..generators.sampling import Sampling
from ..http.endpoint import status
from ..http.web import REFUSED
from ..protocols import Draft, Problem, Score, Usage, scored
from .bounded import Effort

_CASE = """\
Here is a problem and a proposed answer.

Problem:
{prompt}

Proposed answer:
{answer}

"""
QUESTION = _CASE + "Is the proposed answer correct? Say only yes or no."
RATING = _CASE + (
    "How likely is it that the proposed answer is correct? Say only a whole number from 0 to 100."
)

_TOPS = 20  # the most that OpenAI returns
_RATING_TOKENS = 1024  # enough for a model that thinks first
_MOST_KEPT = 1000  # scores of calls that failed midway
_NO_LOGPROBS = "the judge returned no log-probabilities"


def parse_judge(argument: str) -> tuple[str, str]:
    """The dialect and the model of `judge:MODEL` or `judge:DIALECT:MODEL`.

    >>> parse_judge("anthropic:claude"), parse_judge("llama3.2:1b")
    (('anthropic', 'claude'), ('openai', 'llama3.2:1b'))
    """
    name, colon, model = argument.partition(":")
    return (name, model) if colon and name in DIALECTS else ("openai", argument)


def judge_effort(dialect: str) -> Effort:
    """The most that a judge does for one candidate.

    A judge whose server turns out to have no log-probabilities is asked twice about the first ones.
    """
    interface = dialect_named(dialect)
    only_rates = "logprobs" in interface.lacks
    return Effort(
        calls=1 if only_rates else 2,
        own_bytes=max(len(QUESTION.encode()), len(RATING.encode())),
        answer_tokens=_RATING_TOKENS + (0 if only_rates else interface.least),
    )


class JudgeScorer:
    """Asks a model whether a draft is correct, with one request per draft.

    Choose it if a model can tell right from wrong, and a verification costs much more than a
    request. The score is log p(yes) - log p(no) of the first token. If one of the words is not
    among the likely tokens, it gets the lowest probability among them, an upper bound. A judge
    whose server has no log-probabilities says a number p from 0 to 100, and the score is
    log p - log(100 - p).

    Args:
        model: the model's name.
        base_url: such as http://localhost:8000/v1; None is the provider's own.
        question: the text to send; {prompt} and {answer} in it are replaced.
        dialect: the interface of its server: openai, responses, anthropic or gemini.
        rating: the text to send if there are no log-probabilities.

    Examples:
        >>> import grv
        >>> grv.scorers.Judge("gpt-oss-20b", base_url="http://localhost:8000/v1").model
        'gpt-oss-20b'
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        question: str = QUESTION,
        dialect: str = "openai",
        rating: str = RATING,
    ) -> None:
        if not model:
            raise UsageError("name the model, as in judge:gpt-4o-mini")
        if "{answer}" not in question or "{answer}" not in rating:
            raise UsageError("the question must contain {answer}")
        if dialect not in DIALECTS:
            there = ", ".join(DIALECTS)
            raise UsageError(f"there is no dialect {dialect!r}; choose one of {there}")
        self.model = model
        self.question = question
        self.dialect = dialect
        self.rating = rating
        interface = dialect_named(dialect)
        is_plain = dialect == "openai"
        self._name = f"judge:{model}" if is_plain else f"judge:{dialect}:{model}"
        self._client = DialectClient(
            interface,
            model,
            backend=self._name,
            error=ScorerError,
            base_url=base_url,
            sampling=Sampling(temperature=0.0, max_tokens=interface.least, seed=None),
            logprobs=True,
            tops=_TOPS,
        )
        plain = Sampling(temperature=0.0, max_tokens=_RATING_TOKENS, seed=None)
        self._rating_client = self._client.sampled(plain)
        self._rating_client.logprobs = False
        self._has_logprobs: bool | None = False if "logprobs" in interface.lacks else None
        self._kept: dict[tuple[str, str], Score] = {}

    def __repr__(self) -> str:
        of = "" if self.dialect == "openai" else f", dialect={self.dialect!r}"
        return f"JudgeScorer({self.model!r}, base_url={self._client.shown!r}{of})"

    @property
    def notices(self) -> Sequence[str]:
        """What the server cannot do, and what happens instead: one line each, for the user."""
        if self._has_logprobs is False:
            return [f"{self._name} has no log-probabilities: it rates answers from 0 to 100"]
        return []

    @property
    def server(self) -> str:
        """Whose limits hold for its requests: the host and the model."""
        return self._client.server

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        """One score per draft; a ScorerError if there is no answer.

        If a request fails, the scores before it are kept for the next attempt: they are paid for.
        """
        scores: list[Score] = []
        try:
            for draft in drafts:
                kept = self._kept.pop((problem.id, draft.text), None)
                scores.append(kept or await self._one(problem, draft))
        except ScorerError as error:
            if len(self._kept) < _MOST_KEPT:
                done = zip(drafts, scores, strict=False)
                self._kept |= {(problem.id, draft.text): score for draft, score in done}
                error.at_most = 1
            raise
        return scores

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _one(self, problem: Problem, draft: Draft) -> Score:
        if self._has_logprobs is False:
            return await self._rated(problem, draft)
        try:
            answer, used = await self._ask(self._client, self.question, problem, draft)
        except ScorerError as error:
            if "logprobs" in self._client.refused:  # and the question makes no sense without them
                self._has_logprobs = False
                return await self._rated(problem, draft)
            return _refused(error)
        try:
            tops = self._client.dialect.likely(answer)
        except ValueError as exc:
            raise self._client.unreadable(exc, problem.id) from None
        if not tops and self._has_logprobs:
            return Score(None, used, _NO_LOGPROBS)
        if not tops:
            self._has_logprobs = False
            rated = await self._rated(problem, draft)
            return replace(rated, usage=rated.usage + used)
        self._has_logprobs = True
        margin = _margin(tops)
        if margin is None:
            return Score(None, used, "the judge said neither yes nor no")
        return scored(margin, used)

    async def _rated(self, problem: Problem, draft: Draft) -> Score:
        client = self._rating_client
        try:
            answer, used = await self._ask(client, self.rating, problem, draft)
        except ScorerError as error:
            return _refused(error)
        try:
            said = client.dialect.texts(answer)[0]
        except Moderated as exc:
            return Score(None, used, str(exc))
        except ValueError as exc:
            raise client.unreadable(exc, problem.id) from None
        if said.broken:
            return Score(None, used, f"the judge: {said.broken}")
        odds = _odds(said.text)
        if odds is None:
            return Score(None, used, "the judge said no number from 0 to 100")
        return scored(odds, used)

    async def _ask(
        self, client: DialectClient, question: str, problem: Problem, draft: Draft
    ) -> tuple[object, Usage]:
        """The answer to a question about a draft, and what it used."""
        values = {"prompt": problem.prompt, "answer": draft.text}
        text = re.sub(r"\{(prompt|answer)\}", lambda found: values[found[1]], question)
        answer, seconds = await client.answer(Problem(problem.id, text), 1)
        return answer, replace(client.dialect.usage(answer), seconds=seconds)


def _refused(error: ScorerError) -> Score:
    """No score, if a server refuses one draft; otherwise the error is raised again."""
    if status(error) not in REFUSED or error.fault == "stop":
        raise error
    return Score(None, reason=str(error))


def _odds(text: str) -> float | None:
    """The logarithm of the odds that a number from 0 to 100 says; None if there is no such number.

    >>> _odds("50"), _odds("I do not know")
    (0.0, None)
    """
    found = re.search(r"\d+(?:\.\d+)?", text)
    percent = math.inf if found is None else float(found[0])
    if percent > 100:
        return None
    share = (percent + 0.5) / 101  # finite for 0 and 100, too
    return math.log(share / (1 - share))


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
