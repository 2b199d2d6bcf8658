"""The generated parts of the pages, and the hooks that put them there when the site is built.

A page asks for a part by a line `<!-- generated: NAME -->`. Nothing generated is kept in the
repository, so it cannot be out of date. mkdocs.yml names this file as a hook.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parent))  # mkdocs loads a hook without its folder

import rounds

import grv
from grv.apps import cli
from grv.apps.options.schema import SCHEMAS, schema
from grv.backends.generators import GENERATORS
from grv.backends.generators.recipes import RECIPES, Recipe
from grv.backends.scorers import SCORERS
from grv.backends.table import Entry
from grv.policies import DEFAULT, POLICIES, summary
from grv.policies.promises import SETTINGS, promises, promises_of, sentence
from grv.policies.spec import spec

_DATA = ("CandidateId", "DEFAULT", "DEFAULT_ROWS", "POLICIES", "POPULATIONS")  # not documented
MARK = re.compile(r"^<!-- generated: ([\w ]+) -->$", re.MULTILINE)


def _help(words: Sequence[str]) -> str:
    """What a command prints with --help."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert cli.run([*words, "--help"]) == 0
    return out.getvalue().rstrip()


def commands() -> str:
    """The help of every command, from the parser of the command line."""
    parts = []
    with patch.dict("os.environ", {"COLUMNS": "80", "TERM": "dumb"}):
        for words in command_names():
            shown = _help(words)
            parts.append(f"## {' '.join(['grv', *words])}\n\n```text\n{shown}\n```\n")
    return "\n".join(parts)


def command_names() -> list[tuple[str, ...]]:
    """Every command and every command of a group: (), ("demo",), ("runs", "list"), ..."""
    import typer

    from grv.apps.cli import application

    def walk(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        yield words
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(inner, (*words, name))

    return list(walk(typer.main.get_command(application()), ()))


def python() -> str:
    """A section for the names of `grv` and for each door; mkdocstrings writes what is in it."""
    groups: dict[str, list[str]] = {"Functions": [], "Classes": [], "Errors": []}
    for name in grv.__all__:
        found = getattr(grv, name)
        if isinstance(found, type) and issubclass(found, Exception):
            group = "Errors"
        else:
            group = "Classes" if isinstance(found, type) else "Functions"
        groups[group].append(f"::: grv.{name}\n")
    parts = [f"## {group}\n\n" + "\n".join(names) for group, names in groups.items()]
    for door in grv.DOORS:
        module = importlib.import_module(f"grv.{door}")
        about = (module.__doc__ or "").partition("\n")[0]
        names = [f"::: grv.{door}.{name}\n" for name in module.__all__ if name not in _DATA]
        parts.append(f"## grv.{door}\n\n{_escaped(about)}\n\n" + "\n".join(names))
    return "\n".join(parts)


def policies() -> str:
    """A section for every policy: what it does, what is proven, an example, its rounds."""
    parts = []
    for name, policy in POLICIES.items():
        said = policy.proven if isinstance(policy.proven, str) else sentence(promises_of(name))
        proven = _escaped(said) or "nothing"
        picture = f"[![The rounds of {name}](rounds/{name}.svg)](rounds/{name}.svg)"
        parts += [
            f"## {name}\n",
            f"**{_escaped(summary(policy))}**\n",
            _escaped(_body(policy)),
            f"**Proven:** {proven}.\n",
            f'```sh\ngrv compare log.csv --policy "{rounds.example(name)}"\n```\n',
            f"{picture}\n",
        ]
    return "\n".join(parts)


def policy_glossary() -> str:
    """A line for every policy."""
    return "\n".join(
        f"- [`{name}`](guide/policies.md#{name}): {_escaped(summary(policy))}"
        for name, policy in POLICIES.items()
    )


def generators() -> str:
    """A table of the generators, without the user's own functions."""
    return _backends("--generator", GENERATORS)


def agents() -> str:
    """A table of the recipes of coding agents."""
    head = "| agent | command | cost | switched off | source, and the day it was read |"
    rows = [
        f"| `{name}` | `{' '.join(recipe.arguments('', None))}` | {_cost(recipe)}"
        f" | {recipe.off} | {recipe.source}; {recipe.read} |"
        for name, recipe in RECIPES.items()
    ]
    return "\n".join([head, "|---|---|---|---|---|", *rows])


def _cost(recipe: Recipe) -> str:
    """Where a recipe finds the cost of a run."""
    places = {"json": "in its output", "lines": "in its output", "file": "in its record"}
    if recipe.report.format == "text":
        return "the line `Cost:` of its output"
    where = places[recipe.report.format]
    if recipe.report.cost:
        return f"`{recipe.report.cost}` {where}"
    return f"its tokens {where}, by the price list" if recipe.report.tokens else "not said"


def scores() -> str:
    """A table of the scores, without the user's own functions and cascades."""
    return _backends("--score", SCORERS)


def _backends(flag: str, entries: Mapping[str, Entry[Any, Any]]) -> str:
    rows = [f"| `{entry.form}` | {entry.summary} |" for entry in entries.values()]
    return "\n".join([f"| `{flag}` | what it is |", "|---|---|", *rows])


def default_policy() -> str:
    """The name of the default policy, as a sentence."""
    return f"The default is `{spec(DEFAULT)}`."


def promise_settings() -> str:
    """What each setting of the table of promises assumes."""
    return "\n".join(f"- **{name}**: {meaning}." for name, meaning in SETTINGS.items())


def promise_tables() -> str:
    """A table for every policy: what is promised in each setting."""
    parts = []
    rows = promises()
    for policy in dict.fromkeys(row.policy for row in rows):
        parts += [
            f"### {policy}\n",
            "| setting | against | constant | status | |",
            "|---|---|---|---|---|",
        ]
        parts += [
            f"| {row.setting} | {_escaped(row.against)} | {_escaped(row.constant)} | {row.status}"
            f" | {_escaped(row.statement)} |"
            for row in rows
            if row.policy == policy
        ]
        parts.append("")
    return "\n".join(parts)


def real_logs() -> str:
    """The table of costs on real logs, from the figures that bench/real_logs.py wrote."""
    path = Path(__file__).parent / "research" / "real-logs.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    names = list(found)
    head = [
        "policy",
        *(f"{name.replace('humaneval', 'HumanEval').replace('aime', 'AIME')}" for name in names),
    ]
    lines = [head, ["---", *["---:"] * len(names)]]
    lines += [
        [f"`{policy}`", *(shown_ratio(found[name]["rows"][policy]) for name in names)]
        for policy in found[names[0]]["rows"]
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def shown_ratio(row: Mapping[str, float]) -> str:
    """A ratio with its interval."""
    if row["low"] == row["high"] == 1:
        return "1"
    return f"{row['ratio']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"


_TOOLS = {  # the rows of docs/research/other-tools.json: within the budget, and to the end
    "DSPy `BestOfN` (N = 16)": ("one by one", "verify-all"),
    "Inspect `epochs`, Harbor `n_attempts` (16)": ("all", "all, to the end"),
    "its_hub, optillm: the best of 16, verified once": ("fixed(16, 1)", ""),
    "best-of-n, the best size, best first": ("", "difficulty-1"),
    "grv": ("varied, 176", "varied"),
}


def other_tools() -> str:
    """What the rules of other tools cost, from the figures that bench/other_tools.py wrote."""
    path = Path(__file__).parent / "research" / "other-tools.json"
    logs = json.loads(path.read_text(encoding="utf-8"))
    titles = [f"{name}: {what}" for name in logs for what in ("cost", "solved", "to the end")]
    lines = [["rule", *titles], ["---", *["---:"] * len(titles)]]
    for tool, (within, whole) in _TOOLS.items():
        cells = []
        for log in logs.values():
            cost, solved = log["rows"].get(within, (None, None))
            cells += [
                "" if cost is None else f"{cost:.0f}",
                "" if cost is None else f"{solved:.0%}",
            ]
            cells.append(f"{log['rows'][whole][0]:,.0f}" if whole else "never")
        lines.append([tool, *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def changelog() -> str:
    """The changelog, below the title of its page."""
    text = (Path(__file__).parents[1] / "CHANGELOG.md").read_text(encoding="utf-8")
    return text.partition("\n")[2].strip().replace("](docs/", "](")


def rounds_legend() -> str:
    """What the pictures of rounds show."""
    return rounds.LEGEND


PARTS: dict[str, Callable[[], str]] = {
    "commands": cache(commands),
    "python": python,
    "policies": policies,
    "policy glossary": policy_glossary,
    "default policy": default_policy,
    "promise settings": promise_settings,
    "promise tables": promise_tables,
    "rounds legend": rounds_legend,
    "real logs": real_logs,
    "other tools": other_tools,
    "agents": agents,
    "generators": generators,
    "scores": scores,
    "changelog": changelog,
}


def filled(markdown: str) -> str:
    """A page with its generated parts."""
    return MARK.sub(lambda mark: PARTS[mark[1]](), markdown)


def _body(policy: type[Any]) -> str:
    """The docstring of a policy without its first line, its attributes and its example."""
    text = "\n".join(line.strip() for line in (policy.__doc__ or "").splitlines()[1:])
    return re.split(r"\n(?:Attributes|Examples):", text)[0].strip() + "\n"


def _escaped(text: str) -> str:
    """A sentence in which J* is no emphasis."""
    return text.replace("*", r"\*")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs for every page."""
    return filled(markdown)


def on_files(files: Any, config: Any) -> Any:
    """Called by mkdocs when it has listed the files: add pictures, schemas and notebooks."""
    from mkdocs.structure.files import File

    for name in POLICIES:
        picture = rounds.picture(name)
        files.append(File.generated(config, f"guide/rounds/{name}.svg", content=picture))
    for name in SCHEMAS:
        content = json.dumps(schema(name), indent=1)
        files.append(File.generated(config, f"schemas/{name}.schema.json", content=content))
    for path in sorted((Path(__file__).parents[1] / "examples").glob("*.ipynb")):
        content = path.read_text(encoding="utf-8")
        files.append(File.generated(config, f"notebooks/{path.name}", content=content))
    return files


def on_page_context(context: Any, page: Any, config: Any, **_: Any) -> Any:
    """Called by mkdocs before it renders a page: its foot says the version that it is about.

    `extra.version` of the theme would need a server, and this site also opens from the disk.
    """
    from mkdocs.utils import get_relative_url

    changes = get_relative_url("changelog.html", page.url)
    config.copyright = f'grv {grv.__version__} · <a href="{changes}">what changed</a>'
    return context
