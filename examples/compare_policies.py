"""What would each policy have cost? On the log that comes with grv.

Run it: python examples/compare_policies.py [LOG]
"""

import sys
from importlib import resources

import grv


def main() -> None:
    given = sys.argv[1] if len(sys.argv) > 1 else str(resources.files("grv") / "data/sample.csv")
    log = grv.Log.load(given)
    prices = [grv.Costs(generate=1, verify=verify) for verify in (1, 10, 100)]
    policies = ["adaptive", "verify-all", "fixed(64, 8)", "hindsight"]
    comparison = grv.compare(policies, log, prices, orders=20)
    print(comparison)


if __name__ == "__main__":
    main()
