"""Option families as commands: flags, help, job files and Python, from one definition."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from grv.apps.options.command import command
from grv.apps.options.job import job_option
from grv.core.errors import UsageError
from grv.options import Family, fill, from_arguments, option


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


def pair(text: str) -> tuple[int, int]:
    try:
        first, second = map(int, text.split(","))
    except ValueError:
        raise UsageError("give two numbers, as in 1,2") from None
    return first, second


@dataclass(frozen=True)
class Files(Family):
    source: str = option("", "What is read.", argument=True, metavar="SOURCE")
    out: str | None = option(None, "What is written.", "--out", "-o", metavar="FILE")


@dataclass(frozen=True)
class Look(Family):
    heat: float = option(0.7, "How hot.", least=0)
    top: int | None = option(None, "How many.", least=1, most=9)
    colour: Colour = option(Colour.RED, "Which colour.")
    edge: tuple[int, int] = option((1, 10), "Two numbers.", parse=pair, shown="1,10")
    stop: tuple[str, ...] = option((), "Repeatable.")
    keys: bool = option(True, "Whether there are keys.")


@dataclass(frozen=True, kw_only=True)
class Piece(Family):
    size: int = option(..., "The size of the piece.", "-s", "--size", least=1)
    look: Look = field(default_factory=Look)
    extra: tuple[Pair, ...] = option(
        (), "More.", parse=lambda t: Pair(**t), job_only=True, tables=True
    )
    name: str = ""


SEEN: list[tuple[Files, Look, bool]] = []
CUT: list[list[Piece]] = []


def draw(
    files: Files,
    look: Look,
    dry: bool = option(False, "Only look.", "--dry"),
    job: str | None = job_option(),
) -> None:
    """Draw something."""
    SEEN.append((files, look, dry))


def cut(pieces: list[Piece], job: str | None = job_option()) -> None:
    """Cut pieces."""
    CUT.append(pieces)


@dataclass(frozen=True)
class Pair:
    a: int = 0
    b: int = 0


def run(*arguments: str) -> tuple[Files, Look, bool]:
    app = typer.Typer(rich_markup_mode=None)
    app.command()(command(draw))
    result = CliRunner().invoke(app, arguments, standalone_mode=False, catch_exceptions=True)
    if result.exception is not None:
        raise result.exception
    return SEEN.pop()


def test_flags_fill_the_families() -> None:
    files, look, dry = run("in", "-o", "x", "--heat", "2", "--colour", "blue", "--dry")
    assert files == Files("in", "x")
    assert look == Look(heat=2.0, colour=Colour.BLUE)
    assert dry
    assert run("in", "--stop", "a", "--stop", "b", "--no-keys")[1] == Look(
        stop=("a", "b"), keys=False
    )
    assert run("in", "--edge", "3,4")[1].edge == (3, 4)


def test_a_job_file_fills_them_by_the_same_names_and_flags_win(tmp_path: Path) -> None:
    job = tmp_path / "job.toml"
    job.write_text('heat = 1\ncolour = "blue"\nstop = ["a"]\nedge = "5,6"\nkeys = false\n')
    look = run("in", "--job", str(job), "--heat", "3")[1]
    assert look == Look(3.0, None, Colour.BLUE, (5, 6), ("a",), False)
    job.write_text("heat = 9\n[draw]\nheat = 2\n[other]\nunknown = 1\n")
    assert run("in", "--job", str(job))[1].heat == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("heta = 1", "unknown option heta; did you mean heat?"),
        ('heat = "x"', "--heat x: give a number"),
        ("heat = true", "--heat True: give a number"),
        ("top = 1.5", "--top 1.5: give a whole number"),
        ('colour = "green"', "--colour green: give one of red, blue"),
        ('edge = "1"', "--edge 1: give two numbers, as in 1,2"),
        ("edge = 2020-01-01", "--edge 2020-01-01: give text"),
        ("edge = [1, 2]", "--edge [1, 2]: give text"),
        ("edge = {a = 1}", "edge: give text"),
        ("edge = true", "--edge True: give text"),
        ("top = " + "1" * 5000, "not TOML"),
        ('stop = "a"', "--stop a: give a list"),
        ("draw = 3", "draw must be a table"),
        ("heat = ", "not TOML"),
    ],
)
def test_a_mistake_in_a_job_file_is_named(text: str, message: str, tmp_path: Path) -> None:
    job = tmp_path / "job.toml"
    job.write_text(text)
    with pytest.raises(UsageError) as error:
        run("in", "--job", str(job))
    assert str(error.value).startswith(str(job))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--top", "0"], "--top 0: give a whole number from 1 to 9"),
        (["--heat", "-1"], "--heat -1: give a number of at least 0"),
        (["--heat", "nan"], "--heat nan: give a number of at least 0"),
        (["--edge", "1,x"], "--edge 1,x: give two numbers, as in 1,2"),
        (["--top", "x"], "--top x: give a whole number from 1 to 9"),
        (["--top", "1.5"], "--top 1.5: give a whole number from 1 to 9"),
        (["--heat", "x"], "--heat x: give a number of at least 0"),
        (["--colour", "green"], "--colour green: give one of red, blue"),
    ],
)
def test_a_mistake_in_a_flag_is_named(arguments: Sequence[str], message: str) -> None:
    with pytest.raises(UsageError) as error:
        run("in", *arguments)
    assert str(error.value) == message


def cut_by(*arguments: str) -> list[Piece]:
    app = typer.Typer(rich_markup_mode=None)
    app.command()(command(cut))
    result = CliRunner().invoke(app, arguments, standalone_mode=False, catch_exceptions=True)
    if result.exception is not None:
        raise result.exception
    return CUT.pop()


def test_families_contain_families_and_options_may_be_required() -> None:
    assert cut_by("-s", "2", "--heat", "3") == [Piece(size=2, look=Look(3.0))]
    with pytest.raises(UsageError) as error:
        cut_by("--heat", "3")
    assert str(error.value) == "--size N is required: the size of the piece."


def test_a_job_file_has_several_runs(tmp_path: Path) -> None:
    job = tmp_path / "job.toml"
    job.write_text("size = 2\n[[extra]]\na = 1\n[runs.large]\nsize = 9\n[runs.hot]\nheat = 5\n")
    large, hot = cut_by("--job", str(job))
    assert (large.name, large.size, large.look) == ("large", 9, Look())
    assert (hot.name, hot.size, hot.look) == ("hot", 2, Look(5.0))
    assert large.extra == (Pair(a=1),)
    for text in ("runs = 3\n", "[runs]\n", "[runs]\nlarge = 3\n"):
        job.write_text(text)
        with pytest.raises(UsageError, match="runs must be tables"):
            cut_by("--job", str(job))


def test_the_help_teaches() -> None:
    app = typer.Typer(rich_markup_mode=None)
    app.command()(command(draw))
    text = " ".join(CliRunner().invoke(app, ["--help"]).output.split())
    assert "How hot. [default: 0.7]" in text
    assert "Which colour. [default: red]" in text
    assert "Two numbers. [default: 1,10]" in text
    assert "--keys / --no-keys Whether there are keys. [default: keys]" in text
    assert "Options from a TOML file. The command line takes precedence." in text


def test_python_takes_a_family_whole_and_is_checked_alike() -> None:
    assert (
        fill(Look, {"heat": 1, "other": 2}) == Look(1.0) == from_arguments(Look, None, {"heat": 1})
    )
    with pytest.raises(UsageError, match="--top 10: give a whole number from 1 to 9"):
        Look(top=10)
    with pytest.raises(TypeError, match="unexpected option heta; did you mean heat"):
        from_arguments(Look, None, {"heta": 1})
    with pytest.raises(TypeError, match="give Look or options such as heat, not both"):
        from_arguments(Look, Look(), {"heat": 1})
