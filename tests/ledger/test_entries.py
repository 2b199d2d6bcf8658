"""Entries as lines of JSON, and back."""

from __future__ import annotations

import math
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given

from grv.core.errors import LedgerError
from grv.core.values import CandidateId, Generated, Verdict, Verified
from grv.ledger.entries import (
    Entry,
    Found,
    Made,
    Scored,
    Started,
    Told,
    from_text,
    kind_of,
    to_text,
)
from grv.ledger.sqlite import SqliteLedger
from grv.testing.contracts_ledger import LIFE, entries
from grv.usage import Usage


@given(entries())
def test_every_entry_comes_back_as_it_was(entry: Entry) -> None:
    text = to_text(entry)
    assert "\n" not in text
    assert text.isascii()
    assert from_text(kind_of(entry), text) == entry


@pytest.mark.parametrize("entry", LIFE, ids=kind_of)
def test_a_truncated_line_is_not_an_entry(entry: Entry) -> None:
    text = to_text(entry)
    for end in range(len(text)):
        with pytest.raises(LedgerError, match="not an entry of kind"):
            from_text(kind_of(entry), text[:end])


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("nothing", "{}"),
        ("made", "{}"),
        ("made", "[]"),
        ("made", "null"),
        ("made", "[" * 100_000),
        ("found", '{"candidate":1,"verdict":"maybe","reason":"","evidence":{},"usage":{}}'),
        ("told", '{"event":"none","why":""}'),
        ("told", '{"event":{"verified":[]},"why":""}'),
        ("told", '{"event":{"generated":3,"keys":[],"paid":null},"why":""}'),
        ("intended", '{"call":"generate","candidates":3}'),
    ],
)
def test_an_invalid_entry_is_a_ledger_error(kind: str, text: str) -> None:
    with pytest.raises(LedgerError, match="not an entry of kind"):
        from_text(kind, text)


def test_the_format_on_paper() -> None:
    """What was once written must be read for ever."""
    made = Made(3, "text", (-0.5,), Usage(seconds=1))
    start = '{"candidate":3,"text":"text","logprobs":[-0.5],"usage":{'
    assert from_text("made", start + '"seconds":1}}') == made
    assert to_text(made) == start + (
        '"prompt_tokens":0,"completion_tokens":0,"seconds":1,"dollars":null,"cached_tokens":0,'
        '"cache_write_tokens":0,"reasoning_tokens":0}}'
    )
    assert from_text("made", to_text(made)) == made
    told = Told(Generated((1.0, float("-inf")), ("k", None)), "because")
    assert to_text(told) == (
        '{"event":{"generated":[1.0,null],"keys":["k",null],"paid":null},"why":"because"}'
    )
    told = Told(Verified({CandidateId(3): Verdict.BROKEN}))
    assert to_text(told) == '{"event":{"verified":{"3":"broken"},"paid":null},"why":""}'


def test_the_price_of_waiting_is_read_under_its_earlier_name() -> None:
    record = '{"problem":"p","about":{"width":4,"pace":{"second":0.5,"ramp":false}}}'
    about = {"width": 4, "pace": {"wait_price": 0.5, "ramp": False}}
    assert from_text("started", record) == Started("p", about)


def test_evidence_that_is_not_json_is_stored_as_its_repr() -> None:
    found = Found(0, Verdict.FAILED, evidence={"set": {1}, "number": float("nan")})
    again = from_text("found", to_text(found))
    assert isinstance(again, Found)
    assert again.evidence["set"] == "{1}"


def test_what_later_versions_add_is_written_only_if_it_says_something() -> None:
    plain = '{"candidate":1,"score":0.5,"key":null,"reason":""}'
    assert to_text(Scored(1, 0.5)) == plain
    assert from_text("scored", plain) == Scored(1, 0.5)
    assert from_text("scored", plain[:-1] + ',"usage":{}}') == Scored(1, 0.5)  # as before
    zero = Scored(1, 0.5, alike=0.0)
    assert from_text("scored", to_text(zero)) == zero
    told = Told(Generated((1.0, 2.0), alike=(0.0, float("-inf"))))
    assert '"alike":[0.0,null]' in to_text(told)
    assert from_text("told", to_text(told)) == told
    assert "scorer" not in to_text(Started("p", {}))


def test_the_model_of_a_scorer_is_stored_once(tmp_path: Path) -> None:
    with closing(SqliteLedger(tmp_path / "runs.ledger")) as ledger:
        for search in ("a", "b"):
            ledger.append(search, [Started(search, {}, scorer="a long model")])

        assert ledger.read("b") == [Started("b", {}, scorer="a long model")]
        assert ledger.select("SELECT COUNT(*) FROM texts") == [(1,)]
        assert ledger.check() == []


def test_candidates_generated_meanwhile_and_seconds_read_back() -> None:
    ahead = Generated((1.0, -math.inf), ("a", None), 0.5)
    told = Told(Verified({CandidateId(3): Verdict.FAILED}, 2.0, ahead, 1.25), "why")
    back = from_text("told", to_text(told))
    assert back == told
    assert isinstance(back, Told)
    assert back.event.seconds == 1.25
    for damaged in ('{"verified": {}, "paid": null}', "3"):
        text = '{"event": {"verified": {}, "paid": null, "meanwhile": %s}, "why": ""}'
        with pytest.raises(LedgerError):
            from_text("told", text % damaged)
