"""The look of the pages: that of reports, with their colours and their style sheet."""

from __future__ import annotations

from importlib import resources

from ...report.style import themes


def style() -> str:
    """The style sheet of a report."""
    sheet = resources.files("grv.report.page") / "assets" / "page.css"
    return f"{themes()}\n{sheet.read_text(encoding='utf-8')}"
