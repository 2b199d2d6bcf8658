"""Results without text or score: reported once, counted, and fatal if all are like that."""

from __future__ import annotations

from grv.backends.protocols import Draft, Score
from grv.backends.scorers.auto import RANKS_LAST
from grv.backends.scorers.logprob import NO_LOGPROBS
from grv.runtime.complaints import FIRST, Complaints


def test_each_kind_is_reported_once_and_counted() -> None:
    complaints, lines = Complaints(), list[str]()
    complaints.tell = lines.append
    drafts = [Draft(""), Draft("a"), Draft("b")]
    scores = [Score(None, reason="the text is empty"), Score(1.0), Score(None, reason="NaN")]
    for _ in range(FIRST):
        assert complaints.of_drafts(drafts) is None
        assert complaints.of_scores(drafts, scores) is None
    assert [line.partition("; ")[0] for line in lines] == [
        "1 of the first 3 candidates have no text",
        "1 of the first 2 candidates have no score (NaN)",
    ]
    assert lines[1].endswith("such as --score length")
    texts, missing = complaints.summary()
    assert texts.startswith("50 of 150 candidates have no text; ")
    assert missing.startswith("50 of 100 candidates have no score; ")


def test_a_run_goes_on_if_one_of_the_first_is_good() -> None:
    complaints = Complaints()
    assert complaints.of_drafts([Draft("good")]) is None
    assert complaints.of_drafts([Draft(" ")] * 1000) is None


def test_a_run_stops_if_the_first_are_all_bad() -> None:
    complaints = Complaints()
    assert complaints.of_drafts([Draft("")] * (FIRST - 1)) is None
    why = complaints.of_drafts([Draft("")])
    assert why is not None
    assert why.startswith("the first 50 candidates have no text: check --max-tokens")


def test_a_run_without_complaints_has_no_summary() -> None:
    complaints = Complaints()
    complaints.of_drafts([Draft("a")])
    complaints.of_scores([Draft("a")], [Score(0.0)])
    assert complaints.summary() == []


def test_many_candidates_that_are_cut_off_are_said_once() -> None:
    complaints = Complaints()
    lines: list[str] = []
    complaints.tell = lines.append
    cut = Draft("so it", is_cut=True)
    complaints.of_drafts([cut, Draft("4"), cut, Draft("4"), cut])
    assert (lines, complaints.summary()) == ([], [])
    complaints.of_drafts([cut])
    complaints.of_drafts([cut])
    said = "candidates were cut off in the middle, because their tokens ran out; give a larger"
    assert lines == [f"4 of 6 {said} --max-tokens"]
    assert complaints.summary() == [f"5 of 7 {said} --max-tokens"]


def test_a_search_with_the_score_auto_goes_on_if_one_response_has_no_log_probabilities() -> None:
    """It may be the first response of a process that goes on where another one was killed."""
    complaints = Complaints()
    draft = Draft("a")
    late = Score(None, reason=RANKS_LAST)
    for _ in range(2 * FIRST):
        assert complaints.of_scores([draft], [late]) is None
    assert complaints.summary()[0].startswith("100 of 100 candidates have no score")


def test_a_search_by_log_probabilities_stops_with_the_first_response_that_has_none() -> None:
    assert Complaints().of_scores([Draft("a")], [Score(None, reason=NO_LOGPROBS)]) is not None


def test_a_person_is_told_once_how_to_review() -> None:
    complaints, lines = Complaints(), list[str]()
    complaints.tell = lines.append
    complaints.parked("out.ledger")
    complaints.parked("out.ledger")
    (line,) = lines
    assert "grv review out.ledger" in line
    assert "grv dashboard out.ledger --review" in line
