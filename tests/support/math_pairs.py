r"""Pairs of a reference and an answer whose relation is known, made by machine.

Each family draws a value, writes it in two ways, or changes it so that it is certainly another one.
The same seed makes the same pairs.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Pair:
    """A reference, a candidate's text, and whether its answer is right."""

    family: str
    reference: str
    text: str
    right: bool


Draw = random.Random
Written = tuple[str, str, bool]  # reference, answer, whether they are equal


def _number(value: Fraction, draw: Draw) -> str:
    """A rational in one of its forms."""
    above, below = value.numerator, value.denominator
    sign = "-" if above < 0 else ""
    factor = draw.choice((1, 2, 3, 10))
    forms = [
        rf"{sign}\frac{{{abs(above) * factor}}}{{{below * factor}}}",
        rf"\dfrac{{{above}}}{{{below}}}",
        f"{above}/{below}",
    ]
    whole, rest = divmod(abs(above), below)
    if whole and rest:
        forms.append(rf"{sign}{whole}\frac{{{rest}}}{{{below}}}")
    if below == 1:
        forms += [str(above), f"{above}.0", f"{sign}{abs(above):,}"]
    if 100 % below == 0:
        forms.append(f"{float(value):.2f}")
    return draw.choice(forms)


def _rational(draw: Draw) -> Fraction:
    return Fraction(draw.randint(-400, 400), draw.randint(1, 60))


def numbers(draw: Draw) -> Written:
    value = _rational(draw)
    if draw.random() < 0.5:
        return _number(value, draw), _number(value, draw), True
    other = value + Fraction(1, draw.choice((1, 7, 10**6, 10**30)))
    return _number(value, draw), rf"\frac{{{other.numerator}}}{{{other.denominator}}}", False


def surds(draw: Draw) -> Written:
    a, b, n, k = (
        draw.randint(-9, 9),
        draw.randint(1, 9),
        draw.choice((2, 3, 5, 6, 7, 10)),
        draw.randint(1, 6),
    )
    reference = rf"{a}+{b * k}\sqrt{{{n}}}"
    equal = draw.choice(
        [
            rf"{b}\sqrt{{{n * k * k}}}+{a}",
            rf"\frac{{{2 * a}+{2 * b * k}\sqrt{{{n}}}}}{{2}}",
            rf"\frac{{{a * a - b * b * k * k * n}}}{{{a}-{b * k}\sqrt{{{n}}}}}",
            rf"{a}+\sqrt{{{b * b * k * k * n}}}",
        ]
    )
    equal = equal.replace("+-", "-")
    if draw.random() < 0.5:
        return reference, equal, True
    wrong = draw.choice(
        [
            rf"{a}-{b * k}\sqrt{{{n}}}",
            rf"{a}+{b * k}\sqrt{{{n}}}+10^{{-{draw.randint(5, 80)}}}",
            rf"{a}+{b}\sqrt{{{n * k * k + 1}}}",
            f"{a + b * k * n**0.5:.12f}",
        ]
    )
    return reference, wrong, False


def _product(polynomials: list[list[int]]) -> list[int]:
    """The coefficients of a product, lowest first."""
    result = [1]
    for polynomial in polynomials:
        longer = [0] * (len(result) + len(polynomial) - 1)
        for i, a in enumerate(result):
            for j, b in enumerate(polynomial):
                longer[i + j] += a * b
        result = longer
    return result


def _polynomial(coefficients: list[int], name: str = "x") -> str:
    terms = []
    for power, c in reversed(list(enumerate(coefficients))):
        if c:
            variable = "" if power == 0 else name if power == 1 else f"{name}^{{{power}}}"
            size = "" if abs(c) == 1 and power else str(abs(c))
            terms.append(f"{'-' if c < 0 else '+'}{size}{variable}")
    return "".join(terms).removeprefix("+") or "0"


def polynomials(draw: Draw) -> Written:
    factors = [
        [draw.randint(-9, 9) for _ in range(draw.randint(1, 2))] + [draw.randint(1, 4)]
        for _ in range(draw.randint(2, 4))
    ]
    expanded = _product(factors)
    written = "".join(f"({_polynomial(factor)})" for factor in factors)
    if draw.random() < 0.5:
        return _polynomial(expanded), written, True
    expanded[draw.randrange(len(expanded))] += draw.choice((-1, 1))
    return _polynomial(expanded), written, False


def rational_functions(draw: Draw) -> Written:
    a, b, c = draw.sample(range(-9, 10), 3)
    if draw.random() < 0.5:
        left = rf"\frac{{{b - c}}}{{(x+{b})(x+{c})}}".replace("+-", "-")
        right = rf"\frac{{1}}{{x+{c}}}-\frac{{1}}{{x+{b}}}".replace("+-", "-")
        return left, right, True
    left = rf"\frac{{x+{a}}}{{x+{b}}}".replace("+-", "-")
    return left, rf"\frac{{x+{c}}}{{x+{b}}}".replace("+-", "-"), False


def exponentials(draw: Draw) -> Written:
    p, k, m = draw.choice((2, 3, 5, 7)), draw.randint(2, 4), draw.randint(1, 5)
    right = draw.random() < 0.5
    shift = 0 if right else 1
    reference, answer = draw.choice(
        [
            (rf"{p}^{{{k}x+{m}}}", rf"{p**m + shift}\cdot {p**k}^x"),
            (rf"e^{{{k}x}}", rf"(e^x)^{{{k + shift}}}"),
            (rf"\ln {p**k}", rf"{k + shift}\ln {p}"),
            (rf"\log_{{{p}}}{{{p**k * 3}}}", rf"{k + shift}+\log_{{{p}}}3"),
            (rf"\frac{{\ln {p**k}}}{{\ln {p}}}", str(k + shift)),
            (rf"e^{{{k}\ln {p}}}", str(p**k + shift)),
            (rf"x^{{n+{k}}}", rf"x^{{n}}x^{{{k + shift}}}"),
        ]
    )
    return reference, answer, right


def trigonometry(draw: Draw) -> Written:
    k = draw.randint(2, 5)
    angle = draw.choice(["x", "t", "2x", r"\theta", "x+y"])
    right = draw.random() < 0.5
    sign, other = ("+", "-") if right else ("-", "+")
    reference, answer = draw.choice(
        [
            (rf"\sin^2({angle})", rf"1{other}\cos^2({angle})"),
            (rf"\sin(a{sign}b)", r"\sin a\cos b+\cos a\sin b"),
            (rf"\cos(a{other}b)", r"\cos a\cos b+\sin a\sin b"),
            (rf"\sin({k}x+{2 * k}\pi)", rf"{'' if right else '-'}\sin({k}x)"),
            (rf"\cos(x+{k}\pi)", rf"{'' if (k % 2 == 0) == right else '-'}\cos x"),
            (rf"\tan({angle})\cos({angle})", rf"{'' if right else '-'}\sin({angle})"),
            (r"\cos 2x", rf"1{other}2\sin^2 x"),
            (
                rf"\sin\frac{{\pi}}{{{4 * k + 4}}}\cos\frac{{\pi}}{{{4 * k + 4}}}",
                rf"\frac12\{'sin' if right else 'cos'}\frac{{\pi}}{{{2 * k + 2}}}",
            ),
            ("x", rf"x+\sin({2 * k}\pi x)" if not right else "x+0"),
        ]
    )
    return reference, answer, right


def absolute_values(draw: Draw) -> Written:
    c = draw.choice((1, 3, 100, 10**6, 10**20))
    k = draw.randint(2, 9)
    reference, answer, right = draw.choice(
        [
            (f"|x-{c}|", f"|{c}-x|", True),
            (f"|{k}x-{k * c}|", f"{k}|x-{c}|", True),
            (f"|x||x-{c}|", f"|x^2-{c}x|", True),
            (rf"\sqrt{{(x-{c})^2}}", f"|x-{c}|", True),
            (f"|x|^{{{2 * k}}}", f"x^{{{2 * k}}}", True),
            (rf"\max(x,{c})", rf"\frac{{x+{c}+|x-{c}|}}{{2}}", True),
            (f"|x-{c}|", f"x-{c}", False),
            (f"|x-{c}|", f"{c}-x", False),
            (rf"\sqrt{{(x-{c})^2}}", f"x-{c}", False),
            (f"|x+{c}|", f"|x|+{c}", False),
            (rf"\max(x,{c})", "x", False),
            (rf"\lfloor x+{c}\rfloor", rf"\lfloor x\rfloor+{c}", True),
            (rf"\lfloor x+{c}\rfloor", f"x+{c}", False),
        ]
    )
    return reference, answer, right


def _ray(low: int, closed: bool) -> tuple[str, str]:
    return (f"x\\ge {low}", f"[{low},\\infty)") if closed else (f"x>{low}", f"({low},\\infty)")


def intervals(draw: Draw) -> Written:
    a, b, c, d = sorted(draw.sample(range(-30, 31), 4))
    p, q = draw.choice("(["), draw.choice(")]")
    less, more = (r"\le " if p == "[" else "<"), (r"\le " if q == "]" else "<")
    reference, answer = draw.choice(
        [
            (f"{p}{a},{b}{q}", f"{a}{less}x{more}{b}"),
            (rf"{p}{a},{b}{q}\cup({c},{d})", rf"{c}<x<{d}\text{{ or }}{a}{less}x{more}{b}"),
            (rf"({a},{c})\cup({c},{d})", rf"({a},{d})\setminus\{{{c}\}}"),
            (f"({a},{c})", rf"({a},{b}]\cup({b},{c})"),
            (f"({b},{c})", rf"({a},{c})\cap({b},{d})"),
            (f"x\\ne {a}", rf"(-\infty,{a})\cup({a},\infty)"),
            _ray(a, p == "["),
            (f"({a},{b})", f"{2 * a}<2x<{2 * b}"),
            (
                f"({a - b},{a + b})" if b > 0 else f"({a + b},{a - b})",
                f"|x-{a}|<{abs(b)}".replace("--", "+"),
            ),
        ]
    )
    if abs(b) == 0:
        return f"({a},{c})", f"{a}<x<{c}", True
    if draw.random() < 0.5:
        return reference, answer, True
    changes = [("<", r"\le "), ("(", "["), (str(a), str(a + 1))]
    for old, new in draw.sample(changes, len(changes)):
        changed = answer.replace(old, new, 1)
        if (
            changed != answer
            and "setminus" not in answer
            and "cap" not in answer
            and "infty" not in answer
            and "cup(" not in answer
        ):
            return reference, changed, False
    return f"({a},{b})", f"({a},{b}]", False


def collections(draw: Draw) -> Written:
    values = [_rational(draw) for _ in range(draw.randint(2, 5))]
    mixed = draw.sample(values, len(values))
    listed = ", ".join(_number(value, draw).replace(",", "") for value in values)
    shuffled = ", ".join(_number(value, draw).replace(",", "") for value in mixed)
    changed = ", ".join(str(value) for value in [values[0] + 1, *values[1:]])
    choices = [
        (rf"\{{{listed}\}}", rf"\{{{shuffled}\}}", True),
        (listed, shuffled, True),
        (f"({listed})", f"({shuffled})", values == mixed),
        (
            rf"\{{{listed}\}}",
            rf"\{{{changed}\}}",
            sorted(values) == sorted([values[0] + 1, *values[1:]]),
        ),
        (f"({listed})", f"({changed})", False),
        (rf"\{{{listed}\}}", rf"\{{{listed}, 1000001\}}", False),
        (f"x={values[0]}, y={values[1]}", f"y={values[1]}, x={values[0]}", True),
        (f"x={values[0]}, y={values[1]}", f"y={values[0]}, x={values[1]}", values[0] == values[1]),
        (f"(x,y)=({values[0]},{values[1]})", f"({values[0]},{values[1]})", True),
        (f"({values[0]},{values[1]})", f"(y,x)=({values[0]},{values[1]})", values[0] == values[1]),
    ]
    return draw.choice(choices)


def matrices(draw: Draw) -> Written:
    entries = [_rational(draw) for _ in range(4)]

    def matrix(values: list[Fraction], kind: str) -> str:
        a, b, c, d = (_number(value, draw).replace(",", "") for value in values)
        return rf"\begin{{{kind}}}{a}&{b}\\{c}&{d}\end{{{kind}}}"

    if draw.random() < 0.5:
        return matrix(entries, "pmatrix"), matrix(entries, "bmatrix"), True
    at = draw.randrange(4)
    changed = [value + (index == at) for index, value in enumerate(entries)]
    return matrix(entries, "pmatrix"), matrix(changed, "pmatrix"), False


def units(draw: Draw) -> Written:
    n = draw.randint(2, 900)
    reference, answer, factor = draw.choice(
        [
            (r"{}\text{{ km}}", r"{}\text{{ m}}", 1000),
            (r"{}\text{{ hours}}", r"{}\text{{ minutes}}", 60),
            (r"{}\text{{ kg}}", r"{}\text{{ g}}", 1000),
            (r"\${}", r"{}\text{{ cents}}", 100),
            (r"{}\text{{ m}}^2", r"{}\text{{ cm}}^2", 10_000),
            (r"{}\text{{ cm}}", "{}", 1),
            (r"{}\%", r"\frac{{{}}}{{100}}", 1),
        ]
    )
    right = draw.random() < 0.5
    return reference.format(n), answer.format(n * factor + (0 if right else 1)), right


def counting(draw: Draw) -> Written:
    n = draw.randint(5, 20)
    k = draw.randint(2, n - 2)
    right = draw.random() < 0.5
    change = 0 if right else 1
    below = rf"\frac{{{n}!}}{{{k}!{n - k}!}}"
    value = math.comb(n, k)
    forms = [
        rf"\binom{{{n}}}{{{k}}}",
        below,
        f"C({n},{k})",
        rf"{{}}_{{{n}}}C_{{{k}}}",
        rf"C_{{{n}}}^{{{k}}}",
        rf"{{{n} \choose {k}}}",
        rf"\binom{{{n}}}{{{n - k}}}",
    ]
    return draw.choice(forms), str(value + change), right


def congruences(draw: Draw) -> Written:
    m, a, k = draw.randint(3, 40), draw.randint(0, 39), draw.randint(-5, 5)
    right = draw.random() < 0.5
    other = a + k * m + (0 if right else 1)
    return rf"x\equiv {a}\pmod{{{m}}}", rf"x\equiv {other}\pmod {{{m}}}", right


def periodic_families(draw: Draw) -> Written:
    m, k = draw.randint(2, 12), draw.randint(-3, 3)
    right = draw.random() < 0.5
    start = Fraction(1, m) + k + (0 if right else Fraction(1, 5 * m))
    reference = rf"\frac{{\pi}}{{{m}}}+k\pi, k\in\mathbb{{Z}}"
    return (
        reference,
        rf"x=\frac{{{start.numerator}\pi}}{{{start.denominator}}}+n\pi, n\in\mathbb{{Z}}",
        right,
    )


def constants(draw: Draw) -> Written:
    """Numbers that agree to many digits, and are not equal."""
    name, value = draw.choice(
        [(r"\pi", math.pi), ("e", math.e), (r"\sqrt{2}", math.sqrt(2)), (r"\ln 2", math.log(2))]
    )
    digits = draw.randint(2, 15)
    scale = draw.randint(2, 9)
    return draw.choice(
        [
            (name, f"{value:.{digits}f}", False),
            (rf"{scale}{name}", rf"{name}\cdot {scale}", True)
            if not name[0].isdigit()
            else (name, name, True),
            (rf"{scale}{name}+1", rf"1+\frac{{{2 * scale}{name}}}{{2}}", True),
            (rf"{name}", rf"{name}+10^{{-{digits * 5}}}", False),
            (r"\pi", r"\frac{355}{113}", False),
            (r"\sqrt{2}+\sqrt{3}", r"\pi", False),
            (rf"{scale}e-{digits}", f"{scale * 10.0**-digits:.{digits}f}", False),
        ]
    )


def equations(draw: Draw) -> Written:
    a, b, c, k = draw.randint(1, 9), draw.randint(1, 9), draw.randint(-9, 9), draw.randint(2, 5)
    right = draw.random() < 0.5
    change = 0 if right else 1
    return draw.choice(
        [
            (f"{a}x+{b}y={c}", f"{a * k}x+{b * k}y={c * k + change}", right),
            (f"y={a}x+{c}".replace("+-", "-"), f"{a}x-y={-c + change}", right),
            (f"x^2+y^2={a}", f"y^2={a + change}-x^2", right),
            (f"x(x+{a})={b}", str(b), False),
            (str(b), f"x(x+{a})={b}", False),
            (f"f(x)={a}x^2", f"{a + change}x^2", right),
            (f"m+n={a + b}", str(a + b + change), right),
        ]
    )


def words(draw: Draw) -> Written:
    a, b = draw.sample(["Alice", "Bob", "Carol", "Dave"], 2)
    return draw.choice(
        [
            (rf"\text{{{a} and {b}}}", rf"\text{{{b} and {a}}}", True),
            (rf"\text{{{a} and {b}}}", rf"\text{{{a} or {b}}}", False),
            (rf"\text{{{a}}}", a, True),
            (rf"\text{{{a}}}", b, False),
            (r"\textbf{(C) }12", "C", True),
            (r"\textbf{(C) }12", "12", True),
            (r"\textbf{(C) }12", r"\textbf{(B) }12", False),
        ]
    )


FAMILIES: dict[str, Callable[[Draw], Written]] = {
    family.__name__.replace("_", " "): family
    for family in (
        numbers, surds, polynomials, rational_functions, exponentials, trigonometry,
        absolute_values, intervals, collections, matrices, units, counting, congruences,
        periodic_families, constants, equations, words,
    )
}  # fmt: skip

STATEMENTS = {
    "English": [
        "The answer is {}.",
        "Therefore, the final answer is {}.",
        "**Answer:** {}",
        "#### {}",
        "So the result is {}.",
    ],
    "German": [
        "Die Antwort ist {}.",
        "Also lautet das Ergebnis {}.",
        "Antwort: {}",
        "Somit ist die Antwort {}.",
        "Die Lösung beträgt {}.",
    ],
    "French": [
        "La réponse est {}.",
        "Donc la réponse finale est {}.",
        "Réponse : {}",
        "Le résultat est donc {}.",
        "Ainsi, la solution est {}.",
    ],
    "Spanish": [
        "La respuesta es {}.",
        "Por lo tanto, la respuesta final es {}.",
        "Respuesta: {}",
        "El resultado es {}.",
        "Entonces la solución es {}.",
    ],
    "Russian": [
        "Ответ: {}.",
        "Таким образом, ответ: {}.",
        "Ответ — {}",
        "Следовательно, ответ равен {}.",
        "Правильный ответ: {}",
    ],
    "Chinese": [
        "答案是{}。",
        "因此，答案为{}。",
        "答案：{}",
        "所以最终答案是 {}。",
        "故答案为：{}",
    ],
    "Japanese": [
        "答えは{}です。",
        "したがって、答えは{}である。",
        "答え：{}",
        "よって答えは {} となります。",
        "正解は{}です。",
    ],
}


def statements(draw: Draw) -> Pair:
    """A statement in one of seven languages; perhaps another one before it."""
    language = draw.choice(list(STATEMENTS))
    value = draw.randint(2, 99)
    stated = value + draw.choice((0, 0, 1))
    form = draw.choice(["{}", "${}$", r"\({}\)", r"\boxed{{{}}}", r"$\boxed{{{}}}$"])
    text = draw.choice(STATEMENTS[language]).format(form.format(stated))
    if draw.random() < 0.5:
        other = draw.choice(STATEMENTS[draw.choice(list(STATEMENTS))])
        text = other.format(f"${draw.randint(2, 99)}$") + "\n\n" + text
    return Pair(f"statements: {language}", str(value), text, stated == value)


def boxes(draw: Draw) -> Pair:
    """Several boxes in one sentence, and boxes in earlier sentences."""
    values = draw.sample(range(2, 99), draw.randint(2, 12))
    listed = ", ".join(rf"$\boxed{{{value}}}$" for value in values)
    reference = ", ".join(map(str, draw.sample(values, len(values))))
    return draw.choice(
        [
            Pair("boxes", reference, f"The solutions are {listed}.", True),
            Pair("boxes", reference, rf"First \boxed{{1}}. The solutions are {listed}.", True),
            Pair("boxes", str(values[-1]), f"The solutions are {listed}.", False),
            Pair("boxes", ", ".join(map(str, values[1:])), f"The solutions are {listed}.", False),
            Pair("boxes", str(values[-1]), ". Then ".join(rf"\boxed{{{v}}}" for v in values), True),
            Pair("boxes", str(values[0]), ". Then ".join(rf"\boxed{{{v}}}" for v in values), False),
        ]
    )


def pairs(seed: int, each: int) -> Iterator[Pair]:
    """`each` pairs of every family."""
    for name, family in FAMILIES.items():
        draw = random.Random(f"{seed} {name}")
        for _ in range(each):
            reference, answer, right = family(draw)
            yield Pair(name, reference, rf"So $\boxed{{{answer}}}$.", right)
    draw = random.Random(f"{seed} statements")
    for _ in range(3 * each):
        yield statements(draw)
        yield boxes(draw)
