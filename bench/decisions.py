"""How long a decision takes: microseconds of `Search.ask`, policy and state machine together.

Processor time, so that other work on the machine hardly shows; its load is stated all the same.

All candidates fail, so the pool grows. Decisions are timed one by one once the pool has the size
stated, with and without equivalence keys; the median, and the time that one in a hundred exceeds.
For `learned` also with tied scores, and up to 10,000 candidates; its prior is learned here, from
made-up problems.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from grv.core.search import Policy, Search
from grv.core.values import Costs, Event, Generate, Generated, Stop, Verdict, Verified
from grv.learning.fit import prior_of
from grv.learning.history import History, past
from grv.learning.prior_file import load_prior
from grv.policies import DEFAULT, Adaptive, Alternate, Balanced, Hedged, Learned, VerifyAll
from grv.policies.spec import spec
from grv.testing.worlds import population

POLICIES: list[Policy] = [Alternate(), Balanced(), Hedged(), Adaptive(), VerifyAll()]
POLICIES += [DEFAULT] if DEFAULT not in POLICIES else []
COSTS = Costs(generate=1, verify=10)
TIMED = 200 if "--quick" in sys.argv else 2000  # decisions


def answers(search: Search, seed: int, *, keyed: bool, tied: bool) -> Iterator[float]:
    """Let a search run, all of whose candidates fail; seconds of each decision."""
    digits = 1 if tied else 12
    chance = random.Random(seed)
    while True:
        start = time.process_time()
        action = search.ask()
        yield time.process_time() - start
        event: Event
        match action:
            case Generate(n):
                keys = tuple(str(chance.randrange(10**5)) for _ in range(n)) if keyed else ()
                scores = tuple(round(chance.gauss(0, 1), digits) for _ in range(n))
                event = Generated(scores, keys)
            case Stop():
                raise RuntimeError(f"the search has ended: {action}")
            case verify:
                event = Verified(dict.fromkeys(verify.ids, Verdict.FAILED))
        search.tell(event)


def microseconds(policy: Policy, pool: int, *, keyed: bool, tied: bool = False) -> dict[str, float]:
    """Of a decision, when the pool has at least this number of candidates."""
    search = Search(policy, COSTS)
    decisions = answers(search, 0, keyed=keyed, tied=tied)
    while len(search.pool) < pool:
        next(decisions)
    taken = sorted(itertools.islice(decisions, TIMED))
    return {
        "median": round(1e6 * statistics.median(taken), 1),
        "one_in_a_hundred": round(1e6 * taken[-TIMED // 100], 1),
    }


def learned(pools: tuple[int, ...]) -> dict[str, dict[str, float]]:
    """The same for the policy that goes by history; where scores are tied, the prior says so."""
    log = population("math", problems=30, candidates=128)
    plain = prior_of(History.of(past(log), log.score, [log.path]))
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for pool, keyed, tied in itertools.product(pools, (False, True), (False, True)):
            prior = dataclasses.replace(plain, votes=float(keyed), tie=0.5 if tied else 1.0)
            path = Path(folder, "prior.json")
            path.write_text(prior.to_text())
            name = f"{pool}{' tied' * tied}{' keyed' * keyed}"
            found[name] = microseconds(Learned(load_prior(str(path))), pool, keyed=keyed, tied=tied)
    return found


def main() -> None:
    pools = (100,) if "--quick" in sys.argv else (1000, 10_000, 100_000)
    figures: dict[str, dict[str, Any]] = {
        spec(policy): {
            f"{pool}{' keyed' if keyed else ''}": microseconds(policy, pool, keyed=keyed)
            for pool, keyed in itertools.product(pools, (False, True))
        }
        for policy in POLICIES
    }
    figures["learned"] = learned(pools[:2])
    figures["load"] = {"1 minute": round(os.getloadavg()[0], 1), "processors": os.cpu_count()}
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
