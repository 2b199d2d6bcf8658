"""What the live commands share: their options, and the backends that the options stand for."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...backends.generators import GENERATORS, INTERFACES, PRICE_SHARE, dialect_named
from ...backends.generators.sampling import Sampling
from ...backends.models import OLDEST, Models
from ...backends.sandbox.limits import Isolation
from ...backends.scorers import REWARDS, reward_address
from ...backends.verifiers.options import Verification
from ...core.errors import UsageError
from ...core.values import Measured
from ...options import Family, option
from ...own_code import is_code, is_command
from ...parsing import Dollars, FromPrices, parse_cascade, written_costs
from ...plugins import Group
from ...runtime.options import Calls, Spending
from ..console import status

TRAINED = "trained:"

if TYPE_CHECKING:
    from ...backends.problems.prompts import Prompts
    from ...backends.protocols import Generator, Problem, Scorer, Usage, Verifier
    from ...backends.scorers.bounded import Effort
    from ...backends.verifiers.judge_prices import JudgePrices
    from ...core.search import Policy
    from ...ledger.entries import Call
    from ...runtime.executor import Backends
    from ...runtime.prices import Meter, Prices


@dataclass(frozen=True, kw_only=True)
class BackendOptions(Family):
    """What makes, ranks and verifies candidates."""

    keys: bool = option(True, "If a candidate fails, do not verify equivalent ones.")
    verifier: str | None = option(
        None,
        "A function of your own that verifies, as FILE.py:NAME, or a plugin, instead of the"
        " problems' checks. It runs with your rights.",
        metavar="SPEC",
        code=True,
    )
    models: Models = field(default_factory=lambda: Models(generator=""))
    sampling: Sampling = field(default_factory=Sampling)
    verification: Verification = field(default_factory=Verification)

    @property
    def collects(self) -> bool:
        """Whether all candidates are labelled for a log, and no verdict decides anything."""
        return False

    @property
    def about(self) -> dict[str, Any]:
        """What determines candidates, scores and verdicts; see `SearchConfig.about`.

        It goes into the ledger, so addresses are without credentials.
        """
        from ...backends.http.web import shown

        default = {each.name: each.default for each in dataclasses.fields(Models)}
        models = {
            name: value
            for name, value in dataclasses.asdict(self.models).items()
            if name in OLDEST or value != default[name]
        }
        del models["reward"]
        models |= self.models.reward.changed()
        if self.models.score_url is not None:
            models["score_url"] = shown(self.models.score_url)
        if self.models.alike is not None:
            models["alike"] = _named_score(self.models.alike)
        sampling = self.sampling_with_stops
        return {**models, **sampling.about()} | {
            "score": _named_score(self.models.score),
            "base_url": None if self.models.base_url is None else shown(self.models.base_url),
            "stop": list(sampling.stop),
            **self._code,
        }

    @property
    def _code(self) -> dict[str, Any]:
        """The user's own code: names without folders, and checksums. Empty if there is none."""
        from ...backends.by_name import code_of, named

        code: dict[str, Any] = {}
        if is_code(self.models.generator) or is_command(self.models.generator):
            code["generator"] = named(self.models.generator)
        if self.verifier is not None:
            code["verifier"] = named(self.verifier)
        first, second = self.models.scores
        specs: list[tuple[str, Group, str | None]] = [
            ("generator", "generators", self.models.generator),
            ("score", "scorers", first),
            ("second score", "scorers", second),
            ("alike", "scorers", self.models.alike),
            ("verifier", "verifiers", self.verifier),
        ]
        found = {role: code_of(group, spec) for role, group, spec in specs if spec}
        own = {role: each.digest for role, each in found.items() if each is not None}
        return code | ({"code": own} if own else {})

    @property
    def sampling_with_stops(self) -> Sampling:
        """How candidates are sampled."""
        return self.sampling


@dataclass(frozen=True, kw_only=True)
class LiveOptions(BackendOptions):
    """The options of commands that work on a file of problems."""

    problems: str = option(
        ...,
        'A file of problems, JSON lines with "problem", "prompt" and "check".',
        argument=True,
        metavar="PROBLEMS",
    )
    prompts: str | None = option(
        None,
        "A TOML file with the template of the prompts, which may contain examples, and with the"
        " texts that end a candidate (unless --stop is given).",
        metavar="FILE",
    )
    out: str = option(..., "Where the results go.", "--out", "-o", metavar="FILE")
    ledger: str | None = option(
        None,
        "Where grv records what is paid for: a file, or postgresql://USER@HOST/DATABASE.",
        metavar="LEDGER",
        shown="OUT.ledger",
    )
    calls: Calls = field(default_factory=Calls)

    @property
    def ledger_path(self) -> str:
        """The ledger: as given, or beside the results."""
        return self.ledger if self.ledger is not None else f"{self.out}.ledger"

    @property
    def written(self) -> tuple[str, ...]:
        """The files that the run writes; a ledger in a database is none."""
        return (self.out, *ledger_files(self.ledger_path))

    @cached_property
    def _prompts(self) -> Prompts | None:
        from ...backends.problems.prompts import Prompts

        return None if self.prompts is None else Prompts.load(self.prompts)

    @property
    def sampling_with_stops(self) -> Sampling:
        """How candidates are sampled, with the stops of the file of prompts if there are no own."""
        if self._prompts is None or self.sampling.stop:
            return self.sampling
        return dataclasses.replace(self.sampling, stop=self._prompts.stop)

    def read_problems(self) -> list[Problem]:
        """The problems, with the prompts of the file of prompts if there is one."""
        from ...backends.problems.files import read_problems

        with status("reading the problems"):
            problems = read_problems(self.problems, checks=self.verifier is None)
            return [self.asked(problem) for problem in problems]

    def asked(self, problem: Problem) -> Problem:
        """A problem as it is asked; a UsageError if the models cannot be asked it."""
        if self.models.reward.score_question:
            self.models.reward.asked(problem)
        if self._prompts is not None:
            return self._prompts.of(problem)
        entry = GENERATORS.get(self.models.generator.partition(":")[0])
        if problem.messages and entry is not None and entry.for_chats:
            raise UsageError(
                f"problem {problem.id} has messages, which need a chat model: {entry.for_chats}"
            )
        return problem


def ledger_files(place: str) -> tuple[str, ...]:
    """The file of a ledger; none if it is in a database, whose address has no password."""
    from ...ledger.opening import is_address, refuse_password

    if is_address(place):
        refuse_password(place)
        return ()
    return (place,)


def _named_score(score: str) -> str:
    """The score as a ledger knows it. The size of a cascade does not change what scores are."""
    from ...backends.by_name import named

    cascade = parse_cascade(score)
    if cascade is not None:
        return f"cascade({_named_score(cascade[0])}, {_named_score(cascade[1])})"
    return named(score)


def check_resources(options: LiveOptions) -> None:
    """Refuse a run that this machine cannot carry, before the first call."""
    from ...backends.callables import processors
    from ...runtime.machine import check_machine

    workers = options.verification.workers or processors()
    check_machine(options.calls.concurrency, workers, options.written)


@contextmanager
def backends_of(
    options: BackendOptions, problems: Sequence[Problem], verifier: Verifier | None = None
) -> Iterator[Backends]:
    """The generator, scorers and verifier. Every mistake in a check is found before any work.

    The verifier may be given; then the caller closes it.
    """
    from ...backends import by_name
    from ...backends.scorers.auto import AUTO, AutoScorer
    from ...backends.scorers.bounded import BoundedScorer
    from ...backends.scorers.trained.scorer import PairedScorer
    from ...runtime.executor import Backends

    models = options.models
    first, second = models.scores

    def scorer(spec: str) -> Any:
        return by_name.scorer(
            models.whole_score(spec),
            base_url=models.judge_url(spec),
            model=models.score_model,
            step=models.score_step,
            reward=models.reward,
        )

    with nullcontext(verifier) if verifier else verifier_of(options, problems) as verifier:
        specified = (models.alike, second)
        scorers = [None if spec is None else scorer(spec) for spec in specified]
        alike, again = scorers
        given = None
        if alike is not None and models.alike is not None:
            given = (_named_score(models.alike), alike)
        if first == AUTO:
            ranking: Scorer = AutoScorer(given)
        elif first.startswith(TRAINED):
            ranking = _trained(first, given, getattr(options, "ledger_path", None))
        else:
            ranking = scorer(first)
        longest = _longest_scored(options)
        if longest is not None and _effort(models, first, problems) is not None:
            ranking = BoundedScorer(ranking, longest)
        longest_again = judge_prices(options).longest
        if again is not None and longest_again and _effort(models, second, problems) is not None:
            again = BoundedScorer(again, longest_again)
        with status("preparing"):
            generator = by_name.generator(
                models.generator,
                base_url=models.base_url,
                sampling=options.sampling_with_stops,
                logprobs=any(_reads_logprobs(each) for each in (ranking, *scorers) if each),
                batch=None if models.generator.startswith("embedded") else 8,
            )
        _check_logprobs(first, generator, models.generator)
        if getattr(options, "batch", False):
            generator = _in_batches(generator, models.generator)
        key = getattr(verifier, "key", None) if options.keys else None
        if alike is not None and first != AUTO and not first.startswith(TRAINED):
            ranking = PairedScorer(ranking, alike)
        refutation = getattr(verifier, "refutation", None)
        yield Backends(generator, ranking, verifier, key, again, refutation=refutation)


def _in_batches(generator: Any, spec: str) -> Generator:
    """The generator, asked in batches; a UsageError if its interface has none."""
    from ...backends.generators.batches import BATCH_DIALECTS, BatchedGenerator

    if spec.partition(":")[0] not in BATCH_DIALECTS:
        there = ", ".join(f"{name}:MODEL" for name in BATCH_DIALECTS)
        raise UsageError(f"--batch: {spec} has no batches; these have: {there}")
    return BatchedGenerator(generator)


def _trained(spec: str, given: tuple[str, Scorer] | None, own: str | None) -> Scorer:
    """The scorer `trained:LEDGER`."""
    from ...learning.trained.refits import trained_scorer

    return trained_scorer(spec.removeprefix(TRAINED), given, own=own)


def _check_logprobs(score: str, generator: Generator, spec: str) -> None:
    """Refuse a score of log-probabilities if the generator's interface has none."""
    lacks: frozenset[str] = getattr(getattr(generator, "dialect", None), "lacks", frozenset())
    if score.startswith("logprob") and "logprobs" in lacks:
        raise UsageError(
            f"--score {score}: {spec} has no log-probabilities: leave --score out, or choose"
            " another one, such as --score length"
        )


def _reads_logprobs(scorer: Scorer) -> bool:
    """Whether a scorer reads the tokens' log-probabilities. An object of the user's may do so."""
    is_ours = type(scorer).__module__.startswith("grv.")
    return bool(getattr(scorer, "reads_logprobs", not is_ours))


@contextmanager
def verifier_of(options: BackendOptions, problems: Sequence[Problem]) -> Iterator[Verifier]:
    """The user's own verifier, or else the one that runs the problems' checks."""
    if options.verifier is not None:
        from ...backends.by_name import own_verifier

        yield own_verifier(options.verifier)
        return
    with options.verification.verifier(
        decides=not options.collects, published=options.collects, prices=judge_prices(options)
    ) as verifier:
        with status("preparing"):
            for problem in problems:
                verifier.prepare(problem)
        yield verifier


def check_policy(policy: Policy, score: str, alike: str | None = None) -> None:
    """Refuse a policy that was made for another score, before any work."""
    from ...backends.by_name import named
    from ...backends.scorers.auto import AUTO, BY_LOGPROB
    from ...learning.ledger_history import check_score
    from ...policies import Learned, Learning

    if isinstance(policy, Learned):
        # A prior for log-probabilities is for what `auto` stands for if there are some.
        is_logprob = score == AUTO and policy.prior.score == BY_LOGPROB
        policy.check_score(BY_LOGPROB if is_logprob else named(score), alike)
    elif isinstance(policy, Learning):
        for path in policy.history:
            check_score(path, named(score))


def pricing_of(models: Models, prices: Prices, *, batch: bool = False) -> Meter:
    """Computes the dollars of the calls to these models; candidates may come in batches."""
    scorers: dict[Call, Meter] = {}
    first, second = models.scores
    for call, score in zip(_SCORING, (first, second), strict=True):
        scorer = None if score is None else _pricing_of_score(models, score, prices)
        if scorer is not None:
            scorers[call] = scorer
    own = _pricing(models.generator, models.base_url, prices)
    share = PRICE_SHARE if batch else 1.0
    return dataclasses.replace(own, scorers=scorers, price_share=share)


_SCORING: tuple[Call, Call] = ("score", "rescore")


def _pricing(spec: str, url: str | None, prices: Prices) -> Meter:
    """Computes the dollars of the calls to one model, named as a generator."""
    from ...backends.http.web import shown
    from ...runtime.prices import Meter, Server, model_of

    dialect = spec.partition(":")[0]
    if url is None and dialect in INTERFACES:
        url = os.environ.get(dialect_named(dialect).service.base_url) or None
    server = Server.of(spec, None if url is None else shown(url))
    return Meter(prices, model_of(spec), server)


def _pricing_of_score(models: Models, score: str, prices: Prices) -> Meter | None:
    """Computes the dollars of the calls to a model that scores; None if no model does."""
    from ...backends.http.web import shown
    from ...backends.scorers.judge import parse_judge
    from ...runtime.prices import Meter, Server

    name, _, argument = models.whole_score(score).partition(":")
    if name == "judge":
        dialect, model = parse_judge(argument)
        return _pricing(f"{dialect}:{model}", models.judge_url(score), prices)
    if name in REWARDS:
        url = reward_address(name, argument)[0]
        return Meter(prices, models.score_model or "", Server(url=shown(url)))
    return None


def with_guess(
    spending: Spending,
    pricing: Meter,
    problems: Sequence[Problem],
    options: BackendOptions,
) -> Spending:
    """The spending with a first guess of measured costs, and with the most that calls can cost.

    Both come from prices and prompts, if they are not given.
    """
    if not isinstance(spending.costs, Measured):
        return spending
    sampling = options.sampling
    limit = sampling.max_tokens or _usual_limit(options.models)
    sent = [_with_system(problem, sampling.system) for problem in problems]
    judging = _judging(options, sent, limit)
    if isinstance(spending.costs, FromPrices):
        guess = pricing.guess(sent, limit, judging.usual)
        if guess is None:
            raise UsageError(
                f"--costs measured: the price of {pricing.model or 'the generator'} is unknown:"
                " give a first guess, as in measured:0.001,0.01, or --prices FILE"
            )
        spending = dataclasses.replace(
            spending, costs=FromPrices(guess.generate, guess.verify, failure=guess.failure)
        )
    budgets = (spending.budget, spending.total_budget)
    has_budget = any(map(math.isfinite, budgets))
    first, second = options.models.scores
    again = _effort(options.models, second, sent)
    if has_budget and again is not None and spending.most_second is None:
        highest = pricing.highest_second(sent, limit, again)
        spending = dataclasses.replace(spending, most_second=highest)
    is_bounded = again is None or spending.most_second is not None
    if spending.most is None and has_budget and is_bounded:
        effort = _effort(options.models, first, sent)
        most = pricing.highest(sent, limit, effort, judging.highest)
        spending = dataclasses.replace(spending, most=most)
    return spending


@dataclass(frozen=True)
class _Judging:
    """What models cost that verify one candidate: usually, and at most if that is known."""

    usual: float = 0.0
    highest: float | None = 0.0


def _judging(options: BackendOptions, problems: Sequence[Problem], limit: int | None) -> _Judging:
    """What the models of the problems' checks cost for one candidate."""
    from ...backends.scorers.bounded import BYTES_PER_TOKEN
    from ...backends.verifiers.checks import WholeTextCheck, kinds_in, parse_check
    from ...backends.verifiers.judge import MOST_TOKENS

    if options.verifier is not None:
        return _Judging()
    prices = _prices(options)
    confirm = options.verification.confirm
    wrong = options.verification.wrong

    def highest(model: str, url: str | None, size: int) -> float | None:
        return _pricing(model, url, prices).highest_of_model(size, MOST_TOKENS)

    def usual(model: str, url: str | None, size: int) -> float | None:
        return _pricing(model, url, prices).usual_of_model(size, _USUAL_VERDICT)

    answer = BYTES_PER_TOKEN * (limit or 0)
    total = _Judging()
    for problem in problems:
        if not kinds_in(problem.check) & {"judge", "all", "first"}:
            continue
        check = parse_check(problem)
        if not isinstance(check.how, WholeTextCheck):
            continue
        errors = None if check.erring is None else check.erring.errors
        calls = 1 if errors is None else confirm.most_calls(errors, wrong)
        amount = check.how.dollars(highest, answer) if limit is not None else None
        most = None if amount is None or total.highest is None else calls * amount
        usually = check.how.dollars(usual, answer // 2) or 0.0
        total = _Judging(
            max(total.usual, usually),
            None if most is None or total.highest is None else max(total.highest, most),
        )
    return total


_USUAL_VERDICT = 20  # tokens


def _prices(options: BackendOptions) -> Prices:
    """The prices of the user's file, if there is one."""
    from ...runtime.prices import Prices

    spending: Spending | None = getattr(options, "spending", None)
    path = getattr(options, "prices", None) if spending is None else spending.prices
    return Prices() if path is None else Prices.load(path)


def judge_prices(options: BackendOptions) -> JudgePrices:
    """What models that judge cost, and the longest answer that a budget in dollars reserves."""
    from ...backends.scorers.bounded import BYTES_PER_TOKEN
    from ...backends.verifiers.judge_prices import JudgePrices

    prices = _prices(options)
    meters: dict[tuple[str, str | None], Meter] = {}

    def price(model: str, url: str | None, usage: Usage) -> float | None:
        if (model, url) not in meters:
            meters[model, url] = _pricing(model, url, prices)
        return meters[model, url].of_model(usage)

    spending: Spending | None = getattr(options, "spending", None)
    limit = options.sampling.max_tokens or _usual_limit(options.models)
    longest = None
    if spending is not None and isinstance(spending.costs, Measured) and limit is not None:
        budgets = (spending.budget, spending.total_budget)
        if any(map(math.isfinite, budgets)):
            longest = BYTES_PER_TOKEN * limit
    return JudgePrices(price, longest)


def _effort(models: Models, score: str | None, problems: Sequence[Problem]) -> Effort | None:
    """The most that a model does to score one candidate; None if no model does."""
    from ...backends.scorers.bounded import Effort
    from ...backends.scorers.judge import judge_effort, parse_judge

    name, _, argument = models.whole_score(score or "").partition(":")
    if name == "judge":
        return judge_effort(parse_judge(argument)[0])
    if name in REWARDS:
        system = len(models.reward.score_system.encode())
        question = max((len(problem.question.encode()) for problem in problems), default=0)
        step = len((models.score_step or "").encode())
        return Effort(own_bytes=system + question, candidate_factor=1 + step)
    return None


def _usual_limit(models: Models) -> int | None:
    """The most tokens of a candidate if --max-tokens does not say it; None if there is no limit."""
    return dialect_named(models.generator.partition(":")[0]).usual


def _longest_scored(options: BackendOptions) -> int | None:
    """The most bytes of a candidate that a model scores, if a budget reserves what that costs."""
    from ...backends.scorers.bounded import BYTES_PER_TOKEN

    spending: Spending | None = getattr(options, "spending", None)
    limit = options.sampling.max_tokens or _usual_limit(options.models)
    if spending is None or spending.most is None or not spending.most.score or limit is None:
        return None
    return BYTES_PER_TOKEN * limit


def _with_system(problem: Problem, system: str) -> Problem:
    return dataclasses.replace(problem, prompt=f"{system}{problem.prompt}") if system else problem


def check_measured(pricing: Meter, spending: Spending) -> None:
    """Refuse costs, prices and budgets that contradict each other, before any work."""
    prices = pricing.prices
    model = pricing.model
    costs = spending.costs
    measured = isinstance(costs, Measured)
    for flag, budget in (("--budget", spending.budget), ("--total-budget", spending.total_budget)):
        if isinstance(budget, Dollars) and not measured:
            raise UsageError(
                f"{flag} {budget:g}usd: dollars need --costs measured; a price list such as"
                f" {written_costs(costs)} has a unit of its own"
            )
    needed: list[Call] = ["generate"] if measured and not pricing.may_know else []
    if measured and spending.prices is not None and not isinstance(costs, FromPrices):
        needed.append("verify")
    for call in needed:
        if not prices.has(call, model):
            table = "a table for the model, or with " if call == "generate" else ""
            raise UsageError(
                f"measured costs need a price to {call}: give --prices FILE with {table}"
                f"{call}_second, {call}_minute or {call}_call in [other]"
            )
    if not measured and spending.most is not None:
        raise UsageError("--most needs --costs measured:G,V; a price list has fixed costs")
    budgets = (spending.budget, spending.total_budget)
    if measured and spending.most is None and any(map(math.isfinite, budgets)):
        judges = [scorer.model for scorer in pricing.scorers.values() if not scorer.has_price]
        also = f"; the price of {judges[0]}, which scores, is unknown" if any(judges) else ""
        raise UsageError(
            "a budget over measured costs needs --most G,V, the most that one candidate and one"
            " verification can cost: grv reserves it for calls in flight. For models with known"
            f" prices, also those that judge, --max-tokens N is enough{also}"
        )


def unprotected_lines(
    options: Verification, problems: Sequence[Problem], verifier: str | None = None
) -> list[str]:
    """One line for each way in which answers were verified without protection."""
    from ...backends.verifiers.command import is_command, unprotected

    if verifier is not None:
        return []  # the user's own; no check was run
    lines = []
    if commands := unprotected(problems):
        lines.append(f"unprotected: ran the commands of checks with your rights: {commands}")
    if options.isolation is Isolation.UNSAFE and not all(map(is_command, problems)):
        lines.append("unprotected: ran programs with your rights (--isolation unsafe)")
    return lines
