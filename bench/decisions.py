"""How long a decision takes: microseconds of `Search.ask`, policy and state machine together.

All candidates fail, so the pool grows. Decisions are timed one by one once the pool has the size
stated, with and without equivalence keys; the median, and the time that one in a hundred exceeds.
"""

from __future__ import annotations

import itertools
import json
import random
import statistics
import sys
import time
from collections.abc import Iterator

from grv.core.search import Policy, Search
from grv.core.values import Costs, Event, Generate, Generated, Stop, Verdict, Verified
from grv.policies import DEFAULT, Adaptive, Alternate, Balanced, Hedged, VerifyAll
from grv.policies.spec import spec

POLICIES: list[Policy] = [Alternate(), Balanced(), Hedged(), Adaptive(), VerifyAll()]
POLICIES += [DEFAULT] if DEFAULT not in POLICIES else []
COSTS = Costs(generate=1, verify=10)
TIMED = 2000  # decisions


def answers(search: Search, seed: int, *, keyed: bool) -> Iterator[float]:
    """Let a search run, all of whose candidates fail; seconds of each decision."""
    chance = random.Random(seed)
    while True:
        start = time.perf_counter()
        action = search.ask()
        yield time.perf_counter() - start
        event: Event
        match action:
            case Generate(n):
                keys = tuple(str(chance.randrange(10**5)) for _ in range(n)) if keyed else ()
                event = Generated(tuple(chance.random() for _ in range(n)), keys)
            case Stop():
                raise RuntimeError(f"the search has ended: {action}")
            case verify:
                event = Verified(dict.fromkeys(verify.ids, Verdict.FAILED))
        search.tell(event)


def microseconds(policy: Policy, pool: int, *, keyed: bool) -> dict[str, float]:
    """Of a decision, when the pool has at least so many candidates."""
    search = Search(policy, COSTS, width=1)
    decisions = answers(search, 0, keyed=keyed)
    while len(search.pool) < pool:
        next(decisions)
    taken = sorted(itertools.islice(decisions, TIMED))
    return {
        "median": round(1e6 * statistics.median(taken), 1),
        "one_in_a_hundred": round(1e6 * taken[-TIMED // 100], 1),
    }


def main() -> None:
    pools = (1000,) if "--quick" in sys.argv else (1000, 10_000, 100_000)
    figures = {
        spec(policy): {
            f"{pool}{' keyed' if keyed else ''}": microseconds(policy, pool, keyed=keyed)
            for pool, keyed in itertools.product(pools, (False, True))
        }
        for policy in POLICIES
    }
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
