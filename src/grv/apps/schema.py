"""`grv schema`: the JSON Schemas of the files that people write and read."""

from __future__ import annotations

import json

from ..core.errors import UsageError
from ..options import did_you_mean, option
from .console import say
from .options.command import command

NAMES = ("job", "problems", "clients", "answers")


@command
def schema(
    file: str = option(
        ..., f"The kind of file: {', '.join(NAMES)}.", argument=True, metavar="|".join(NAMES)
    ),
) -> None:
    """Print the JSON Schema of a kind of file, for editors and other programs.

    Job files and files of clients are TOML. A file of problems has one JSON object per line, and so
    has a file of answers: the schema is that of a line. An editor with Taplo reads the schema that
    the first line of a TOML file names.

    \b
    grv schema job > job.schema.json
    sed -i '1i #:schema ./job.schema.json' job.toml
    """
    from .options.schema import SCHEMAS
    from .options.schema import schema as made

    if file not in SCHEMAS:
        hint = did_you_mean(file, list(SCHEMAS))
        raise UsageError(f"{file}: give one of {', '.join(SCHEMAS)}{hint}")
    say(*json.dumps(made(file), indent=1).splitlines())
