"""From results to pages. Numbers first: every figure is drawn from a `Table`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import loader

if TYPE_CHECKING:
    from .figures import Picture as Picture
    from .figures import report_on as report_on
    from .report import Report as Report

_HOMES = {
    "Picture": "figures",
    "Report": "report",
    "report_on": "figures",
}

__all__ = [
    "Picture",
    "Report",
    "report_on",
]

__getattr__ = loader(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
