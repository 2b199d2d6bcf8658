"""The mathematics of costs and ranks; it does not use `Search`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import loader

if TYPE_CHECKING:
    from .optimum import Law as Law
    from .proofs.bounds import fixed_threshold_bound as fixed_threshold_bound
    from .proofs.steps import step_ratio as step_ratio
    from .proofs.steps import worst_ratio as worst_ratio
    from .rounds import StepLaw as StepLaw
    from .stars.bounds import binary_optimum as binary_optimum
    from .stars.bounds import search_bound as search_bound
    from .stars.classes import of_rows as of_rows
    from .stars.search import star_number as star_number

_HOMES = {
    "Law": "optimum",
    "StepLaw": "rounds",
    "binary_optimum": "stars.bounds",
    "fixed_threshold_bound": "proofs.bounds",
    "of_rows": "stars.classes",
    "search_bound": "stars.bounds",
    "star_number": "stars.search",
    "step_ratio": "proofs.steps",
    "worst_ratio": "proofs.steps",
}

__all__ = [
    "Law",
    "StepLaw",
    "binary_optimum",
    "fixed_threshold_bound",
    "of_rows",
    "search_bound",
    "star_number",
    "step_ratio",
    "worst_ratio",
]

__getattr__ = loader(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
