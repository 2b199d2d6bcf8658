"""Policies as text, such as `adaptive(checks=4)`, for command lines and ledgers."""

from __future__ import annotations

from collections.abc import Callable

from ..core.errors import UsageError
from ..core.search import Policy
from ..specification import FILE as FILE
from ..specification import make, write
from ..specification import split as split
from ..specification import unknown as unknown

_LARGEST = 1e6  # parameter that a guest may give: a larger one asks for more than can be made


def parse(text: str, *, load: Callable[[str], object] | None = None) -> Policy:
    """The policy that a specification names; `default` is the policy used if none is named.

    `load` reads the values that a specification gives as the name of a file.

    >>> parse("fixed(64, k=4)")
    Fixed(m=64, k=4)
    """
    from . import DEFAULT, POLICIES

    name, positional, named = split(text)
    if name == "default":
        if positional or named:
            raise UsageError(f"default takes no parameters; it stands for {spec(DEFAULT)!r}")
        return DEFAULT
    policy: Policy = make(text, "policy", POLICIES, aliases=("default",), load=load)
    return policy


def parse_guest(text: str) -> Policy:
    """The policy that a client of a server names: one of `FOR_GUESTS`, and only with numbers.

    No text becomes a parameter, so none becomes a file, an address or a class.

    >>> parse_guest("fixed(64, k=4)")
    Fixed(m=64, k=4)
    """
    from . import FOR_GUESTS

    name, positional, named = split(text)
    if name not in (*FOR_GUESTS, "default"):
        known = ", ".join([*FOR_GUESTS, "default"])
        raise UsageError(f"a request may name one of {known}, not {name!r}")
    for value in (*positional, *named.values()):
        # Not `isinstance`: True is no number here.
        if type(value) not in (int, float) or not abs(value) <= _LARGEST:  # type: ignore[arg-type]
            raise UsageError(
                f"{name}: a request may give numbers from -{_LARGEST:g} to {_LARGEST:g} only"
            )
    return parse(text)


def spec(policy: Policy) -> str:
    """The specification of a policy, without parameters that have their default value.

    >>> from grv.policies import Adaptive
    >>> spec(Adaptive(checks=4))
    'adaptive(checks=4)'
    """
    from . import POLICIES

    return write(policy, "policy", POLICIES)
