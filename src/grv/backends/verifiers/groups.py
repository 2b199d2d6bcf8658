"""Several checks as one: checks of kind "all" and "first".

`{"kind": "first", "checks": [{"kind": "schema", ..., "cost": 0}, {"kind": "human", ...}]}`. A
candidate passes if it passes every check. It fails at the first check that fails it; the rest do
not run. `first` runs the checks in the order of the list, `all` those first that have refuted most
per cost: the cheapest, before any has run.

A check that only compares texts (`schema`, `text`) refutes: what fails it is free. The finding
lists the checks that ran, with the cost of each, as its stages. A person decides last.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ...conditions import LEVELS, Conditions
from ...core.errors import UsageError
from ...core.values import Verdict
from ...files import is_number, shown
from ...text import checksum
from ..protocols import Finding, Problem, Stage, Usage, verified_part
from ..sandbox.limits import DEFAULT_LIMITS, Isolation, RunLimits
from .calibration import Erring
from .checks import GROUPS, MEMBER_COST, Check, WholeTextCheck, parse_check
from .suite import PaidStage, Suite, listed
from .worker_pair import WorkerPair

if TYPE_CHECKING:
    from .judge_prices import JudgePrices, RequestPrice

_MOST = 100  # checks in a group


@dataclass(frozen=True)
class GroupMember:
    """One check of a group.

    Attributes:
        kind: its kind.
        check: how it judges.
        cost: what one run of it costs, in dollars; None if the record does not say.
        name: its kind, with a number if an earlier check has the same kind.
    """

    kind: str
    check: Check
    cost: float | None
    name: str

    def once(self, text: str, pair: WorkerPair, seed: int) -> tuple[Finding, Stage]:
        """As `run`; a pass that was paid for is remembered, and not paid for again."""
        known = self.paid(pair, seed)
        if known is not None:
            return known.finding, known.stage
        finding, stage = self.run(text, pair, seed)
        is_paid = bool(stage.cost or finding.usage.completion_tokens)
        if is_paid and finding.verdict is Verdict.PASSED:
            pair.memory.add(PaidStage(self._run_name(seed), stage, finding.evidence))
        return finding, stage

    def paid(self, pair: WorkerPair, seed: int) -> PaidStage | None:
        """The stage, if the candidate in work has passed it and it was paid for."""
        return pair.memory.get(self._run_name(seed))

    def _run_name(self, seed: int) -> str:
        return f"{self.name}, run {seed}"

    def run(self, text: str, pair: WorkerPair, seed: int) -> tuple[Finding, Stage]:
        """The finding of as many runs as the check wants, and what they cost."""
        started = time.monotonic()
        runs = 0
        finding = Finding(Verdict.BROKEN)
        dollars: list[float] = []
        for number in range(self.check.repeat):
            runs += 1
            earlier = finding
            finding = self.check.how.judge(text, pair, seed + number)
            if finding.usage.dollars is not None:
                dollars.append(finding.usage.dollars)
            if finding.verdict is Verdict.BROKEN:
                break
            if number and finding.verdict is not earlier.verdict:
                finding = replace(finding, verdict=Verdict.FAILED, reason="disagreement")
                break
        if self.cost is not None:
            dollars.append(self.cost * runs)
        seconds = time.monotonic() - started
        cost = sum(dollars) if dollars else None
        return finding, Stage(self.name, finding.verdict, seconds, cost)


class MemberSuite(Suite):
    """The checks of a group: each has a name of its own."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__("check")
        self._names = list(names)

    def name(self, test: int) -> str:
        """The name of a check."""
        return self._names[test]

    def number(self, name: str) -> int | None:
        """The number of the check with this name."""
        return self._names.index(name) if name in self._names else None


@dataclass(frozen=True)
class GroupCheck(WholeTextCheck):
    """Passes a text that passes every check.

    Attributes:
        members: the checks, in the order in which they run at first.
        suite: finds a better order from what has run; None if the order is fixed.
    """

    is_limited: ClassVar[bool] = True

    members: tuple[GroupMember, ...]
    suite: MemberSuite | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, problem: Problem, limits: RunLimits = DEFAULT_LIMITS) -> GroupCheck:
        """The check of a problem; a UsageError names the check and the field that are wrong."""
        records = problem.check.get("checks")
        if not isinstance(records, list) or not records or len(records) > _MOST:
            said = "is missing" if records is None else f"must be a list of 1 to {_MOST} checks"
            raise UsageError(f"checks {said}")
        members: list[GroupMember] = []
        for number, record in enumerate(records):
            place = f"checks[{number}]"
            if not isinstance(record, Mapping):
                raise UsageError(f"{place} must be a record, not {shown(record)}")
            member = _member(place, record, problem, limits)
            same = sum(each.kind == member.kind for each in members)
            members.append(replace(member, name=f"{member.kind} {same + 1}") if same else member)
        people = [number for number, each in enumerate(members) if each.kind == "human"]
        if people and people != [len(members) - 1]:
            raise UsageError(f"checks[{people[0]}]: a person decides last; put this check last")
        suite = None
        if problem.check["kind"] == "all":
            members.sort(key=lambda each: (each.kind == "human", each.cost or 0.0))
            suite = MemberSuite([member.name for member in members])
        return cls(tuple(members), suite)

    def suites(self) -> Iterator[Suite]:
        """What orders the checks, and what orders the tests of each."""
        yield from super().suites()
        for member in self.members:
            yield from member.check.how.suites()

    def _order(self) -> Sequence[int]:
        """The numbers of the checks, in the order to run them. A person is asked last."""
        members = self.members
        if self.suite is None:
            return range(len(members))
        automatic = sum(each.kind != "human" for each in members)
        order = self.suite.order(automatic, [each.cost for each in members[:automatic]])
        return [*order, *range(automatic, len(members))]

    def judge(self, text: str, pair: WorkerPair, seed: int = 0) -> Finding:
        """The finding of the first check that does not pass it, or of the last one."""
        members = self.members
        ran: list[tuple[int, Stage]] = []
        verified: dict[str, Any] = {}
        finding = Finding(Verdict.BROKEN)
        try:
            # What is paid for comes first: what has run since may have changed the order.
            order = sorted(self._order(), key=lambda each: members[each].paid(pair, seed) is None)
            for number in order:
                member = members[number]
                # What follows the last check is the verdict, which is recorded itself.
                run = member.run if number == order[-1] else member.once
                finding, stage = run(text, pair, seed)
                ran.append((number, stage))
                if finding.verdict is not Verdict.PASSED:
                    break
                verified |= verified_part(finding.evidence)
        finally:  # a person's answer comes later, and what ran before has run
            if self.suite is not None:
                self.suite.note(ran)
        stages = [stage for _, stage in ran]
        evidence = {**verified, **finding.evidence, **listed(stages)}
        return replace(finding, evidence=evidence, usage=_usage(stages))

    @property
    def erring(self) -> Erring | None:
        """A candidate passes every check, so the group errs no more often than its surest one."""
        found = [each.check.erring for each in self.members]
        known = [each for each in found if each is not None]
        if len(known) < len(found):
            return None
        decide = [each for each in known if each.errors is not None]
        return min(decide or known, key=lambda each: each.errors.false_pass if each.errors else 1)

    def priced(self, prices: JudgePrices) -> Self:
        """The same checks, whose findings say what models cost."""
        return self._with(lambda how: how.priced(prices))

    def at_gym(self, address: str | None) -> Self:
        """The same checks, with the operator's resources server."""
        return self._with(lambda how: how.at_gym(address))

    def _with(self, changed: Callable[[WholeTextCheck], WholeTextCheck]) -> Self:
        members = []
        for member in self.members:
            how = member.check.how
            if isinstance(how, WholeTextCheck):
                check = replace(member.check, how=changed(how))
                member = replace(member, check=check)
            members.append(member)
        return replace(self, members=tuple(members))

    def dollars(self, price: RequestPrice, answer: int) -> float | None:
        """What all checks cost together."""
        total = 0.0
        for member in self.members:
            how = member.check.how
            own = how.dollars(price, answer) if isinstance(how, WholeTextCheck) else 0.0
            if own is None:
                return None
            total += (own + (member.cost or 0.0)) * member.check.repeat
        return total

    def conditions(self, digest: str, isolation: Isolation) -> Conditions:
        """Those of all checks together."""
        parts = [each.check.conditions(isolation) for each in self.members]
        whole = checksum(" ".join([digest, *(part.check for part in parts)]))
        levels = [part.isolation for part in parts]
        return Conditions(whole, max(part.judge for part in parts), max(levels, key=LEVELS.index))

    def key(self, text: str) -> str | None:
        """Texts fail together if they do so in every check."""
        keys = [each.check.how.key(text) for each in self.members]
        known = [key for key in keys if key is not None]
        return f"group:{checksum(' '.join(known))}" if len(known) == len(keys) else None

    def identity(self, text: str) -> str:
        """A checksum of what the checks look at."""
        return checksum(" ".join(each.check.how.identity(text) for each in self.members))

    def reading(self, text: str, verdict: Verdict) -> dict[str, str]:
        """How the checks read a text."""
        found: dict[str, str] = {}
        for member in self.members:
            found |= member.check.how.reading(text, verdict)
        return found

    def refutation(self, text: str) -> str | None:
        """Why one of the checks certainly fails a text."""
        for member in self.members:
            how = member.check.how
            reason = how.failure(text) if isinstance(how, WholeTextCheck) else how.refutation(text)
            if reason is not None:
                return f"{member.kind}: {reason}"
        return None


def _member(
    place: str, record: Mapping[str, Any], problem: Problem, limits: RunLimits
) -> GroupMember:
    if record.get("kind") in GROUPS:
        raise UsageError(f"{place}.kind must not be {record['kind']}: put its checks here")
    cost = record.get(MEMBER_COST)
    if cost is not None and not (is_number(cost) and cost >= 0):
        raise UsageError(f"{place}.cost must be a number and not negative, not {shown(cost)}")
    bare = {name: value for name, value in record.items() if name != MEMBER_COST}
    try:
        check = parse_check(replace(problem, check=bare), limits)
    except UsageError as error:
        said = str(error).removeprefix(f"problem {problem.id}, check")
        raise UsageError(f"{place}{said}") from None
    kind = str(record["kind"])
    return GroupMember(kind, check, cost, kind)


def _usage(stages: Sequence[Stage]) -> Usage:
    """What the stages used together; dollars only if one of them says its cost."""
    costs = [stage.cost for stage in stages if stage.cost is not None]
    seconds = sum(stage.seconds for stage in stages)
    return Usage(seconds=seconds, dollars=sum(costs) if costs else None)
