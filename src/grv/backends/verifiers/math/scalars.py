r"""Reads values: sums, products, powers, roots, functions, in LaTeX or plain.

This is the one place that decides what a product, a name, a function and `e` are:

- Side by side is a product: `x(x-1)`, `2\pi r`, `3!7!`, `2^{3}5`, `2^3\frac12`. After the letters
  f, g, h, F, G, H, P and Q a bracket holds arguments.
- A whole number just before a proper fraction of numbers is a mixed number: `3\frac12`.
- `e` is Euler's number: `2e-1` is 2e minus 1. `2e5`, `2E-1` and `1.5e-05` are powers of ten.
- Bars: the first bar after an operand closes, unless none is open.

A text with two readings raises `Ambiguous`, which names both: `1/2x`, `\sin(x)^2`, `3\frac52`,
`5!!`, `1.5e-3`, `|2|x|+1|`. Other text raises `Unreadable`: `x2`, `\sqrt12`. The parser is a
recursive descent of limited depth.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from .tree import Call, Degrees, Name, Number, Power, Product, Scalar, Sum

_DEEPEST = 40  # nested brackets
_LONGEST_NUMBER = 1_000  # digits
_LARGEST_EXPONENT = 4_000  # in the notation 1.5e10
_LONGEST_RUN = 3  # letters in a row that are variables; more are a word

_TOKEN = re.compile(
    r"(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:E[+-]?[0-9]+|e[0-9]+|e[+-]0[0-9]+)?"
    r"|\\text\{[^{}]*\}|\\(?:begin|end)\{[a-zA-Z]*\*?\}"
    r"|\\[A-Za-z]+|\\\\|\\[{}]"
    r"|(?:sqrt|arcsin|arccos|arctan|sinh|cosh|tanh|sin|cos|tan|cot|sec|csc|log|lg|ln|exp|max|min|gcd|lcm"
    r"|pi|inf(?:inity|ty)?)(?![A-Za-z])"
    r"|[A-Za-z]| |[-+*/^_=<>|!%(){}\[\],;:&']"
)
_FUNCTIONS = frozenset({
    "sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan", "ln", "exp", "log",
    "lg",
    "sinh", "cosh", "tanh",
})  # fmt: skip
_GREEK = frozenset({
    "alpha", "beta", "gamma", "delta", "epsilon", "varepsilon", "zeta", "eta", "theta", "kappa",
    "lambda", "mu", "nu", "xi", "rho", "sigma", "tau", "phi", "varphi", "chi", "psi", "omega",
})  # fmt: skip
FUNCTION_LETTERS = frozenset("fghFGHPQ")  # f(x) is a value of f, never f times x
_SEVERAL = frozenset({"max", "min", "gcd", "lcm"})  # functions of several arguments
_INVERSES = {"sin": "arcsin", "cos": "arccos", "tan": "arctan"}
_CHOOSING = {"C": "binomial", "P": "permutations", "A": "permutations"}
_INDEXED_CHOICE = re.compile(
    r"_(?:([0-9])|\{([0-9]{1,4})\})\^(?:([0-9])(?![0-9])|\{([0-9]{1,4})\})"
    r"|\^(?:([0-9])|\{([0-9]{1,4})\})_(?:([0-9])(?![0-9])|\{([0-9]{1,4})\})"
    r"|\(([0-9]{1,4}),([0-9]{1,4})\)"
)
_TWO_SCALES = re.compile(r"[0-9]*\.[0-9]+e[+-][1-9][0-9]*|[0-9]*\.[0-9]+e[+-]0(?![0-9])")
_TIMES = frozenset({"*", r"\cdot", r"\times"})
_OVER = frozenset({"/", r"\div"})
_NO_FACTOR = _TIMES | _OVER | {r"\rfloor", r"\rceil", r"\over", r"\choose", r"\rabs"}
_MINUS_ONE = Number(Fraction(-1))
_HALF = Number(Fraction(1, 2))


class Unreadable(Exception):
    """The text is not understood, or ambiguous."""


class Ambiguous(Unreadable):
    """The text has two readings."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"two readings, {first} and {second}")


def tokens_of(text: str) -> list[str]:
    """The text as numbers, commands, letters and signs; `Unreadable` if it has any other sign."""
    number = _TWO_SCALES.search(text)
    if number:
        mantissa, _, exponent = number[0].partition("e")
        raise Ambiguous(f"{mantissa}*10^({exponent})", f"{mantissa}*e{exponent}")
    tokens = []
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise Unreadable(f"{text[at]!r} is not understood")
        tokens.append(token.group())
        at = token.end()
    return tokens


def read_scalar(tokens: Sequence[str]) -> Scalar:
    """The tree of one expression; `Unreadable` if it is ambiguous or not understood."""
    run = 0
    for token in tokens:
        run = run + 1 if len(token) == 1 and token.isalpha() else 0
        if run > _LONGEST_RUN:
            raise Unreadable("a word in a formula")
    reader = _Reader(list(tokens))
    scalar = reader.expression()
    if reader.tokens:
        raise Unreadable(f"{reader.tokens[0]!r} was not expected")
    return scalar


def negative(scalar: Scalar) -> Scalar:
    """Minus the scalar."""
    return Number(-scalar.value) if isinstance(scalar, Number) else Product((_MINUS_ONE, scalar))


class _Reader:
    """Consumes tokens from the front; spaces only separate numbers and letters."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self._all = list(tokens)
        self._first = tokens[0] if tokens else ""
        self._depth = 0
        self._bars = 0  # that are open
        self._follows_binomial = -1  # a place just after a binomial coefficient
        self._takes_number = False  # whether a number may follow the last factor

    def _next(self) -> str:
        return self.tokens[0] if self.tokens else ""

    def _take(self, expected: str | None = None) -> str:
        if not self.tokens or (expected is not None and self.tokens[0] != expected):
            raise Unreadable(f"{expected or 'something'} was expected")
        return self.tokens.pop(0)

    def _place(self) -> int:
        return len(self._all) - len(self.tokens)

    def _text(self, start: int, end: int | None = None) -> str:
        return "".join(self._all[start : self._place() if end is None else end])

    def _skip_space(self) -> None:
        if self._next() == " ":
            self._take()

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise Unreadable("brackets inside brackets")

    def expression(self) -> Scalar:
        """Terms with + and - between them."""
        self._enter()
        sign = self._take() if self._next() in {"+", "-"} else "+"
        if sign == "+" and self._depth == 1 and self._first == "+" and self._next().isalpha():
            raise Unreadable("a plus sign before a letter")
        terms = [self._term() if sign == "+" else negative(self._term())]
        while self._next() in {"+", "-"}:
            sign = self._take()
            terms.append(self._term() if sign == "+" else negative(self._term()))
        self._depth -= 1
        return terms[0] if len(terms) == 1 else Sum(tuple(terms))

    def _term(self) -> Scalar:
        """Factors, with signs between them or side by side."""
        start = self._place()
        factors = [self._factor()]
        divided = -1
        bars = [self._text(start, start + 1)]
        while True:
            self._skip_space()
            token = self._next()
            if token in _TIMES or token in _OVER:
                self._take()
                divided = self._place() if token in _OVER else -1
                bars.clear()
                minus = self._next() == "-"
                if minus:
                    self._take()
                factor = self._factor()
                factor = negative(factor) if minus else factor
                factors.append(Power(factor, _MINUS_ONE) if divided >= 0 else factor)
            elif self._starts_factor(token):
                if divided >= 0:
                    above = self._text(start, divided - 1)
                    below = self._text(divided)
                    raise Ambiguous(f"{above}/({below}{token}...)", f"({above}/{below}){token}...")
                if token == "|" and "|" in bars and bars[-1] != "|":
                    raise Ambiguous("a product with two absolute values", "one inside another")
                bars.append(token)
                factors.append(self._factor())
            else:
                return factors[0] if len(factors) == 1 else Product(tuple(factors))

    def _starts_factor(self, token: str) -> bool:
        """Whether a factor follows without a sign; most numbers there are ambiguous."""
        if token[:1].isdigit() or token[:1] in {".", "{"}:
            if self._takes_number and token[:1].isdigit():
                return True
            raise Unreadable("a number on the right of a product")
        if token == "|":
            return self._bars == 0
        return bool(token) and (
            token.isalpha()
            or token in {"(", "["}
            or (token[0] == "\\" and token[1:].isalpha() and token not in _NO_FACTOR)
        )

    def _factor(self) -> Scalar:
        """An atom with its exponents and factorials."""
        start = self._place()
        scalar = self._atom()
        raised = False
        self._takes_number = self._follows_binomial == self._place()
        while self._next() in {"^", "!"}:
            if self._take() == "!":
                if self._next() == "!":
                    before = self._text(start).removesuffix("!")
                    raise Ambiguous(f"({before}!)!", f"the double factorial of {before}")
                if raised:
                    raise Unreadable("a factorial with two readings")
                scalar = Call("factorial", (scalar,))
                self._takes_number = True
            elif self.tokens[:3] == ["{", r"\circ", "}"]:
                del self.tokens[:3]
                scalar = Degrees(scalar)
            elif raised:
                raise Unreadable("two exponents")
            else:
                may_take = self._next() == "{" or self._next().isalpha()
                scalar = Power(scalar, self._exponent())
                raised = True
                self._takes_number = may_take
        return scalar

    def _exponent(self) -> Scalar:
        """The exponent after a caret; towers are right-associative."""
        self._enter()
        if self._next() == "-":
            self._take()
            exponent = negative(self._exponent())
            self._depth -= 1
            return exponent
        if self._next() == "{":
            exponent = self._group("{", "}")
        elif self._next()[:1].isdigit():
            exponent = self._number(self._take(), may_be_mixed=False)
        else:
            exponent = self._atom()
        if self._next() == "^":
            self._take()
            exponent = Power(exponent, self._exponent())
        self._depth -= 1
        return exponent

    def _group(self, opening: str, closing: str) -> Scalar:
        self._take(opening)
        bars = self._bars
        self._bars = 0
        inside = self.expression()
        if opening == "{" and self._next() == r"\over":
            self._take()
            inside = Product((inside, Power(self.expression(), _MINUS_ONE)))
        elif opening == "{" and self._next() == r"\choose":
            self._take()
            inside = Call("binomial", (inside, self.expression()))
        self._take(closing)
        self._bars = bars
        return inside

    def _atom(self) -> Scalar:
        self._skip_space()
        token = self._take()
        if token[0].isdigit() or token[0] == ".":
            return self._number(token)
        if token == "{" and self.tokens[:1] == ["}"] and self.tokens[1:2] in (["^"], ["_"]):
            del self.tokens[:2]
            return self._chosen()
        if token in {"(", "[", "{"}:
            self.tokens.insert(0, token)
            return self._group(token, {"(": ")", "[": "]", "{": "}"}[token])
        if token == "|" or token == r"\labs":
            bars = self._bars
            self._bars = 1 if token == "|" else 0
            inside = self.expression()
            self._take("|" if token == "|" else r"\rabs")
            self._bars = bars
            return Call("abs", (inside,))
        if token in {"^", "_"}:
            return self._chosen()
        name = token.removeprefix("\\")
        if name in _FUNCTIONS:
            self._enter()
            function = self._function(name)
            self._depth -= 1
            return function
        if name in _SEVERAL:
            return Call(name, self._arguments())
        if name == "pi":
            return Name("pi")
        if len(token) == 1 and token.isalpha():
            return self._name(token)
        if token[0] == "\\" and name in _GREEK:
            return self._name(name)
        match token:
            case r"\frac":
                return Product((self._argument(), Power(self._argument(), _MINUS_ONE)))
            case r"\binom":
                return self._binomial()
            case r"\sqrt":
                return self._root()
            case "sqrt":
                self._skip_space()
                plain = self._next().isdigit()
                return Power(self._number(self._take()) if plain else self._argument(), _HALF)
            case r"\lfloor":
                return self._rounded("floor", r"\rfloor")
            case r"\lceil":
                return self._rounded("ceiling", r"\rceil")
        raise Unreadable(f"{token!r} is not understood")

    def _chosen(self) -> Scalar:
        """`{}_{5}C_{2}`, after the first sign: combinations or permutations."""
        above = self._argument()
        letter = self._take()
        if letter not in {"C", "P"}:
            raise Unreadable("an index without a letter")
        self._take("_")
        return Call(_CHOOSING[letter], (above, self._argument()))

    def _indexed_choice(self, letter: str) -> Scalar | None:
        """`C_{5}^{2}`, `C(5,2)` and `P(5,2)`; None, with nothing taken, if it is none of these."""
        found = _INDEXED_CHOICE.match("".join(self.tokens[:9]))
        if found is None:
            return None
        numbers = [group for group in found.groups() if group]
        n, k = map(int, reversed(numbers) if self._next() == "^" else numbers)
        if k > n or (letter == "A" and self._next() == "("):
            return None
        end = found.end()
        while end > 0:
            end -= len(self._take())
        return Call(_CHOOSING[letter], (Number(Fraction(n)), Number(Fraction(k))))

    def _number(self, token: str, *, may_be_mixed: bool = True) -> Scalar:
        mantissa, _, exponent = token.lower().partition("e")
        if len(mantissa) > _LONGEST_NUMBER or abs(int(exponent[:9] or 0)) > _LARGEST_EXPONENT:
            raise Unreadable("a number that is too long")
        value = Fraction(mantissa) * Fraction(10) ** int(exponent or 0)
        if self.tokens[:1] in (["C"], ["P"]) and self.tokens[1:2] and self.tokens[1].isdigit():
            letter = self._take()
            return Call(_CHOOSING[letter], (Number(value), Number(Fraction(self._take()))))
        is_mixed = may_be_mixed and token.isdigit()
        return Number(value + self._proper_fraction(token) if is_mixed else value)

    def _proper_fraction(self, whole: str) -> Fraction:
        r"""The `\frac{1}{2}` or ` 1/2` of a mixed number, which is consumed; otherwise 0."""
        start = self.tokens[:8]
        plain = len(start) > 3 and start[0] == " " and start[1].isdigit() and start[2] == "/"
        latex = start[:1] == [r"\frac"] or start[:2] == [" ", r"\frac"]
        if plain:
            above = start[1]
            below = start[3]
            taken = 4
        elif latex:
            self._skip_space()
            start = self.tokens[:7]
            if start[1:2] == ["{"] and start[3:5] == ["}", "{"] and start[6:] == ["}"]:
                above = start[2]
                below = start[5]
                taken = 7
            elif len(start) > 1 and start[1].isdigit() and len(start[1]) == 2:
                above = start[1][0]
                below = start[1][1]
                taken = 2
            else:
                return Fraction(0)
        else:
            return Fraction(0)
        if not (above.isdigit() and below.isdigit()):
            return Fraction(0)
        if not 0 < int(above) < int(below):
            raise Ambiguous(f"{whole}+{above}/{below}", f"{whole}*{above}/{below}")
        del self.tokens[:taken]
        return Fraction(int(above), int(below))

    def _arguments(self) -> tuple[Scalar, ...]:
        """Arguments in brackets, with commas between them."""
        self._skip_space()
        opening = self._take()
        closing = {"(": ")", r"\{": r"\}", "{": "}"}.get(opening)
        if closing is None:
            raise Unreadable("arguments were expected")
        bars = self._bars
        self._bars = 0
        arguments = [self.expression()]
        while self._next() == ",":
            self._take()
            arguments.append(self.expression())
        self._take(closing)
        self._bars = bars
        return tuple(arguments)

    def _name(self, name: str) -> Scalar:
        if name in _CHOOSING:
            choice = self._indexed_choice(name)
            if choice is not None:
                return choice
        if self._next() == "_":
            self._take()
            name += "_" + "".join(self._subscript())
        while self._next() == "'":
            name += self._take()
        if self._next() == "(" and name[0] in FUNCTION_LETTERS:
            return Call(name, self._arguments())
        return Name(name)

    def _subscript(self) -> list[str]:
        if self._next() != "{":
            return [self._take()]
        end = self.tokens.index("}") if "}" in self.tokens else 0
        inside = self.tokens[1:end]
        self.tokens = self.tokens[end + 1 :]
        if not inside or not all(token.isalnum() for token in inside):
            raise Unreadable("a subscript")
        return inside

    def _argument(self) -> Scalar:
        r"""The argument of a command: a group, or one digit, letter or command."""
        self._skip_space()
        token = self._next()
        if token == "{":
            return self._group("{", "}")
        if token == "(":
            return self._group("(", ")")
        if token.isdigit():
            self._take()
            if len(token) > 1:
                self.tokens.insert(0, token[1:])
            return Number(Fraction(int(token[0])))
        if token == "pi" or token == r"\pi" or (len(token) == 1 and token.isalpha()):
            return self._atom()
        raise Unreadable("an argument was expected")

    def _binomial(self) -> Scalar:
        binomial = Call("binomial", (self._argument(), self._argument()))
        self._follows_binomial = self._place()
        return binomial

    def _root(self) -> Scalar:
        if self._next() == "[":
            degree = self._group("[", "]")
            return Power(self._argument(), Power(degree, _MINUS_ONE))
        return Power(self._argument(), _HALF)

    def _rounded(self, function: str, closing: str) -> Scalar:
        inside = self.expression()
        self._take(closing)
        return Call(function, (inside,))

    def _function(self, name: str) -> Scalar:
        exponent = None
        base = None
        if name == "log" and self._next() == "_":
            self._take()
            base = self._argument()
        if self._next() == "^":
            self._take()
            exponent = self._exponent()
            if exponent == _MINUS_ONE and name in _INVERSES:
                name = _INVERSES[name]
                exponent = None
            elif not (isinstance(exponent, Number) and exponent.value > 0):
                raise Unreadable("the inverse of a function, or one over it")
        arguments = (self._function_argument(),)
        if name == "lg":
            base = Number(Fraction(10))
        call = Call("log_base", (base, *arguments)) if base is not None else Call(name, arguments)
        return call if exponent is None else Power(call, exponent)

    def _function_argument(self) -> Scalar:
        self._skip_space()
        if self._next() in {"(", "{", "["}:
            opening = self._next()
            inside = self._group(opening, {"(": ")", "{": "}", "[": "]"}[opening])
            if self._next() in {"^", "!"}:
                raise Ambiguous("a power of a function", "a power of its argument")
            return inside
        first = self._factor()
        self._skip_space()
        factors = [first]
        while isinstance(first, Number) and self._next() and self._next() not in {"(", "["}:
            if self._next().removeprefix("\\") in _FUNCTIONS or not self._starts_factor(
                self._next()
            ):
                break
            factors.append(self._factor())
            self._skip_space()
        self._takes_number = False
        starts = self._next() and self._next() != "|" and self._starts_factor(self._next())
        if starts and self._next().removeprefix("\\") not in _FUNCTIONS:
            raise Unreadable("a product after a function")
        return factors[0] if len(factors) == 1 else Product(tuple(factors))
