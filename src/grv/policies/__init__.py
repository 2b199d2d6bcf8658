"""The policies. To add one, write a file and import its class here: one line.

The file's name is the policy's name. The class is a frozen dataclass with a `plan` method; its
fields are the policy's parameters. Help texts, the glossary, the public names of `grv` and the
guide's table come from the class: the first line of its docstring says what the policy does,
`proven` states what is proven about it, and `relies_on` what that assumes about the score. If a
proven bound on the cost holds for any score, `any_score` is True.
"""

from __future__ import annotations

from typing import Any

from ..core.search import Policy as _Policy
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

# The policy that is used if none is named, and the meaning of the specification `default`.
DEFAULT: _Policy = Varied()


def summary(policy: type[Any]) -> str:
    """What a policy does, in a sentence: the first line of its docstring."""
    return (policy.__doc__ or "").partition("\n")[0].strip()
