"""The driver of made-up worlds."""

from __future__ import annotations

from grv.core.limits import Limits
from grv.core.search import Search
from grv.core.values import CandidateId, Costs, Generate, Reason, Stop, Verify
from grv.policies import Fixed, VerifyAll
from grv.testing import Scripted, World, all_wrong, dialogue, drive, run, verified

WORLD = World.of("1- 3? 2+ 0-")


def test_a_run_is_a_search_that_has_ended() -> None:
    search = run(Fixed(4, 2), Costs(), WORLD, Limits(width=None))

    assert search.outcome is not None
    assert search.outcome.reason is Reason.SOLVED
    assert search.outcome.answer == 2


def test_the_candidates_verified_are_listed_in_order() -> None:
    assert verified(run(Fixed(4, 3), Costs(), WORLD, Limits(width=None))) == [1, 2, 0]
    assert verified(run(VerifyAll(), Costs(), WORLD, Limits(width=None))) == [0, 1, 2]


def test_a_dialogue_is_what_was_asked_in_words() -> None:
    assert dialogue(Fixed(4, 2), Costs(), WORLD, Limits(width=None)) == [
        "generate 4",
        "verify 2",
        "solved by 2",
    ]
    assert dialogue(Fixed(4, 2), Costs(), WORLD, Limits(budget=14)) == [
        "generate 4",
        "verify 1",
        "out of budget",
    ]


def test_a_search_can_be_taken_up_where_it_stands() -> None:
    search = Search(Fixed(4, 2), Costs(), Limits(width=None))
    action = search.ask()
    assert isinstance(action, Generate)
    search.tell(WORLD.event(action, seen=0))

    drive(search, WORLD)

    assert search.trace == run(Fixed(4, 2), Costs(), WORLD, Limits(width=None)).trace


def test_a_script_is_followed_to_its_end() -> None:
    search = run(
        Scripted((Generate(2), Verify((CandidateId(1),)))),
        Costs(),
        all_wrong(3),
        Limits(width=None),
    )

    assert search.ask() == Stop(Reason.FINISHED)
    assert verified(search) == [1]
