"""Caches of the verifier: bounded by bytes, also if clients send large checks."""

from __future__ import annotations

import gc
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pytest

from grv.backends.protocols import Finding, Problem
from grv.backends.verifiers import pool
from grv.backends.verifiers.byte_cache import ByteCache, size_of
from grv.backends.verifiers.known_findings import KnownFindings
from grv.backends.verifiers.pool import CheckVerifier
from grv.conditions import Conditions
from grv.core.values import Verdict

FAILED = Finding(Verdict.FAILED, "wrong answer")


def test_what_was_not_used_for_longest_is_forgotten_first() -> None:
    cache: ByteCache[str, int] = ByteCache(30)
    for number, key in enumerate("abc"):
        cache.put(key, number, 10)
    assert cache.get("a") == 0
    cache.put("d", 3, 10)
    assert [cache.get(key) for key in "abcd"] == [0, None, 2, 3]
    assert (len(cache), cache.size) == (3, 30)


def test_a_value_that_is_put_again_counts_once() -> None:
    cache: ByteCache[str, int] = ByteCache(30)
    cache.put("a", 0, 10)
    cache.put("a", 1, 20)
    assert (cache.get("a"), len(cache), cache.size) == (1, 1, 20)


def test_the_newest_value_stays_whatever_its_size() -> None:
    cache: ByteCache[str, int] = ByteCache(30)
    cache.put("a", 0, 10)
    cache.put("b", 1, 100)
    assert (cache.get("a"), cache.get("b"), cache.size) == (None, 1, 100)
    cache.put("c", 2, 10)
    assert (cache.get("b"), cache.get("c"), cache.size) == (None, 2, 10)


def test_there_are_never_more_values_than_allowed() -> None:
    cache: ByteCache[int, int] = ByteCache(10**9, most=2)
    for number in range(5):
        cache.put(number, number, 1)
    assert (len(cache), cache.size) == (2, 2)


def test_nested_data_is_counted() -> None:
    assert size_of({"tests": [{"stdin": "x" * 10_000}] * 3}) > 30_000


def test_findings_are_bounded_by_the_bytes_of_their_evidence() -> None:
    known = KnownFindings(most_bytes=1_000_000)
    asked = []

    def find(number: int) -> Finding:
        def ask() -> Finding:
            asked.append(number)
            return Finding(Verdict.FAILED, "wrong answer", {"got": "x" * 100_000})

        return known.once((Conditions("c"), str(number)), str(number), ask)

    for number in range(50):
        find(number)
    assert 500_000 < known.size <= 1_000_000
    assert find(49).shared  # the newest are known
    assert not find(0).shared  # and the oldest are found again
    assert asked == [*range(50), 0]


def test_findings_take_no_more_memory_than_they_say() -> None:
    known = KnownFindings()

    def failed(number: int) -> Finding:
        evidence = {"tests": [{"input": str(number), "got": f"{number:0200}"}], "index": number}
        return Finding(Verdict.FAILED, f"wrong answer {number}", evidence)

    tracemalloc.start()
    for number in range(8000):
        place = (Conditions(f"check {number}", 3, "jail"), f"key {number}")
        found = known.once(place, str(number), partial(failed, number))
        assert not found.shared
    gc.collect()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert known.size <= 4 << 20
    assert taken < 1.2 * known.size
    again = known.once(place, "another", lambda: FAILED)
    assert again == replace(failed(7999), shared=True)


def test_findings_are_the_same_after_a_rest() -> None:
    known = KnownFindings(most_bytes=20_000)
    places = [(Conditions(f"check {number}"), f"key {number}") for number in range(100)]
    for number, place in enumerate(places):
        evidence = {"got": "x" * number}
        known.once(place, "one", partial(Finding, Verdict.FAILED, "no", evidence))
    size = known.size
    known.rest()
    assert known.size == size
    assert not known.once(places[0], "one", lambda: FAILED).shared  # the oldest is forgotten
    assert known.once(places[-1], "two", lambda: FAILED).evidence == {"got": "x" * 99}
    known.once((Conditions("new"), "key"), "one", lambda: FAILED)
    assert known.size <= 20_000


def test_evidence_that_cannot_be_pickled_is_found_again() -> None:
    known = KnownFindings()
    place = (Conditions("c"), "key")
    strange = Finding(Verdict.FAILED, "wrong", {"why": lambda: None})
    assert known.once(place, "one", lambda: strange) == strange
    assert known.once(place, "one", lambda: FAILED) == FAILED


def test_a_finding_that_is_being_made_is_waited_for_and_never_forgotten() -> None:
    known = KnownFindings(most_bytes=1)
    place = (Conditions("c"), "key")
    begun = threading.Event()
    go_on = threading.Event()

    def slow() -> Finding:
        begun.set()
        assert go_on.wait(30)
        return FAILED

    def never() -> Finding:
        raise AssertionError("it is being made already")

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(known.once, place, "one", slow)
        assert begun.wait(30)
        for number in range(10):
            known.once((Conditions("c"), str(number)), "other", lambda: FAILED)
        second = threads.submit(known.once, place, "two", never)
        go_on.set()
        assert not first.result(30).shared
        assert second.result(30).shared


def test_an_error_is_not_remembered() -> None:
    known = KnownFindings()
    place = (Conditions("c"), "key")

    def fail() -> Finding:
        raise OSError("no worker")

    with pytest.raises(OSError, match="no worker"):
        known.once(place, "one", fail)
    assert not known.once(place, "one", lambda: FAILED).shared
    assert known.once(place, "one", lambda: FAILED).shared


def test_parsed_checks_are_bounded_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_PARSED_BYTES", 1_000_000)
    problems = [
        Problem(
            f"p{number}",
            "",
            {"kind": "stdin", "tests": [{"input": "x" * 50_000, "output": str(number)}]},
        )
        for number in range(40)
    ]
    with CheckVerifier(workers=1) as verifier:
        parsed = [verifier.prepare(problem) for problem in problems]
        again = [verifier.prepare(problem) for problem in reversed(problems)]
        kept = [new is old for new, old in zip(again, reversed(parsed), strict=True)]
    assert kept[0]  # the newest
    assert sum(kept) * 50_000 <= 1_000_000
