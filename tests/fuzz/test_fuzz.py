"""Mutated inputs to every command: no traceback, no hang, no exit code but 0, 1, 2 and 130."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from support.fuzzing.commands import TEMPLATES, Case, case, command_of
from support.fuzzing.corpus import build
from support.fuzzing.running import run
from support.fuzzing.serving import served

pytestmark = pytest.mark.slow

EACH = 25  # cases of one test
INPUTS = 100  # of `make test`
SOAKED = 20_000  # of `make soak`
SPAWNED = 50  # every 50th case runs in a new process instead of a fork
SEED = int(os.environ.get("GRV_FUZZ_SEED", "0"))


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served() as address:
        yield address


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, url: str) -> Path:
    """The valid inputs."""
    folder = tmp_path_factory.mktemp("fuzz") / "corpus"
    folder.mkdir()
    build(folder, url)
    return folder


def check(first: int, corpus: Path, url: str, folder: Path) -> None:
    wrong = []
    for number in range(first, first + EACH):
        each = case(number, url, SEED)
        ended = run(each, corpus, folder / str(number), forked=number % SPAWNED != 0)
        if ended.faults:
            wrong.append(str(ended))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("first", range(0, INPUTS, EACH))
def test_spoilt_inputs_are_refused_in_one_line(
    first: int, corpus: Path, url: str, tmp_path: Path
) -> None:
    check(first, corpus, url, tmp_path)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("first", range(INPUTS, SOAKED, EACH))
def test_many_spoilt_inputs_are_refused_in_one_line(
    first: int, corpus: Path, url: str, tmp_path: Path
) -> None:
    check(first, corpus, url, tmp_path)


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_template_is_valid_before_it_is_spoilt(
    name: str, corpus: Path, url: str, tmp_path: Path
) -> None:
    """Or the spoilt ones would fail for another reason than what is spoilt."""
    words = TEMPLATES[name].replace("LOG", "log.csv").replace("URL", url)
    words = words.replace("ROOT", url.removesuffix("/v1"))
    whole = Case(0, name, (*command_of(name), *words.split()), (), Random(0))
    ended = run(whole, corpus, tmp_path / "case")
    assert not ended.faults, str(ended)
    assert ended.code in ((2,) if name in ("doctor", "demo") else (0, 1)), str(ended)
