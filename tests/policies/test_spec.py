"""Policies as text: round trips, and messages that teach."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.core.errors import UsageError
from grv.core.pool import Pool
from grv.core.search import Policy
from grv.core.values import Costs, Step
from grv.policies import (
    Adaptive,
    Alternate,
    Balanced,
    Fixed,
    Hedged,
    KnownLaw,
    Threshold,
    VerifyAll,
)
from grv.policies.spec import parse, spec, split, unknown
from grv.testing import Scripted

factors = st.integers(1, 99) | st.floats(1e-9, 1e8)


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Any registered policy with any parameters."""
    laws = st.sets(st.floats(allow_nan=False), min_size=1, max_size=4)
    scores = tuple(sorted(draw(laws)))
    chances = st.tuples(*(st.floats(0.01, 1) for _ in scores))
    k = draw(st.integers(1, 10**6))
    return draw(
        st.builds(Adaptive, factors, factors)
        | st.builds(Fixed, st.integers(k, 10**7), st.just(k))
        | st.builds(Threshold, st.floats(allow_nan=False) | st.integers())
        | st.builds(KnownLaw, st.just(scores), chances, st.just(()) | chances)
        | st.builds(Hedged, factors, st.integers(1, 99), st.integers(0, 99))
        | st.just(Alternate())
        | st.just(Balanced())
        | st.just(VerifyAll())
    )


@given(policies())
def test_a_specification_reads_back_as_the_same_policy(policy: Policy) -> None:
    assert parse(spec(policy)) == policy


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        (Adaptive(), "adaptive"),
        (Adaptive(checks=4), "adaptive(checks=4)"),
        (Adaptive(draws=0.5, checks=4), "adaptive(draws=0.5, checks=4)"),
        (Fixed(64, 4), "fixed(m=64, k=4)"),
        (Threshold(-math.inf), "threshold(t=-inf)"),
        (KnownLaw((0, 1), (0.1, 0.5)), "known-law(scores=(0, 1), passes=(0.1, 0.5))"),
        (VerifyAll(), "verify-all"),
        (Hedged(), "hedged"),
        (Hedged(every=2), "hedged(every=2)"),
    ],
)
def test_a_specification_names_only_parameters_that_differ_from_the_default(
    policy: Policy, text: str
) -> None:
    assert spec(policy) == text


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("adaptive", Adaptive()),
        ("  adaptive ( ) ", Adaptive()),
        ("fixed(64, 4)", Fixed(64, 4)),
        ("hedged(.5, 4, 1)", Hedged()),
        ("fixed(64, k=4)", Fixed(64, 4)),
        ("fixed(k=4, m=64)", Fixed(64, 4)),
        ("fixed(\n  64,\n  4,\n)", Fixed(64, 4)),
        ("threshold(inf)", Threshold(math.inf)),
        ("threshold(-inf)", Threshold(-math.inf)),
        ("threshold(-1.5)", Threshold(-1.5)),
        ("known-law([-inf, 1], (0.1, 0.5))", KnownLaw((-math.inf, 1), (0.1, 0.5))),
    ],
)
def test_parameters_may_go_by_place_or_by_name(text: str, policy: Policy) -> None:
    assert parse(text) == policy


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("adaptiv", "unknown policy 'adaptiv'; did you mean 'adaptive'? (there are: adaptive, "),
        ("Fixed(3, 1)", "unknown policy 'Fixed'; did you mean 'fixed'? (there are: "),
        ("zzz", "unknown policy 'zzz' (there are: "),
        (
            "adaptive(chekcs=3)",
            "unknown parameter of adaptive 'chekcs'; did you mean 'checks'? "
            "(there are: checks, draws)",
        ),
        ("fixed", "fixed needs m and k, as in fixed(m=..., k=...)"),
        ("fixed(3)", "fixed needs k, as in fixed(m=..., k=...)"),
        ("fixed(3, 2, 1)", "fixed takes m and k; 3 values were given"),
        ("default(1)", "default takes no parameters; it stands for '"),
        ("defalt", "unknown policy 'defalt'; did you mean 'default'? (there are: "),
        ("verify-all(1)", "verify-all takes no parameters; 1 values were given"),
        ("fixed(3, k=1, m=2)", "fixed: m is given twice"),
        ("", "not a policy: ''; write a name, or name(parameter=value, ...)"),
        ("fixed(3, 1", "not a policy: 'fixed(3, 1'; write a name, or name(parameter=value, ...)"),
        ("fixed(3, 1) twice", "not a policy: 'fixed(3, 1) twice'; write a name"),
        ("adaptive(draws='two')", "adaptive: a parameter has the wrong type in "),
        ("known-law(0, 1)", "known-law: a parameter has the wrong type in "),
        ("fixed(1, 2)", "fixed: needs whole numbers 1 <= k <= m, not m=1, k=2"),
        ("adaptive(checks=-1)", "adaptive: checks must be positive and below 1e9, not -1"),
    ],
)
def test_a_mistake_is_answered_with_what_would_have_been_right(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)

    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "parameters",
    [
        "(3 1)",  # no Python
        "(m=3, m=4, k=1)",  # one name twice
        "(**{'m': 3})",
        "(*[3, 1])",
        "(3)(1)",  # a call of a call
        "(3) + (1)",  # no call at all
        "(len, 1)",  # a name that is not a value
        "(-'3', 1)",
        "({[]: 3}, 1)",  # a literal that cannot be made
        "(\0)",
        f"({'-' * 5000}3, 1)",  # deeper than we go
        f"({'-' * 50000}3, 1)",  # deeper than the parser goes
    ],
)
def test_what_cannot_be_read_is_said_to_be_so(parameters: str) -> None:
    with pytest.raises(UsageError, match=r"the parameters of .* are not valid"):
        parse(f"fixed{parameters}")


def test_a_text_without_quotes_is_said_to_need_them() -> None:
    with pytest.raises(UsageError, match=r"write texts in quotes, .* file='prior.json'"):
        parse("learned(prior.json)")


@given(st.text(st.sampled_from("fixed-(),=*[]{}'\"0139.einf \n#"), max_size=25) | st.text())
def test_no_text_does_worse_than_a_usage_error(text: str) -> None:
    for attempt in (text, f"fixed({text})", f"known-law({text})"):
        with contextlib.suppress(UsageError):
            policy = parse(attempt)
            assert parse(spec(policy)) == policy


def test_a_text_can_be_taken_apart_without_making_the_policy() -> None:
    assert split("anything(1, two=[2, inf])") == ("anything", [1], {"two": (2, math.inf)})


def test_a_policy_that_is_not_registered_has_no_specification() -> None:
    with pytest.raises(UsageError, match="Scripted is not a registered policy"):
        spec(Scripted(()))


def test_a_relative_of_a_registered_policy_is_another_policy() -> None:
    @dataclass(frozen=True)
    class Faster(Adaptive):
        def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
            yield from ()

    with pytest.raises(UsageError, match="Faster is not a registered policy"):
        spec(Faster())


def test_no_hint_is_given_where_nothing_is_near() -> None:
    assert unknown("thing", "xyz", ["b", "a"]) == "unknown thing 'xyz' (there are: a, b)"
