from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from grv.apps.doctor import doctor

app = typer.Typer()
app.command()(doctor)


@pytest.mark.soak
@pytest.mark.parametrize("level", ["strict", "jail"])
def test_all_is_well_here(level: str) -> None:
    result = CliRunner().invoke(app, ["--isolation", level, "--verbose"])
    assert result.exit_code == 0, result.output
    assert result.output.endswith("all is well\n")
    assert f"isolation {level}: landlock" in result.output
    assert "ok  fork bomb (function): failed" in result.output


def test_there_is_nothing_to_examine_without_a_jail() -> None:
    result = CliRunner().invoke(app, ["--isolation", "unsafe"])
    assert result.exit_code != 0
