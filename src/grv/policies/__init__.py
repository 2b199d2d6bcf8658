"""The policies: what a search does next. `Varied` is the default; `Balanced` trusts the score.

`Learning` uses what earlier problems in the ledger have shown. `Fixed` and `VerifyAll` are
baselines. Give a policy to `grv.solve` or `grv.compare`, or its name:

    >>> import grv
    >>> grv.policies.Fixed(64, k=4)
    Fixed(m=64, k=4)

A policy of your own is a class with a method `plan`, which takes a `Pool` and the costs and yields
`grv.Generate` and `grv.Verify`; the protocol is `Policy`. To add one here, write a file and import
its class below: one line.

The file's name is the policy's name. The class is a frozen dataclass with a `plan` method; its
fields are the policy's parameters. Help texts, the glossary, the names of this door and the guide's
table come from the class: the first line of its docstring says what the policy does, `proven`
states what is proven about it (`promises.py` has the table), and `relies_on` what that assumes
about the score. If a proven bound on the cost holds for any score, `any_score` is True. If a client
of a server may name it, `for_guests` is True. If a parameter has no default, `example` is a
specification to show.
"""

from __future__ import annotations

from typing import Any

from ..core.pool import Pool as Pool
from ..core.search import Policy as Policy
from .adaptive import Adaptive as Adaptive
from .alternate import Alternate as Alternate
from .balanced import Balanced as Balanced
from .centered_star import CenteredStar as CenteredStar
from .fixed import Fixed as Fixed
from .hedged import Hedged as Hedged
from .known_law import KnownLaw as KnownLaw
from .learned import Learned as Learned
from .learning import Learning as Learning
from .threshold import Threshold as Threshold
from .varied import Varied as Varied
from .verify_all import VerifyAll as VerifyAll

# By name, in the order of the imports.
POLICIES: dict[str, type[Any]] = {
    each.__module__.split(".")[2].replace("_", "-"): each
    for each in list(globals().values())
    if isinstance(each, type) and each.__module__.startswith(f"{__name__}.")
}

# The policies that a client of a server may name, with numbers as their only parameters. Those that
# read a file, or take long to prepare, are not among them: see `spec.parse_guest`.
FOR_GUESTS = tuple(name for name, policy in POLICIES.items() if vars(policy).get("for_guests"))

# The policy that is used if none is named, and the meaning of the specification `default`.
DEFAULT: Policy = Varied()

__all__ = [
    "DEFAULT",
    "POLICIES",
    "Policy",
    "Pool",
    *(policy.__name__ for policy in POLICIES.values()),
]


def summary(policy: type[Any]) -> str:
    """What a policy does, in a sentence: the first line of its docstring."""
    return (policy.__doc__ or "").partition("\n")[0].strip()
