"""More kinds of values, for `asserts` checks: a test compares them as Python does.

    ["T", name, part, ...]    a type of the standard library, by the parts in `STANDARD`
    ["N", name, fields, value, ...]            a named tuple
    ["S", name, fields, options, value, ...]   an instance of a dataclass
    ["e", base, name, members, member]         an enum's member; a flag's has a number
    ["X", name, bases, args, text, attributes] an exception
    ["y", name]               a type, or one of the constants `...` and `NotImplemented`
    ["M", items, type, shape] an array of numpy's
    ["K" "V" "I", ...]        keys, values and items of a dictionary
    ["k" "g" "j" "w" "A", number, name]   a function, generator, iterator, coroutine or asynchronous
                              generator: it stays with the candidate, which the test asks for values
    ["O", number, name, methods]   an object of the candidate's own class, which stays too
                              (objects.py), as does a class ["C", number, name]
    ["&", number, tag, ...]   a list, dictionary or set that occurs again, as ["*", number]

Only data is sent. A class that the test or the prompt defines is used again, if it has the same
name and the same fields; otherwise a class without methods is made. So no code of a candidate
reaches the test.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import keyword
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import (
    AsyncGeneratorType,
    BuiltinFunctionType,
    CoroutineType,
    FunctionType,
    GeneratorType,
    MethodType,
)
from typing import Any, NamedTuple

from . import objects, plain
from .plain import PlainError, made

_DTYPE = re.compile(r"[<|>=][biufcU]\d+\Z")
_LONGEST_NAME = 200
_LONGEST_TEXT = 1000
_ENUMS = ("IntFlag", "Flag", "IntEnum", "StrEnum", "Enum")  # subclasses first
_CONSTANTS = {"Ellipsis": ..., "NotImplemented": NotImplemented}
_CACHED = type(functools.lru_cache(lambda: None))
_FUNCTIONS = (FunctionType, BuiltinFunctionType, MethodType, functools.partial, _CACHED)
_COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
_GENERATED = "<string>"  # the file of the methods that `dataclass` generates
_LAZY = (map, filter, zip, enumerate)
_VIEWS = {"K": type({}.keys()), "V": type({}.values()), "I": type({}.items())}
_TYPES = (
    "bool",
    "bytearray",
    "bytes",
    "complex",
    "dict",
    "float",
    "frozenset",
    "int",
    "list",
    "object",
    "range",
    "set",
    "slice",
    "str",
    "tuple",
    "type",
)
_EXCEPTIONS = frozenset(
    {
        *(f"asyncio.{name}" for name in ("InvalidStateError", "QueueEmpty", "QueueFull")),
        "binascii.Error",
        "configparser.Error",
        "configparser.NoOptionError",
        "configparser.NoSectionError",
        "copy.Error",
        "csv.Error",
        "dataclasses.FrozenInstanceError",
        *(f"decimal.{name}" for name in ("DecimalException", "DivisionByZero", "Inexact")),
        *(f"decimal.{name}" for name in ("InvalidOperation", "Overflow", "Rounded", "Underflow")),
        "graphlib.CycleError",
        "io.UnsupportedOperation",
        "ipaddress.AddressValueError",
        "ipaddress.NetmaskValueError",
        "json.JSONDecodeError",
        "json.decoder.JSONDecodeError",
        "pickle.PickleError",
        "pickle.PicklingError",
        "pickle.UnpicklingError",
        "queue.Empty",
        "queue.Full",
        "re.error",
        "shutil.Error",
        "sqlite3.Error",
        "sqlite3.IntegrityError",
        "sqlite3.OperationalError",
        "statistics.StatisticsError",
        "struct.error",
        "xml.etree.ElementTree.ParseError",
        "zlib.error",
        "zoneinfo.ZoneInfoNotFoundError",
    }
)


class Standard(NamedTuple):
    """A type of the standard library: the parts that are sent, and what is made of them.

    Attributes:
        parts: the parts of a value.
        types: the type of each part; `object` allows any.
        make: makes a value of them; None stands for the type itself.
    """

    parts: Callable[[Any], tuple[Any, ...]]
    types: tuple[type, ...]
    make: Callable[..., Any] | None = None


def _zone(value: Any) -> Any:
    """The time zone of a time or date; a zone of the program's own by its offset."""
    zone = value.tzinfo
    if zone is None or _standard_name(type(zone)) in ("datetime.timezone", "zoneinfo.ZoneInfo"):
        return zone
    offset = value.utcoffset()
    return None if offset is None else sys.modules["datetime"].timezone(offset, value.tzname())


def _time_zone(offset: Any, name: str) -> Any:
    datetime = importlib.import_module("datetime")
    utc = datetime.timezone.utc
    return (
        utc if (offset, name) == (datetime.timedelta(0), "UTC") else datetime.timezone(offset, name)
    )


def _array(code: str, data: bytes) -> Any:
    found = importlib.import_module("array").array(code)
    found.frombytes(data)
    return found


STANDARD: Mapping[str, Standard] = {
    "collections.Counter": Standard(lambda v: (dict(v),), (dict,)),
    "collections.OrderedDict": Standard(lambda v: (dict(v.items()),), (dict,)),
    "collections.defaultdict": Standard(lambda v: (v.default_factory, dict(v)), (object, dict)),
    "collections.deque": Standard(lambda v: (list(v), v.maxlen), (list, object)),
    "collections.ChainMap": Standard(lambda v: tuple(map(dict, v.maps)), ()),
    "types.MappingProxyType": Standard(lambda v: (dict(v),), (dict,)),
    "types.SimpleNamespace": Standard(
        lambda v: (dict(vars(v)),),
        (dict,),
        lambda names: importlib.import_module("types").SimpleNamespace(**names),
    ),
    "datetime.datetime": Standard(
        lambda v: (*v.timetuple()[:6], v.microsecond, _zone(v), v.fold),
        (int, int, int, int, int, int, int, object, int),
        lambda *v: importlib.import_module("datetime").datetime(*v[:8], fold=v[8]),
    ),
    "datetime.date": Standard(lambda v: (v.year, v.month, v.day), (int, int, int)),
    "datetime.time": Standard(
        lambda v: (v.hour, v.minute, v.second, v.microsecond, _zone(v), v.fold),
        (int, int, int, int, object, int),
        lambda *v: importlib.import_module("datetime").time(*v[:5], fold=v[5]),
    ),
    "datetime.timedelta": Standard(lambda v: (v.days, v.seconds, v.microseconds), (int, int, int)),
    "datetime.timezone": Standard(
        lambda v: (v.utcoffset(None), v.tzname(None)),
        (object, str),
        _time_zone,
    ),
    "zoneinfo.ZoneInfo": Standard(lambda v: (v.key,), (str,)),
    "uuid.UUID": Standard(lambda v: (str(v),), (str,)),
    **{
        f"pathlib.{name}": Standard(lambda v: (str(v),), (str,))
        for name in ("PosixPath", "PurePosixPath", "PureWindowsPath")
    },
    **{
        f"ipaddress.IPv{version}{what}": Standard(lambda v: (str(v),), (str,))
        for version in (4, 6)
        for what in ("Interface", "Address", "Network")
    },
    "array.array": Standard(lambda v: (v.typecode, v.tobytes()), (str, bytes), _array),
    "builtins.memoryview": Standard(lambda v: (v.tobytes(),), (bytes,)),
    "builtins.slice": Standard(lambda v: (v.start, v.stop, v.step), (object, object, object)),
    "re.Pattern": Standard(
        lambda v: (v.pattern, v.flags),
        (object, int),
        re.compile,
    ),
    "time.struct_time": Standard(lambda v: (tuple(v),), (tuple,)),
}
_BY_LAST_NAME = {name.rpartition(".")[2]: name for name in STANDARD}
_BY_LAST_NAME["mappingproxy"] = "types.MappingProxyType"


def _resolved(name: str) -> Any:
    """What a dotted name means in this process; None if its module is not loaded."""
    module, _, last = name.rpartition(".")
    return getattr(sys.modules.get(module), last, None)


def _standard_name(kind: type) -> str | None:
    """The name of a standard type, or of the standard type that it is derived from."""
    for base in kind.__mro__:
        name = _BY_LAST_NAME.get(base.__name__)
        if name is not None and _resolved(name) is base:
            return name
        if base.__module__ == "builtins":
            return None
    return None


class Encoder(plain.PlainEncoder):
    """Sends more kinds of values.

    Args:
        room: the number of bytes that a value may take.
        stay: the node of an object that stays in this process, by its tag; None if it cannot.
        is_own: whether objects of a type stay in this process, though they are not callable.
    """

    def __init__(
        self,
        room: int,
        stay: Callable[[str, Any], list[Any] | None],
        is_own: Callable[[type], bool] | None = None,
    ) -> None:
        super().__init__(room)
        self._stay = stay
        self._is_own = is_own
        self._sent: dict[int, tuple[Any, list[Any]]] = {}  # by `id`: containers and their nodes
        self._shared = 0

    def changeable(self, tag: str, value: Any, items: Iterable[Any], depth: int) -> list[Any]:
        """The node of a container that can change: where it occurs again, only its number."""
        if id(value) in self._sent:
            _, node = self._sent[id(value)]
            if node[0] != "&":
                node[:] = ["&", self._shared, *node]
                self._shared += 1
            return ["*", node[1]]
        node = self.many(tag, items, depth)
        self._sent[id(value)] = value, node
        return node

    def special(self, value: Any, kind: type, depth: int) -> list[Any] | None:
        """The node of a value that is not of a built-in type; None if it has no node of its own."""
        if self._is_own is not None and self._is_own(kind):
            return self._stay("O", value)
        if issubclass(kind, type):
            return self._type(value)
        if issubclass(kind, BaseException):
            return self._exception(value, kind, depth)
        enum = sys.modules.get("enum")
        if enum is not None and issubclass(kind, enum.Enum):
            return self._member(value, kind, enum, depth)
        fields = getattr(kind, "_fields", None)
        if issubclass(kind, tuple) and isinstance(fields, tuple):
            self.spend(sum(map(len, fields)))
            return ["N", kind.__name__, list(fields), *self._each(tuple.__iter__(value), depth)]
        name = _standard_name(kind)
        if name is not None:
            return ["T", name, *self._each(STANDARD[name].parts(value), depth)]
        if "__dataclass_fields__" in kind.__dict__ and not issubclass(kind, (int, str, list, dict)):
            return self._dataclass(value, kind, depth)
        if kind.__module__ == "numpy" and kind.__name__ == "ndarray":
            items = self.value(value.tolist(), depth + 1)
            return ["M", items, value.dtype.str, list(value.shape)]
        for tag, view in _VIEWS.items():
            if issubclass(kind, view):  # also those of an OrderedDict
                items = [x for pair in value for x in pair] if tag == "I" else value
                return self.many(tag, items, depth)
        for name, constant in _CONSTANTS.items():
            if value is constant:
                return ["y", name]
        return self._staying(value, kind)

    def _each(self, values: Any, depth: int) -> list[Any]:
        return [self.value(value, depth + 1) for value in values]

    def _type(self, value: type) -> list[Any] | None:
        name = value.__name__
        if name in _TYPES and getattr(builtins, name) is value:
            return ["y", name]
        for full in (_standard_name(value), *_exception_names(value)[:1]):
            if full is not None and _resolved(full) is value:
                return ["y", full]
        return self._stay("k", value)

    def _member(self, value: Any, kind: Any, enum: Any, depth: int) -> list[Any] | None:
        base = next(name for name in _ENUMS if issubclass(kind, getattr(enum, name)))
        members = [
            [name, self.value(item.value, depth + 2)] for name, item in kind.__members__.items()
        ]
        self.spend(sum(len(name) + 4 for name, _ in members))
        member = self.value(value.value, depth + 1) if "Flag" in base else value.name
        return ["e", base, kind.__name__, members, member]

    def _dataclass(self, value: Any, kind: Any, depth: int) -> list[Any]:
        fields = [name for name in kind.__dataclass_fields__ if hasattr(value, name)]
        self.spend(sum(map(len, fields)))
        options = kind.__dataclass_params__
        flags = [bool(getattr(options, name)) for name in ("eq", "order", "frozen")]
        values = self._each((getattr(value, name) for name in fields), depth)
        return ["S", kind.__name__, fields, flags, *values]

    def _exception(self, value: BaseException, kind: type, depth: int) -> list[Any]:
        try:
            text = str(value)[:_LONGEST_TEXT]
        except BaseException:  # its own __str__
            text = ""
        self.spend(len(text))
        args = self.value(tuple(value.args), depth + 1)
        attributes = {name: item for name, item in vars(value).items() if not name.startswith("_")}
        bases = _exception_names(kind)
        return ["X", kind.__name__, bases, args, text, self.value(attributes, depth + 1)]

    def _staying(self, value: Any, kind: type) -> list[Any] | None:
        if kind is GeneratorType:
            return self._stay("g", value)
        if kind is CoroutineType:
            return self._stay("w", value)
        if kind is AsyncGeneratorType:
            return self._stay("A", value)
        if kind in _LAZY or kind.__module__ == "itertools":
            return self._stay("j", value)
        if issubclass(kind, _FUNCTIONS):
            return self._stay("k", value)
        if kind in plain.ITERATORS:
            return None
        if hasattr(kind, "__next__") and hasattr(kind, "__iter__"):
            return self._stay("j", value)
        if kind.__module__ == "builtins":
            return None
        return self._stay("k", value) if callable(value) else None


def _exception_names(kind: type) -> list[str]:
    """The built-in and standard exceptions among a class and its bases, nearest first."""
    found = []
    for base in kind.__mro__:
        if not issubclass(base, BaseException):
            continue
        for name in (f"{base.__module__}.{base.__qualname__}", f"json.{base.__name__}"):
            if _is_exception(name) and _resolved(name) is base:
                found.append(name)
                break
    return found


def _is_exception(name: str) -> bool:
    module, _, last = name.rpartition(".")
    if module != "builtins":
        return name in _EXCEPTIONS
    kind = getattr(builtins, last, None)
    return isinstance(kind, type) and issubclass(kind, BaseException)


def _is_name(text: Any) -> bool:
    """Whether a text can be the name of a class or a field, and has no meaning to Python."""
    if not isinstance(text, str) or len(text) > _LONGEST_NAME or text.startswith("__"):
        return False
    return text.isidentifier() and not keyword.iskeyword(text)


class Decoder(plain.PlainDecoder):
    """Makes more kinds of values.

    Args:
        namespace: global names of the code that gets the values: its classes are used.
        staying: makes an object that stands for one that stays with the sender, of its tag, its
            number, its name and its special methods.
        shared: the names that the sender has as well; by default all names. A class that only the
            receiver has is not used if it compares values in its own way: it could be made for
            comparisons, such as one that equals any number, and the sender could name it.

    Attributes:
        missing: the types of values that could not be sent.
        texts: all texts and bytes in the values, wherever they are.
    """

    def __init__(
        self,
        namespace: Mapping[str, Any],
        staying: Callable[[str, int, str, tuple[str, ...]], Any],
        shared: Mapping[str, Any] | None = None,
    ) -> None:
        self._namespace = namespace
        self._shared = namespace if shared is None else shared
        self._staying = staying
        self._repeated: dict[int, Any] = {}  # containers that occur again in the same message
        self.missing: list[str] = []
        self.texts: list[str | bytes | bytearray] = []

    def value(self, node: Any, depth: int = 0) -> Any:
        """The value of a node. Raises PlainError for a bad node."""
        if depth == 0:
            self._repeated = {}
        found = super().value(node, depth)
        if isinstance(found, (str, bytes, bytearray)):
            self.texts.append(found)
        if isinstance(found, plain.Opaque) and found.name not in self.missing[:10]:
            self.missing.append(found.name)
        return found

    def special(self, tag: str, parts: list[Any], depth: int) -> Any:
        """The value of a node with another tag than those of plain.py."""
        match tag, parts:
            case "T", [str(name), *items] if name in STANDARD:
                return _made_standard(name, self.many(items, depth))
            case "N", [name, list(fields), *items] if _are_names(name, fields, items):
                return self._named_tuple(name, tuple(fields), self.many(items, depth))
            case "S", [name, list(fields), [bool(), bool(), bool()] as flags, *items] if _are_names(
                name, fields, items
            ):
                return self._dataclass(name, tuple(fields), flags, self.many(items, depth))
            case "e", [str(base), name, list(members), member] if base in _ENUMS and _is_name(name):
                return self._member(base, name, members, member, depth)
            case "X", [name, list(bases), args, str(text), attributes] if _is_name(name):
                values = self.value(args, depth + 1), self.value(attributes, depth + 1)
                return self._exception(name, bases, *values, text)
            case "y", [str(name)]:
                return _made_type(name)
            case "M", [items, str(kind), list(shape)] if _DTYPE.match(kind):
                return made(_array_of_numpy, "an array", self.value(items, depth + 1), kind, shape)
            case "&", [int(number), "l" | "d" | "s", *_]:
                self._repeated[number] = self.value(parts[1:], max(depth, 1))
                return self._repeated[number]
            case "*", [int(number)] if number in self._repeated:
                return self._repeated[number]
            case "K" | "V" | "I", items:
                return _made_view(tag, self.many(items, depth))
            case "k" | "g" | "j" | "w" | "A" | "C", [int(number), str(name)]:
                return self._staying(tag, number, name, ())
            case "O", [int(number), name, list(methods)] if _is_name(name):
                if not objects.SPECIAL.issuperset(map(str, methods)):
                    raise PlainError("not the special methods of an object")
                return self._staying(tag, number, name, tuple(methods))
        raise PlainError(f"not a value of the kind {tag[:10]!r}")

    def _known(self, name: str, base: type) -> Any:
        """The class of that name in the code that gets the value; None if there is none."""
        found = self._namespace.get(name)
        if not isinstance(found, type) or not issubclass(found, base):
            return None
        return found if self._shared.get(name) is found or _is_simple(found) else None

    def _named_tuple(self, name: str, fields: tuple[str, ...], items: list[Any]) -> Any:
        kind = self._known(name, tuple)
        if getattr(kind, "_fields", None) != fields:
            kind = made(_named_tuple_class, "a named tuple", name, fields)
        if kind._fields != fields:
            raise PlainError("not a named tuple")
        return tuple.__new__(kind, items)

    def _dataclass(
        self, name: str, fields: tuple[str, ...], flags: list[bool], items: list[Any]
    ) -> Any:
        kind = self._known(name, object)
        if kind is None or tuple(vars(kind).get("__dataclass_fields__", ("",))) != fields:
            kind = made(_dataclass_class, "a dataclass", name, fields, tuple(flags))
        found = object.__new__(kind)
        for field, item in zip(fields, items, strict=True):
            object.__setattr__(found, field, item)
        return found

    def _member(self, base: str, name: str, nodes: list[Any], member: Any, depth: int) -> Any:
        members = []
        for node in nodes:
            match node:
                case [str(title), item] if _is_name(title) and not title.startswith("_"):
                    members.append((title, self.value(item, depth + 2)))
                case _:
                    raise PlainError("not a member of an enum")
        enum = importlib.import_module("enum")
        kind = self._known(name, getattr(enum, base))
        if kind is None or [(k, v.value) for k, v in kind.__members__.items()] != members:
            kind = made(_enum_class, "an enum", base, name, _Members(members))
        if "Flag" in base:
            return made(kind, "a flag", self.value(member, depth + 1))
        if not isinstance(member, str) or member not in kind.__members__:
            raise PlainError("not a member of an enum")
        return kind.__members__[member]

    def _exception(
        self, name: str, bases: list[Any], args: Any, attributes: Any, text: str
    ) -> BaseException:
        if not isinstance(args, tuple) or not isinstance(attributes, dict):
            raise PlainError("not an exception")
        kind = self._known(name, BaseException)
        if kind is None or kind.__module__ == "builtins":
            kind = _exception_class(name, _nearest(bases))  # type: ignore[arg-type]
        found = _made_exception(kind, args)
        self.texts.append(text)
        if "_sent_text" in kind.__dict__:
            found._sent_text = text  # type: ignore[attr-defined]  # noqa: SLF001
        for attribute, item in attributes.items():
            if _is_name(attribute) and not attribute.startswith("_"):
                vars(found)[attribute] = item
        return found


def _is_simple(kind: type) -> bool:
    """Whether a class of a test means no more than its fields: Python compares its instances.

    An imported exception is not simple: `unittest.SkipTest` ends a test that then counts as passed.
    """
    if issubclass(kind, BaseException) and kind.__module__ != "__main__":
        return False
    codes = (getattr(getattr(kind, name), "__code__", None) for name in _COMPARISONS)
    return all(code is None or code.co_filename == _GENERATED for code in codes)


def _are_names(name: Any, fields: list[Any], items: list[Any]) -> bool:
    return _is_name(name) and all(map(_is_name, fields)) and len(fields) == len(items)


def _made_standard(name: str, parts: list[Any]) -> Any:
    _, types, make = STANDARD[name]
    if types and (len(types) != len(parts) or not all(map(isinstance, parts, types))):
        raise PlainError(f"not a {name}")
    if name == "collections.ChainMap" and not all(isinstance(part, dict) for part in parts):
        raise PlainError(f"not a {name}")
    module, _, last = name.rpartition(".")
    try:
        return made(make or getattr(importlib.import_module(module), last), f"a {name}", *parts)
    except (KeyError, OSError, re.error, RecursionError):  # an unknown time zone, a wrong pattern
        raise PlainError(f"not a {name}") from None


def _made_type(name: str) -> Any:
    if name in _CONSTANTS:
        return _CONSTANTS[name]
    if name in _TYPES:
        return getattr(builtins, name)
    if name in STANDARD or _is_exception(name):
        module, _, last = name.rpartition(".")
        return getattr(importlib.import_module(module), last)
    raise PlainError("not a type")


def _array_of_numpy(items: Any, kind: str, shape: list[Any]) -> Any:
    try:
        numpy = importlib.import_module("numpy")
    except ImportError:
        return plain.Opaque("numpy.ndarray")
    return numpy.array(items, dtype=kind).reshape(shape)


def _made_view(tag: str, items: list[Any]) -> Any:
    if tag == "K":
        return made(dict.fromkeys, "keys of a dictionary", items).keys()
    if tag == "V":
        return dict(enumerate(items)).values()
    if len(items) % 2:
        raise PlainError("not the items of a dictionary")
    return made(dict, "a dictionary", zip(items[::2], items[1::2], strict=True)).items()


@functools.cache
def _named_tuple_class(name: str, fields: tuple[str, ...]) -> Any:
    return importlib.import_module("collections").namedtuple(name, fields, rename=True)


@functools.cache
def _dataclass_class(name: str, fields: tuple[str, ...], flags: tuple[bool, ...]) -> Any:
    make = importlib.import_module("dataclasses").make_dataclass
    eq, order, frozen = flags
    return make(name, fields, eq=eq, order=order and eq, frozen=frozen)


class _Members(list[tuple[str, Any]]):
    """Members of an enum, as a key of a cache."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(name for name, _ in self))


@functools.cache
def _enum_class(base: str, name: str, members: _Members) -> Any:
    return getattr(importlib.import_module("enum"), base)(name, list(members))


def _nearest(bases: list[Any]) -> type[BaseException]:
    for name in bases:
        if isinstance(name, str) and _is_exception(name):
            module, _, last = name.rpartition(".")
            kind: type[BaseException] = getattr(importlib.import_module(module), last)
            return kind
    raise PlainError("not an exception")


@functools.cache
def _exception_class(name: str, nearest: type[BaseException]) -> type[BaseException]:
    """The class itself if it has that name; otherwise one derived from it, without behaviour."""
    if nearest.__name__ == name:
        return nearest
    members = {"_sent_text": "", "__str__": lambda self: str(self._sent_text)}
    return type(name, (nearest,), members)


def _made_exception(kind: type[BaseException], args: tuple[Any, ...]) -> BaseException:
    try:
        if kind.__init__ in _INITIALIZERS:
            return kind(*args)
    except (TypeError, ValueError):  # it takes other arguments than those in `args`
        pass
    found = kind.__new__(kind)
    found.args = args
    return found


def _exceptions() -> Iterator[Any]:
    for kind in vars(builtins).values():
        if isinstance(kind, type) and issubclass(kind, BaseException):
            yield kind.__init__


_INITIALIZERS = frozenset(_exceptions())  # those of built-in exceptions, which run no other code
