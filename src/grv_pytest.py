"""The options of `pytest --grv`. Pytest loads this file at every start, so it imports nothing.

`grv.adapters.pytest_plugin` does the work, if the option is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("grv", "problems as tests, solved by grv")
    group.addoption(
        "--grv",
        action="append",
        default=[],
        metavar="PROBLEMS",
        help="A file of problems: each one is a test, which passes if it is solved. Repeatable.",
    )
    group.addoption(
        "--grv-job", metavar="FILE", help="The job file of grv solve: generator, costs, budget."
    )
    group.addoption(
        "--grv-ledger",
        metavar="LEDGER",
        help="Where grv records what is paid for. Default: PROBLEMS.ledger.",
    )
    group.addoption(
        "--grv-allow-commands", action="store_true", help="As --allow-commands of grv solve."
    )
    group.addoption(
        "--grv-replay",
        action="store_true",
        help="Report what the ledger has. Nothing is run, and nothing is spent.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Load the rest, if it is used."""
    if config.getoption("--grv"):
        from grv.adapters.pytest_plugin import GrvRun

        config.pluginmanager.register(GrvRun(config), "grv problems")
