"""Scalars written back in LaTeX that has one reading, for whoever else is to compare them."""

from __future__ import annotations

from fractions import Fraction

from .tree import Call, Degrees, Name, Number, Power, Product, Scalar, Sum


def render(scalar: Scalar) -> str:
    """The scalar in LaTeX that has one reading."""
    match scalar:
        case Number(value):
            sign, whole = "-" if value < 0 else "", abs(value)
            if whole.denominator == 1:
                return f"({sign}{whole})" if sign else str(whole)
            return rf"({sign}\frac{{{whole.numerator}}}{{{whole.denominator}}})"
        case Name("pi"):
            return r"\pi "
        case Name(name):
            head, _, subscript = name.partition("_")
            shown = head if len(head.rstrip("'")) == 1 else rf"\{head} "
            return f"{shown}_{{{subscript}}}" if subscript else shown
        case Sum(terms):
            return "(" + "+".join(map(render, terms)) + ")"
        case Product((above, Power(below, Number(value)))) if value == -1:
            return rf"(\frac{{{render(above)}}}{{{render(below)}}})"
        case Product(factors):
            return "(" + r" \cdot ".join(map(render, factors)) + ")"
        case Power(Number(base), Power(Number(degree), Number(value))) if (
            base < 0 and value == -1 and degree.denominator == 1 and degree % 2
        ):  # the real root, as we read it
            return rf"(-\sqrt[{degree}]{{{render(Number(-base))}}})"
        case Power(base, Number(value)) if value == Fraction(1, 2):
            return rf"\sqrt{{{render(base)}}}"
        case Power(base, Number(value)) if value == -1:
            return rf"\frac{{1}}{{{render(base)}}}"
        case Power(base, Power(degree, Number(value))) if value == -1:
            return rf"\sqrt[{render(degree)}]{{{render(base)}}}"
        case Power(base, exponent):
            return f"({render(base)})^{{{render(exponent)}}}"
        case Degrees(amount):
            return rf"({render(amount)} \cdot \frac{{\pi}}{{180}})"
        case Call("factorial", (argument,)):
            return f"({render(argument)})!"
        case Call("binomial", (above, below)):
            return rf"\binom{{{render(above)}}}{{{render(below)}}}"
        case Call("abs", (argument,)):
            return f"|{render(argument)}|"
        case Call("floor", (argument,)):
            return rf"\lfloor {render(argument)} \rfloor "
        case Call("ceiling", (argument,)):
            return rf"\lceil {render(argument)} \rceil "
        case Call("log_base", (base, argument)):
            return rf"\log_{{{render(base)}}}({render(argument)})"
        case Call(function, arguments):
            return rf"\{function}({render(arguments[0])})"
