"""The contents of a report: every table, its columns, and what each of them means.

Tables are long: a row for each log (`log`) and price list (`costs`) where that makes a difference,
so that a drawing filters and colours by columns. Computed elsewhere in this room; drawn elsewhere.
"""

from __future__ import annotations

from .advice_contents import ADVICE_FIGURES, TIME_FIGURES
from .cost_contents import COST_FIGURES
from .score_contents import SCORE_FIGURES

FIGURES = (*COST_FIGURES, *SCORE_FIGURES, *ADVICE_FIGURES, *TIME_FIGURES)
BY_NAME = {figure.name: figure for figure in FIGURES}
