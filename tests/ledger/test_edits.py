"""Edits of a keyed ledger by a person without its key: detected, or without effect."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from grv.core.errors import LedgerError
from grv.core.values import CandidateId, Generated, Verdict, Verified
from grv.ledger.checking import repair
from grv.ledger.entries import (
    Ended,
    Entry,
    Failed,
    Found,
    Intended,
    Made,
    Scored,
    Settled,
    Started,
    Told,
)
from grv.ledger.rows import SearchSummary
from grv.ledger.sqlite import SqliteLedger
from support.edits import SEARCHES, edit_bytes, edit_rows

KEY = b"the key of this ledger"
Read = Mapping[str, tuple[tuple[Entry, float], ...]]


def life(at: int) -> list[Entry]:
    """The entries of a search; of two searches, some are equal."""
    name = f"problem {at // 2}"
    entries: list[Entry] = [
        Started(name, {"seed": at}, f"Solve {name}.", '{"kind": "command"}', ""),
        Intended("generate", (0, 1, 2), 3.0),
        Settled("generate", (0, 1, 2), 0.0, "no response within 1 s"),
        Intended("generate", (0, 1, 2), 3.0),
        *(Made(i, f"text {i} of {name} {'x' * 300 * (i == at % 3)}", (-0.5, -1.0)) for i in (0, 1)),
        Settled("generate", (0, 1, 2), 1.0),
        Intended("score", (0, 1)),
        Scored(0, -0.75, "key"),
        Scored(1, None, None, "no tokens"),
        Told(Generated((-0.75, float("-inf")), ("key", None)), "the first shell"),
        Intended("verify", (0,), 10.0),
        Found(0, Verdict.PASSED if at % 2 else Verdict.FAILED, "said", {"tests": [1, None]}),
        Told(Verified({CandidateId(0): Verdict.PASSED if at % 2 else Verdict.FAILED})),
    ]
    if at % 2:
        entries.append(Ended("solved", 0, 2, 1, 12.0))
    elif at == 2:
        entries.append(Failed("the server is gone"))
    return entries


@dataclass(frozen=True)
class Template:
    """A healthy ledger: its bytes, and what its searches read as."""

    content: bytes
    searches: Read
    listed: Sequence[SearchSummary]
    paid: float


def read_all(ledger: SqliteLedger) -> dict[str, tuple[tuple[Entry, float], ...]]:
    """All searches that can be read."""
    found = {}
    for at in range(SEARCHES):
        with suppress(LedgerError):
            found[f"s{at}"] = tuple(ledger.intact(f"s{at}"))
    return found


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    path = tmp_path_factory.mktemp("template") / "ledger"
    with closing(SqliteLedger(path, key=KEY)) as ledger:
        lives = {f"s{at}": life(at) for at in range(SEARCHES)}
        for step in range(max(map(len, lives.values()))):  # their rows alternate
            for search, entries in lives.items():
                ledger.append(search, entries[step : step + 1])
        assert ledger.check() == []
        searches = read_all(ledger)
        assert [[entry for entry, _ in each] for each in searches.values()] == list(lives.values())
        listed, paid = list(ledger.searches()), ledger.possibly_paid()
    return Template(path.read_bytes(), searches, listed, paid)


def faults_of(path: Path) -> tuple[list[str], dict[str, tuple[tuple[Entry, float], ...]]]:
    """What opening and checking report, and the searches that can still be read."""
    try:
        ledger = SqliteLedger(path, key=KEY, read_only=True)
    except LedgerError as error:
        return [str(error)], {}
    with closing(ledger):
        faults: list[str] = []
        try:
            faults = ledger.check()
        except LedgerError as error:
            faults = [str(error)]
        return faults, read_all(ledger)


def saved(path: Path, to: Path) -> dict[str, tuple[tuple[Entry, float], ...]]:
    """What a repair saves."""
    for each in to.parent.glob(f"{to.name}*"):
        if each.is_file():
            each.unlink()
    try:
        old = SqliteLedger(path, key=KEY, read_only=True, damaged=True)
    except LedgerError:
        return {}
    with closing(old), closing(SqliteLedger(to, key=KEY)) as new:
        with suppress(LedgerError):
            repair(old, new)
        assert new.check() == []
        return read_all(new)


def survives(template: Template, folder: Path, seed: int) -> str:
    """Make one edit and check what must hold; return its kind and whether it was detected."""
    chance = random.Random(seed)
    path = folder / "ledger"
    path.write_bytes(template.content)
    edit = edit_bytes if chance.random() < 0.4 else edit_rows
    name, touched = edit(path, chance)
    faults, readable = faults_of(path)
    detected = bool(faults)
    assert all(isinstance(fault, str) and fault for fault in faults)
    said = f"seed {seed}: {name}: {faults[:3]}"
    if not detected:
        assert readable == template.searches, said
        with closing(SqliteLedger(path, key=KEY, read_only=True)) as ledger:
            assert list(ledger.searches()) == template.listed, said
            assert ledger.possibly_paid() == template.paid, said
    for search, entries in readable.items():
        original = template.searches[search]
        assert entries == original[: len(entries)], f"{said}: {search} reads otherwise"
    if touched is not None and chance.random() < 0.2:
        opened = bool(readable)
        kept = saved(path, folder / "saved")
        for search, entries in template.searches.items():
            if search not in touched and opened:
                assert readable.get(search) == entries, f"{said}: {search} cannot be read"
                assert kept.get(search) == entries, f"{said}: {search} was not saved"
    return f"{name}: {'detected' if detected else 'harmless'}"


def run(template: Template, folder: Path, seeds: Iterable[int]) -> None:
    outcomes: dict[str, int] = {}
    for seed in seeds:
        outcome = survives(template, folder, seed)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    for outcome, count in sorted(outcomes.items()):
        print(f"{count:6} {outcome}")


def test_a_message_of_sqlite_that_is_not_utf_8_is_a_ledger_error(
    template: Template, tmp_path: Path
) -> None:
    """SQLite's message on a damaged table quotes its name."""
    path = tmp_path / "ledger"
    damaged = template.content.replace(b"tableentriesentries", b"table\xb6ntriesentries")
    damaged = damaged.replace(b"CREATE TABLE", b"CREATE \xb6ABLE")
    assert damaged != template.content
    path.write_bytes(damaged)
    descriptors = Path("/proc/self/fd")
    with pytest.raises(LedgerError) as caught:
        SqliteLedger(path, key=KEY)
    # The error keeps what was open, if it was not closed.
    links = [os.path.realpath(each) for each in descriptors.iterdir()]
    assert not [each for each in links if each.startswith(str(path))], caught.value


@pytest.mark.slow
def test_edits_without_the_key_are_detected_or_harmless(template: Template, tmp_path: Path) -> None:
    run(template, tmp_path, range(500))


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("group", range(40))
def test_many_edits_without_the_key(template: Template, tmp_path: Path, group: int) -> None:
    """100,000 edits in groups of 2,500."""
    run(template, tmp_path, range(1000 + 2500 * group, 1000 + 2500 * (group + 1)))
