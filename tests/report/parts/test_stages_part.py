"""Which stage of a verification pays for itself."""

from __future__ import annotations

import pytest

from grv.logs.readers import log_of_frame
from grv.report.build import make_report
from grv.report.inputs import ReportSource
from grv.report.parts.stages import counted_stages
from grv.report.request import ReportRequest
from support.reports import FEW, by_hand

TEXT = '[["text", 1]]'
SCREEN = '[["text", 1], ["judge", {}]]'
SCREENED = {
    "problem": ["p"] * 4,
    "candidate": range(4),
    "score": range(4),
    "passed": [0, 0, 0, 1],
    "stage_costs": [TEXT, TEXT, SCREEN.format(1.5), SCREEN.format(1.5)],
    "failed_stage": ["text", "text", "judge", ""],
}


def test_a_screen_pays_from_the_price_at_which_it_spares_more_than_it_costs() -> None:
    for price, word in ((3, "pays"), (1.5, "does not pay")):
        costs = ['[["text", 1]]', '[["text", 1]]', *[SCREEN.format(price)] * 2]
        failed = ["text", "text", "judge", ""]
        log = log_of_frame(
            {
                "problem": ["p"] * 4,
                "candidate": [0, 1, 2, 3],
                "score": [0, 1, 2, 3],
                "passed": [0, 0, 0, 1],
                "stage_costs": costs,
                "failed_stage": failed,
            }
        )
        found = counted_stages(log.problems)
        text = found["text"]
        assert (text.runs, text.refutes, text.mean_cost) == (4, 0.5, 1)
        assert text.mean_spared == pytest.approx(price)
        assert text.words.startswith(f"{word}: what follows must cost more than 2")
        assert (found["judge"].runs, found["judge"].refutes) == (2, 0.5)


def test_only_stages_up_to_the_next_failure_are_spared() -> None:
    """The second test finds what the first one finds, so the first one does not pay."""
    every = '[["a", 1], ["b", 1], ["c", 8]]'
    log = log_of_frame(
        {
            "problem": ["p"] * 6,
            "candidate": range(6),
            "score": range(6),
            "passed": [0, 0, 0, 0, 0, 1],
            "stage_costs": ['[["a", 1]]'] * 2 + ['[["a", 1], ["b", 1]]'] * 3 + [every],
            "failed_stage": ["a", "a", "b", "b", "b", ""],
        }
    )
    first = counted_stages(log.problems)["a"]
    assert first.mean_spared == 1
    assert first.words.startswith("does not pay: what follows must cost more than 3")
    assert counted_stages(log.problems)["c"].words.startswith("refutes nothing")


def test_the_last_stage_is_needed_and_a_screen_before_free_stages_does_not_pay() -> None:
    log = log_of_frame(
        {
            "problem": ["p"] * 4,
            "candidate": range(4),
            "score": range(4),
            "passed": [0, 0, 0, 1],
            "stage_costs": ['[["judge", 1]]'] * 2 + ['[["judge", 1], ["tests", 0]]'] * 2,
            "failed_stage": ["judge", "judge", "tests", ""],
        }
    )
    found = counted_stages(log.problems)
    assert found["judge"].words == "does not pay: what follows must cost more than 2, and costs 0"
    assert found["tests"].words == "free"
    last = counted_stages(log_of_frame(SCREENED).problems)["judge"]
    assert last.mean_spared is None
    assert last.words == "needed: nothing follows that could fail the candidate"
    request = ReportRequest(orders=1, many_orders=1, policies=FEW)
    report = make_report([ReportSource("x", log=log)], request)
    said = " ".join(line for each in report.conclusions for line in each.sentences)
    said = said.replace("\N{NO-BREAK SPACE}", " ")
    assert "as a screen it does not pay below a price of 2 for what follows" in said


def test_candidates_that_share_a_verification_count_once() -> None:
    """A ledger has the stages for all candidates of a key, and for verdicts that cost nothing."""
    log = log_of_frame(
        {
            "problem": ["p"] * 6,
            "candidate": range(6),
            "score": range(6),
            "passed": [0, 0, 0, 0, 0, 1],
            "key": ["a", "a", "a", "b", None, "c"],
            "shared": [None, None, None, None, True, None],
            "stage_costs": [TEXT] * 3 + [SCREEN.format(3), '[["text", 0]]', SCREEN.format(3)],
            "failed_stage": ["text"] * 3 + ["judge", "text", ""],
        }
    )
    found = counted_stages(log.problems)
    assert (found["text"].runs, found["text"].failures, found["text"].cost) == (3, 1, 3)
    assert (found["judge"].runs, found["judge"].failures) == (2, 1)


def test_what_is_free_or_refutes_nothing_is_said_so() -> None:
    log = log_of_frame(
        {
            "problem": ["p", "p"],
            "candidate": [0, 1],
            "score": [0, 1],
            "passed": [0, 1],
            "stage_costs": ['[["refutation", 0]]', '[["text", 1]]'],
            "failed_stage": ["refutation", ""],
        }
    )
    found = counted_stages(log.problems)
    assert found["refutation"].words == "free"
    assert found["text"].words.startswith("refutes nothing")


@pytest.mark.slow
def test_the_report_says_what_each_stage_refutes_and_when_it_pays() -> None:
    log = log_of_frame(
        {
            "problem": [*"aaaa", *"bbbb"],
            "candidate": [0, 1, 2, 3] * 2,
            "score": [0, 1, 2, 3] * 2,
            "passed": [0, 0, 0, 1] * 2,
            "stage_costs": ['[["text", 1]]', '[["text", 1]]', *[SCREEN.format(1.5)] * 2] * 2,
            "failed_stage": ["text", "text", "judge", ""] * 2,
        }
    )
    request = ReportRequest(orders=1, many_orders=1, policies=FEW)
    report = make_report([ReportSource("x", log=log)], request)
    assert [row["stage"] for row in report["stages"].records()] == ["text", "judge"]
    said = " ".join(line for each in report.conclusions for line in each.sentences)
    said = said.replace("\N{NO-BREAK SPACE}", " ")
    assert "The stage text refutes 50 %" in said
    assert "does not pay below a price of 2 for what follows" in said
    assert "stage_costs" in " ".join(by_hand()["stages"].notes)
