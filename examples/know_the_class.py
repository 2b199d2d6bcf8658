"""A class of concepts: its star number, the search that uses it, and what the theorem promises.

Run it: python examples/know_the_class.py
"""

import numpy as np

import grv
from grv.comparing import stream
from grv.theory import Law, binary_optimum, of_rows, search_bound, star_number

# Four kinds of answers, told apart by their score. Which kinds are right depends on the problem;
# but kind 2 is right whenever kind 0 is, and never together with kind 3.
CONCEPTS = ("1010", "0010", "0001", "0101", "1110")


def main() -> None:
    star = star_number(of_rows(CONCEPTS))
    print(f"star number {star.number}: points {star.points}, concepts {star.concepts}")

    costs = grv.Costs(generate=1, verify=20)
    law = Law(scores=(0, 1, 2, 3), masses=(5, 4, 0.5, 0.5), passes=(0, 0, 1, 0))
    least = binary_optimum(law.pass_rate, costs)
    chance = np.random.default_rng(0)
    for policy in (grv.policies.CenteredStar(" ".join(CONCEPTS)), grv.policies.VerifyAll()):
        spent = [stream(policy, law, costs, chance).bill.total for _ in range(300)]
        print(f"{type(policy).__name__}: {np.mean(spent) / least:.2f} times the optimum")
    print(f"proved: at most {search_bound(star.upper, costs):g} times")


if __name__ == "__main__":
    main()
