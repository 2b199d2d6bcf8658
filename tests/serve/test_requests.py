"""What a request may say. Every mistake names its field."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.backends.generators.openai import OpenaiGenerator
from grv.backends.generators.sampling import Sampling
from grv.backends.protocols import Draft, Problem, Score
from grv.backends.sandbox.limits import RunLimits
from grv.backends.verifiers.pool import CheckVerifier
from grv.core.errors import UsageError
from grv.core.limits import Limits
from grv.core.values import Costs, Measured
from grv.policies import FOR_GUESTS, POLICIES, Fixed, spec
from grv.runtime.calls import Caller
from grv.runtime.executor import Backends
from grv.runtime.prices import Meter, Prices
from grv.serve.completions.chat_dialect import CHAT, TEXT
from grv.serve.completions.requests import CompletionRequest, parse_request
from grv.serve.completions.require import Require
from grv.serve.errors import ApiError
from grv.serve.profiles import Profile, SearchPlan

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
        plan = SearchPlan(costs=Costs(1, 10), limits=Limits(budget=500))
        yield Profile(
            "m", backends, {}, sampling, Caller(), plan, checks={"named": NAMED}, check=""
        )


def body(grv: object = None, **more: object) -> dict[str, Any]:
    asked = {"check": MATH} if grv is None else grv
    said = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "grv": asked}
    return {**said, **more}


def parsed(
    profile: Profile, given: object, *, chat: bool = True, client: str = ""
) -> CompletionRequest:
    dialect = CHAT if chat else TEXT
    return parse_request(given, {"m": profile}, dialect, client=client)


def refused(profile: Profile, given: object, *, chat: bool = True) -> ApiError:
    with pytest.raises(ApiError) as caught:
        parsed(profile, given, chat=chat)
    json.dumps(caught.value.body)
    assert "\n" not in str(caught.value)
    return caught.value


def with_check(**fields: object) -> dict[str, Any]:
    return body({"check": {**MATH, **fields}})


FUNCTION = {"kind": "function", "entry_point": "f", "tests": [{"args": [1], "expected": 1}]}
SQL = {"kind": "sql", "engine": "sqlite", "schema": "CREATE TABLE t (a)", "reference": "SELECT a"}
TEXT_RULE = {"kind": "text", "contains_all": ["a"]}


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ([], None),
        (body(model=7), "model"),
        (body(messages="hi"), "messages"),
        (body(messages=[]), "messages"),
        (body(messages=[{"role": "tool", "content": "x"}]), "messages[0].tool_call_id"),
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
        (body(n=17), "n"),
        (body(n=0), "n"),
        (body(tools=[{"type": "function"}]), "tools[0]"),
        (body(tool_choice="required"), "tool_choice"),
        (body(best_of=2), "best_of"),
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
            body({"check": {"kind": "asserts", "entry_point": "f", "test": "-" * 50_000 + "1"}}),
            "grv.check.test",
        ),
        (body({"check": MATH, "policy": "best"}), "grv.policy"),
        (body({"check": MATH, "policy": 3}), "grv.policy"),
        (body({"check": MATH, "costs": "1"}), "grv.costs"),
        (body({"check": MATH, "costs": "0.001,10"}), "grv.costs"),
        (body({"check": MATH, "costs": [1, 9]}), "grv.costs"),
        (body({"check": MATH, "costs": [1, 10, 2]}), "grv.costs"),  # failures cost 10 here
        (body({"check": MATH, "costs": [1, 10, 11]}), "grv.costs"),
        (body({"check": MATH, "costs": [1, 10, 2, 2]}), "grv.costs"),
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


@pytest.mark.parametrize(
    "policy",
    [
        "learning('postgresql://evil@127.0.0.1:1/db')",
        "learning('s.ledger')",
        "learning(history='s.ledger')",
        "learning(('a.ledger', 'b.ledger'))",
        "learning([])",
        "learning(b'x')",
        "learned(1)",
        "known-law((1, 2), (0.1, 0.2))",
        "centered-star()",
        "fixed('a', 1)",
        "fixed(True, 1)",
        "fixed(10000000, 1)",
        "fixed(64, k=None)",
        "adaptive(draws=inf)",
        "adaptive(draws=1e999)",
        "threshold(1j)",
        "Fixed(64, 4)",
        "grv.policies.Fixed(64, 4)",
        "__import__('os')",
        "default('x')",
        "default(1)",
        "",
        "(",
    ],
)
def test_a_request_names_listed_policies_with_numbers_only(profile: Profile, policy: str) -> None:
    error = refused(profile, body({"check": MATH, "policy": policy}))
    assert (error.status, error.param) == (400, "grv.policy")


def test_every_listed_policy_can_be_named_and_none_reads_anything() -> None:
    """A policy that is added is not for guests before somebody lists it."""
    assert set(FOR_GUESTS) <= set(POLICIES)
    fields = {name: dataclasses.fields(POLICIES[name]) for name in FOR_GUESTS}
    assert {each.type for name in FOR_GUESTS for each in fields[name]} <= {
        "int",
        "float",
        "tuple[str, ...]",  # the history of learning, which only the operator gives
    }
    assert spec.parse_guest("fixed(64, k=4)") == Fixed(64, 4)
    assert spec.parse_guest("threshold(-0.5)") == POLICIES["threshold"](-0.5)
    for name in set(FOR_GUESTS) - {"fixed", "threshold"}:
        assert spec.parse_guest(name) == POLICIES[name]()


TEST = {"args": [1], "expected": 1}


def function(**fields: object) -> dict[str, Any]:
    return body({"check": {**FUNCTION, **fields}})


def user(content: object) -> dict[str, Any]:
    return {"role": "user", "content": content}


@pytest.mark.parametrize(
    ("given", "param"),
    [
        (lambda: body(messages=[user("a")] * 100_000), "messages"),
        (lambda: body(messages=[user([{"type": "text", "text": "a"}] * 100_000)]), "messages"),
        (lambda: function(tests=[TEST] * 150_000), "grv.check.tests"),
        (lambda: function(tests=[TEST] * 1001, repeat=10), "grv.check.tests"),
        (lambda: body({"check": {**SQL, "reference": "/* " * 500_000}}), "grv.check"),
        (lambda: function(**{f"answr{n}": 1 for n in range(100_000)}), "grv.check"),
        (lambda: schema({"enum": [*range(400_000)]}), "response_format.json_schema.schema"),
        (
            lambda: schema({"properties": {"A" * 2_000_000: {"anyOf": [True] * 150_000}}}),
            "response_format.json_schema.schema",
        ),
        (
            lambda: schema({"$defs": {f"a{n}": {"$ref": "#/a"} for n in range(120_000)}}),
            "response_format.json_schema.schema",
        ),
        (lambda: body(stop=["a" * 100_000]), "stop"),
        (lambda: body(stop=["a"] * 1_000_000), "stop"),
        (lambda: body(seed=2**63 - 1), "seed"),
        (lambda: body(n=10**18), "n"),
        (lambda: body(logprobs=True), "logprobs"),
        (lambda: body(top_logprobs=10**18), "top_logprobs"),
        (lambda: body(max_tokens=10**18), "max_tokens"),
        (lambda: body({"check": MATH, "costs": [1] * 1_000_000}), "grv.costs"),
        (lambda: body({"check": MATH, "costs": "1,2" + " " * 1_000_000}), "grv.costs"),
        (lambda: body({"check": MATH, "value": 1e300}), "grv.value"),
        (lambda: body({"check": MATH, "budget": 1e300}), "grv.budget"),
        (lambda: body({"check": MATH, "deadline": 1e300}), "grv.deadline"),
        (lambda: body({"check": MATH, "width": 10**9}), "grv.width"),
        (lambda: body({"check": MATH, "answers": 10**9}), "grv.answers"),
        (lambda: body(model="m" * 4_000_000), "model"),
        (lambda: body({"check": "named" * 700_000}), "grv.check"),
    ],
)
def test_what_would_be_much_work_is_refused_before_it(
    profile: Profile, given: Callable[[], dict[str, Any]], param: str
) -> None:
    said = given()
    started = time.process_time()
    error = refused(profile, said)
    assert time.process_time() - started < 1
    assert (error.status, error.param) in ((400, param), (404, param))


@pytest.mark.parametrize(
    ("tests", "repeat", "seconds"),
    [
        (361, 1, None),
        (10_000, 1, None),
        (1000, 10, 1),
        (3601, 1, 1),
        (37, 10, 10),
        (10_000, 1, 0.5),
    ],
)
def test_tests_that_could_hold_a_worker_for_hours_are_refused(
    profile: Profile, tests: int, repeat: int, seconds: float | None
) -> None:
    limits = {} if seconds is None else {"limits": {"seconds": seconds}}
    error = refused(profile, function(tests=[TEST] * tests, repeat=repeat, **limits))
    each = profile.run_limits.seconds if seconds is None else seconds
    assert (error.status, error.param) == (400, "grv.check.tests")
    assert f"may take {tests * repeat * each:g} s; the limit is 3600 s: send fewer" in str(error)
    assert "\n" not in str(error)


def grouped(*checks: object, **fields: object) -> dict[str, Any]:
    return body({"check": {"kind": "all", "checks": list(checks), **fields}})


@pytest.mark.parametrize("cost", [0, 0.01, 1e300])
def test_a_client_does_not_say_what_its_checks_cost(profile: Profile, cost: float) -> None:
    error = refused(profile, grouped(MATH, {**MATH, "cost": cost}))
    assert (error.status, error.param) == (400, "grv.check.cost")
    assert "only for checks of the server" in str(error)


@pytest.mark.parametrize(
    "given",
    [
        lambda: grouped(*[{**FUNCTION, "tests": [TEST] * 90, "repeat": 2}] * 3),
        lambda: grouped({**FUNCTION, "tests": [TEST] * 200}, repeat=2),
        lambda: grouped(*[TEXT_RULE] * 40, repeat=10),
        lambda: grouped(*[{**SQL, "variants": 200}] * 2),
        lambda: grouped(*[{**TEXT_RULE, "limits": {"seconds": 9}}] * 50, repeat=10),
        lambda: grouped(MATH, *[{"kind": "proof", "system": "smt", "statement": "x"}] * 61),
    ],
)
def test_the_checks_of_a_group_hold_a_worker_together_no_longer_than_one(
    profile: Profile, given: Callable[[], dict[str, Any]]
) -> None:
    error = refused(profile, given())
    assert (error.status, error.param) == (400, "grv.check.checks")
    assert "the limit is 3600 s" in str(error)


def test_the_tests_of_a_group_count_with_its_repeat(profile: Profile) -> None:
    quick = {**FUNCTION, "tests": [TEST] * 1001, "limits": {"seconds": 0.01}}
    error = refused(profile, grouped(quick, repeat=10))
    assert (error.status, error.param) == (400, "grv.check.checks")
    assert "at most 10000 tests" in str(error)


def test_a_query_can_hold_a_worker_no_longer_than_tests(profile: Profile) -> None:
    error = refused(profile, body({"check": {**SQL, "variants": 200, "repeat": 2}}))
    assert (error.status, error.param) == (400, "grv.check.tests")
    assert parsed(profile, body({"check": {**SQL, "variants": 200}}))
    assert parsed(profile, grouped(*[TEXT_RULE] * 36, repeat=10))
    assert parsed(profile, grouped(*[{**SQL, "limits": {"seconds": 5}}] * 5, limits={"seconds": 2}))


@pytest.mark.parametrize(
    ("tests", "repeat", "seconds"), [(360, 1, None), (36, 10, 10), (1000, 1, 3.6), (9000, 1, 0.4)]
)
def test_tests_that_take_an_hour_at_most_are_accepted(
    profile: Profile, tests: int, repeat: int, seconds: float | None
) -> None:
    limits = {} if seconds is None else {"limits": {"seconds": seconds}}
    assert parsed(profile, function(tests=[TEST] * tests, repeat=repeat, **limits))


def test_the_server_decides_how_long_one_test_may_take(profile: Profile) -> None:
    patient = dataclasses.replace(profile, run_limits=RunLimits(seconds=7200))
    assert parsed(patient, function(tests=[TEST], limits={"seconds": 7200}))
    assert refused(patient, function(tests=[TEST] * 2)).param == "grv.check.tests"
    assert parsed(patient, function(tests=[TEST] * 100, limits={"seconds": 10}))


@pytest.mark.slow
def test_long_names_inside_a_schema_are_not_copied(profile: Profile) -> None:
    inner: dict[str, Any] = {"anyOf": [True] * 5000}
    said = schema({"properties": {"A" * 3_000_000: inner}})
    started = time.process_time()
    assert parsed(profile, said)
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("costs", "policy"),
    [
        ("1,1e9", "varied"),
        ("1,1e18", "balanced"),
        ("1,1e100", "alternate"),
        ("1,1e12", "adaptive"),
        ("1,1e9", "hedged"),
        ("1,10", "fixed(1000000, 1)"),
        ("1,10", "adaptive(draws=1000000)"),
        ("1,1e9", "learning"),
    ],
)
def test_a_plan_that_asks_for_too_much_at_once_is_refused(
    profile: Profile, costs: str, policy: str
) -> None:
    """The operator's budget may be huge. The ratio of the costs still is the client's."""
    rich = dataclasses.replace(
        profile, plan=SearchPlan(costs=Costs(1, 10), limits=Limits(budget=1e300))
    )
    started = time.process_time()
    error = refused(rich, body({"check": MATH, "costs": costs, "policy": policy}))
    assert time.process_time() - started < 1
    assert error.status == 400
    assert "candidates at once, and 10,000 are the most" in str(error)
    assert parsed(rich, body({"check": MATH, "costs": costs, "policy": "verify-all"}))


def test_a_small_budget_makes_every_ratio_harmless(profile: Profile) -> None:
    for costs in ("1,1e9", "1,1e100", "1e99,1e100"):
        assert parsed(profile, body({"check": MATH, "costs": costs}))


def test_an_error_does_not_repeat_a_long_name(profile: Profile) -> None:
    name = "x" * 1_000_000
    for said in (body(**{name: 1}), body({"check": MATH, name: 1}), schema({name: 1})):
        assert len(json.dumps(refused(profile, said).body)) < 5000


def image(**fields: object) -> dict[str, Any]:
    url = {"url": "data:image/png;base64,AAAA", **fields}
    part = {"type": "image_url", "image_url": url}
    return body(messages=[{"role": "user", "content": [part]}])


def schema(value: object, **more: object) -> dict[str, Any]:
    inner = {"name": "n", "schema": value, **more}
    return body(response_format={"type": "json_schema", "json_schema": inner})


@pytest.mark.parametrize(
    "given",
    [
        image(detail="http://127.0.0.1/"),
        image(headers={"x": "y"}),
        image(url="data:image/svg+xml;base64,AAAA"),
        image(url="data:image/png,<svg>"),
        image(url="data:image/png;base64,AAAA http://127.0.0.1/"),
        image(url="data:image/../../x;base64,AAAA"),
        body(response_format={"type": "text", "schema": "x"}),
        body(response_format={"type": "json_object", "json_schema": {"schema": {}}}),
        body(response_format={"type": "json_schema"}),
        body(response_format={"type": "json_schema", "json_schema": {}, "grammar": "x"}),
        schema({}, url="http://127.0.0.1/"),
        schema({}, strict="yes"),
        schema([{"type": "string"}]),
        schema({"$ref": "http://127.0.0.1/"}),
        schema({"$ref": "other.json#/x"}),
        schema({"$ref": ["http://127.0.0.1/"]}),
        schema({"$ref": {"x": "http://127.0.0.1/"}}),
        schema({"$ref": "#anchor"}),
        schema({"$dynamicRef": "http://127.0.0.1/"}),
        schema({"$dynamicRef": "#x"}),
        schema({"$recursiveRef": "#"}),
        schema({"$id": "http://127.0.0.1/"}),
        schema({"id": "http://127.0.0.1/"}),
        schema({"$schema": "http://127.0.0.1/"}),
        schema({"$vocabulary": {"http://127.0.0.1/": True}}),
        schema({"$import": "x"}),
        schema({"$anchor": "x"}),
        schema({"contentMediaType": "text/html"}),
        schema({"items": [{"$ref": "http://127.0.0.1/"}]}),
        schema({"properties": {"a": {"not": {"$ref": "http://127.0.0.1/"}}}}),
        schema({"$defs": {"a": {"if": {"$ref": "x"}}}}),
        schema({"additionalProperties": {"allOf": [{"$id": "x"}]}}),
        schema({"properties": {"a": "http://127.0.0.1/"}}),
        schema({"properties": [{"$ref": "x"}]}),
        schema({"allOf": {"$ref": "http://127.0.0.1/"}}),
        body(reasoning_effort="http://127.0.0.1/"),
        body(reasoning_effort="über"),
        body(stream_options={"url": "x"}),
    ],
)
def test_what_reaches_the_models_server_is_listed(profile: Profile, given: dict[str, Any]) -> None:
    error = refused(profile, given)
    assert error.status == 400
    assert error.param is not None


def test_ordinary_images_and_schemas_are_passed_on(profile: Profile) -> None:
    assert parsed(profile, image(detail="low")).problem.messages
    inner = {
        "type": "object",
        "properties": {
            "$id": {"type": ["string", "null"], "default": {"$ref": "a text"}},
            "b": {"$ref": "#/$defs/b"},
            "c": {"type": "array", "items": {"anyOf": [{"const": 1}, True]}, "minItems": 2},
        },
        "required": ["$id"],
        "additionalProperties": False,
        "$defs": {"b": {"enum": ["http://x/", None], "pattern": "^a", "title": "t"}},
    }
    dialect = {"$schema": "http://json-schema.org/draft-07/schema#"}
    request = parsed(profile, schema({**dialect, **inner}, strict=True))
    sampling = request.config.about["response_format"]
    assert sampling["json_schema"]["schema"] == inner


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"api_key": {"const": 1}}, {"api_key": {"const": 2}}),
        ({"password": {"type": "string"}}, {"password": {"type": "number"}}),
        ({"a": {"const": "http://h/?q=1111"}}, {"a": {"const": "http://h/?q=2222"}}),
        ({"a": {"const": "http://u:pw11@h/"}}, {"a": {"const": "http://u:pw22@h/"}}),
    ],
)
def test_requests_that_differ_only_in_what_is_hidden_are_two_searches(
    profile: Profile, one: object, other: object
) -> None:
    first = parsed(profile, schema({"properties": one}))
    second = parsed(profile, schema({"properties": other}))
    assert first.search != second.search
    assert first.search == parsed(profile, schema({"properties": one})).search
    for word in ("1111", "pw11"):
        assert word not in str(first.config.about)


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
    assert (config.first.policy, config.costs) == (Fixed(4, 2), Costs(1, 30))
    assert (config.limits.budget, config.limits.value) == (50, 40)
    assert (request.require, request.deadline) == (Require.BEST, 3)
    sampling = config.first.backends.generator.sampling  # type: ignore[attr-defined]
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
        return dataclasses.replace(profile, **changes)

    with pytest.raises(UsageError, match="profile m: give a budget"):
        made(plan=SearchPlan())
    with pytest.raises(UsageError, match=r"profile m: check x is not in \[checks\]"):
        made(check="x")
    with pytest.raises(UsageError, match="kind"):
        made(checks={"x": {"kind": "maths"}})


def test_a_request_may_raise_the_price_of_a_failure_and_not_lower_it(profile: Profile) -> None:
    plan = SearchPlan(costs=Costs(1, 10, failure=2, score=0.5), limits=Limits(budget=500))
    priced = dataclasses.replace(profile, plan=plan)
    request = parsed(priced, body({"check": MATH}))
    assert request.config.costs == plan.costs
    for prices in ("1,20,4", [1, 20, 4]):
        request = parsed(priced, body({"check": MATH, "costs": prices}))
        assert request.config.costs == Costs(1, 20, failure=4, score=0.5)
    request = parsed(priced, body({"check": MATH, "costs": "1,10"}))
    assert request.config.costs == Costs(1, 10, score=0.5)
    error = refused(priced, body({"check": MATH, "costs": "1,10,1"}))
    assert (error.param, str(error)) == ("grv.costs", "grv.costs: must be at least 1,10,2")
    error = refused(profile, body({"check": MATH, "costs": "1,10,1"}))
    assert "must be at least 1,10,10" in str(error)


def test_costs_that_are_measured_are_only_guessed(profile: Profile) -> None:
    meter = Meter(Prices({}, {"verify_call": 1.0, "generate_call": 1.0}))
    plan = SearchPlan(costs=Measured(1, 10), limits=Limits(budget=5, most=Costs(2, 20)))
    measured = dataclasses.replace(profile, plan=plan, meter=meter)
    request = parsed(measured, body({"check": MATH, "costs": "0.01,0.1"}))
    assert request.config.costs == Measured(0.01, 0.1)
    request = parsed(measured, body({"check": MATH, "costs": "0.01,0.1,0.05"}))
    assert request.config.costs == Measured(0.01, 0.1, failure=0.05)
    assert request.config.limits.most == Costs(2, 20)
