"""Going by history, inside the guard."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

from grv.core.errors import UsageError
from grv.core.limits import Limits
from grv.core.values import Costs, Generate, Generated, Verify
from grv.learning.prior_file import load_prior
from grv.learning.prior_file import parse_policy as parse
from grv.policies import DEFAULT, Learned
from grv.policies.learned.policy import UnlikeHistoryWarning
from grv.policies.spec import spec
from grv.testing import World, empty, run, verified
from grv.testing.contracts import PolicyContract
from support.examples import examples

ASSET = Path(__file__).parent.parent / "assets" / "prior-1.json"
PRIOR = load_prior(str(ASSET))


@pytest.mark.filterwarnings("ignore::grv.policies.learned.policy.UnlikeHistoryWarning")
class TestLearned(PolicyContract, max_examples=examples(60)):
    policy = Learned(PRIOR)


@pytest.mark.filterwarnings("ignore::grv.policies.learned.policy.UnlikeHistoryWarning")
class TestLearnedWithAnotherFactor(PolicyContract, max_examples=examples(20)):
    policy = Learned(PRIOR, factor=3)


@pytest.mark.filterwarnings("ignore::grv.policies.learned.policy.UnlikeHistoryWarning")
class TestLearnedWithTiesAndVotes(PolicyContract, max_examples=examples(40)):
    policy = Learned(load_prior(str(ASSET.with_name("prior-1-ties.json"))))


@pytest.fixture
def prior(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy that may be spoilt."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "prior.json"
    path.write_text(ASSET.read_text())
    return path


def spoilt(path: Path, **changes: Any) -> None:
    record = json.loads(path.read_text()) | changes
    path.write_text(json.dumps(record))


def like_history(n: int, *, top: float = 3.0) -> str:
    """Failures whose scores are spread as those of the history; one is better than the rest."""
    from statistics import NormalDist

    at = [NormalDist().inv_cdf((2 * i + 1) / (2 * n)) for i in range(n)]
    mixed = [at[(7 * i) % n] for i in range(n)]
    return " ".join([*(f"{score:.4f}-" for score in mixed), f"{top}+"])


def test_a_good_score_is_verified_and_a_poor_one_waits() -> None:
    poor = run(Learned(PRIOR), Costs(1, 10), World.of("-1- -1.2- 4+"), Limits(width=None))
    good = run(Learned(PRIOR), Costs(1, 10), World.of("4+ -1- -1.2-"), Limits(width=None))

    assert verified(good) == [0]
    assert len(good.pool) == 1
    assert verified(poor)[0] == 2


def test_failures_make_it_less_particular() -> None:
    """The merit of the other candidates rises with every failure of a better one."""
    search = run(Learned(PRIOR), Costs(1, 10), World.of(like_history(60)), Limits(width=None))

    assert search.outcome is not None
    assert search.outcome.solved
    first, last = (turn.action.why for turn in (search.trace[0], search.trace[-1]))
    assert first == "no open candidate"
    assert last.startswith(("verifying", "guard"))


def test_each_step_says_why() -> None:
    search = run(Learned(PRIOR), Costs(1, 10), World.of(like_history(40)), Limits(width=None))

    known = ("no open candidate", "verifying the best one saves ", "guard: ")
    assert all(turn.action.why.startswith(known) for turn in search.trace)


def test_an_empty_world_has_nothing_to_verify() -> None:
    search = run(Learned(PRIOR), Costs(), empty(), Limits(width=None))

    assert search.outcome is not None
    assert not search.outcome.solved


def test_the_rest_is_verified_by_merit_when_no_more_can_be_generated() -> None:
    search = run(Learned(PRIOR), Costs(1, 1000), World.of("0- 2- 1- -1-"), Limits(width=None))

    assert verified(search) == [1, 2, 0, 3]


def test_a_specification_names_the_content_of_the_file(prior: Path) -> None:
    policy = parse("learned('prior.json')")

    assert (
        spec(policy)
        == f"learned(prior='prior.json', hash={Learned(load_prior('prior.json')).hash!r})"
    )
    assert parse(spec(policy)) == policy


def test_a_changed_file_is_refused_if_the_hash_is_given(prior: Path) -> None:
    before = spec(Learned(load_prior("prior.json")))
    spoilt(prior, tie=0.5)

    with pytest.raises(UsageError, match=r"prior\.json has changed: its hash is \w+, not \w+; "):
        parse(before)
    assert (
        Learned(load_prior("prior.json")).hash not in before
    )  # who does not know gets the new one


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"version": 2}, "a prior of version 2, but this grv reads version 1; make it again"),
        ({"format": "something else"}, "not a prior; make one with grv learn"),
        ({"tie": 0}, "a broken prior: tie must be above 0"),
        ({"weights": [1.0]}, "a broken prior: there must be 72 weights"),
        ({"weights": []}, "a broken prior: there must be 72 weights"),
        ({"weights": None}, "a broken prior: "),
        ({"weights": [float("nan")] * 72}, "not a prior: a number is not finite"),
        ({"weights": [-1.0] * 72}, "a broken prior: weights must be positive"),
        ({"weights": [1e308] * 72}, "a broken prior: weights must be smaller"),
        ({"weights": [5e-324, *[1.0] * 71]}, "a broken prior: a weight is too small beside the"),
        ({"levels": [-1e4] * 12}, "a broken prior: levels and shape must stay within 500"),
        ({"shape": [1e300] * 12}, "a broken prior: levels and shape must stay within 500"),
        ({"tilts": [1e9] * 5}, "a broken prior: tilts must stay within 50"),
        ({"score": 3}, "a broken prior: 'score' cannot be 3"),
        ({"version": "1"}, "a prior of version '1', but this grv reads version 1"),
        ({"shape": [0.0]}, "a broken prior: there must be 12 bins"),
        ({"edges": "wide"}, "a broken prior: "),
        ({"anchor": float("nan")}, "not a prior: a number is not finite"),
        ({"anchor": 10**400}, "a broken prior: 'anchor' cannot be 1000"),
        ({"evidence": {"problems": "many"}}, "a broken prior: 'problems' cannot be 'many'"),
        ({"parts": [[]]}, "a broken prior: 'parts' cannot be []"),
        ({"anchor": -1}, "a broken prior: anchor must not be negative"),
        ({"ratios": [3.0]}, "a broken prior: each ratio needs its tilts"),
        ({"ratios": [0.0, 1.0, 2.0, 3.0, 4.0]}, "a broken prior: ratios must increase"),
        ({"looks": {}}, "a broken prior: 'distance' is missing"),
        ({"looks": {"distance": None, "outside": 0}}, "a broken prior: "),
        ({"looks": {"distance": 2, "outside": 0}}, "looks must be from 0 to 1"),
        ({"scale": {"values": [1, 1], "normals": [0, 1]}}, "values of a scale must increase"),
        ({"scale": {"values": [1, 2], "normals": [1, 0]}}, "normals of a scale must increase"),
        ({"scale": {"values": [1], "normals": []}}, "as many values as normals"),
    ],
    ids=lambda each: str(each)[:30],
)
def test_a_file_that_is_not_a_prior_is_refused_in_one_line(
    prior: Path, changes: dict[str, Any], said: str
) -> None:
    spoilt(prior, **changes)

    with pytest.raises(UsageError) as caught:
        Learned(load_prior("prior.json"))
    assert str(caught.value).startswith("prior.json: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "not json", "[1, 2]", "3"])
def test_other_files_are_no_priors(prior: Path, text: str) -> None:
    prior.write_text(text)

    with pytest.raises(UsageError, match=r"^prior\.json: not a prior"):
        Learned(load_prior("prior.json"))


def test_a_file_that_is_not_there_is_said_so() -> None:
    with pytest.raises(UsageError, match=r"no\.json: cannot be read: No such file"):
        load_prior("no.json")


@pytest.mark.parametrize("wrong", [1, None, 1.5])
def test_the_prior_is_a_prior(wrong: Any) -> None:
    with pytest.raises(UsageError, match="the prior must be a Prior"):
        Learned(wrong)


def test_the_name_of_a_file_is_still_taken_with_a_warning(prior: Path) -> None:
    with pytest.warns(DeprecationWarning, match=r"becomes Learned\(load_prior\('prior.json'\)\)"):
        policy = Learned("prior.json")  # type: ignore[arg-type]
    assert policy == Learned(load_prior("prior.json"))


@pytest.mark.parametrize("wrong", [2.9, float("inf"), float("nan"), "5"])
def test_the_factor_leaves_room(wrong: Any) -> None:
    with pytest.raises(UsageError, match="factor must be at least 3"):
        Learned(PRIOR, factor=wrong)


def test_a_prior_is_for_one_score() -> None:
    policy = Learned(PRIOR)
    policy.check_score("score")

    with pytest.raises(UsageError, match="is for the score 'score', not 'logprob'"):
        policy.check_score("logprob")


def test_scores_unlike_the_history_are_left_to_the_default_policy() -> None:
    world = World.of(" ".join(f"{1000 + i}-" for i in range(40)) + " 2000+")
    with pytest.warns(UnlikeHistoryWarning, match="differ from its history"):
        search = run(Learned(PRIOR), Costs(1, 10), world, Limits(width=None))

    assert search.outcome is not None
    assert search.outcome.solved
    strange = [turn.action.why.startswith("unlike the history (100% of ") for turn in search.trace]
    assert any(strange)
    default = run(DEFAULT, Costs(1, 10), world, Limits(width=None))
    own = [turn for turn, odd in zip(search.trace, strange, strict=True) if odd]  # not the guard's
    ours = [type(turn.action) for turn in own[:2]]
    assert ours == [type(turn.action) for turn in default.trace[:2]] == [Generate, Verify]


def test_scores_like_the_history_are_not_complained_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search = run(
            Learned(PRIOR), Costs(1, 10), World.of(like_history(300, top=2.5)), Limits(width=None)
        )

    generated = [turn for turn in search.trace if isinstance(turn.event, Generated)]
    assert generated
