"""A report as one page: words, figures and tables in a file that needs no network.

Whatever comes from a log is escaped here, once for HTML and once for the data block; the page's
policy lets no script and no style run but those whose checksums it names.
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

from ..contents import BY_NAME
from ..drawings import DRAWINGS
from ..report import LogFacts, Report
from ..schema import Part
from ..style import DASHES, HUES_LIGHT, RAMP_LIGHT, SHAPES, Style, styles, variables
from ..table import Table
from .answers import answers
from .glossary import glossary, meaning, meaning_of_prices

PARTS: dict[Part, str] = {
    "costs": "What it costs",
    "score": "Is the score any good?",
    "advice": "What should I buy?",
    "time": "Time, and what is not solved",
}
_FEW = 20  # rows of a table that is shown without being asked for


def page(report: Report, title: str = "") -> str:
    """The whole file."""
    script, style = _script(), _style()
    names = ", ".join(log.name for log in report.logs)
    return Template(_asset("page.html")).substitute(
        policy=_policy(script, style),
        style=style,
        script=script,
        several="several" if len(report.logs) > 1 else "one",
        title=escape(title or f"grv report: {names}"),
        logs="".join(map(_log_line, report.logs)),
        answers=_answers(report),
        warnings=_warnings(_plain(report, text) for text in report.warnings),
        links="".join(f'<a href="#{part}">{escape(PARTS[part])}</a>' for part in _used(report)),
        parts="".join(_part(report, part) for part in _used(report)),
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
    hues = [f".hue-{at}{{--hue:var(--hue-{at})}}" for at in range(len(HUES_LIGHT))]
    ramp = [f".ramp-{at}{{--hue:var(--ramp-{at})}}" for at in range(len(RAMP_LIGHT))]
    light, dark = variables(dark=False), variables(dark=True)
    themes = [
        f":root{{color-scheme:light;{light}}}",
        "@media (prefers-color-scheme:dark){:root:not([data-theme=light])"
        f"{{color-scheme:dark;{dark}}}}}",
        f":root[data-theme=dark]{{color-scheme:dark;{dark}}}",
    ]
    return "\n".join([*themes, *hues, *ramp, _asset("page.css")])


def _policy(script: str, style: str) -> str:
    """Nothing is fetched from anywhere, and nothing runs that is not ours."""
    ours = {
        kind: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for kind, text in (("script", script), ("style", style))
    }
    return (
        f"default-src 'none'; script-src 'sha256-{ours['script']}';"
        f" style-src 'sha256-{ours['style']}'; base-uri 'none'; form-action 'none'"
    )


def _used(report: Report) -> list[Part]:
    there = {BY_NAME[table.name].part for table in report.tables}
    return [part for part in PARTS if part in there]


def _log_line(log: LogFacts) -> str:
    kinds = {"ledger": "ledger of live runs, ", "comparison": "saved comparison, "}
    counts = f"{_counted(log.problems, 'problem')}, {log.solvable} solvable,"
    counts += f" {_counted(log.candidates, 'candidate')}"
    parts = [f"{kinds.get(log.kind, '')}{counts}", f"ranked by {log.score}" if log.score else ""]
    parts += [f"{log.unscored} without a score" if log.unscored else ""]
    parts += [f"{log.unlabelled} without a label" if log.unlabelled else ""]
    text = ", ".join(part for part in parts if part)
    return f"<p class=log><strong>{escape(log.name)}</strong> {escape(text)}</p>"


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _answers(report: Report) -> str:
    cards = []
    for answer in answers(report):
        items = "".join(f"<li>{escape(sentence)}</li>" for sentence in answer.sentences)
        cards.append(f"<div class=answer><h2>{escape(answer.question)}</h2><ul>{items}</ul></div>")
    items = "".join(f"<li>{escape(_plain(report, text))}</li>" for text in report.findings)
    more = f"<details class=more><summary>All in words</summary><ul>{items}</ul></details>"
    names = f"<details class=more><summary>What the names mean</summary>{_names(report)}</details>"
    return f"<div class=answers>{''.join(cards)}</div>{more if items else ''}{names}"


def _names(report: Report) -> str:
    lines = [
        f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>"
        for name, text in glossary(_policies(report), _prices(report))
    ]
    return f"<dl>{''.join(lines)}</dl>"


def _plain(report: Report, text: str) -> str:
    """The text without the name of the log, where there is only one."""
    if len(report.logs) > 1:
        return text
    name = report.logs[0].name
    if text.startswith(f"{name}, "):  # and a price list
        rest = text.removeprefix(f"{name}, ")
        return f"At {rest.replace('measured:', 'measured costs:', 1)}"
    rest = text.removeprefix(f"{name}: ")
    return rest if rest == text else rest[:1].upper() + rest[1:]


def _warnings(warnings: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(warning)}</li>" for warning in warnings)
    return (
        f"<div class=warnings role=note><h2>Be careful</h2><ul>{items}</ul></div>" if items else ""
    )


def _part(report: Report, part: Part) -> str:
    """Figures first, then what is only a table, then why there is nothing else."""
    tables = [table for table in report.tables if BY_NAME[table.name].part == part]
    tables = [table for table in tables if not _is_idle(report, table)]
    shown = [table for table in tables if table.rows]
    drawn = "".join(_card(report, table) for table in shown if table.name in DRAWINGS)
    others = "".join(_card(report, table) for table in shown if table.name not in DRAWINGS)
    missing = _missing(report, [table for table in tables if not table.rows])
    return (
        f"<section id={part} class=part><h2>{escape(PARTS[part])}</h2>"
        + (f"<div class=cards>{drawn}</div>" if drawn else "")
        + (f"<div class=tables>{others}</div>" if others else "")
        + (f"<ul class=missing>{missing}</ul>" if missing else "")
        + "</section>"
    )


def _is_idle(report: Report, table: Table) -> bool:
    """Whether it only repeats another table, there being one log or one price list."""
    if table.name in ("per_log", "paired"):
        return len(report.logs) < 2
    return table.name == "ratio_ablation" and len(_prices(report)) < 2


def _missing(report: Report, tables: Iterable[Table]) -> str:
    """Why tables are empty, each reason once."""
    reasons: dict[str, list[str]] = {}
    for table in tables:
        words = " ".join(_plain(report, note) for note in table.notes)
        title = f"<b id={escape(table.name)}>{escape(table.title)}</b>"
        reasons.setdefault(words, []).append(title)
    return "".join(f"<li>{'; '.join(t)}: {escape(words)}</li>" for words, t in reasons.items())


def _card(report: Report, table: Table) -> str:
    """One table's place on the page; scripts fill in what is drawn."""
    name, drawn = escape(table.name), table.name in DRAWINGS
    notes = "".join(f"<li>{escape(_plain(report, note))}</li>" for note in table.notes)
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


def _said(value: Any) -> str:
    """A setting as people write it."""
    if value is None:
        return "not given"
    if isinstance(value, list | tuple):
        nested = any(isinstance(each, list | tuple) for each in value)
        return ("; " if nested else ", " if any(isinstance(v, str) for v in value) else ",").join(
            map(_said, value)
        )
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _settings(report: Report) -> str:
    lines = [
        f"<dt>{escape(name.replace('_', ' '))}</dt><dd>{escape(_said(value))}</dd>"
        for name, value in report.settings.items()
    ]
    for log in report.logs:
        if log.excluded:
            text = f"{len(log.excluded)}: {', '.join(log.excluded)}"
            lines.append(f"<dt>left out of {escape(log.name)}</dt><dd>{escape(text)}</dd>")
    return f"<dl>{''.join(lines)}</dl>"


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


def looks_of(report: Report) -> dict[str, Style]:
    """The styles of all that a report's figures name."""
    return styles([*_policies(report), *(log.name for log in report.logs)])


def _data(report: Report) -> str:
    """The numbers, in a block that no text in them can end."""
    data: dict[str, Any] = {
        "costs": _prices(report),
        "logs": [log.name for log in report.logs],
        "policies": _policies(report),
        "meanings": {name: meaning(name) for name in _policies(report)}
        | {costs: meaning_of_prices(costs) for costs in _prices(report)},
        "styles": {name: asdict(style) for name, style in looks_of(report).items()},
        "dashes": DASHES,
        "shapes": SHAPES,
        "drawings": {k: [each.to_json() for each in v] for k, v in DRAWINGS.items()},
        "tables": [_slim(table) for table in report.tables if table.rows],
    }
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _slim(table: Table) -> dict[str, Any]:
    """A table without the words that the page has outside of it."""
    record = table.to_json()
    return {key: record[key] for key in ("name", "title", "alt", "columns", "rows")}
