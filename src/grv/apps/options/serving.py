"""The options of `grv serve`, and the profiles that they stand for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from ...core.errors import UsageError
from ...core.limits import Limits
from ...core.values import Measured
from ...options import MOST, Family, option
from ...pace_options import PaceOptions
from ...policies import DEFAULT, POLICIES, spec
from ...runtime.options import Calls, Spending
from ...serve.completions.require import Require
from .live import (
    BackendOptions,
    backends_of,
    check_measured,
    check_policy,
    judge_prices,
    pricing_of,
    with_guess,
)

if TYPE_CHECKING:
    from ...backends.verifiers.options import Verification
    from ...backends.verifiers.pool import CheckVerifier
    from ...runtime.calls import Caller
    from ...serve.profiles import Profile


def parse_checks(given: Any) -> dict[str, Any]:
    """Named checks: one table each, with the fields of a problem's check."""
    if not isinstance(given, dict) or not all(isinstance(each, dict) for each in given.values()):
        raise UsageError("checks are tables, as in [checks.sum] with kind = ...")
    return given


@dataclass(frozen=True, kw_only=True)
class ProfileOptions(BackendOptions):
    """The options of one profile: what a model's name stands for."""

    TABLES: ClassVar[str] = "profiles"

    name: str = ""
    policy: str = option(
        "default",
        f"Decides when to generate and when to verify: {', '.join(POLICIES)}, or FILE.py:CLASS of"
        " your own.",
        metavar="SPEC",
        shown=spec.spec(DEFAULT),
        code=True,
    )
    width: int = option(4, "Verifications of a request in flight at once.", least=1, most=MOST)
    pacing: PaceOptions = field(default_factory=PaceOptions)
    checks: dict[str, Any] | None = option(
        None,
        "Checks that requests may name, one table each, as in [checks.sum].",
        job_only=True,
        tables=True,
        parse=parse_checks,
    )
    check: str | None = option(None, "The named check of requests that have none.", metavar="NAME")
    require: Require = option(
        Require.VERIFIED,
        "What requests accept that do not say so: a verified answer, or else the best candidate.",
    )
    spending: Spending = field(default_factory=Spending)
    join_histories: bool = option(
        False,
        "Let the policy learning learn from the requests of all clients together. Without it, what"
        " one client asks changes no bill of another.",
        "--join-histories",
    )

    @property
    def called(self) -> str:
        """The name of the profile: as given, or that of the generator."""
        if self.name:
            return self.name
        generator = self.models.generator
        return generator.partition(":")[2] or generator


@dataclass(frozen=True, kw_only=True)
class Listening(Family):
    """Where a server listens, and how much its clients may use at once."""

    host: str = option(
        "127.0.0.1", "The address to listen on. Other machines need --clients.", metavar="HOST"
    )
    port: int = option(8000, "The port to listen on; 0 takes a free one.", least=0, most=65535)
    clients: str | None = option(
        None,
        "A TOML file with the clients: hashes of their keys, budgets, profiles.",
        metavar="FILE",
    )
    connections: int = option(1024, "Connections at once.", least=1, most=100_000)
    address_connections: int | None = option(
        None,
        "Connections of one address at once; by default half of --connections. A proxy in front of"
        " the server is one address.",
        least=1,
        most=100_000,
    )
    request_mb: float = option(4, "Megabytes of a request.", metavar="MB", least=1e-3, most=64)
    client_mb: float = option(
        64,
        "Megabytes of requests in work and of unread responses of one client.",
        metavar="MB",
        least=1e-3,
        most=1 << 20,
    )
    slow: float = option(
        30,
        "Seconds that a client may take to send a request, or to read a part of a response.",
        metavar="S",
        least=0.01,
        most=3600,
    )
    grace: float = option(
        10,
        "Seconds that searches get to end when the server is told to stop. The rest is parked.",
        metavar="S",
        least=0,
        most=86_400,
    )


@dataclass(frozen=True, kw_only=True)
class Serving(Listening):
    """Where a server listens, what it records, and how much it does at once."""

    ledger: str = option(
        ...,
        "Where grv records what is paid for: a file, or postgresql://USER@HOST/DATABASE.",
        metavar="LEDGER",
    )
    searches: int = option(64, "Searches at once.", least=1, most=10_000)
    queue: int = option(
        256,
        "Searches of one client that wait for their turn. The client that has spent least is next,"
        " with the search that has cost it least.",
        least=0,
        most=100_000,
    )
    heartbeat: float = option(
        5, "The longest silence of a stream, in seconds.", metavar="S", least=0.01, most=3600
    )


def check_profiles(profiles: Sequence[ProfileOptions]) -> None:
    """Refuse profiles that contradict each other, before any work."""
    names = [each.called for each in profiles]
    if len(set(names)) < len(names):
        raise UsageError(f"two profiles have one name: {', '.join(names)}")
    totals = {each.spending.total_budget for each in profiles}
    if len(totals) > 1:
        raise UsageError("total-budget is for all profiles: give it at the top of the file")
    if len({isinstance(each.spending.costs, Measured) for each in profiles}) > 1:
        raise UsageError("measured costs are dollars: all profiles need them, or none")


@contextmanager
def profiles_of(options: Sequence[ProfileOptions], calls: Calls) -> Iterator[dict[str, Profile]]:
    """The profiles by name. Those with equal settings share their verifier's workers.

    With `--concurrency auto`, those with the same server share what it takes.
    """
    from ...runtime.calls import Caller
    from ...runtime.lanes import Lanes

    lanes = Lanes(calls) if calls.concurrency is None else None
    verifiers: dict[Verification, CheckVerifier] = {}
    with ExitStack() as stack:
        made = {}
        for profile in options:
            if profile.verifier is None and profile.verification not in verifiers:
                verifier = stack.enter_context(
                    profile.verification.verifier(prices=judge_prices(profile))
                )
                verifiers[profile.verification] = verifier
            try:
                made[profile.called] = _profile(
                    profile, verifiers, Caller(calls, lanes=lanes), stack
                )
            except UsageError as error:
                raise UsageError(_told(error, profile)) from error
        yield made


def _told(error: UsageError, profile: ProfileOptions) -> str:
    text = str(error).replace("problem [checks.", "[checks.")
    return text if text.startswith("profile ") else f"profile {profile.called}: {text}"


def _profile(
    options: ProfileOptions,
    verifiers: Mapping[Verification, CheckVerifier],
    caller: Caller,
    stack: ExitStack,
) -> Profile:
    from ...backends.by_name import reads_messages
    from ...learning.prior_file import parse_policy
    from ...runtime.config import within_workers
    from ...runtime.prices import Prices
    from ...serve.profiles import Profile, SearchPlan

    spending = options.spending
    models = options.models
    prices = Prices.load(spending.prices) if spending.prices is not None else Prices()
    pricing = pricing_of(models, prices)
    spending = with_guess(spending, pricing, (), options)
    check_measured(pricing, spending)
    policy = parse_policy(options.policy)
    check_policy(policy, models.score)
    verifier = None if options.verifier is not None else verifiers[options.verification]
    backends = stack.enter_context(backends_of(options, (), verifier))
    measured = isinstance(spending.costs, Measured)
    limits = Limits(
        budget=spending.budget,
        value=spending.value,
        width=options.width,
        pace=options.pacing.pace,
        cascade=spending.reserved(models.cascade),
        most=spending.most,
    )
    return Profile(
        options.called,
        backends,
        options.about,
        options.sampling,
        caller,
        SearchPlan(policy, spending.costs, within_workers(limits, backends.verifier)),
        checks=options.checks or {},
        check=options.check or "",
        require=options.require,
        own_verifier=options.verifier is not None,
        run_limits=options.verification.limits,
        chat=reads_messages(models.generator),
        meter=pricing if measured else None,
        pricing=pricing,
        joined=options.join_histories,
    )
