"""A report as one page: words, figures and tables in a file that needs no network.

This module escapes all text from logs, for HTML and for the data block. The content security policy
of the page allows only the script and the style whose checksums it names.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict
from html import escape
from importlib import resources
from string import Template
from typing import Any

from ..part import QUESTIONS, Question
from ..parts import PARTS, TABLES
from ..report import LogFacts, Report
from ..style import DASHES, SHAPES, Style, styles, themes
from ..table import Table
from .glossary import glossary, meaning, meaning_of_prices

_FEW = 20  # a table with at most this many rows is shown open


def page(report: Report, title: str = "") -> str:
    """The whole file."""
    script = _script()
    style = _style()
    names = ", ".join(log.name for log in report.logs)
    return Template(_asset("page.html")).substitute(
        security=_security_policy(script, style),
        style=style,
        script=script,
        several="several" if len(report.logs) > 1 else "one",
        title=escape(title or f"grv report: {names}"),
        logs="".join(map(_log_line, report.logs)),
        conclusions=_conclusions(report),
        warnings=_warnings(_plain(report, text) for text in report.warnings),
        links="".join(f'<a href="#{key}">{escape(title)}</a>' for key, title in QUESTIONS.items()),
        sections="".join(_section(report, question) for question in QUESTIONS),
        settings=_settings(report),
        data=_data(report),
    )


def _asset(name: str) -> str:
    return (resources.files(__package__) / "assets" / name).read_text(encoding="utf-8")


def _script() -> str:
    names = sorted(each.name for each in (resources.files(__package__) / "assets").iterdir())
    parts = [_asset(name) for name in names if name.endswith(".js")]
    return "\n".join(['"use strict";', "(() => {", *parts, "})();"])


def _style() -> str:
    return f"{themes()}\n{_asset('page.css')}"


def _security_policy(script: str, style: str) -> str:
    """A content security policy: no connections, and no script or style but these."""
    ours = {
        kind: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for kind, text in (("script", script), ("style", style))
    }
    return (
        f"default-src 'none'; script-src 'sha256-{ours['script']}';"
        f" style-src 'sha256-{ours['style']}'; base-uri 'none'; form-action 'none'"
    )


def _log_line(log: LogFacts) -> str:
    kinds = {"ledger": "ledger of live runs, ", "comparison": "saved comparison, "}
    counts = f"{_counted(log.problems, 'problem')}, {log.solvable} solvable,"
    counts += f" {_counted(log.candidates, 'candidate')}"
    parts = [f"{kinds.get(log.kind, '')}{counts}", f"ranked by {log.score}" if log.score else ""]
    parts += [f"{log.unscored} without a score" if log.unscored else ""]
    parts += [f"{log.unlabelled} without a label" if log.unlabelled else ""]
    parts += [f"{log.refuted} refuted without verification" if log.refuted else ""]
    if log.published:
        parts.append(f"{log.published} labelled as the paper's published code does")
    if log.judged:
        parts.append(f"{log.judged} judged by a check that errs, not verified")
    text = ", ".join(part for part in parts if part)
    return f"<p class=log><strong>{escape(log.name)}</strong> {escape(text)}</p>"


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _items(texts: Iterable[str]) -> str:
    return "".join(f"<li>{escape(text)}</li>" for text in texts)


def _definitions(pairs: Iterable[tuple[str, str]]) -> str:
    lines = (f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in pairs)
    return f"<dl>{''.join(lines)}</dl>"


def _conclusions(report: Report) -> str:
    cards = "".join(
        f"<div class=conclusion><h2>{escape(each.question)}</h2>"
        f"<ul>{_items(each.sentences)}</ul></div>"
        for each in report.conclusions
    )
    names = _definitions(glossary(_policies(report), _prices(report)))
    more = f"<details class=more><summary>What the names mean</summary>{names}</details>"
    return f"<div class=conclusions>{cards}</div>{more}"


def _plain(report: Report, text: str) -> str:
    """The text without the name of the log, if there is only one log."""
    if len(report.logs) > 1:
        return text
    rest = text.removeprefix(f"{report.logs[0].name}: ")
    return rest if rest == text else rest[:1].upper() + rest[1:]


def _warnings(warnings: Iterable[str]) -> str:
    items = _items(warnings)
    return f"<div class=warnings role=note><h2>Warning</h2><ul>{items}</ul></div>" if items else ""


def _section(report: Report, question: Question) -> str:
    """The figures of a question, then its tables, then the reasons why others are empty."""
    names = {table.name for part in PARTS if part.question == question for table in part.tables}
    tables = [table for table in report.tables if table.name in names and _is_new(report, table)]
    shown = [table for table in tables if table.rows]
    drawn = "".join(_card(report, table) for table in shown if _is_drawn(table))
    others = "".join(_card(report, table) for table in shown if not _is_drawn(table))
    missing = _missing(report, [table for table in tables if not table.rows])
    return (
        f"<section id={question} class=part><h2>{escape(QUESTIONS[question])}</h2>"
        + (f"<div class=cards>{drawn}</div>" if drawn else "")
        + (f"<div class=tables>{others}</div>" if others else "")
        + (f"<ul class=missing>{missing}</ul>" if missing else "")
        + "</section>"
    )


def _is_new(report: Report, table: Table) -> bool:
    """Whether there is more than one of what the table compares."""
    compared = {"log": len(report.logs), "costs": len(_prices(report))}
    return compared.get(TABLES[table.name].compares, 2) > 1


def _is_drawn(table: Table) -> bool:
    return bool(TABLES[table.name].drawings)


def _missing(report: Report, tables: Iterable[Table]) -> str:
    """Why tables are empty, each reason once."""
    reasons: dict[str, list[str]] = {}
    for table in tables:
        words = " ".join(_plain(report, note) for note in table.notes)
        title = f"<b id={escape(table.name)}>{escape(table.title)}</b>"
        reasons.setdefault(words, []).append(title)
    return "".join(f"<li>{'; '.join(t)}: {escape(words)}</li>" for words, t in reasons.items())


def _card(report: Report, table: Table) -> str:
    """The place of a table on the page; the script fills in its figure and its rows."""
    name = escape(table.name)
    drawn = _is_drawn(table)
    notes = _items(_plain(report, note) for note in table.notes)
    parts = [f"<h3>{escape(table.title)}</h3><p class=caption>{escape(table.caption)}</p>"]
    if drawn:
        parts.append(f"<div class=chart></div><p class=unseen>{escape(table.alt)}</p>")
    label = f"Numbers: {escape(table.title)}"
    rows = f'<div class=rows tabindex=0 role=region aria-label="{label}"></div>'
    is_open = " open" if not drawn and len(table.rows) <= _FEW else ""
    parts.append(
        f"<div class=under><details{is_open}><summary>Numbers</summary>{rows}</details>"
        "<div class=actions></div></div>"
    )
    parts.append(f"<ul class=notes>{notes}</ul>" if notes else "")
    return f"<section class=card id={name} data-table={name}>{''.join(parts)}</section>"


def _setting(value: Any) -> str:
    """A setting as users write it."""
    if value is None:
        return "not given"
    if isinstance(value, list | tuple):
        nested = any(isinstance(each, list | tuple) for each in value)
        return ("; " if nested else ", " if any(isinstance(v, str) for v in value) else ",").join(
            map(_setting, value)
        )
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _settings(report: Report) -> str:
    settings = [
        (name.replace("_", " "), _setting(value)) for name, value in report.settings.items()
    ]
    excluded = [
        (f"left out of {log.name}", f"{len(log.excluded)}: {', '.join(log.excluded)}")
        for log in report.logs
        if log.excluded
    ]
    return _definitions([*settings, *excluded])


def _prices(report: Report) -> list[str]:
    return _distinct(report, "costs", ("summary", "unsolved"))


def _distinct(report: Report, column: str, tables: Iterable[str]) -> list[str]:
    """The values of a column, in the order in which tables have them."""
    found: dict[str, None] = {}
    for table in report.tables:
        if table.name in tables and column in {each.name for each in table.columns}:
            found |= dict.fromkeys(str(value) for value in table.column(column))
    return list(found)


def _policies(report: Report) -> list[str]:
    return _distinct(report, "policy", [table.name for table in report.tables])


def styles_of(report: Report) -> dict[str, Style]:
    """The styles of all names in the figures of a report."""
    schedules = _distinct(report, "series", ["batch"])
    return styles([*_policies(report), *(log.name for log in report.logs), *schedules])


def _data(report: Report) -> str:
    """The numbers as JSON, escaped so that no text in it can end the data block."""
    data: dict[str, Any] = {
        "costs": _prices(report),
        "logs": [log.name for log in report.logs],
        "policies": _policies(report),
        "meanings": {name: meaning(name) for name in _policies(report)}
        | {costs: meaning_of_prices(costs) for costs in _prices(report)},
        "styles": {name: asdict(style) for name, style in styles_of(report).items()},
        "dashes": DASHES,
        "shapes": SHAPES,
        "drawings": {
            table.name: [each.to_json() for each in table.drawings]
            for table in TABLES.values()
            if table.drawings
        },
        "tables": [_slim(table) for table in report.tables if table.rows],
    }
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _slim(table: Table) -> dict[str, Any]:
    """A table without the text that the page holds elsewhere."""
    record = table.to_json()
    return {key: record[key] for key in ("name", "title", "alt", "columns", "rows")}
