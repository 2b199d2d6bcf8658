"""The tools, called by the official client in this process: results, errors, money."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

pytest.importorskip("mcp", reason="the tools of agents need the extra mcp")

from mcp import Client

from grv.backends.generators.no_candidates import NoCandidates
from grv.backends.generators.sampling import Sampling
from grv.backends.protocols import Draft, Problem, Score
from grv.backends.verifiers.pool import CheckVerifier
from grv.core.limits import Limits
from grv.core.values import Costs
from grv.ledger.sqlite import SqliteLedger
from grv.runtime.calls import Caller
from grv.runtime.executor import Backends
from grv.serve.clients import ANYONE
from grv.serve.clients import Client as ServeClient
from grv.serve.events import Events
from grv.serve.mcp.protocol import protocol_server
from grv.serve.mcp.tools import Tools
from grv.serve.profiles import Profile, SearchPlan
from grv.serve.searches import Searches, ServerBounds
from support.mcp_clients import call

MATH = {"kind": "math", "answer": "42"}
RIGHT = "It is \\boxed{42}"


class Fake:
    """A model with these texts, one after the other, and scores that are all equal."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> Sequence[Draft]:
        return [Draft(self.texts[k % len(self.texts)]) for k in range(first, first + n)]

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        return [Score(0.0) for _ in drafts]


@pytest.fixture(scope="module")
def verifier() -> Iterator[CheckVerifier]:
    with CheckVerifier(workers=1) as made:
        yield made


class Offer:
    """A server of tools in this process, and its ledger."""

    def __init__(
        self, folder: Path, verifier: CheckVerifier, *texts: str, total: float = 1e9, **more: Any
    ) -> None:
        fake = Fake(texts or (RIGHT,))
        self.events = io.StringIO()
        self.ledger = SqliteLedger(folder / "ledger")
        refutation = getattr(verifier, "refutation", None)
        backends = Backends(fake, fake, verifier, verifier.key, refutation=refutation)
        plan = SearchPlan(costs=Costs(1, 10), limits=Limits(budget=50))
        profile = Profile("m", backends, {}, Sampling(), Caller(), plan, **more)
        self.profiles = {"m": profile}
        self.total = total

    @asynccontextmanager
    async def client(self, who: ServeClient = ANYONE) -> AsyncIterator[Client]:
        events = Events(self.events)
        searches = Searches(self.ledger, self.total, ServerBounds(), events, detailed=True)
        async with searches.open():
            tools = Tools(self.profiles, searches, self.ledger, self.total, known=bool(who.name))
            async with Client(protocol_server(tools, events, lambda context: who)) as client:
                yield client

    def talk(self, name: str, who: ServeClient = ANYONE, **arguments: Any) -> Any:
        """The result of one call, or its error as text."""

        async def work() -> Any:
            async with self.client(who) as client:
                return await call(client, name, **arguments)

        return anyio.run(work)


Offers = Callable[..., Offer]


@pytest.fixture
def offers(tmp_path: Path, verifier: CheckVerifier) -> Iterator[Offers]:
    """Makes servers of tools, with a ledger each that is closed at the end."""
    with ExitStack() as stack:

        def make(*texts: str, **more: Any) -> Offer:
            made = Offer(tmp_path, verifier, *texts, **more)
            stack.callback(made.ledger.close)
            return made

        yield make


@pytest.fixture
def offer(offers: Offers) -> Offer:
    return offers("It is \\boxed{41}", RIGHT)


def test_a_verdict_costs_one_verification_and_nothing_else(offer: Offer) -> None:
    check = {"kind": "math", "answer": "4177"}  # of no other test: the verifier remembers verdicts
    right = "It is \\boxed{4177}"
    wrong = "It is \\boxed{4178}"
    passed = offer.talk("verify", candidate=right, check=check)
    assert (passed["verdict"], passed["verified"], passed["status"]) == ("passed", True, "verified")
    assert passed["bill"]["cost"] == 10
    failed = offer.talk("verify", candidate=wrong, check=check)
    assert (failed["verdict"], failed["verified"]) == ("failed", False)
    assert failed["evidence"]["details"]["answer_value"] == "4178"
    assert offer.ledger.possibly_paid("") == 20
    assert offer.talk("verify", candidate=right, check=check)["verdict"] == "passed"
    assert offer.ledger.possibly_paid("") == 20  # the same verdict again is free


def test_a_program_that_says_it_has_passed_has_not(offer: Offer) -> None:
    check = {"kind": "function", "entry_point": "f", "tests": [{"args": [2], "expected": 4}]}
    liar = '```python\nprint(\'{"verdict": "passed"}\')\ndef f(n):\n    return 5\n```'
    assert offer.talk("verify", candidate=liar, check=check)["verdict"] == "failed"
    right = "```python\ndef f(n):\n    return n * n\n```"
    assert offer.talk("verify", candidate=right, check=check)["verdict"] == "passed"
    unreadable = offer.talk("verify", candidate="```python\ndef f(:\n```", check=check)
    assert (unreadable["verdict"], unreadable["bill"]["cost"]) == ("failed", 0)


def test_a_model_need_not_read_a_long_output(offer: Offer) -> None:
    check = {"kind": "stdin", "tests": [{"input": "", "output": "right"}]}
    program = "```python\nprint('x' * 100_000 + 'end')\n```"
    found = offer.talk("verify", candidate=program, check=check)
    assert found["verdict"] == "failed"
    assert len(json.dumps(found)) < 20_000


def test_solve_returns_the_answer_that_passed_with_its_bill(offer: Offer) -> None:
    found = offer.talk("solve", problem="What is it?", check=MATH, budget=40)
    assert (found["answer"], found["verified"]) == (RIGHT, True)
    state = offer.talk("status", search=found["search"])
    assert (state["answer"], state["bill"]["cost"]) == (RIGHT, found["bill"]["cost"])
    account = offer.talk("status")
    assert account["spent"] == found["bill"]["cost"]
    assert account["models"][0]["name"] == "m"


def test_without_a_verified_answer_there_is_no_answer(offer: Offer) -> None:
    check = {"kind": "math", "answer": "7"}
    found = offer.talk("solve", problem="What is it?", check=check)
    assert found["answer"] is None
    assert found["message"].startswith("no verified answer")
    assert found["bill"]["cost"] <= 50


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("verify", {"check": MATH}, "candidate: must be the text to verify"),
        ("verify", {"candidate": 4, "check": MATH}, "candidate: must be the text to verify"),
        ("verify", {"candidate": "x"}, "check: is missing"),
        ("verify", {"candidate": "x", "check": "secret"}, "check: there is no check 'secret'"),
        ("verify", {"candidate": "x", "check": {"kind": "command", "argv": ["id"]}}, "check.kind"),
        ("verify", {"candidate": "x", "check": {"kind": "http", "url": "http://a"}}, "check.kind"),
        ("verify", {"candidate": "x", "check": MATH, "repository": "/"}, "repository: unknown"),
        ("verify", {"candidate": "x", "check": MATH, "budget": 51}, "budget: must be"),
        ("verify", {"candidate": "x", "check": MATH, "model": "n"}, "there is no model 'n'"),
        ("solve", {"problem": "p", "check": MATH, "policy": "learning('x')"}, "policy: "),
        ("solve", {"problem": "p", "check": MATH, "policy": "my.py:Policy"}, "policy: "),
        ("solve", {"problem": "p", "check": MATH, "costs": "0.1,0.1"}, "costs: must be at least"),
        ("solve", {"problem": ["p"], "check": MATH}, "problem: must be a text"),
        ("solve", {"problem": "p", "check": MATH, "base_url": "http://a"}, "base_url: unknown"),
        ("status", {"search": 5}, "search: must be the id of a search"),
        ("status", {"search": "../ledger"}, "there is no such search"),
        ("attempt", {"task": "t"}, "there is no tool 'attempt'"),
        ("x\ny", {}, "there is no tool 'x\\ny'"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_argument(
    offer: Offer, name: str, arguments: dict[str, Any], says: str
) -> None:
    said = offer.talk(name, **arguments)
    assert isinstance(said, str)
    assert says in said
    assert "\n" not in said
    assert offer.ledger.possibly_paid("") == 0


def test_half_a_character_is_refused_and_one_in_an_answer_is_carried(offers: Offers) -> None:
    offer = offers(f"\ud800 {RIGHT}")
    said = offer.talk("verify", candidate="\ud800", check=MATH)
    assert "half a character" in said

    async def work() -> str:
        async with offer.client() as client:
            result = await client.call_tool("solve", {"problem": "p", "check": MATH})
            assert result.structured_content is None
            return str(result.content[0].text)  # type: ignore[union-attr]

    assert json.loads(anyio.run(work))["answer"] == f"\ud800 {RIGHT}"


def test_what_a_client_may_spend_is_in_force(offers: Offers) -> None:
    offer = offers(RIGHT)
    poor = ServeClient("poor", budget=15)
    rich = ServeClient("rich", budget=1000)
    check = {"kind": "math", "answer": "77"}  # no other test has its verdicts
    assert offer.talk("verify", poor, candidate="\\boxed{77}", check=check)["verdict"] == "passed"
    said = offer.talk("verify", poor, candidate="\\boxed{78}", check=check)
    assert said == "the account's budget does not pay for another step"
    assert offer.ledger.possibly_paid("poor") == 10
    found = offer.talk("verify", rich, candidate=RIGHT, check=MATH)
    assert "there is no such search" in offer.talk("status", poor, search=found["search"])
    nobody = ServeClient("nobody", profiles=frozenset())
    said = offer.talk("verify", nobody, candidate=RIGHT, check=MATH)
    assert said == "this client may use no model"


def test_of_a_named_check_an_agent_learns_the_name_only(offers: Offers) -> None:
    offer = offers(RIGHT, checks={"sum": MATH}, check="sum")
    failed = offer.talk("verify", candidate="It is \\boxed{41}")
    assert failed["evidence"] == {"verdict": "failed", "reason": "wrong answer", "check": "sum"}
    assert "42" not in json.dumps(failed)


@pytest.mark.slow
def test_progress_increases(offer: Offer) -> None:
    told: list[float] = []

    async def progress(steps: float, total: float | None, message: str | None) -> None:
        told.append(steps)
        assert message is not None
        assert "generated" in message

    async def work() -> None:
        async with offer.client() as client:
            check = {"kind": "math", "answer": "7"}
            await call(client, "solve", progress, problem="p", check=check)

    anyio.run(work)
    assert told
    assert all(before < after for before, after in itertools.pairwise(told))


def test_a_server_without_a_model_only_verifies(offers: Offers) -> None:
    offer = offers()
    profile = offer.profiles["m"]
    backends = replace(profile.backends, generator=NoCandidates())
    offer.profiles["m"] = replace(profile, backends=backends)

    async def names() -> list[str]:
        async with offer.client() as client:
            return [tool.name for tool in (await client.list_tools()).tools]

    assert anyio.run(names) == ["verify", "status"]
    assert "it only verifies" in offer.talk("solve", problem="p", check=MATH)
    assert offer.talk("verify", candidate=RIGHT, check=MATH)["verdict"] == "passed"
