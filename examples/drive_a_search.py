"""Drive a search by hand: a guesser, a noisy hint and an exact check, all on this machine.

The "model" guesses a three-digit code, the score is how many digits are right, badly counted, and
the verifier knows the code. The search never sees a guess, only its score.

Run it: python examples/drive_a_search.py
"""

import random

import grv

CODE = "407"


def main() -> None:
    chance = random.Random(1)
    search = grv.Search(grv.policies.Adaptive(), grv.Costs(generate=1, verify=10))
    guesses: list[str] = []
    while not isinstance(action := search.ask(), grv.Stop):
        match action:
            case grv.Generate(n):
                new = [f"{chance.randrange(1000):03}" for _ in range(n)]
                right = [sum(a == b for a, b in zip(guess, CODE, strict=True)) for guess in new]
                guesses += new
                search.tell(grv.Generated(tuple(count + chance.gauss(0, 0.5) for count in right)))
            case grv.Verify(ids):
                found = {id: guesses[id] == CODE for id in ids}
                verdicts = {
                    id: grv.Verdict.PASSED if right else grv.Verdict.FAILED
                    for id, right in found.items()
                }
                search.tell(grv.Verified(verdicts))
    for turn in search.trace:
        print(turn)
    assert search.outcome is not None
    assert search.outcome.answer is not None
    bill = search.outcome.bill
    print(f"{guesses[search.outcome.answer]} is right; cost {bill.total:g}: {bill.generated}")
    print(f"generated and {bill.verified} verified, where all {bill.generated} would have cost")
    print(f"{search.costs.of(bill.generated, bill.generated):g}")


if __name__ == "__main__":
    main()
