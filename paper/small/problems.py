r"""The problems of the small run: 20 of arithmetic, with answers in boxes, and 20 functions.

A model sees the first line of a function and its docstring. It never sees the tests.
"""

from __future__ import annotations

from typing import Any

_SUMS = [
    "17 + 25",
    "84 / 7",
    "12 * 11",
    "93 - 48",
    "7 * 8",
    "144 / 12",
    "56 + 78",
    "15 * 6",
    "101 - 37",
    "9 * 13",
    "250 / 5",
    "68 + 47",
    "14 * 14",
    "1000 - 389",
    "21 * 4",
    "96 / 8",
    "35 + 86",
    "19 * 5",
    "72 - 29",
    "16 * 12",
]
_EXAMPLES = "".join(
    f"Q: What is {sum_}?\nA: {sum_} = \\boxed{{{answer}}}\n\n"
    for sum_, answer in [("3 + 5", 8), ("20 - 6", 14), ("4 * 6", 24), ("30 / 5", 6)]
)

# The first line, the docstring, and tests: arguments, then the expected value.
_Tests = tuple[tuple[list[Any], Any], ...]
_FUNCTIONS: tuple[tuple[str, str, _Tests], ...] = (
    ("double(x)", "Return twice x.", (([3], 6), ([-2], -4))),
    ("add(a, b)", "Return the sum of a and b.", (([2, 3], 5), ([-1, 1], 0))),
    ("is_even(n)", "Return whether n is even.", (([4], True), ([7], False), ([0], True))),
    ("square(x)", "Return the square of x.", (([3], 9), ([-4], 16))),
    ("largest(numbers)", "Return the largest of the numbers.", (([[1, 5, 3]], 5), ([[-2]], -2))),
    ("total(numbers)", "Return the sum of the numbers.", (([[1, 2, 3]], 6), ([[]], 0))),
    ("reverse(text)", "Return the text backwards.", ((["abc"], "cba"), ([""], ""))),
    (
        "is_palindrome(text)",
        "Return whether the text reads the same backwards.",
        ((["abba"], True), (["abc"], False), ([""], True)),
    ),
    (
        "count_vowels(text)",
        "Return how many vowels (a, e, i, o, u) are in the text.",
        ((["banana"], 3), (["sky"], 0), (["education"], 5)),
    ),
    ("factorial(n)", "Return n factorial.", (([5], 120), ([0], 1), ([1], 1))),
    (
        "celsius(fahrenheit)",
        "Return the temperature in degrees Celsius.",
        (([32], 0), ([212], 100), ([-40], -40)),
    ),
    ("mean(numbers)", "Return the mean of the numbers.", (([[1, 2, 3]], 2), ([[5]], 5))),
    (
        "evens(numbers)",
        "Return a list of the even numbers.",
        (([[1, 2, 4]], [2, 4]), ([[3]], []), ([[0]], [0])),
    ),
    ("first_word(text)", "Return the first word.", ((["good day"], "good"), (["one"], "one"))),
    (
        "clamp(x, low, high)",
        "Return x, limited to low and high.",
        (([5, 0, 3], 3), ([-1, 0, 3], 0)),
    ),
    ("gcd(a, b)", "Return the greatest common divisor.", (([12, 18], 6), ([7, 5], 1))),
    (
        "is_prime(n)",
        "Return whether n is a prime number.",
        (([2], True), ([9], False), ([1], False), ([13], True)),
    ),
    (
        "fibonacci(n)",
        "Return the n-th Fibonacci number; fibonacci(0) is 0 and fibonacci(1) is 1.",
        (([0], 0), ([1], 1), ([10], 55)),
    ),
    ("digits_sum(n)", "Return the sum of the digits of n.", (([123], 6), ([9], 9), ([0], 0))),
    (
        "second_largest(numbers)",
        "Return the second largest of the different numbers.",
        (([[1, 5, 3]], 3), ([[2, 2, 1]], 1)),
    ),
)


def arithmetic(count: int) -> list[dict[str, Any]]:
    """The first problems of arithmetic."""
    made = []
    for sum_ in _SUMS[:count]:
        left, sign, right = sum_.split()
        a, b = int(left), int(right)
        answer = {"+": a + b, "-": a - b, "*": a * b, "/": a // b}[sign]
        check = {"kind": "math", "answer": str(answer), "match": "published"}
        prompt = f"{_EXAMPLES}Q: What is {sum_}?\nA:"
        made.append({"problem": sum_, "prompt": prompt, "check": check})
    return made


def functions(count: int) -> list[dict[str, Any]]:
    """The first problems of programming."""
    made = []
    for head, purpose, tests in _FUNCTIONS[:count]:
        name = head.partition("(")[0]
        prompt = f'def {head}:\n    """{purpose}"""'
        listed = [{"args": args, "expected": expected} for args, expected in tests]
        check = {"kind": "function", "entry_point": name, "prompt": prompt, "tests": listed}
        made.append({"problem": name, "prompt": prompt, "check": check})
    return made
