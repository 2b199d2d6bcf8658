"""The proof that the adaptive policy costs at most 400 J*, step by step (Theorem 4.2, appendix C).

The paper's letters: c_rew and c_ver are the costs of a candidate and of a verification, c_min the
smaller. q_t is the probability of scoring at least t, and s_t that of scoring at least t and
passing; J_t is the cost of verifying all candidates that score at least t. The pair (a, b) rounds
q_t to 2^-a and s_t to 2^-b; B is the cost of 2^b candidates and 2^(b-a) verifications, and s* the
shell that contains the pair (`shells.py`). Shell s generates m_s candidates, verifies k_s of them
and costs Lambda_s. Shell s* + u, if it is reached, fails with probability at most rho_u.

These parts hold in a stronger form than the paper states:

* 2^b and 6 2^j are whole numbers, so the ceilings in m_s and k_s change nothing. Without them
  Lambda_s is below 16 2^s c_min, not 20, and the mean in Lemma C.5 is at most 2 2^(b-a+u), not 3.
* B < 4 J_t strictly, because s_t < 2^(1-b) strictly.
* Shell 0 is always empty: the smallest pair costs c_rew + c_ver, at least 2 c_min. From the shell
  of that pair on, no shell is empty (Lemma C.4).
* Gamma is 2.78, not 4, and the chance to reach shell s* + u is at most the product of
  rho_0 ... rho_(u-1), not only the last factor. With 16 and 2.78 the bound is 242 J*.

The proof leaves out one case: if a <= 1, k_u is larger than m_u. Lemma C.3 needs at most as many
verifications as candidates, so Lemma C.5 must use it with min(k_u, m_u). Nothing else changes. The
proof assumes that each shell is paid for in full, so it holds for any `width` of a search.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...core.errors import UsageError
from ...core.values import Costs
from ..optimum import Law, Tail, optimum, tail, threshold_cost
from ..shells import Shell, shell_number, shells


class DyadicPair(NamedTuple):
    """The dyadic scales (a, b) of a threshold."""

    a: int
    b: int

    def later(self, u: int) -> DyadicPair:
        """(a, b + u): the same share of verifications at 2^u times the cost."""
        return DyadicPair(self.a, self.b + u)


def dyadic_pair(q: float, s: float) -> DyadicPair:
    """Lemma C.2: the a and b with 2^(-a-1) < q <= 2^-a and 2^-b <= s < 2^(1-b); a <= b.

    Exact for every float, powers of two included.
    """
    if not 0 < s <= q <= 1:
        raise UsageError(f"needs 0 < s <= q <= 1, not q={q}, s={s}")
    # frexp writes x as f 2^e with 1/2 <= f < 1, so that 2^(e-1) <= x < 2^e.
    fraction, exponent = math.frexp(q)
    a = 1 - exponent if fraction == 0.5 else -exponent
    return DyadicPair(a, 1 - math.frexp(s)[1])


def pair_cost(pair: DyadicPair, costs: Costs) -> float:
    """Lemma C.2: B = c_rew 2^b + c_ver 2^(b-a), for which J_t <= B < 4 J_t."""
    return costs.of(2**pair.b, 2 ** (pair.b - pair.a))


def success_of_best(chances: Sequence[float], k: int) -> float:
    """The chance that one of the first k passes, given the chance of each, best-ranked first.

    Lemma C.3: if h is non-decreasing, it grows with the pool and with k.
    """
    return 1 - math.prod(1 - h for h in chances[:k])


def matching_shell(pair: DyadicPair, costs: Costs, u: int = 0) -> Shell:
    """Shell s* + u, u shells after the one that contains the pair.

    Lemma C.4: it contains (a, b + u), so m >= 2^(b+u+1) and k >= 6 2^(b-a+u).
    """
    number = shell_number(pair.b, pair.b - pair.a, costs) + u
    return next(shell for shell in shells(costs) if shell.s == number)


def fresh_failure(q: float, s: float, m: int, k: int) -> float:
    """The chance that, of m new candidates, more than k score at least t or none of these passes.

    Lemma C.5 bounds this probability. It is computed exactly, as a binomial sum over the number of
    candidates that score at least t; each of them passes with probability s / q.
    """
    if q == 1:
        return (1 - s) ** m if m <= k else 1.0
    fails = 1 - s / q
    return math.fsum(
        chance * (fails**n if n <= k else 1.0) for n, chance in enumerate(_binomial(m, q))
    )


def failure_bound(u: int) -> float:
    """Lemma C.5: rho_u = exp(-2^(u+1)) + exp(-2^u), whatever the earlier shells found."""
    return math.exp(-(2 ** (u + 1))) + math.exp(-(2**u))


def shell_cost(shell: Shell, costs: Costs) -> float:
    """Lambda_s = c_rew m_s + c_ver k_s, the highest cost of a shell."""
    return costs.of(shell.draws(), shell.checks())


def shell_cost_bound(shell: Shell) -> float:
    """Lemma C.6: Lambda_s <= 20 2^s c_min."""
    return 20 * shell.low


def tail_sum() -> float:
    """Lemma C.8: Gamma = 1 + sum over u >= 1 of 2^u rho_(u-1), at most 4.

    The sum stops when the terms vanish; the rest is below 1e-300.
    """
    terms = (math.ldexp(failure_bound(u - 1), u) for u in itertools.count(1))
    return 1 + math.fsum(itertools.takewhile(bool, terms))


class ChainLink(NamedTuple):
    """One term of a chain of inequalities."""

    name: str
    value: float


@dataclass(frozen=True)
class Chain:
    """Lemma C.7, with the numbers of one threshold.

    Attributes:
        tail: q_t and s_t.
        threshold_cost: J_t.
        pair: (a, b).
        pair_cost: B.
        shell: the matching shell, s*.
        before: the sum of Lambda_s over the shells before s*.
        onward: the sum over u of Lambda at s* + u times the product of rho_0 ... rho_(u-1).
    """

    tail: Tail
    threshold_cost: float
    pair: DyadicPair
    pair_cost: float
    shell: Shell
    before: float
    onward: float

    @property
    def expected_cost(self) -> float:
        """The bound on the expected cost before any constant is rounded up."""
        return self.before + self.onward

    @property
    def links(self) -> tuple[ChainLink, ...]:
        """The terms of the chain, in order; none is smaller than the one before it."""
        scale = self.shell.low
        return (
            ChainLink("before + onward", self.expected_cost),
            ChainLink("20 (1 + Gamma) 2^s* c_min", 20 * (1 + tail_sum()) * scale),
            ChainLink("100 2^s* c_min", 100 * scale),
            ChainLink("100 B", 100 * self.pair_cost),
            ChainLink("400 J_t", 400 * self.threshold_cost),
        )


def fixed_threshold_bound(law: Law, t: float, costs: Costs) -> Chain:
    """Lemma C.7: the adaptive policy costs at most 400 J_t, for any t; with the value of each step.

    >>> law = Law(scores=(0, 1), masses=(3, 1), passes=(0.0, 0.5))
    >>> chain = fixed_threshold_bound(law, 1, Costs(generate=1, verify=10))
    >>> chain.pair, chain.shell.s
    (DyadicPair(a=2, b=3), 4)
    >>> for name, value in chain.links:
    ...     print(f"{name:26} {value:6.0f}")
    before + onward               422
    20 (1 + Gamma) 2^s* c_min    1208
    100 2^s* c_min               1600
    100 B                        2800
    400 J_t                     11200
    """
    _check_monotone(law)
    chosen = tail(law, t)
    if not chosen.s:
        raise UsageError(f"no candidate that scores at least {t} ever passes")
    pair = dyadic_pair(*chosen)
    shell = matching_shell(pair, costs)
    earlier = itertools.takewhile(lambda each: each.s < shell.s, shells(costs))
    later = itertools.dropwhile(lambda each: each.s < shell.s, shells(costs))
    return Chain(
        tail=chosen,
        threshold_cost=threshold_cost(law, t, costs),
        pair=pair,
        pair_cost=pair_cost(pair, costs),
        shell=shell,
        before=math.fsum(shell_cost(each, costs) for each in earlier),
        onward=math.fsum(
            reached * shell_cost(each, costs)
            for reached, each in zip(_chances_to_reach(), later, strict=False)
        ),
    )


def adaptive_bound(law: Law, costs: Costs) -> float:
    """Theorem 4.2: the adaptive policy costs at most 400 J* if h is non-decreasing.

    A law whose h decreases somewhere is refused: it violates Assumption 4.1. J* is that of the law
    itself, so an easy problem has a low bound (Remark 4.3).
    """
    _check_monotone(law)
    return 400 * optimum(law, costs).cost


def _chances_to_reach() -> Iterator[float]:
    """Bounds on the chance to reach shell s* + u, for u = 0, 1, ... until they vanish."""
    reached = 1.0
    for u in itertools.count():
        if not reached:
            return
        yield reached
        reached *= failure_bound(u)


def _binomial(m: int, q: float) -> Iterator[float]:
    """The probabilities of 0, 1, ... m successes in m trials, each of probability q < 1."""
    for n in range(m + 1):
        ways = math.lgamma(m + 1) - math.lgamma(n + 1) - math.lgamma(m - n + 1)
        yield math.exp(ways + n * math.log(q) + (m - n) * math.log1p(-q))


def _check_monotone(law: Law) -> None:
    if any(low > high for low, high in itertools.pairwise(law.passes)):
        raise UsageError("the guarantee needs chances of passing that do not decrease with score")
