"""Comparisons of policies: on logs, on synthetic populations, and with the best possible cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import loader

if TYPE_CHECKING:
    from .comparison import Row as Row
    from .oracle_rows import OracleRow as OracleRow
    from .oracle_rows import oracle as oracle
    from .rows import DEFAULT_ROWS as DEFAULT_ROWS
    from .settings import ComparisonSettings as ComparisonSettings
    from .settings import SimulationSize as SimulationSize
    from .significance import PairTest as PairTest
    from .simulation.laws import Binormal as Binormal
    from .simulation.laws import Pieces as Pieces
    from .simulation.populations import POPULATIONS as POPULATIONS
    from .simulation.simulate import simulate as simulate
    from .simulation.star_trials import stream as stream
    from .tune import learn as learn

_HOMES = {
    "DEFAULT_ROWS": "rows",
    "POPULATIONS": "simulation.populations",
    "Binormal": "simulation.laws",
    "ComparisonSettings": "settings",
    "OracleRow": "oracle_rows",
    "PairTest": "significance",
    "Pieces": "simulation.laws",
    "Row": "comparison",
    "SimulationSize": "settings",
    "learn": "tune",
    "oracle": "oracle_rows",
    "simulate": "simulation.simulate",
    "stream": "simulation.star_trials",
}

__all__ = [
    "DEFAULT_ROWS",
    "POPULATIONS",
    "Binormal",
    "ComparisonSettings",
    "OracleRow",
    "PairTest",
    "Pieces",
    "Row",
    "SimulationSize",
    "learn",
    "oracle",
    "simulate",
    "stream",
]

__getattr__ = loader(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
