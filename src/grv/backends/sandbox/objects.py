"""Objects of the candidate's own classes, for tests of a class (an `asserts` check with `objects`).

An object stays in the candidate's process. The test has a stand-in for it: attributes, methods and
operators are requests to the candidate, and their results carry over as other answers do. So the
candidate's class decides what its operators say, also `==`, and learns what the test compares it
with. Therefore only a test of a class has stand-ins. In other tests such an object equals nothing.

    ["O", number, name, [method, ...]]   an object: the name of its class, and its special methods
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from typing import Any

_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "matmul")
_BITS = ("and", "or", "xor", "lshift", "rshift")
_OTHER = (
    *("neg", "pos", "abs", "invert", "int", "float", "complex", "index", "round", "trunc"),
    *("floor", "ceil", "len", "getitem", "setitem", "delitem", "contains", "iter", "reversed"),
    *("eq", "ne", "lt", "le", "gt", "ge", "hash", "bool", "format", "call", "enter", "exit"),
)
_PREFIXES = ("", "r", "i")
_ALWAYS = ("__str__", "__repr__")  # also without a method of its own, as any object
# What a test may ask of an object by an operator or a built-in function.
SPECIAL = frozenset(
    {
        *(f"__{prefix}{name}__" for prefix in _PREFIXES for name in (*_BINARY, *_BITS)),
        *(f"__{name}__" for name in _OTHER),
        *_ALWAYS,
        "__instancecheck__",
        "__next__",
    }
)


def is_own(kind: type, entry_point: str) -> bool:
    """Whether an object of this type stays with the candidate, in whose process this runs.

    Exceptions, members of enums, named tuples and dataclass instances carry over by value, unless
    the test is of their class.
    """
    if kind.__module__ != "candidate":
        return False
    if any(base.__name__ == entry_point for base in kind.__mro__):
        return not issubclass(kind, BaseException)
    if issubclass(kind, (BaseException, enum.Enum)) or hasattr(kind, "_fields"):
        return False
    return not hasattr(kind, "__dataclass_fields__")


def special_methods(kind: type) -> list[str]:
    """The special methods of a class that a test may use."""
    defined = {name for base in kind.__mro__ if base is not object for name in vars(base)}
    return sorted(name for name in defined & SPECIAL if getattr(kind, name) is not None)


def requested(request: str, kept: Any, name: str, values: tuple[Any, ...]) -> Any:
    """What the candidate answers to a request of a stand-in."""
    if request == "get":
        return getattr(kept, name)
    if request == "set":
        return setattr(kept, name, *values)
    if name not in SPECIAL:
        raise ValueError(name)
    return getattr(type(kept), name)(kept, *values)


class RemoteObject:
    """Stands for an object of the candidate's.

    Args:
        ask: sends a request to the candidate, and returns or raises what it answers.
        number: the number by which the candidate knows the object.
    """

    __slots__ = ("_grv_ask", "_grv_number")

    def __init__(self, ask: Callable[..., Any], number: int) -> None:
        object.__setattr__(self, "_grv_ask", ask)
        object.__setattr__(self, "_grv_number", number)

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("__", "_grv_")):
            raise AttributeError(name)
        return self._grv_ask((), {}, do="get", name=name, object=self._grv_number)

    def __setattr__(self, name: str, value: Any) -> None:
        self._grv_ask((value,), {}, do="set", name=name, object=self._grv_number)


def number_of(value: RemoteObject) -> int:
    """The number by which the candidate knows an object."""
    number: int = object.__getattribute__(value, "_grv_number")
    return number


def _method(name: str) -> Callable[..., Any]:
    def method(self: RemoteObject, /, *args: Any, **kwargs: Any) -> Any:
        return self._grv_ask(args, kwargs, do="special", name=name, object=self._grv_number)

    method.__name__ = name
    return method


def _exit(self: RemoteObject, kind: Any, error: Any, trace: Any) -> Any:
    """Leave a `with` block. The traceback is the test's, and stays there."""
    given = (kind, error, None)
    return self._grv_ask(given, {}, do="special", name="__exit__", object=self._grv_number)


def _next(self: RemoteObject) -> Any:
    try:
        return self._grv_ask((), {}, do="next", object=self._grv_number)
    except Ended:
        raise StopIteration from None


class Ended(Exception):
    """An iterator of the candidate's has ended; a generator returned a value."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


@functools.cache
def stand_in(name: str, methods: tuple[str, ...]) -> type[RemoteObject]:
    """The class of stand-ins for a class of that name with these special methods."""
    members: dict[str, Any] = {method: _method(method) for method in (*_ALWAYS, *methods)}
    if "__exit__" in members:
        members["__exit__"] = _exit
    if "__next__" in members:
        members["__next__"] = _next
    return type(name, (RemoteObject,), {"__slots__": (), **members})
