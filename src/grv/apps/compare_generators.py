"""`grv compare LOG --generator NAME=COST`: several generators, priced together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..comparing.settings import TableSettings
from ..core.errors import UsageError
from ..core.values import Costs, Measured
from ..logs.reading_options import Reading
from ..parsing import check_names, given_costs, parse_cascade
from ..policies.portfolio.shares import constants, root_shares
from .console import listed, progress, say, say_table

if TYPE_CHECKING:
    from ..comparing.portfolio import GeneratorComparison
    from ..core.search import Policy


def compare_by_generator(
    log: str,
    generators: Sequence[tuple[str, float]],
    settings: TableSettings,
    reading: Reading,
    score: str | None,
    json: str | None,
    csv: str | None,
    *,
    pairs: bool,
) -> None:
    """Compare portfolios, single generators and orders of them; print the table and advice."""
    verifying = _verifying(settings)
    if pairs or reading.rewards is not None or parse_cascade(score) is not None:
        raise UsageError("--pairs, --rewards and cascades do not apply with --generator")
    names = [name for name, _ in generators]
    check_names(names, "--generator")
    costs = {
        name: Costs(cost, verifying.verify, failure=verifying.failure) for name, cost in generators
    }
    with progress("comparing") as tell:
        from ..comparing.portfolio import compare_generators
        from ..logs.generators import read_generators

        policy = _policies(settings.policies, names)
        logged = read_generators(log, names, score=score, unlabelled=reading.unlabelled)
        logged = logged if reading.refute else logged.without_refutations()
        comparison = compare_generators(logged, costs, settings, policy=policy, progress=tell)
    if json is not None:
        comparison.save(json)
    if csv is not None:
        comparison.save_csv(csv)
    say(*_heading(comparison, log, verifying, settings), "")
    say_table(comparison.table())
    say("", *comparison.advice())


def _policies(given: Sequence[str], names: Sequence[str]) -> dict[str, Policy]:
    """The policy of each generator: `SPEC` for all, `NAME=SPEC` for one of them."""
    from ..learning.prior_file import parse_policy

    named = {}
    for text in given:
        name, _, spec = text.partition("=")
        named[name if name in names else ""] = spec if name in names else text
    if len(named) < len(given):
        raise UsageError("give one --policy for all generators, or one NAME=SPEC for each")
    return {name: parse_policy(named.get(name, named.get("", "default"))) for name in names}


def _verifying(settings: TableSettings) -> Costs:
    """The price list of which the costs to verify are used."""
    if len(settings.costs) != 1 or settings.costs[0] is None:
        raise UsageError(
            "give one --costs G,V[,F] with --generator: V and F are the costs to verify"
        )
    if isinstance(settings.costs[0], Measured):
        raise UsageError("measured costs do not apply with --generator: give --costs G,V")
    return settings.costs[0]


def _heading(
    found: GeneratorComparison, log: str, verifying: Costs, settings: TableSettings
) -> list[str]:
    """What was compared, and what was left out."""
    keys = "an answer that failed is refuted for all generators" if settings.keys else "no keys"
    prices = ", ".join(f"{name} {cost[0]:g}" for name, cost in found.settings["costs"].items())
    lines = [
        f"{log}: {len(found.problems)} problems; a candidate costs: {prices}; a verification costs"
        f" {verifying.verify:g}" + (f", a failure {verifying.failure:g}" * verifying.has_failure),
        f"{settings.orders} orders per problem (seed {settings.seed}), {keys}; ratios to"
        f" {found.settings['baseline']}",
    ]
    lists = {name: given_costs(cost) for name, cost in found.settings["costs"].items()}
    bounds = constants(root_shares(lists))
    limits = ", ".join(f"{bound:.1f} times {name} alone" for name, bound in bounds.items())
    lines.append(
        f"proven: portfolio costs at most {limits}; portfolio-learned twice that, with all"
        " candidates verified as they arrive"
    )
    if settings.answers > 1:
        lines.append(f"{settings.answers} different answers per problem")
    if found.left_out:
        lines.append(
            f"left out, solved by no generator ({len(found.left_out)}): {listed(found.left_out)}"
        )
    return lines
