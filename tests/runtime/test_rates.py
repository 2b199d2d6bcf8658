"""Limits per minute: when the next call fits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.backends.generators.anthropic import ANTHROPIC_SERVICE
from grv.backends.http.quotas import Quota, named_quota, quotas
from grv.backends.http.service import OPENAI
from grv.runtime.adaptive import Ticket
from grv.runtime.rates import Rates
from grv.testing.limits import Bucket


def test_the_headers_of_openai() -> None:
    said = {
        "x-ratelimit-limit-requests": "5000",
        "x-ratelimit-remaining-requests": "4999",
        "x-ratelimit-reset-requests": "12ms",
        "x-ratelimit-limit-tokens": "160000",
        "x-ratelimit-remaining-tokens": "159976",
        "x-ratelimit-reset-tokens": "6m0.5s",
    }
    assert quotas(said, OPENAI.quotas) == [
        Quota("requests", 4999, 5000, 0.012),
        Quota("tokens", 159_976, 160_000, 360.5),
    ]


def test_the_headers_of_azure_have_no_limit() -> None:
    said = {"x-ratelimit-remaining-requests": "19", "x-ratelimit-remaining-tokens": "19913"}
    assert quotas(said, OPENAI.quotas) == [Quota("requests", 19), Quota("tokens", 19_913)]


def test_the_headers_of_anthropic_name_a_point_in_time() -> None:
    said = {
        "date": "Thu, 21 Aug 2025 12:41:00 GMT",
        "anthropic-ratelimit-requests-limit": "1000",
        "anthropic-ratelimit-requests-remaining": "999",
        "anthropic-ratelimit-requests-reset": "2025-08-21T12:40:59Z",
        "anthropic-ratelimit-output-tokens-limit": "16000",
        "anthropic-ratelimit-output-tokens-remaining": "0",
        "anthropic-ratelimit-output-tokens-reset": "2025-08-21T12:41:30Z",
    }
    assert quotas(said, ANTHROPIC_SERVICE.quotas) == [
        Quota("requests", 999, 1000, 0.0),
        Quota("output tokens", 0, 16_000, 30.0),
    ]


@pytest.mark.parametrize("value", ["", "nan", "-1", "many", "1e99", "inf", "9" * 5000])
def test_headers_that_are_no_numbers_are_ignored(value: str) -> None:
    said = {
        "x-ratelimit-remaining-requests": "7",
        "x-ratelimit-limit-requests": value,
        "x-ratelimit-reset-requests": value,
    }
    assert quotas(said, OPENAI.quotas) == [Quota("requests", 7)]
    assert quotas({"x-ratelimit-remaining-requests": value}, OPENAI.quotas) == []


@pytest.mark.parametrize(
    ("body", "of"),
    [
        ("Rate limit reached for gpt-x on tokens per min (TPM): Limit 1", "tokens"),
        ("Rate limit reached for gpt-x on requests per min (RPM): Limit 3", "requests"),
        ("would exceed your organization's rate limit of 40,000 input tokens per minute", "tokens"),
        ("have exceeded token rate limit of your current pricing tier", "tokens"),
        ("have exceeded call rate limit of your current pricing tier", "requests"),
        ('{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}', "requests"),
        ('{"quotaId": "GenerateContentInputTokensPerModelPerMinute-FreeTier"}', "tokens"),
        ("Number of concurrent connections has exceeded your rate limit", ""),
        ("Overloaded", ""),
    ],
)
def test_refusals_name_what_is_limited(body: str, of: str) -> None:
    assert named_quota(body) == of


def test_calls_wait_for_the_next_request() -> None:
    rates = Rates()
    rates.begin(Ticket(1, 0.0, 1))
    rates.learn(Ticket(1, 0.0, 1), [Quota("requests", 0, 60, 60.0)])
    seconds, of = rates.wait(0.0)
    assert of == "requests"
    assert seconds == pytest.approx(4.0)  # one, and the reserve of 3
    assert rates.wait(seconds + 1e-9) == (0.0, "")


def test_what_a_call_takes_is_learned() -> None:
    rates = Rates()
    for number in range(1, 11):
        ticket = Ticket(number, 0.0, number)
        rates.begin(ticket)
        rates.learn(ticket, [Quota("tokens", 1000 - 90 * number, 1000, 54.0)])
    assert rates.wait(0.0)[1] == "tokens"  # 100 are left, and a call takes 90, and the reserve 50


def test_older_responses_do_not_count() -> None:
    rates = Rates()
    rates.begin(Ticket(2, 1.0, 2))
    rates.learn(Ticket(2, 1.0, 2), [Quota("requests", 50, 60, 10.0)])
    rates.learn(Ticket(1, 0.0, 1), [Quota("requests", 0, 60, 60.0)])
    assert rates.wait(1.0) == (0.0, "")


def test_calls_without_a_response_are_forgotten_in_time() -> None:
    rates = Rates()
    rates.learn(Ticket(1, 0.0, 1), [Quota("requests", 10, 60, 50.0)])
    rates.begin(Ticket(1000, 0.0, 1))  # none of them had a response
    assert rates.wait(0.0)[0] > 60
    assert rates.wait(3600.0) == (0.0, "")


numbers = st.floats(0, 1e15)
said = st.builds(
    Quota,
    st.sampled_from(["requests", "tokens"]),
    numbers,
    st.none() | numbers,
    st.none() | numbers,
)


@given(st.lists(st.tuples(said, st.floats(0, 100)), max_size=20))
def test_whatever_a_server_says_a_wait_is_a_number(said: list[tuple[Quota, float]]) -> None:
    rates = Rates()
    now = 0.0
    for number, (quota, seconds) in enumerate(said, 1):
        now += seconds
        ticket = Ticket(number, now, 1)
        rates.begin(ticket)
        rates.learn(ticket, [quota])
        wait, of = rates.wait(now)
        assert wait >= 0
        assert bool(of) == (wait > 0)


@given(st.integers(20, 600), st.floats(0.05, 3.0))
def test_a_bucket_is_used_up_and_never_asked_for_too_much(limit: int, latency: float) -> None:
    """Calls as fast as possible, with responses after `latency`: no refusal, and no idle bucket."""
    rates = Rates()
    bucket = Bucket(limit, 60.0, limit, 0.0)
    pending: list[tuple[float, Ticket, Quota]] = []
    now = 0.0
    calls = 0
    while now < 120.0:
        while pending and pending[0][0] <= now:
            _, ticket, quota = pending.pop(0)
            rates.learn(ticket, [quota])
        wait, _ = rates.wait(now)
        if wait or len(pending) >= 8:
            times = [now + wait] if wait else []
            times += [pending[0][0]] if pending else []
            now = min(times) + 1e-9
            continue
        bucket.fill(now)
        assert bucket.left >= 1
        bucket.left -= 1
        calls += 1
        ticket = Ticket(calls, now, len(pending) + 1)
        rates.begin(ticket)
        quota = Quota("requests", int(bucket.left), limit, bucket.reset)
        pending.append((now + latency, ticket, quota))
    possible = min(limit + 2 * limit, 120.0 / latency * 8)
    assert calls >= 0.8 * possible - 10
