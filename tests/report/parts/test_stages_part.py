"""Which stage of a verification pays for itself."""

from __future__ import annotations

import pytest

from grv.logs.readers import log_of_frame
from grv.report.parts.stages import counted_stages

SCREEN = '[["text", 1], ["judge", {}]]'


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
