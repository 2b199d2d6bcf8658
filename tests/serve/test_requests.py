"""What a request may say. Every mistake names its field."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.backends.generators.openai import OpenaiGenerator
from grv.backends.generators.sampling import Sampling
from grv.backends.protocols import Draft, Problem, Score
from grv.backends.verifiers.pool import CheckVerifier
from grv.core.errors import UsageError
from grv.core.values import Costs, Measured
from grv.policies import Fixed
from grv.runtime.calls import Caller
from grv.runtime.executor import Backends
from grv.runtime.prices import Meter, Prices
from grv.serve.completions.requests import Request, parse_request
from grv.serve.completions.require import Require
from grv.serve.errors import ApiError
from grv.serve.profiles import Plan, Profile

MATH = {"kind": "math", "answer": "42"}
NAMED = {"kind": "command", "argv": ["true"]}


class Scorer:
    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        return [Score(0.0) for _ in drafts]


@pytest.fixture(scope="module")
def profile() -> Iterator[Profile]:
    with CheckVerifier(workers=1, allow_commands=True) as verifier:
        sampling = Sampling(max_tokens=100, extra_body={"top_k": 5})
        generator = OpenaiGenerator("m", base_url="http://127.0.0.1:9/v1", sampling=sampling)
        backends = Backends(generator, Scorer(), verifier, verifier.key)
        plan = Plan(costs=Costs(1, 10), budget=500)
        yield Profile(
            "m", backends, {}, sampling, Caller(), plan, checks={"named": NAMED}, check=""
        )


def body(grv: object = None, **more: object) -> dict[str, Any]:
    asked = {"check": MATH} if grv is None else grv
    said = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "grv": asked}
    return {**said, **more}


def parsed(profile: Profile, given: object, *, chat: bool = True, client: str = "") -> Request:
    return parse_request(given, {"m": profile}, chat=chat, client=client)


def refused(profile: Profile, given: object, *, chat: bool = True) -> ApiError:
    with pytest.raises(ApiError) as caught:
        parsed(profile, given, chat=chat)
    json.dumps(caught.value.body)
    assert "\n" not in str(caught.value)
    return caught.value


def with_check(**fields: object) -> dict[str, Any]:
    return body({"check": {**MATH, **fields}})


FUNCTION = {"kind": "function", "entry_point": "f", "tests": [{"args": [1], "expected": 1}]}


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ([], None),
        (body(model=7), "model"),
        (body(messages="hi"), "messages"),
        (body(messages=[]), "messages"),
        (body(messages=[{"role": "tool", "content": "x"}]), "messages[0].role"),
        (body(messages=[{"role": "user"}]), "messages[0].content"),
        (
            body(messages=[{"role": "user", "content": "x", "tool_calls": []}]),
            "messages[0].tool_calls",
        ),
        (
            body(messages=[{"role": "user", "content": [{"type": "file"}]}]),
            "messages[0].content[0]",
        ),
        (body(temperature="hot"), "temperature"),
        (body(temperature=-1), "temperature"),
        (body(top_p=0), "top_p"),
        (body(max_tokens=0), "max_tokens"),
        (body(max_tokens=1.5), "max_tokens"),
        (body(max_completion_tokens=101), "max_completion_tokens"),
        (body(seed=True), "seed"),
        (body(stop=[""]), "stop"),
        (body(stop=["x"] * 17), "stop"),
        (body(n=2), "n"),
        (body(tools=[{"type": "function"}]), "tools"),
        (body(logprobs=True), "logprobs"),
        (body(stream="yes"), "stream"),
        (body(stream_options=[]), "stream_options"),
        (body(response_format={"type": "xml"}), "response_format"),
        (body(frequency_penalty=9), "frequency_penalty"),
        (body(temprature=1), "temprature"),
        (body(prompt="hi"), "prompt"),
        (body("x"), "grv"),
        (body({}), "grv.check"),
        (body({"chek": MATH}), "grv.chek"),
        (body({"check": 7}), "grv.check"),
        (body({"check": "other"}), "grv.check"),
        (body({"check": {}}), "grv.check.kind"),
        (with_check(kind="maths"), "grv.check.kind"),
        (with_check(answr="42"), "grv.check.answr"),
        (with_check(repeat=11), "grv.check.repeat"),
        (with_check(limits={"seconds": 1e6}), "grv.check.limits.seconds"),
        (with_check(limits={"cpu_seconds": 11}), "grv.check.limits.cpu_seconds"),
        (with_check(limits={"memory_mb": 4096}), "grv.check.limits.memory_mb"),
        (with_check(limits={"threads": 65}), "grv.check.limits.threads"),
        (body({"check": {**FUNCTION, "tests": []}}), "grv.check.tests"),
        (body({"check": {**FUNCTION, "tests": [{"args": 1}]}}), "grv.check.tests[0].expected"),
        (
            body({"check": {"kind": "asserts", "entry_point": "f", "test": "-" * 100_000 + "1"}}),
            "grv.check.test",
        ),
        (body({"check": MATH, "policy": "best"}), "grv.policy"),
        (body({"check": MATH, "policy": 3}), "grv.policy"),
        (body({"check": MATH, "costs": "1"}), "grv.costs"),
        (body({"check": MATH, "costs": "0.001,10"}), "grv.costs"),
        (body({"check": MATH, "costs": [1, 9]}), "grv.costs"),
        (body({"check": MATH, "budget": 501}), "grv.budget"),
        (body({"check": MATH, "budget": -1}), "grv.budget"),
        (body({"check": MATH, "value": "much"}), "grv.value"),
        (body({"check": MATH, "require": "any"}), "grv.require"),
        (body({"check": MATH, "deadline": 0}), "grv.deadline"),
        (body({"check": MATH, "fresh": ""}), "grv.fresh"),
    ],
)
def test_a_mistake_names_its_field(profile: Profile, given: object, param: str | None) -> None:
    error = refused(profile, given)
    assert (error.status, error.param) == (400, param)


@pytest.mark.parametrize(
    "given",
    [
        body({"check": {"kind": "command", "argv": ["sh", "-c", "id"]}}),
        body({"check": {"kind": "http", "url": "http://169.254.169.254/"}}),
        body({"check": {**MATH, "isolation": "unsafe"}}),
        body({"check": MATH, "isolation": "unsafe"}),
        body({"check": MATH, "verifier": "my.py:f"}),
        body({"check": MATH, "base_url": "http://127.0.0.1:1/"}),
        body(base_url="http://127.0.0.1:1/"),
        body(extra_body={"guided_json": "x"}),
        body({"check": MATH, "policy": "learned('/etc/passwd')"}),
        body({"check": MATH, "policy": "my.py:Policy"}),
        body({"check": MATH, "policy": "centered-star('intervals:16')"}),
        body({"check": "../../etc/passwd"}),
        body({"check": "/etc/passwd"}),
        body(messages=[{"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": "http://169.254.169.254/latest"}}
        ]}]),
        body(messages=[{"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}
        ]}]),
        body(response_format={"type": "json_schema", "json_schema": {
            "schema": {"properties": {"a": {"$ref": "http://169.254.169.254/s.json"}}}
        }}),
    ],
)  # fmt: skip
def test_clients_name_no_addresses_commands_files_or_code(
    profile: Profile, given: dict[str, Any]
) -> None:
    assert refused(profile, given).status == 400


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
    ),
    max_leaves=6,
)
_WHOLE: dict[str, Any] = {
    **dict.fromkeys(("temperature", "top_p", "max_tokens", "stop", "seed", "n", "stream", "user")),
    **dict.fromkeys(("stream_options", "response_format", "frequency_penalty", "tools", "model")),
    "messages": [{"role": "user", "content": [{"type": "text", "text": "x"}], "name": "me"}],
    "grv": {
        **dict.fromkeys(("policy", "costs", "budget", "value", "require", "deadline", "fresh")),
        "check": {**FUNCTION, "limits": {"seconds": 1}, "repeat": 1, "tolerance": 0.1},
    },
}


def _places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = data.items() if isinstance(data, dict) else ()
    for name, value in [*items, *(enumerate(data) if isinstance(data, list) else ())]:
        yield from _places(value, (*path, name))


@given(st.sampled_from([*_places(_WHOLE)]), _values)
def test_any_value_anywhere_is_accepted_or_named(
    profile: Profile, place: tuple[Any, ...], value: object
) -> None:
    root = {"": json.loads(json.dumps({"model": "m", **_WHOLE} | {"model": "m"}))}
    where: Any = root
    for name in ("", *place)[:-1]:
        where = where[name]
    where[("", *place)[-1]] = value
    try:
        status = 200 if len(parsed(profile, root[""]).search) == 24 else 500
    except ApiError as error:
        json.dumps(error.body)
        status = error.status
    assert status in (200, 400, 404)


def test_an_unknown_model_is_404(profile: Profile) -> None:
    assert refused(profile, body(model="mm")).status == 404
    assert refused(profile, body(model="../m")).status == 404


def test_a_request_may_lower_what_the_server_allows(profile: Profile) -> None:
    request = parsed(
        profile,
        body(
            {
                "check": {**MATH, "limits": {"seconds": 1}},
                "policy": "fixed(4, 2)",
                "costs": "1,30",
                "budget": 50,
                "value": 40,
                "require": "best",
                "deadline": 3,
            },
            presence_penalty=1,
            max_tokens=7,
        ),
    )
    config = request.config
    assert (config.policy, config.costs) == (Fixed(4, 2), Costs(1, 30))
    assert (config.budget, config.value) == (50, 40)
    assert (request.require, request.deadline) == (Require.BEST, 3)
    sampling = config.backends.generator.sampling  # type: ignore[attr-defined]
    assert sampling.max_tokens == 7
    assert sampling.extra_body == {"top_k": 5, "presence_penalty": 1}
    assert profile.sampling.max_tokens == 100


def test_a_named_check_may_be_a_command(profile: Profile) -> None:
    request = parsed(profile, body({"check": "named"}))
    assert (request.check, request.problem.check) == ("named", NAMED)


def test_equal_requests_have_one_search_and_clients_share_none(profile: Profile) -> None:
    one = parsed(profile, body(), client="a")
    assert parsed(profile, body(stream=True, user="x"), client="a").search == one.search
    assert parsed(profile, body(), client="b").search != one.search
    smaller = parsed(profile, body({"check": MATH, "budget": 5}), client="a")
    assert smaller.search == one.search
    assert smaller.key != one.key
    assert parsed(profile, body({"check": MATH, "fresh": True}), client="a").search != one.search


def test_texts_of_any_kind_are_accepted(profile: Profile) -> None:
    strange = "\ud800 \x00 \u202e naïve"
    request = parsed(profile, body(messages=[{"role": "user", "content": strange}]))
    assert request.problem.prompt == strange
    assert len(request.search) == 24
    text = parsed(profile, {"model": "m", "prompt": [strange], "grv": {"check": MATH}}, chat=False)
    assert (text.problem.prompt, text.problem.messages) == (strange, ())
    assert refused(
        profile, {"model": "m", "prompt": ["a", "b"], "grv": {"check": MATH}}, chat=False
    ).param == "prompt"  # fmt: skip


def test_a_profile_needs_a_budget_and_its_checks_must_be_right(profile: Profile) -> None:
    def made(**changes: Any) -> Profile:
        given = {**vars(profile), **changes}
        return Profile(**given)

    with pytest.raises(UsageError, match="profile m: give a budget"):
        made(plan=Plan())
    with pytest.raises(UsageError, match=r"profile m: check x is not in \[checks\]"):
        made(check="x")
    with pytest.raises(UsageError, match="kind"):
        made(checks={"x": {"kind": "maths"}})


def test_costs_that_are_measured_are_only_guessed(profile: Profile) -> None:
    meter = Meter(Prices({}, {"verify_call": 1.0, "generate_call": 1.0}))
    plan = Plan(costs=Measured(1, 10), budget=5)
    measured = Profile(**{**vars(profile), "plan": plan, "meter": meter, "most": Costs(2, 20)})
    request = parsed(measured, body({"check": MATH, "costs": "0.01,0.1"}))
    assert request.config.costs == Measured(0.01, 0.1)
    assert request.config.reserve == Costs(2, 20)
