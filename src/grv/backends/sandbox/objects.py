"""Objects of the candidate's own classes, for tests of a class (an `asserts` check with `objects`).

An object stays in the candidate's process. The test has a stand-in for it: attributes, methods and
operators are requests to the candidate, and their results carry over as other answers do. So the
candidate's class decides what its operators say, also `==`, and learns what the test compares it
with. Therefore only a test of a class has stand-ins. In other tests such an object equals nothing.

    ["O", number, name, [method, ...]]   an object: the name of its class, and its special methods
    ["C", number, name]                  a class
"""

from __future__ import annotations

import copy
import enum
import functools
from collections.abc import Callable, Collection
from typing import Any

ENTRY = -1  # the number of the class that is tested

_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "matmul")
_BITS = ("and", "or", "xor", "lshift", "rshift")
_OTHER = (
    *("neg", "pos", "abs", "invert", "int", "float", "complex", "index", "round", "trunc"),
    *("floor", "ceil", "len", "getitem", "setitem", "delitem", "contains", "iter", "reversed"),
    *("eq", "ne", "lt", "le", "gt", "ge", "hash", "bool", "format", "call", "enter", "exit"),
    *("aenter", "aexit", "aiter", "anext"),
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


def is_own(kind: type, entry_point: str, shared: Collection[str]) -> bool:
    """Whether an object of this type stays with the candidate, in whose process this runs.

    Unless the test is of their class, exceptions and named tuples carry over by value, and so do
    members of enums and dataclass instances if the test knows a class of that name.
    """
    if kind.__module__ != "candidate":
        return False
    if any(base.__name__ == entry_point for base in kind.__mro__):
        return not issubclass(kind, BaseException)
    if issubclass(kind, BaseException) or hasattr(kind, "_fields"):
        return False
    is_data = issubclass(kind, enum.Enum) or hasattr(kind, "__dataclass_fields__")
    return not is_data or kind.__name__ not in shared


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
    if request == "del":
        return delattr(kept, name)
    if request == "copy":
        return copy.deepcopy(kept) if name == "__deepcopy__" else copy.copy(kept)
    if name not in SPECIAL:
        raise ValueError(name)
    if name in ("__exit__", "__aexit__"):  # a class of the test's does not carry over as such
        values = (None if values[1] is None else type(values[1]), *values[1:])
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
        if name.startswith(("__", "_grv_")) and name != "__dict__":
            raise AttributeError(name)
        return self._grv_ask((), {}, do="get", name=name, object=self._grv_number)

    def __setattr__(self, name: str, value: Any) -> None:
        self._grv_ask((value,), {}, do="set", name=name, object=self._grv_number)

    def __delattr__(self, name: str) -> None:
        self._grv_ask((), {}, do="del", name=name, object=self._grv_number)

    def __copy__(self) -> Any:
        return self._grv_ask((), {}, do="copy", name="__copy__", object=self._grv_number)

    def __deepcopy__(self, memo: Any) -> Any:
        return self._grv_ask((), {}, do="copy", name="__deepcopy__", object=self._grv_number)


def number_of(value: RemoteObject) -> int:
    """The number by which the candidate knows an object."""
    number: int = object.__getattribute__(value, "_grv_number")
    return number


def _method(name: str) -> Callable[..., Any]:
    def method(self: RemoteObject, /, *args: Any) -> Any:
        return self._grv_ask(args, {}, do="special", name=name, object=self._grv_number)

    method.__name__ = name
    return method


def _leaving(name: str) -> Callable[..., Any]:
    """A method that leaves a `with` block. The traceback is the test's, and stays there."""

    def leave(self: RemoteObject, kind: Any, error: Any, trace: Any) -> Any:
        given = (None, error, None)
        return self._grv_ask(given, {}, do="special", name=name, object=self._grv_number)

    return leave


def _call(self: RemoteObject, /, *args: Any, **kwargs: Any) -> Any:
    return self._grv_ask(args, kwargs, do="call", object=self._grv_number)


def _next(self: RemoteObject) -> Any:
    try:
        return self._grv_ask((), {}, do="next", object=self._grv_number)
    except IteratorEnded:
        raise StopIteration from None


async def _anext(self: RemoteObject) -> Any:
    try:
        return self._grv_ask((), {}, do="anext", object=self._grv_number)
    except IteratorEnded:
        raise StopAsyncIteration from None


class IteratorEnded(Exception):
    """An iterator of the candidate's has ended; a generator returned a value."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


@functools.cache
def stand_in(name: str, methods: tuple[str, ...]) -> type[RemoteObject]:
    """The class of stand-ins for a class of that name with these special methods."""
    members: dict[str, Any] = {method: _method(method) for method in (*_ALWAYS, *methods)}
    own = {"__exit__": _leaving("__exit__"), "__aexit__": _leaving("__aexit__")}
    own |= {"__next__": _next, "__anext__": _anext, "__call__": _call}
    members |= {method: own[method] for method in own.keys() & members.keys()}
    return type(name, (RemoteObject,), {"__slots__": (), **members})
