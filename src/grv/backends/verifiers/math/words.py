"""The words that answers may contain: units, counted nouns, numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

Dimension = tuple[tuple[str, int], ...]  # base units with their powers, sorted; () is a number


@dataclass(frozen=True, slots=True)
class Unit:
    """A factor and base units: 1 km is 1000 of ("m", 1)."""

    factor: Fraction
    dimension: Dimension


NO_UNIT = Unit(Fraction(1), ())
PERCENT = Unit(Fraction(1, 100), (("%", 1),))
DEGREE = Unit(Fraction(1), (("degree", 1),))
CURRENCIES = {
    rf"\{name}": Unit(Fraction(1), ((name, 1),)) for name in ("dollar", "euro", "sterling")
}

_UNITS = {  # base unit: names of the base unit, then names with their factors
    "m": (
        "m meter meters metre metres",
        "mm millimeter millimeters millimetre millimetres=1/1000 "
        "cm centimeter centimeters centimetre centimetres=1/100 dm decimeter decimeters=1/10 "
        "km kilometer kilometers kilometre kilometres=1000 in inch inches=127/5000 "
        "ft foot feet=381/1250 yd yard yards=1143/1250 mi mile miles=201168/125",
    ),
    "g": (
        "g gram grams",
        "mg milligram milligrams=1/1000 kg kilogram kilograms kilo kilos=1000 ton tons=907185 "
        "tonne tonnes=1000000 oz ounce ounces=45359237/1600000 lb lbs pound pounds=45359237/100000",
    ),
    "s": (
        "s sec secs second seconds",
        "ms millisecond milliseconds=1/1000 min mins minute minutes=60 h hr hrs hour hours=3600 "
        "day days=86400 week weeks=604800",
    ),
    "month": ("month months", "year years yr yrs=12 decade decades=120"),
    "liter": (
        "l liter liters litre litres",
        "ml milliliter milliliters millilitre millilitres=1/1000 gallon gallons=473176473/125000000"
        " quart quarts=473176473/500000000 cup cups=473176473/2000000000",
    ),
    "dollar": ("dollar dollars usd buck bucks", "cent cents penny pennies=1/100"),
    "joule": ("joule joules", "kj=1000"),
    "watt": ("watt watts", "kw=1000"),
    "hertz": ("hertz hz", "khz=1000"),
}
_SIMPLE_UNITS = """
    euro euros eur, rupee rupees, yen, peso pesos, degree degrees deg, radian radians rad rads,
    celsius, fahrenheit, newton newtons, volt volts, ohm ohms, ampere amperes amp amps,
    mole moles mol, kelvin kelvins, byte bytes, bit bits, acre acres
"""
_NOUN_LIST = """
    animal answer apple arrangement arrow bag ball balloon banana bead bean bike bird block
    board boat book bottle bowl box boy bracelet brick bus cake calorie candle candy car card
    case cat cell chair chicken child children chip chocolate choice circle class coin color
    colour combination configuration cookie counterexample cow crayon cube customer dice digit
    divisor dog doll donut duck edge egg element employee equation face factor family fish
    flower friend fruit function game girl glass goal goat grape grid group guest hat head horse
    house integer intersection item jar kid lap leg lemon letter line loaf loaves man mango
    marble match meal member men message monkey muffin number nut object orange orchid ordering
    page painting paper parrot part path peach pear pen pencil people permutation person phone
    photo picture pie piece pig pizza plant plate player point polygon polynomial position
    possibilities possibility potato potatoes prime prize problem question rabbit rectangle
    region ribbon ring room rope rose round row sandwich seat segment sequence set sheep shell
    shirt shoe side slice solution song spider staff stamp star step sticker stone straw string
    student subset sweet table teacher team term ticket tile toy tree triangle triple tuple turn
    vertex vertices video visitor vote way window woman women word worker
"""
NOUNS = frozenset(_NOUN_LIST.split())
_MULTIPLIERS = {
    "dozen": 12, "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9,
    "trillion": 10**12, "lakh": 10**5, "crore": 10**7,
}  # fmt: skip
_ADJECTIVES = frozenset({"distinct", "different", "possible", "such", "total"})
_SMALL = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_TERM = re.compile(r"([a-z]+)(?:\^(-?[1-4]))?")
_POWERS = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}


def _table() -> dict[str, Unit]:
    table: dict[str, Unit] = {}
    for simple in map(str.split, _SIMPLE_UNITS.split(",")):
        table |= dict.fromkeys(simple, Unit(Fraction(1), ((simple[0], 1),)))
    for base, (names, others) in _UNITS.items():
        groups = [(names, "1")] + [
            (group, factor) for group, factor in re.findall(r"([a-z ]+)=([0-9/]+)", others)
        ]
        for group, factor in groups:
            for name in group.split():
                table[name] = Unit(Fraction(factor), ((base, 1),))
    table["percent"] = table["pct"] = PERCENT
    return table


_TABLE = _table()
WORDS = frozenset(_TABLE) | frozenset(_MULTIPLIERS) | {"sq", "cu", "per", "mph", "kph"}


def unit_of(words: str) -> tuple[int, Unit] | None:
    """The multiplier and the unit in a phrase such as `million dollars`; None if unknown.

    >>> unit_of("square meters"), unit_of("million miles per hour")[0]
    ((1, Unit(factor=Fraction(1, 1), dimension=(('m', 2),))), 1000000)
    """
    if re.search(r"\b(?!L\b)[A-Z]{1,2}\b", words):  # 5 M and 5 MM are millions, not meters
        return None
    text = words.casefold().strip(" .").replace("per cent", "percent")
    first, _, rest = text.partition(" ")
    multiplier = _MULTIPLIERS.get(first, 1)
    text = rest if first in _MULTIPLIERS else text
    text = {"mph": "mile/hour", "kph": "km/hour"}.get(text, text)
    if not text:
        return multiplier, NO_UNIT
    above, *below = re.split(r" ?/ ?| per ", text)
    unit = _product(above)
    for part in below:
        other = _product(part)
        if unit is None or other is None:
            return None
        inverse = tuple((name, -power) for name, power in other.dimension)
        unit = Unit(unit.factor / other.factor, _merged(unit.dimension, inverse))
    return None if unit is None else (multiplier, unit)


def _product(text: str) -> Unit | None:
    """A product of units, with powers before or after them."""
    product = NO_UNIT
    power = 1
    *before, last = re.split("[ *]+", text.strip())
    for word in before:
        if word in _POWERS and power == 1:
            power = _POWERS[word]
        elif word not in _ADJECTIVES:
            one = _one(word, power)
            if one is None:
                return None
            product = _times(product, one)
            power = 1
    one = _one(last, power)
    return None if one is None else _times(product, one)


def _times(a: Unit, b: Unit) -> Unit:
    return Unit(a.factor * b.factor, _merged(a.dimension, b.dimension))


def _one(word: str, power: int) -> Unit | None:
    term = _TERM.fullmatch(word)
    if term is None or (term[2] and power != 1):
        return None
    name = term[1]
    power = int(term[2] or power)
    if name in {"unit", "units"}:
        return NO_UNIT
    if name in _TABLE:
        unit = _TABLE[name]
        return Unit(unit.factor**power, tuple((base, n * power) for base, n in unit.dimension))
    for noun in (name, name.removesuffix("s"), name.removesuffix("es")):
        if noun in NOUNS and power == 1:
            return Unit(Fraction(1), ((noun, 1),))
    return None


def _merged(some: Dimension, others: Dimension) -> Dimension:
    powers = dict(some)
    for name, power in others:
        powers[name] = powers.get(name, 0) + power
    return tuple(sorted((name, power) for name, power in powers.items() if power))


def number_of(words: str) -> int | None:
    """The number below a hundred that the words name; None if they name none.

    >>> number_of("twenty-five"), number_of("Negative Seven"), number_of("five hundred")
    (25, -7, None)
    """
    text = words.casefold().strip(" .").replace("-", " ")
    sign = 1
    rest = text
    for negative in ("negative ", "minus "):
        if text.startswith(negative):
            sign = -1
            rest = text.removeprefix(negative)
    tens, _, ones = rest.partition(" ")
    if rest in _SMALL:
        return sign * _SMALL.index(rest)
    if tens in _TENS and (not ones or ones in _SMALL[1:10]):
        return sign * (20 + 10 * _TENS.index(tens) + (_SMALL.index(ones) if ones else 0))
    return None
