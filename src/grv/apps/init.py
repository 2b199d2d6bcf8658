"""`grv init`: the first files of a project, for what the user has."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from ..core.errors import UsageError
from ..files import write_whole
from ..options import did_you_mean, option
from .console import say
from .options.command import command

SCHEMA = "job.schema.json"
AGENT = "agent.sh"
# What there is, by the names of the folders in `data/start`; and what to do with the files.
STARTS: Mapping[str, str] = {
    "server": "Name your model and its address in job.toml. Then: grv solve --job job.toml; or, for"
    " clients of a server: grv serve job.toml --ledger serve.ledger",
    "log": "Replace log.csv by your log. Then: grv compare log.csv --job job.toml",
    "agent": "Put your agent into agent.sh. Then: grv solve --job job.toml --allow-commands",
}


@command
def init(
    have: str = option(
        ...,
        "What there is already: a model's server, a log of candidates, or an agent.",
        argument=True,
        metavar="|".join(STARTS),
    ),
    folder: str = option(".", "Where the files go.", metavar="DIR", shown="here"),
) -> None:
    """Write a commented job file and two problems to begin with. No file is overwritten.

    server: grv solve asks a model behind an OpenAI-compatible address. log: grv compare replays a
    small log, which shows what a log looks like. agent: grv solve runs a program that makes
    candidates. The job file names its schema, so that editors complete and check it.

    \b
    grv init server
    grv solve --job job.toml
    """
    if have not in STARTS:
        hint = did_you_mean(have, list(STARTS))
        raise UsageError(f"{have}: give one of {', '.join(STARTS)}{hint}")
    from .options.schema import schema

    source = resources.files("grv") / "data" / "start" / have
    files = {each.name: each.read_text(encoding="utf-8") for each in source.iterdir()}
    files[SCHEMA] = f"{json.dumps(schema('job'), indent=1)}\n"
    place = Path(folder)
    if AGENT in files:  # it runs in another folder, so the job file names the whole path
        written = json.dumps(f"command:{shlex.quote(str((place / AGENT).resolve()))}")
        files["job.toml"] = files["job.toml"].replace(f'"command:{AGENT}"', written)
    for name in sorted(files):
        if os.path.lexists(place / name):
            raise UsageError(f"{place / name}: exists; give another --folder")
    place.mkdir(parents=True, exist_ok=True)
    for name, text in sorted(files.items()):
        write_whole(place / name, text)
        if text.startswith("#!"):
            (place / name).chmod(0o755)
        say(f"wrote {place / name}")
    say(STARTS[have])
